"""What ratings can show: numbers of a study that was run, second opinions, inverses, and plans with numbers that no study has."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.raters.study.by_rater import TableSelection, permutation_p_values
from empathy_eval.raters.study.power import (
    StudyPlan,
    design_effect,
    null_gain_interval,
    power_reached,
    ratings_needed,
    smallest_effect,
    study_plan,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.doubles.made_studies import severities, study_of


def plan(effect: float, groups: int, categories: int, **others: Any) -> StudyPlan:
    return study_plan(effect, groups=groups, categories=categories, **others)


def test_a_published_study_needed_253_ratings_of_five_groups_and_207_of_two_categories() -> None:
    assert (ratings_needed(0.3, 8, 0.05, 0.95), ratings_needed(0.3, 4, 0.05, 0.95)) == (253, 207)
    assert power_reached(253, 0.3, 8) == pytest.approx(0.95026, abs=5e-6) and power_reached(252, 0.3, 8) == pytest.approx(0.94937, abs=5e-6)


@pytest.mark.parametrize(
    ("w", "df", "alpha", "power"), [(0.3, 8, 0.05, 0.95), (0.1, 2, 0.01, 0.8), (0.5, 1, 0.05, 0.9), (0.05, 20, 0.1, 0.5)]
)
def test_statsmodels_says_the_same(w: float, df: int, alpha: float, power: float) -> None:
    from statsmodels.stats.power import GofChisquarePower

    theirs = GofChisquarePower()
    wanted = theirs.solve_power(effect_size=w, n_bins=df + 1, alpha=alpha, power=power)
    assert ratings_needed(w, df, alpha, power) == math.ceil(wanted)
    assert power_reached(100, w, df, alpha) == pytest.approx(theirs.power(w, 100, alpha, n_bins=df + 1), abs=1e-9)
    assert smallest_effect(wanted, df, alpha, power) == pytest.approx(w, abs=1e-6)


def test_with_one_degree_of_freedom_power_is_that_of_a_normal_deviate() -> None:
    # Noncentral chi-squared of one degree is the square of a normal deviate about sqrt(N) w.
    shift, point = math.sqrt(100) * 0.2, stats.norm.isf(0.025)
    assert power_reached(100, 0.2, 1) == pytest.approx(stats.norm.sf(point - shift) + stats.norm.cdf(-point - shift), abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(
    ratings=st.integers(1, 10**7),
    df=st.integers(1, 40),
    alpha=st.sampled_from([0.001, 0.05, 0.2]),
    power=st.sampled_from([0.5, 0.8, 0.999]),
)
def test_the_smallest_effect_and_the_ratings_it_needs_are_inverses(ratings: int, df: int, alpha: float, power: float) -> None:
    w = smallest_effect(ratings, df, alpha, power)
    assert ratings_needed(w, df, alpha, power) == ratings
    assert power_reached(ratings, w, df, alpha) == pytest.approx(power, abs=1e-9)


def test_a_plan_makes_whole_and_equal_groups_of_enough_raters() -> None:
    found = plan(0.3, 5, 3, per_rater=10, icc=0.1, share=0.5)
    # 253 ratings times 1 + 9 * 0.1 are 480.7; 481 are 9.62 raters of ten in each of five groups.
    assert (found.df, found.independent, found.clustered) == (8, 253, 481) and found.design_effect == pytest.approx(1.9)
    assert (found.raters_a_group, found.raters, found.ratings, found.items) == (10, 50, 500, 100)
    assert found.note and "40 or more raters per group" in found.note and "effect:0.3|" in found.signature
    reach = stats.t.ppf(0.975, 18) * math.sqrt(2 * 1.9 / 100)
    assert found.low == pytest.approx(100 * math.expm1(-reach)) and found.high == pytest.approx(100 * math.expm1(reach))
    assert found.to_json()["share"] == 0.5 and plan(0.3, 5, 3).low is None
    large = plan(0.05, 2, 2, per_rater=5, icc=0)
    assert (large.note, large.clustered) == (None, large.independent) and plan(0.9, 2, 2).raters_a_group == 2


def test_simulated_studies_as_planned_find_the_effect_about_as_often_as_planned_and_as_if_independent_far_less() -> None:
    rng, planned = np.random.default_rng(2), plan(0.2, 2, 2, power=0.8, icc=0.2)

    def found(raters: int) -> float:
        """In how many of 300 studies the p by rater of shares 0.4 and 0.6, which are an effect of 0.2, is small."""
        hits = 0
        for seed in range(300):
            good = rng.binomial(10, np.concatenate([severities(rng, share, 0.2, (raters,)) for share in (0.4, 0.6)]))
            study = study_of(np.stack([10 - good, good], axis=1), np.repeat([0, 1], raters))
            hits += permutation_p_values(study, [TableSelection()], 199, seed)[0] <= 0.05
        return hits / 300

    assert found(planned.raters_a_group) == pytest.approx(0.8, abs=0.07)
    assert found(math.ceil(planned.independent / 20)) < 0.6


def test_a_rating_is_never_counted_as_more_than_an_independent_one() -> None:
    assert design_effect(10, -0.05) == 1 and design_effect(1, 0.5) == 1 and design_effect(10, 0.2) == pytest.approx(2.8)
    near, far = null_gain_interval(0.5, 200, 10, 0), null_gain_interval(0.5, 200, 10, 0.2)
    assert far[0] < near[0] < 0 < near[1] < far[1]


def test_numbers_that_no_study_has_are_reported_all_at_once() -> None:
    with pytest.raises(InputError) as told:
        plan(-1, 1, 12, alpha=0, power=1, per_rater=0, icc=1.5, share=float("nan"))
    assert sorted(problem.where for problem in told.value.problems) == [
        "alpha", "categories", "effect", "groups", "icc", "per-rater", "power", "share",
    ]  # fmt: skip
    assert '"-1" is not an effect size w' in str(told.value) and '"nan" is not a probability' in str(told.value)
    with pytest.raises(InputError, match='"0.05" is not above alpha'):
        plan(0.3, 5, 3, power=0.05)
    with pytest.raises(InputError, match='"1.5" is above 1.414, the largest effect of 5 groups and 3 categories'):
        plan(1.5, 5, 3)
    for odd in (float("nan"), float("inf"), "0.3", True, 1e-9):
        with pytest.raises(InputError, match="effect"):
            plan(odd, 5, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("odd", "where"),
    [
        ({"effect": 1e-200}, "effect"), ({"effect": 1e-160}, "effect"), ({"power": 0.05000000000000001}, "power"),
        ({"power": 1 - 1e-16}, "power"), ({"alpha": 5e-324}, "alpha"), ({"share": 1e-300}, "share"), ({"share": "0.5"}, "share"),
    ],
)  # fmt: skip
def test_numbers_that_are_all_rounding_are_refused_in_words(odd: dict[str, float], where: str) -> None:
    with pytest.raises(InputError) as caught:
        plan(**{"effect": 0.3, "groups": 5, "categories": 3} | odd)  # type: ignore[arg-type]
    assert [one.where for one in caught.value.problems] == [where]


def test_the_least_and_largest_numbers_that_are_taken_have_a_plan() -> None:
    for effect, power in ((1e-6, 2e-6), (1e-6, 1 - 1e-6), (1.0, 2e-6), (1.0, 1 - 1e-6)):
        assert plan(effect, 2, 2, alpha=1e-6, power=power).independent >= 1


def test_a_share_that_hardly_anybody_gives_has_no_interval_and_it_says_why() -> None:
    rare = plan(1.0, 3, 3, share=0.001)
    assert (rare.low, rare.high) == (None, None) and rare.note and "worth 0.011 independent ones, below 5" in rare.note
    # The widest interval there is: two raters a group, whose ratings of the category are worth five.
    assert null_gain_interval(0.5, 2, 5, 0)[1] < 1500
