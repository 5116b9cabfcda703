"""What a ledger is waiting for: requests given out in a file and not answered yet, and the batches on their way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.requests import About, Usage

NOTE = "REPLACE INTO noted VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
ANSWERED = "DELETE FROM noted WHERE key = ?"


@dataclass(frozen=True)
class Batch:
    """A file of requests on its way: ``id`` is the provider's name of the batch, None until it is known."""

    file: str
    endpoint: str
    build: str
    round: int
    id: str | None = None


def note(ledger: Ledger, file: str, requests: Iterable[Noted], batch: Batch | None = None) -> None:
    """Notes what is about to be given out, so that its answers are known when they come."""
    rows = (
        (one.key, one.about.dialogue_id, one.about.kind, one.about.turn, one.model, one.worst.input_tokens, one.worst.output_tokens, file)
        for one in requests
    )
    batches = [(batch.file, batch.endpoint, batch.build, batch.round, batch.id)] if batch else []
    ledger.write((NOTE, rows), ("INSERT INTO batches VALUES (?, ?, ?, ?, ?, 0)", batches))


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
class Noted:
    """A request that was written down: its key, what it is about, who is to answer it, the body, the most it may cost."""

    key: str
    about: About
    endpoint: str
    model: str
    body: bytes
    worst: Usage
