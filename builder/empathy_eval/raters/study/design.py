"""What makes rows a study between subjects: a rater is of one group and one block, an item of one stratum, and is rated once by a rater."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from empathy_eval.raters.agreement.read import NUMBER
from empathy_eval.raters.agreement.table import MISSING, Codes
from empathy_eval.raters.study.columns import SHOWN, Columns

Named = tuple[tuple[str, ...], Codes]
MOST_GROUPS, MOST_STRATA = 30, 200


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

    def named(self, name: str) -> Named:
        """The names in a column in order, and the place of each row among them; ``MISSING`` where its file has no such column.

        Names that are all numbers are in the order of these: 2 before 10.
        """
        values = list(self.columns.values[name])
        codes = self.columns.codes(name)[self.row]
        used = [place for place in np.unique(codes).tolist() if values[place] is not None]
        names = in_order({values[place].strip() for place in used})
        places = {one: place for place, one in enumerate(names)}
        found = np.full(len(values), MISSING)
        found[used] = [places[values[place].strip()] for place in used]
        return names, found[codes]

    def fault(self, row: int, what: str, fix: str) -> None:
        """Notes what is wrong with one of these rows."""
        place = self.row[row]
        self.columns.faults.add(int(self.columns.file[place]), int(self.columns.line[place]), what, fix)

    def at(self, row: int, here: int) -> str:
        """Where one of these rows is, as told at another."""
        file, line = self.columns.file[self.row[row]], self.columns.line[self.row[row]]
        return f"line {line}" + ("" if file == self.columns.file[self.row[here]] else f" of {self.columns.files[file]}")

    def faults(self, rows: Codes, before: Codes, what: Sequence[str], fix: str) -> None:
        """Notes faults of rows, each with the row that came before it."""
        for row, other, one in zip(rows.tolist(), before.tolist(), what, strict=False):
            self.fault(row, f"{one} at {self.at(other, row)}", fix)
        self.columns.faults.unsaid += len(rows) - len(what)

    def held(self, of: Named, by: Named, said: str, fix: str) -> Codes:
        """What each of some names holds of others, as a rater holds a group; notes each that holds two. ``MISSING`` holds nothing."""
        names, place = of
        others, value = by
        known = np.flatnonzero(value != MISSING)
        own, first = np.full(len(names), MISSING), np.zeros(len(names), dtype=np.int64)
        found, at = np.unique(place[known], return_index=True)
        first[found] = known[at]
        own[found] = value[known][at]
        rows = np.flatnonzero((value != MISSING) & (value != own[place]))
        rows = rows[np.sort(np.unique(place[rows], return_index=True)[1])]
        told = [said.format(names[place[row]], others[value[row]], others[own[place[row]]]) for row in rows[:SHOWN].tolist()]
        self.faults(rows, first[place[rows]], told, fix)
        return own

    def all_hold(self, of: Named, own: Codes, said: str, fix: str) -> None:
        """Notes each name that holds nothing where others hold something."""
        lacking = np.flatnonzero(own == MISSING)
        _, first = np.unique(of[1], return_index=True)
        for place in lacking[:SHOWN].tolist():
            self.fault(int(first[place]), said.format(of[0][place]), fix)
        self.columns.faults.unsaid += len(lacking[SHOWN:])

    def each_once(self, rater: Named, item: Named) -> None:
        """Notes each row whose item its rater rated before."""
        key = rater[1] * max(len(item[0]), 1) + item[1]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        again = np.flatnonzero(first[inverse] != np.arange(len(key)))
        told = [f'"{rater[0][rater[1][row]]}" rates "{item[0][item[1][row]]}" again, after the rating' for row in again[:SHOWN].tolist()]
        self.faults(again, first[inverse[again]], told, "keep one of the two")
