"""Crossed items: what each figure counts, what a scorer without the context must come out at, and how far shortcuts get."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from empathy_eval.base.text import words
from empathy_eval.evaluation.crossed_items import (
    ECHO_OF_CHANGE,
    LAST,
    MORE,
    NEEDS_REFERENCE,
    OF_BOTH,
    OF_REPLY,
    WHOLE_CONTEXT,
    CrossedItems,
    CrossedScorer,
    CrossedVerdicts,
    crossed_rows,
    crossed_scorers,
    read_items,
    shortcut_scorers,
)
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.evaluation.inversion.rows import CrossedRow
from empathy_eval.evaluation.shortcuts.texts import Embedding
from empathy_eval.metrics.lexical import Echo, Length, RougeL, Vader
from empathy_eval.metrics.protocol import Context, MeanMetric
from empathy_eval.statistics.estimate import Estimate
from hypothesis import given, settings
from hypothesis import strategies as st

CHANCE = ResamplingSettings(20, 0, 7)
LONG = "LONG" in os.environ
EXACT = Estimate(0.5, 0.5, 0.5), Estimate(0.0, 0.0, 0.0), Estimate(0.5, 0.5, 0.5)
Score = Callable[[str, Context], float]


def items_of(rows: list[tuple[str, str, str, str]], scenarios: int = 5) -> CrossedItems:
    """Items from (last turn, its twin, reply, other reply), a dialogue each, the scenarios in turn."""
    before = [{"role": "seeker", "text": "Hello there"}, {"role": "helper", "text": "Hello you"}]
    first, second, one, other = zip(*rows, strict=True)
    contexts = [[[*before, {"role": "seeker", "text": text}] for text in some] for some in (first, second)]
    numbers = [1 + row % scenarios for row in range(len(rows))]
    names = [f"{number:03d}-{row:05d}" for row, number in enumerate(numbers)]
    return CrossedItems([f"{name}-x1" for name in names], names, numbers, (contexts[0], contexts[1]), (one, other), ["seed"] * len(rows))


class Scorer(MeanMetric):
    """A metric of any function; nan is refused as a fault of the text."""

    name, signature = "scorer", "test"
    reads: tuple[str, ...] = ("context",)

    def __init__(self, function: Score, higher_is_better: bool | None = True) -> None:
        self.function, self.higher_is_better = function, higher_is_better

    def score(self, text: str, context: Context) -> float:
        return self.function(text, context)


class OfReply(Scorer):
    """The same of a function of the reply, which says so."""

    reads = ()

    def score(self, text: str, context: Context = ()) -> float:
        return self.function(text, context)


def row_of(items: CrossedItems, metric: Any) -> CrossedRow:
    asked, faults = crossed_scorers([metric], items)
    assert not faults
    return crossed_rows(asked, items, CHANCE)[0]


def figures(row: CrossedRow) -> tuple[float, ...]:
    return tuple(one.number for one in row.figures.values() if one)


SCORES = st.lists(st.tuples(*(st.integers(0, 3) for _ in range(4))), min_size=1, max_size=8)


@given(SCORES)
@settings(max_examples=40)
def test_every_figure_is_the_count_of_its_comparisons(table: list[tuple[int, int, int, int]]) -> None:
    """The four scores of an item: both replies in the first context, both in the second."""
    items = items_of([(f"one {row}", f"two {row}", f"reply {row}", f"other {row}") for row in range(len(table))])

    def score(text: str, context: Context) -> float:
        place = 2 * context[-1]["text"].startswith("two") + text.startswith("other")
        return float(table[int(text.split()[1])][place])

    def won(one: int, other: int) -> float:
        return 1.0 if one > other else 0.5 if one == other else 0.0

    count = len(table)
    fitting = sum(won(a, b) + won(d, c) for a, b, c, d in table) / 2 / count
    both = sum(a > b and d > c for a, b, c, d in table) / count
    own = sum(won(a, c) + won(d, b) for a, b, c, d in table) / 2 / count
    row = row_of(items, Scorer(score))
    assert figures(row) == pytest.approx((fitting, both, own), abs=1e-6)
    assert row.ties == pytest.approx(sum((a == b) + (c == d) for a, b, c, d in table) / 2 / count, abs=1e-6)
    assert row.own_ties == pytest.approx(sum((a == c) + (b == d) for a, b, c, d in table) / 2 / count, abs=1e-6)
    assert (row.items, row.left_out, row.why) == (count, 0, None)
    low = row_of(items, Scorer(lambda text, context: -score(text, context), higher_is_better=False))
    assert figures(low) == figures(row)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12), st.booleans())
@settings(max_examples=40)
def test_a_function_of_the_reply_alone_is_right_exactly_half_of_the_time_and_never_twice(scores: list[float], declared: bool) -> None:
    items = items_of([(f"one {row}", f"two {row}", f"reply {row}", f"other {row}") for row in range(len(scores))])

    def score(text: str, context: Context = ()) -> float:
        return scores[int(text.split()[1])] * (1 + text.startswith("other"))

    row = row_of(items, Scorer(score) if declared else OfReply(score))
    one_dialogue = tuple(Estimate(one.value) for one in EXACT)
    assert tuple(row.figures.values()) == (EXACT if len(scores) > 1 else one_dialogue) and row.own_ties == 1


def test_what_scores_the_reply_alone_comes_out_exactly_on_the_curated_items(seeds: Path) -> None:
    items = read_items(seeds)
    assert items is not None and len(items) == 180 and len(items.clusters) == 60
    asked, _ = crossed_scorers([Vader(), Length()], items)
    for row in crossed_rows(asked, items, CHANCE):
        assert tuple(row.figures.values()) == EXACT and row.own_ties == 1


def test_a_metric_that_reads_a_reference_is_not_applicable_and_one_without_a_direction_says_what_it_is_taken_for() -> None:
    items = items_of([("I like tea", "I like coffee", "Tea it is", "Coffee then")] * 3)
    asked, faults = crossed_scorers([RougeL(), Length(), Echo()], items)
    rouge, length, echo = crossed_rows(asked, items, CHANCE)
    assert not faults and rouge.why == NEEDS_REFERENCE and "not applicable" in NEEDS_REFERENCE
    assert set(rouge.figures.values()) == {None} and (rouge.items, rouge.left_out, rouge.ties) == (0, 3, None)
    assert f"|{MORE}|interval:" in length.signature and f"|{MORE}|interval:" in echo.signature and MORE not in rouge.signature
    assert figures(echo) == (1, 1, 1) and echo.own_ties == 0


def test_texts_without_a_score_are_left_out_and_a_metric_that_gives_none_is_a_fault() -> None:
    items = items_of([(f"one {row}", f"two {row}", f"reply {row}", f"other {row}") for row in range(4)])

    def some(text: str, context: Context) -> float:
        if text == "other 2" and context[-1]["text"] == "two 2":
            raise ValueError("too hard")
        return float("reply" in text and "one" in context[-1]["text"])

    asked, (fault,) = crossed_scorers([Scorer(some)], items)
    (row,) = crossed_rows(asked, items, CHANCE)
    assert (row.items, row.left_out) == (3, 1) and figures(row) == (0.75, 0, 0.75)
    assert fault.where == f"{items.ids[2]}, context 2, reply_2" and "too hard" in fault.what
    asked, (fault,) = crossed_scorers([Scorer(lambda text, context: float("nan"))], items)
    (row,) = crossed_rows(asked, items, CHANCE)
    assert row.fitting is None and row.why and row.why.startswith("it failed: ") and row.items == 0


def test_strict_counts_items_without_scores_as_wrong() -> None:
    items = items_of([(f"one {row}", f"two {row}", "reply", "other") for row in range(4)])
    high, low = (np.array([one, one, np.nan, one], dtype=np.float64) for one in (1, 0))
    verdicts = CrossedVerdicts.of((high, low), (low, high))
    lax, strict = crossed_rows([CrossedScorer("judge", "s", verdicts), CrossedScorer("judge", "s", verdicts, strict=True)], items, CHANCE)
    assert figures(lax) == (1, 1, 1) and figures(strict) == (0.75, 0.75, 0.75)
    assert (lax.items, lax.left_out) == (strict.items, strict.left_out) == (3, 1)
    assert "missing:wrong" in strict.signature and "missing:wrong" not in lax.signature


def by_name(items: CrossedItems, embedding: Embedding | None = None) -> dict[str, CrossedRow]:
    return {row.metric: row for row in crossed_rows(shortcut_scorers(items, 2026, embedding), items, CHANCE)}


def test_words_of_both_find_a_rule_across_scenarios_and_words_of_the_reply_find_nothing() -> None:
    rng = random.Random(5)
    noise = [f"w{number}" for number in range(40)]

    def said(*parts: str) -> str:
        return " ".join(rng.sample(noise, 4) + list(parts))

    rows = [(said("alone"), said("crowded"), said("company"), said("quiet")) for _ in range(40)]
    swapped = [(b, a, d, c) if row % 2 else (a, b, c, d) for row, (a, b, c, d) in enumerate(rows)]
    found = by_name(items_of(swapped))
    assert figures(found[OF_BOTH])[0] > 0.9 and figures(found[OF_BOTH])[2] > 0.9 and "scored:out-of-fold" in found[OF_BOTH].signature
    assert tuple(found[OF_REPLY].figures.values()) == EXACT == tuple(found["length"].figures.values())
    # Whatever one scenario says of itself teaches nothing about it.
    alone = by_name(items_of(swapped, scenarios=1))
    assert alone[OF_BOTH].fitting is None and "one scenario" in str(alone[OF_BOTH].why)


def test_the_echoes_are_shares_of_the_words_of_a_reply(seeds: Path) -> None:
    items = read_items(seeds, ("validation",))
    assert items is not None
    asked = {one.name: one.verdicts for one in shortcut_scorers(items, 1)}
    echo = crossed_scorers([Echo()], items)[0][0].verdicts
    assert echo and asked["echo"] and np.array_equal(echo.fitting, asked["echo"].fitting) and np.array_equal(echo.own, asked["echo"].own)
    for row in range(len(items)):
        last = [{*words(side[row][-1]["text"])} for side in items.contexts]
        shares = [
            [sum(word in last[side] - last[1 - side] for word in words(text[row])) / len(words(text[row])) for text in items.replies]
            for side in (0, 1)
        ]
        change = asked[ECHO_OF_CHANGE]
        assert change and change.fitting[0][row] == (np.sign(shares[0][0] - shares[0][1]) + 1) / 2
        assert change.own[1][row] == (np.sign(shares[1][1] - shares[0][1]) + 1) / 2


def test_shortcuts_are_the_same_for_items_in_reverse_order() -> None:
    rows = [(f"I fear {row} dogs", f"I love {row} dogs", f"That scares {row} people", f"What {row} joy") for row in range(12)]
    items = items_of(rows)
    turned = replace(items, contexts=items.contexts[::-1], replies=items.replies[::-1])
    one, other = by_name(items), by_name(turned)
    assert {name: figures(row) for name, row in one.items()} == {name: figures(row) for name, row in other.items()}


def test_cosines_are_of_the_reply_with_the_last_turn_and_with_the_mean_of_all_turns() -> None:
    rows = [("I lost my job", "I lost my keys", "Work mattered to you", "Where did you last have them?"), ("Yes", "No", "Good", "Bad")]
    items, model = items_of(rows), Embedding()
    found = {one.name: one for one in shortcut_scorers(items, 1, model)}

    def cosine(row: int, side: int, reply: int, name: str) -> float:
        turns = [turn["text"] for turn in items.contexts[side][row]]
        vectors = model.embedded([*(turns[-1:] if name == LAST else turns), items.replies[reply][row]])
        mean = vectors[:-1].mean(axis=0)
        return round(float(mean @ vectors[-1] / (np.linalg.norm(mean) if name == WHOLE_CONTEXT else 1)), 4)

    for name in (LAST, WHOLE_CONTEXT):
        verdicts = found[name].verdicts
        assert verdicts and "form:ridge" not in found[name].signature and "cosine:" in found[name].signature
        for row in (0, 1):
            a, b, c, d = (cosine(row, side, reply, name) for side in (0, 1) for reply in (0, 1))
            decided = [each[row] for each in (*verdicts.fitting, *verdicts.own)]
            assert decided == [(np.sign(gap) + 1) / 2 for gap in (a - b, d - c, a - c, d - b)]


@pytest.mark.sampled
def test_no_shortcut_gets_far_on_the_curated_items(seeds: Path) -> None:
    items = read_items(seeds)
    assert items is not None
    # The encoder takes half a minute for all turns of all contexts.
    found = by_name(items, Embedding() if LONG else None)
    fitting = {name: row.fitting.number for name, row in found.items() if row.fitting}
    assert fitting[OF_REPLY] == fitting["length"] == 0.5
    assert max(fitting["echo"], fitting[ECHO_OF_CHANGE]) <= 0.6 and fitting[OF_BOTH] <= 0.65
    assert not LONG or max(fitting[LAST], fitting[WHOLE_CONTEXT]) <= 0.65
    # Nor in telling a reply's own context from the other one.
    assert max(row.own_context.number for row in found.values() if row.own_context) <= 0.65
    text = (Path(__file__).parent.parent.parent / "docs" / "crossed_scores.md").read_text(encoding="utf-8")
    told = {name: tuple(re.findall(r"([0-9.]+) \[", rest)) for name, rest in re.findall(r"^\| ([^|]+?) \| (0\.\d.*)$", text, re.MULTILINE)}
    assert {name: tuple(f"{one:.3f}" for one in figures(row)) for name, row in found.items()}.items() <= told.items()
