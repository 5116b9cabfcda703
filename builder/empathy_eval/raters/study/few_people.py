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
# What can be worked out of very many columns is not followed further: no more of them are told.
MOST_WORKED_OUT = 200
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
        # Classes that were told, and those that can be worked out of them, as the place of each rater.
        self._known = list[Codes]()

    def counts(self, classes: Classes) -> Counts:
        """How many raters of each group are in each class, shape (groups, classes)."""
        return self._cells(classes.place, len(classes.names))

    def first(self, candidates: Iterable[Classes]) -> Classes | None:
        """The first candidate that may be told, which is kept as told; None where none may."""
        for one in candidates:
            if self._few_in_none(one) and (known := self._worked_out(one.place)) is not None:
                self._known += known
                return one
        return None

    def _cells(self, place: Codes, number: int) -> Counts:
        cells = np.bincount(self._group_of * number + place, minlength=self._groups * number)
        return cells.reshape(self._groups, number)

    def _few_in_none(self, one: Classes) -> bool:
        """Whether there are two classes or more, each with five raters of every group, and no part has one to four."""
        return len(one.names) > 1 and bool((self.counts(one) >= FEWEST).all()) and all(part == 0 or part >= FEWEST for part in one.parts)

    def _worked_out(self, place: Codes) -> list[Codes] | None:
        """These classes and what can be worked out of them and of those known before; None if that is one to four raters of a group."""
        found, seen = [place], set[bytes]()
        for known in (*self._known, place):
            for value in range(int(known.max()) + 1):
                seen.update(_either(known == value))
        for at, one in enumerate(found):
            for other in [*self._known, *found[:at]]:
                for some in [*self._differences(one, other), *self._differences(other, one)]:
                    if seen.issuperset(_either(some == 1)):
                        continue
                    if self._cells(some, 2)[:, 1].min() < FEWEST or len(found) > MOST_WORKED_OUT:
                        return None
                    seen.update(_either(some == 1))
                    found.append(some)
        return found

    def _differences(self, one: Codes, other: Codes) -> Iterator[Codes]:
        """Of each class of one the classes of the other that it lies in, less it: their raters as 1, all others as 0."""
        width = int(other.max()) + 1
        met = np.bincount(one * width + other, minlength=(int(one.max()) + 1) * width).reshape(-1, width) > 0
        for row, columns in enumerate(met):
            if not columns.all() and (some := (one != row) & columns[other]).any():
                yield some.astype(np.int64)


def _either(some: NDArray[np.bool_]) -> tuple[bytes, bytes]:
    """Raters who are marked, and all others, in a short form."""
    return np.packbits(some).tobytes(), np.packbits(~some).tobytes()


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
