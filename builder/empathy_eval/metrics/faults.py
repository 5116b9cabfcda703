"""A metric that fails gives a fault that names it and the pair; the rest of a report stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from empathy_eval.metrics.protocol import Array, Metric, Segments

Result = TypeVar("Result")


@dataclass(frozen=True)
class MetricFault:
    """What a metric did wrong, and to which text first, as ``017-00042-t05, empathetic``."""

    metric: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"metric {self.metric}: {self.where}: {self.what}\n  Fix: mend the metric, or leave it out"


def attempted(name: str, work: Callable[[], Result]) -> Result | MetricFault:
    """What work over all texts gives, or the fault of the measure that raised."""
    try:
        return work()
    except Exception as error:  # whatever a stranger's measure raises is a fault of that measure alone
        return MetricFault(name, "all texts", f'raised {type(error).__name__}: "{error}"')


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
        twice = np.asarray(metric.aggregate(np.vstack([statistics.sum(axis=0)] * 2)), dtype=np.float64)
        if count and (twice.shape != (2,) or (np.isfinite(twice).all() and twice[0] != twice[1])):
            return f"aggregates two equal rows of sums to {twice.tolist()}, which are not two equal numbers"
    except Exception as error:  # whatever a stranger's metric raises is a fault of that metric alone
        return f'raised {type(error).__name__}: "{error}"'
    for values in (scores, statistics.ravel(), twice if count else np.zeros(0)):
        if not np.isfinite(values).all():
            return f"gave {values[~np.isfinite(values)][0]}, which is no number"
    return statistics
