"""Columns of rating tables as integer codes, so that a million rows stay small; problems are collected with file and line."""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import InputError, Problem, nearest_column, refuse
from empathy_eval.base.schemas import invisible_fault, schema, validator, violations
from empathy_eval.base.tabular import headed_rows, json_rows
from empathy_eval.statistics.estimate import Codes

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
SHOWN = 100
# Code of a missing value.
MISSING = -1
# Rows per chunk: few enough for the processor's cache, which is three times as fast as thousands.
AT_ONCE = 256
# Name of the column with the index of each row's file.
FILE = "file"


def number_of(text: str) -> float:
    """The finite number that a text is; NaN for any other text."""
    value = float(text) if NUMBER.fullmatch(text) else math.nan
    return value if math.isfinite(value) else math.nan


class Faults:
    """Problems of the rows of several files: the first hundred by file and line, the rest counted."""

    def __init__(self, unit: str = "line") -> None:
        self.files: list[str] = []
        self.noted = dict[tuple[int, int, str], tuple[str, str]]()
        self.omitted = 0
        self.unit = unit

    def add(self, line: int, what: str, fix: str, file: int | None = None) -> None:
        """Note a problem of a line, of the last file if none is given."""
        if len(self.noted) < SHOWN:
            self.noted[len(self.files) - 1 if file is None else file, line, what] = (f": {self.unit} {line}", fix)
        else:
            self.omitted += 1

    def shown(self, rows: Codes) -> list[int]:
        """Those of some faulty rows whose problems are shown; the others are counted."""
        self.omitted += len(rows[SHOWN:])
        return [int(row) for row in rows[:SHOWN]]

    def of_file(self, file: int, what: str, fix: str) -> None:
        """Note a problem of a whole file."""
        self.noted[file, 0, what] = ("", fix)

    def of(self, file: int) -> bool:
        """Whether a file or its rows have problems."""
        return self.omitted > 0 or any(number == file for number, _, _ in self.noted)

    def refuse(self, options: Sequence[Problem] = ()) -> None:
        """Raise an :class:`InputError` with the problems of options and of all rows in order, if there are any."""
        problems = [*options, *(Problem(self.files[file] + line, what, fix) for (file, _, what), (line, fix) in sorted(self.noted.items()))]
        if problems:
            raise InputError(problems + [Problem(self.files[0], f"{self.omitted} more problems", "fix these first")] * (self.omitted > 0))


def csv_table(path: Path, faults: Faults) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Header of a CSV or TSV file, and (line, cells) of the rows with as many cells; other rows are faults."""
    names, lines = headed_rows(path)

    def whole() -> Iterator[tuple[int, list[str]]]:
        for number, row in lines:
            if len(row) == len(names):
                yield number, row
            elif any(cell.strip() for cell in row):
                faults.add(number, f"has {len(row)} cells, but the header has {len(names)}", "quote cells that contain commas")

    return names, whole()


def json_objects(path: Path, faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, object) of a JSONL file; other lines are faults."""
    for number, row in json_rows(path):
        if isinstance(row, Problem):
            faults.add(number, row.what, row.fix)
        else:
            yield number, row


@dataclass(frozen=True)
class TableForm:
    """Form of a table: the properties of a schema. Columns are required as the schema says, but for those in ``absent``.

    ``header`` says which columns there are. An object has the keys ``keys``, or the fix is ``keys_fix``; ``of_object`` gives its value of a
    column. ``of_cell`` converts the cells of a column, by default to text. A column that a file lacks has the value of ``absent``, or None.
    """

    schema: str
    header: str
    keys: tuple[str, ...]
    keys_fix: str
    of_object: Callable[[Mapping[str, Any], str], Any]
    of_cell: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)
    absent: Mapping[str, Any] = field(default_factory=dict)


class _Places(dict[Any, int]):
    """Codes of values in order of first occurrence; a lookup adds the value."""

    def __missing__(self, value: Any) -> int:
        self[value] = code = len(self)
        return code


@dataclass(frozen=True)
class InvalidCell:
    """A value that is neither text nor number, as JSON text: no cell may hold it."""

    text: str


