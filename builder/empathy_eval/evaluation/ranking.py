"""How a metric ranks two variants: pairwise accuracy and the area under the curve."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from empathy_eval.metrics.protocol import Array


def wins(one: Array, other: Array) -> Array:
    """1 where the first score is higher, 0 where the second is, one half for a tie; shape (pairs,)."""
    result: Array = (np.sign(one - other) + 1) / 2
    return result


def area(one: Array, other: Array, members: NDArray[np.int64]) -> tuple[float, float | None]:
    """The area under the ROC curve and its standard error.

    The area is the chance that a text of the first variant scores higher than one of the second, drawn anywhere, ties half. The error
    is that of Obuchowski (1997) for clustered data: pairs of one dialogue (``members``) are not independent. None for one cluster.
    """
    here, there = _placements(one, other), 1 - _placements(other, one)
    value, count = float(here.mean()), len(one)
    clusters = int(members.max()) + 1
    if clusters < 2:
        return value, None
    sizes = np.bincount(members, minlength=clusters)
    first = np.bincount(members, here, clusters) - sizes * value
    second = np.bincount(members, there, clusters) - sizes * value
    factor = clusters / (clusters - 1) / count**2
    variance = factor * float(first @ first + second @ second + 2 * first @ second)
    return value, math.sqrt(max(variance, 0.0))


def _placements(one: Array, other: Array) -> Array:
    """For each first score the share of second scores below it, ties half."""
    ordered = np.sort(other)
    below, upto = np.searchsorted(ordered, one, "left"), np.searchsorted(ordered, one, "right")
    result: Array = (below + upto) / 2 / len(other)
    return result


def holm(values: list[float]) -> list[float]:
    """p-values corrected for standing together (Holm 1979), in their order."""
    corrected = [1.0] * len(values)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=lambda one: values[one])):
        least = max(least, min(1.0, (len(values) - rank) * values[place]))
        corrected[place] = least
    return corrected
