"""Metrics beside each other: fractions by hand, and simulated metrics whose difference is known."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pytest
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings, ScoredPairs, compare_metrics
from empathy_eval.evaluation.inversion.results import MetricComparison
from empathy_eval.metrics.protocol import Array
from empathy_eval.statistics.estimate import Clusters, PairwiseComparisons
from scipy import stats

CHANCE = ResamplingSettings(resamples=200, exchanges=199, seed=1)
LONG = bool(os.environ.get("LONG"))
# All 2,000 take minutes.
SIMULATIONS = 2000 if LONG else 100


def rated(*duels: tuple[Sequence[float], Sequence[float]]) -> ScoredPairs:
    return ScoredPairs(PairwiseComparisons([(np.array(kind, dtype=float), np.array(cold, dtype=float)) for kind, cold in duels]), "s")


def test_the_difference_of_two_metrics_by_hand_over_the_pairs_that_both_have() -> None:
    nan = float("nan")
    one = rated(([2, 2, 1, 9], [1, 1, 1, nan]))
    other = rated(([5, 1, 4, 1], [1, 5, 4, 5]))
    (found,) = compare_metrics("near", {"one": one, "other": other}, Clusters.of(list("xyzx"), [1, 1, 1, 1]), CHANCE)
    assert (found.first, found.other, found.contrast, found.pairs) == ("one", "other", "near", 3)
    # Won, won, tied against won, lost, tied.
    assert found.accuracy.value == pytest.approx(5 / 6 - 1 / 2, abs=1e-6)
    # Variances within the cells of one: 2/9 and 0, of the other: 26/9 and 26/9; mean differences 2/3 and 0.
    assert found.effect and found.effect.value == pytest.approx((2 / 3) / (1 / 9) ** 0.5, abs=1e-6)


def test_two_metrics_that_are_one_do_not_differ_and_a_single_dialogue_has_no_interval() -> None:
    same = rated(([1, 3, 2, 2], [2, 1, 1, 2]))
    (found,) = compare_metrics("near", {"a": same, "b": same}, Clusters.of(list("wxyz"), [1] * 4), CHANCE)
    gap = found.accuracy
    assert (gap.value, gap.low, gap.high, gap.p, gap.p_corrected) == (0, 0, 0, 1, 1) and found.effect and found.effect.p == 1
    (alone,) = compare_metrics("near", {"a": same, "b": same}, Clusters.of(list("xxxx"), [1] * 4), CHANCE)
    assert (alone.accuracy.low, alone.accuracy.p) == (None, None)


def test_p_values_are_corrected_over_all_comparisons_and_two_without_a_common_pair_are_left_out() -> None:
    rng, nan = np.random.default_rng(1), float("nan")
    many = {name: rated((rng.normal(size=30).tolist(), rng.normal(size=30).tolist())) for name in "abc"}
    half = rated(([1.0] * 2 + [nan] * 28, [0.0] * 2 + [nan] * 28))
    rest = rated(([nan] * 2 + [1.0] * 28, [nan] * 2 + [0.0] * 28))
    found = compare_metrics("near", {**many, "half": half, "rest": rest}, Clusters.of([str(one) for one in range(30)], [1] * 30), CHANCE)
    twos = [(one.first, one.other) for one in found]
    assert len(twos) == 9 and ("half", "rest") not in twos and twos[0] == ("a", "b")
    tested = [gap for one in found for gap in (one.accuracy, one.effect) if gap and gap.p is not None]
    assert min(gap.p_corrected or 0 for gap in tested) == pytest.approx(min(1, len(tested) * min(gap.p or 0 for gap in tested)))
    alone = compare_metrics("near", {name: many[name] for name in "ab"}, Clusters.of([str(one) for one in range(30)], [1] * 30), CHANCE)
    assert (alone[0].accuracy.value, alone[0].accuracy.low, alone[0].accuracy.p) == (
        found[0].accuracy.value, found[0].accuracy.low, found[0].accuracy.p,
    )  # fmt: skip


def simulated(seed: int, better: float, *, dialogues: int, resamples: int = 2, exchanges: int = 1) -> MetricComparison:
    """Two metrics over dialogues of one to four pairs in 30 scenarios; both read a text alike in part, and dialogues differ.

    Resamples and exchanges are drawn apart: who looks at an interval needs none of these, who looks at a p-value none of those.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, dialogues)
    members = np.repeat(np.arange(dialogues), sizes)
    common, by_dialogue = rng.normal(size=(2, len(members))), rng.normal(0, 0.5, dialogues)[members]

    def scores(shift: float) -> tuple[Array, Array]:
        kind, cold = common + rng.normal(size=(2, len(members)))
        return kind + 0.5 + shift + by_dialogue, cold

    many = {"one": ScoredPairs(PairwiseComparisons([scores(better)]), "s"), "other": ScoredPairs(PairwiseComparisons([scores(0.0)]), "s")}
    clusters = Clusters.of([str(one) for one in members], (members % 30).tolist())
    return compare_metrics("near", many, clusters, ResamplingSettings(resamples, exchanges, seed))[0]


@pytest.mark.sampled
def test_p_values_are_uniform_where_two_metrics_are_equally_good() -> None:
    found = [simulated(seed, 0.0, dialogues=1000, exchanges=199) for seed in range(SIMULATIONS)]
    for values in ([one.accuracy.p for one in found], [one.effect.p for one in found if one.effect]):
        assert stats.kstest(values, "uniform").pvalue > 0.01


@pytest.fixture(scope="module")
def truth() -> MetricComparison:
    """What very many dialogues give."""
    return simulated(10**6, 0.4, dialogues=200_000)


@pytest.mark.e2e
@pytest.mark.sampled
@pytest.mark.parametrize("dialogues", [60, 300])
def test_intervals_cover_the_difference_of_two_metrics(dialogues: int, truth: MetricComparison) -> None:
    found = [simulated(seed, 0.4, dialogues=dialogues, resamples=400) for seed in range(SIMULATIONS)]
    # Of 100 simulations 95 % vary by 4.4 points.
    least, most = (0.935, 0.965) if LONG else (0.88, 0.995)
    for gaps, true in (
        ([one.accuracy for one in found], truth.accuracy.number),
        ([one.effect for one in found if one.effect], truth.effect.number if truth.effect else 0.0),
    ):
        covered = np.mean([one.low <= true <= one.high for one in gaps if one.low is not None and one.high is not None])
        assert least <= covered <= most, covered
