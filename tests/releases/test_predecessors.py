"""A release names those before it, and is never written over another one unasked."""

from __future__ import annotations

import shutil
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
from empathy_eval.releases.assemble.manifest import (
    manifest_text,
    read_predecessors,
    refuse_other_release,
    seal_manifest,
    unordered_predecessors,
)
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.verify.verify import verify

from tests.conftest import demo_file
from tests.doubles import made_once

NAME = "empathy-eval-demo"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue, prompts: Prompts) -> Path:
    """A build, and three releases of it, each after the one before."""

    def make(folder: Path) -> None:
        config = load_configuration(demo_file(folder, report={"metrics": ["length"], "bootstrap": 10}))
        build(Recipe(config, catalogue, prompts), folder / "b")
        before = None
        for version, date in (("0.1.0", "2026-01-31"), ("0.2.0", None), ("0.10.0", "2026-03-31")):
            release(folder / "b", folder / version, version, date=date, previous=before)
            before = folder / version

    return made_once.copied(tmp_path_factory, "predecessors", make)[0]


def changed(folder: Path, copy: Path, **facts: Any) -> Path:
    shutil.copytree(folder, copy)
    (copy / "manifest.json").write_text(manifest_text(seal_manifest(read_manifest(copy) | facts)))
    return copy


def test_manifest_and_changelog_name_all_releases_before_the_latest_first(made: Path) -> None:
    first, second, third = (read_manifest(made / one) for one in ("0.1.0", "0.2.0", "0.10.0"))
    assert "previous" not in first and [one["version"] for one in second["previous"]] == ["0.1.0"]
    dialogues, pairs = (sum(first["counts"][name].values()) for name in ("dialogues", "pairs"))
    told = {"version": "0.1.0", "date": "2026-01-31", "seal": first["seal"], "dialogues": dialogues, "pairs": pairs}
    assert third["previous"][1] == told and third["previous"][0]["seal"] == second["seal"]
    lines = (made / "0.10.0" / "CHANGELOG.md").read_text().splitlines()
    assert [one for one in lines if one.startswith("## ")] == ["## 0.10.0 (2026-03-31)", "## 0.2.0", "## 0.1.0 (2026-01-31)"]
    assert f"- Seal of its manifest: `{first['seal']}`" in lines and f"- {dialogues} dialogues, {pairs} pairs." in lines


@pytest.mark.e2e
def test_each_is_what_it_claims_and_an_order_that_is_none_is_told(made: Path, tmp_path: Path) -> None:
    for one in ("0.2.0", "0.10.0"):
        assert verify(made / one, fast=True) == []
    wrong = changed(made / "0.10.0", tmp_path / "wrong", previous=read_manifest(made / "0.10.0")["previous"][::-1])
    assert "previous[1]: says that 0.2.0 came before 0.1.0" in "\n".join(map(str, verify(wrong, fast=True)))
    odd = changed(made / "0.2.0", tmp_path / "odd", previous=[{"version": "0.1.0", "date": None, "seal": "?", "dialogues": 1, "pairs": 1}])
    assert "previous[0]: seal" in "\n".join(map(str, verify(odd, fast=True)))
    huge = {"version": "1.0.0", "previous": [{"version": f"0.{'9' * 5000}.0"}]}
    assert list(unordered_predecessors(huge)) == []


def test_a_predecessor_of_another_name_or_a_later_version_or_that_was_changed_is_refused(made: Path, tmp_path: Path) -> None:
    for version in ("0.2.0", "0.1.9", "0.0.1"):
        with pytest.raises(InputError, match=rf"is {NAME} 0\.2\.0, but the new version is {version}") as error:
            read_predecessors(made / "0.2.0", NAME, version)
        assert error.value.exit_code == 2
    with pytest.raises(InputError, match=rf"is {NAME} 0\.2\.0, but the new release is empathy-eval-mine"):
        read_predecessors(made / "0.2.0", "empathy-eval-mine", "1.0.0")
    silent = Path(shutil.copytree(made / "0.2.0", tmp_path / "silent"))
    (silent / "manifest.json").write_text(manifest_text({**read_manifest(silent), "date": "2020-01-01"}))
    with pytest.raises(InputError, match="its seal does not match"):
        read_predecessors(silent, NAME, "1.0.0")
    with pytest.raises(InputError, match="is not a release"):
        read_predecessors(tmp_path, NAME, "1.0.0")


@pytest.mark.e2e
def test_a_release_of_another_version_stays_unless_it_is_to_be_replaced(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = Path(shutil.copytree(made / "0.1.0", tmp_path / "r"))
    before = (out / "manifest.json").read_bytes()
    command = ["release", str(made / "b"), "--out", str(out), "--version", "0.2.0"]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert f"{out}: holds {NAME} 0.1.0, but the new release is {NAME} 0.2.0" in said and "--replace" in said
    assert (out / "manifest.json").read_bytes() == before
    release(made / "b", out, "0.1.0")
    assert main([*command, "--replace", "--previous", str(out)]) == 0
    manifest = read_manifest(out)
    assert manifest["version"] == "0.2.0" and [one["version"] for one in manifest["previous"]] == ["0.1.0"]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"name": "x"}'])
def test_what_is_no_manifest_is_not_overwritten_unasked(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(InputError, match="overwrite it with --replace"):
        refuse_other_release(tmp_path, NAME, "1.0.0", replace=False)
    refuse_other_release(tmp_path, NAME, "1.0.0", replace=True)


def test_another_name_is_another_release(made: Path) -> None:
    refuse_other_release(made / "0.1.0", NAME, "0.1.0", replace=False)
    with pytest.raises(InputError, match=rf"holds {NAME} 0\.1\.0, but the new release is empathy-eval-mine 0\.1\.0"):
        refuse_other_release(made / "0.1.0", "empathy-eval-mine", "0.1.0", replace=False)
