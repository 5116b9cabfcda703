"""The columns of tables of ratings as numbers, so that a million rows stay small; what is wrong is gathered with its file and line."""

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
from empathy_eval.base.schemas import hidden, schema, validator, violations
from empathy_eval.base.tabular import headed_rows, json_rows
from empathy_eval.statistics.estimate import Codes

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
SHOWN = 100
# The place of what is not there.
MISSING = -1
# Rows that are taken apart at once: so few that they stay near the processor, which is three times as fast as thousands.
AT_ONCE = 256
# What is known of rows beside their columns: the file, by its place.
FILE = "file"


def number_of(text: str) -> float:
    """The finite number that a text is; NaN for any other text."""
    value = float(text) if NUMBER.fullmatch(text) else math.nan
    return value if math.isfinite(value) else math.nan


class Faults:
    """What is wrong with the rows of several files: the first hundred by file and line, the rest counted."""

    def __init__(self, unit: str = "line") -> None:
        self.files: list[str] = []
        self.found = dict[tuple[int, int, str], tuple[str, str]]()
        self.unsaid = 0
        self.unit = unit

    def add(self, line: int, what: str, fix: str, file: int | None = None) -> None:
        """Notes a fault of a line, of the last file if no other is named."""
        if len(self.found) < SHOWN:
            self.found[len(self.files) - 1 if file is None else file, line, what] = (f": {self.unit} {line}", fix)
        else:
            self.unsaid += 1

    def first(self, rows: Codes) -> list[int]:
        """Those of some faulty rows that are told, with a fault each; the others are counted."""
        self.unsaid += len(rows[SHOWN:])
        return [int(row) for row in rows[:SHOWN]]

    def of_file(self, file: int, what: str, fix: str) -> None:
        """Notes a fault of a whole file."""
        self.found[file, 0, what] = ("", fix)

    def of(self, file: int) -> bool:
        """Whether something is wrong with a file or its rows."""
        return self.unsaid > 0 or any(number == file for number, _, _ in self.found)

    def refuse(self, options: Sequence[Problem] = ()) -> None:
        """Raises an :class:`InputError` with what is wrong with options and with all rows in their order, if something is."""
        said = [*options, *(Problem(self.files[file] + at, what, fix) for (file, _, what), (at, fix) in sorted(self.found.items()))]
        if said:
            raise InputError(said + [Problem(self.files[0], f"{self.unsaid} more problems", "fix these first")] * (self.unsaid > 0))


def csv_table(path: Path, faults: Faults) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The header of a CSV or TSV file, by its suffix, and (line, cells) of the rows that have as many cells; other rows are faults."""
    names, lines = headed_rows(path)

    def whole() -> Iterator[tuple[int, list[str]]]:
        for number, row in lines:
            if len(row) == len(names):
                yield number, row
            elif any(cell.strip() for cell in row):
                faults.add(number, f"has {len(row)} cells, but the header has {len(names)}", "quote cells that contain commas")

    return names, whole()


def json_objects(path: Path, faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, object) of a JSONL file; lines that are none are faults."""
    for number, row in json_rows(path):
        if isinstance(row, Problem):
            faults.add(number, row.what, row.fix)
        else:
            yield number, row


@dataclass(frozen=True)
class Form:
    """What rows hold: the properties of a schema. Columns are required as the schema has it, but for those that are in ``absent``.

    ``header`` says which columns there are. An object has the keys ``keys``, or is mended by ``keys_fix``; ``of_object`` gives its value
    of a column. ``of_cell`` turns the cells of a column into values, texts where it has none. A column that a file lacks has the value of
    ``absent``, or None.
    """

    schema: str
    header: str
    keys: tuple[str, ...]
    keys_fix: str
    of_object: Callable[[Mapping[str, Any], str], Any]
    of_cell: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)
    absent: Mapping[str, Any] = field(default_factory=dict)


class _Places(dict[Any, int]):
    """Values by the order in which they first came: what is looked up has a place from then on."""

    def __missing__(self, value: Any) -> int:
        self[value] = place = len(self)
        return place


@dataclass(frozen=True)
class Unfit:
    """What is neither a text nor a number, by its JSON text: no cell may hold it."""

    text: str