class CodedColumns:
    """Rows of several files: by column its distinct values and a code for each row, and the file and line of each row.

    ``more`` are columns beyond those of the form, which no schema describes; rows without a rating are left out.
    """

    def __init__(self, form: TableForm, more: Sequence[str] = (), unit: str = "line") -> None:
        self._form, self._more = form, more
        self._names = (*schema(form.schema)["properties"], *more)
        self.faults = Faults(unit)
        self.values = {name: _Places() for name in self._names}
        self._codes = {name: array("i") for name in (*self._names, FILE)}
        self.lines = array("i")

    def codes(self, name: str) -> Codes:
        """Codes of a column, one a row; for ``FILE`` the index of the row's file."""
        return np.frombuffer(self._codes[name], dtype=np.int32).astype(np.int64)

    def fault(self, row: int, what: str, fix: str) -> None:
        """Note a problem of a row."""
        self.faults.add(self.lines[row], what, fix, self._codes[FILE][row])

    def at(self, row: int, column: int) -> str:
        """Location of a row, relative to another row."""
        file = self._codes[FILE][row]
        return f"line {self.lines[row]}" + ("" if file == self._codes[FILE][column] else f" of {self.faults.files[file]}")

    def read(self, path: Path) -> None:
        """Add the rows of a CSV, TSV or JSONL file, by its suffix; other columns are ignored.

        Raises:
            InputError: if it cannot be read, is not of its form, or its header lacks a column or has it twice.
        """
        self.faults.files.append(str(path))
        if path.suffix.lower() == ".jsonl":
            self.add(self._objects(path), {name: index for index, name in enumerate(self._names)})
            return
        header, rows = csv_table(path, self.faults)
        self._check_header(header)
        rating = header.index("rating")
        filled = ((number, row) for number, row in rows if row[rating].strip())
        self.add(filled, {name: header.index(name) for name in self._names if name in header}, cells=True)

    def _check_header(self, names: Sequence[str]) -> None:
        form, shown, where = schema(self._form.schema), ",".join(names)[:80], f"{self.faults.files[-1]}: line 1"
        missing = [name for name in form["required"] if name not in names]
        fix = self._form.header + nearest_column(names, missing)
        odd = [name for name in form["properties"] if names.count(name) > 1 or (name in missing and name not in self._form.absent)]
        problems = [Problem(where, f'the header "{shown}" has {names.count(name) or "no"} "{name}"', fix) for name in odd]
        if not problems and (twice := next((name for name in self._more if names.count(name) > 1), None)):
            problems = [Problem(where, f'the header has {names.count(twice)} "{twice}"', "keep one of them")]
        refuse(problems)

    def _objects(self, path: Path) -> Iterator[tuple[int, Sequence[Any]]]:
        value_of, rating = self._form.of_object, self._names.index("rating")
        for number, row in json_objects(path, self.faults):
            if missing := [name for name in self._form.keys if name not in row]:
                self.faults.add(number, "misses " + ", ".join(f'"{name}"' for name in missing), self._form.keys_fix)
            elif (values := [value_of(row, name) for name in self._names])[rating] is not None:
                yield number, values

    def add(self, rows: Iterable[tuple[int, Sequence[Any]]], places: Mapping[str, int], *, cells: bool = False) -> None:
        """Add (line, values) of rows to the last file, in chunks, column by column.

        ``places`` are the indices of columns in a row; ``cells`` says that values are still the cells of a file.
        """
        rest, file = iter(rows), len(self.faults.files) - 1
        while chunk := list(islice(rest, AT_ONCE)):
            lines, values = zip(*chunk, strict=True)
            columns: list[Iterable[Any]] = list(zip(*values, strict=True))
            self.lines.extend(lines)
            self._codes[FILE].extend([file] * len(lines))
            for name in self._names:
                column = columns[places[name]] if name in places else [self._form.absent.get(name)] * len(lines)
                if cells and name in places and name in self._form.of_cell:
                    column = map(self._form.of_cell[name], column)
                self._codes[name].extend(map(self.values[name].__getitem__, column))

    def valid_rows(self) -> Codes:
        """Indices of the rows that fit the schema; notes the others. Each distinct value of a column is checked once."""
        named = self._form.schema
        broken, properties = np.zeros(len(self.lines), dtype=bool), schema(named)["properties"]
        for name, definition in properties.items():
            valid = validator(named).evolve(schema=definition).is_valid
            # Most values are texts, which are checked without a validator.
            plain, needed = "string" in definition["type"], name in schema(named)["required"]
            odd = [needed if value is None else _odd(value, plain, valid) for value in self.values[name]]
            if any(odd):
                broken |= np.array(odd)[self.codes(name)]
        known = {name: list(self.values[name]) for name in properties}
        for row in self.faults.shown(np.flatnonzero(broken)):
            value = {name: values[self._codes[name][row]] for name, values in known.items()}
            cells = {name: cell for name, cell in value.items() if cell is not None}
            cells |= {name: json.loads(cell.text) for name, cell in cells.items() if isinstance(cell, InvalidCell)}
            for column, what, fix in violations(cells, named, by_hand=True):
                self.fault(row, f"{column} {what}", fix)
        return np.flatnonzero(~broken)


