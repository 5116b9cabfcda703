"""Rows of a ledger, whoever wrote them: bounded counts, real texts, bounded sizes."""

from __future__ import annotations

import json
import re
import shlex
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import NoneType
from typing import Any

from empathy_eval.base.errors import JobError, Problem
from empathy_eval.base.schemas import violations

# Damaged rows that are told one by one.
SHOWN = 10
# The most bytes that an answer unpacks to.
LARGEST = 64 * 2**20
# No byte of a body unpacks to more than so many.
RATIO = 1032
# No count of tokens is read as more than this, so that no sum of them overflows.
MOST_TOKENS = 10**9
TABLES = {
    "completions": """
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
""",
    # Worst cases of requests that were sent under a budget and have no known outcome yet.
    "reservations": """
CREATE TABLE reservations (token TEXT PRIMARY KEY, model TEXT NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL)
""",
    # Requests that were given out of hand, in a file, and have no known answer yet; ``batches`` says which files were submitted.
    "noted": """
CREATE TABLE noted (
    key TEXT PRIMARY KEY, dialogue_id TEXT NOT NULL, kind TEXT NOT NULL, turn INTEGER,
    model TEXT NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, file TEXT NOT NULL
)
""",
    "batches": """
CREATE TABLE batches (
    file TEXT NOT NULL, endpoint TEXT NOT NULL, build TEXT NOT NULL, round INTEGER NOT NULL, id TEXT, taken INTEGER NOT NULL
)
""",
}
INSERT = "INSERT OR IGNORE INTO completions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# The columns of each table, and ``place``, which tells the row.
NAMES = {table: [*re.findall(r"(\w+) (?:TEXT|INTEGER|REAL|BLOB)", sql), "place"] for table, sql in TABLES.items()}
# Columns whose values are counts of tokens.
COUNTS = {"input_tokens", "output_tokens", "input", "output"}
# The types of a row of answers that is valid under the schema ``ledger_row``: what nearly all rows are, told in no time.
TYPES = {(str, str, str, turn, str, str, int, int, int, time, str, bytes, int) for turn in (int, NoneType) for time in (float, NoneType)}


def token_count_sql(column: str) -> str:
    """SQL that reads a token count as an integer from 0 to ``MOST_TOKENS``; fractions are rounded up, other values are 0."""
    sound = f"{column} BETWEEN 0 AND {MOST_TOKENS} AND {column} = ({column} | 0)"
    real = f"typeof({column}) IN ('integer', 'real')"
    bounded = f"CAST(min(max({column}, 0) + 0.999999, {MOST_TOKENS}) AS INTEGER)"
    return f"CASE WHEN {sound} THEN {column} | 0 WHEN {real} THEN {bounded} ELSE 0 END"


def _sound(column: str) -> str:
    if column == "cached_tokens":  # a part of the input; if it is not, all of the input is paid for
        part = f"cached_tokens BETWEEN 0 AND input_tokens AND input_tokens <= {MOST_TOKENS} AND cached_tokens = (cached_tokens | 0)"
        return f"CASE WHEN {part} THEN cached_tokens | 0 ELSE 0 END AS cached_tokens"
    if column == "body":  # a row that cannot be fetched could not be named
        return f"CASE WHEN length(body) <= {LARGEST} THEN body END AS body"
    if column == "place":
        return "rowid AS place"
    return f"{token_count_sql(column)} AS {column}" if column in COUNTS else column


# What reads a table reads its view.
VIEWS = [f"CREATE TEMP VIEW sound_{table} AS SELECT {', '.join(map(_sound, names))} FROM {table}" for table, names in NAMES.items()]  # noqa: S608


def unpacked(body: bytes) -> str:
    """The text of a stored answer.

    Raises:
        ValueError, zlib.error: if it is damaged, or larger than ``LARGEST``.
    """
    if len(body) <= LARGEST // RATIO:
        return zlib.decompress(body).decode()
    stream = zlib.decompressobj()
    text = stream.decompress(body, LARGEST)
    if not stream.eof:
        raise ValueError(f"the answer is larger than {LARGEST:,} bytes, or cut short")
    return text.decode()


def damaged_row(path: Path, table: str, values: Sequence[Any], what: str) -> Problem:
    """The problem of a damaged row: which it is, and how to do without it."""
    key, place = values[0] if table == "completions" else None, values[-1]
    name = json.dumps(key)[1:-1][:80] if isinstance(key, str) else f"{place} of {table}"
    out = f"sqlite3 {shlex.quote(str(path))} 'DELETE FROM {table} WHERE rowid = {place}'"  # noqa: S608 (for a reader)
    fix = f"restore it from a copy, or delete the row, so that its request is sent again: {out}"
    return Problem(str(path), f"the ledger is damaged: row {name}: {what}", fix)


def row_problems(path: Path, table: str, values: Sequence[Any]) -> list[Problem]:
    """Problems with the types of a row of a ``sound_`` view."""
    if tuple(map(type, values)) in TYPES:
        return []
    row = dict(zip(NAMES[table], values, strict=True))
    columns = {name: value for name, value in row.items() if name not in ("body", "place")}
    problems = [damaged_row(path, table, values, f"{name} {what}") for name, what, _ in violations(columns, "ledger_row")]
    if table == "completions" and not isinstance(row["body"], bytes):
        problems.append(damaged_row(path, table, values, f"the body is not a BLOB of at most {LARGEST:,} bytes"))
    return problems


class DamagedRows:
    """Collects damaged rows: the first ones, and the number of others."""

    def __init__(self, path: Path) -> None:
        self._path, self._problems, self._more = path, list[Problem](), 0

    def add(self, problems: Sequence[Problem]) -> None:
        """Adds the problems of a row."""
        if len(self._problems) < SHOWN:
            self._problems += problems
        else:
            self._more += bool(problems)

    @property
    def problems(self) -> list[Problem]:
        """The problems to report."""
        more = Problem(str(self._path), f"{self._more:,} more rows are damaged", "fix these first, then run the same command")
        return [*self._problems, more] if self._more else self._problems

    def raise_if_any(self) -> None:
        """Raises a :class:`JobError` if there are any."""
        if self._problems:
            raise JobError(self.problems)
