"""Opening a ledger: a file is untrusted until it is known to have a ledger's tables and nothing executable."""

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
from empathy_eval.base.parsing import ParseError, json_value
from empathy_eval.base.schemas import violations
from empathy_eval.completions.ledger_rows import INSERT, LARGEST, NAMES, TABLES, VIEWS

EXPORT = ".jsonl.gz"
COLUMNS = NAMES["completions"][:-2]
# Lines that cannot be read and are told one by one.
SHOWN = 10
FIX = "write it again with empathy-eval ledger export, or restore it from a copy"
APPLICATION_ID = 0x454D5045  # "EMPE": tells a ledger from any other SQLite file
VERSION = 1
# What lies beside a database whose last process was killed, and belongs to it.
BESIDE = ("-wal", "-journal")
FIX_LEDGER = "name a ledger that empathy-eval wrote, or restore it from a copy"


def is_export(path: Path) -> bool:
    """Whether a path names an export, by its suffix."""
    return path.name.endswith(EXPORT)


def export_line(row: tuple[Any, ...], text: str) -> bytes:
    """The export line of a row: its columns and its text."""
    return json_text({**dict(zip(COLUMNS, row, strict=False)), "text": text}, indent=None).encode() + b"\n"


def exported_rows(path: Path) -> Iterator[tuple[Any, ...]]:
    """The rows of an export, as a ledger stores them.

    Raises:
        InputError: if it cannot be read, a line is not an answer, or a request has two answers; the first such lines at once.
    """
    problems, seen = list[Problem](), set[str]()
    for number, line in enumerate(_lines(path), 1):
        where = f"{path}: line {number}"
        try:
            if len(line) > LARGEST:
                raise ParseError(f"is longer than {LARGEST:,} bytes")
            value = json_value(line.decode())
        except (ValueError, RecursionError) as error:
            problems.append(Problem(where, str(error), FIX))
            continue
        faults = violations(value, "ledger_export_row")
        problems += [Problem(f"{where}: {place}" if place else where, what, fix) for place, what, fix in faults]
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


def open_ledger(path: Path, kept: contextlib.ExitStack, *, create: bool, write: bool) -> sqlite3.Connection:
    """A connection to a ledger, locked against other processes; ``kept`` closes it.

    Without ``write`` the file is not changed. If its folder is read-only it is read in place, or as a copy if its last process was killed.
    An export is read into memory.

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
            raise in_use_error(path) from error
        raise job_error(path, f"cannot be opened: {error}", "make room or give permission, then run again") from error
    except sqlite3.DatabaseError as error:
        raise input_error(path, f"is not a ledger: {error}", FIX_LEDGER) from error
    _check_integrity(path, connection)
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
    """Locks the file, checks that it is a ledger, and creates missing tables. Nothing in it is used before."""
    connection.text_factory = text_or_bytes
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST + 2**20)
    for statement in ("PRAGMA trusted_schema=OFF", "PRAGMA cell_size_check=ON", "PRAGMA locking_mode=EXCLUSIVE", begin):
        connection.execute(statement)
    for table in _missing_tables(path, connection, write):
        connection.execute(TABLES[table] if write else TABLES[table].replace("CREATE", "CREATE TEMP"))
    for statement in ("COMMIT", *(("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL") if write else ()), *VIEWS):
        connection.execute(statement)


def text_or_bytes(raw: bytes) -> str | bytes:
    """Decodes an SQLite text; invalid UTF-8 stays bytes, which no check accepts as text."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _place(path: Path, kept: contextlib.ExitStack, create: bool, write: bool) -> Path:
    """The file to open: the ledger, or a copy if it was not closed and cannot be repaired in place."""
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
    if not any(file.exists() and file.stat().st_size for file in files[1:]):
        return path
    folder = Path(kept.enter_context(TemporaryDirectory()))
    for file in files:
        if file.exists():
            shutil.copyfile(file, folder / file.name)
    return folder / files[0].name


def _writable(path: Path) -> bool:
    real = Path(os.path.realpath(path))
    return os.access(real, os.W_OK) and os.access(real.parent, os.W_OK)


def _not_in_use(path: Path) -> None:
    """Takes the lock of SQLite's readers, which a writer holds alone."""
    try:
        import fcntl
    except ImportError:  # not a Unix
        return
    with path.open("rb") as stream:
        try:
            fcntl.lockf(stream, fcntl.LOCK_SH | fcntl.LOCK_NB, 510, 0x40000002)
        except BlockingIOError as error:
            raise in_use_error(path) from error


def _missing_tables(path: Path, connection: sqlite3.Connection, write: bool) -> list[str]:
    """Checks that this is a ledger before anything in it is used; returns the tables that it lacks.

    Raises:
        InputError: if it is not, with all deviations.
    """
    ours = {table: " ".join(sql.split()) for table, sql in TABLES.items()}
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    entries = connection.execute("SELECT type, name, sql FROM sqlite_master LIMIT 100").fetchall()
    # Empty, or left without a table by a disk that was full just then.
    if not entries and application in (0, APPLICATION_ID):
        if not write:
            fix = "name one with --ledger, or build first without --offline"
            raise input_error(path, "there is no ledger here: the file is empty", fix)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={VERSION}")
        return list(TABLES)
    if application != APPLICATION_ID:
        raise input_error(path, "is a database of another program", "name a ledger")
    if version != VERSION:
        fix = f"use the release of empathy-eval that wrote it, or one that reads version {version}"
        raise input_error(path, f"has ledger version {version}, and this program reads {VERSION}", fix)
    problems = []
    for kind, name, sql in entries:
        if (kind, sql) == ("index", None) and name in {f"sqlite_autoindex_{table}_1" for table in TABLES}:
            continue
        if kind != "table" or name not in ours:
            what = f"is not a ledger: it holds the {_shown(kind)} {_shown(name)}"
            problems.append(Problem(str(path), what, f"{FIX_LEDGER}; a ledger has tables alone"))
        elif not isinstance(sql, str) or " ".join(sql.split()) != ours[name]:
            problems.append(Problem(str(path), f"is not a ledger: its table {_shown(name)} has other columns", FIX_LEDGER))
    tables = {name for kind, name, _ in entries if kind == "table"}
    if "completions" not in tables:
        problems.append(Problem(str(path), 'is not a ledger: it misses the table "completions"', FIX_LEDGER))
    refuse(problems[:SHOWN])
    return [table for table in TABLES if table not in tables]


def _check_integrity(path: Path, connection: sqlite3.Connection) -> None:
    """Runs SQLite's integrity check.

    Raises:
        JobError: if the file is damaged.
    """
    try:
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        raise damaged_error(path, str(error)) from error
    if verdict != "ok":
        raise damaged_error(path, str(verdict))


def _shown(value: object) -> str:
    return json.dumps(value, default=str)[:80]


def in_use_error(path: Path) -> InputError:
    """The error for a ledger that another process has open."""
    fix = "wait for the other process to end, or name another ledger with --ledger"
    return input_error(path, "another process is using this ledger", fix)


def damaged_error(path: Path, what: str) -> JobError:
    """The error for a file that SQLite finds damaged."""
    fix = "restore it from a copy; sqlite3's .recover command saves the rows that are whole"
    return job_error(path, f"the ledger is damaged: {what}", fix)
