"""F1 over thresholds, and what guessing reaches: fractions by hand, a simulation, and what scikit-learn says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from empathy_eval.raters.agreement.experts import F1, Experts, RaterAgainstMedian
from empathy_eval.raters.agreement.table import RatingTable
from empathy_eval.statistics.agreement import ItemBootstrap
from sklearn.metrics import f1_score


def of(expert: list[float], rater: list[float], values: tuple[float, ...] = (), resamples: int = 0) -> F1:
    """A rater against one expert."""
    table = RatingTable.of((f"{item:05}", name, value) for name, own in (("e", expert), ("r", rater)) for item, value in enumerate(own))
    ratings = table.on("rating")
    beside = RaterAgainstMedian(Experts(ratings, [0], ItemBootstrap.of(ratings.items, resamples, 0)), 1)
    return beside.f1(values or tuple(ratings.scale.tolist()))


def test_guessing_by_hand() -> None:
    # The expert gives 1 in a half, 2 and 3 in a quarter each; who guesses gives each in a third.
    found = of([1, 1, 2, 3], [1, 2, 2, 3])
    third, half, quarter = Fraction(1, 3), Fraction(1, 2), Fraction(1, 4)
    macro = (2 * third * half / (third + half) + 2 * (2 * third * quarter / (third + quarter))) / 3
    # At least 2: guessed in two thirds, the expert's in a half; at least 3: a third and a quarter.
    binary = (2 * 2 * third * half / (2 * third + half) + 2 * third * quarter / (third + quarter)) / 2
    assert macro == Fraction(34, 105) and binary == Fraction(3, 7)
    assert found.guess_macro.value == pytest.approx(float(macro)) and found.guess_binary.value == pytest.approx(float(binary))
    assert list(found.values) == [1, 2, 3] and "guess:each-value-alike|values:3" in found.guess_macro.signature


def test_guessing_from_a_whole_scale_counts_the_values_that_nobody_gives() -> None:
    found = of([2, 2, 3, 3], [2, 3, 3, 3], (1, 2, 3, 4, 5))
    fifth, half = Fraction(1, 5), Fraction(1, 2)
    assert list(found.values) == [1, 2, 3, 4, 5]
    assert found.guess_macro.value == pytest.approx(float(2 * (2 * fifth * half / (fifth + half)) / 5))
    # At least 3 is the one threshold here: three of five values.
    assert found.guess_binary.value == pytest.approx(float(2 * Fraction(3, 5) * half / (Fraction(3, 5) + half)))


@pytest.mark.parametrize("shares", [(0.7, 0.1, 0.1, 0.1), (0.05, 0.15, 0.3, 0.5), (0.25, 0.25, 0.25, 0.25)])
def test_somebody_who_guesses_reaches_what_guessing_should_reach(shares: tuple[float, ...]) -> None:
    rng, items = np.random.default_rng(3), 200_000
    expert, guess = rng.choice(4, items, p=shares), rng.integers(0, 4, items)
    found = of([0, 1, 2, 3], [3, 2, 1, 0])
    expected = of(expert[:20_000].tolist(), guess[:20_000].tolist())
    assert found.values == expected.values
    macro = f1_score(expert, guess, average="macro")
    binary = np.mean([f1_score(expert >= least, guess >= least) for least in (1, 2, 3)])
    # Twenty thousand items: a frequency is known within a hundredth.
    assert expected.guess_macro.value == pytest.approx(macro, abs=0.01)
    assert expected.guess_binary.value == pytest.approx(binary, abs=0.01)
    assert expected.macro.value == pytest.approx(macro, abs=0.01) and expected.mean.value == pytest.approx(binary, abs=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_binary_f1_over_thresholds_is_that_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    expert = rng.integers(1, 6, 60)
    rater = np.clip(expert + rng.integers(-1, 2, 60), 1, 5)
    found = of(expert.tolist(), rater.tolist(), resamples=20)
    by_threshold = {least: f1_score(expert >= least, rater >= least) for least in (2, 3, 4, 5)}
    assert found.mean.value == pytest.approx(np.mean(list(by_threshold.values())))
    assert found.least and found.most
    least, most = min(by_threshold, key=by_threshold.__getitem__), max(by_threshold, key=by_threshold.__getitem__)
    assert (found.least.threshold, found.most.threshold) == (least, most)
    assert found.least.f1.value == pytest.approx(by_threshold[least]) and found.most.f1.value == pytest.approx(by_threshold[most])
    assert all(one.low is not None and one.low <= (one.value or 0) <= (one.high or 0) for one in (found.mean, found.guess_macro))


def test_one_value_has_no_threshold_and_says_so() -> None:
    found = of([2, 2], [2, 2])
    assert (found.least, found.most, found.mean.value, found.guess_binary.value) == (None, None, None, None)
    assert found.mean.reason == "there is only one value, and so no threshold" == found.guess_binary.reason
    assert found.guess_macro.value == 1
