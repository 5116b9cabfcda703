"""A table of ratings: who gave what to which item, on which criterion, as arrays."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.base.schemas import hidden, schema, validator, violations
from empathy_eval.statistics.estimate import Codes, Floats

SCHEMA = "ratings_row"
RATING_COLUMNS = ("item", "rater", "criterion", "rating")
# The criterion of a table that has no such column.
ONLY = "rating"
# A scale with more steps is no rating scale, and its tables of step by step would not fit into memory.
STEPS = 101
SHOWN = 100
MISSING = -1


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
        gathered = Gathering("ratings", "row")
        for number, (item, rater, rating, *criterion) in enumerate(rows, start=1):
            # NaN is the only value that differs from itself.
            if rating is not None and rating == rating:
                gathered.add(number, (item, rater, criterion[0] if criterion else ONLY, rating))
        return gathered.table()

    def rows(self) -> Iterator[tuple[str, str, float, str]]:
        """The rows, as :meth:`of` takes them."""
        for item, rater, rating, criterion in zip(self.item, self.rater, self.rating, self.criterion, strict=True):
            yield self.items[item], self.raters[rater], float(rating), self.criteria[criterion]

    def without(self, raters: Iterable[str]) -> Table:
        """The table without the ratings of these raters, and without criteria that nobody else rates."""
        gone = set(raters)
        return self._kept(~np.isin(self.rater, [place for place, name in enumerate(self.raters) if name in gone]))

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


@dataclass
class Gathering:
    """Collects rows as numbers, so that a million of them stay small, and reports all that is wrong with them at once."""

    where: str
    unit: str
    problems: list[tuple[int, str, str]] = field(default_factory=list)
    unsaid: int = 0
    places: array[int] = field(default_factory=lambda: array("q"))
    values: tuple[dict[Any, int], ...] = field(default_factory=lambda: tuple({} for _ in RATING_COLUMNS))
    codes: tuple[array[int], ...] = field(default_factory=lambda: tuple(array("q") for _ in RATING_COLUMNS))

    def add(self, place: int, row: Sequence[Any]) -> None:
        """Adds a row, its values in the order of ``RATING_COLUMNS``; ``place`` is its line or row number."""
        self.places.append(place)
        for values, codes, value in zip(self.values, self.codes, row, strict=True):
            codes.append(values.setdefault(value, len(values)))

    def problem(self, place: int, what: str, fix: str) -> None:
        """Notes what is wrong at a place; beyond the first hundred faults they are only counted."""
        if len(self.problems) < SHOWN:
            self.problems.append((place, what, fix))
        else:
            self.unsaid += 1

    def table(self) -> Table:
        """The table of all rows.

        Raises:
            InputError: with everything that is wrong, in the order of the rows.
        """
        codes = [np.frombuffer(column, dtype=np.int64) for column in self.codes]
        self._note_repeated(codes, self._note_broken(codes))
        if self.problems:
            said = [Problem(f"{self.where}: {self.unit} {place}", what, fix) for place, what, fix in sorted(self.problems)]
            rest = [Problem(self.where, f"{self.unsaid} more problems", "fix these first")] if self.unsaid else []
            raise InputError(said + rest)
        if not self.places:
            raise input_error(self.where, "holds no rating", "give it a row for every rating")
        (items, item), (raters, rater), (criteria, criterion) = map(_sorted, codes[:3], self.values[:3])
        rating = np.array([float(value) for value in self.values[3]])[codes[3]]
        table = Table(items, raters, criteria, item, rater, criterion, rating)
        _check_steps(table, self.where)
        return table

    def _note_broken(self, codes: Sequence[Codes]) -> NDArray[np.bool_]:
        """Notes which rows break the schema, looking at every different value of a column once."""
        properties = schema(SCHEMA)["properties"]
        broken = np.zeros(len(self.places), dtype=bool)
        for name, values, column in zip(RATING_COLUMNS, self.values, codes, strict=True):
            judge = validator(SCHEMA).evolve(schema=properties[name])
            broken |= np.array([not judge.is_valid(value) or bool(hidden(value)) for value in values], dtype=bool)[column]
        known = [list(values) for values in self.values]
        rows = np.flatnonzero(broken)
        for row in rows[:SHOWN]:
            value = {name: values[column[row]] for name, values, column in zip(RATING_COLUMNS, known, codes, strict=True)}
            for place, what, fix in violations(value, SCHEMA, by_hand=True):
                self.problem(self.places[row], f"{place} {what}", fix)
        self.unsaid += len(rows[SHOWN:])
        return broken

    def _note_repeated(self, codes: Sequence[Codes], broken: NDArray[np.bool_]) -> None:
        """Notes each row whose item, rater and criterion an earlier row has."""
        kept = np.flatnonzero(~broken)
        sizes = [len(values) for values in self.values]
        keys = ((codes[0] * sizes[1] + codes[1]) * sizes[2] + codes[2])[kept]
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        again = np.flatnonzero(first[inverse] != np.arange(len(keys)))
        items, raters, criteria, _ = (list(values) for values in self.values)
        for row, before in zip(kept[again[:SHOWN]], kept[first[inverse[again[:SHOWN]]]], strict=True):
            rating = f'"{raters[codes[1][row]]}" rates "{items[codes[0][row]]}" on "{criteria[codes[2][row]]}"'
            self.problem(self.places[row], f"{rating} again, after {self.unit} {self.places[before]}", "keep one of the two")
        self.unsaid += len(again[SHOWN:])


def _sorted(column: Codes, values: dict[str, int]) -> tuple[tuple[str, ...], Codes]:
    """Names in order, and a column of places among them."""
    names = sorted(values)
    place = np.empty(len(names), dtype=np.int64)
    place[[values[name] for name in names]] = np.arange(len(names))
    return tuple(names), place[column]


def _check_steps(table: Table, where: str) -> None:
    for place, criterion in enumerate(table.criteria):
        steps = len(np.unique(table.rating[table.criterion == place]))
        if steps > STEPS:
            what = f'{steps} different ratings on "{criterion}"; a scale has at most {STEPS}'
            raise input_error(where, what, "round the ratings to the steps of their scale, including means of a crowd")
