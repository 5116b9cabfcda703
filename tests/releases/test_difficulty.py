"""The column difficulty: filled in at release, held against its recomputation, and no part of what a dialogue says."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.dataset import COLUMNS, DIFFICULTY, cells, files_of
from empathy_eval.design.prompts import load_prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.evaluation.report import report
from empathy_eval.evaluation.score import score
from empathy_eval.evaluation.shortcuts import audit
from empathy_eval.generation.build import build
from empathy_eval.raters.review.export import export_review
from empathy_eval.raters.review.sample import Design
from empathy_eval.releases import difficulty
from empathy_eval.releases.diff import diff
from empathy_eval.releases.verify import verify
from empathy_eval.releases.write import release

from tests.conftest import demo_file
from tests.releases.test_verify import rehash

CONFIGS = ("pairs", "controls")


def told(folder: Path, config: str) -> dict[str, Any]:
    return dict(zip(cells(folder, config, "pair_id"), cells(folder, config, DIFFICULTY), strict=True))


def rewritten(folder: Path, copy: Path, change: Callable[[Any], Any]) -> Path:
    """A copy of a release whose pairs and controls are other tables."""
    shutil.copytree(folder, copy)
    for config in CONFIGS:
        for path in files_of(copy, config):
            pq.write_table(change(pq.read_table(path)), path)
    rehash(copy)
    return copy


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path.read_bytes()


def test_pairs_and_controls_hold_the_margins_of_words_alone(light: Path) -> None:
    found = audit(light)
    assert told(light, "pairs") == found.difficulty and None not in found.difficulty.values()
    assert told(light, "controls").items() <= found.difficulty.items() and told(light, "controls")
    assert {config: [one for one in COLUMNS if DIFFICULTY in COLUMNS[one].names] for config in ["all"]} == {"all": list(CONFIGS)}


def test_groups_of_rows_are_filled_one_by_one_and_the_bytes_are_the_same_again(light: Path, tmp_path: Path) -> None:
    before = dict(files(light))
    copy = Path(shutil.copytree(light, tmp_path / "r"))
    difficulty.fill(copy, {})
    assert set(told(copy, "pairs").values()) == {None}
    difficulty.fill(copy, told(light, "pairs"))
    assert dict(files(copy)) == before


def test_verify_names_each_row_that_says_otherwise(light: Path, tmp_path: Path) -> None:
    names = list(told(light, "pairs"))
    copy = Path(shutil.copytree(light, tmp_path / "r"))
    values = told(light, "pairs") | {names[1]: 2.5, names[-1]: None}
    difficulty.fill(copy, values)
    rehash(copy)
    assert verify(copy, fast=True) == []
    found = [str(one) for one in verify(copy)]
    pairs = [one for one in found if "/pairs/" in one]
    assert len(pairs) == 2 and f'"{names[1]}": difficulty is 2.5, its texts give ' in pairs[0] and "row 1:" in pairs[0]
    assert f'"{names[-1]}": difficulty is None' in pairs[1] and all(DIFFICULTY in one for one in found)


def test_a_difficulty_that_is_no_number_is_a_fault(light: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(light, tmp_path / "r"))
    difficulty.fill(copy, dict.fromkeys(told(light, "pairs"), float("nan")))
    rehash(copy)
    assert verify(copy)


def test_pairs_and_controls_that_differ_are_a_fault_without_recomputation(light: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(light, tmp_path / "r"))
    before = {path: path.read_bytes() for path in files_of(copy, "pairs")}
    difficulty.fill(copy, {})
    for path, content in before.items():
        path.write_bytes(content)
    rehash(copy)
    assert any("is not the pair of that id" in one.what for one in verify(copy, fast=True))


def test_another_difficulty_is_no_change_of_a_dialogue_and_nothing_of_a_review(light: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(light, tmp_path / "r"))
    difficulty.fill(copy, {})
    found = diff(light, copy)
    assert found.changed == () == found.added and found.columns == {}
    for folder, name in ((light, "a"), (copy, "b")):
        export_review(folder, tmp_path / name, Design(pairs=5, dialogues=2, raters=15, cells=2))
    assert dict(files(tmp_path / "a")) == dict(files(tmp_path / "b"))


def test_a_release_of_before_is_still_read_by_all_but_verify(light: Path, tmp_path: Path) -> None:
    old = rewritten(light, tmp_path / "old", lambda table: table.drop_columns([DIFFICULTY]))
    assert diff(old, light).changed == () and diff(old, light).columns == {config: ["+difficulty"] for config in CONFIGS}
    assert score(old, ["length"]).inversion == score(light, ["length"]).inversion
    assert audit(old) == report(old, tmp_path / "report").measured.audit == audit(light)
    assert export_review(old, tmp_path / "review", Design(pairs=5, dialogues=2, raters=9)).loads
    assert '"difficulty"' in str(verify(old)[0])


def test_where_there_is_one_dialogue_no_difficulty_is_known(world: Path, tmp_path: Path) -> None:
    for path in world.rglob("*.yaml"):
        if path.name[:3] in ("003", "007"):
            path.unlink()
    config = load_configuration(demo_file(tmp_path, report={"metrics": ["length"], "bootstrap": 10}))
    build(Recipe(config, load_catalogue(world), load_prompts()), tmp_path / "b")
    release(tmp_path / "b", tmp_path / "r", "0.1.0")
    assert set(told(tmp_path / "r", "pairs").values()) == {None} and verify(tmp_path / "r") == []


@pytest.mark.parametrize("config", CONFIGS)
def test_a_null_is_refused_in_every_other_column(config: str, light: Path, tmp_path: Path) -> None:
    def emptied(table: Any) -> Any:
        place = table.schema.get_field_index("reference")
        return table.set_column(place, table.schema.field(place), pa.array([None] * len(table), pa.string()))

    copy = rewritten(light, tmp_path / "r", emptied)
    with pytest.raises(Exception, match='the column "reference" does not hold what the data contract says'):
        list(cells(copy, config, "reference"))
