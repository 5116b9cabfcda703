"""The smallest accuracy and effect that a release could have shown: by hand, and by simulated releases."""

from __future__ import annotations

import numpy as np
import pytest
from empathy_eval.design.contrasts import PAIRS, TWO_BY_TWO
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings, accuracies, detectable_effect
from empathy_eval.evaluation.inversion.results import Difference, MetricRow
from empathy_eval.statistics.estimate import Clusters, Estimate


def row(name: str, accuracy: Estimate, effect: Estimate, better: bool | None = True) -> MetricRow:
    return MetricRow(name, "s", None, {}, {"stance": Difference(0.1, accuracy=accuracy, effect=effect)}, 100, better)


def test_without_an_interval_pairs_are_taken_as_independent_by_hand() -> None:
    found = detectable_effect([], PAIRS[0], 100)
    # 2.801581 standard errors: of one half, and of the square root of 2, over 10.
    assert found.pairs == 100 and found.accuracy == pytest.approx(0.5 + 0.2801581 / 2, abs=1e-6)
    assert found.effect == pytest.approx(0.396203, abs=1e-5)
    # Two duels a pair.
    both = detectable_effect([], TWO_BY_TWO[0], 50)
    assert (both.accuracy, both.effect) == (found.accuracy, found.effect)
    assert detectable_effect([], PAIRS[0], 1).accuracy == 1


def test_the_widest_interval_of_a_metric_with_a_better_direction_counts() -> None:
    wide, narrow = Estimate(0.6, 0.4, 0.8), Estimate(0.6, 0.59, 0.61)
    found = detectable_effect(
        [row("a", wide, narrow), row("b", narrow, wide), row("length", Estimate(0.5, 0.0, 1.0), wide, None)], TWO_BY_TWO[0], 10**6
    )
    assert found.accuracy == pytest.approx(0.5 + 2.801581 * 0.2 / 1.959964, abs=1e-6)
    assert found.effect == pytest.approx(2.801581 * 0.2 / 1.959964, abs=1e-6)


@pytest.mark.e2e
def test_of_releases_with_the_smallest_accuracy_four_in_five_show_it() -> None:
    pairs = 400
    true, shown = detectable_effect([], PAIRS[0], pairs).accuracy, 0
    clusters = Clusters.of([str(one) for one in range(pairs)], [1] * pairs)
    for seed in range(300):
        won = np.random.default_rng(seed).random(pairs) < true
        (one,) = accuracies([won.astype(float)], clusters, ResamplingSettings(200, 0, seed))
        shown += one.low is not None and one.low > 0.5
    assert 0.74 <= shown / 300 <= 0.88, shown
