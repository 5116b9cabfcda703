"""An erratum over three releases of a name: what was withdrawn is in no file, what is corrected has its own id, nothing else moves."""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from empathy_eval.base.errors import InputError
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.dataset import SPLITS, file_of, read_manifest, split_of
from empathy_eval.design.errata import withdrawn_pairs
from empathy_eval.design.planning import plan_of, plans, some_plans
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.generation.build import build
from empathy_eval.releases.assemble.build_definitions import BuildDefinitions
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.compare.diff import diff
from empathy_eval.releases.inspect.show import InspectionInputs, rejected, show
from empathy_eval.releases.verify.content import content_faults
from empathy_eval.releases.verify.texts import load_text_checks
from empathy_eval.releases.verify.verify import verify
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import copy_world, demo_file

WHOLE = {"dialogue_id": "017-seed", "kind": "error", "reason": "a turn said what nobody says", "date": "2026-02-28"}
PAIR = {"pair_id": "003-seed-t03", "kind": "harm", "reason": "its apathetic text was too harsh", "date": "2026-02-28"}
HELD = re.compile(r'<script type="application/json" id="sample">([^<]*)</script>')


class Releases:
    """Three releases of one name; the third has the corrected form of what the second withdrew."""

    def __init__(self, folder: Path, prompts: Prompts) -> None:
        self.scenarios, self.prompts, self.folder = copy_world(folder / "scenarios"), prompts, folder
        self.first = self.released("0.1.0", "a")
        self.second = self.released("0.2.0", "a", withdrawn=[WHOLE, PAIR])
        path = next(self.scenarios.glob("017*"))
        said = yaml.safe_load(path.read_text())
        self.old = said["seed"]["turns"][0]["text"]
        said["seed"]["turns"][0]["text"] = f"{self.old} That is how it was."
        path.write_text(yaml.safe_dump(said, allow_unicode=True))
        self.third = self.released("0.3.0", "b", withdrawn=[WHOLE, PAIR], corrected=["017-seed-r1"])

    def released(self, version: str, name: str, **changes: Any) -> Path:
        config = demo_file(self.folder, report={"metrics": ["length"], "bootstrap": 10}, **changes)
        build(Recipe(load_configuration(config), load_catalogue(self.scenarios), self.prompts), self.folder / name)
        release(self.folder / name, self.folder / version, version)
        return self.folder / version


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory, prompts: Prompts) -> Releases:
    return Releases(tmp_path_factory.mktemp("errata"), prompts)


