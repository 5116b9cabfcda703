"""Scoring many pairs: order, processes, faults that name the pair, and scores kept by content."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.metrics import protocol
from empathy_eval.metrics.faults import MetricFault, MetricResult
from empathy_eval.metrics.lexical import RougeL
from empathy_eval.metrics.ngrams import Bleu
from empathy_eval.metrics.protocol import Array, MeanMetric, Metric, Pairs, Segments
from empathy_eval.metrics.scoring import ScoreCache, Scoring, keys_of, statistics_of, user_cache
from hypothesis import given
from hypothesis import strategies as st


class Judge(MeanMetric):
    """A costly metric that counts what it is asked."""

    name, signature, reads, keep = "judge", "v:1", ("reference", "context"), True

    def __init__(self, score: Callable[[str], Any] = len) -> None:
        self.asked: list[str] = []
        self._score = score

    def score(self, text: str, *read: Any) -> float:
        self.asked.append(text)
        given: float = self._score(text)
        return given


def pairs(count: int) -> Pairs:
    numbers = range(count)
    variants = {name: [f"{name} {'very ' * (number % 5)}{number}" for number in numbers] for name in ("near", "far")}
    contexts = [[{"role": "seeker", "text": f"turn {number}"}] for number in numbers]
    return Pairs([f"017-00001-t{number:02d}" for number in numbers], [f"a reference {number}" for number in numbers], variants, contexts)


def of(found: MetricResult) -> dict[str, list[list[float]]]:
    assert not found.fault, found
    return {name: rows.tolist() for name, rows in found.rows.items()}


def fault_of(found: MetricResult) -> MetricFault:
    assert found.fault
    return found.fault


@given(st.integers(0, 40), st.integers(1, 9))
def test_rows_come_back_in_order_by_variant_whatever_the_chunks(count: int, chunk: int) -> None:
    table = pairs(count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "CHUNK", chunk)
        found = statistics_of([RougeL()], table)
    for name, texts in table.variants.items():
        assert of(found["ROUGE-L"])[name] == RougeL().statistics(Segments(texts, table.references)).tolist()


@pytest.mark.e2e
def test_two_processes_give_the_values_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "CHUNK", 5)
    metrics: list[Metric] = [Bleu(), RougeL()]
    table = pairs(23)
    done: list[int] = []
    one, two = (statistics_of(metrics, table, Scoring(progress=done.append), processes=count) for count in (1, 2))
    assert [of(one[metric.name]) for metric in metrics] == [of(two[metric.name]) for metric in metrics]
    assert sum(done) == 2 * 2 * 2 * 23


def test_a_metric_that_cannot_be_sent_to_a_process_is_scored_in_this_one() -> None:
    judge = Judge(lambda text: 1.0)
    judge.share = True
    assert of(statistics_of([judge, RougeL()], pairs(3), processes=2)["judge"])["far"] == [[1.0, 1.0]] * 3


def raising(text: str) -> float:
    if text.endswith(" 13"):
        raise KeyError("thirteen")
    return 1.0


@pytest.mark.parametrize(
    ("score", "what"),
    [
        (raising, "raised KeyError: \"'thirteen'\""),
        (lambda text: float("nan") if text.endswith(" 13") else 1.0, "gave nan, which is no number"),
        (lambda text: float("-inf") if text.endswith(" 13") else 1.0, "gave -inf, which is no number"),
        (lambda text: "good" if text.endswith(" 13") else 1.0, "score returned 'good'; return a number"),
        (lambda text: None if text.endswith(" 13") else 1.0, "score returned None; return a number"),
    ],
)
def test_a_fault_names_the_metric_and_the_pair_and_the_others_are_kept(score: Callable[[str], Any], what: str) -> None:
    found = statistics_of([Judge(score), RougeL()], pairs(20))
    fault = fault_of(found["judge"])
    assert str(fault).startswith("metric judge: 2 of 40 texts, first 017-00001-t13, near: ") and what in fault.what
    assert of(found["ROUGE-L"])
    for name, rows in found["judge"].rows.items():
        assert np.isnan(rows[13]).all() and rows[:13, 0].tolist() + rows[14:, 0].tolist() == [1.0] * 19, name


def test_too_few_or_too_many_values_are_a_fault() -> None:
    class Few(Judge):
        def score_all(self, segments: Segments) -> list[float]:
            return [1.0 for text in segments.texts if not text.endswith(" 3")]

    class Many(Judge):
        def score_all(self, segments: Segments) -> list[float]:
            return [1.0] * (len(segments.texts) + 1)

    few, many = (fault_of(statistics_of([metric], pairs(5))["judge"]) for metric in (Few(), Many()))
    rule = "return one number for each text, in their order"
    assert str(few).startswith(f"metric judge: 017-00001-t03, near: score_all returned 0 numbers for 1 text; {rule}")
    assert str(many).startswith(f"metric judge: 017-00001-t00, near: score_all returned 2 numbers for 1 text; {rule}")


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (1.0, "score_all returned 1.0 for 1 text"),
        ([[1.0, 2.0]], "score_all returned an array of shape (1, 2) for 1 text"),
        (["good"], "score_all returned ['good']; return numbers"),
        (None, "score_all returned None for 1 text"),
    ],
)
def test_what_score_all_returned_is_reported_in_its_own_words(given: Any, what: str) -> None:
    class Odd(Judge):
        def score_all(self, segments: Segments) -> Any:
            return given

    assert what in fault_of(statistics_of([Odd()], pairs(2))["judge"]).what


def test_statistics_of_another_height_are_reported_with_what_is_expected() -> None:
    class Flat(Judge):
        def statistics(self, segments: Segments) -> Array:
            return np.ones((1, 2))

    fault = fault_of(statistics_of([Flat()], pairs(2))["judge"])
    assert fault.what == "statistics returned an array of shape (1, 2) for 2 texts; return one row of numbers for each text"


def test_a_fault_has_the_place_of_what_was_raised_and_its_whole_traceback() -> None:
    fault = fault_of(statistics_of([Judge(raising)], pairs(20))["judge"])
    assert re.search(r"KeyError: \"'thirteen'\" \(tests/metrics/test_scoring.py:[0-9]+, in raising\)$", fault.what)
    assert fault.traceback.startswith("Traceback") and "in raising" in fault.traceback


def test_rows_of_another_width_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    class Widening(Judge):
        def statistics(self, segments: Segments) -> Array:
            return np.ones((len(segments.texts), len(segments.texts)))

        def aggregate(self, sums: Array) -> Array:
            return sums[:, 0]

        def scores(self, statistics: Array) -> Array:
            return statistics[:, 0]

    monkeypatch.setattr(protocol, "CHUNK", 2)
    assert "all pairs: statistics returned rows of 2 numbers after rows of 4; return rows of one width" in str(
        fault_of(statistics_of([Widening()], pairs(3))["judge"])
    )
    assert of(statistics_of([Widening()], pairs(2))["judge"])["far"] == [[1.0] * 4] * 2


def test_an_aggregation_that_fails_is_a_fault_too() -> None:
    class Sums(Judge):
        def aggregate(self, sums: Array) -> Array:
            return sums

    assert "aggregates two equal rows of sums to [[32.0, 4.0], [32.0, 4.0]]" in str(fault_of(statistics_of([Sums()], pairs(2))["judge"]))


def test_texts_that_fail_only_together_are_named_together() -> None:
    class Crowded(Judge):
        def score_all(self, segments: Segments) -> list[float]:
            return [1.0] if len(segments.texts) == 1 else []

    fault = fault_of(statistics_of([Crowded()], pairs(4))["judge"])
    assert fault.where == "017-00001-t00, near to 017-00001-t00, far"


class Batches(MeanMetric):
    """Scores many texts at once, and counts what it was asked and what it gave."""

    name, signature, reads, keep = "batches", "v:1", (), True

    def __init__(self, bad: Callable[[list[str]], bool]) -> None:
        self.asked, self.gave, self._bad = list[list[str]](), list[str](), bad

    def score_all(self, segments: Segments) -> list[float]:
        self.asked.append(list(segments.texts))
        if self._bad(self.asked[-1]):
            raise ValueError("too bad")
        self.gave += segments.texts
        return [float("nan") if text.endswith(" 7") else float(len(text)) for text in segments.texts]


def test_one_by_one_each_text_is_asked_for_once_and_what_raises_fails_alone() -> None:
    judge = Judge(raising)
    found = statistics_of([judge], pairs(20))["judge"]
    assert len(judge.asked) == len(set(judge.asked)) == 40
    assert sum(int(np.isfinite(rows).all(axis=1).sum()) for rows in found.rows.values()) == 38


@pytest.mark.e2e
@given(st.sets(st.integers(0, 29), max_size=12), st.integers(1, 9))
def test_a_batch_that_raises_is_halved_and_no_text_with_a_score_is_asked_again(bad: set[int], chunk: int) -> None:
    table = pairs(30)
    refused = {text for texts in table.variants.values() for number, text in enumerate(texts) if number in bad}
    metric = Batches(lambda texts: not refused.isdisjoint(texts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "CHUNK", chunk)
        found = statistics_of([metric], table)["batches"]
    failed = bad | {7}
    assert sorted(metric.gave) == sorted(text for texts in table.variants.values() for text in texts if text not in refused)
    assert fault_of(found).texts == 2 * len(failed) and fault_of(found).of == 60
    assert fault_of(found).where == f"017-00001-t{min(failed):02d}, near"
    for name, rows in found.rows.items():
        expected = [[float("nan")] * 2 if n in failed else [float(len(text)), 1.0] for n, text in enumerate(table.variants[name])]
        np.testing.assert_array_equal(rows, expected)


def test_texts_that_fail_only_together_are_scored_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "CHUNK", 2)
    found = statistics_of([Batches(lambda texts: {"near very 1", "far very 1"} <= set(texts))], pairs(4))["batches"]
    assert found.fault is None and not any(np.isnan(rows).any() for rows in found.rows.values())


def test_a_metric_without_any_score_has_no_rows_and_all_its_texts_failed() -> None:
    for metric in (Judge(lambda text: float("inf")), Batches(lambda texts: True)):
        found = statistics_of([metric], pairs(3))[metric.name]
        assert found.rows == {} and fault_of(found).texts == fault_of(found).of == 6


def test_a_fault_of_the_whole_metric_counts_for_the_texts_that_failed_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Worse(Judge):
        def scores(self, statistics: Array) -> Array:
            return super().scores(statistics) if statistics[0, 0] < 0 else np.zeros(9)

    monkeypatch.setattr(protocol, "CHUNK", 1)
    found = statistics_of([Worse(lambda text: -1.0 if text.endswith("0") else float("nan") if text.endswith("1") else 1.0)], pairs(4))
    assert found["judge"].rows == {} and fault_of(found["judge"]).texts == 0
    assert str(fault_of(found["judge"])).startswith(
        "metric judge: 017-00001-t02, near to 017-00001-t02, far: scores returned an array of shape (9,) for "
    )


@pytest.mark.e2e
def test_texts_that_fail_in_another_process_fail_alone_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "CHUNK", 5)
    one, two = (statistics_of([RougeL(), OddLength()], pairs(23), processes=count) for count in (1, 2))
    assert one["odd length"].fault == two["odd length"].fault and fault_of(one["odd length"]).texts > 0
    for name, rows in one["odd length"].rows.items():
        np.testing.assert_array_equal(rows, two["odd length"].rows[name])


class OddLength(MeanMetric):
    name, signature, reads, share = "odd length", "v:1", (), True

    def score(self, text: str, *read: Any) -> float:
        if len(text) % 2:
            raise ValueError(f"{len(text)} is odd")
        return len(text)


def test_every_score_is_kept_at_once_failures_never_and_the_next_run_asks_for_these_alone(tmp_path: Path) -> None:
    cache, table = ScoreCache(tmp_path / "scores.sqlite"), pairs(20)

    def killed(text: str) -> float:
        if len(judge.asked) == 31:
            raise KeyboardInterrupt
        return raising(text)

    judge = Judge(killed)
    with pytest.raises(KeyboardInterrupt):
        statistics_of([judge], table, Scoring(cache))
    again = Judge(raising)
    found = statistics_of([again], table, Scoring(cache))["judge"]
    # Of the 30 that were done two had failed; the one that was asked for when the process ended is lost.
    assert len(again.asked) == 40 - 28 and fault_of(found).texts == 2
    third = Judge(lambda text: 1.0)
    assert of(statistics_of([third], table, Scoring(cache))["judge"])
    assert sorted(third.asked) == sorted(texts[13] for texts in table.variants.values())


def test_batches_are_kept_chunk_by_chunk_without_what_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "CHUNK", 4)
    cache, table = ScoreCache(tmp_path / "scores.sqlite"), pairs(12)
    bad = table.variants["far"][2]
    first = statistics_of([Batches(lambda texts: bad in texts)], table, Scoring(cache))["batches"]
    again = Batches(lambda texts: False)
    second = statistics_of([again], table, Scoring(cache))["batches"]
    assert again.asked == [[bad], [table.variants[name][7] for name in ("near", "far")]]
    assert (fault_of(first).texts, fault_of(second).texts) == (3, 2) and second.rows["far"][2].tolist() == [len(bad), 1]


def test_kept_rows_of_another_width_are_a_fault(tmp_path: Path) -> None:
    cache, table = ScoreCache(tmp_path / "scores.sqlite"), pairs(2)
    chunk = next(table.chunks({"reference", "context"}))
    cache.put({keys_of(Judge(), chunk.segments)[0]: np.ones(3)})
    said = str(fault_of(statistics_of([Judge()], table, Scoring(cache))["judge"]))
    assert "all pairs: statistics returned rows of 2 numbers after rows of 3" in said


def test_kept_scores_cost_nothing_and_only_new_texts_are_asked(tmp_path: Path) -> None:
    cache, table = ScoreCache(tmp_path / "scores.sqlite"), pairs(6)
    first, second = Judge(), Judge()
    one, two = (statistics_of([judge], table, Scoring(cache)) for judge in (first, second))
    assert of(one["judge"]) == of(two["judge"]) and len(first.asked) == 12 and not second.asked
    changed = Pairs(
        table.ids, table.references, {"near": table.variants["near"], "far": ["new", *table.variants["far"][1:]]}, table.contexts
    )
    third = Judge()
    found = statistics_of([third], changed, Scoring(cache))
    assert third.asked == ["new"] and of(found["judge"])["far"][0] == [3.0, 1.0]


def test_everything_a_metric_reads_and_all_its_settings_are_in_the_key() -> None:
    segments = Segments(["a"], ["b"], [[{"role": "seeker", "text": "c"}]])
    other = Judge()
    other.signature = "v:2"
    keys = {
        keys_of(Judge(), segments)[0],
        keys_of(other, segments)[0],
        keys_of(Judge(), Segments(["x"], ["b"], segments.contexts))[0],
        keys_of(Judge(), Segments(["a"], ["x"], segments.contexts))[0],
        keys_of(Judge(), Segments(["a"], ["b"], [[{"role": "helper", "text": "c"}]]))[0],
    }
    assert len(keys) == 5


def test_a_fault_is_not_kept(tmp_path: Path) -> None:
    cache = ScoreCache(tmp_path / "scores.sqlite")
    assert statistics_of([Judge(raising)], pairs(20), Scoring(cache))["judge"].fault
    assert of(statistics_of([Judge()], pairs(20), Scoring(cache))["judge"])


def test_above_the_most_the_oldest_go_and_a_kept_row_stays_as_it_was(tmp_path: Path) -> None:
    cache, again = (ScoreCache(tmp_path / "scores.sqlite", most=3) for _ in range(2))
    keys = [bytes([number]) for number in range(5)]
    cache.put({key: np.array([1.5, 1.0]) for key in keys[:2]})
    again.put({keys[1]: np.array([9.0, 1.0])})
    assert cache.get(keys)[keys[1]].tolist() == [1.5, 1.0]
    again.put({key: np.array([2.5, 1.0]) for key in keys[2:]})
    assert sorted(cache.get(keys)) == keys[2:]


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, but long enough to look at" * 50)
    with pytest.raises(InputError, match="cannot store scores"):
        ScoreCache(tmp_path / "notes.txt")
    with sqlite3.connect(tmp_path / "other.sqlite") as other:
        other.execute("CREATE TABLE scores_1 (a)")
    with pytest.raises(InputError, match="cannot store scores"):
        ScoreCache(tmp_path / "other.sqlite").get([b"x"])


def test_the_users_cache_lies_in_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache() == tmp_path / "empathy-eval" / "scores.sqlite"
