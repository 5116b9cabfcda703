"""Tables of ratings as arrays (item, rater, criterion, rating), from files and folders of annotations."""

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
from empathy_eval.raters.agreement.columns import MISSING, CodedColumns, TableForm, number_of, repeated
from empathy_eval.raters.judges.annotations import ratings_of, read_annotations
from empathy_eval.statistics.estimate import Codes, Floats

KEY = ("item", "rater", "criterion")
RATING_COLUMNS = (*KEY, "rating")
# Criterion of a table without such a column.
ONLY = "rating"
# A scale with more steps is no rating scale, and its step-by-step tables would not fit into memory.
STEPS = 101


def _plain(value: object) -> object:
    """A text or number; anything else as JSON text, which the schema refuses."""
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else json.dumps(value)


def _of_object(row: Mapping[str, Any], name: str) -> object:
    """Value of a column; None for a missing rating, or an absent column beyond those of ratings."""
    if name in KEY:
        return _plain(row.get(name, ONLY if name == "criterion" else ""))
    value = row.get(name)
    return value if value is None else _plain(value) if name == "rating" else str(_plain(value))


@lru_cache(maxsize=4096)
def _number(cell: str) -> float | str:
    """The finite number in a cell, or its text, which the schema refuses."""
    return cell.strip() if math.isnan(number := number_of(cell.strip())) else number


FORM = TableForm(
    "ratings_row",
    "the first line names the columns: item,rater,rating and, if there are several, criterion, with commas between them",
    keys=("rating",),
    keys_fix="write the rating, or null if it is missing",
    of_object=_of_object,
    of_cell=dict.fromkeys(RATING_COLUMNS, str.strip) | {"rating": _number},
    absent={"criterion": ONLY},
)


@dataclass(frozen=True)
class CriterionRatings:
    """Ratings on one criterion.

    ``item``, ``rater`` and ``step`` have one entry a rating: indices of items (there are ``items``), of ``raters`` and of ``scale`` (the
    values that occur, ascending).
    """

    items: int
    raters: tuple[str, ...]
    scale: Floats
    item: Codes
    rater: Codes
    step: Codes

    def of_rater(self, rater: int) -> Codes:
        """A rater's rating of each item, shape (items,): indices of ``scale``, ``MISSING`` without a rating."""
        steps = np.full(self.items, MISSING)
        own = self._by_rater[self._bounds[rater] : self._bounds[rater + 1]]
        steps[self.item[own]] = self.step[own]
        return steps

    def counts(self, raters: Sequence[int]) -> Codes:
        """How often these raters gave each item each value, shape (items, steps)."""
        selected = np.isin(self.rater, raters)
        flat = np.bincount(self.item[selected] * len(self.scale) + self.step[selected], minlength=self.items * len(self.scale))
        return flat.reshape(self.items, len(self.scale))

    @cached_property
    def _by_rater(self) -> Codes:
        return np.argsort(self.rater, kind="stable")

    @cached_property
    def _bounds(self) -> Codes:
        return np.searchsorted(self.rater[self._by_rater], np.arange(len(self.raters) + 1))


@dataclass(frozen=True)
class RatingTable:
    """Ratings of items by raters on criteria, a row a rating; names are sorted, so the order of rows does not matter.

    ``item``, ``rater`` and ``criterion`` are indices of ``items``, ``raters`` and ``criteria``.
    """

    items: tuple[str, ...]
    raters: tuple[str, ...]
    criteria: tuple[str, ...]
    item: Codes
    rater: Codes
    criterion: Codes
    rating: Floats

    @classmethod
    def of(cls, rows: Iterable[Sequence[Any]]) -> RatingTable:
        """Table of rows (item, rater, rating) or (item, rater, rating, criterion); a rating None or NaN is missing.

        Raises:
            InputError: for rows that break the schema and ratings given twice, all at once; for a table without a rating.
        """
        columns = CodedColumns(FORM, unit="row")
        columns.faults.files.append("ratings")
        # NaN is the only value that differs from itself.
        rated = ((number, (*row, ONLY)[:4]) for number, row in enumerate(rows, 1) if row[2] is not None and row[2] == row[2])
        columns.add(rated, {"item": 0, "rater": 1, "rating": 2, "criterion": 3})
        return table_of(columns)

    def rows(self) -> Iterator[tuple[str, str, float, str]]:
        """The rows, as :meth:`of` takes them."""
        for item, rater, rating, criterion in zip(self.item, self.rater, self.rating, self.criterion, strict=True):
            yield self.items[item], self.raters[rater], float(rating), self.criteria[criterion]

    def without(self, raters: Iterable[str]) -> RatingTable:
        """Table without the ratings of these raters, and without criteria that nobody else rates."""
        return self._select(~self.by(raters))

    def by(self, raters: Iterable[str]) -> NDArray[np.bool_]:
        """Mask of the ratings by these raters."""
        names = set(raters)
        return np.isin(self.rater, [index for index, name in enumerate(self.raters) if name in names])

    def of_criteria(self, criteria: Iterable[str]) -> RatingTable:
        """Table of the ratings on these criteria."""
        names = set(criteria)
        return self._select(np.isin(self.criterion, [index for index, name in enumerate(self.criteria) if name in names]))

    def _select(self, rows: NDArray[np.bool_]) -> RatingTable:
        """Selected rows, with the raters and criteria that occur in them; items keep their indices."""
        raters, rater = np.unique(self.rater[rows], return_inverse=True)
        criteria, criterion = np.unique(self.criterion[rows], return_inverse=True)
        names = (tuple(self.raters[rater] for rater in raters), tuple(self.criteria[criterion] for criterion in criteria))
        return RatingTable(self.items, *names, self.item[rows], rater, criterion, self.rating[rows])

    def on(self, criterion: str) -> CriterionRatings:
        """Ratings on one criterion, with the items that have one and all raters of the table."""
        rows = self.criterion == self.criteria.index(criterion)
        items, item = np.unique(self.item[rows], return_inverse=True)
        scale, step = np.unique(self.rating[rows], return_inverse=True)
        return CriterionRatings(len(items), self.raters, scale, item, self.rater[rows], step)


