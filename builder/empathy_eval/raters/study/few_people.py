"""Nobody is told from fewer than five: rare values are pooled, until no cell is smaller, nor can be worked out.

Groups and their sizes are known, so a cell that is left out of a row is the difference of the others; columns that say nearly the same
(a country, and its continent) give a small cell as the difference of two. Every figure of a column of values is of its pooled table:
that of the finer one could be solved for its cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empathy_eval.raters.agreement.table import MISSING, Codes
from empathy_eval.raters.study.raters_table import Values
from empathy_eval.raters.study.told_of_raters import FEWEST

OTHERS, NOT_TOLD, BOTH = "other values", "not told", "other values, or not told"
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Classes:
    """Raters by class: the names of the classes, and the place of each rater.

    ``parts`` are numbers of raters that can be worked out of what is told besides, such as how many are not in the table at all.
    """

    names: tuple[str, ...]
    place: Codes
    parts: tuple[int, ...] = ()


class Telling:
    """Which classes of raters may be told, after those that were: of raters of these groups."""

    def __init__(self, group_of: Codes, groups: int) -> None:
        self._group_of, self._groups = group_of, groups
        self._told = list[Classes]()

    def counts(self, classes: Classes) -> Counts:
        """How many raters of each group are in each class, shape (groups, classes)."""
        return self._cells(classes.place, len(classes.names))

    def first(self, candidates: Iterable[Classes]) -> Classes | None:
        """The first candidate that may be told, which is kept as told; None where none may."""
        for one in candidates:
            if self._few_in_none(one) and not any(self._gives_away(one, other) for other in self._told):
                self._told.append(one)
                return one
        return None

    def _cells(self, place: Codes, number: int) -> Counts:
        cells = np.bincount(self._group_of * number + place, minlength=self._groups * number)
        return cells.reshape(self._groups, number)

    def _few_in_none(self, one: Classes) -> bool:
        """Whether there are two classes or more, each with five raters of every group, and no part has one to four."""
        return len(one.names) > 1 and bool((self.counts(one) >= FEWEST).all()) and all(part == 0 or part >= FEWEST for part in one.parts)

    def _gives_away(self, one: Classes, other: Classes) -> bool:
        """Whether two partitions of raters give away fewer than five: where a class lies within others, the rest is a difference."""
        number = len(other.names)
        cells = self._cells(one.place * number + other.place, len(one.names) * number).reshape(self._groups, len(one.names), number)
        return _within(cells) or _within(cells.transpose(0, 2, 1))


def _within(cells: Counts) -> bool:
    """Whether the columns that lie wholly in a row, or that it lies in, leave a difference that is small; shape (groups, rows, columns)."""
    totals = cells.sum(axis=0)
    for row in range(len(totals)):
        met = totals[row] > 0
        inside = met & (totals[row] == totals.sum(axis=0))
        # The row without the columns inside it, and what of the columns that it meets is outside of it.
        rest, beyond = cells[:, row, ~inside].sum(axis=1), cells[:, :, met].sum(axis=(1, 2)) - cells[:, row].sum(axis=1)
        if (inside.any() and _few(rest)) or (not met.all() and _few(beyond)):
            return True
    return False


def _few(counts: Counts) -> bool:
    """Whether some group has fewer than five; nobody in any group says nothing that is not known."""
    return bool(counts.any() and counts.min() < FEWEST)


def poolings(values: Values, group_of: Codes, groups: int) -> Iterator[Classes]:
    """The values of a column with rare ones pooled, from as fine as may be: the rarest that is left goes into the pool next."""
    number = len(values.names)
    # A last column for raters of whom nothing is told.
    place = np.where(values.place == MISSING, number, values.place)
    counts = np.bincount(group_of * (number + 1) + place, minlength=groups * (number + 1)).reshape(groups, number + 1)
    totals = counts.sum(axis=0)
    kept = [one for one in range(number) if counts[:, one].min() >= FEWEST]
    for rarest in [None, *sorted(kept, key=lambda one: (totals[one], values.names[one]))]:
        kept = [one for one in kept if one != rarest]
        known = np.full(number + 1, len(kept))
        known[kept] = np.arange(len(kept))
        others, silent = int(totals[:-1].sum() - totals[kept].sum()), int(totals[-1])
        rest = OTHERS if not silent else (BOTH if others else NOT_TOLD)
        names = [_shortened(values.names[one]) for one in kept] + [rest] * (others + silent > 0)
        yield Classes(tuple(names), known[place], (others, others + silent - values.absent) if silent else ())


def _shortened(name: str) -> str:
    return name if len(name) <= 80 else f"{name[:79]}…"
