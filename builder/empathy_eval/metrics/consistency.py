"""Consistency check: a text has one score, whatever else is scored with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from empathy_eval.metrics.faults import MetricFault, scores_single_texts
from empathy_eval.metrics.protocol import Array, Metric
from empathy_eval.metrics.scoring import PLAIN, MetricResult, Pairs, Scoring, statistics_of

# Texts that are scored a second time, in other company.
TRIED = 8
# Scores that differ by less than this share of their standard deviation are equal: batches of a model round differently.
SAME_WITHIN = 0.01

# Pairs, and what each metric gave them.
ScoredPairs = tuple[Pairs, Mapping[str, MetricResult]]


def check_consistency(metrics: Sequence[Metric], sets: Sequence[ScoredPairs], scoring: Scoring = PLAIN) -> list[dict[str, MetricResult]]:
    """The scores of each set; a metric that gave one text two scores has a fault instead of all its scores.

    Texts repeat where sets share them. To have repeats always, a few texts of the first set are scored again alone; not by metrics that
    score single texts, and cached scores are reused. Texts are equal if all that the metric reads is equal.
    """
    again = _rescored(metrics, sets[0], scoring) if sets else []
    repeats = cache(lambda reads: Repeats.of([pairs for pairs, _ in (*sets, *again)], reads))
    faults: dict[str, MetricFault] = {}
    for metric in metrics:
        rows = [(pairs, scored[metric.name].rows if metric.name in scored else {}) for pairs, scored in (*sets, *again)]
        statistics = [scored.get(variant, np.zeros((len(pairs.ids), 0))) for pairs, scored in rows for variant in pairs.variants]
        fault = _contradiction(metric, repeats(tuple(sorted(metric.reads))), statistics)
        faults |= {metric.name: fault} if fault else {}
    return [{name: MetricResult({}, faults[name]) if name in faults else result for name, result in scored.items()} for _, scored in sets]


def _rescored(metrics: Sequence[Metric], first: ScoredPairs, scoring: Scoring) -> list[ScoredPairs]:
    """A few texts of one variant, scored alone."""
    pairs, scored = first
    batched = [metric for metric in metrics if not scores_single_texts(metric) and scored[metric.name].rows]
    if not batched or not pairs.ids:
        return []
    # Fewer than all texts: else they would be in the same company again.
    many = min(TRIED, max(1, len(pairs.ids) * len(pairs.variants) // 2), len(pairs.ids))
    rows = [number * len(pairs.ids) // many for number in range(many)]
    variant = next(iter(pairs.variants))
    few = Pairs(
        [pairs.ids[row] for row in rows],
        [pairs.references[row] for row in rows],
        {variant: [pairs.variants[variant][row] for row in rows]},
        [pairs.contexts[row] for row in rows] if any("context" in metric.reads for metric in batched) else (),
    )
    return [(few, statistics_of(batched, few, replace(scoring, progress=lambda texts: None)))]


@dataclass(frozen=True)
class Repeats:
    """Texts that occur more than once: their positions, and where each came first.

    Positions count through the ``columns``, the variants of all sets end to end, which begin at ``starts``.
    """

    columns: Sequence[tuple[Pairs, str]]
    starts: NDArray[np.int64]
    reads: tuple[str, ...]
    places: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, sets: Sequence[Pairs], reads: tuple[str, ...]) -> Repeats:
        """Finds repeats by a hash, which may confuse two texts: ``same`` decides."""
        columns = [(pairs, variant) for pairs in sets for variant in pairs.variants]
        starts = np.cumsum([0, *(len(pairs.ids) for pairs, _ in columns)])
        hashes = np.concatenate([_hashes(pairs, variant, reads) for pairs, variant in columns])
        _, first, of = np.unique(hashes, return_index=True, return_inverse=True)
        came_first = first[of]
        later = np.flatnonzero(came_first != np.arange(len(hashes)))
        return cls(columns, starts, reads, later, came_first[later])

    def at(self, position: int) -> tuple[Pairs, str, int]:
        """The set, variant and row of a position."""
        number = int(np.searchsorted(self.starts, position, side="right")) - 1
        return *self.columns[number], position - int(self.starts[number])

    def same(self, first: int, other: int) -> bool:
        """Whether two positions hold the same text, with everything that is read."""
        (pairs, variant, row), (others, its, at) = self.at(first), self.at(other)
        return [column[row] for column in _read(pairs, variant, self.reads)] == [column[at] for column in _read(others, its, self.reads)]


def _read(pairs: Pairs, variant: str, reads: tuple[str, ...]) -> list[Sequence[str]]:
    """What identifies a text for a metric. A context is identified by its pair, because reading all contexts takes longer than scoring."""
    beside = {"reference": pairs.references, "context": pairs.ids}
    return [pairs.variants[variant], *(beside[name] for name in reads)]


def _hashes(pairs: Pairs, variant: str, reads: tuple[str, ...]) -> NDArray[np.int64]:
    """A hash of each text with what is read, valid in this process only."""
    hashes = np.zeros(len(pairs.ids), dtype=np.int64)
    for column in _read(pairs, variant, reads):
        hashes = hashes * 1_000_003 + np.fromiter(map(hash, column), dtype=np.int64, count=len(hashes))
    return hashes


def _contradiction(metric: Metric, repeats: Repeats, statistics: Sequence[Array]) -> MetricFault | None:
    """The fault of a metric that gave a text two scores, at the first such text; None if each has one."""
    earlier, other = (_scores(metric, repeats, statistics, places) for places in (repeats.first, repeats.places))
    suspects = np.flatnonzero(np.abs(earlier - other) > 10.0**-metric.places)
    if not len(suspects):
        return None
    everything = _scores(metric, repeats, statistics, np.arange(repeats.starts[1]))
    within = SAME_WITHIN * float(np.nanstd(everything))
    for row in suspects[np.abs(earlier - other)[suspects] > within].tolist():
        first, later = int(repeats.first[row]), int(repeats.places[row])
        if repeats.same(first, later):
            names = [f"{pairs.ids[at]}, {variant}" for pairs, variant, at in map(repeats.at, (first, later))]
            values = [f"{value:.{max(metric.places, 0)}f}" for value in (earlier[row], other[row])]
            again = "beside other texts" if names[0] == names[1] else f"as {names[1]}"
            rule = "a score depends on the text and on what the metric reads, not on the texts beside it"
            return MetricFault(metric.name, names[0], f"gave one text two scores, {values[0]}, and {values[1]} {again}: {rule}")
    return None


def _scores(metric: Metric, repeats: Repeats, statistics: Sequence[Array], places: NDArray[np.int64]) -> Array:
    """The scores at positions, nan if missing."""
    values = np.full(len(places), np.nan)
    which = np.searchsorted(repeats.starts, places, side="right") - 1
    for number, part in enumerate(statistics):
        rows = np.flatnonzero(which == number)
        chosen = part[places[rows] - repeats.starts[number]]
        has = ~np.isnan(chosen[:, 0]) if chosen.shape[1] else np.zeros(len(rows), dtype=bool)
        if has.any():
            values[rows[has]] = metric.scores(chosen[has])
    return values
