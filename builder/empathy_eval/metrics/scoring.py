"""Statistics of all variants of many pairs by several metrics: in bounded memory, on several cores where that pays."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from empathy_eval.base.workers import Spread, here, local_processes
from empathy_eval.metrics.faults import MetricFault, guarded
from empathy_eval.metrics.protocol import Array, Context, Metric, Segments
from empathy_eval.metrics.score_cache import ScoreCache, keys_of

# Pairs scored together: enough for a costly metric to sort by length, few enough to hold their embeddings.
CHUNK = 512


@dataclass(frozen=True)
class Pairs:
    """Pairs to score, column by column; ``contexts`` may be left out where no metric reads it."""

    ids: Sequence[str]
    references: Sequence[str]
    variants: Mapping[str, Sequence[str]]
    contexts: Sequence[Context] = ()

    def chunks(self, reads: set[str]) -> Iterator[Chunk]:
        """Pair after pair, the variants of one next to each other, so that what is known of a reference serves all."""
        for start in range(0, len(self.ids), CHUNK):
            rows = range(start, min(start + CHUNK, len(self.ids)))
            of_cells = [row for row in rows for _ in self.variants]
            segments = Segments(
                [self.variants[name][row] for row in rows for name in self.variants],
                [self.references[row] for row in of_cells],
                [self.contexts[row] for row in of_cells] if "context" in reads else (),
            )
            yield Chunk(segments, self.ids[start : rows.stop], list(self.variants))


@dataclass(frozen=True)
class Chunk:
    """Some pairs: the segments of all their variants, and their names."""

    segments: Segments
    ids: Sequence[str]
    variants: Sequence[str]

    def name_of(self, row: int) -> str:
        """The pair and the variant of a row of the segments."""
        return f"{self.ids[row // len(self.variants)]}, {self.variants[row % len(self.variants)]}"


@dataclass(frozen=True)
class Scoring:
    """How texts are scored: where, and what is kept and told of it. None of it changes a value.

    Metrics with ``keep`` ask ``cache`` first. With ``spread``, such as :func:`empathy_eval.base.ray_cluster.spread_over` gives, all work
    goes there but that of metrics that cannot be pickled. ``progress`` is told of the texts that a metric has done.
    """

    cache: ScoreCache | None = None
    spread: Spread | None = None
    progress: Callable[[int], None] = lambda texts: None


# Here, with nothing kept and nothing told.
PLAIN = Scoring()


def statistics_of(metrics: Sequence[Metric], pairs: Pairs, scoring: Scoring = PLAIN, *, processes: int | None = None) -> dict[str, Scored]:
    """By metric what it gave the variants.

    Metrics with ``share`` run in ``processes`` of this machine (by default one a core, one in all for few texts).
    """
    cache, spread = scoring.cache, scoring.spread
    found = {metric.name: Table(metric.name, pairs) for metric in metrics}

    def note(metric: Metric, result: Array | MetricFault) -> None:
        found[metric.name].add(result)
        if not isinstance(result, MetricFault):
            scoring.progress(len(result))

    portable = [metric for metric in metrics if (spread or getattr(metric, "share", False)) and _portable(metric)]
    shared = [metric for metric in portable if cache is None or not getattr(metric, "keep", False)]
    reads = {name for metric in shared for name in metric.reads}
    for results in (
        (spread or local_processes(len(pairs.ids) * len(pairs.variants), processes))(_all, shared, pairs.chunks(reads)) if shared else ()
    ):
        for metric, result in zip(shared, results, strict=True):
            note(metric, result)
    for metric in metrics:
        where = spread if spread and metric in portable else here
        for result in _one(metric, pairs, cache, where) if metric not in shared else ():
            note(metric, result)
            if isinstance(result, MetricFault):
                break
    return {name: Scored({}, table.fault) if table.fault else Scored(table.rows) for name, table in found.items()}


@dataclass(frozen=True)
class Scored:
    """What a metric gave: by variant the statistics of all pairs, shape (pairs, k), nan where it gave a text none; empty if it gave
    nothing at all. ``fault`` says what it failed at."""

    rows: Mapping[str, Array]
    fault: MetricFault | None = None


class Table:
    """The statistics of a metric by variant, put into their places chunk by chunk: they are large, and never there twice."""

    def __init__(self, metric: str, pairs: Pairs) -> None:
        self._metric, self._pairs, self._filled = metric, len(pairs.ids), 0
        self.rows: dict[str, Array] = {name: np.zeros((0, 1)) for name in pairs.variants}
        self.fault: MetricFault | None = None

    def add(self, result: Array | MetricFault) -> None:
        """Takes in the rows of the next chunk, or its fault; the first fault stands for all that follow."""
        if self.fault is not None:
            return
        if isinstance(result, MetricFault):
            self.fault = result
            return
        width, variants = result.shape[1], list(self.rows)
        if not self._filled:
            self.rows = {name: np.zeros((self._pairs, width)) for name in variants}
        if width != (before := self.rows[variants[0]].shape[1]):
            self.fault = MetricFault(self._metric, "all pairs", f"gave rows of {width} numbers after rows of {before}")
            return
        many = len(result) // len(variants)
        for place, name in enumerate(variants):
            self.rows[name][self._filled : self._filled + many] = result[place :: len(variants)]
        self._filled += many


def _portable(metric: Metric) -> bool:
    """Whether a metric can be sent to another process; one that cannot is scored in this one."""
    try:
        return bool(pickle.dumps(metric))
    except Exception:  # an object's own pickling may raise anything
        return False


def _all(metrics: Sequence[Metric], chunk: Chunk) -> list[Array | MetricFault]:
    return [guarded(metric, chunk.segments, chunk.name_of) for metric in metrics]


def _one(metric: Metric, pairs: Pairs, cache: ScoreCache | None, spread: Spread) -> Iterator[Array | MetricFault]:
    """The results of each chunk; with a cache only what it does not have is scored."""
    chunks = pairs.chunks(set(metric.reads))
    if cache is None or not getattr(metric, "keep", False):
        yield from (results[0] for results in spread(_all, [metric], chunks))
        return
    asked = deque[tuple[list[bytes], dict[bytes, Array], list[int]]]()

    def missing() -> Iterator[tuple[Chunk, list[int]]]:
        for chunk in chunks:
            keys = keys_of(metric, chunk.segments)
            kept = cache.get(keys)
            rows = sorted({key: row for row, key in reversed(list(enumerate(keys))) if key not in kept}.values())
            asked.append((keys, kept, rows))
            yield chunk, rows

    for fresh in spread(_rows, metric, missing()):
        keys, kept, rows = asked.popleft()
        if isinstance(fresh, MetricFault):
            yield fresh
            continue
        new = {keys[row]: values for row, values in zip(rows, fresh, strict=True)}
        cache.put(new)
        yield np.vstack([(kept | new)[key] for key in keys])


def _rows(metric: Metric, part: tuple[Chunk, list[int]]) -> Array | MetricFault:
    """The statistics of some rows of a chunk."""
    chunk, rows = part
    return guarded(metric, chunk.segments.take(rows), lambda row: chunk.name_of(rows[row])) if rows else np.zeros((0, 1))