def table_of(columns: CodedColumns) -> RatingTable:
    """Table of all rows that were read.

    Raises:
        InputError: with all problems, in the order of the rows.
    """
    faults, valid = columns.faults, columns.valid_rows()
    codes, known = [columns.codes(name) for name in KEY], [list(columns.values[name]) for name in KEY]
    again, before = (valid[places] for places in repeated(*(code[valid] for code in codes)))
    for row, first in zip(faults.shown(again), before.tolist(), strict=False):
        item, rater, criterion = (values[code[row]] for values, code in zip(known, codes, strict=True))
        what = f'"{rater}" rates "{item}" on "{criterion}" again, after {faults.unit} {columns.lines[first]}'
        columns.fault(row, what, "keep one of the two")
    faults.refuse()
    if not columns.lines:
        raise input_error(faults.files[0], "holds no rating", "give it a row for every rating")
    (items, item), (raters, rater), (criteria, criterion) = (_sorted(columns, name) for name in KEY)
    rating = np.array([float(value) for value in columns.values["rating"]])[columns.codes("rating")]
    table = RatingTable(items, raters, criteria, item, rater, criterion, rating)
    for index, name in enumerate(table.criteria):
        steps = len(np.unique(table.rating[table.criterion == index]))
        if steps > STEPS:
            what = f'{steps} different ratings on "{name}"; a scale has at most {STEPS}'
            raise input_error(faults.files[0], what, "round the ratings to the steps of their scale, including means of a crowd")
    return table


def _sorted(columns: CodedColumns, name: str) -> tuple[tuple[str, ...], Codes]:
    """Names of a column in order, and the index of each row's name."""
    values = columns.values[name]
    names = sorted(values)
    index = np.empty(len(names), dtype=np.int64)
    index[[values[name] for name in names]] = np.arange(len(names))
    return tuple(names), index[columns.codes(name)]


# What each further column describes: a criterion has one framework, a rater one of all others.
FACTS = {"framework": "criterion", "role": "rater", "model": "rater", "style": "rater", "sample": "rater"}


@dataclass
class RaterFacts:
    """Facts about raters and criteria from the columns of tables, by column and by rater or criterion.

    An empty cell is no fact; a contradiction is a fault of the later row.
    """

    stated: dict[str, dict[str, str]] = field(default_factory=lambda: {name: {} for name in FACTS})
    _first: dict[tuple[str, str], str] = field(default_factory=dict)

    def note(self, columns: CodedColumns) -> None:
        """Add the facts in the rows of a table."""
        names = ("rater", "criterion", *FACTS)
        values, first = [list(columns.values[name]) for name in names], dict[tuple[int, ...], int]()
        for row, codes in enumerate(zip(*(columns.codes(name).tolist() for name in names), strict=True)):
            first.setdefault(codes, row)
        for codes, row in first.items():
            rater, criterion, *cells = (known[code] for known, code in zip(values, codes, strict=True))
            stated = {name: text for name, cell in zip(FACTS, cells, strict=True) if cell is not None and (text := cell.strip())}
            for name, what, fix in list(violations(stated, "ratings_about", by_hand=True)):
                columns.fault(row, f"{name} {what}", fix)
                stated.pop(name, None)
            for name, text in stated.items():
                self._say(columns, row, (name, str({"rater": rater, "criterion": criterion}[FACTS[name]])), text)

    def _say(self, columns: CodedColumns, row: int, about: tuple[str, str], text: str) -> None:
        name, subject = about
        known = self.stated[name].setdefault(subject, text)
        before = self._first.setdefault(about, f"line {columns.lines[row]} of {columns.faults.files[-1]}")
        if known != text:
            what = f'gives the {FACTS[name]} "{subject}" the {name} "{text}", but {before} says "{known}"'
            columns.fault(row, what, f"give each {FACTS[name]} one {name}")


def read_tables(paths: Sequence[Path], facts: RaterFacts | None = None) -> RatingTable:
    """Read CSV files, and folders that ``annotate`` finished, into one table.

    Facts from other columns about raters and criteria are added to ``facts``.

    Raises:
        InputError: as :func:`read_table`; for folders without finished annotations; for ratings given twice.
    """
    tables = [RatingTable.of(ratings_of(read_annotations(path))) if path.is_dir() else read_table(path, facts) for path in paths]
    return tables[0] if len(tables) == 1 else RatingTable.of(row for table in tables for row in table.rows())


def read_table(path: Path, facts: RaterFacts | None = None) -> RatingTable:
    """Read a file with the columns ``item``, ``rater``, ``rating`` and, if there are several, ``criterion``.

    It is TSV or JSONL if its suffix says so, else CSV. Other columns are ignored, but for those that ``facts`` collect; an empty rating is
    a missing one; a byte order mark is allowed.

    Raises:
        InputError: if the file cannot be read, is not UTF-8 or not of its form, or has a row that breaks the schema ``ratings_row``, a
            rating given twice, or no rating; all problems at once with their lines.
    """
    columns = CodedColumns(FORM, () if facts is None else tuple(FACTS))
    columns.read(path)
    if facts:
        facts.note(columns)
    return table_of(columns)
