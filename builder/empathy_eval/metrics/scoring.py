"""Scoring of all variants of many pairs: in bounded memory, on several cores if that pays, with a cache by content."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import room_for
from empathy_eval.base.hashing import canonical_json
from empathy_eval.base.stages import advance, count
from empathy_eval.base.workers import ParallelMap, map_in_processes, map_serially
from empathy_eval.metrics.faults import (
    NOTHING,
    InvalidStatistics,
    MetricFault,
    MetricResult,
    Part,
    find_contradictions,
    safe_statistics,
    scores_single_texts,
    stacked,
    uneven,
)
from empathy_eval.metrics.protocol import Array, Chunk, Metric, Pairs, Segments

AT_ONCE = 500


class ScoreCache:
    """A file of statistics by the hash of metric, signature and everything that the metric reads; processes may share it.

    The signature holds every setting and version that can change a number, so a cached row is the row the metric would return. Above
    ``most`` rows, of about 100 bytes each, the oldest are deleted.
    """

    def __init__(self, path: Path, most: int = 2_000_000) -> None:
        """Opens or creates the file.

        Raises:
            InputError: if the file holds something else, or cannot exist there.
            JobError: if it cannot be written.
        """
        self._path, self._most = path, most
        try:
            with room_for(path):
                path.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise input_error(path, f'"{error.filename}" is a file, not a folder', "name another file") from error
        with self._connection() as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            columns = "place INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, row BLOB NOT NULL"
            connection.execute(f"CREATE TABLE IF NOT EXISTS scores_1 ({columns})")

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Array]:
        """The cached rows of these keys."""
        result: dict[bytes, Array] = {}
        with self._connection() as connection:
            for start in range(0, len(keys), AT_ONCE):
                part = keys[start : start + AT_ONCE]
                query = f"SELECT key, row FROM scores_1 WHERE key IN ({','.join('?' * len(part))})"  # noqa: S608 (placeholders alone)
                result.update((key, np.frombuffer(row, dtype="<f8")) for key, row in connection.execute(query, part))
        return result

    def put(self, rows: Mapping[bytes, Array]) -> None:
        """Stores rows; existing ones stay."""
        with self._connection() as connection:
            values = [(key, np.asarray(row, dtype="<f8").tobytes()) for key, row in rows.items()]
            connection.executemany("INSERT OR IGNORE INTO scores_1 (key, row) VALUES (?, ?)", values)
            connection.execute("DELETE FROM scores_1 WHERE place <= (SELECT max(place) FROM scores_1) - ?", [self._most])

    @contextlib.contextmanager
    def batched_writes(self) -> Iterator[None]:
        """Within, rows are stored without waiting for the disk each time; a killed process still loses none."""
        with self._connection() as connection:
            # SQLite writes all to the disk when the last that has the file open lets go of it.
            connection.execute("SELECT place FROM scores_1 LIMIT 1").fetchall()
            yield

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing(sqlite3.connect(self._path, timeout=60)) as connection, connection:
                connection.execute("PRAGMA synchronous=NORMAL")
                yield connection
        except sqlite3.DatabaseError as error:
            raise input_error(self._path, f"cannot store scores: {error}", "name another file, or delete this one") from error


def keys_of(metric: Metric, segments: Segments) -> list[bytes]:
    """The key of each text: a hash of everything that its statistics depend on."""
    settings = [metric.name, metric.signature, list(metric.reads)]
    rows = zip(segments.texts, *segments.columns(metric.reads), strict=True)
    return [hashlib.sha256(canonical_json([settings, row])).digest() for row in rows]


def user_cache() -> Path:
    """The default file of cached scores: ``empathy-eval/scores.sqlite`` in the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "empathy-eval" / "scores.sqlite"


@dataclass(frozen=True)
class Scoring:
    """How texts are scored: where, and with which cache and progress. None of it changes a value.

    Metrics with ``keep`` look into ``cache`` first. All work that can be pickled goes to ``spread``, such as
    :func:`empathy_eval.base.workers.map_over_ray`. ``progress`` gets the number of texts that a metric has done.
    """

    cache: ScoreCache | None = None
    spread: ParallelMap | None = None
    progress: Callable[[int], None] = lambda texts: None


