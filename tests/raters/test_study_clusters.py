"""Raters as the unit of chance: fractions by hand, second opinions, and simulated studies whose gains are known."""

from __future__ import annotations

import math
import os
from itertools import product

import numpy as np
import pytest
from empathy_eval.raters.study.by_rater import clustered_by_block, gain_interval, intraclass_correlation, log_ratio
from empathy_eval.statistics.estimate import Floats
from scipy import special, stats

from tests.doubles.made_studies import severities, study_of

LONG = bool(os.environ.get("LONG"))
STUDIES = 2000
SHARES = [(0.2, 0.2), (0.2, 0.5), (0.5, 0.7), (0.7, 0.2)] + ([(0.5, 0.5), (0.3, 0.6)] if LONG else [])
SIZES = [(40, 40), (40, 60)] + ([(60, 60), (40, 200), (100, 100)] if LONG else [])
# Blocks with raters of both groups, those of one group alone, and raters of a group in a block.
BLOCKS = [(40, 0, 1), (40, 20, 1)] + ([(60, 0, 1), (40, 0, 3)] if LONG else [])


def test_the_log_of_a_ratio_by_hand() -> None:
    given, side = np.array([2, 1, 0, 2, 1]), np.array([-1, -1, -1, 1, 1])
    value, error, freedom = log_ratio(given, np.full(5, 2), side, None)
    # Shares 1/2 and 3/4. Parts of the baseline: 1/3, 0, -1/3, over 1 - 1/3: 1/2, 0, -1/2; 2/3 of their squares is 1/3.
    # Parts of the group: 1/6, -1/6, over 1 - 1/2: 1/3, -1/3; 1/2 of their squares is 1/9. Together 4/9.
    assert value == pytest.approx(math.log(3 / 2)) and error == pytest.approx(2 / 3)
    # (4/9)² / ((1/3)²/2 + (1/9)²/1).
    assert freedom == pytest.approx(32 / 11)
    found = gain_interval(study_of(np.stack([2 - given, given], axis=1), [0, 0, 0, 1, 1]), 1, 1)
    reach = stats.t.ppf(0.975, 32 / 11) * 2 / 3
    assert found == pytest.approx((100 * (1.5 * math.exp(-reach) - 1), 100 * (1.5 * math.exp(reach) - 1)))


def test_the_log_of_a_ratio_within_blocks_by_hand() -> None:
    given, side = np.array([2, 1, 0, 2, 1, 2]), np.array([-1] * 3 + [1] * 3)
    value, error, freedom = log_ratio(given, np.full(6, 2), side, np.array([7, 8, 9] * 2))
    # Shares 1/2 and 5/6; parts of the baseline 1/2, 0, -1/2, of the group 1/10, -1/5, 1/10; by block their differences.
    assert value == pytest.approx(math.log(5 / 3)) and freedom == 2
    assert error == pytest.approx(math.sqrt(2 / 3 * (0.4**2 + 0.2**2 + 0.6**2)))


@pytest.mark.parametrize("blocked", [False, True])
def test_statsmodels_sandwich_of_a_poisson_model_says_the_same_but_for_its_correction(blocked: bool) -> None:
    from statsmodels.genmod.families import Poisson
    from statsmodels.genmod.generalized_linear_model import GLM

    rng = np.random.default_rng(3)
    given, side, block = rng.integers(0, 11, 60), np.tile([-1, 1], 30), np.arange(60) // 2
    value, error, _ = log_ratio(given, np.full(60, 10), side, block if blocked else None)
    clusters = {"groups": block if blocked else np.arange(60), "use_correction": False}
    model = GLM(given, np.stack([np.ones(60), side == 1], axis=1), family=Poisson()).fit(cov_type="cluster", cov_kwds=clusters)
    # Ours is the jackknife's, over 30 clusters in each group.
    assert value == pytest.approx(model.params[1]) and error == pytest.approx(model.bse[1] * math.sqrt(30 / 29))


def covered(found: tuple[Floats, Floats, Floats], truth: float) -> float:
    """In how many of simulated studies, percent, the 95 % interval has the true value."""
    value, error, freedom = found
    return 100 * float((abs(value - truth) <= stats.t.isf(0.025, freedom) * error).mean())


