"""The ledger: one SQLite file with the completion of every request ever answered."""

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
from empathy_eval.completions.ledger_file import damaged, opened
from empathy_eval.completions.ledger_rows import INSERT, NAMES, Bad, broken, problems_of, unpacked
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

    def __init__(self, path: Path, *, create: bool = True, write: bool = True) -> None:
        """Opens a ledger, or makes an empty one; without ``write`` one that lies where nothing can be written will do.

        Raises:
            InputError: if the file is missing (and ``create`` is False), not a ledger, of another version, or in use.
            JobError: if the file is damaged, or cannot be opened.
        """
        self.path = path
        # Reservations that are over, until the next commit.
        self._released = list[tuple[str]]()
        # What is to be stored in the next commit.
        self._gathered = list[Entry]()
        with ExitStack() as kept:
            self._connection = opened(path, kept, create=create, write=write)
            self._kept = kept.pop_all()

    def get(self, key: str) -> Completion | None:
        """The completion of a request, or None if it was never answered. Other rows may be damaged.

        Raises:
            JobError: if the row is damaged.
        """
        try:
            row = self._connection.execute(ANSWER, (key,)).fetchone()
        except sqlite3.DatabaseError as error:
            raise damaged(self.path, f"row {key}: {error}") from error
        if row is None:
            return None
        body, finish, model, *tokens = row
        if (type(body), type(finish), type(model)) == (bytes, str, str):
            with suppress(zlib.error, ValueError):
                return Completion(unpacked(body), finish, model, Usage(*tokens))
        return next(completion for _, completion in self.rows("key = ?", (key,)))

    def broken(self, key: str, what: str) -> JobError:
        """The error for a row of answers that others find damaged."""
        place = next(self.query("SELECT place FROM sound_completions WHERE key = ?", (key,)))[0]
        return JobError([broken(self.path, "completions", (key, place), what)])

    def rows(self, where: str = "1", parameters: Sequence[object] = ()) -> Iterator[tuple[tuple[Any, ...], Completion]]:
        """Rows of the table ``completions`` by key, each with the completion it holds.

        Raises:
            JobError: at the end, if rows are damaged, with all such at once; they are left out.
        """
        bad = Bad(self.path)
        for row in self.query(f"SELECT * FROM sound_completions WHERE {where} ORDER BY key", parameters):  # noqa: S608
            problems = problems_of(self.path, "completions", row)
            try:
                text = "" if problems else unpacked(row[11])
            except (zlib.error, ValueError) as error:
                problems = [broken(self.path, "completions", row, str(error))]
            if problems:
                bad.add(problems)
            else:
                yield row[:12], Completion(text, row[5], row[4], Usage(*row[6:9]))
        bad.told()

    def problems(self) -> list[Problem]:
        """What is wrong with rows of answers, without a look into the answers; the first ones, and how many more there are."""
        bad = Bad(self.path)
        for row in self.query(LOOKED):
            bad.add(problems_of(self.path, "completions", row))
        return bad.problems

    def table(self, name: str, where: str = "1", parameters: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Rows of another table than ``completions``, in the order they were noted.

        Raises:
            JobError: if rows are damaged, with all such at once.
        """
        query = f"SELECT * FROM sound_{name} WHERE {where} ORDER BY place"  # noqa: S608
        rows, bad = list(self.query(query, parameters)), Bad(self.path)
        for row in rows:
            bad.add(problems_of(self.path, name, row))
        bad.told()
        return [dict(zip(NAMES[name], row, strict=True)) for row in rows]

    def put(self, *entries: Entry) -> None:
        """Stores completions in one commit. The first answer of a request stays.

        Raises:
            JobError: if they cannot be written (a full disk); none of them is stored then.
        """
        self.write((INSERT, map(row_of, entries)))

    async def store(self, entry: Entry) -> None:
        """:meth:`put`, as those call it who ask a model: what comes in one turn of the event loop is one commit."""
        self._gathered.append(entry)
        if len(self._gathered) == 1:
            self._storing = asyncio.ensure_future(self._store())
        await asyncio.shield(self._storing)

    async def _store(self) -> None:
        await asyncio.sleep(0)
        entries, self._gathered = self._gathered, []
        await self.commit([row_of(entry) for entry in entries])

    async def commit(self, rows: list[tuple[object, ...]]) -> None:
        """Stores rows; a ledger that passes them on to another process waits for it here."""
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
        """Notes the worst case of a request that is about to be sent."""
        self.write((RESERVE, [(token, model, worst.input_tokens, worst.output_tokens)]))

    def release(self, token: str) -> None:
        """Takes a reservation back whose outcome is known: in one commit with what is written next, which is its answer if there is one."""
        self._released.append((token,))

    def reserved(self) -> list[tuple[str, str, Usage]]:
        """The open reservations and the worst cases of what is under way in batches, by model and delivery."""
        if self._released:
            self.write()
        return [(model, delivery, Usage(read, 0, written)) for model, delivery, read, written in self.query(RESERVED)]

    def spent(self) -> list[tuple[str, str, Usage]]:
        """The tokens of all answers, by model and delivery."""
        return [(model, delivery, Usage(*tokens)) for model, delivery, *tokens in self.query(SPENT)]

    def answered(self) -> Iterator[tuple[str, int]]:
        """How many answers of models there are about each dialogue."""
        yield from self.query("SELECT dialogue_id, count(*) FROM sound_completions WHERE delivery != 'computed' GROUP BY dialogue_id")

    def query(self, sql: str, parameters: Iterable[object] = ()) -> Iterator[tuple[Any, ...]]:
        """Rows of a reading query. What strangers wrote is looked at in the views ``sound_…``, where counts are sound.

        Raises:
            JobError: if the file is damaged.
        """
        try:
            yield from self._connection.execute(sql, tuple(parameters))
        except sqlite3.DatabaseError as error:
            raise damaged(self.path, str(error)) from error

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM completions").fetchone()[0])

    def close(self) -> None:
        """Closes the file; every answer is in it already."""
        if self._released or self._gathered:
            self.write()
        self._kept.close()

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


ANSWERED = "DELETE FROM noted WHERE key = ?"


@dataclass(frozen=True)
class Batch:
    """A file of requests on its way: ``id`` is the provider's name of the batch, None until it is known."""

    file: str
    endpoint: str
    build: str
    round: int
    id: str | None = None


def note(ledger: Ledger, file: str, requests: Iterable[PendingRequest], batch: Batch | None = None) -> None:
    """Notes what is about to be given out, so that its answers are known when they come."""
    rows = (
        (one.key, one.about.dialogue_id, one.about.kind, one.about.turn, one.model, one.worst.input_tokens, one.worst.output_tokens, file)
        for one in requests
    )
    batches = [(batch.file, batch.endpoint, batch.build, batch.round, batch.id)] if batch else []
    ledger.write(("REPLACE INTO noted VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows), ("INSERT INTO batches VALUES (?, ?, ?, ?, ?, 0)", batches))


def wanted(ledger: Ledger, key: str) -> tuple[About, str, Usage] | None:
    """What a request is about, its model and its worst case; None if it was never given out.

    Raises:
        JobError: if its row is damaged, as do all that read here.
    """
    for row in ledger.table("noted", "key = ?", (key,)):
        return About(row["dialogue_id"], row["kind"], row["turn"]), row["model"], Usage(row["input"], 0, row["output"])
    return None


def under_way(ledger: Ledger) -> list[Batch]:
    """The batches of all builds whose answers are not taken in yet, in the order they were noted."""
    rows = ledger.table("batches", "NOT taken")
    return [Batch(row["file"], row["endpoint"], row["build"], row["round"], row["id"]) for row in rows]


def taken_ids(ledger: Ledger) -> set[str]:
    """The provider's names of all batches that this ledger knows."""
    return {row["id"] for row in ledger.table("batches", "id IS NOT NULL")}


def next_round(ledger: Ledger, build: str) -> int:
    """The number of the next round of a build, from 1."""
    return 1 + max((row["round"] for row in ledger.table("batches", "build = ?", (build,))), default=0)


def named(ledger: Ledger, batch: Batch, name: str) -> Batch:
    """Notes the provider's name of a batch."""
    ledger.write(("UPDATE batches SET id = ? WHERE file = ? AND NOT taken", [(name, batch.file)]))
    return replace(batch, id=name)


def still_counted(ledger: Ledger, batch: Batch) -> None:
    """Keeps the worst cases of a batch's unanswered requests set aside: its answers are gone, and may have been paid for."""
    for row in list(ledger.table("noted", "file = ?", (batch.file,))):
        ledger.reserve(f"{batch.id} {row['key']}", row["model"], Usage(row["input"], 0, row["output"]))


def ended(ledger: Ledger, batch: Batch) -> None:
    """Notes that a batch brings nothing more; one that never had a name is forgotten.

    Its requests stay noted until they are answered: they may have been given out by hand too.
    """
    gone = "DELETE FROM batches WHERE file = ? AND NOT taken" if batch.id is None else "UPDATE batches SET taken = 1 WHERE file = ?"
    ledger.write((gone, [(batch.file,)]))


@dataclass(frozen=True)
class PendingRequest:
    """A request that was written down: its key, what it is about, who is to answer it, the body, the most it may cost."""

    key: str
    about: About
    endpoint: str
    model: str
    body: bytes
    worst: Usage
