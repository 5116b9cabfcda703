"""Scores against people: scipy and fractions by hand, simulated ratings of known structure, and what is not defined."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.commands.score_tables import SCREEN, human_correlation_table
from empathy_eval.evaluation.external.custom_texts import REPLY, CustomScores, CustomTexts, MetricColumn
from empathy_eval.evaluation.external.score_file import PrecomputedScores
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.metrics.protocol import Array, with_count
from empathy_eval.raters.agreement.table import RatingTable
from empathy_eval.raters.people.correlations import AgainstPeople, CorrelationRow, CriterionCorrelations, correlate_with_people
from empathy_eval.statistics.correlations import (
    BY_RATER,
    FORMS,
    GIVEN_LENGTH,
    IN_CONTEXT,
    NAMES,
    RAW,
    Pigeonhole,
    RatedScores,
    resampled_correlations,
)
from empathy_eval.statistics.estimate import student_p
from scipy import stats

CHANCE = ResamplingSettings(100, 0, 1)
LONG = bool(os.environ.get("LONG"))
SIMULATIONS = 1000 if LONG else 25
Values = Sequence[float]


def texts_of(contexts: Sequence[str], lengths: Sequence[int], systems: Sequence[str] | None = None) -> CustomTexts:
    items = [f"i{place}" for place in range(len(contexts))]
    said = [[{"role": "seeker", "text": one}] for one in contexts]
    replies = [" ".join(["word"] * length) for length in lengths]
    return CustomTexts(
        "here", items, [(one, REPLY) for one in items], systems or [""] * len(items), contexts, contexts, said, replies, replies
    )


def put(
    texts: CustomTexts,
    columns: Mapping[str, Values],
    ratings: Sequence[tuple[str, str, float]],
    *,
    chance: ResamplingSettings = CHANCE,
    lower: str = "",
) -> AgainstPeople:
    made = [
        MetricColumn(
            PrecomputedScores(name, "s", dict(zip(texts.keys, map(float, values), strict=True)), name != lower), with_count(values)
        )
        for name, values in columns.items()
    ]
    return correlate_with_people(CustomScores(texts, tuple(made), (), ()), RatingTable.of(ratings), chance)


def row(found: CriterionCorrelations, metric: str, form: str) -> CorrelationRow:
    return next(one for one in found.rows if (one.metric, one.form) == (metric, form))


def numbers(found: CorrelationRow) -> list[float | None]:
    return [found.figures[name].value for name in NAMES]


def some_ratings(seed: int = 0, ratings: int = 150) -> tuple[RatedScores, Array, Array]:
    """Ratings of 30 texts of 10 contexts by 8 raters, with many ties; scores and lengths of the texts."""
    rng = np.random.default_rng(seed)
    context = np.arange(30) // 3
    cells = rng.choice(30 * 8, ratings, replace=False)
    text, rater = cells // 8, cells % 8
    scores = np.round(rng.normal(size=30), 1)
    rating = np.clip(np.round(scores[text] + rng.normal(size=ratings) + 3), 1, 5)
    return RatedScores(text, rater, context[text], context[text], rating), scores, rng.integers(5, 9, 30).astype(float)


def test_every_figure_is_that_of_scipy_of_the_ratings_and_of_each_resample_written_out() -> None:
    rated, scores, lengths = some_ratings()
    draws = Pigeonhole.of(rated.rater, rated.unit, 10, 3)
    found = resampled_correlations(rated, [scores], lengths, draws)[RAW][0]
    raters, units = (np.vstack(parts) for parts in zip(*draws.weights(), strict=True))
    for values, of_raters, of_units in zip(found, raters, units, strict=True):
        times = (of_raters[rated.rater] * of_units[rated.unit]).astype(int)
        one, other = np.repeat(scores[rated.text], times), np.repeat(rated.rating, times)
        told = [which(one, other).statistic for which in (stats.pearsonr, stats.spearmanr, stats.kendalltau)]
        assert values == pytest.approx(told, abs=1e-12)
    assert len(found) == 11 and raters[1:].sum() == 10 * 8 and units[1:].sum() == 10 * 10


@pytest.mark.parametrize("form", [BY_RATER, IN_CONTEXT])
def test_within_groups_every_copy_of_a_group_is_compared_with_itself_alone(form: str) -> None:
    rated, scores, lengths = some_ratings(1)
    draws = Pigeonhole.of(rated.rater, rated.unit, 6, 3)
    found = resampled_correlations(rated, [scores], lengths, draws)[form][0]
    drawn = [(one, other) for some in draws.weights() for one, other in zip(*some, strict=True)]
    groups = rated.rater if form == BY_RATER else rated.context
    for values, (of_raters, of_units) in zip(found, drawn, strict=True):
        copies, inside = (of_raters, of_units[rated.unit]) if form == BY_RATER else (of_units, of_raters[rated.rater])
        sums = np.zeros(6)
        for group in np.repeat(np.arange(len(copies)), copies.astype(int)):
            times = np.where(groups == group, inside, 0).astype(int)
            one, other = np.repeat(scores[rated.text], times), np.repeat(rated.rating, times)
            if len(one):
                signs = [np.sign(each[:, None] - each) for each in (one, other)]
                around = [each - each.mean() for each in (one, other)]
                for place, (first, second) in enumerate((signs, around)):
                    sums[3 * place : 3 * place + 3] += [(first * second).sum(), (first**2).sum(), (second**2).sum()]
        tau, r = (one / (two * three) ** 0.5 for one, two, three in sums.reshape(2, 3))
        assert values[[0, 2]] == pytest.approx([r, tau], abs=1e-12)


def test_a_table_of_four_ratings_by_hand() -> None:
    # Scores 1 2 3 4 of four texts against ratings 1 3 2 3.
    ratings = [(f"i{place}", "ann", value) for place, value in enumerate((1, 3, 2, 3))]
    found = put(texts_of(list("abcd"), [3, 3, 4, 4]), {"m": [1, 2, 3, 4]}, ratings).criteria[0]
    # Around their means: -3/2 -1/2 1/2 3/2 and -5/4 3/4 -1/4 3/4; ranks of the ratings: 1 7/2 2 7/2.
    r = (Fraction(15, 8) - Fraction(3, 8) - Fraction(1, 8) + Fraction(9, 8)) / Fraction(1)
    assert row(found, "m", RAW).figures["r"].value == pytest.approx(float(r) / (5 * 11 / 4) ** 0.5)
    assert row(found, "m", RAW).figures["rho"].value == pytest.approx((1.5 * 1.5 - 0.5 * 1 - 0.5 * 0.5 + 1.5 * 1) / (5 * 4.5) ** 0.5)
    # Of six pairs four agree, one does not, one is tied.
    assert row(found, "m", RAW).figures["tau_b"].value == pytest.approx(3 / (6 * 5) ** 0.5)
    assert (found.ratings, found.texts, found.raters, found.units) == (4, 4, 1, 4)


def test_given_length_is_the_partial_correlation_of_the_three() -> None:
    rated, scores, lengths = some_ratings(2)
    found = resampled_correlations(rated, [scores], lengths, Pigeonhole.of(rated.rater, rated.unit, 0, 0))[GIVEN_LENGTH][0, 0]
    columns = (scores[rated.text], rated.rating, lengths[rated.text])
    for value, which in zip(found, (stats.pearsonr, stats.spearmanr, stats.kendalltau), strict=True):
        xy, xz, yz = (which(*two).statistic for two in combinations(columns, 2))
        assert value == pytest.approx((xy - xz * yz) / ((1 - xz**2) * (1 - yz**2)) ** 0.5, abs=1e-12)


def simulated(seed: int, raters: int = 20, contexts: int = 40, each: int = 20) -> tuple[RatedScores, list[Array], Array]:
    """Raters of different leniency rate texts, two a context, whose quality two metrics see, one better than the other."""
    rng = np.random.default_rng(seed)
    context = np.repeat(np.arange(contexts), 2)
    quality = rng.normal(size=len(context)) + rng.normal(0, 0.5, contexts)[context]
    scores = [quality + rng.normal(0, noise, len(context)) for noise in (1.0, 2.0)]
    text = np.concatenate([rng.choice(len(context), each, replace=False) for _ in range(raters)])
    rater = np.repeat(np.arange(raters), each)
    rating = np.clip(np.round(quality[text] + rng.normal(0, 0.7, raters)[rater] + rng.normal(size=len(text)) + 3), 1, 5)
    units = np.unique(context[text], return_inverse=True)[1]
    return RatedScores(text, rater, units, context[text], rating), scores, rng.poisson(20, len(context)).astype(float)


@pytest.mark.e2e
@pytest.mark.sampled
def test_intervals_cover_what_very_many_people_would_say() -> None:
    rated, scores, lengths = simulated(10**6, raters=300, contexts=1500, each=100)
    truth = resampled_correlations(rated, scores, lengths, Pigeonhole.of(rated.rater, rated.unit, 0, 0))
    hits: dict[str, list[bool]] = {name: [] for name in FORMS}
    for seed in range(SIMULATIONS):
        rated, scores, lengths = simulated(seed)
        for form, values in resampled_correlations(
            rated, scores, lengths, Pigeonhole.of(rated.rater, rated.unit, 400 if LONG else 80, seed)
        ).items():
            low, high = np.quantile(values[:, 1:], [0.025, 0.975], axis=1)
            hits[form] += ((low <= truth[form][:, 0]) & (truth[form][:, 0] <= high)).ravel().tolist()
    # The pigeonhole bootstrap counts what is of a single rating alone more than once: intervals are rather too wide.
    least = 0.93 if LONG else 0.88
    assert all(np.mean(some) >= least for some in hits.values()), {name: float(np.mean(some)) for name, some in hits.items()}
    assert np.mean([one for some in hits.values() for one in some]) < 0.999


@pytest.mark.e2e
def test_the_spread_of_resamples_is_that_of_new_people_and_texts() -> None:
    drawn = [resampled_correlations(*one, Pigeonhole.of(one[0].rater, one[0].unit, 0, 0))[RAW][0, 0] for one in map(simulated, range(60))]
    errors = []
    for seed in range(10):
        rated, scores, lengths = simulated(seed)
        errors.append(
            resampled_correlations(rated, scores, lengths, Pigeonhole.of(rated.rater, rated.unit, 100, seed))[RAW][0, 1:].std(axis=0)
        )
    ratio = np.mean(errors, axis=0) / np.std(drawn, axis=0, ddof=1)
    assert ((ratio > 0.85) & (ratio < 1.6)).all(), ratio


def test_the_leniency_of_raters_does_not_move_what_is_centred_by_rater() -> None:
    rated, scores, lengths = some_ratings(3)
    lenient = RatedScores(rated.text, rated.rater, rated.unit, rated.context, rated.rating + 10.0 * rated.rater)
    draws = Pigeonhole.of(rated.rater, rated.unit, 5, 0)
    strict_, kind = (resampled_correlations(one, [scores], lengths, draws) for one in (rated, lenient))
    np.testing.assert_allclose(strict_[BY_RATER], kind[BY_RATER], atol=1e-9)
    assert abs(strict_[RAW] - kind[RAW]).min() > 0.05


def test_the_level_of_contexts_does_not_move_what_is_within_them() -> None:
    rated, scores, lengths = some_ratings(4)
    level = 100.0 * (np.arange(30) // 3)
    draws = Pigeonhole.of(rated.rater, rated.unit, 5, 0)
    plain, moved = (resampled_correlations(rated, [scores + shift], lengths, draws) for shift in (0 * level, level))
    np.testing.assert_allclose(plain[IN_CONTEXT], moved[IN_CONTEXT], atol=1e-9)
    assert not np.allclose(plain[RAW], moved[RAW], atol=0.05)


def test_a_metric_that_is_length_alone_says_nothing_given_length() -> None:
    rng = np.random.default_rng(5)
    lengths = rng.integers(3, 30, 40).tolist()
    ratings = [(f"i{place}", f"r{rater}", float(rng.integers(1, 6))) for place in range(40) for rater in range(3)]
    texts = texts_of([f"c{place}" for place in range(40)], lengths)
    noisy = (np.array(lengths) + rng.normal(size=40) * 0.001).tolist()
    found = put(texts, {"twice": [2.0 * one for one in lengths], "noisy": noisy}, ratings).criteria[0]
    assert all("length alone" in str(one) for one in row(found, "twice", GIVEN_LENGTH).figures.values())
    partial = row(found, "noisy", GIVEN_LENGTH).figures["r"]
    assert partial.low is not None and partial.high is not None and partial.low < 0 < partial.high


def test_two_rows_differ_on_the_same_resamples_and_p_values_are_corrected_over_all_of_them() -> None:
    rated, scores, lengths = simulated(7, raters=30, contexts=60, each=40)
    names = {f"i{place}": place for place in range(len(lengths))}
    ratings = [(f"i{text}", f"r{rater}", rating) for text, rater, rating in zip(rated.text, rated.rater, rated.rating, strict=True)]
    texts = texts_of([f"c{place // 2}" for place in names.values()], [int(one) for one in lengths])
    noise = np.random.default_rng(0).normal(size=len(lengths)).tolist()
    columns = {"good": scores[0].tolist(), "again": scores[0].tolist(), "noise": noise}
    found = put(texts, columns, ratings).criteria[0]
    gaps = {(one.first, one.other): one.difference for one in found.gaps if (one.form, one.figure) == (RAW, "r")}
    assert list(gaps) == [("good", "again"), ("good", "noise"), ("again", "noise")]
    same, better = gaps["good", "again"], gaps["good", "noise"]
    assert (same.value, same.low, same.high, same.p) == (0, 0, 0, 1)
    assert better.decided and better.p is not None and better.p < 0.01 and better.p_corrected == pytest.approx(3 * better.p, abs=1e-5)
    assert better.value == pytest.approx(
        sum((row(found, name, RAW).figures["r"].value or 0) * sign for name, sign in (("good", 1), ("noise", -1))), abs=1e-6
    )


def test_the_p_value_of_student_is_that_of_scipy() -> None:
    for freedom in (1, 2, 3, 4, 7, 30, 999, 5000):
        for ratio in (0.0, 0.3, -1.7, 4.0):
            assert student_p(ratio, freedom) == pytest.approx(2 * stats.t.sf(abs(ratio), freedom), rel=2e-2, abs=1e-9)


def test_scores_of_which_lower_is_better_are_turned_round() -> None:
    ratings = [(f"i{place}", "ann", float(place)) for place in range(4)]
    found = put(texts_of(list("abcd"), [3, 5, 4, 4]), {"up": [1, 2, 3, 4], "down": [4, 3, 2, 1]}, ratings, lower="down").criteria[0]
    assert numbers(row(found, "up", RAW)) == numbers(row(found, "down", RAW)) == [1.0, 1.0, 1.0]
    assert "turned-round" in row(found, "down", RAW).figures["r"].signature


WHY = {
    "all ratings are alike": ([3, 3, 3, 3], [1, 2, 3, 4]),
    "all scores are alike": ([1, 2, 3, 4], [2, 2, 2, 2]),
}


@pytest.mark.parametrize("why", WHY)
def test_what_does_not_vary_is_not_defined_and_no_number_is_nan(why: str) -> None:
    given, scores = WHY[why]
    found = put(texts_of(list("abcd"), [3, 5, 4, 4]), {"m": scores}, [(f"i{place}", "ann", one) for place, one in enumerate(given)])
    assert all(one.value is None and str(one) == f"not defined: {why}" for one in row(found.criteria[0], "m", RAW).figures.values())
    assert "NaN" not in str(found.to_json()) and "nan" not in str(list(found.records())).lower().replace("finan", "")
    assert not found.criteria[0].gaps


def test_one_rater_one_text_and_texts_that_stand_alone_are_reported() -> None:
    one_text = put(texts_of(["a"], [3]), {"m": [1]}, [("i0", "ann", 1), ("i0", "bob", 2)]).criteria[0]
    assert str(row(one_text, "m", RAW).figures["r"]) == "not defined: only one item rated"
    one_rater = put(texts_of(list("abcd"), [3, 5, 4, 4]), {"m": [1, 3, 2, 4]}, [(f"i{p}", "ann", p) for p in range(4)]).criteria[0]
    assert row(one_rater, "m", RAW).figures["r"].low is not None
    assert "drawn:context=4" in row(one_rater, "m", RAW).figures["r"].signature
    assert str(row(one_rater, "m", IN_CONTEXT).figures["r"]) == "not defined: no context has two rated texts"
    ratings = [(f"i{place}", f"r{place}", float(place)) for place in range(4)]
    apart = put(texts_of(list("abcd"), [3, 5, 4, 4]), {"m": [1, 3, 2, 4]}, ratings).criteria[0]
    assert str(row(apart, "m", BY_RATER).figures["r"]) == "not defined: no rater rated two texts"


def test_nested_ratings_are_drawn_by_the_larger_unit_alone() -> None:
    by_rater = Pigeonhole.of(np.array([0, 0, 1, 1]), np.array([0, 1, 2, 3]), 5, 0)
    by_unit = Pigeonhole.of(np.array([0, 1, 2, 3]), np.array([0, 0, 1, 1]), 5, 0)
    crossed = Pigeonhole.of(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), 5, 0)
    assert [(one.draws_raters, one.draws_units) for one in (by_rater, by_unit, crossed)] == [(True, False), (False, True), (True, True)]


def test_systems_are_compared_by_their_means_with_the_warning_that_they_are_few() -> None:
    texts = texts_of(list("aab"), [3, 5, 4], ["x", "y", "z"])
    found = put(texts, {"m": [1, 2, 4]}, [(f"i{place}", "ann", one) for place, one in enumerate((1, 2, 3))]).criteria[0]
    assert found.systems and found.systems.note.startswith("3 systems are too few to decide anything")
    assert [found.systems.figures["m"][name].value for name in ("rho", "tau_b")] == [1.0, 1.0]
    two = put(texts_of(list("aabb"), [3, 5, 4, 4], ["x", "y", "x", "y"]), {"m": [1, 2, 2, 4]}, [("i0", "ann", 1), ("i1", "ann", 2)])
    assert two.criteria[0].systems and str(two.criteria[0].systems.figures["m"]["r"]) == "not defined: only two systems"
    alone = put(texts_of(list("ab"), [3, 5], ["x", "x"]), {"m": [1, 2]}, [("i0", "ann", 1), ("i1", "ann", 2)]).criteria[0]
    assert alone.systems and str(alone.systems.figures["m"]["r"]) == "not defined: only one system"


def test_the_printed_table_joins_no_column_to_the_next_and_shows_the_differences_of_one_figure() -> None:
    name = "a metric of 24 places ab"
    columns = {name: [1.0, 2, 4, 3], "other": [2.0, 1, 4, 3]}
    rated = [(f"i{place}", "ann", one) for place, one in enumerate((1, 2, 3, 4))]
    found = put(texts_of(list("aabb"), [3, 5, 4, 4], ["x", "y", "x", "y"]), columns, rated)
    said = human_correlation_table(found)
    assert re.search(rf"^{name} {{2,}}[-0-9.]+ ", said, re.MULTILINE)
    assert said.count("first minus second") == len(found.criteria) and said.splitlines()[-1].startswith("--json and --csv also have: ")


def test_a_screen_shows_the_first_form_of_every_criterion_and_says_what_is_left_out() -> None:
    columns = {f"metric {number}": [float((number + 1) * place % 7) for place in range(6)] for number in range(6)}
    texts = texts_of(list("aabbcc"), [3, 5, 4, 4, 6, 2], ["x", "y"] * 3)
    one_by_one = [
        (f"i{place}", rater, float(place * (number + 2) % 5)) for place in range(6) for number, rater in enumerate(("ann", "bob"))
    ]
    found = put(texts, columns, one_by_one)
    many = replace(found, criteria=tuple(replace(found.criteria[0], criterion=f"criterion {number}") for number in range(3)))
    for one in (found, many):
        said = human_correlation_table(one)
        assert len(said.splitlines()) <= SCREEN + 2 and all(said.count(f"\n{name}  ") >= len(one.criteria) for name in columns)
    assert "other forms" not in human_correlation_table(found) and "other forms" in human_correlation_table(many).splitlines()[-1]


def test_ratings_of_texts_without_a_score_by_every_row_are_left_out_and_counted() -> None:
    columns = {"all": [1.0, 2, 3, 4], "some": [1.0, 2, 3, float("nan")]}
    found = put(texts_of(list("abcd"), [3, 5, 4, 4]), columns, [(f"i{place}", "ann", float(place)) for place in range(4)])
    assert (found.ratings, found.left_out, found.lacking) == (3, 1, {"some": 1})
    with pytest.raises(InputError, match='"i9" is rated, but is not an item'):
        put(texts_of(["a"], [3]), {"m": [1]}, [("i9", "ann", 1)])
