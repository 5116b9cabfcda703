"""Merging and exporting ledgers: of two different answers to one request the one with the smaller hash stays."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from empathy_eval.base.errors import JobError, Problem, collecting, input_error, job_error, refuse
from empathy_eval.base.files import whole_file
from empathy_eval.base.hashing import digest
from empathy_eval.completions.ledger import RESERVE, Ledger
from empathy_eval.completions.ledger_file import EXPORT, export_line, is_export
from empathy_eval.completions.ledger_rows import INSERT
from empathy_eval.completions.requests import Completion

REPLACE = INSERT.replace("INSERT OR IGNORE", "REPLACE")
# Conflicts that are told one by one; all of them are counted.
TOLD = 100


@dataclass(frozen=True)
class Conflict:
    """A request with two different answers; the rest is the provenance of the one that stays."""

    key: str
    dialogue_id: str
    kind: str
    turn: int | None
    model: str
    finish: str
    delivery: str
    ledger: str


@dataclass
class Merged:
    """What one ledger brought: answers in it, new ones, ones that were there already, conflicts, and how many of those it won."""

    ledger: str
    answers: int = 0
    added: int = 0
    same: int = 0
    conflicts: int = 0
    won: int = 0
    told: list[Conflict] = field(default_factory=list)


def completion_hash(completion: Completion) -> str:
    """The hash of all that is read back of an answer: text, finish, model and tokens."""
    return digest(asdict(completion))


def merge(into: Path, sources: Sequence[Path]) -> list[Merged]:
    """Adds the answers and open reservations of other ledgers to a ledger, which is made if it is not there: all or nothing.

    What is read back afterwards is the same in whatever order and however often ledgers are merged.

    Raises:
        InputError: if one of them is no ledger or is in use, with all such at once; or if one is named twice.
        JobError: if one is damaged, or the disk is full. ``into`` is as it was then, and is not there if it was not.
    """
    twice = [path for place, path in enumerate(sources) if os.path.realpath(path) in map(os.path.realpath, (into, *sources[:place]))]
    if twice:
        raise input_error(twice[0], "is named twice", "name each ledger once")
    problems = list[Problem]()
    for path in sources:
        with collecting(problems):
            Ledger(path, create=False, write=False).close()
    refuse(problems)
    report = [Merged(str(path)) for path in sources]
    reserved = list[tuple[object, ...]]()
    with _target(into) as ledger:
        ledger.write((REPLACE, _all_chosen(ledger, sources, report, reserved)), (RESERVE, reserved))
    return report


def export(path: Path, out: Path) -> int:
    """Writes the answers of a ledger as lines of JSON under gzip, in the order of their keys; how many they are.

    Raises:
        InputError: if it cannot be opened, or the file has another ending than exports have.
        JobError: if rows are damaged, or the file cannot be written.
    """
    if not is_export(out):
        raise input_error(out, f"is no name of an export, which ends in {EXPORT}", f"name a file such as answers{EXPORT}")
    # Without a name and a time in it, so that the same answers are the same bytes.
    with (
        Ledger(path, create=False, write=False) as ledger,
        whole_file(out) as partial,
        partial.open("wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, mtime=0) as stream,
    ):
        stream.writelines(export_line(row, completion.text) for row, completion in ledger.rows())
        return len(ledger)


@contextlib.contextmanager
def _target(into: Path) -> Iterator[Ledger]:
    """The ledger that gets the answers. One that is not there yet is made out of sight, and gets its name when it is whole."""
    if os.path.lexists(into):
        with Ledger(into) as ledger:
            yield ledger
        return
    try:
        into.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{into.name[:99]}.", dir=into.parent) as folder:
            made = Path(folder) / "ledger.sqlite"
            with _named(made, into) as ledger:
                yield ledger
            # SQLite could not bring all into the file if it left something beside it.
            if len(list(Path(folder).iterdir())) > 1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if os.path.lexists(into):
                raise OSError(errno.EEXIST, "it was made by another process meanwhile")
            made.rename(into)
    except OSError as error:
        fix = "make room or give permission, then run the same command"
        raise job_error(into, f"cannot be written: {error.strerror or error}", fix) from error


def _named(made: Path, into: Path) -> Ledger:
    """An open ledger that goes by the name it will have."""
    try:
        ledger = Ledger(made)
    except JobError as error:
        raise JobError(replace(one, where=str(into)) for one in error.problems) from error
    ledger.path = into
    return ledger


def _all_chosen(
    ledger: Ledger, sources: Sequence[Path], report: Sequence[Merged], reserved: list[tuple[object, ...]]
) -> Iterator[tuple[Any, ...]]:
    """The rows of answers to be written; ``reserved`` gets the reservations. One source is open at a time: there may be many."""
    for path, merged in zip(sources, report, strict=True):
        with Ledger(path, create=False, write=False) as source:
            yield from _chosen(ledger, source, merged)
            reserved += [tuple(row.values())[:-1] for row in source.table("reservations")]


def _chosen(ledger: Ledger, source: Ledger, merged: Merged) -> Iterator[tuple[Any, ...]]:
    """The rows of one source; each is seen by the comparisons that follow."""
    for row, completion in source.rows():
        merged.answers += 1
        found = ledger.get(row[0])
        if found == completion:
            merged.same += 1
        elif found is None:
            merged.added += 1
            yield row
        else:
            merged.conflicts += 1
            won = completion_hash(completion) < completion_hash(found)
            merged.won += won
            if len(merged.told) < TOLD:
                merged.told.append(_conflict(row[0], source if won else ledger))
            if won:
                yield row


def _conflict(key: str, stays: Ledger) -> Conflict:
    row, _ = next(stays.rows("key = ?", (key,)))
    return Conflict(*(*row[:6], row[10], str(stays.path)))