# Here, with nothing kept and nothing told.
PLAIN = Scoring()


def statistics_of(
    metrics: Sequence[Metric], pairs: Pairs, scoring: Scoring = PLAIN, *, processes: int | None = None
) -> dict[str, MetricResult]:
    """The result of each metric, by name, for all variants of the pairs. Scored texts are not scored again.

    Metrics with ``share`` run in ``processes`` of this machine (by default one for each core, one for few texts).
    """
    cache, spread = scoring.cache, scoring.spread
    count(len(metrics) * len(pairs.ids) * len(pairs.variants), "scores")
    tables = {metric.name: StatisticsTable(metric.name, pairs, scoring.progress) for metric in metrics}
    portable = [metric for metric in metrics if (spread or getattr(metric, "share", False)) and _portable(metric)]
    shared = [metric for metric in portable if cache is None or not getattr(metric, "keep", False)]
    reads = {name for metric in shared for name in metric.reads}
    for results in (
        (spread or map_in_processes(len(pairs.ids) * len(pairs.variants), processes))(_all, shared, pairs.chunks(reads)) if shared else ()
    ):
        for metric, result in zip(shared, results, strict=True):
            tables[metric.name].add(result)
    for metric in metrics:
        where = spread if spread and metric in portable else map_serially
        for result in _parts(metric, pairs, cache, where) if metric not in shared else ():
            if not tables[metric.name].add(result):
                break
    return {name: table.scored() for name, table in tables.items()}


# Texts that are scored a second time, beside other texts.
TRIED = 8


def consistent_statistics(metrics: Sequence[Metric], sets: Sequence[Pairs], scoring: Scoring = PLAIN) -> list[dict[str, MetricResult]]:
    """The results of metrics for each set of pairs; a metric that gave one text two scores has a fault instead of all its scores.

    Texts repeat where sets share them. To have repeats always, a few texts of the first set are scored again alone; not by metrics that
    score single texts, and cached scores are reused.
    """
    scored = [(pairs, statistics_of(metrics, pairs, scoring)) for pairs in sets]
    faults = find_contradictions(metrics, [*scored, *(_rescored(metrics, *scored[0], scoring) if scored else ())])
    return [{name: MetricResult({}, faults[name]) if name in faults else own for name, own in results.items()} for _, results in scored]


def _rescored(
    metrics: Sequence[Metric], pairs: Pairs, results: Mapping[str, MetricResult], scoring: Scoring
) -> list[tuple[Pairs, dict[str, MetricResult]]]:
    """A few texts of one variant, scored alone."""
    batched = [metric for metric in metrics if not scores_single_texts(metric) and results[metric.name].rows]
    if not batched or not pairs.ids:
        return []
    # Fewer than all texts: else they would be beside the same texts again.
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


class StatisticsTable:
    """The statistics of a metric by variant, filled chunk by chunk, since they are large."""

    def __init__(self, metric: str, pairs: Pairs, progress: Callable[[int], None]) -> None:
        self._metric, self._pairs, self._filled, self._progress = metric, len(pairs.ids), 0, progress
        self._rows: dict[str, Array] = {name: np.zeros((self._pairs, 0)) for name in pairs.variants}
        self._fault: MetricFault | None = None

    def add(self, part: Part) -> bool:
        """Adds the rows of the next chunk. False after a fault of the whole metric, which is final."""
        if self._broken:
            return False
        result, fault = part
        if fault and not fault.texts:
            self._fault = fault
            return False
        self._fault = self._fault or fault
        width, variants = result.shape[1], list(self._rows)
        before = self._rows[variants[0]].shape[1]
        if width and not before:
            self._rows = {name: np.full((self._pairs, width), np.nan) for name in variants}
        elif width not in (0, before):
            self._fault = MetricFault(self._metric, "all pairs", uneven(width, before))
            return False
        many = len(result) // len(variants)
        for index, name in enumerate(variants if width else ()):
            self._rows[name][self._filled : self._filled + many] = result[index :: len(variants)]
        self._filled += many
        self._progress(len(result))
        advance(len(result))
        return True

    @property
    def _broken(self) -> bool:
        return self._fault is not None and not self._fault.texts

    def scored(self) -> MetricResult:
        """The result, with the number of all texts that failed."""
        if self._broken:
            return MetricResult({}, self._fault)
        if not self._pairs:
            return MetricResult({name: np.zeros((0, 1)) for name in self._rows})
        failed = sum(len(rows) if not rows.shape[1] else int(np.isnan(rows[:, 0]).sum()) for rows in self._rows.values())
        texts = self._pairs * len(self._rows)
        fault = self._fault and replace(self._fault, texts=failed, of=texts)
        return MetricResult({} if fault and failed == texts else self._rows, fault)


