"""Tables of ratings, from files and folders of annotations: who gave what to which item, on which criterion, as arrays."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import input_error
from empathy_eval.base.schemas import violations
from empathy_eval.raters.agreement.columns import MISSING, Columns, Form, number_of, repeated
from empathy_eval.raters.judges.annotations import ratings_of, read_annotations
from empathy_eval.statistics.estimate import Codes, Floats

KEY = ("item", "rater", "criterion")
RATING_COLUMNS = (*KEY, "rating")
# The criterion of a table that has no such column.
ONLY = "rating"
# A scale with more steps is no rating scale, and its tables of step by step would not fit into memory.
STEPS = 101


def _plain(value: object) -> object:
    """A text or a number; of anything else its text, which the schema refuses."""
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else json.dumps(value)


def _of_object(row: Mapping[str, Any], name: str) -> object:
    """The value of a column; None of a missing rating, and of what is not said in a column beside those of ratings."""
    if name in KEY:
        return _plain(row.get(name, ONLY if name == "criterion" else ""))
    value = row.get(name)
    return value if value is None else _plain(value) if name == "rating" else str(_plain(value))


@lru_cache(maxsize=4096)
def _number(cell: str) -> float | str:
    """The finite number that a cell holds, or its text, which the schema refuses."""
    return cell.strip() if math.isnan(number := number_of(cell.strip())) else number


FORM = Form(
    "ratings_row",
    "the first line names the columns: item,rater,rating and, if there are several, criterion, with commas between them",
    keys=("rating",),
    keys_fix="write the rating, or null if it is missing",
    of_object=_of_object,
    of_cell=dict.fromkeys(RATING_COLUMNS, str.strip) | {"rating": _number},
    absent={"criterion": ONLY},
)


@dataclass(frozen=True)
class Ratings:
    """The ratings on one criterion.

    ``item``, ``rater`` and ``step`` have one entry a rating: places in ``items`` (their number), ``raters`` and ``scale`` (the values
    that occur, ascending).
    """

    items: int
    raters: tuple[str, ...]
    scale: Floats
    item: Codes
    rater: Codes
    step: Codes

    def of_rater(self, place: int) -> Codes:
        """What one rater gave each item, shape (items,): places in ``scale``, ``MISSING`` where there is no rating."""
        found = np.full(self.items, MISSING)
        own = self._by_rater[self._bounds[place] : self._bounds[place + 1]]
        found[self.item[own]] = self.step[own]
        return found

    def counts(self, raters: Sequence[int]) -> Codes:
        """How often these raters gave each item each value, shape (items, steps)."""
        kept = np.isin(self.rater, raters)
        flat = np.bincount(self.item[kept] * len(self.scale) + self.step[kept], minlength=self.items * len(self.scale))
        return flat.reshape(self.items, len(self.scale))

    @cached_property
    def _by_rater(self) -> Codes:
        return np.argsort(self.rater, kind="stable")

    @cached_property
    def _bounds(self) -> Codes:
        return np.searchsorted(self.rater[self._by_rater], np.arange(len(self.raters) + 1))


@dataclass(frozen=True)
class Table:
    """Ratings of items by raters on criteria, a row a rating; names are sorted, so the order of rows changes nothing.

    ``item``, ``rater`` and ``criterion`` are places in ``items``, ``raters`` and ``criteria``.
    """

    items: tuple[str, ...]
    raters: tuple[str, ...]
    criteria: tuple[str, ...]
    item: Codes
    rater: Codes
    criterion: Codes
    rating: Floats

    @classmethod
    def of(cls, rows: Iterable[Sequence[Any]]) -> Table:
        """The table of rows (item, rater, rating) or (item, rater, rating, criterion); a rating None or NaN is missing.

        Raises:
            InputError: for rows that break the schema and ratings given twice, all at once; for a table without a rating.
        """
        columns = Columns(FORM, unit="row")
        columns.faults.files.append("ratings")
        # NaN is the only value that differs from itself.
        there = ((number, (*row, ONLY)[:4]) for number, row in enumerate(rows, 1) if row[2] is not None and row[2] == row[2])
        columns.add(there, {"item": 0, "rater": 1, "rating": 2, "criterion": 3})
        return table_of(columns)

    def rows(self) -> Iterator[tuple[str, str, float, str]]:
        """The rows, as :meth:`of` takes them."""
        for item, rater, rating, criterion in zip(self.item, self.rater, self.rating, self.criterion, strict=True):
            yield self.items[item], self.raters[rater], float(rating), self.criteria[criterion]

    def without(self, raters: Iterable[str]) -> Table:
        """The table without the ratings of these raters, and without criteria that nobody else rates."""
        return self._kept(~self.by(raters))

    def by(self, raters: Iterable[str]) -> NDArray[np.bool_]:
        """Which ratings are by these raters."""
        wanted = set(raters)
        return np.isin(self.rater, [place for place, name in enumerate(self.raters) if name in wanted])

    def of_criteria(self, criteria: Iterable[str]) -> Table:
        """The table of the ratings on these criteria alone."""
        wanted = set(criteria)
        return self._kept(np.isin(self.criterion, [place for place, name in enumerate(self.criteria) if name in wanted]))

    def _kept(self, rows: NDArray[np.bool_]) -> Table:
        """The rows that are True, with the raters and criteria that these have; items stay where they are."""
        raters, rater = np.unique(self.rater[rows], return_inverse=True)
        criteria, criterion = np.unique(self.criterion[rows], return_inverse=True)
        names = (tuple(self.raters[place] for place in raters), tuple(self.criteria[place] for place in criteria))
        return Table(self.items, *names, self.item[rows], rater, criterion, self.rating[rows])

    def on(self, criterion: str) -> Ratings:
        """The ratings on one criterion, with the items that have one and all raters of the table."""
        rows = self.criterion == self.criteria.index(criterion)
        items, item = np.unique(self.item[rows], return_inverse=True)
        scale, step = np.unique(self.rating[rows], return_inverse=True)
        return Ratings(len(items), self.raters, scale, item, self.rater[rows], step)


def table_of(columns: Columns) -> Table:
    """The table of all rows that were read.

    Raises:
        InputError: with everything that is wrong, in the order of the rows.
    """
    faults, kept = columns.faults, columns.note_broken()
    codes, known = [columns.codes(name) for name in KEY], [list(columns.values[name]) for name in KEY]
    again, before = (kept[places] for places in repeated(*(code[kept] for code in codes)))
    for row, first in zip(faults.first(again), before.tolist(), strict=False):
        item, rater, criterion = (values[code[row]] for values, code in zip(known, codes, strict=True))
        what = f'"{rater}" rates "{item}" on "{criterion}" again, after {faults.unit} {columns.lines[first]}'
        columns.fault(row, what, "keep one of the two")
    faults.refuse()
    if not columns.lines:
        raise input_error(faults.files[0], "holds no rating", "give it a row for every rating")
    (items, item), (raters, rater), (criteria, criterion) = (_sorted(columns, name) for name in KEY)
    rating = np.array([float(value) for value in columns.values["rating"]])[columns.codes("rating")]
    table = Table(items, raters, criteria, item, rater, criterion, rating)
    for place, name in enumerate(table.criteria):
        steps = len(np.unique(table.rating[table.criterion == place]))
        if steps > STEPS:
            what = f'{steps} different ratings on "{name}"; a scale has at most {STEPS}'
            raise input_error(faults.files[0], what, "round the ratings to the steps of their scale, including means of a crowd")
    return table


def _sorted(columns: Columns, name: str) -> tuple[tuple[str, ...], Codes]:
    """The names in a column in order, and the place of each row among them."""
    values = columns.values[name]
    names = sorted(values)
    place = np.empty(len(names), dtype=np.int64)
    place[[values[one] for one in names]] = np.arange(len(names))
    return tuple(names), place[columns.codes(name)]


# What each column beside ratings is about: a criterion has one framework, a rater one of all others.
FACTS = {"framework": "criterion", "role": "rater", "model": "rater", "style": "rater", "sample": "rater"}


@dataclass
class Facts:
    """What the columns of one or several tables say, by column and by the criterion or rater that they say it of.

    An empty cell says nothing; a criterion or rater of which two different things are said is a fault of the later row.
    """

    said: dict[str, dict[str, str]] = field(default_factory=lambda: {name: {} for name in FACTS})
    _first: dict[tuple[str, str], str] = field(default_factory=dict)

    def note(self, columns: Columns) -> None:
        """Notes what the rows of a table say of their rater and their criterion."""
        names = ("rater", "criterion", *FACTS)
        values, first = [list(columns.values[name]) for name in names], dict[tuple[int, ...], int]()
        for row, said in enumerate(zip(*(columns.codes(name).tolist() for name in names), strict=True)):
            first.setdefault(said, row)
        for said, row in first.items():
            rater, criterion, *cells = (known[place] for known, place in zip(values, said, strict=True))
            told = {name: text for name, cell in zip(FACTS, cells, strict=True) if cell is not None and (text := cell.strip())}
            for name, what, fix in list(violations(told, "ratings_about", by_hand=True)):
                columns.fault(row, f"{name} {what}", fix)
                told.pop(name, None)
            for name, text in told.items():
                self._say(columns, row, (name, str({"rater": rater, "criterion": criterion}[FACTS[name]])), text)

    def _say(self, columns: Columns, row: int, about: tuple[str, str], text: str) -> None:
        name, of = about
        known = self.said[name].setdefault(of, text)
        before = self._first.setdefault(about, f"line {columns.lines[row]} of {columns.faults.files[-1]}")
        if known != text:
            what = f'gives the {FACTS[name]} "{of}" the {name} "{text}", but {before} says "{known}"'
            columns.fault(row, what, f"give each {FACTS[name]} one {name}")


def read_tables(paths: Sequence[Path], facts: Facts | None = None) -> Table:
    """The ratings of CSV files, and of folders that ``annotate`` finished, in one table.

    What other columns say of raters and criteria is noted in ``facts``.

    Raises:
        InputError: as :func:`read_table`; for folders without finished annotations; for ratings given twice.
    """
    tables = [Table.of(ratings_of(read_annotations(path))) if path.is_dir() else read_table(path, facts) for path in paths]
    return tables[0] if len(tables) == 1 else Table.of(row for table in tables for row in table.rows())


def read_table(path: Path, facts: Facts | None = None) -> Table:
    """The ratings in a file with the columns ``item``, ``rater``, ``rating`` and, if there are several, ``criterion``.

    It is TSV or JSONL, an object a line, where its name says so, else CSV.

    Other columns are passed over, but for those that ``facts`` take note of; an empty rating is a missing one; a byte order mark does no
    harm.

    Raises:
        InputError: if the file cannot be read, is not UTF-8 or not of its form, or holds a row that breaks the schema ``ratings_row``, a
            rating given twice, or no rating; all problems at once with their lines.
    """
    columns = Columns(FORM, () if facts is None else tuple(FACTS))
    columns.read(path)
    if facts:
        facts.note(columns)
    return table_of(columns)
