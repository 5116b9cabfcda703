"""A metric that fails gives a fault that names it and the pair; the rest of a report stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from builder.metrics.protocol import Array, Metric, Segments


@dataclass(frozen=True)
class MetricFault:
    """What a metric did wrong, and to which text first, as ``017-00042-t05, empathetic``."""

    metric: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"metric {self.metric}: {self.where}: {self.what}\n  Fix: mend the metric, or leave it out"


def guarded(metric: Metric, segments: Segments, name_of: Callable[[int], str]) -> Array | MetricFault:
    """The statistics of segments, or the fault of the first that has none; ``name_of`` gives the name of a row."""
    found = _attempt(metric, segments)
    if not isinstance(found, str):
        return found
    rows: Sequence[int] = range(len(segments.texts))
    # Halve until the text that fails stands alone; those that fail only together are named together.
    while len(rows) > 1:
        for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
            fault = _attempt(metric, segments.take(half))
            if isinstance(fault, str):
                rows, found = half, fault
                break
        else:
            break
    where = name_of(rows[0]) if len(rows) == 1 else f"{name_of(rows[0])} to {name_of(rows[-1])}"
    return MetricFault(metric.name, where, found)


def _attempt(metric: Metric, segments: Segments) -> Array | str:
    """The statistics, or what is wrong with them."""
    count = len(segments.texts)
    try:
        statistics = np.asarray(metric.statistics(segments), dtype=np.float64)
        if statistics.ndim != 2 or len(statistics) != count:
            return f"gave statistics of shape {statistics.shape} for {count} texts"
        scores = np.asarray(metric.scores(statistics), dtype=np.float64)
        if scores.shape != (count,):
            return f"gave scores of shape {scores.shape} for {count} texts"
        if count and (shape := np.shape(metric.aggregate(statistics.sum(axis=0, keepdims=True)))) != (1,):
            return f"aggregates one row of sums to the shape {shape}"
    except Exception as error:  # whatever a stranger's metric raises is a fault of that metric alone
        return f'raised {type(error).__name__}: "{error}"'
    for values in (scores, statistics.ravel()):
        if not np.isfinite(values).all():
            return f"gave {values[~np.isfinite(values)][0]}, which is no number"
    return statistics
