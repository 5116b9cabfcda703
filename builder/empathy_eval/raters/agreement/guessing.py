"""F1 over all thresholds, and what somebody reaches who guesses: why an F1 says little by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.raters.agreement.against_median import AgainstMedian, beside_median, median_sums
from empathy_eval.raters.agreement.bootstrap import Measure, Resampling, ratio
from empathy_eval.raters.agreement.table import Floats, Ratings

KIND, NONE = "that other experts have rated", "neither gives such a rating"


@dataclass(frozen=True)
class AtThreshold:
    """F1 of the one question whether a rating is at least ``threshold``."""

    threshold: float
    f1: Measure


@dataclass(frozen=True)
class F1:
    """F1 of a rater against the median expert: over all values (``macro``), and of the binary ones the least, the mean and the most.

    Of equal ones that of the lowest threshold; None where there is one value, and so no threshold. ``guess_macro`` and ``guess_binary``
    are what those are told to reach, on the same items and thresholds, who draw each of the ``values`` of the scale alike.
    """

    macro: Measure
    least: AtThreshold | None
    mean: Measure
    most: AtThreshold | None
    guess_macro: Measure
    guess_binary: Measure
    values: tuple[float, ...]


def f1_beside_guessing(
    ratings: Ratings, rater: int, experts: Sequence[int], against: AgainstMedian, values: Sequence[float], sample: Resampling
) -> F1:
    """F1 of a rater whose figures ``against`` the median of the (other) experts are known, and what guessing from ``values`` reaches."""
    beside = beside_median(ratings, rater, experts, ratings.counts(experts))
    return f1(against, median_sums(ratings, rater, beside, sample)[:, 3:], ratings.scale, values)


def f1(against: AgainstMedian, sums: Floats, scale: Floats, values: Sequence[float]) -> F1:
    """F1 of a rater and what guessing reaches; intervals are of the same draws as those of ``against``.

    ``sums`` has shape (1 + resamples, 4 * steps): how often the rater gives each value of ``scale``, how often the median is it, how
    often both are, and how often the smaller of the two is it. ``values`` are those that are guessed from.

    What guessing reaches is F1 of the frequencies that are expected: of a value that is the median's in a share p of items, and is
    guessed with probability q, 2 q p / (q + p). Macro, it is the mean over all ``values``, where one that the median never is counts 0.
    Binary, it is the mean over the thresholds at which the rater's own F1 is defined, so that both means are of the same.
    """
    given, median, _, both = np.moveaxis(sums.reshape(len(sums), 4, len(scale)), 1, 0)
    given, median_from, both = (np.cumsum(part[:, ::-1], axis=1)[:, ::-1][:, 1:] for part in (given, median, both))
    binary = ratio(2 * both, given + median_from)
    number = median.sum(axis=1, keepdims=True)
    share, share_from = ratio(median, number), ratio(median_from, number)
    guessed_from = np.array([np.mean(np.array(values) >= value) for value in scale[1:]])
    guess = np.where(np.isfinite(binary), ratio(2 * guessed_from * share_from, guessed_from + share_from), np.nan)
    macro = np.sum(ratio(2 * share, 1 + len(values) * share), axis=1) / len(values)
    items, settings = against.macro_f1.items, against.macro_f1.signature.partition("|")[2]

    def measure(column: Floats, **how: object) -> Measure:
        reason = "there is only one value, and so no threshold" if len(scale) < 2 else NONE
        return Measure.of(column, items, KIND, reason, f"{signature_line(**how)}|{settings}")

    least, most = _ends(against)
    guessing = {"guess": "each-value-alike", "values": len(values), "of": "expected-frequencies"}
    return F1(
        against.macro_f1,
        least,
        measure(_mean(binary), f1="binary", over="thresholds,mean"),
        most,
        measure(macro, f1="macro", **guessing),
        measure(_mean(guess), f1="binary", over="thresholds,mean", **guessing),
        tuple(values),
    )


def _mean(columns: Floats) -> Floats:
    """The mean over the columns that are defined, NaN where none is."""
    return ratio(np.nansum(columns, axis=1), np.sum(np.isfinite(columns), axis=1))


def _ends(against: AgainstMedian) -> tuple[AtThreshold | None, AtThreshold | None]:
    """The thresholds with the least and the most F1; None where none is defined."""
    found = [(one.value, AtThreshold(threshold, one)) for threshold, one in against.binary_f1 if one.value is not None]
    if not found:
        return None, None
    return min(found, key=lambda one: one[0])[1], max(found, key=lambda one: one[0])[1]
