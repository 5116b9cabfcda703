"""Comparing releases, and withdrawing a dialogue from one."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.contrasts import RAW
from empathy_eval.design.dataset import read_tables, split_of
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.build import build
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.compare.diff import ACCURACY, diff
from empathy_eval.releases.verify.verify import verify

from tests.conftest import demo_file
from tests.doubles import made_once

WITHDRAWN = [{"dialogue_id": "007-seed", "kind": "harm", "reason": "an auditor found a real name in it", "date": "2026-02-01"}]


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory, catalogue: Catalogue, prompts: Prompts) -> tuple[Path, Path]:
    """A release, and a later one of the same build folder with one dialogue withdrawn."""

    def make(folder: Path) -> None:
        for version, changes in (("0.1.0", {}), ("0.2.0", {"withdrawn": WITHDRAWN})):
            config = load_configuration(demo_file(folder, report={"metrics": ["length"], "bootstrap": 10}, **changes))
            build(Recipe(config, catalogue, prompts), folder / "b")
            release(folder / "b", folder / version, version)

    folder = made_once.copied(tmp_path_factory, "withdrawn", make)[0]
    return folder / "0.1.0", folder / "0.2.0"


@pytest.mark.e2e
def test_a_withdrawn_dialogue_is_left_out_and_named_everywhere(releases: tuple[Path, Path]) -> None:
    later = releases[1]
    assert json.loads((later / "manifest.json").read_text())["withdrawn"] == WITHDRAWN
    for name in ("README.md", "CHANGELOG.md"):
        assert "007-seed" in (later / name).read_text() and "a real name" in (later / name).read_text()
    assert verify(later) == []
    found = diff(*releases)
    assert found.removed == found.withdrawn == ("007-seed",)
    assert not found.added and not found.changed and not found.moved


def test_the_difference_of_a_release_to_itself_is_nothing(releases: tuple[Path, Path]) -> None:
    found = diff(releases[0], releases[0])
    assert not (found.added or found.removed or found.changed or found.moved or found.columns or found.made_by)
    assert all(figure.before == figure.after and figure.same_settings for figure in found.figures)


def test_figures_are_compared_at_equal_closeness_first_and_what_the_checks_force_is_marked(light: Path) -> None:
    found = diff(light, light)
    right = [one.metric for one in found.figures if one.figure == ACCURACY]
    released = [one for one in found.figures if one.figure == RAW]
    assert [one.metric for one in found.figures] == [*right, *(one.metric for one in released)] and "BLEU-4" in right
    # A length has no better direction, and so no accuracy.
    assert "length" not in right and "length" in [one.metric for one in released]
    assert {one.metric for one in released if one.forced} >= {"BLEU-4"} and not any(
        one.forced for one in released if one.metric == "length"
    )
    tables = read_tables(light)["controls"]
    (row,) = [one for one in tables if one["metric"] == "BLEU-4"]
    (figure,) = [one for one in found.figures if (one.metric, one.figure) == ("BLEU-4", ACCURACY)]
    assert figure.before == figure.after == row["differences"]["stance"]["accuracy"] and figure.same_settings
    said = str(found)
    assert said.index(ACCURACY) < said.index(RAW) and "(forced by the checks)" in said.partition(RAW)[2]


@pytest.mark.e2e
def test_added_and_changed_dialogues_and_settings_are_named(
    releases: tuple[Path, Path], tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    seed = catalogue[17].seed
    assert seed is not None
    turns = (dataclasses.replace(seed.turns[0], text=seed.turns[0].text + " Sorry."), *seed.turns[1:])
    edited = dataclasses.replace(catalogue[17], seed=dataclasses.replace(seed, turns=turns))
    others = tuple(edited if one.number == 17 else one for one in catalogue.scenarios)
    new = dataclasses.replace(catalogue, scenarios=others, seed_hash="s1-other")
    config = load_configuration(demo_file(tmp_path, report={"metrics": ["length"], "bootstrap": 20}))
    build(Recipe(config, new, prompts), tmp_path / "b3")
    release(tmp_path / "b3", tmp_path / "0.3.0", "0.3.0")
    found = diff(releases[1], tmp_path / "0.3.0")
    # the bank's name changes with the seeds, and so does the model of every row
    assert found.added == ("007-seed",) and "017-seed" in found.changed
    assert {"configuration.report.bootstrap", "seeds"} <= set(found.made_by)
    assert "added           1  007-seed" in str(found) and "length" in str(found)


def test_an_item_that_moved_is_an_error(releases: tuple[Path, Path], tmp_path: Path) -> None:
    moved = Path(shutil.copytree(releases[0], tmp_path / "moved"))
    split = split_of("017-seed")
    other = "test" if split != "test" else "train"
    for config in ("dialogues", "pairs", "controls", "preferences"):
        folder = moved / "data" / config
        (folder / f"{split}.parquet").rename(folder / "swap")
        (folder / f"{other}.parquet").rename(folder / f"{split}.parquet")
        (folder / "swap").rename(folder / f"{other}.parquet")
    found = diff(releases[0], moved)
    assert "017-seed" in found.moved and "ERROR: moved to another split" in str(found)


@pytest.mark.parametrize("name", ["manifest.json", "report/tables.json", "data/controls/train.parquet", "data/pairs/test.parquet"])
@pytest.mark.parametrize("content", [None, b'{"cut'])
def test_a_damaged_release_is_named(name: str, content: bytes | None, releases: tuple[Path, Path], tmp_path: Path) -> None:
    damaged = Path(shutil.copytree(releases[0], tmp_path / "damaged"))
    (damaged / name).unlink()
    if content:
        (damaged / name).write_bytes(content)
    with pytest.raises(InputError, match=Path(name).name):
        diff(damaged, releases[0])


def test_a_folder_that_is_no_release_is_refused(releases: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a release"):
        diff(releases[0], tmp_path)


def test_a_column_that_an_older_release_has_not_changes_no_dialogue(light: Path, tmp_path: Path) -> None:
    older = Path(shutil.copytree(light, tmp_path / "older"))
    for path in [*older.glob("data/pairs/*.parquet"), *older.glob("data/controls/*.parquet")]:
        pq.write_table(pq.read_table(path).drop_columns(["apathetic_manner", "empathetic_device"]), path)
    manifest = json.loads((older / "manifest.json").read_text())
    manifest["scenario_files"] = {**manifest["scenario_files"], "personas.yaml": "another"}
    (older / "manifest.json").write_text(json.dumps(manifest))
    found = diff(older, light)
    assert found.changed == () and found.columns["pairs"] == ["+apathetic_manner", "+empathetic_device"]
    assert any("personas.yaml" in name for name in found.made_by)
