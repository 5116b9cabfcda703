"""What a metric is: statistics of each segment, and an aggregation of their sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Metric(Protocol):
    """A metric of texts against references, higher meaning better.

    ``aggregate(statistics.sum(axis=0))`` is the corpus score, so that a bootstrap resamples sums and nothing is scored twice.
    """

    name: str
    signature: str
    # Decimal places that are the same in every process; the rest is not shown.
    places: int

    def statistics(self, texts: Sequence[str], references: Sequence[str]) -> Array:
        """One row of statistics a text, shape (texts, k)."""
        ...

    def aggregate(self, sums: Array) -> Array:
        """Corpus scores of sums of rows, from shape (m, k) to shape (m,)."""
        ...


class Diversity(Protocol):
    """A measure of a whole set of texts that does not break down into segments: it gets no interval."""

    name: str
    signature: str

    def value(self, texts: Sequence[str]) -> float:
        """The measure over all texts."""
        ...


def mean_of_scores(sums: Array) -> Array:
    """The aggregation of metrics whose rows are (score, 1): the mean over segments."""
    result: Array = sums[:, 0] / sums[:, 1]
    return result


def with_count(scores: Any) -> Array:
    """Rows (score, 1) for :func:`mean_of_scores`."""
    column = np.asarray(scores, dtype=np.float64)
    return np.column_stack([column, np.ones_like(column)])
