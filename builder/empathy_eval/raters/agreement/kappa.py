"""Cohen's kappa between two columns of ratings, from sums over items."""

from __future__ import annotations

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.raters.agreement.bootstrap import Measure, Resampling, ratio
from empathy_eval.raters.agreement.table import Codes, Floats

WEIGHTS = ("plain", "linear", "quadratic")


def distances(scale: Floats) -> Floats:
    """How far two values are apart by weight, shape (3, steps, steps): different or not, the difference, its square."""
    gap = np.abs(scale[:, None] - scale)
    return np.stack([gap > 0, gap, gap**2])


def kappa_sums(items: Codes, one: Codes, other: Codes, scale: Floats, sample: Resampling, shares: Floats | None = None) -> Floats:
    """By unit: the disagreement by weight, then how often each of the two gave each value; shape (units, 3 + 2 steps)."""
    apart = distances(scale)[:, one, other]
    seen = sample.total(items, apart if shares is None else apart * shares)
    return np.hstack([seen, *(sample.tally(items, column, len(scale), shares) for column in (one, other))])


def kappas(sums: Floats, scale: Floats) -> Floats:
    """Kappa by weight of each row of sums, from shape (m, 3 + 2 steps or more) to shape (3, m).

    Cohen 1968: 1 - observed / expected disagreement, the latter as if the two rated independently, each with their own
    frequencies. The weights are distances of values, not of places, so a value that nobody gave still counts as a step of the scale.
    NaN where the expected disagreement is 0.
    """
    steps = len(scale)
    one, other = sums[:, 3 : 3 + steps], sums[:, 3 + steps : 3 + 2 * steps]
    expected = np.sum(one @ distances(scale) * other, axis=2)
    return 1 - ratio(one.sum(axis=1) * sums[:, :3].T, expected)


def kappa_measures(values: Floats, items: int, settings: str) -> dict[str, Measure]:
    """A measure for each weight, from shape (3, 1 + resamples)."""
    reason = "both give one and the same rating to all items in common"
    return {
        weight: Measure.of(row, items, "in common", reason, signature_line(kappa="cohen", weights=weight) + f"|{settings}")
        for weight, row in zip(WEIGHTS, values, strict=True)
    }
