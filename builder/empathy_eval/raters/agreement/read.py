"""Reads tables of ratings, from files and from folders of annotations; whatever is wrong with a file is said at once, with its line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from empathy_eval.base.errors import InputError, Problem, nearest_column
from empathy_eval.base.schemas import violations
from empathy_eval.base.tabular import csv_rows, json_rows
from empathy_eval.evaluation.external.score_file import DELIMITERS
from empathy_eval.raters.agreement.table import ONLY, RATING_COLUMNS, Gathering, Table
from empathy_eval.raters.judges.annotations import ratings_in

SCHEMA = "ratings_about"
# What each column is about: a criterion has one framework, a rater one of all others.
COLUMNS = {"framework": "criterion", "role": "rater", "model": "rater", "style": "rater", "sample": "rater"}


@dataclass
class Columns:
    """What the columns of one or several tables say, by column and by the criterion or rater that they say it of.

    An empty cell says nothing; a criterion or rater of which two different things are said is a fault of the later row.
    """

    said: dict[str, dict[str, str]] = field(default_factory=lambda: {name: {} for name in COLUMNS})
    first: dict[tuple[str, str], str] = field(default_factory=dict)
    there: tuple[str, ...] = ()
    _seen: set[tuple[str, ...]] = field(default_factory=set)

    def begin(self, header: Sequence[str], where: str) -> list[int]:
        """Takes up a table: the places of those columns that it has.

        Raises:
            InputError: for a column that is there twice.
        """
        if twice := [name for name in COLUMNS if header.count(name) > 1]:
            what = f'the header has {header.count(twice[0])} "{twice[0]}"'
            raise InputError([Problem(f"{where}: line 1", what, "keep one of them")])
        self.there, self._seen = tuple(name for name in COLUMNS if name in header), set()
        return [header.index(name) for name in self.there]

    def note(self, gathered: Gathering, place: int, rater: str, criterion: str, cells: Sequence[str]) -> None:
        """Notes what the cells of a row, in the order of the columns that are there, say of its rater and its criterion."""
        row = (rater, criterion, *cells)
        if row in self._seen:
            return
        self._seen.add(row)
        told = {name: text for name, cell in zip(self.there, cells, strict=True) if (text := cell.strip())}
        for name, what, fix in violations(told, SCHEMA, by_hand=True):
            gathered.problem(place, f"{name} {what}", fix)
            told.pop(name, None)
        for name, text in told.items():
            self._say(gathered, place, name, {"rater": rater, "criterion": criterion}[COLUMNS[name]], text)

    def _say(self, gathered: Gathering, place: int, name: str, of: str, text: str) -> None:
        known = self.said[name].setdefault(of, text)
        before = self.first.setdefault((name, of), f"{gathered.unit} {place} of {gathered.where}")
        if known != text:
            what = f'gives the {COLUMNS[name]} "{of}" the {name} "{text}", but {before} says "{known}"'
            gathered.problem(place, what, f"give each {COLUMNS[name]} one {name}")


NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def read_tables(paths: Sequence[Path], columns: Columns | None = None) -> Table:
    """The ratings of CSV files, and of folders that ``annotate`` finished, in one table.

    What ``columns`` are given for is noted in them.

    Raises:
        InputError: as :func:`read_table`; for folders without finished annotations; for ratings given twice.
    """
    tables = [Table.of(ratings_in(path)) if path.is_dir() else read_table(path, columns) for path in paths]
    return tables[0] if len(tables) == 1 else Table.of(row for table in tables for row in table.rows())


def read_table(path: Path, columns: Columns | None = None) -> Table:
    """The ratings in a file with the columns ``item``, ``rater``, ``rating`` and, if there are several, ``criterion``.

    It is TSV or JSONL, an object a line, where its name says so, else CSV.

    Other columns are passed over, but for those that ``columns`` take note of; an empty rating is a missing one; a byte order mark does no
    harm.

    Raises:
        InputError: if the file cannot be read, is not UTF-8 or not of its form, or holds a row that breaks the schema ``ratings_row``, a
            rating given twice, or no rating; all problems at once with their lines.
    """
    gathered = Gathering(str(path), "line")
    if path.suffix.lower() == ".jsonl":
        _gather_objects(path, gathered, columns)
    else:
        _gather(csv_rows(path, DELIMITERS.get(path.suffix.lower(), ",")), gathered, columns)
    return gathered.table()


def _gather_objects(path: Path, gathered: Gathering, columns: Columns | None) -> None:
    if columns:
        columns.begin(list(COLUMNS), gathered.where)
    for number, row in json_rows(path):
        if isinstance(row, Problem):
            gathered.problem(number, row.what, row.fix)
        elif "rating" not in row:
            gathered.problem(number, 'misses "rating"', "write the rating, or null if it is missing")
        elif row["rating"] is not None:
            item, rater, criterion, rating = (_plain(row.get(name, ONLY if name == "criterion" else "")) for name in RATING_COLUMNS)
            gathered.add(number, (item, rater, criterion, rating))
            if columns:
                told = ["" if (value := row.get(name)) is None else str(_plain(value)) for name in COLUMNS]
                columns.note(gathered, number, str(rater), str(criterion), told)


def _plain(value: object) -> object:
    """A text or a number; of anything else its text, which the schema refuses."""
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else json.dumps(value)


def _gather(lines: Iterator[tuple[int, list[str]]], gathered: Gathering, columns: Columns | None) -> None:
    _, header = next(lines, (0, []))
    names = [name.strip() for name in header]
    places = _places(names, gathered.where)
    others = columns.begin(names, gathered.where) if columns else []
    for number, row in lines:
        if len(row) != len(names):
            if any(cell.strip() for cell in row):
                gathered.problem(number, f"has {len(row)} cells, but the header has {len(names)}", "quote cells that contain commas")
            continue
        item, rater, criterion, rating = (ONLY if place is None else row[place].strip() for place in places)
        if rating:
            gathered.add(number, (item, rater, criterion, _number(rating)))
            if columns and others:
                columns.note(gathered, number, rater, criterion, [row[place] for place in others])


def _places(names: Sequence[str], where: str) -> list[int | None]:
    """Where the columns of interest are; None for the criterion of a table that has none."""
    known = "the first line names the columns: item,rater,rating and, if there are several, criterion, with commas between them"
    known += nearest_column(names, [name for name in RATING_COLUMNS if name not in names])
    shown = ",".join(names)[:80]
    problems = [
        Problem(f"{where}: line 1", f'the header "{shown}" has {names.count(name) or "no"} "{name}"', known)
        for name in RATING_COLUMNS
        if names.count(name) > 1 or (name != "criterion" and name not in names)
    ]
    if problems:
        raise InputError(problems)
    return [names.index(name) if name in names else None for name in RATING_COLUMNS]


@lru_cache(maxsize=4096)
def _number(text: str) -> float | str:
    """The finite number that a cell holds, or its text, which the schema refuses."""
    value = float(text) if NUMBER.fullmatch(text) else math.nan
    return value if math.isfinite(value) else text
