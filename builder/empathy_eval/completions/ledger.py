"""The ledger: one SQLite file with every completion, reserved spending, and the batches and requests that are still open."""

from __future__ import annotations

import asyncio
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from empathy_eval.base.errors import JobError, Problem, job_error
from empathy_eval.completions.ledger_file import damaged_error, open_ledger
from empathy_eval.completions.ledger_rows import INSERT, NAMES, DamagedRows, damaged_row, row_problems, unpacked
from empathy_eval.completions.requests import About, Completion, Usage

RESERVED = """
SELECT model, 'live', sum(input), sum(output) FROM sound_reservations GROUP BY model UNION ALL
SELECT model, 'batch', sum(input), sum(output) FROM sound_noted WHERE file IN (SELECT file FROM batches WHERE NOT taken) GROUP BY model
"""
SPENT = """
SELECT model, delivery, sum(input_tokens), sum(cached_tokens), sum(output_tokens) FROM sound_completions
GROUP BY model, delivery ORDER BY model, delivery
"""
ANSWER = "SELECT body, finish, model, input_tokens, cached_tokens, output_tokens FROM sound_completions WHERE key = ?"
# All but what is in the bodies.
LOOKED = f"SELECT {', '.join(NAMES['completions'][:-2])}, iif(typeof(body) = 'blob', x'', NULL), place FROM sound_completions"  # noqa: S608
RESERVE = "INSERT OR IGNORE INTO reservations VALUES (?, ?, ?, ?)"
RELEASE = "DELETE FROM reservations WHERE token = ?"
ANSWERED = "DELETE FROM noted WHERE key = ?"


@dataclass(frozen=True)
class LedgerEntry:
    """A completion to be stored: ``delivery`` says how it arrived, ``seconds`` how long it took."""

    key: str
    about: About
    completion: Completion
    delivery: str = "live"
    seconds: float | None = None


@dataclass(frozen=True)
class Batch:
    """A submitted file of requests; ``id`` is the provider's name of the batch, None until it is known."""

    file: str
    endpoint: str
    build: str
    round: int
    id: str | None = None


@dataclass(frozen=True)
class PendingRequest:
    """A request that was written down: key, subject, endpoint and model, body, worst case."""

    key: str
    about: About
    endpoint: str
    model: str
    body: bytes
    worst: Usage