class Columns:
    """The rows of several files: by column the different values and a place among them for each row, the file and the line of each row.

    ``more`` are columns beside those of the form, which no schema holds; rows without a rating are left out.
    """

    def __init__(self, form: Form, more: Sequence[str] = (), unit: str = "line") -> None:
        self._form, self._more = form, more
        self._names = (*schema(form.schema)["properties"], *more)
        self.faults = Faults(unit)
        self.values = {name: _Places() for name in self._names}
        self._codes = {name: array("i") for name in (*self._names, FILE)}
        self.lines = array("i")

    def codes(self, name: str) -> Codes:
        """The place of each row among the values of a column, or of its ``FILE`` among the files."""
        return np.frombuffer(self._codes[name], dtype=np.int32).astype(np.int64)

    def fault(self, row: int, what: str, fix: str) -> None:
        """Notes what is wrong with a row."""
        self.faults.add(self.lines[row], what, fix, self._codes[FILE][row])

    def at(self, row: int, here: int) -> str:
        """Where a row is, as told at another."""
        file = self._codes[FILE][row]
        return f"line {self.lines[row]}" + ("" if file == self._codes[FILE][here] else f" of {self.faults.files[file]}")

    def read(self, path: Path) -> None:
        """Adds the rows of a CSV, TSV or JSONL file, by its suffix; other columns are passed over.

        Raises:
            InputError: if it cannot be read, is not of its form, or its header lacks a column or has it twice.
        """
        self.faults.files.append(str(path))
        if path.suffix.lower() == ".jsonl":
            self.add(self._objects(path), {name: place for place, name in enumerate(self._names)})
            return
        header, rows = csv_table(path, self.faults)
        self._check_header(header)
        rating = header.index("rating")
        given = ((number, row) for number, row in rows if row[rating].strip())
        self.add(given, {name: header.index(name) for name in self._names if name in header}, cells=True)

    def _check_header(self, names: Sequence[str]) -> None:
        said, shown, where = schema(self._form.schema), ",".join(names)[:80], f"{self.faults.files[-1]}: line 1"
        missing = [name for name in said["required"] if name not in names]
        fix = self._form.header + nearest_column(names, missing)
        found = [
            Problem(where, f'the header "{shown}" has {names.count(name) or "no"} "{name}"', fix)
            for name in said["properties"]
            if names.count(name) > 1 or (name in missing and name not in self._form.absent)
        ]
        if not found and (twice := next((name for name in self._more if names.count(name) > 1), None)):
            found = [Problem(where, f'the header has {names.count(twice)} "{twice}"', "keep one of them")]
        refuse(found)

    def _objects(self, path: Path) -> Iterator[tuple[int, Sequence[Any]]]:
        of, rating = self._form.of_object, self._names.index("rating")
        for number, row in json_objects(path, self.faults):
            if missing := [name for name in self._form.keys if name not in row]:
                self.faults.add(number, "misses " + ", ".join(f'"{name}"' for name in missing), self._form.keys_fix)
            elif (values := [of(row, name) for name in self._names])[rating] is not None:
                yield number, values

    def add(self, rows: Iterable[tuple[int, Sequence[Any]]], places: Mapping[str, int], *, cells: bool = False) -> None:
        """Adds (line, values) of rows to the last file, some hundreds at a time, column by column.

        ``places`` are those of columns in a row; ``cells`` says that values are still the cells of a file.
        """
        rest, file = iter(rows), len(self.faults.files) - 1
        while some := list(islice(rest, AT_ONCE)):
            lines, values = zip(*some, strict=True)
            columns: list[Iterable[Any]] = list(zip(*values, strict=True))
            self.lines.extend(lines)
            self._codes[FILE].extend([file] * len(lines))
            for name in self._names:
                column = columns[places[name]] if name in places else [self._form.absent.get(name)] * len(lines)
                if cells and name in places and name in self._form.of_cell:
                    column = map(self._form.of_cell[name], column)
                self._codes[name].extend(map(self.values[name].__getitem__, column))

    def note_broken(self) -> Codes:
        """Notes which rows break the schema, and returns the places of the others; looks at every different value of a column once."""
        named = self._form.schema
        broken, properties = np.zeros(len(self.lines), dtype=bool), schema(named)["properties"]
        for name, said in properties.items():
            valid = validator(named).evolve(schema=said).is_valid
            # Most values are texts, which need no validator.
            plain, needed = "string" in said["type"], name in schema(named)["required"]
            odd = [needed if value is None else _odd(value, plain, valid) for value in self.values[name]]
            if any(odd):
                broken |= np.array(odd)[self.codes(name)]
        known = {name: list(self.values[name]) for name in properties}
        for row in self.faults.first(np.flatnonzero(broken)):
            value = {name: values[self._codes[name][row]] for name, values in known.items()}
            told = {name: json.loads(one.text) if isinstance(one, Unfit) else one for name, one in value.items() if one is not None}
            for place, what, fix in violations(told, named, by_hand=True):
                self.fault(row, f"{place} {what}", fix)
        return np.flatnonzero(~broken)


