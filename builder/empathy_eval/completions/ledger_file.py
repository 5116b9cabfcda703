"""Opening a ledger: whatever lies in the file is a stranger's until it is seen to have a ledger's tables and nothing that runs."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from empathy_eval.base.errors import InputError, JobError, Problem, input_error, job_error, refuse
from empathy_eval.base.json_text import json_text
from empathy_eval.base.parsing import Refused, json_value
from empathy_eval.base.schemas import violations
from empathy_eval.completions.ledger_rows import INSERT, LARGEST, NAMES, TABLES, VIEWS

EXPORT = ".jsonl.gz"
COLUMNS = NAMES["completions"][:-2]
# Lines that cannot be read and are told one by one.
SHOWN = 10
FIX = "write it again with empathy-eval ledger export, or restore it from a copy"


def is_export(path: Path) -> bool:
    """Whether a path names an export, by its ending."""
    return path.name.endswith(EXPORT)


def export_line(row: tuple[Any, ...], text: str) -> bytes:
    """The line of a row of answers: its columns and its text."""
    return json_text({**dict(zip(COLUMNS, row, strict=False)), "text": text}, indent=None).encode() + b"\n"


def exported_rows(path: Path) -> Iterator[tuple[Any, ...]]:
    """The rows of an export, as a ledger stores them.

    Raises:
        InputError: if it cannot be read, a line is not an answer, or one request has two; the first such lines at once.
    """
    problems, seen = list[Problem](), set[str]()
    for number, line in enumerate(_lines(path), 1):
        where = f"{path}: line {number}"
        try:
            if len(line) > LARGEST:
                raise Refused(f"is longer than {LARGEST:,} bytes")
            value = json_value(line.decode())
        except (ValueError, RecursionError) as error:
            problems.append(Problem(where, str(error), FIX))
            continue
        problems += [
            Problem(f"{where}: {place}" if place else where, what, fix) for place, what, fix in violations(value, "ledger_export_row")
        ]
        if not problems and value["key"] in seen:
            problems.append(Problem(where, f'answers the request "{value["key"]}" again', FIX))
        if len(problems) >= SHOWN:
            break
        if not problems:
            seen.add(value["key"])
            yield (*(value[name] for name in COLUMNS), zlib.compress(value["text"].encode(), 6))
    refuse(problems[:SHOWN])


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) as stream:
            while line := stream.readline(LARGEST + 1):
                yield line
    except (EOFError, zlib.error, OSError) as error:
        raise input_error(path, f"cannot be read as an exported ledger: {error}", FIX) from error


APPLICATION_ID = 0x454D5045  # "EMPE": tells a ledger from any other SQLite file
VERSION = 1
# What lies beside a database whose last process was killed, and belongs to it.
BESIDE = ("-wal", "-journal")
OWN = "name a ledger that empathy-eval wrote, or restore it from a copy"


def opened(path: Path, kept: contextlib.ExitStack, *, create: bool, write: bool) -> sqlite3.Connection:
    """A connection to a ledger, locked against other processes; ``kept`` closes it.

    Without ``write`` nothing in the file changes. Where nothing may be written beside it either, it is read as it lies, and if
    its last process was killed, as a copy. An export is read into memory.

    Raises:
        InputError: if the file is missing (and ``create`` is False), not a ledger, of another version, or in use.
        JobError: if the file is damaged, or cannot be opened.
    """
    if is_export(path) and path.is_file():
        return _of_export(path, kept, write)
    try:
        place = _place(path, kept, create, write)
        as_it_lies = place == path and not write and not _writable(path)
        source = f"{Path(os.path.realpath(path)).as_uri()}?mode=ro&immutable=1" if as_it_lies else place
        connection = sqlite3.connect(source, timeout=0, isolation_level=None, uri=as_it_lies)
        kept.callback(connection.close)
        _begin(path, connection, write, "BEGIN" if as_it_lies else "BEGIN EXCLUSIVE")
    except (OSError, sqlite3.OperationalError) as error:
        if "locked" in str(error):
            raise in_use(path) from error
        raise job_error(path, f"cannot be opened: {error}", "make room or give permission, then run again") from error
    except sqlite3.DatabaseError as error:
        raise input_error(path, f"is not a ledger: {error}", OWN) from error
    _whole(path, connection)
    return connection


def _of_export(path: Path, kept: contextlib.ExitStack, write: bool) -> sqlite3.Connection:
    if write:
        raise input_error(path, "is an export of a ledger, and exports are only read", f"merge it into one: ledger merge LEDGER {path}")
    connection = sqlite3.connect(":memory:", isolation_level=None)
    kept.callback(connection.close)
    _begin(path, connection, True, "BEGIN")
    connection.execute("BEGIN")
    connection.executemany(INSERT, exported_rows(path))
    connection.execute("COMMIT")
    return connection


def _begin(path: Path, connection: sqlite3.Connection, write: bool, begin: str) -> None:
    """Locks the file, looks whether it is a ledger, and makes what it lacks; before that nothing in it is used or changed."""
    connection.text_factory = text_or_bytes
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST + 2**20)
    for statement in ("PRAGMA trusted_schema=OFF", "PRAGMA cell_size_check=ON", "PRAGMA locking_mode=EXCLUSIVE", begin):
        connection.execute(statement)
    for table in _look(path, connection, write):
        connection.execute(TABLES[table] if write else TABLES[table].replace("CREATE", "CREATE TEMP"))
    for statement in ("COMMIT", *(("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL") if write else ()), *VIEWS):
        connection.execute(statement)


def text_or_bytes(raw: bytes) -> str | bytes:
    """What SQLite calls a text; bytes, which no check takes for one, where it is not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _place(path: Path, kept: contextlib.ExitStack, create: bool, write: bool) -> Path:
    """Where to open a ledger: where it is, or a copy of one that was not closed and cannot be mended there."""
    if path.is_dir():
        raise input_error(path, "is a folder", "name the file in it, such as ledger.sqlite")
    if not path.exists():
        if not create:
            raise input_error(path, "there is no ledger here", "name one with --ledger, or build first without --offline")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path
    if not path.is_file():
        raise input_error(path, "is not a file", "name a ledger, such as ledger.sqlite")
    if _writable(path):
        return path
    if write:
        raise job_error(path, "may only be read, and this command writes into it", "copy it to a folder that may be written to")
    _not_in_use(path)
    files = [Path(os.path.realpath(path) + end) for end in ("", *BESIDE)]
    if not any(one.exists() and one.stat().st_size for one in files[1:]):
        return path
    folder = Path(kept.enter_context(TemporaryDirectory()))
    for one in files:
        if one.exists():
            shutil.copyfile(one, folder / one.name)
    return folder / files[0].name