def _portable(metric: Metric) -> bool:
    """Whether a metric can be pickled; otherwise it is scored in this process."""
    try:
        return bool(pickle.dumps(metric))
    except Exception:  # an object's own pickling may raise anything
        return False


def _all(metrics: Sequence[Metric], chunk: Chunk) -> list[Part]:
    return [safe_statistics(metric, chunk.segments, chunk.name_of) for metric in metrics]


def _parts(metric: Metric, pairs: Pairs, cache: ScoreCache | None, spread: ParallelMap) -> Iterator[Part]:
    """The results of each chunk; with a cache, only missing rows are scored, and stored at once."""
    chunks = pairs.chunks(set(metric.reads))
    if cache is None or not getattr(metric, "keep", False):
        yield from (results[0] for results in spread(_all, [metric], chunks))
        return
    pending = deque[_PendingChunk]()
    alone = spread is map_serially and scores_single_texts(metric)

    def missing() -> Iterator[tuple[Chunk, list[int]]]:
        for chunk in chunks:
            keys = keys_of(metric, chunk.segments)
            cached = cache.get(keys)
            rows = sorted({key: row for row, key in reversed(list(enumerate(keys))) if key not in cached}.values())
            # A text by itself, and a kill in the middle loses one at most.
            parts = [[row] for row in rows] if alone and rows else [rows]
            pending.append(_PendingChunk(keys, cached, parts))
            yield from ((chunk, part) for part in parts)

    with cache.batched_writes():
        for fresh in spread(_rows, metric, missing()):
            try:
                whole = pending[0].take(fresh, cache)
            except InvalidStatistics as error:
                whole = NOTHING[:0], MetricFault(metric.name, "all pairs", str(error))
            if whole is not None:
                pending.popleft()
                yield whole


class _PendingChunk:
    """A chunk with missing rows: all keys, the cached rows, and the parts still being scored."""

    def __init__(self, keys: Sequence[bytes], cached: dict[bytes, Array], parts: Sequence[Sequence[int]]) -> None:
        self._keys, self._cached, self._parts = keys, cached, deque(parts)
        self._fault: MetricFault | None = None

    def take(self, fresh: Part, cache: ScoreCache) -> Part | None:
        """Stores the rows of the next part; returns the chunk's result after the last one, or after a fault of the whole metric.

        Raises:
            InvalidStatistics: if cached and new rows differ in width.
        """
        statistics, fault = fresh
        if fault and not fault.texts:
            return fresh
        rows = self._parts.popleft()
        self._fault = self._fault or fault
        new = {self._keys[row]: values for row, values in zip(rows, statistics, strict=True) if len(values) and not np.isnan(values[0])}
        if new:
            cache.put(new)
        self._cached |= new
        if self._parts:
            return None
        return stacked([self._cached[key][None] if key in self._cached else NOTHING for key in self._keys]), self._fault


def _rows(metric: Metric, part: tuple[Chunk, list[int]]) -> Part:
    """The statistics of some rows of a chunk."""
    chunk, rows = part
    return safe_statistics(metric, chunk.segments.take(rows), lambda row: chunk.name_of(rows[row])) if rows else (NOTHING[:0], None)
