"""The optional columns of a table of ratings, which say who raters are and which criteria belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.base.schemas import violations
from empathy_eval.raters.agreement.table import Gathering

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