def _writable(path: Path) -> bool:
    real = Path(os.path.realpath(path))
    return os.access(real, os.W_OK) and os.access(real.parent, os.W_OK)


def _not_in_use(path: Path) -> None:
    """Asks for the lock that SQLite's readers hold: whoever may write to the ledger holds it alone."""
    try:
        import fcntl
    except ImportError:  # not a Unix
        return
    with path.open("rb") as stream:
        try:
            fcntl.lockf(stream, fcntl.LOCK_SH | fcntl.LOCK_NB, 510, 0x40000002)
        except BlockingIOError as error:
            raise in_use(path) from error


def _look(path: Path, connection: sqlite3.Connection, write: bool) -> list[str]:
    """Whether this is a ledger, before anything in it is used; returns the tables that ledgers of before did not have.

    Raises:
        InputError: if it is not, with all that is strange.
    """
    ours = {table: " ".join(sql.split()) for table, sql in TABLES.items()}
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    found = connection.execute("SELECT type, name, sql FROM sqlite_master LIMIT 100").fetchall()
    # Empty, or left without a table by a disk that was full just then.
    if not found and application in (0, APPLICATION_ID):
        if not write:
            raise input_error(
                path, "there is no ledger here: the file is empty", "name one with --ledger, or build first without --offline"
            )
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={VERSION}")
        return list(TABLES)
    if application != APPLICATION_ID:
        raise input_error(path, "is a database of another program", "name a ledger")
    if version != VERSION:
        fix = f"use the release of empathy-eval that wrote it, or one that reads version {version}"
        raise input_error(path, f"has ledger version {version}, and this program reads {VERSION}", fix)
    problems = []
    for kind, name, sql in found:
        if (kind, sql) == ("index", None) and name in {f"sqlite_autoindex_{table}_1" for table in TABLES}:
            continue
        if kind != "table" or name not in ours:
            problems.append(
                Problem(str(path), f"is not a ledger: it holds the {_shown(kind)} {_shown(name)}", f"{OWN}; a ledger has tables alone")
            )
        elif not isinstance(sql, str) or " ".join(sql.split()) != ours[name]:
            problems.append(Problem(str(path), f"is not a ledger: its table {_shown(name)} has other columns", OWN))
    tables = {name for kind, name, _ in found if kind == "table"}
    if "completions" not in tables:
        problems.append(Problem(str(path), 'is not a ledger: it misses the table "completions"', OWN))
    refuse(problems[:SHOWN])
    return [table for table in TABLES if table not in tables]


def _whole(path: Path, connection: sqlite3.Connection) -> None:
    try:
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        raise damaged(path, str(error)) from error
    if verdict != "ok":
        raise damaged(path, str(verdict))


def _shown(value: object) -> str:
    return json.dumps(value, default=str)[:80]


def in_use(path: Path) -> InputError:
    """The error for a ledger that another process has open."""
    return input_error(
        path, "another process is using this ledger", "wait for the other process to end, or name another ledger with --ledger"
    )


def damaged(path: Path, what: str) -> JobError:
    """The error for a file that SQLite finds broken."""
    return job_error(
        path, f"the ledger is damaged: {what}", "restore it from a copy; sqlite3's .recover command saves the rows that are whole"
    )
