"""Scores kept by content: what a metric with these settings gave these texts, for the next report."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import room_for
from empathy_eval.base.hashing import canonical_json
from empathy_eval.metrics.protocol import Array, Metric, Segments

# About 100 bytes each.
MOST = 2_000_000
AT_ONCE = 500
TABLE = "CREATE TABLE IF NOT EXISTS scores_1 (place INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, row BLOB NOT NULL)"


class ScoreCache:
    """A file of statistics by the hash of metric, signature and all that the metric reads; several processes may share it.

    The signature holds every setting and version that can change a number, so a kept row is the row the metric would give. Above
    ``most`` rows the oldest go.
    """

    def __init__(self, path: Path, most: int = MOST) -> None:
        """Opens or makes the file.

        Raises:
            InputError: if the file holds something else, or cannot be there.
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
            connection.execute(TABLE)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Array]:
        """The rows that are there."""
        found: dict[bytes, Array] = {}
        with self._connection() as connection:
            for start in range(0, len(keys), AT_ONCE):
                some = keys[start : start + AT_ONCE]
                query = f"SELECT key, row FROM scores_1 WHERE key IN ({','.join('?' * len(some))})"  # noqa: S608 (placeholders alone)
                found.update((key, np.frombuffer(row, dtype="<f8")) for key, row in connection.execute(query, some))
        return found

    def put(self, rows: Mapping[bytes, Array]) -> None:
        """Keeps rows; one that is there stays."""
        with self._connection() as connection:
            values = [(key, np.asarray(row, dtype="<f8").tobytes()) for key, row in rows.items()]
            connection.executemany("INSERT OR IGNORE INTO scores_1 (key, row) VALUES (?, ?)", values)
            connection.execute("DELETE FROM scores_1 WHERE place <= (SELECT max(place) FROM scores_1) - ?", [self._most])

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Within, rows are kept without waiting for the disk each time: a killed process loses none all the same."""
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
    """The key of each text: the hash of all that its statistics are made from."""
    settings = [metric.name, metric.signature, list(metric.reads)]
    rows = zip(segments.texts, *segments.columns(metric.reads), strict=True)
    return [hashlib.sha256(canonical_json([settings, row])).digest() for row in rows]


def user_cache() -> Path:
    """Where scores are kept when nobody says otherwise: ``empathy-eval/scores.sqlite`` in the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "empathy-eval" / "scores.sqlite"
