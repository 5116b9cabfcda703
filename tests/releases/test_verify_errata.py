"""What withdrawals took out of a release is counted and told, and one of what was never planned is refused and found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.build import build
from empathy_eval.generation.outcomes import BUILD
from empathy_eval.releases.assemble.manifest import manifest_text, seal_manifest
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.compare.diff import diff
from empathy_eval.releases.verify.manifest import manifest_faults
from empathy_eval.releases.verify.verify import verify

from tests.conftest import demo_file
from tests.doubles import made_once

WHOLE = {"dialogue_id": "007-seed", "kind": "harm", "reason": "a real name", "date": "2026-02-01"}
PAIR = {"pair_id": "003-seed-t03", "kind": "harm", "reason": "too harsh", "date": "2026-02-01"}
NOWHERE = {**PAIR, "pair_id": "003-seed-t99"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue, prompts: Prompts) -> Path:
    """A build and two releases of it: in the later one a dialogue and a pair of another are withdrawn."""

    def make(folder: Path) -> None:
        for version, changes in (("0.1.0", {}), ("0.2.0", {"withdrawn": [WHOLE, PAIR]})):
            config = load_configuration(demo_file(folder, report={"metrics": ["length"], "bootstrap": 10}, **changes))
            build(Recipe(config, catalogue, prompts), folder / "b")
            release(folder / "b", folder / version, version)

    return made_once.copied(tmp_path_factory, "errata-counted", make)[0]


@pytest.fixture
def facts(made: Path) -> dict[str, Any]:
    return read_manifest(made / "0.2.0")


def of(folder: Path) -> dict[str, int]:
    """The dialogues and pairs that a release holds."""
    counts = read_manifest(folder)["counts"]
    return {name: sum(counts[name].values()) for name in ("dialogues", "pairs")}


@pytest.mark.e2e
def test_what_was_taken_out_is_counted_in_manifest_card_changelog_and_diff(made: Path, facts: dict[str, Any]) -> None:
    first, second = of(made / "0.1.0"), of(made / "0.2.0")
    gone = {name: first[name] - second[name] for name in first}
    assert gone["dialogues"] == 1 and gone["pairs"] > 2
    assert facts["withdrawn_counts"] == gone and "withdrawn_counts" not in read_manifest(made / "0.1.0")
    told = f"ithdrawals removed 1 dialogues and {gone['pairs']} pairs from the build."
    assert all(told in (made / "0.2.0" / name).read_text() for name in ("README.md", "CHANGELOG.md"))
    found = diff(made / "0.1.0", made / "0.2.0")
    assert found.withdrawn_counts == gone and found.unexplained == ()
    assert f"withdrawn from 0.1.0: 1 dialogues, {gone['pairs']} pairs" in str(found)
    assert diff(made / "0.2.0", made / "0.2.0").withdrawn_counts == {"dialogues": 0, "pairs": 0}
    assert verify(made / "0.2.0") == []


def test_release_prints_what_was_taken_out(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["release", str(made / "b"), "--out", str(tmp_path / "r"), "--version", "0.2.0"]) == 0
    pairs = read_manifest(tmp_path / "r")["withdrawn_counts"]["pairs"]
    assert f"withdrawn: 1 dialogue and {pairs} pairs of the build are left out, by 2 withdrawals" in capsys.readouterr().out


def test_a_build_whose_header_names_what_is_not_there_is_not_released(made: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(made / "b", tmp_path / "b"))
    header = json.loads((copy / BUILD).read_text())
    unkind = {name: value for name, value in WHOLE.items() if name != "kind"}
    header["configuration"]["withdrawn"] = [unkind, NOWHERE, {**WHOLE, "dialogue_id": "044-seed"}]
    (copy / BUILD).write_text(json.dumps(header))
    with pytest.raises(InputError) as error:
        release(copy, tmp_path / "r", "0.2.0")
    told = str(error.value)
    assert error.value.exit_code == 2 and not (tmp_path / "r").exists()
    assert 'withdrawn[1]: "003-seed-t99" is not a pair: 003-seed has 14 turns' in told and "name one of its pairs: 003-seed-t01, " in told
    assert 'withdrawn[2]: "044-seed" is not planned' in told and "add kind: harm, error" in told


def withdrawn(facts: dict[str, Any], *more: dict[str, Any]) -> None:
    facts["withdrawn"] = facts["configuration"]["withdrawn"] = [*facts["withdrawn"], *more]


FORGED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a pair that is not there": (lambda facts: withdrawn(facts, NOWHERE), '"003-seed-t99" is not a pair: 003-seed has 14 turns'),
    "a pair of a seeker": (lambda facts: withdrawn(facts, {**PAIR, "pair_id": "017-seed-t02"}), '"017-seed-t02" is not a pair: the seeker'),
    "a drawn one": (lambda facts: withdrawn(facts, {**WHOLE, "dialogue_id": "003-00001"}), '"003-00001" is not planned'),
    "no counts": (lambda facts: facts.pop("withdrawn_counts"), "withdrawn_counts: does not match 2 withdrawals"),
    "fewer dialogues": (lambda facts: facts["withdrawn_counts"].update(dialogues=0), "accepted: says 3, but the data gives 2"),
    "fewer pairs": (lambda facts: facts["withdrawn_counts"].update(pairs=1), "pairs: says 20, but the data gives 13"),
    "a summary of fewer pairs": (lambda facts: facts["summary"].update(pairs=facts["summary"]["pairs"] - 1), "summary: pairs: says"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_verify_finds_errata_of_what_is_not_planned_and_counts_that_do_not_fit(made: Path, facts: dict[str, Any], name: str) -> None:
    change, told = FORGED[name]
    assert list(manifest_faults(made / "0.2.0", facts)) == []
    change(facts)
    said = "\n".join(map(str, manifest_faults(made / "0.2.0", facts)))
    assert told in said and "restore the file" in said


def test_counts_without_withdrawals_are_a_fault(made: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(made / "0.1.0", tmp_path / "r"))
    facts = read_manifest(copy) | {"withdrawn_counts": {"dialogues": 0, "pairs": 0}}
    (copy / "manifest.json").write_text(manifest_text(seal_manifest(facts)))
    assert "withdrawn_counts: does not match 0 withdrawals" in "\n".join(map(str, verify(copy, fast=True)))