def _odd(value: Any, plain: bool, valid: Callable[[Any], bool]) -> bool:
    """Whether a value breaks the schema of its column, or hides something; where texts are ``plain``, any that is not blank is valid."""
    return not (plain and isinstance(value, str) and value.strip()) and not valid(value) or bool(hidden(value))


def repeated(*codes: Codes) -> tuple[Codes, Codes]:
    """The places at which the same codes were before, and for each of them the first one."""
    key = codes[0]
    for more in codes[1:]:
        key = key * (more.max(initial=0) + 1) + more
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[inverse] != np.arange(len(key)))
    return again, first[inverse[again]]


# Names in order, and the place of each row among them.
Named = tuple[tuple[str, ...], Codes]


def in_order(names: Collection[str]) -> tuple[str, ...]:
    """The names in order: by their value where all are numbers, else as text."""
    if all(NUMBER.fullmatch(one) for one in names):
        return tuple(sorted(names, key=lambda one: (float(one), one)))
    return tuple(sorted(names))


@dataclass(frozen=True)
class Rows:
    """Some rows of columns, those that a study is made of; ``row`` are their places."""

    columns: Columns
    row: Codes

    def named(self, name: str, first: str | None = None) -> Named:
        """The names in a column in order, and the place of each row among them; ``MISSING`` where its file has no such column.

        Names that are all numbers are in the order of these: 2 before 10. One of them may be the ``first``.
        """
        values = list(self.columns.values[name])
        codes = self.columns.codes(name)[self.row]
        used = [place for place in np.unique(codes).tolist() if values[place] is not None]
        names = tuple(sorted(in_order({values[place].strip() for place in used}), key=lambda one: one != first))
        places = {one: place for place, one in enumerate(names)}
        found = np.full(len(values), MISSING)
        found[used] = [places[values[place].strip()] for place in used]
        return names, found[codes]

    def fault(self, row: int, what: str, fix: str, before: int | None = None) -> None:
        """Notes what is wrong with one of these rows, and at which other row it began."""
        place = self.row[row]
        at = "" if before is None else f" at {self.columns.at(self.row[before], place)}"
        self.columns.fault(place, what + at, fix)

    def held(self, of: Named, by: Named, said: str, fix: str) -> Codes:
        """What each of some names holds of others, as a rater holds a group; notes each that holds two. ``MISSING`` holds nothing."""
        names, place = of
        others, value = by
        known = np.flatnonzero(value != MISSING)
        own, first = np.full((2, len(names)), MISSING)
        found, at = np.unique(place[known], return_index=True)
        own[found], first[found] = value[known][at], known[at]
        rows = np.flatnonzero((value != MISSING) & (value != own[place]))
        for row in self.columns.faults.first(rows[np.sort(np.unique(place[rows], return_index=True)[1])]):
            self.fault(row, said.format(names[place[row]], others[value[row]], others[own[place[row]]]), fix, first[place[row]])
        return own

    def all_hold(self, of: Named, own: Codes, said: str, fix: str) -> None:
        """Notes each name that holds nothing where others hold something."""
        _, first = np.unique(of[1], return_index=True)
        for place in self.columns.faults.first(np.flatnonzero(own == MISSING)):
            self.fault(int(first[place]), said.format(of[0][place]), fix)

    def each_once(self, rater: Named, item: Named) -> None:
        """Notes each row whose item its rater rated before."""
        again, before = repeated(rater[1], item[1])
        for row, first in zip(self.columns.faults.first(again), before.tolist(), strict=False):
            again_rated = f'"{rater[0][rater[1][row]]}" rates "{item[0][item[1][row]]}" again, after the rating'
            self.fault(row, again_rated, "keep one of the two", first)
