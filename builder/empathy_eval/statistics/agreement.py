"""Coefficients of agreement (Cohen's and Fleiss' kappa, Krippendorff's alpha) with bootstrap intervals over items; Wilson's interval."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from empathy_eval.base.hashing import derived_random, signature_line
from empathy_eval.statistics.estimate import CONFIDENCE, Codes, Estimate, Floats, Z, rounded, sums_by

# Where there are more items, random groups of equal size are drawn instead: the work no longer grows with the items, and that many
# groups know the spread of a sum within one part in sixty, which is closer than a thousand resamples know a percentile.
UNITS = 2000


@dataclass(frozen=True)
class ItemBootstrap:
    """Bootstrap over items: every figure uses the same draws, so figures can be compared resample by resample.

    ``unit`` is the unit of each item: the item itself, or its group. ``weights`` has shape (1 + resamples, units): how often each unit
    is drawn, and first the table itself, where each counts once.
    """

    unit: Codes
    weights: Floats
    signature: str

    @classmethod
    def of(cls, items: int, resamples: int, seed: int) -> ItemBootstrap:
        """Draws for items in the order of their names; the same for the same numbers."""
        rng = np.random.default_rng(derived_random(seed, "agreement").getrandbits(64))
        units = min(items, UNITS)
        unit = np.arange(items) if units == items else rng.permutation(items) * units // items
        weights = np.ones((1 + resamples, units))
        for row in weights[1:]:
            row[:] = np.bincount(rng.integers(units, size=units), minlength=units)
        line = signature_line(
            interval="percentile", level=CONFIDENCE, resamples=resamples, seed=seed,
            unit="item" if units == items else "group-of-items", units=units, numpy=np.__version__,
        )  # fmt: skip
        return cls(unit, weights, line)

    def tally(self, items: Codes, classes: Codes, number: int, shares: Floats | None = None) -> Floats:
        """How often each class occurs in each unit, shape (units, number); entries may count by shares."""
        units = self.weights.shape[1]
        flat = np.bincount(self.unit[items] * number + classes, weights=shares, minlength=units * number)
        return flat.reshape(units, number).astype(np.float64)

    def total(self, items: Codes, columns: Iterable[Floats]) -> Floats:
        """Sums by unit of columns that belong to items, shape (units, columns)."""
        return sums_by(self.unit[items], columns, self.weights.shape[1])

    def resample(self, sums: Floats) -> Floats:
        """Sums over the table and over each resample, from shape (units, k) to shape (1 + resamples, k)."""
        return np.asarray(self.weights @ sums)

    def totals(self, items: Codes, columns: Iterable[Floats]) -> Floats:
        """Sums over the table and over each resample of columns that belong to items, shape (1 + resamples, columns)."""
        return self.resample(self.total(items, columns))

    def line(self, **settings: object) -> str:
        """The settings of a figure, and after them those of its interval."""
        return f"{signature_line(**settings)}|{self.signature}"


def ratio(above: Floats, below: Floats) -> Floats:
    """Returns a quotient, NaN where the divisor is not above 0."""
    return np.asarray(np.divide(above, below, out=np.full(np.broadcast(above, below).shape, np.nan), where=below > 0))


WEIGHTS = ("plain", "linear", "quadratic")


def distances(scale: Floats) -> Floats:
    """Distances of two values by weight, shape (3, steps, steps): 1 where they differ, the difference, its square."""
    gap = np.abs(scale[:, None] - scale)
    return np.stack([gap > 0, gap, gap**2])


def kappa_sums(items: Codes, first: Codes, second: Codes, scale: Floats, sample: ItemBootstrap, shares: Floats | None = None) -> Floats:
    """Sums by unit: disagreement by weight, then how often each rater gave each value; shape (units, 3 + 2 steps)."""
    apart = distances(scale)[:, first, second]
    disagreement = sample.total(items, apart if shares is None else apart * shares)
    return np.hstack([disagreement, *(sample.tally(items, column, len(scale), shares) for column in (first, second))])


def cohen_kappas(sums: Floats, scale: Floats) -> Floats:
    """Cohen's weighted kappa of each row of sums, from shape (m, 3 + 2 steps or more) to shape (3, m).

    Cohen 1968: 1 - observed / expected disagreement, the latter as if the two rated independently, each with their own
    frequencies. The weights are distances of values, not of places, so a value that nobody gave still counts as a step of the scale.
    NaN where the expected disagreement is 0.
    """
    steps = len(scale)
    first, second = sums[:, 3 : 3 + steps], sums[:, 3 + steps : 3 + 2 * steps]
    expected = np.sum(first @ distances(scale) * second, axis=2)
    return 1 - ratio(first.sum(axis=1) * sums[:, :3].T, expected)


def kappa_estimates(values: Floats, items: int, settings: str) -> dict[str, Estimate]:
    """The estimate for each weight, from values of shape (3, 1 + resamples)."""
    reason = "both give one and the same rating to all items in common"
    return {
        weight: Estimate.of_resamples(row, items, "in common", reason, signature_line(kappa="cohen", weights=weight) + f"|{settings}")
        for weight, row in zip(WEIGHTS, values, strict=True)
    }


LEVELS = ("nominal", "ordinal", "interval")


def krippendorff_alpha(counts: Codes, scale: Floats, sample: ItemBootstrap) -> dict[str, Estimate]:
    """Krippendorff's alpha by level, over all items with two ratings or more; raters need not have rated the same items.

    ``counts`` has shape (items, steps). Krippendorff 2011, "Computing Krippendorff's alpha-reliability". The intervals come from
    drawing items (Zapf et al. 2016).
    """
    items = np.flatnonzero(counts.sum(axis=1) >= 2)
    rated = counts[items]
    share = 1 / (rated.sum(axis=1) - 1)
    first, second = np.triu_indices(len(scale))
    sums = sample.totals(items, (rated[:, i] * (rated[:, j] - (i == j)) * share for i, j in zip(first, second, strict=True)))
    pairs = np.zeros((len(sums), len(scale), len(scale)))
    pairs[:, first, second] = pairs[:, second, first] = sums
    by_level = zip(LEVELS, krippendorff_alphas(pairs, scale), strict=True)
    return {level: _of_ratings(values, items, sample.line(alpha="krippendorff", level=level)) for level, values in by_level}


def _of_ratings(values: Floats, items: Codes, line: str) -> Estimate:
    return Estimate.of_resamples(values, len(items), "with two ratings", "all raters give one and the same rating to all items", line)


def interval_alpha(item: Codes, values: Codes, sample: ItemBootstrap) -> Estimate:
    """Krippendorff's alpha at the interval level, from sums over ratings: the cost does not grow with the number of values.

    ``item`` and ``values`` have one entry a rating; values are whole, so that a spread of 0 is found as 0.
    """
    numbers = values.astype(np.float64)
    sums = sums_by(item, [np.ones(len(item)), numbers, numbers**2], int(item.max(initial=-1)) + 1)
    items = np.flatnonzero(sums[:, 0] >= 2)
    number, total, squares = sums[items].T
    apart = (number * squares - total**2) / (number - 1)
    apart, number, total, squares = sample.totals(items, [apart, number, total, squares]).T
    numbers = 1 - ratio((number - 1) * apart, number * squares - total**2)
    return _of_ratings(numbers, items, sample.line(alpha="krippendorff", level="interval"))


def krippendorff_alphas(pairs: Floats, scale: Floats) -> Floats:
    """Alpha by level of each table of coincidences, from shape (m, steps, steps) to shape (3, m); NaN where only one value occurs.

    The ordinal distance of two values is the difference of their middle ranks, squared.
    """
    each = pairs.sum(axis=2)
    total = each.sum(axis=1)
    ranks = np.cumsum(each, axis=1) - each / 2
    nominal, _, interval = distances(scale)
    by_level = [
        ratio((total - 1) * np.sum(pairs * apart, axis=(1, 2)), np.sum(each[:, :, None] * each[:, None] * apart, axis=(1, 2)))
        for apart in (nominal, (ranks[:, :, None] - ranks[:, None]) ** 2, interval)
    ]
    return 1 - np.stack(by_level)


def fleiss_kappa(counts: Codes, sample: ItemBootstrap) -> Estimate:
    """Fleiss' kappa (1971) over the items with the most frequent number of ratings.

    It is defined for one number of ratings an item. So that a few missing ratings do not undo it, it is taken over the items with the
    most frequent number (two at least; of equally frequent ones the larger), and the measure says over how many; alpha uses all.
    """
    numbers = counts.sum(axis=1)
    frequent = np.bincount(numbers, minlength=3)[2:]
    raters = int(len(frequent) + 1 - np.argmax(frequent[::-1]))
    items = np.flatnonzero(numbers == raters)
    rated = counts[items]
    agreeing = np.sum(rated * (rated - 1), axis=1) / (raters * (raters - 1))
    sums = sample.totals(items, [agreeing, *rated.T])
    ratings = sums[:, 1:].sum(axis=1)
    observed = ratio(sums[:, 0] * raters, ratings)
    expected = np.sum(ratio(sums[:, 1:], ratings[:, None]) ** 2, axis=1)
    return _of_ratings(1 - ratio(1 - observed, 1 - expected), items, sample.line(kappa="fleiss", ratings_an_item=raters))


def wilson_proportion(count: int, of: int, none: str, **settings: object) -> Estimate:
    """The proportion ``count`` / ``of`` with Wilson's interval (1927); ``none`` is the reason where ``of`` is 0.

    A bootstrap would give 0 of 12 the interval from 0 to 0.
    """
    line = signature_line(**settings, interval="Wilson", level=CONFIDENCE, unit="item")
    if not of:
        return Estimate.undefined(none, line)
    proportion, spread = count / of, Z * Z / of
    middle = (proportion + spread / 2) / (1 + spread)
    half = math.sqrt(proportion * (1 - proportion) * spread + spread * spread / 4) / (1 + spread)
    low, high = (min(max(rounded(end), 0.0), 1.0) for end in (middle - half, middle + half))
    return Estimate(rounded(proportion), low, high, n=of, signature=line)