@pytest.mark.sampled
@pytest.mark.parametrize("per_rater", ["ten", "one to nineteen"])
@pytest.mark.parametrize("size", SIZES)
def test_intervals_by_rater_cover_95_percent_in_simulated_studies(size: tuple[int, int], per_rater: str) -> None:
    rng = np.random.default_rng(11)
    side = np.repeat([-1, 1], size)
    for icc, shares in product((0.02, 0.1, 0.3), SHARES):
        ratings = np.full(len(side), 10) if per_rater == "ten" else rng.integers(1, 20, len(side))
        severe = [severities(rng, share, icc, (STUDIES, number)) for share, number in zip(shares, size, strict=True)]
        given = rng.binomial(ratings, np.concatenate(severe, axis=1))
        truth = math.log(shares[1] / shares[0])
        assert 93.5 <= covered(log_ratio(given, ratings, side, None), truth) <= 96.5, (icc, shares)
        if icc == 0.3 and per_rater == "ten":
            # If all ratings were independent, each would be a rater of one rating.
            share = [given[:, side == one].sum(axis=1) / (10 * number) for one, number in zip((-1, 1), size, strict=True)]
            error = np.sqrt(sum((1 - one) / (one * 10 * number) for one, number in zip(share, size, strict=True)))
            assert covered((np.log(share[1] / share[0]), error, np.full(STUDIES, 1e6)), truth) < 85


@pytest.mark.sampled
@pytest.mark.parametrize(("blocks", "alone", "seats"), BLOCKS)
def test_intervals_by_block_cover_95_percent_where_raters_of_a_block_saw_the_same_items(blocks: int, alone: int, seats: int) -> None:
    rng = np.random.default_rng(12)
    # Blocks that only the group has stand at the end.
    block = np.concatenate([np.tile(np.arange(blocks), 2 * seats), np.arange(blocks, blocks + alone)])
    side = np.repeat([-1, 1], [blocks * seats, blocks * seats + alone])
    by_raters = []
    for (rater, items), shares in product(((0.05, 0.05), (0.2, 0.1), (0.5, 0.3)), SHARES):
        # Probits whose variances between raters and between blocks are these: the mean of a share stays what it is.
        point = special.ndtri(np.where(side < 0, *shares)) * math.sqrt(1 + rater + items)
        of_blocks = rng.normal(0, math.sqrt(items), (STUDIES, blocks + alone))[:, block]
        given = rng.binomial(10, special.ndtr(point + of_blocks + rng.normal(0, math.sqrt(rater), (STUDIES, len(side)))))
        truth, ratings = math.log(shares[1] / shares[0]), np.full(len(side), 10)
        assert 93.5 <= covered(log_ratio(given, ratings, side, block), truth) <= 96.5, (rater, items, shares)
        by_raters.append(covered(log_ratio(given, ratings, side, None), truth))
    # Without their blocks, what raters have in common counts as chance, and most intervals are too wide.
    assert max(by_raters) > 97


def test_blocks_are_clusters_where_there_are_several() -> None:
    counts, group = [[1, 1], [2, 0], [0, 2], [1, 1], [0, 2], [1, 1]], [0, 1] * 3
    plain, single, blocked = study_of(counts, group), study_of(counts, group, [0] * 6), study_of(counts, group, [0, 0, 1, 1, 2, 2])
    assert (clustered_by_block(plain), clustered_by_block(single), clustered_by_block(blocked)) == (False, False, True)
    assert gain_interval(plain, 1, 1) == gain_interval(single, 1, 1) != gain_interval(blocked, 1, 1)
    some = blocked.rater < 5
    assert gain_interval(blocked, 1, 1, some) == gain_interval(blocked.subset(some), 1, 1)


def test_why_a_gain_has_no_interval() -> None:
    group = [0, 0, 1, 1]
    study = study_of([[1, 1], [2, 0], [2, 0], [2, 0]], group)
    assert gain_interval(study, 1, 1) == 'no interval: "b" was never given "Okay" here'
    assert gain_interval(study, 1, 0, study.rater != 3) == 'no interval: one rater of "b" has ratings here'
    assert gain_interval(study, 1, 0, study.rater < 2) == 'no interval: no rater of "b" has ratings here'
    assert (
        gain_interval(study_of([[2, 4], [1, 2], [3, 3], [1, 1]], group), 1, 0) == "no interval: raters do not differ in this category here"
    )
    apart = study_of([[2, 4], [1, 1], [3, 3], [1, 2]], group, [0, 1, 1, 2])
    assert gain_interval(apart, 1, 0) == 'no interval: fewer than two blocks have ratings of "b" and of "a" here'
    # A group of which all is one category has no spread of its own, and one whose shares are far apart a very wide interval.
    found = gain_interval(study_of([[2, 4], [1, 1], [3, 0], [1, 0]], group), 1, 0)
    assert not isinstance(found, str) and found[0] < 100 * (1 / (3 / 8) - 1) < found[1] < math.inf


