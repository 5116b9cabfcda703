"""Statistics of all variants of many pairs by several metrics: in bounded memory, on several cores where that pays."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import joblib
import numpy as np

from builder.metrics.guard import MetricFault, guarded
from builder.metrics.kept import ScoreCache, keys_of
from builder.metrics.protocol import Array, Context, Metric, Segments

# Pairs scored together: enough for a costly metric to sort by length, few enough to hold their embeddings.
CHUNK = 512
# Starting processes costs more than they save below so many texts.
MANY = 16_384
MOST_PROCESSES = 8


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


def statistics_of(
    metrics: Sequence[Metric],
    pairs: Pairs,
    *,
    cache: ScoreCache | None = None,
    processes: int | None = None,
    progress: Callable[[int], None] = lambda texts: None,
) -> dict[str, dict[str, Array] | MetricFault]:
    """By metric: the statistics of each variant, shape (pairs, k), or the fault that kept the metric from giving them.

    Metrics with ``keep`` ask ``cache`` first; those with ``share`` run in ``processes`` (by default one a core, one in all for few
    texts). Neither changes a value. ``progress`` is told of the texts that a metric has done.
    """
    found: dict[str, list[Array] | MetricFault] = {metric.name: [] for metric in metrics}

    def note(metric: Metric, result: Array | MetricFault) -> None:
        so_far = found[metric.name]
        if isinstance(result, MetricFault):
            found[metric.name] = so_far if isinstance(so_far, MetricFault) else result
        elif isinstance(so_far, list):
            so_far.append(result)
            progress(len(result))

    shared = [metric for metric in metrics if getattr(metric, "share", False) and _portable(metric)]
    for results in _in_processes(shared, pairs, processes):
        for metric, result in zip(shared, results, strict=True):
            note(metric, result)
    for metric in metrics:
        for chunk in pairs.chunks(set(metric.reads)) if metric not in shared else ():
            note(metric, _one(metric, chunk, cache))
            if isinstance(found[metric.name], MetricFault):
                break
    # Taken out one by one, so that only one metric's rows are there twice.
    return {metric.name: _by_variant(metric.name, found.pop(metric.name), list(pairs.variants)) for metric in metrics}


def _in_processes(metrics: Sequence[Metric], pairs: Pairs, processes: int | None) -> Iterator[list[Array | MetricFault]]:
    """The results of each chunk, in order."""
    if not metrics:
        return iter(())
    chunks = pairs.chunks({name for metric in metrics for name in metric.reads})
    if processes is None:
        many = len(pairs.ids) * len(pairs.variants) >= MANY
        processes = min(joblib.cpu_count(), MOST_PROCESSES) if many else 1
    results: Iterator[list[Array | MetricFault]]
    # loky's workers do not run the caller's script again, as those of multiprocessing do.
    parallel = joblib.Parallel(n_jobs=processes, return_as="generator", backend="loky" if processes > 1 else "sequential")
    results = parallel(joblib.delayed(_all)(metrics, chunk) for chunk in chunks)
    return results


def _portable(metric: Metric) -> bool:
    """Whether a metric can be sent to another process; one that cannot is scored in this one."""
    try:
        return bool(pickle.dumps(metric))
    except Exception:  # an object's own pickling may raise anything
        return False


def _all(metrics: Sequence[Metric], chunk: Chunk) -> list[Array | MetricFault]:
    return [guarded(metric, chunk.segments, chunk.name_of) for metric in metrics]


def _one(metric: Metric, chunk: Chunk, cache: ScoreCache | None) -> Array | MetricFault:
    if cache is None or not getattr(metric, "keep", False):
        return guarded(metric, chunk.segments, chunk.name_of)
    keys = keys_of(metric, chunk.segments)
    kept = cache.get(keys)
    first = {key: row for row, key in reversed(list(enumerate(keys))) if key not in kept}
    if rows := sorted(first.values()):
        fresh = guarded(metric, chunk.segments.take(rows), lambda row: chunk.name_of(rows[row]))
        if isinstance(fresh, MetricFault):
            return fresh
        new = {keys[row]: values for row, values in zip(rows, fresh, strict=True)}
        cache.put(new)
        kept |= new
    return np.vstack([kept[key] for key in keys])


def _by_variant(name: str, parts: list[Array] | MetricFault, variants: list[str]) -> dict[str, Array] | MetricFault:
    if isinstance(parts, MetricFault):
        return parts
    if len(widths := sorted({part.shape[1] for part in parts})) > 1:
        return MetricFault(name, "all pairs", f"gave rows of different widths: {widths}")
    rows = np.vstack(parts) if parts else np.zeros((0, 1))
    return {variant: rows[place :: len(variants)] for place, variant in enumerate(variants)}
