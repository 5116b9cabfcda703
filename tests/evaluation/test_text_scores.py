"""The score of every text of a release, as a file of its report."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import COLUMNS, files_of, read_manifest
from empathy_eval.evaluation import measure as module
from empathy_eval.evaluation.corpus.pairs import Corpus, read_corpus
from empathy_eval.evaluation.measure import ITEMS, TEXTS
from empathy_eval.metrics.lexical import Length, Vader
from empathy_eval.metrics.protocol import MeanMetric, Segments
from empathy_eval.metrics.registry import find
from empathy_eval.releases.assemble.write import Released
from empathy_eval.reports.report import ReportMetrics, measure_release, report


class Capitals(MeanMetric):
    """Capital letters, of texts that have no question mark."""

    name, signature, reads = "capitals", "version:1", ()

    def score(self, text: str, *read: Any) -> float:
        if "?" in text:
            raise ValueError("no questions")
        return sum(sign.isupper() for sign in text)


def texts_of(folder: Path) -> dict[tuple[str, str], tuple[str, str]]:
    """(text, reference) of every text in the order of the data."""
    pairs, controls = read_corpus(folder, "pairs", PAIR_VARIANTS), read_corpus(folder, "controls", CELLS)
    place = {pair: row for row, pair in enumerate(controls.pair_ids)}
    found = {}
    for row, pair in enumerate(pairs.pair_ids):
        found[pair, "reference"] = pairs.references[row], pairs.references[row]
        found |= {(pair, name): (pairs.variants[name][row], pairs.references[row]) for name in PAIR_VARIANTS}
        if pair in place:
            found |= {(pair, name): (controls.variants[name][place[pair]], pairs.references[row]) for name in CONTROLS}
    return found


def measured(folder: Path, *metrics: Any) -> Any:
    return measure_release(folder, read_manifest(folder), ReportMetrics(metrics, ()))


def rows_of(scores: Any) -> list[dict[str, Any]]:
    return [row for group in scores.groups() for row in group.to_pylist()]


def few_controls(folder: Path, copy: Path, keep: Callable[[str], bool]) -> Path:
    """A copy of a release of whose controls only some are left."""
    shutil.copytree(folder, copy)
    for path in files_of(copy, "controls"):
        rows = [row for row in pq.read_table(path).to_pylist() if keep(row["pair_id"])]
        pq.write_table(pa.Table.from_pylist(rows, schema=COLUMNS["controls"]), path)
    return copy


def test_every_text_has_a_row_in_the_order_of_the_data_with_what_each_metric_gives_it_alone(released: tuple[Path, Released]) -> None:
    folder, made = released
    table = pq.read_table(folder / "report" / ITEMS)
    texts = texts_of(folder)
    assert list(zip(table.column("pair_id").to_pylist(), table.column("variant").to_pylist(), strict=True)) == list(texts)
    alone = [row["metric"] for row in made.report.to_json()["inversion"] if row["interval_signature"] is not None]
    assert table.schema.names == ["pair_id", "variant", "word_margin", *alone] and len(alone) > 6
    for metric in find(["bleu", "chrf", "rouge-l", "vader", "length"], {}).metrics:
        found = metric.scores(metric.statistics(Segments(*(list(one) for one in zip(*texts.values(), strict=True)))))
        told = table.column(metric.name).to_pylist()
        for (_, variant), one, other in zip(texts, told, found.tolist(), strict=True):
            if variant == "reference" and "reference" in metric.reads:
                assert one is None
            else:
                assert one == pytest.approx(other, abs=1e-6, rel=1e-6)


@pytest.mark.e2e
def test_pairs_without_controls_have_three_texts_and_groups_of_rows_change_nothing(
    light: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = few_controls(light, tmp_path / "some", lambda pair: pair.endswith(("1", "7")))
    scores = measured(copy, *find(["bleu", "length"], {}).metrics).scores
    whole = rows_of(scores)
    assert [(row["pair_id"], row["variant"]) for row in whole] == list(texts_of(copy))
    assert set(Counter(row["pair_id"] for row in whole).values()) == {3, 5}
    monkeypatch.setattr(module, "GROUP", 4)
    assert [len(group) <= 4 * len(TEXTS) for group in scores.groups()] == [True] * math.ceil(len(scores.pair_ids) / 4)
    assert rows_of(scores) == whole


def test_a_release_without_controls_has_scores_too(light: Path, tmp_path: Path) -> None:
    copy = few_controls(light, tmp_path / "none", lambda pair: False)
    rows = rows_of(measured(copy, *find(["bleu", "length"], {}).metrics).scores)
    assert {row["variant"] for row in rows} == {"reference", *PAIR_VARIANTS} and all(row["length"] for row in rows)


def test_a_text_that_a_metric_fails_on_has_no_score_and_the_others_have(light: Path) -> None:
    found = measured(light, Capitals(), Length())
    for row, (text, _) in zip(rows_of(found.scores), texts_of(light).values(), strict=True):
        assert row["capitals"] == (None if "?" in text else sum(sign.isupper() for sign in text))
    (fault,) = found.measured.faults
    assert fault.metric == "capitals" and "reference" not in fault.where


def test_no_reference_is_scored_twice(light: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, score = list[str](), Vader.score_all

    def heard(self: Vader, segments: Segments) -> Any:
        seen.extend(segments.texts)
        return score(self, segments)

    monkeypatch.setattr(Vader, "score_all", heard)
    measured(light, Vader())
    references = Counter(text for (_, variant), (text, _) in texts_of(light).items() if variant == "reference")
    assert references and {text: seen.count(text) for text in references} == references


@pytest.mark.e2e
def test_the_verb_report_writes_them_and_the_bytes_are_the_same_again(light: Path, tmp_path: Path) -> None:
    report(light, tmp_path / "report")
    assert (tmp_path / "report" / ITEMS).read_bytes() == (light / "report" / ITEMS).read_bytes()


def test_scores_of_a_large_release_take_little_memory() -> None:
    many = 20_000
    ids, texts = [str(number) for number in range(many)], ["x"] * many
    pairs = Corpus(ids, ids, [1] * many, texts, dict.fromkeys(PAIR_VARIANTS, texts))
    none = Corpus([], [], [], [], {name: [] for name in CELLS})
    statistics = {name: np.ones((many, 2)) for name in PAIR_VARIANTS}
    found = module.text_scores({}, pairs, none, [(Length(), statistics, {})])
    assert sum(one.nbytes for one in found.scores.values()) == many * len(TEXTS) * 4
    assert [len(group) for group in found.groups()] == [30_000, 30_000]
