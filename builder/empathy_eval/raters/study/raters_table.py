"""The raters' table of a study: attributes of raters, time taken, and attention checks."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import Problem, nearest_column, refuse
from empathy_eval.base.schemas import violations
from empathy_eval.design.provenance import File, file_of
from empathy_eval.raters.agreement.columns import MISSING, Faults, csv_table, json_objects, number_of
from empathy_eval.raters.study.ratings import StudyTable
from empathy_eval.statistics.estimate import Codes, Floats

RATER, GROUP, CHECKS, FAILED = "rater", "group", "checks", "checks_failed"
HEADER = "the first line names the columns: rater and optionally group,seconds,checks,checks_failed and others"
MOST_COLUMNS = 50
# A column with at most this many different numbers is categorical.
FEW_NUMBERS = 10


@dataclass(frozen=True)
class RatersTable:
    """Attributes of a study's raters: ``cells`` by column have one entry a rater, None if unknown.

    ``absent`` raters of the study are not in the table; ``unknown`` raters of the table gave no rating, and are left out. ``source`` is the
    file that was read.
    """

    study: StudyTable
    cells: Mapping[str, Sequence[str | None]]
    absent: int
    unknown: int
    source: File | None = None

    @property
    def columns(self) -> list[str]:
        """Columns by which groups are compared: all but the rater's group and checks."""
        return [name for name in self.cells if name not in (GROUP, CHECKS, FAILED)]

    def numbers(self, column: str) -> Floats | None:
        """Numbers of a column, NaN if unknown; None if a cell is no number, or at most ten values differ."""
        cells = self.cells[column]
        numbers = np.array([math.nan if cell is None else number_of(cell) for cell in cells])
        words = any(cell is not None and math.isnan(number) for cell, number in zip(cells, numbers.tolist(), strict=True))
        return None if words or len(np.unique(numbers[~np.isnan(numbers)])) <= FEW_NUMBERS else numbers

    def values(self, column: str) -> tuple[tuple[str, ...], Codes]:
        """Distinct values of a column, numbers by size, and the index of each rater's value, ``MISSING`` if unknown."""
        cells = self.cells[column]
        known = {cell: number_of(cell) for cell in cells if cell is not None}
        words = any(map(math.isnan, known.values()))
        # 1 and 1.0 are one value.
        known_as = {cell: cell if words else f"{number:.12g}" for cell, number in known.items()}
        names = tuple(sorted(set(known_as.values()), key=None if words else float))
        places = {name: index for index, name in enumerate(names)}
        return names, np.array([MISSING if cell is None else places[known_as[cell]] for cell in cells], dtype=np.int64)

    @cached_property
    def failed(self) -> Floats:
        """Share of attention checks that each rater failed; NaN if unknown, or if no check was shown."""
        shown, failed = (np.array([math.nan if cell is None else float(cell) for cell in self.cells[name]]) for name in (CHECKS, FAILED))
        share: Floats = np.divide(failed, shown, out=np.full(len(shown), math.nan), where=shown > 0)
        return share

    @property
    def has_checks(self) -> bool:
        """Whether the table has attention checks."""
        return FAILED in self.cells


def read_raters(path: Path, study: StudyTable) -> RatersTable:
    """Read the raters of a study from a CSV, TSV or JSONL file, by its suffix.

    It has the column ``rater`` and optionally ``group``, ``seconds``, ``checks`` and ``checks_failed`` (attention checks shown and failed),
    and any others. An empty cell is unknown.

    Raises:
        InputError: if it cannot be read or is not of its form, has a rater twice, a group that the ratings contradict, more checks failed
            than shown, invalid numbers, or no rater of the study: all at once, with lines.
    """
    faults = Faults()
    faults.files.append(str(path))
    rows = list(_rows(path, faults))
    columns = list(dict.fromkeys(name for _, row in rows for name in row if name != RATER))
    if len(columns) > MOST_COLUMNS:
        what = f"has {len(columns):,} columns; at most {MOST_COLUMNS} are allowed"
        faults.of_file(0, what, "leave out columns that say nothing about groups")
    index_of = {name: number for number, name in enumerate(study.raters)}
    lines = dict[str, int]()
    for line, row in rows:
        for what, fix in _row_problems(row, lines, study, index_of):
            faults.add(line, what, fix)
        lines.setdefault(row[RATER], line)
    row_of = {row[RATER]: row for _, row in rows if row[RATER] in index_of}
    if not row_of and not faults.noted:
        what = "lists no rater of the study" if rows else "lists no rater"
        faults.of_file(0, what, "use the names of raters from the ratings")
    faults.refuse()
    cells = {name: [row_of.get(rater, {}).get(name) for rater in study.raters] for name in columns}
    return RatersTable(study, cells, len(study.raters) - len(row_of), len(rows) - len(row_of), file_of(path))


def _row_problems(
    row: Mapping[str, str], lines: Mapping[str, int], study: StudyTable, index_of: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    """(what, fix) for each problem of a row beyond its form."""
    name = row[RATER]
    if name in lines:
        yield f'"{name[:80]}" is already in line {lines[name]}', "keep one row per rater"
    if name in index_of and GROUP in row and row[GROUP] != (own := study.groups[study.group_of[index_of[name]]]):
        yield f'"{name[:80]}" is in the group "{row[GROUP][:80]}", but its ratings are in "{own}"', "write the group that the rater rated"
    if FAILED in row and CHECKS not in row:
        yield f"{row[FAILED]} checks failed, but the number of checks shown is missing", 'write it in the column "checks"'
    elif FAILED in row and float(row[FAILED]) > float(row[CHECKS]):
        yield f"{row[FAILED]} checks failed, but only {row[CHECKS]} were shown", "write at most as many failed checks as were shown"


def _rows(path: Path, faults: Faults) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, non-empty cells) of the rows that fit the schema; the problems of others are noted."""
    rows: Iterable[tuple[int, dict[str, Any]]] = json_objects(path, faults)
    if path.suffix.lower() != ".jsonl":
        names, lines = csv_table(path, faults)
        _check_header(path, names)
        rows = ((line, dict(zip(names, row, strict=True))) for line, row in lines)
    for line, row in rows:
        filled = {name: value for name, value in row.items() if not (value is None or (isinstance(value, str) and not value.strip()))}
        if broken := list(violations(filled, "raters_row", by_hand=True)):
            for where, what, fix in broken:
                faults.add(line, f"{where} {what}".strip(), fix)
        else:
            yield line, {name: value.strip() if isinstance(value, str) else json.dumps(value) for name, value in filled.items()}


def _check_header(path: Path, names: Sequence[str]) -> None:
    shown = ",".join(names)[:80]
    wrong = [f'has {names.count(name)} "{name}"' for name in dict.fromkeys(names) if names.count(name) > 1 and name]
    wrong += [f'has no "{RATER}"'] if RATER not in names else []
    wrong += ["has a column without a name"] if "" in names and len(names) > 1 else []
    wrong += [f'has "{FAILED}" and no "{CHECKS}"'] if FAILED in names and CHECKS not in names else []
    fix = HEADER + nearest_column(names, {RATER}.difference(names))
    refuse(Problem(f"{path}: line 1", f'the header "{shown}" {fault}', fix) for fault in wrong)