def said_in(folder: Path) -> str:
    """All that any file of a folder says, in parquet and in what the explorer embeds too."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet":
            found.append(json.dumps(pq.read_table(path).to_pylist(), ensure_ascii=False))
        elif path.is_file() and path.suffix != ".png":
            text = path.read_text(encoding="utf-8")
            found.append(text)
            for held in HELD.findall(text):
                tables = json.loads(held)["files"].values()
                rows = (pq.read_table(pa.BufferReader(base64.b64decode(one))).to_pylist() for one in tables)
                found += [json.dumps(one, ensure_ascii=False) for one in rows]
    return "\n".join(found)


def rows(folder: Path, config: str) -> list[dict[str, Any]]:
    return [row for split in SPLITS for row in pq.read_table(file_of(folder, config, split)).to_pylist()]


def test_each_is_what_it_claims_and_the_withdrawn_texts_are_in_no_file(three: Releases) -> None:
    for folder in (three.first, three.second, three.third):
        assert [one for one in verify(folder) if one.severity == "fault"] == []
    gone = next(row for row in rows(three.first, "pairs") if row["pair_id"] == PAIR["pair_id"])
    texts = [gone[name] for name in ("apathetic", "empathetic")] + [row["text"] for row in rows(three.first, "dialogues")[-1]["turns"]][:2]
    assert all(json.dumps(text, ensure_ascii=False)[1:-1] in said_in(three.first) for text in texts)
    assert not any(json.dumps(text, ensure_ascii=False)[1:-1] in said_in(three.second) for text in texts)
    assert gone["reference"] in {one["text"] for row in rows(three.second, "dialogues") for one in row["turns"]}
    later = {one["text"] for row in rows(three.third, "dialogues") for one in row["turns"]}
    assert three.old not in later and f"{three.old} That is how it was." in later


def test_ids_and_splits_stay_and_the_corrected_form_names_what_it_stands_for(three: Releases) -> None:
    first, second, third = ({row["dialogue_id"] for row in rows(one, "dialogues")} for one in (three.first, three.second, three.third))
    assert first - second == {"017-seed"} and third - second == {"017-seed-r1"} and second < third
    for folder in (three.first, three.second, three.third):
        for split in SPLITS:
            for row in pq.read_table(file_of(folder, "dialogues", split)).to_pylist():
                assert split_of(row["dialogue_id"]) == split
    assert {row["pair_id"] for row in rows(three.third, "pairs")} & {"017-seed-r1-t01"}
    assert all(row["crossed_id"].startswith(row["dialogue_id"]) for row in rows(three.third, "crossed"))


def test_card_and_changelog_list_both_with_their_kinds(three: Releases) -> None:
    for name in ("README.md", "CHANGELOG.md"):
        text = (three.third / name).read_text()
        assert "`017-seed` (2026-02-28, error): a turn" in text or "`017-seed` (2026-02-28, error: a turn" in text
        assert "`003-seed-t03` (2026-02-28, harm" in text and re.search("`017-seed-r1` (for|replaces) `017-seed`", text)


def test_diff_tells_them_and_that_nothing_else_changed(three: Releases) -> None:
    found = diff(three.first, three.second)
    assert (found.removed, found.withdrawn, found.unexplained) == (("017-seed",), ("003-seed-t03", "017-seed"), ())
    found = diff(three.second, three.third)
    assert (found.added, found.corrected, found.unexplained) == (("017-seed-r1",), {"017-seed-r1": "017-seed"}, ())
    assert found.changed == () and found.moved == ()
    told = diff(three.third, three.first)
    assert "017-seed-r1 is missing, and no reason is given" in told.unexplained and "017-seed is no longer withdrawn" in told.unexplained


def test_a_withdrawal_without_a_kind_and_a_correction_of_what_is_not_withdrawn_are_refused(three: Releases, tmp_path: Path) -> None:
    unkind = {name: value for name, value in WHOLE.items() if name != "kind"}
    config = demo_file(tmp_path, withdrawn=[unkind], corrected=["007-seed-r1"], report={"metrics": ["length"], "bootstrap": 10})
    build(Recipe(load_configuration(config), load_catalogue(three.scenarios), three.prompts), tmp_path / "b")
    with pytest.raises(InputError) as error:
        release(tmp_path / "b", tmp_path / "r", "0.1.0")
    told = str(error.value)
    assert "add kind: harm, error" in told and '"007-seed-r1" replaces 007-seed, which is not withdrawn' in told


def silent(folder: Path, copy: Path, **facts: Any) -> Path:
    """A copy of a release whose manifest says something else."""
    shutil.copytree(folder, copy)
    (copy / "manifest.json").write_text(json.dumps(json.loads((copy / "manifest.json").read_text()) | facts))
    return copy


def change(folder: Path, config: str, column: str, name: str, how: Callable[[Any], Any]) -> None:
    """Changes a column of a row of a release."""
    path = file_of(folder, config, split_of(name.partition("-t")[0]))
    table = pq.read_table(path)
    values = [row | {column: how(row[column])} if name in (row["dialogue_id"], row.get("pair_id")) else row for row in table.to_pylist()]
    pq.write_table(pa.Table.from_pylist(values, schema=table.schema), path)


def test_diff_finds_what_went_came_back_or_changed_without_a_word(three: Releases, tmp_path: Path) -> None:
    gone = diff(three.first, silent(three.second, tmp_path / "gone", withdrawn=[])).unexplained
    assert "003-seed-t03 is missing from pairs, and no reason is given" in gone and "017-seed is missing, and no reason is given" in gone
    assert diff(three.second, three.first).unexplained == ("003-seed-t03 is no longer withdrawn", "017-seed is no longer withdrawn")
    # A word about one pair excuses no other of its dialogue.
    changed = silent(three.second, tmp_path / "changed")
    change(changed, "pairs", "empathetic", "003-seed-t05", str.upper)
    (said,) = diff(three.first, changed).unexplained
    assert said.startswith("003-seed-t05 was published with another text in pairs: withdraw it")
    # What is no text may differ, such as a toxicity that another machine scored.
    noise = silent(three.second, tmp_path / "noise")
    change(noise, "pairs", "empathetic_overlap", "003-seed-t05", lambda value: value + 1e-12)
    found = diff(three.second, noise)
    assert found.changed == ("003-seed",) and found.unexplained == ()
    crossed = silent(three.first, tmp_path / "crossed")
    change(crossed, "crossed", "reply_1", "003-seed", str.upper)
    assert any("003-seed-x1 was published with another text in crossed" in one for one in diff(three.first, crossed).unexplained)
    many = tuple(f"{number} is gone" for number in range(23))
    assert "ERROR: 3 more of these; --json lists all" in str(replace(found, unexplained=many))


def test_controls_that_come_later_are_no_change_of_what_was_published(three: Releases, tmp_path: Path) -> None:
    fewer = silent(three.second, tmp_path / "fewer")
    for split in SPLITS:
        path = file_of(fewer, "controls", split)
        pq.write_table(pq.read_table(path).slice(0, 0), path)
    assert diff(fewer, three.second).unexplained == () and diff(three.second, fewer).unexplained


def test_show_says_that_a_pair_was_withdrawn_and_nothing_else_of_it(three: Releases) -> None:
    shown = show(three.second, PAIR["pair_id"], InspectionInputs(scenarios=three.scenarios))
    assert shown.status == "left out" and shown.why == ("withdrawn on 2026-02-28 (harm): its apathetic text was too harsh",)
    for where in (three.third, three.folder / "b"):
        told = show(where, "017-seed-r1-t05/empathetic", InspectionInputs(scenarios=three.scenarios))
        assert told.name == "017-seed-r1-t05/empathetic" and told.texts
        with pytest.raises(InputError, match="017-seed-r1"):
            show(where, "017-seed-r2")
    (one,) = (one for one in rejected(three.second, inputs=InspectionInputs(scenarios=three.scenarios)) if PAIR["reason"] in one.detail)
    assert (one.dialogue_id, one.turn) == ("003-seed", 3)


def test_a_pair_of_a_seed_comes_back_corrected_only_after_an_error() -> None:
    forms = ["017-seed-r1", "017-seed-r2"]
    assert withdrawn_pairs([{"pair_id": "017-seed-t05", "kind": "harm"}], forms) == {"017-seed-t05", "017-seed-r2-t05"}
    assert withdrawn_pairs([{"pair_id": "017-seed-t05", "kind": "error"}], forms) == {"017-seed-t05"}
    # A drawn one is another dialogue, with other turns.
    assert withdrawn_pairs([{"pair_id": "017-00042-t05", "kind": "harm"}], ["017-00042-r1"]) == {"017-00042-t05"}


def test_crossed_items_of_a_corrected_seed_are_those_of_its_file(three: Releases, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BuildDefinitions, "catalogue", load_catalogue(three.scenarios))
    facts = read_manifest(three.third)
    assert list(content_faults(three.third, facts, load_text_checks(three.third, facts))) == []


def test_a_plan_is_asked_for_by_the_id_of_the_corrected_form(three: Releases, tmp_path: Path) -> None:
    model = {"kind": "openai", "model": "m", "endpoint": "e", "max_tokens": 100}
    drawn = {"plan": "drawn", "dialogues": 6, "surplus": 0, "controls": 0, "models": dict.fromkeys(("self_chat", "near", "far"), model)}
    for name, changes in (("017-seed", {}), ("003-00000", drawn)):
        config = load_configuration(demo_file(tmp_path, withdrawn=[WHOLE], corrected=[f"{name}-r1"], **changes))
        known = load_catalogue(three.scenarios)
        (plan,) = plans(config, known, {f"{name}-r1"})
        assert plan.dialogue_id == f"{name}-r1" and list(plans(config, known, {name})) == []
        assert plan_of(config, known, f"{name}-r1") == plan and plan_of(config, known, name) is None
        assert len(list(some_plans(config, known))) == 3


@given(st.integers(1, 60), st.integers(0, 10**6), st.integers(1, 99))
def test_a_corrected_dialogue_is_in_the_split_of_what_it_stands_for(number: int, index: int, revision: int) -> None:
    name = f"{number:03d}-{index:05d}"
    assert split_of(name) == split_of(f"{name}-r{revision}")
