"""Krippendorff's alpha and Fleiss' kappa, from how often each item got each value."""

from __future__ import annotations

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.raters.agreement.bootstrap import Measure, Resampling, ratio
from empathy_eval.raters.agreement.kappa import distances
from empathy_eval.raters.agreement.table import Codes, Floats

LEVELS = ("nominal", "ordinal", "interval")


def alpha(counts: Codes, scale: Floats, sample: Resampling) -> dict[str, Measure]:
    """Krippendorff's alpha by level, over all items with two ratings or more; raters need not have rated the same items.

    ``counts`` has shape (items, steps). Krippendorff 2011, "Computing Krippendorff's alpha-reliability". The intervals come from
    drawing items (Zapf et al. 2016).
    """
    items = np.flatnonzero(counts.sum(axis=1) >= 2)
    kept = counts[items]
    share = 1 / (kept.sum(axis=1) - 1)
    one, other = np.triu_indices(len(scale))
    columns = (kept[:, c] * (kept[:, d] - (c == d)) * share for c, d in zip(one, other, strict=True))
    sums = sample.resampled(np.hstack([sample.total(items, column[None]) for column in columns]))
    pairs = np.zeros((len(sums), len(scale), len(scale)))
    pairs[:, one, other] = pairs[:, other, one] = sums
    reason = "all raters give one and the same rating to all items"
    return {
        level: Measure.of(
            values, len(items), "with two ratings", reason, signature_line(alpha="krippendorff", level=level) + f"|{sample.signature}"
        )
        for level, values in zip(LEVELS, alphas(pairs, scale), strict=True)
    }


def interval_alpha(item: Codes, values: Codes, sample: Resampling) -> Measure:
    """The same at the interval level alone, from sums over ratings: the work does not grow with the values that occur.

    ``item`` and ``values`` have one entry a rating; values are whole, so that a spread of 0 is found as 0.
    """
    columns = np.stack([np.ones(len(item)), values, values**2]).astype(np.float64)
    number, total, squares = (np.bincount(item, one) for one in columns)
    items = np.flatnonzero(number >= 2)
    number, total, squares = number[items], total[items], squares[items]
    apart = (number * squares - total**2) / (number - 1)
    sums = sample.resampled(sample.total(items, np.stack([apart, number, total, squares])))
    apart, number, total, squares = sums.T
    line = signature_line(alpha="krippendorff", level="interval") + f"|{sample.signature}"
    reason = "all raters give one and the same rating to all items"
    return Measure.of(1 - ratio((number - 1) * apart, number * squares - total**2), len(items), "with two ratings", reason, line)


def alphas(pairs: Floats, scale: Floats) -> Floats:
    """Alpha by level of each table of coincidences, from shape (m, steps, steps) to shape (3, m); NaN where only one value occurs.

    The ordinal distance of two values is the difference of their middle ranks, squared.
    """
    each = pairs.sum(axis=2)
    total = each.sum(axis=1)
    ranks = np.cumsum(each, axis=1) - each / 2
    nominal, _, interval = distances(scale)
    found = [
        ratio((total - 1) * np.sum(pairs * apart, axis=(1, 2)), np.sum(each[:, :, None] * each[:, None] * apart, axis=(1, 2)))
        for apart in (nominal, (ranks[:, :, None] - ranks[:, None]) ** 2, interval)
    ]
    return 1 - np.stack(found)


def fleiss(counts: Codes, sample: Resampling) -> Measure:
    """Fleiss' kappa (1971) over the items with the most frequent number of ratings.

    It is defined for one number of ratings an item. So that a few missing ratings do not undo it, it is taken over the items with the
    most frequent number (two at least; of equally frequent ones the larger), and the measure says over how many; alpha uses all.
    """
    numbers = counts.sum(axis=1)
    frequent = np.bincount(numbers, minlength=3)[2:]
    raters = int(len(frequent) + 1 - np.argmax(frequent[::-1]))
    items = np.flatnonzero(numbers == raters)
    kept = counts[items]
    agreeing = np.sum(kept * (kept - 1), axis=1) / (raters * (raters - 1))
    sums = sample.resampled(sample.total(items, np.vstack([agreeing, kept.T])))
    ratings = sums[:, 1:].sum(axis=1)
    observed = ratio(sums[:, 0] * raters, ratings)
    expected = np.sum(ratio(sums[:, 1:], ratings[:, None]) ** 2, axis=1)
    line = signature_line(kappa="fleiss", ratings_an_item=raters) + f"|{sample.signature}"
    reason = "all raters give one and the same rating to all items"
    return Measure.of(1 - ratio(1 - observed, 1 - expected), len(items), "with two ratings", reason, line)
