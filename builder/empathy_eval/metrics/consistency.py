"""Consistency check: a text has one score, whatever else is scored with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from empathy_eval.metrics.faults import MetricFault, one_by_one
from empathy_eval.metrics.protocol import Array, Metric
from empathy_eval.metrics.scoring import PLAIN, Pairs, Scored, Scoring, statistics_of

# Texts that are scored a second time, in other company.
TRIED = 8
# Scores that differ by less than this share of their standard deviation are equal: batches of a model round differently.
SAME_WITHIN = 0.01

# Pairs, and what each metric gave them.
Set = tuple[Pairs, Mapping[str, Scored]]


def consistent(metrics: Sequence[Metric], sets: Sequence[Set], scoring: Scoring = PLAIN) -> list[dict[str, Scored]]:
    """What was scored, set by set; a metric that gave one text two scores has a fault in the place of all its scores.

    A text comes twice where sets share it. So that some texts always do, a few of the first set are scored again by themselves; not by
    metrics that score one text at a time, and kept scores are not asked for again. Texts are the same if all that the metric reads is.
    """
    again = _again(metrics, sets[0], scoring) if sets else []
    repeats = cache(lambda reads: Repeats.of([pairs for pairs, _ in (*sets, *again)], reads))
    faults: dict[str, MetricFault] = {}
    for metric in metrics:
        rows = [(pairs, some[metric.name].rows if metric.name in some else {}) for pairs, some in (*sets, *again)]
        found = [some.get(variant, np.zeros((len(pairs.ids), 0))) for pairs, some in rows for variant in pairs.variants]
        fault = _contradiction(metric, repeats(tuple(sorted(metric.reads))), found)
        faults |= {metric.name: fault} if fault else {}
    return [{name: Scored({}, faults[name]) if name in faults else one for name, one in some.items()} for _, some in sets]


def _again(metrics: Sequence[Metric], first: Set, scoring: Scoring) -> list[Set]:
    """A few texts of one variant, scored by themselves."""
    pairs, scored = first
    some = [one for one in metrics if not one_by_one(one) and scored[one.name].rows]
    if not some or not pairs.ids:
        return []
    # Fewer than all texts: else they would be in the same company again.
    many = min(TRIED, max(1, len(pairs.ids) * len(pairs.variants) // 2), len(pairs.ids))
    rows = [number * len(pairs.ids) // many for number in range(many)]
    variant = next(iter(pairs.variants))
    few = Pairs(
        [pairs.ids[row] for row in rows],
        [pairs.references[row] for row in rows],
        {variant: [pairs.variants[variant][row] for row in rows]},
        [pairs.contexts[row] for row in rows] if any("context" in one.reads for one in some) else (),
    )
    return [(few, statistics_of(some, few, replace(scoring, progress=lambda texts: None)))]


@dataclass(frozen=True)
class Repeats:
    """Texts that come more than once in the sets: their places, row by row, and the place where each came first.

    Places count through the ``columns``, the variants of all sets end to end, which ``starts`` has the first places of.
    """

    columns: Sequence[tuple[Pairs, str]]
    starts: NDArray[np.int64]
    reads: tuple[str, ...]
    places: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, sets: Sequence[Pairs], reads: tuple[str, ...]) -> Repeats:
        """Finds them by a hash, which may take two texts for one: ``same`` tells."""
        columns = [(pairs, variant) for pairs in sets for variant in pairs.variants]
        starts = np.cumsum([0, *(len(pairs.ids) for pairs, _ in columns)])
        hashes = np.concatenate([_hashes(pairs, variant, reads) for pairs, variant in columns])
        _, first, of = np.unique(hashes, return_index=True, return_inverse=True)
        came_first = first[of]
        later = np.flatnonzero(came_first != np.arange(len(hashes)))
        return cls(columns, starts, reads, later, came_first[later])

    def at(self, place: int) -> tuple[Pairs, str, int]:
        """The set, the variant and the row of a place."""
        number = int(np.searchsorted(self.starts, place, side="right")) - 1
        return *self.columns[number], place - int(self.starts[number])

    def same(self, one: int, other: int) -> bool:
        """Whether the texts of two places are the same, with all that is read of them."""
        (pairs, variant, row), (others, its, at) = self.at(one), self.at(other)
        return [column[row] for column in _read(pairs, variant, self.reads)] == [column[at] for column in _read(others, its, self.reads)]


def _read(pairs: Pairs, variant: str, reads: tuple[str, ...]) -> list[Sequence[str]]:
    """What makes a text what it is for a metric. A context is known by its pair: reading all of them takes longer than scoring."""
    beside = {"reference": pairs.references, "context": pairs.ids}
    return [pairs.variants[variant], *(beside[name] for name in reads)]


def _hashes(pairs: Pairs, variant: str, reads: tuple[str, ...]) -> NDArray[np.int64]:
    """A hash of each text with what is read of it; of this process alone."""
    found = np.zeros(len(pairs.ids), dtype=np.int64)
    for column in _read(pairs, variant, reads):
        found = found * 1_000_003 + np.fromiter(map(hash, column), dtype=np.int64, count=len(found))
    return found


def _contradiction(metric: Metric, repeats: Repeats, found: Sequence[Array]) -> MetricFault | None:
    """The fault of a metric that gave a text two scores, by the first such text; None if each has one."""
    one, other = (_scores(metric, repeats, found, places) for places in (repeats.first, repeats.places))
    suspects = np.flatnonzero(np.abs(one - other) > 10.0**-metric.places)
    if not len(suspects):
        return None
    everything = _scores(metric, repeats, found, np.arange(repeats.starts[1]))
    within = SAME_WITHIN * float(np.nanstd(everything))
    for row in suspects[np.abs(one - other)[suspects] > within].tolist():
        first, later = int(repeats.first[row]), int(repeats.places[row])
        if repeats.same(first, later):
            names = [f"{pairs.ids[at]}, {variant}" for pairs, variant, at in map(repeats.at, (first, later))]
            values = [f"{value:.{max(metric.places, 0)}f}" for value in (one[row], other[row])]
            again = "beside other texts" if names[0] == names[1] else f"as {names[1]}"
            rule = "a score depends on the text and on what the metric reads, not on the texts beside it"
            return MetricFault(metric.name, names[0], f"gave one text two scores, {values[0]}, and {values[1]} {again}: {rule}")
    return None


def _scores(metric: Metric, repeats: Repeats, found: Sequence[Array], places: NDArray[np.int64]) -> Array:
    """The scores of texts by their places, nan where there is none."""
    values = np.full(len(places), np.nan)
    which = np.searchsorted(repeats.starts, places, side="right") - 1
    for number, part in enumerate(found):
        rows = np.flatnonzero(which == number)
        some = part[places[rows] - repeats.starts[number]]
        has = ~np.isnan(some[:, 0]) if some.shape[1] else np.zeros(len(rows), dtype=bool)
        if has.any():
            values[rows[has]] = metric.scores(some[has])
    return values