def test_the_intraclass_correlation_by_hand() -> None:
    # Three raters of two ratings: shares 1, 1/2, 0. B = 2 (1/4 + 0 + 1/4) / 2 = 1/2; W = (2 1/2 1/2) / 3 = 1/6; (B - W) / (B + W) = 1/2.
    found = intraclass_correlation(study_of([[0, 2], [1, 1], [2, 0], [5, 5]], [0, 0, 0, 1]), 0, 1)
    assert (found.group, found.category, found.icc, found.ratings_a_rater, found.design_effect) == ("a", "Okay", 0.5, 2, 1.5)
    # Ratings 1, 2, 3 of which 1, 1, 0 are: share 1/3. B = (4/9 + 2/36 + 3/9) / 2 = 5/12, W = (1/2) / 3 = 1/6, m0 = (6 - 14/6) / 2 = 11/6.
    uneven = intraclass_correlation(study_of([[0, 1], [1, 1], [3, 0]], [0, 0, 0]), 0, 1)
    assert uneven.icc == pytest.approx((5 / 12 - 1 / 6) / (5 / 12 + 5 / 6 * 1 / 6)) == pytest.approx(9 / 20)
    # A rating stands, in the mean, among 14/6 of its rater's.
    assert uneven.ratings_a_rater == pytest.approx(7 / 3) and uneven.design_effect == pytest.approx(1 + 4 / 3 * 9 / 20)
    assert "icc:one-way-anova" in uneven.signature


def test_scipy_analysis_of_variance_says_the_same_and_simulated_raters_have_the_correlation_they_were_made_with() -> None:
    rng = np.random.default_rng(4)
    ratings = rng.integers(2, 15, 400)
    good = rng.binomial(ratings, severities(rng, 0.4, 0.15, (400,)))
    found = intraclass_correlation(study_of(np.stack([ratings - good, good], axis=1), [0] * 400), 0, 1)
    between_to_within = stats.f_oneway(*(np.repeat([1, 0], [one, of - one]) for one, of in zip(good, ratings, strict=True))).statistic
    even = (ratings.sum() - (ratings**2).sum() / ratings.sum()) / 399
    assert found.icc == pytest.approx((between_to_within - 1) / (between_to_within + even - 1)) and found.icc == pytest.approx(
        0.15, abs=0.04
    )


def test_a_negative_correlation_is_reported_and_makes_no_rating_counted_as_more_than_one() -> None:
    found = intraclass_correlation(study_of([[5, 5]] * 4, [0] * 4), 0, 0)
    assert found.icc == pytest.approx(-1 / 9) and found.design_effect == 1


def test_why_there_is_no_correlation() -> None:
    assert intraclass_correlation(study_of([[1, 2], [1, 2]], [0, 1]), 1, 0).why == "one rater does not show how raters differ"
    assert intraclass_correlation(study_of([[1, 2], [0, 0]], [0, 1]), 1, 0).why == "nobody rated"
    once = intraclass_correlation(study_of([[1, 0], [0, 1]], [0, 0]), 0, 0)
    assert once.why and "each rater gave one rating" in once.why and (once.icc, once.design_effect, once.ratings_a_rater) == (None, None, 1)
    assert (
        intraclass_correlation(study_of([[3, 0], [2, 0]], [0, 0]), 0, 0).why
        == intraclass_correlation(study_of([[3, 0], [2, 0]], [0, 0]), 0, 1).why
        == "all ratings are equal in this category"
    )


@pytest.mark.parametrize("few", [10, 5, 3])
def test_intervals_cover_95_percent_of_an_added_group_that_is_in_few_of_the_blocks(few: int) -> None:
    rng = np.random.default_rng(13)
    block, side = np.concatenate([np.arange(200), np.arange(few)]), np.repeat([-1, 1], [200, few])
    of_blocks = rng.normal(0, math.sqrt(0.1), (STUDIES, 200))[:, block]
    point = special.ndtri(0.5) + of_blocks + rng.normal(0, math.sqrt(0.2), (STUDIES, 200 + few))
    found = log_ratio(rng.binomial(10, special.ndtr(point)), np.full(200 + few, 10), side, block)
    assert covered(found, 0.0) >= 93.5
    assert covered((found[0], found[1], np.full(STUDIES, 199.0)), 0.0) < 93.5
