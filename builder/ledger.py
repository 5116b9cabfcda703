"""The ledger: one SQLite file with the completion of every request ever answered."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from builder.errors import JobError, input_error, job_error
from builder.records import About, Completion, Usage

APPLICATION_ID = 0x454D5045  # "EMPE": tells a ledger from any other SQLite file
VERSION = 1
TABLE = """
CREATE TABLE completions (
    key TEXT PRIMARY KEY,
    dialogue_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    turn INTEGER,
    model TEXT NOT NULL,
    finish TEXT NOT NULL,
    input_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    seconds REAL,
    delivery TEXT NOT NULL,
    body BLOB NOT NULL
)
"""
# Worst cases of requests that were sent under a budget and have no known outcome yet.
RESERVATIONS = "CREATE TABLE reservations (token TEXT PRIMARY KEY, model TEXT NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL)"
# Requests that were given out of hand, in a file, and have no known answer yet; ``batches`` says which files were submitted.
NOTED = """
CREATE TABLE IF NOT EXISTS noted (
    key TEXT PRIMARY KEY, dialogue_id TEXT NOT NULL, kind TEXT NOT NULL, turn INTEGER,
    model TEXT NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, file TEXT NOT NULL
)
"""
BATCHES = """
CREATE TABLE IF NOT EXISTS batches (
    file TEXT NOT NULL, endpoint TEXT NOT NULL, build TEXT NOT NULL, round INTEGER NOT NULL, id TEXT, taken INTEGER NOT NULL
)
"""
RESERVED = """
SELECT model, 'live', sum(input), sum(output) FROM reservations GROUP BY model UNION ALL
SELECT model, 'batch', sum(input), sum(output) FROM noted WHERE file IN (SELECT file FROM batches WHERE NOT taken) GROUP BY model
"""
SPENT = """
SELECT model, delivery, sum(input_tokens), sum(cached_tokens), sum(output_tokens) FROM completions
GROUP BY model, delivery ORDER BY model, delivery
"""
INSERT = "INSERT OR IGNORE INTO completions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True)
class Entry:
    """A completion on its way into the ledger: ``delivery`` says how it came, ``seconds`` how long it took."""

    key: str
    about: About
    completion: Completion
    delivery: str = "live"
    seconds: float | None = None


class Ledger:
    """An open ledger. One process at a time; use it as a context manager.

    A row is committed before :meth:`put` returns (write-ahead log, ``synchronous=NORMAL``): it survives the death of the
    process, not a loss of power in the same instant. The answer is stored with zlib, whose checksum shows a damaged row.
    """

    def __init__(self, path: Path, *, create: bool = True) -> None:
        """Opens a ledger, or makes an empty one.

        Raises:
            InputError: if the file is missing (and ``create`` is False), not a ledger, of another version, or in use.
            JobError: if the file is damaged, or cannot be opened.
        """
        self.path = path
        if path.is_dir():
            raise input_error(path, "is a folder", "name the file in it, such as ledger.sqlite")
        if not path.exists() and not create:
            raise input_error(path, "there is no ledger here", "name one with --ledger, or build first without --offline")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        except (OSError, sqlite3.OperationalError) as error:
            raise self._closed(error) from error
        try:
            self._lock()
            self._check()
        except BaseException:
            self._connection.close()
            raise

    def _lock(self) -> None:
        try:
            self._connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute("BEGIN EXCLUSIVE")
            # Empty, or left without a table by a disk that was full just then.
            if not self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                self._connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
                self._connection.execute(f"PRAGMA user_version={VERSION}")
                self._connection.execute(TABLE)
                self._connection.execute(RESERVATIONS)
            self._connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise self._closed(error) from error
            fix = "wait for the other process to end, or name another ledger with --ledger"
            raise input_error(self.path, "another process is using this ledger", fix) from error
        except sqlite3.DatabaseError as error:
            raise input_error(self.path, f"is not a ledger: {error}", "name a ledger, or restore it from a copy") from error

    def _check(self) -> None:
        application = self._connection.execute("PRAGMA application_id").fetchone()[0]
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION_ID:
            raise input_error(self.path, "is a database of something else", "name a ledger")
        if version != VERSION:
            fix = f"use the release of empathy-eval that wrote it, or one that reads version {version}"
            raise input_error(self.path, f"has ledger version {version}, and this program reads {VERSION}", fix)
        try:
            verdict = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.DatabaseError as error:
            raise self._damaged(str(error)) from error
        if verdict != "ok":
            raise self._damaged(verdict)
        # Ledgers of before there were these tables get them.
        self._connection.execute(NOTED)
        self._connection.execute(BATCHES)

    def _closed(self, error: Exception) -> JobError:
        return job_error(self.path, f"cannot be opened: {error}", "make room or give permission, then run again")

    def _damaged(self, what: str) -> JobError:
        fix = "restore it from a copy; sqlite3's .recover command saves the rows that are whole"
        return job_error(self.path, f"the ledger is damaged: {what}", fix)

    def get(self, key: str) -> Completion | None:
        """The completion of a request, or None if it was never answered.

        Raises:
            JobError: if the row is damaged.
        """
        try:
            row = self._connection.execute("SELECT * FROM completions WHERE key = ?", (key,)).fetchone()
        except sqlite3.DatabaseError as error:
            raise self._damaged(f"row {key}: {error}") from error
        return None if row is None else self._completion(row)

    def rows(self) -> Iterator[tuple[tuple[Any, ...], Completion]]:
        """All rows of the table ``completions`` by key, each with the completion it holds.

        Raises:
            JobError: at a row that is damaged.
        """
        try:
            for row in self._connection.execute("SELECT * FROM completions ORDER BY key"):
                yield row, self._completion(row)
        except sqlite3.DatabaseError as error:
            raise self._damaged(str(error)) from error

    def _completion(self, row: tuple[Any, ...]) -> Completion:
        try:
            return Completion(zlib.decompress(row[11]).decode(), row[5], row[4], Usage(*row[6:9]))
        except (zlib.error, UnicodeDecodeError) as error:
            raise self._damaged(f"row {row[0]}: {error}") from error

    def put(self, *entries: Entry) -> None:
        """Stores completions in one commit. The first answer of a request stays.

        Raises:
            JobError: if they cannot be written (a full disk); none of them is stored then.
        """
        self.write((INSERT, map(row_of, entries)))

    async def store(self, *entries: Entry) -> None:
        """:meth:`put`, as those call it who ask a model: a ledger that passes entries on to another process waits for it here."""
        self.put(*entries)

    def write(self, *statements: tuple[str, Iterable[Sequence[object]]]) -> None:
        """Runs statements, each over its rows, in one commit.

        Raises:
            JobError: if they cannot be written (a full disk); nothing is changed then.
        """
        try:
            self._connection.execute("BEGIN")
            for sql, rows in statements:
                self._connection.executemany(sql, rows)
            self._connection.execute("COMMIT")
        except BaseException as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if not isinstance(error, sqlite3.DatabaseError):
                raise
            fix = "make room, then run the same command: what is stored is not asked for again"
            raise job_error(self.path, f"cannot be written: {error}", fix) from error

    def reserve(self, token: str, model: str, worst: Usage) -> None:
        """Notes the worst case of a request that is about to be sent."""
        self._connection.execute("INSERT INTO reservations VALUES (?, ?, ?, ?)", (token, model, worst.input_tokens, worst.output_tokens))

    def release(self, token: str) -> None:
        """Takes a reservation back whose outcome is known."""
        self._connection.execute("DELETE FROM reservations WHERE token = ?", (token,))

    def reserved(self) -> list[tuple[str, str, Usage]]:
        """The open reservations and the worst cases of what is under way in batches, by model and delivery."""
        return [(model, delivery, Usage(read, 0, written)) for model, delivery, read, written in self._connection.execute(RESERVED)]

    def spent(self) -> list[tuple[str, str, Usage]]:
        """The tokens of all answers, by model and delivery."""
        return [(model, delivery, Usage(*tokens)) for model, delivery, *tokens in self._connection.execute(SPENT)]

    def query(self, sql: str, parameters: Iterable[object] = ()) -> Iterator[tuple[object, ...]]:
        """Rows of a reading query."""
        yield from self._connection.execute(sql, tuple(parameters))

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM completions").fetchone()[0])

    def close(self) -> None:
        """Closes the file; every answer is in it already."""
        self._connection.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def row_of(entry: Entry) -> tuple[object, ...]:
    """The row of the table ``completions`` that an entry is stored as."""
    about, completion, usage = entry.about, entry.completion, entry.completion.usage
    body = zlib.compress(completion.text.encode(), 6)
    tokens = (usage.input_tokens, usage.cached_tokens, usage.output_tokens)
    seconds = None if entry.seconds is None else round(entry.seconds, 3)
    return (
        entry.key, about.dialogue_id, about.kind, about.turn, completion.model, completion.finish, *tokens, seconds, entry.delivery, body,
    )  # fmt: skip
