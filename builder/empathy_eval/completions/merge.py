"""Merging and exporting ledgers. Of two different answers to one request, the one with the smaller hash stays."""

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
MAX_CONFLICTS = 100


@dataclass(frozen=True)
class Conflict:
    """A request with two different answers; the other fields describe the one that stays."""

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
    """What one ledger contributed: its answers, new ones, known ones, conflicts, and how many of those it won."""

    ledger: str
    answers: int = 0
    added: int = 0
    same: int = 0
    conflicts: int = 0
    won: int = 0
    shown: list[Conflict] = field(default_factory=list)


def completion_hash(completion: Completion) -> str:
    """The hash of an answer: text, finish, model and tokens."""
    return digest(asdict(completion))


def merge(into: Path, sources: Sequence[Path]) -> list[Merged]:
    """Adds answers and open reservations of other ledgers to a ledger, which is created if missing: all or nothing.

    The result does not depend on the order or number of merges.

    Raises:
        InputError: if one is not a ledger or is in use, with all such at once; or if one is named twice.
        JobError: if one is damaged, or the disk is full; ``into`` is unchanged then.
    """
    twice = [path for index, path in enumerate(sources) if os.path.realpath(path) in map(os.path.realpath, (into, *sources[:index]))]
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
    """Writes the answers of a ledger as gzipped JSON lines, by key; returns their number.

    Raises:
        InputError: if it cannot be opened, or the file has another suffix than exports have.
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
    """The ledger that receives answers. A new one is built aside and takes its name when it is complete."""
    if os.path.lexists(into):
        with Ledger(into) as ledger:
            yield ledger
        return
    try:
        into.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{into.name[:99]}.", dir=into.parent) as folder:
            temporary = Path(folder) / "ledger.sqlite"
            with _open_as(temporary, into) as ledger:
                yield ledger
            # SQLite could not bring all into the file if it left something beside it.
            if len(list(Path(folder).iterdir())) > 1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if os.path.lexists(into):
                raise OSError(errno.EEXIST, "it was made by another process meanwhile")
            temporary.rename(into)
    except OSError as error:
        fix = "make room or give permission, then run the same command"
        raise job_error(into, f"cannot be written: {error.strerror or error}", fix) from error


def _open_as(path: Path, into: Path) -> Ledger:
    """Opens a ledger under the name that it will have."""
    try:
        ledger = Ledger(path)
    except JobError as error:
        raise JobError(replace(problem, where=str(into)) for problem in error.problems) from error
    ledger.path = into
    return ledger


def _all_chosen(
    ledger: Ledger, sources: Sequence[Path], report: Sequence[Merged], reserved: list[tuple[object, ...]]
) -> Iterator[tuple[Any, ...]]:
    """The rows to write; reservations go to ``reserved``. One source is open at a time: there may be many."""
    for path, merged in zip(sources, report, strict=True):
        with Ledger(path, create=False, write=False) as source:
            yield from _chosen(ledger, source, merged)
            reserved += [tuple(row.values())[:-1] for row in source.table("reservations")]


def _chosen(ledger: Ledger, source: Ledger, merged: Merged) -> Iterator[tuple[Any, ...]]:
    """The rows of one source that are written."""
    for row, completion in source.rows():
        merged.answers += 1
        known = ledger.get(row[0])
        if known == completion:
            merged.same += 1
        elif known is None:
            merged.added += 1
            yield row
        else:
            merged.conflicts += 1
            won = completion_hash(completion) < completion_hash(known)
            merged.won += won
            if len(merged.shown) < MAX_CONFLICTS:
                stays = source if won else ledger
                kept, _ = next(stays.rows("key = ?", (row[0],)))
                merged.shown.append(Conflict(*(*kept[:6], kept[10], str(stays.path))))
            if won:
                yield row