class Ledger:
    """An open ledger, for one process at a time; use it as a context manager.

    A row is committed before :meth:`put` returns (write-ahead log, ``synchronous=NORMAL``): it survives the death of the process, but not a
    power loss at the same instant. Answers are compressed with zlib, whose checksum reveals damaged rows.
    """

    def __init__(self, path: Path, *, create: bool = True, write: bool = True) -> None:
        """Opens a ledger, or creates an empty one; without ``write`` a read-only file will do.

        Raises:
            InputError: if the file is missing (and ``create`` is False), not a ledger, of another version, or in use.
            JobError: if the file is damaged, or cannot be opened.
        """
        self.path = path
        # Reservations that are over, until the next commit.
        self._released = list[tuple[str]]()
        # What is to be stored in the next commit.
        self._gathered = list[LedgerEntry]()
        with ExitStack() as kept:
            self._connection = open_ledger(path, kept, create=create, write=write)
            self._kept = kept.pop_all()

    def get(self, key: str) -> Completion | None:
        """The completion of a request, or None if it was never answered. Other rows may be damaged.

        Raises:
            JobError: if the row is damaged.
        """
        try:
            row = self._connection.execute(ANSWER, (key,)).fetchone()
        except sqlite3.DatabaseError as error:
            raise damaged_error(self.path, f"row {key}: {error}") from error
        if row is None:
            return None
        body, finish, model, *tokens = row
        if (type(body), type(finish), type(model)) == (bytes, str, str):
            with suppress(zlib.error, ValueError):
                return Completion(unpacked(body), finish, model, Usage(*tokens))
        return next(completion for _, completion in self.rows("key = ?", (key,)))

    def damaged_row_error(self, key: str, what: str) -> JobError:
        """The error for an answer that the caller finds damaged."""
        place = next(self.query("SELECT place FROM sound_completions WHERE key = ?", (key,)))[0]
        return JobError([damaged_row(self.path, "completions", (key, place), what)])

    def rows(self, where: str = "1", parameters: Sequence[object] = ()) -> Iterator[tuple[tuple[Any, ...], Completion]]:
        """Rows of the table ``completions`` by key, each with its completion.

        Raises:
            JobError: at the end, naming all damaged rows, which are left out.
        """
        bad = DamagedRows(self.path)
        for row in self.query(f"SELECT * FROM sound_completions WHERE {where} ORDER BY key", parameters):  # noqa: S608
            problems = row_problems(self.path, "completions", row)
            try:
                text = "" if problems else unpacked(row[11])
            except (zlib.error, ValueError) as error:
                problems = [damaged_row(self.path, "completions", row, str(error))]
            if problems:
                bad.add(problems)
            else:
                yield row[:12], Completion(text, row[5], row[4], Usage(*row[6:9]))
        bad.raise_if_any()

    def problems(self) -> list[Problem]:
        """Problems of answers without unpacking them: the first ones, and the number of others."""
        bad = DamagedRows(self.path)
        for row in self.query(LOOKED):
            bad.add(row_problems(self.path, "completions", row))
        return bad.problems

    def table(self, name: str, where: str = "1", parameters: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Rows of another table, in insertion order.

        Raises:
            JobError: if rows are damaged, with all of them at once.
        """
        query = f"SELECT * FROM sound_{name} WHERE {where} ORDER BY place"  # noqa: S608
        rows, bad = list(self.query(query, parameters)), DamagedRows(self.path)
        for row in rows:
            bad.add(row_problems(self.path, name, row))
        bad.raise_if_any()
        return [dict(zip(NAMES[name], row, strict=True)) for row in rows]

    def put(self, *entries: LedgerEntry) -> None:
        """Stores completions in one commit. The first answer of a request stays.

        Raises:
            JobError: if they cannot be written (a full disk); none is stored then.
        """
        self.write((INSERT, map(row_of, entries)))

    async def store(self, entry: LedgerEntry) -> None:
        """:meth:`put` for coroutines: all entries of one turn of the event loop are one commit."""
        self._gathered.append(entry)
        if len(self._gathered) == 1:
            self._storing = asyncio.ensure_future(self._store())
        await asyncio.shield(self._storing)

    async def _store(self) -> None:
        await asyncio.sleep(0)
        entries, self._gathered = self._gathered, []
        await self.commit([row_of(entry) for entry in entries])

    async def commit(self, rows: list[tuple[object, ...]]) -> None:
        """Stores rows; a ledger that passes them to another process waits for it here."""
        self.write((INSERT, rows))

    def write(self, *statements: tuple[str, Iterable[Sequence[object]]]) -> None:
        """Runs statements, each over its rows, in one commit.

        Raises:
            JobError: if they cannot be written (a full disk); nothing is changed then.
        """
        try:
            self._connection.execute("BEGIN")
            # What waits for its commit goes with any other: a reservation that is taken back never goes before its answer.
            for sql, rows in ((INSERT, [*map(row_of, self._gathered)]), *statements, (RELEASE, self._released)):
                self._connection.executemany(sql, rows)
            self._connection.execute("COMMIT")
            self._released = []
        except BaseException as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if not isinstance(error, sqlite3.DatabaseError):
                raise
            fix = "make room, then run the same command: what is stored is not asked for again"
            raise job_error(self.path, f"cannot be written: {error}", fix) from error

    def reserve(self, token: str, model: str, worst: Usage) -> None:
        """Records the worst case of a request before it is sent."""
        self.write((RESERVE, [(token, model, worst.input_tokens, worst.output_tokens)]))

    def release(self, token: str) -> None:
        """Removes a settled reservation, in one commit with the next write, which is its answer if there is one."""
        self._released.append((token,))

    def reserved(self) -> list[tuple[str, str, Usage]]:
        """Open reservations and worst cases of pending batches, by model and delivery."""
        if self._released:
            self.write()
        return [(model, delivery, Usage(read, 0, written)) for model, delivery, read, written in self.query(RESERVED)]

    def spent(self) -> list[tuple[str, str, Usage]]:
        """The tokens of all answers, by model and delivery."""
        return [(model, delivery, Usage(*tokens)) for model, delivery, *tokens in self.query(SPENT)]

    def answered(self) -> Iterator[tuple[str, int]]:
        """The number of model answers about each dialogue."""
        yield from self.query("SELECT dialogue_id, count(*) FROM sound_completions WHERE delivery != 'computed' GROUP BY dialogue_id")

    def note_requests(self, file: str, requests: Iterable[PendingRequest], batch: Batch | None = None) -> None:
        """Records requests before they are handed out, so that their answers are recognised."""
        rows = (
            (request.key, *vars(request.about).values(), request.model, request.worst.input_tokens, request.worst.output_tokens, file)
            for request in requests
        )
        batches = [(batch.file, batch.endpoint, batch.build, batch.round, batch.id)] if batch else []
        self.write(("REPLACE INTO noted VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows), ("INSERT INTO batches VALUES (?, ?, ?, ?, ?, 0)", batches))

    def noted_request(self, key: str) -> tuple[About, str, Usage] | None:
        """What a request is about, its model and its worst case; None if it was never handed out.

        Raises:
            JobError: if its row is damaged; so do the other functions that read.
        """
        for row in self.table("noted", "key = ?", (key,)):
            return About(row["dialogue_id"], row["kind"], row["turn"]), row["model"], Usage(row["input"], 0, row["output"])
        return None

    def open_batches(self) -> list[Batch]:
        """The batches of all builds whose answers are not imported yet, in insertion order."""
        rows = self.table("batches", "NOT taken")
        return [Batch(row["file"], row["endpoint"], row["build"], row["round"], row["id"]) for row in rows]

    def batch_ids(self) -> set[str]:
        """The provider's names of all batches in this ledger."""
        return {row["id"] for row in self.table("batches", "id IS NOT NULL")}

    def next_round(self, build: str) -> int:
        """The number of a build's next round, from 1."""
        return 1 + max((row["round"] for row in self.table("batches", "build = ?", (build,))), default=0)

    def set_batch_id(self, batch: Batch, name: str) -> Batch:
        """Records the provider's name of a batch."""
        self.write(("UPDATE batches SET id = ? WHERE file = ? AND NOT taken", [(name, batch.file)]))
        return replace(batch, id=name)

    def keep_reservations(self, batch: Batch) -> None:
        """Reserves the worst cases of a batch's unanswered requests: its answers are lost, and may have been paid for."""
        for row in list(self.table("noted", "file = ?", (batch.file,))):
            self.reserve(f"{batch.id} {row['key']}", row["model"], Usage(row["input"], 0, row["output"]))

    def end_batch(self, batch: Batch) -> None:
        """Marks a batch as finished; one without a name is forgotten.

        Its requests stay recorded until they are answered: they may have been handed out manually too.
        """
        statement = (
            "DELETE FROM batches WHERE file = ? AND NOT taken" if batch.id is None else "UPDATE batches SET taken = 1 WHERE file = ?"
        )
        self.write((statement, [(batch.file,)]))

    def query(self, sql: str, parameters: Iterable[object] = ()) -> Iterator[tuple[Any, ...]]:
        """Rows of a reading query. Untrusted values are read through the views ``sound_…``, whose counts are bounded.

        Raises:
            JobError: if the file is damaged.
        """
        try:
            yield from self._connection.execute(sql, tuple(parameters))
        except sqlite3.DatabaseError as error:
            raise damaged_error(self.path, str(error)) from error

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM completions").fetchone()[0])

    def close(self) -> None:
        """Closes the file."""
        if self._released or self._gathered:
            self.write()
        self._kept.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def row_of(entry: LedgerEntry) -> tuple[object, ...]:
    """The row of the table ``completions`` for an entry."""
    about, completion, usage = entry.about, entry.completion, entry.completion.usage
    body = zlib.compress(completion.text.encode(), 6)
    tokens = (usage.input_tokens, usage.cached_tokens, usage.output_tokens)
    seconds = None if entry.seconds is None else round(entry.seconds, 3)
    return (
        entry.key, about.dialogue_id, about.kind, about.turn, completion.model, completion.finish, *tokens, seconds, entry.delivery, body,
    )  # fmt: skip
