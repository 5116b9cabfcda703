"""Reads tables of ratings, from files and from folders of annotations; whatever is wrong with a file is said at once, with its line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from empathy_eval.base.schemas import violations
from empathy_eval.raters.agreement.columns import Columns
from empathy_eval.raters.agreement.table import FORM, Table, table_of
from empathy_eval.raters.judges.as_scores import ratings_in

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
    tables = [Table.of(ratings_in(path)) if path.is_dir() else read_table(path, facts) for path in paths]
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