def _odd(value: Any, plain: bool, valid: Callable[[Any], bool]) -> bool:
    """Whether a value breaks the schema of its column, or holds invisible characters; if ``plain``, any text that is not blank is valid."""
    return not (plain and isinstance(value, str) and value.strip()) and not valid(value) or bool(invisible_fault(value))


def repeated(*codes: Codes) -> tuple[Codes, Codes]:
    """Indices at which the same codes occurred before, and for each the first one."""
    key = codes[0]
    for more in codes[1:]:
        key = key * (more.max(initial=0) + 1) + more
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[inverse] != np.arange(len(key)))
    return again, first[inverse[again]]


# Names in order, and the index of each row's name.
NamedCodes = tuple[tuple[str, ...], Codes]


def sorted_names(names: Collection[str]) -> tuple[str, ...]:
    """Names in order: by value if all are numbers, else as text."""
    if all(NUMBER.fullmatch(name) for name in names):
        return tuple(sorted(names, key=lambda name: (float(name), name)))
    return tuple(sorted(names))


@dataclass(frozen=True)
class Rows:
    """Selected rows of columns; ``row`` are their indices."""

    columns: CodedColumns
    row: Codes

    def coded(self, name: str, first: str | None = None) -> NamedCodes:
        """Names of a column in order, and the index of each row's name; ``MISSING`` if its file has no such column.

        Names that are all numbers are in numeric order: 2 before 10. One of them may be put ``first``.
        """
        values = list(self.columns.values[name])
        codes = self.columns.codes(name)[self.row]
        used = [code for code in np.unique(codes).tolist() if values[code] is not None]
        names = tuple(sorted(sorted_names({values[code].strip() for code in used}), key=lambda name: name != first))
        places = {name: index for index, name in enumerate(names)}
        index_of = np.full(len(values), MISSING)
        index_of[used] = [places[values[code].strip()] for code in used]
        return names, index_of[codes]

    def fault(self, row: int, what: str, fix: str, before: int | None = None) -> None:
        """Note a problem of one of these rows, and the earlier row that it contradicts."""
        position = self.row[row]
        location = "" if before is None else f" at {self.columns.at(self.row[before], position)}"
        self.columns.fault(position, what + location, fix)

    def value_per_name(self, coded: NamedCodes, by: NamedCodes, message: str, fix: str) -> Codes:
        """The value of each name, such as the group of each rater; notes each name with two. ``MISSING`` is no value."""
        names, owner = coded
        rest, value = by
        known = np.flatnonzero(value != MISSING)
        own, first = np.full((2, len(names)), MISSING)
        owners, first_at = np.unique(owner[known], return_index=True)
        own[owners], first[owners] = value[known][first_at], known[first_at]
        rows = np.flatnonzero((value != MISSING) & (value != own[owner]))
        for row in self.columns.faults.shown(rows[np.sort(np.unique(owner[rows], return_index=True)[1])]):
            self.fault(row, message.format(names[owner[row]], rest[value[row]], rest[own[owner[row]]]), fix, first[owner[row]])
        return own

    def require_values(self, names: NamedCodes, own: Codes, message: str, fix: str) -> None:
        """Note each name that has no value."""
        _, first = np.unique(names[1], return_index=True)
        for owner in self.columns.faults.shown(np.flatnonzero(own == MISSING)):
            self.fault(int(first[owner]), message.format(names[0][owner]), fix)

    def refuse_repeats(self, rater: NamedCodes, item: NamedCodes) -> None:
        """Note each row whose item its rater rated before."""
        again, before = repeated(rater[1], item[1])
        for row, first in zip(self.columns.faults.shown(again), before.tolist(), strict=False):
            again_rated = f'"{rater[0][rater[1][row]]}" rates "{item[0][item[1][row]]}" again, after the rating'
            self.fault(row, again_rated, "keep one of the two", first)
