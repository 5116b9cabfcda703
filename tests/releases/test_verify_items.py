"""The score of every text: whatever is changed in it, ``verify`` names it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.prompts import load_prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.evaluation import measure as text_scores
from empathy_eval.evaluation.measure import ITEMS, SCORE, TextScores
from empathy_eval.evaluation.shortcuts.shortcuts import audit
from empathy_eval.generation.build import build
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.verify.report import item_faults
from empathy_eval.releases.verify.verify import verify
from empathy_eval.reports.report import measure_release, release_metrics

from tests.conftest import demo_file
from tests.releases.test_verify import change_rows, rehash

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def scores(light: Path) -> TextScores:
    manifest = read_manifest(light)
    scores = measure_release(light, manifest, release_metrics(manifest)[0]).scores
    assert scores
    return scores


@pytest.fixture
def told(light: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(light / "report" / ITEMS, tmp_path / ITEMS))


def with_column(path: Path, name: str, kind: Any = SCORE) -> None:
    table = pq.read_table(path)
    pq.write_table(table.append_column(name, pa.array([1] * len(table), kind)), path)


def test_every_text_has_the_margin_of_words_alone_between_the_two_of_its_pair(light: Path) -> None:
    margins = audit(light).word_margins
    rows = pq.read_table(light / "report" / ITEMS).to_pylist()
    assert {one["pair_id"]: one["word_margin"] for one in rows} == margins and None not in margins.values()
    assert all(one["word_margin"] == margins[one["pair_id"]] for one in rows)


@pytest.mark.e2e
def test_where_there_is_one_dialogue_no_margin_is_known(world: Path, tmp_path: Path) -> None:
    for path in world.rglob("*.yaml"):
        if path.name[:3] in ("003", "007"):
            path.unlink()
    config = load_configuration(demo_file(tmp_path, report={"metrics": ["length"], "bootstrap": 10}))
    build(Recipe(config, load_catalogue(world), load_prompts()), tmp_path / "b")
    release(tmp_path / "b", tmp_path / "r", "0.1.0")
    assert set(pq.read_table(tmp_path / "r" / "report" / ITEMS).column("word_margin").to_pylist()) == {None}
    assert verify(tmp_path / "r") == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda rows: rows[7].update({"BLEU-4": 0.5}), 'row 7: "003-seed-t03", empathetic: BLEU-4 is 0.5, but its texts give 0.'),
        (lambda rows: rows[5].update({"BLEU-4": 0.5}), 'row 5: "003-seed-t03", reference: BLEU-4 is 0.5, but its texts give None'),
        (lambda rows: [row.update({"length": None}) for row in rows[3:6]], "length is None, but its texts give "),
        (lambda rows: rows[7].update(word_margin=2.5), 'row 7: "003-seed-t03", empathetic: word_margin is 2.5, but its texts give '),
        (lambda rows: rows[7].update(word_margin=None), "word_margin is None, but its texts give "),
        (lambda rows: rows[7].update(word_margin=float("nan")), "word_margin is nan, but its texts give "),
        (lambda rows: rows[2].update(variant="apathetic"), "row 2: belongs to another text than the data has in this row"),
        (lambda rows: rows.insert(4, rows.pop(5)), "row 4: belongs to another text than the data has in this row"),
        (lambda rows: rows.pop(), "row 99: belongs to another text than the data has in this row"),
        (lambda rows: rows.append(rows[0]), "row 100: belongs to another text than the data has in this row"),
        (lambda rows: rows.clear(), "row 0: belongs to another text than the data has in this row"),
        (lambda rows: rows[9].update(pair_id=None), "row 9: belongs to another text than the data has in this row"),
    ],
)
def test_a_change_is_named_with_its_text(change: Callable[[Rows], object], what: str, told: Path, scores: TextScores) -> None:
    change_rows(told, change)
    (fault,) = item_faults(told, scores)
    assert what in f"{fault.where.partition(': ')[2]}: {fault.what}" and fault.where.startswith(str(told))
    assert ("and 2 more values of this column differ" in fault.what) == ("length is None, but its texts" in what)


def test_columns_that_no_metric_gives_are_named_but_those_of_metrics_that_were_not_run(told: Path, scores: TextScores) -> None:
    with_column(told, "mine")
    assert [one.what for one in item_faults(told, scores)] == ['does not have the columns of the metrics: "mine"']
    assert list(item_faults(told, scores, ["mine"])) == []
    table = pq.read_table(told)
    pq.write_table(table.drop_columns(["length"]), told)
    assert [one.what for one in item_faults(told, scores, ["mine"])] == ['does not have the columns of the metrics: "length"']
    pq.write_table(table.drop_columns(["length", "mine"]).append_column("length", table.column("length").cast(pa.float64())), told)
    assert "their types or order" in next(item_faults(told, scores)).what


def test_a_file_that_is_no_parquet_or_too_large_a_group_is_told(told: Path, scores: TextScores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("empathy_eval.base.tabular.MOST_ROWS", 3)
    assert "group 0 has 100 rows" in next(item_faults(told, scores)).what
    told.write_bytes(b"PAR1")
    assert "cannot be read" in next(item_faults(told, scores)).what
    told.unlink()
    assert "is not there" in next(item_faults(told, scores)).what


def test_rows_of_later_groups_are_counted_on(told: Path, scores: TextScores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_scores, "GROUP", 4)
    text_scores.write_text_scores(told, scores)
    assert list(item_faults(told, scores)) == [] and pq.read_metadata(told).num_row_groups == 5
    rows = pq.read_table(told).to_pylist()
    rows[45]["length"] += 1
    pq.write_table(pa.Table.from_pylist(rows, schema=scores.schema), told, row_group_size=20)
    assert [one.where.rpartition(": ")[2] for one in item_faults(told, scores)] == ["row 45"]


def test_a_score_may_differ_as_far_as_its_table_may(told: Path, scores: TextScores) -> None:
    change_rows(told, lambda rows: rows[1].update({"length": rows[1]["length"] + 1e-6}))
    assert list(item_faults(told, scores)) == []
    change_rows(told, lambda rows: rows[1].update({"BLEU-4": rows[1]["BLEU-4"] + 1e-5}))
    assert len(list(item_faults(told, scores))) == 1


@pytest.mark.e2e
def test_verify_recomputes_every_score_unless_fast(light: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(light, tmp_path / "r"))
    change_rows(copy / "report" / ITEMS, lambda rows: rows[0].update(length=5.0))
    rehash(copy)
    assert verify(copy, fast=True) == []
    (fault,) = verify(copy)
    assert (
        fault.where == f"{copy}/report/{ITEMS}: row 0" and '"003-seed-t01", reference: length is 5.0, but its texts give 43.0' in fault.what
    )
    (copy / "report" / ITEMS).unlink()
    assert f"{ITEMS}: is missing" in str(verify(copy)[0])
