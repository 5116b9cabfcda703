"""Exchanged raters: every exchange by hand beside the draws, and simulated studies in which groups make no difference."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest
from empathy_eval.raters.study import by_rater
from empathy_eval.raters.study.by_rater import TableSelection, null_point, permutation_p_values
from empathy_eval.raters.study.ratings import StudyTable
from empathy_eval.statistics.estimate import Codes
from scipy import stats

from tests.doubles.made_studies import severities, study_of

# All 2,000 take half a minute.
SIMULATIONS = 2000 if os.environ.get("LONG") else 200


def chi_square(table: Codes) -> float:
    kept = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    return float(stats.chi2_contingency(kept, correction=False).statistic)


def exact(counts: Codes, group: Sequence[int], block: Sequence[int], among: Sequence[int]) -> float:
    """The share of all exchanges, within blocks, of raters of some groups whose chi-squared reaches the one seen."""
    kept = np.flatnonzero(np.isin(group, among))
    counts, groups, blocks = counts[kept], np.asarray(group)[kept], np.asarray(block)[kept]

    def statistic(labels: Codes) -> float:
        return chi_square(np.stack([counts[labels == one].sum(axis=0) for one in among]))

    places = [np.flatnonzero(blocks == one) for one in np.unique(blocks)]
    found = []
    for orders in product(*(sorted(set(permutations(groups[one].tolist()))) for one in places)):
        labels = groups.copy()
        for one, order in zip(places, orders, strict=True):
            labels[one] = order
        found.append(statistic(labels))
    return float((np.array(found) >= statistic(groups) - 1e-9).mean())


GROUP, BLOCK = [0, 1, 2] * 3 + [0, 1, 1], [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
COUNTS = np.array(
    [[4, 1, 0], [1, 2, 2], [0, 2, 3], [2, 2, 1], [2, 0, 3], [1, 1, 3], [3, 0, 2], [0, 5, 0], [1, 1, 1], [2, 2, 0], [0, 1, 4], [0, 0, 2]]
)


@cache
def exactly() -> list[float]:
    """By all exchanges what the test below draws."""
    one_and_rest = [np.stack([COUNTS[:, one], COUNTS.sum(axis=1) - COUNTS[:, one]], axis=1) for one in range(3)]
    return [
        exact(COUNTS, GROUP, BLOCK, (0, 1, 2)), exact(one_and_rest[2], GROUP, BLOCK, (0, 1, 2)), exact(COUNTS, GROUP, BLOCK, (0, 2)),
        exact(one_and_rest[0], GROUP, BLOCK, (0, 1)), exact(COUNTS, GROUP, BLOCK, (1, 2)),
    ]  # fmt: skip


@pytest.mark.parametrize("way", ["listed", "permuted", "dealt"])
def test_the_share_of_all_permutations_within_blocks_is_what_draws_come_to(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_rater, "ARRANGEMENTS", 5040 if way == "listed" else 0)
    monkeypatch.setattr(by_rater, "LARGE", 1 if way == "dealt" else 1000)
    draws = 1000 if way == "dealt" else 4000
    tables = [
        TableSelection(),
        TableSelection(categories=2),
        TableSelection(groups=(0, 2)),
        TableSelection(categories=0, groups=(0, 1)),
        TableSelection(groups=(1, 2)),
    ]
    found = permutation_p_values(study_of(COUNTS, GROUP, BLOCK), tables, draws, seed=3)
    wanted = exactly()
    for p, share in zip(found, wanted, strict=True):
        assert p == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / draws) + 1 / draws)


def test_without_blocks_raters_are_permuted_within_the_study_and_scipy_says_the_same() -> None:
    counts, group = COUNTS[[0, 1, 2, 3, 4, 5, 6, 7]], np.array([0, 1] * 4)
    (p,) = permutation_p_values(study_of(counts, group), [TableSelection(categories=2)], 4000, seed=1)
    good = counts[:, 2]
    # All raters gave five ratings, so the largest chi-squared is the largest difference.
    theirs = stats.permutation_test(
        (good[group == 0], good[group == 1]), lambda one, other: abs(one.sum() - other.sum()), alternative="greater"
    )
    assert p == pytest.approx(theirs.pvalue, abs=0.03)


def test_four_blocks_that_all_say_the_same_have_a_p_of_an_eighth_by_hand() -> None:
    # Of 16 exchanges two reach it: as it was, and all blocks the other way round.
    counts, group, block = [[1, 0], [0, 1]] * 4, [0, 1] * 4, [0, 0, 1, 1, 2, 2, 3, 3]
    (p,) = permutation_p_values(study_of(counts, group, block), [TableSelection()], 8000, seed=0)
    assert p == pytest.approx(1 / 8, abs=0.015)
    # Without blocks 2 of the 70 ways to choose four of eight.
    (p,) = permutation_p_values(study_of(counts, group), [TableSelection()], 8000, seed=0)
    assert p == pytest.approx(2 / 70, abs=0.008)


def test_what_others_gave_says_nothing_of_two_groups() -> None:
    other = COUNTS.copy()
    other[np.array(GROUP) == 2] = [0, 0, 9]
    (one,), (same,) = (
        permutation_p_values(study_of(counts, GROUP, BLOCK), [TableSelection(groups=(0, 1))], 500, 0) for counts in (COUNTS, other)
    )
    assert one == same


def test_the_same_is_drawn_whichever_tables_are_asked_for_however_many_are_held_and_in_whatever_order_ratings_stand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = study_of(COUNTS, GROUP, BLOCK)
    half = np.arange(len(study.rater)) % 2 == 0
    tables = [TableSelection(), TableSelection(half), TableSelection(half, categories=1), TableSelection(~half, groups=(0, 1))]
    found = permutation_p_values(study, tables, 700, 5)
    assert found == permutation_p_values(study, tables, 700, 5) != permutation_p_values(study, tables, 700, 6)
    assert found == [permutation_p_values(study, [one], 700, 5)[0] for one in tables]
    monkeypatch.setattr(by_rater, "NUMBERS_HELD", 1)
    assert found == permutation_p_values(study, tables, 700, 5)
    order = np.random.default_rng(0).permutation(len(study.rater))
    mixed = StudyTable(
        study.groups, study.raters, study.items, study.labels, study.group_of, study.block_of,
        study.rater[order], study.item[order], study.category[order],
    )  # fmt: skip
    assert permutation_p_values(mixed, [TableSelection(), TableSelection(half[order])], 700, 5) == found[:2]


def test_draws_as_large_as_what_was_seen_count_as_reaching_it() -> None:
    # Whoever is exchanged, shares of a third stay, which no floating number is.
    assert permutation_p_values(
        study_of([[1, 2]] * 6, [0, 1, 2] * 2, [0] * 3 + [1] * 3), [TableSelection(), TableSelection(groups=(0, 2))], 300, 0
    ) == [1, 1]
    uneven = [[1, 2], [2, 4], [3, 6], [1, 2], [5, 10], [7, 14]]
    assert permutation_p_values(study_of(uneven, [0, 1] * 3), [TableSelection()], 300, 0) == [1]


def test_what_cannot_be_permuted_or_compared_has_no_p() -> None:
    apart = study_of([[1, 2], [2, 1], [1, 2], [2, 1]], [0, 0, 1, 1], [0, 0, 1, 1])
    assert all(map(math.isnan, permutation_p_values(apart, [TableSelection(), TableSelection(groups=(0, 1))], 50, 0))) and math.isnan(
        null_point(apart, 50, 0)
    )
    alike = study_of([[3, 0], [2, 0], [1, 2]], [0, 1, 2])
    none = np.zeros(len(alike.rater), bool)
    found = permutation_p_values(
        alike, [TableSelection(), TableSelection(groups=(0, 1)), TableSelection(none), TableSelection(alike.rater == 0)], 50, 0
    )
    assert not math.isnan(found[0]) and all(map(math.isnan, found[1:]))
    assert all(map(math.isnan, permutation_p_values(alike, [TableSelection()], 0, 0)))


def null_study(rng: np.random.Generator, icc: float, blocked: bool) -> StudyTable:
    """Three groups of 12 raters who differ in severity, and blocks in how they are rated; groups make no difference."""
    block = np.arange(36) // 3
    share = np.clip(severities(rng, 0.5, icc, (36,)) + (rng.normal(0, 0.1, 12)[block] if blocked else 0), 0, 1)
    good = rng.binomial(10, share)
    okay = rng.binomial(10 - good, 0.6)
    return study_of(np.stack([10 - good - okay, okay, good], axis=1), np.arange(36) % 3, block if blocked else None)


@pytest.mark.sampled
@pytest.mark.parametrize("blocked", [False, True])
def test_in_studies_without_an_effect_p_by_rater_is_uniform_and_that_of_chi_squared_is_not(blocked: bool) -> None:
    rng = np.random.default_rng(7)
    tables = [TableSelection(), TableSelection(categories=2), TableSelection(groups=(0, 1))]
    studies = [null_study(rng, 0.2, blocked) for _ in range(SIMULATIONS)]
    by_rater = np.array([permutation_p_values(one, tables, 199, seed) for seed, one in enumerate(studies)]).T
    plain = np.array([stats.chi2.sf(chi_square(one.counts()), 4) for one in studies])
    error = math.sqrt(0.05 * 0.95 / SIMULATIONS)
    for found in by_rater:
        assert stats.kstest(found, "uniform").pvalue > 0.01
        assert abs((found <= 0.05).mean() - 0.05) < 3 * error
    assert stats.kstest(plain, "uniform").pvalue < 1e-6 and (plain <= 0.05).mean() > 0.15


def test_the_point_of_the_null_is_that_of_chi_squared_if_raters_are_alike_and_higher_if_they_differ() -> None:
    rng = np.random.default_rng(1)
    group = np.arange(300) % 5
    alike = study_of(rng.multinomial(10, [0.2, 0.3, 0.5], 300), group)
    assert null_point(alike, 2000, 0) == pytest.approx(stats.chi2.ppf(0.95, 8), rel=0.1)
    good = rng.binomial(10, severities(rng, 0.5, 0.2, (300,)))
    differ = study_of(np.stack([10 - good, good], axis=1), group)
    # Ratings of ten a rater are worth 2.8 times fewer.
    assert null_point(differ, 2000, 0) == pytest.approx(2.8 * stats.chi2.ppf(0.95, 4), rel=0.2)
    assert null_point(differ, 2000, 0, 0.5) < null_point(differ, 2000, 0, 0.95)
