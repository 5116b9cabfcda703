"""The columns of tables of a study as numbers, so that a million rows stay small; what is wrong is gathered with its file and line."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import InputError, Problem, nearest_column
from empathy_eval.base.schemas import hidden, schema, validator, violations
from empathy_eval.base.tabular import csv_rows, json_rows
from empathy_eval.evaluation.external.score_file import DELIMITERS
from empathy_eval.statistics.estimate import Codes

SCHEMA = "study_row"
NEEDED = ("item", "group", "rater", "rating")
COLUMNS = (*NEEDED, "stratum", "valence", "block", "criterion")
HEADER = "the first line names the columns: item,group,rater,rating and optionally stratum,valence,block,criterion"
SHOWN = 100
# Rows that are taken apart at once: so few that they stay near the processor, which is three times as fast as thousands.
AT_ONCE = 256


class Places(dict[Any, int]):
    """Values by the order in which they first came: what is looked up has a place from then on."""

    def __missing__(self, value: Any) -> int:
        self[value] = place = len(self)
        return place


@dataclass(frozen=True)
class Unfit:
    """What is neither a text nor a number, by its JSON text: no cell may hold it."""

    text: str


class Faults:
    """What is wrong with the rows of several files: the first hundred by file and line, the rest counted."""

    def __init__(self) -> None:
        self.found = dict[tuple[int, int, str], tuple[str, str]]()
        self.unsaid = 0

    def add(self, file: int, line: int, what: str, fix: str) -> None:
        """Notes a fault of a line."""
        if len(self.found) < SHOWN:
            self.found[file, line, what] = (f"line {line}", fix)
        else:
            self.unsaid += 1

    def of_file(self, file: int, what: str, fix: str) -> None:
        """Notes a fault of a whole file."""
        self.found[file, 0, what] = ("", fix)

    def of(self, file: int) -> bool:
        """Whether something is wrong with a file or its rows."""
        return self.unsaid > 0 or any(number == file for number, _, _ in self.found)

    def refuse(self, files: Sequence[str], options: Sequence[Problem]) -> None:
        """Raises an :class:`InputError` with what is wrong with options and with all rows in their order, if something is."""
        said = list(options)
        for (file, _, what), (line, fix) in sorted(self.found.items()):
            said.append(Problem(f"{files[file]}: {line}" if line else files[file], what, fix))
        more = [Problem(files[0], f"{self.unsaid} more problems", "fix these first")] if self.unsaid else []
        if said:
            raise InputError(said + more)


class Columns:
    """The rows of several files: by column the different values and a place among them for each row, the file and the line of each row.

    A column that a file does not have is None in its rows; rows without a rating are left out.
    """

    def __init__(self) -> None:
        self.files: list[str] = []
        self.faults = Faults()
        self.values = {name: Places() for name in COLUMNS}
        self._codes = {name: array("i") for name in COLUMNS}
        self._lines, self._file = array("i"), array("i")

    def codes(self, name: str) -> Codes:
        """The place of each row among the values of a column."""
        return np.frombuffer(self._codes[name], dtype=np.int32).astype(np.int64)

    @property
    def line(self) -> NDArray[np.int32]:
        """The line of each row."""
        return np.frombuffer(self._lines, dtype=np.int32)

    @property
    def file(self) -> NDArray[np.int32]:
        """The place of each row's file."""
        return np.frombuffer(self._file, dtype=np.int32)

    def read(self, path: Path) -> None:
        """Adds the rows of a CSV, TSV or JSONL file, by its suffix; other columns are passed over.

        Raises:
            InputError: if it cannot be read, is not of its form, or its header lacks a column or has it twice.
        """
        self.files.append(str(path))
        if path.suffix.lower() == ".jsonl":
            self._gather(self._objects(path), COLUMNS)
            return
        lines = csv_rows(path, DELIMITERS.get(path.suffix.lower(), ","))
        _, header = next(lines, (0, []))
        names = [name.strip() for name in header]
        self._check_header(names)
        kept = {name: names.index(name) for name in COLUMNS if name in names}
        self._gather(self._whole(lines, len(names)), list(kept), list(kept.values()))

    def _check_header(self, names: Sequence[str]) -> None:
        shown = ",".join(names)[:80]
        fix = HEADER + nearest_column(names, [name for name in NEEDED if name not in names])
        found = [
            Problem(f"{self.files[-1]}: line 1", f'the header "{shown}" has {names.count(name) or "no"} "{name}"', fix)
            for name in COLUMNS
            if names.count(name) > 1 or (name in NEEDED and name not in names)
        ]
        if found:
            raise InputError(found)

    def _whole(self, lines: Iterator[tuple[int, list[str]]], cells: int) -> Iterator[tuple[int, Sequence[Any]]]:
        """The rows that have as many cells as the header."""
        for number, row in lines:
            if len(row) == cells:
                yield number, row
            elif any(cell.strip() for cell in row):
                what = f"has {len(row)} cells, but the header has {cells}"
                self.faults.add(len(self.files) - 1, number, what, "quote cells that contain commas")

    def _objects(self, path: Path) -> Iterator[tuple[int, Sequence[Any]]]:
        file = len(self.files) - 1
        for number, row in json_rows(path):
            if isinstance(row, Problem):
                self.faults.add(file, number, row.what, row.fix)
            elif missing := [name for name in NEEDED if name not in row]:
                lacks = ", ".join(f'"{name}"' for name in missing)
                self.faults.add(file, number, f"misses {lacks}", "write each of them; null marks a missing rating")
            elif row["rating"] is not None:
                yield number, [_plain(row.get(name)) for name in COLUMNS]

    def _gather(self, rows: Iterator[tuple[int, Sequence[Any]]], names: Sequence[str], places: Sequence[int] | None = None) -> None:
        """Adds rows, some thousands at a time, column by column."""
        of = list(range(len(names))) if places is None else places
        rating = of[list(names).index("rating")]
        file = len(self.files) - 1
        while some := list(islice(rows, AT_ONCE)):
            kept = [one for one in some if not isinstance(one[1][rating], str) or one[1][rating].strip()]
            if not kept:
                continue
            lines, cells = zip(*kept, strict=True)
            columns = list(zip(*cells, strict=True))
            self._lines.extend(lines)
            self._file.extend([file] * len(lines))
            for name in COLUMNS:
                column = columns[of[names.index(name)]] if name in names else [None] * len(lines)
                self._codes[name].extend(map(self.values[name].__getitem__, column))

    def note_broken(self) -> Codes:
        """Notes which rows break the schema, and returns the places of the others; looks at every different value of a column once."""
        properties = schema(SCHEMA)["properties"]
        broken = np.zeros(len(self._lines), dtype=bool)
        for name, values in self.values.items():
            valid = validator(SCHEMA).evolve(schema=properties[name]).is_valid
            odd = np.array([_odd(value, name, valid) for value in values], dtype=np.bool_)
            if odd.any():
                broken |= odd[self.codes(name)]
        known = {name: list(values) for name, values in self.values.items()}
        rows = np.flatnonzero(broken)
        for row in rows[:SHOWN].tolist():
            value = {name: known[name][self._codes[name][row]] for name in COLUMNS}
            told = {name: json.loads(one.text) if isinstance(one, Unfit) else one for name, one in value.items() if one is not None}
            for place, what, fix in violations(told, SCHEMA, by_hand=True):
                self.faults.add(self._file[row], self._lines[row], f"{place} {what}", fix)
        self.faults.unsaid += len(rows[SHOWN:])
        return np.flatnonzero(~broken)


def _odd(value: Any, name: str, valid: Callable[[Any], bool]) -> bool:
    """Whether a value breaks the schema of its column, or hides something; most are texts, which need no validator."""
    if value is None:
        return name in NEEDED
    return not (isinstance(value, str) and value.strip()) and not valid(value) or bool(hidden(value))


def _plain(value: object) -> object:
    """A text, a number or nothing; anything else as what no cell may hold."""
    return value if isinstance(value, str | int | float | None) and not isinstance(value, bool) else Unfit(json.dumps(value))
