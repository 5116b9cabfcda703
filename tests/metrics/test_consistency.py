"""A text has one score, whatever else is scored with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.lexical import RougeL
from empathy_eval.metrics.protocol import MeanMetric, Metric, Pairs, Segments
from empathy_eval.metrics.scoring import TRIED, ScoreCache, Scoring, consistent_statistics

from tests.metrics.test_scoring import Judge, pairs


class Lengths(MeanMetric):
    """Scores by length, which counts what it is asked."""

    name, signature, reads = "lengths", "v:1", ()

    def __init__(self) -> None:
        self.asked = 0

    def score_all(self, segments: Segments) -> list[float]:
        self.asked += len(segments.texts)
        return [float(len(text)) for text in segments.texts]


class Fitted(Lengths):
    """Standardises the scores of whatever it is given."""

    name = "fitted"

    def score_all(self, segments: Segments) -> list[float]:
        scores = np.array(super().score_all(segments))
        return list((scores - scores.mean()) / (scores.std() or 1.0))


class Rounding(Lengths):
    """Rounds a little otherwise in large batches."""

    def score_all(self, segments: Segments) -> list[float]:
        return [score + 1e-4 * len(segments.texts) / 100 for score in super().score_all(segments)]


class Remembering(MeanMetric):
    """Scores texts one by one, and the same one otherwise when it comes again."""

    name, signature = "remembering", "v:1"

    def __init__(self, *reads: str) -> None:
        self.reads, self.asked = reads, list[str]()

    def score(self, text: str, *read: object) -> float:
        self.asked.append(text)
        return float(self.asked.count(text))


def checked(metric: Metric, sets: Sequence[Pairs], scoring: Scoring | None = None) -> list[MetricFault | None]:
    scoring = scoring or Scoring()
    found = consistent_statistics([metric, RougeL()], sets, scoring)
    assert all(one["ROUGE-L"].rows and one["ROUGE-L"].fault is None for one in found)
    assert all(bool(one[metric.name].rows) == (one[metric.name].fault is None) for one in found)
    return [one[metric.name].fault for one in found]


@pytest.mark.parametrize("count", [2, 3, 30])
def test_a_metric_that_is_fitted_on_what_it_is_given_has_no_scores_and_a_fault_with_a_text_and_both_of_its_scores(count: int) -> None:
    faults = checked(Fitted(), [pairs(count)])
    assert faults[0] and not faults[0].texts and faults[0].where.startswith("017-00001-t")
    texts = pairs(count).variants
    every = np.array([len(text) for text in [*texts["near"], *texts["far"]]], dtype=float)
    row = int(faults[0].where.partition(",")[0][-2:])
    first = (len(texts["near"][row]) - every.mean()) / every.std()
    assert f"gave one text two scores, {first:.6f}, and " in faults[0].what and "beside other texts" in faults[0].what


def test_a_text_that_two_sets_share_is_compared_and_both_places_are_named() -> None:
    first = pairs(20)
    shared = Pairs(["017-00002-t01"], [first.references[3]], {"refused": [first.variants["far"][3]]}, [first.contexts[3]])
    (fault, same) = checked(Remembering("reference"), [first, shared])
    assert fault == same and fault and fault.where == "017-00001-t03, far"
    assert "gave one text two scores, 1.000000, and 2.000000 as 017-00002-t01, refused" in fault.what


def test_texts_are_the_same_only_if_all_that_is_read_is() -> None:
    first = pairs(20)
    other = Pairs(["017-00002-t01"], ["another reference"], {"refused": [first.variants["far"][3]]}, [first.contexts[3]])
    for reads in (("reference",), ("context",), ("reference", "context")):
        assert checked(Remembering(*reads), [first, other]) == [None, None], reads
    assert checked(Remembering(), [first, other])[0]


def test_rounding_is_passed_over_and_only_a_few_texts_are_asked_for_again() -> None:
    for metric in (Rounding(), Lengths()):
        assert checked(metric, [pairs(40), pairs(0)]) == [None, None]
        assert metric.asked == 80 + TRIED


def test_one_by_one_and_from_the_cache_nothing_is_asked_for_again(tmp_path: Path) -> None:
    judge, kept = Judge(), Lengths()
    kept.keep = True
    checked(judge, [pairs(10)])
    checked(kept, [pairs(10)], Scoring(ScoreCache(tmp_path / "scores.sqlite")))
    assert len(judge.asked) == kept.asked == 20


def test_a_metric_without_any_score_keeps_its_own_fault() -> None:
    def none(text: str) -> float:
        raise ValueError("no")

    (fault,) = checked(Judge(none), [pairs(5)])
    assert fault and "raised ValueError" in fault.what
