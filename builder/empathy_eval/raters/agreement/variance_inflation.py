"""Variance inflation factors: how far each criterion can be told from the others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.raters.agreement.bootstrap import Measure, Resampling
from empathy_eval.raters.agreement.table import Codes, Floats, Table

# An eigenvalue of a correlation matrix that is 0 but for rounding, and a variance beside the squares it is the difference of.
NOUGHT, FLAT = 1e-10, 1e-12


def inflation(table: Table, raters: Sequence[str], resamples: int, seed: int) -> dict[str, Measure]:
    """The variance inflation factor of each criterion, over the ratings of items by these raters that have all criteria.

    VIF = 1 / (1 - R2) of a least-squares regression of the criterion on all others with an intercept. Rows of all raters are pooled;
    items are drawn.
    """
    items, values = _complete(table, raters)
    places, item = np.unique(items, return_inverse=True)
    sample = Resampling.of(len(places), resamples, seed)
    line = signature_line(vif="1/(1-R2)", criteria=len(table.criteria), rows=len(values)) + f"|{sample.signature}"
    if len(table.criteria) < 2:
        return {name: Measure.undefined("there is only one criterion", line, len(places)) for name in table.criteria}
    # Sums of squares of numbers around 0 lose no digits.
    values = values - values.sum(axis=0) / max(len(values), 1)
    products = np.einsum("ij,ik->jki", values, values).reshape(len(table.criteria) ** 2, len(values))
    sums = sample.resampled(sample.total(item, np.vstack([np.ones(len(values)), values.T, products])))
    reason = "all its ratings are the same, or it follows exactly from the other criteria"
    return {
        name: Measure.of(column, len(places), "with all criteria", reason, line)
        for name, column in zip(table.criteria, inflations(sums, len(table.criteria)).T, strict=True)
    }


def inflations(sums: Floats, criteria: int) -> Floats:
    """The factors of each row of sums (number, sums, sums of products), from shape (m, 1 + k + k * k) to (m, k).

    NaN where infinite, and of a criterion without variance. They are the diagonal of the inverse of the correlation matrix, here
    through its eigenvalues: a criterion that has a part in one that is 0 follows from the others.
    """
    number = np.maximum(sums[:, :1], 1)
    mean = sums[:, 1 : 1 + criteria] / number
    products = sums[:, 1 + criteria :].reshape(-1, criteria, criteria) / number[:, :, None]
    covariance = products - mean[:, :, None] * mean[:, None]
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    flat = variance <= FLAT * np.maximum(np.diagonal(products, axis1=1, axis2=2), mean**2)
    # A criterion without variance has no correlation with any other.
    scale = np.sqrt(np.where(flat, np.inf, variance))
    values, vectors = np.linalg.eigh(covariance / (scale[:, :, None] * scale[:, None]))
    parts = vectors**2
    nought = values[:, None] < NOUGHT
    factors = np.sum(np.where(nought, 0, parts / np.where(nought, 1, values[:, None])), axis=2)
    return np.where(np.sum(np.where(nought, parts, 0), axis=2) > NOUGHT, np.nan, factors)


def _complete(table: Table, raters: Sequence[str]) -> tuple[Codes, Floats]:
    """The item of each (item, rater) with all criteria, and its ratings, shape (n, criteria)."""
    wanted = np.isin(table.rater, [table.raters.index(name) for name in raters])
    key = table.item * len(table.raters) + table.rater
    rows = [np.flatnonzero(wanted & (table.criterion == place)) for place in range(len(table.criteria))]
    rows = [places[np.argsort(key[places])] for places in rows]
    common = reduce(lambda one, other: np.intersect1d(one, other, assume_unique=True), (key[places] for places in rows))
    values = [table.rating[places[np.isin(key[places], common)]] for places in rows]
    return common // len(table.raters), np.stack(values, axis=1)
