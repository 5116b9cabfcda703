"""What is told over all criteria of a table, from its rows: benchmark, F1 beside guessing, stability, styles and contradictions."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from functools import cache
from statistics import median
from typing import Any

import numpy as np
import pytest
from empathy_eval.design.rubrics import Scale
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.raters.agreement import RatingTable, agree
from empathy_eval.raters.agreement.panel import Framework, JudgeRater, Panel
from empathy_eval.raters.agreement.reliability import Reliability, reliability
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, f1_score

PANEL = Panel(
    ("e1", "e2", "e3"),
    (JudgeRater("a", "a", "A", "plain"), JudgeRater("a#2", "a", "A", "plain", 2), JudgeRater("b", "b", "A", "shots")),
    ("c1", "c2"),
)
FRAMEWORKS = (
    Framework(
        "listening", "Listening", ("warm", "cold"), {name: Scale(1, 5, whole=True) for name in ("warm", "cold")}, {}, (("warm", "cold"),)
    ),
    Framework("", "Other criteria", ("fluent",)),
)
RATERS = (*PANEL.experts, "a", "a#2", "b", *PANEL.crowd)


def grid(seed: int) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 6, 60)
    return {name: np.clip(truth + rng.integers(-1, 2, 60), 1, 5) for name in RATERS}


GIVEN = {name: grid(seed) for seed, name in enumerate(("warm", "cold", "fluent"))}


@cache
def found() -> Reliability:
    table = RatingTable.of(
        (f"{item:02}", rater, int(value), criterion)
        for criterion, raters in GIVEN.items()
        for rater, values in raters.items()
        for item, value in enumerate(values)
    )
    chance = ResamplingSettings(30, 0, 0)
    judged = agree(table.without(PANEL.crowd), [one.rater for one in PANEL.judges], chance.resamples, chance.seed)
    return reliability(table, PANEL, FRAMEWORKS, judged, chance)


def test_the_benchmark_over_all_criteria_is_the_median_of_all_pairs_and_marks_every_row() -> None:
    pairs = [
        cohen_kappa_score(raters[one], raters[other], weights="quadratic")
        for raters in GIVEN.values()
        for one, other in (("e1", "e2"), ("e1", "e3"), ("e2", "e3"))
    ]
    benchmark = found().overall.benchmark
    assert benchmark == pytest.approx(median(pairs)) and found().overall.pairs.number == 9
    rows = [row for one in found().frameworks for row in one.rows]
    placed = [one for row in rows for one in (*row.judges.values(), *([row.crowd] if row.crowd else []))]
    assert len(placed) == 9 and all(one.at_overall == ((one.kappa.value or 0) >= (benchmark or 0)) for one in placed)
    at = {row.criterion for row in rows if row.judges["a"].at_overall}
    assert set(found().overall.judges["a"].at_benchmark.so) == at and found().overall.judges["a"].at_benchmark.of == 3
    assert [(one.framework, one.criteria) for one in found().overall.frameworks] == [("listening", 2), ("", 1)]


def test_f1_is_that_of_the_experts_the_first_samples_and_the_crowd_beside_guessing() -> None:
    row = found().frameworks[0].rows[0]
    assert set(row.f1) == {"e1", "e2", "e3", "a", "b", "crowd"}
    middle = np.median([GIVEN["warm"][name] for name in PANEL.experts], axis=0)
    crowd = np.floor((GIVEN["warm"]["c1"] + GIVEN["warm"]["c2"]) / 2 + 0.5)
    for name, own in (("a", GIVEN["warm"]["a"]), ("crowd", crowd)):
        assert row.f1[name].mean.value == pytest.approx(np.mean([f1_score(middle >= least, own >= least) for least in (2, 3, 4, 5)]))
        assert row.f1[name].values == row.scale == (1, 2, 3, 4, 5)
    assert row.f1["a"].guess_macro == replace(row.f1["b"].guess_macro, signature=row.f1["a"].guess_macro.signature), (
        "who guesses has no name"
    )
    assert "crowd:mean" in row.f1["crowd"].guess_binary.signature


def test_stability_is_of_all_samples_and_styles_of_the_first() -> None:
    alone = {(one.judge, one.criterion): one.same for one in found().stability}
    assert set(alone) == {(judge, name) for judge in "ab" for name in GIVEN}
    assert alone["a", "cold"].value == pytest.approx(np.mean(GIVEN["cold"]["a"] == GIVEN["cold"]["a#2"]))
    assert alone["b", "cold"].reason == "there is only one sample"
    styles = found().styles
    assert styles and [(one.rater, one.model, one.style) for one in styles.columns] == [("a", "A", "plain"), ("b", "A", "shots")]
    assert {row.criterion for row in styles.criteria} == set(GIVEN) and sum(one.best for one in styles.wins) >= 3


def test_contradictions_are_those_of_every_rater_in_both_directions_and_all_is_json() -> None:
    middle = np.median([GIVEN["cold"][name] for name in PANEL.experts], axis=0)
    of = {(one.rater, one.high.criterion): (one.count, one.of) for one in found().contradictions}
    assert len(of) == 2 * (3 + 2 + 2)
    assert of["b", "warm"] == (int(np.sum((middle > 3) & (GIVEN["warm"]["b"] > 3))), int(np.sum(middle > 3)))
    json.dumps(found().to_json(), allow_nan=False)


def test_the_same_table_gives_the_same_figures() -> None:
    before = json.dumps(found().to_json())
    found.cache_clear()
    assert json.dumps(found().to_json()) == before


@pytest.mark.e2e
@settings(max_examples=60)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from("wxyz"), st.sampled_from(RATERS), st.sampled_from(["warm", "cold", "fluent"])),
        st.integers(1, 5),
        min_size=1,
    ),
    st.sampled_from(["mean", "median"]),
)
def test_any_table_gives_figures_or_reasons(ratings: dict[tuple[str, str, str], int], crowd_as: str) -> None:
    table = RatingTable.of((item, rater, value, criterion) for (item, rater, criterion), value in ratings.items())
    there = set(table.raters)
    judges = tuple(one for one in PANEL.judges if one.rater in there)
    panel = Panel(
        tuple(one for one in PANEL.experts if one in there), judges, tuple(one for one in PANEL.crowd if one in there), crowd_as
    )  # fmt: skip
    judged = table.without(panel.crowd)
    assume(panel.experts)
    frameworks = tuple(
        replace(one, criteria=names) for one in FRAMEWORKS if (names := tuple(name for name in one.criteria if name in judged.criteria))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figures = agree(judged, [one.rater for one in judges], 5)
        told = reliability(table, panel, frameworks, figures, ResamplingSettings(5, 0, 0)).to_json()
    for one in measures(told):
        assert (one["value"] is not None or one["why"]) and (one["low"] is not None or one["why"]) and one["signature"]
    json.dumps(told, allow_nan=False)


def measures(value: Any) -> list[dict[str, Any]]:
    """All measures in JSON values."""
    if isinstance(value, dict):
        return [value] if {"low", "why"} <= value.keys() else [found for part in value.values() for found in measures(part)]
    return [found for part in value for found in measures(part)] if isinstance(value, list | tuple) else []
