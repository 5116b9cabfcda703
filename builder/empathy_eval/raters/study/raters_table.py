"""The table of a study's raters: who they are, how long they took and how they did on checks of attention."""

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
from empathy_eval.raters.study.ratings import Study
from empathy_eval.statistics.estimate import Codes, Floats

RATER, GROUP, CHECKS, FAILED = "rater", "group", "checks", "checks_failed"
HEADER = "the first line names the columns: rater and optionally group,seconds,checks,checks_failed and others"
MOST_COLUMNS = 50
# A column of no more different numbers is one of values: such numbers say how often each of them is there.
FEW_NUMBERS = 10


@dataclass(frozen=True)
class RatersTable:
    """What is known of the raters of a study: ``cells`` by column have a place a rater, None where nothing is told.

    ``untold`` raters of the study are not in the table; ``unknown`` ones of the table gave no rating, and are left out. ``source`` is the
    file that this was read from.
    """

    study: Study
    cells: Mapping[str, Sequence[str | None]]
    untold: int
    unknown: int
    source: File | None = None

    @property
    def columns(self) -> list[str]:
        """The columns by which groups are compared: all but the rater, its group and its checks."""
        return [name for name in self.cells if name not in (GROUP, CHECKS, FAILED)]

    def numbers(self, column: str) -> Floats | None:
        """The numbers of a column, NaN where nothing is told; None where a cell is no number, or no more than ten differ."""
        cells = self.cells[column]
        found = np.array([math.nan if one is None else number_of(one) for one in cells])
        words = any(one is not None and math.isnan(number) for one, number in zip(cells, found.tolist(), strict=True))
        return None if words or len(np.unique(found[~np.isnan(found)])) <= FEW_NUMBERS else found

    def values(self, column: str) -> tuple[tuple[str, ...], Codes]:
        """The values of a column in order, numbers by their size, and the place of each rater, ``MISSING`` where nothing is told."""
        cells = self.cells[column]
        known = {one: number_of(one) for one in cells if one is not None}
        words = any(map(math.isnan, known.values()))
        # 1 and 1.0 are one value.
        known_as = {one: one if words else f"{number:.12g}" for one, number in known.items()}
        names = tuple(sorted(set(known_as.values()), key=None if words else float))
        places = {name: place for place, name in enumerate(names)}
        return names, np.array([MISSING if one is None else places[known_as[one]] for one in cells], dtype=np.int64)

    @cached_property
    def failed(self) -> Floats:
        """The share of their checks of attention that raters failed; NaN where nothing is told, or no check was shown."""
        shown, failed = (np.array([math.nan if one is None else float(one) for one in self.cells[name]]) for name in (CHECKS, FAILED))
        share: Floats = np.divide(failed, shown, out=np.full(len(shown), math.nan), where=shown > 0)
        return share

    @property
    def has_checks(self) -> bool:
        """Whether the table says of checks of attention."""
        return FAILED in self.cells


def read_raters(path: Path, study: Study) -> RatersTable:
    """The raters of a study in a CSV, TSV or JSONL file, by its suffix.

    It has the column ``rater`` and, where there are such, ``group``, ``seconds``, ``checks`` and ``checks_failed`` (checks of attention
    that were shown and failed); any other column is taken as it comes. An empty cell says nothing.

    Raises:
        InputError: if it cannot be read or is not of its form, has a rater twice, a group that the ratings contradict, more checks failed
            than shown, odd numbers, or no rater of the study: all at once, with lines.
    """
    faults = Faults()
    faults.files.append(str(path))
    rows = list(_rows(path, faults))
    columns = list(dict.fromkeys(name for _, row in rows for name in row if name != RATER))
    if len(columns) > MOST_COLUMNS:
        faults.of_file(
            0, f"has {len(columns):,} columns; at most {MOST_COLUMNS} are allowed", "leave out columns that say nothing about groups"
        )
    place = {name: number for number, name in enumerate(study.raters)}
    lines = dict[str, int]()
    for line, row in rows:
        for what, fix in _odd(row, lines, study, place):
            faults.add(line, what, fix)
        lines.setdefault(row[RATER], line)
    kept = {row[RATER]: row for _, row in rows if row[RATER] in place}
    if not kept and not faults.found:
        what = "lists no rater of the study" if rows else "lists no rater"
        faults.of_file(0, what, "use the names of raters from the ratings")
    faults.refuse()
    cells = {name: [kept.get(rater, {}).get(name) for rater in study.raters] for name in columns}
    return RatersTable(study, cells, len(study.raters) - len(kept), len(rows) - len(kept), file_of(path))


def _odd(row: Mapping[str, str], lines: Mapping[str, int], study: Study, place: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """What is wrong with a row, beside its form."""
    name = row[RATER]
    if name in lines:
        yield f'"{name[:80]}" is already in line {lines[name]}', "keep one row per rater"
    if name in place and GROUP in row and row[GROUP] != (own := study.groups[study.group_of[place[name]]]):
        yield f'"{name[:80]}" is in the group "{row[GROUP][:80]}", but its ratings are in "{own}"', "write the group that the rater rated"
    if FAILED in row and CHECKS not in row:
        yield f"{row[FAILED]} checks failed, but the number of checks shown is missing", 'write it in the column "checks"'
    elif FAILED in row and float(row[FAILED]) > float(row[CHECKS]):
        yield f"{row[FAILED]} checks failed, but only {row[CHECKS]} were shown", "write at most as many failed checks as were shown"


def _rows(path: Path, faults: Faults) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, what its cells say) of rows that fit the schema; cells that say nothing are left out, faults of others are noted."""
    rows: Iterable[tuple[int, dict[str, Any]]] = json_objects(path, faults)
    if path.suffix.lower() != ".jsonl":
        names, lines = csv_table(path, faults)
        _check_header(path, names)
        rows = ((line, dict(zip(names, row, strict=True))) for line, row in lines)
    for line, row in rows:
        told = {name: value for name, value in row.items() if not (value is None or (isinstance(value, str) and not value.strip()))}
        if broken := list(violations(told, "raters_row", by_hand=True)):
            for where, what, fix in broken:
                faults.add(line, f"{where} {what}".strip(), fix)
        else:
            yield line, {name: value.strip() if isinstance(value, str) else json.dumps(value) for name, value in told.items()}


def _check_header(path: Path, names: Sequence[str]) -> None:
    shown = ",".join(names)[:80]
    wrong = [f'has {names.count(name)} "{name}"' for name in dict.fromkeys(names) if names.count(name) > 1 and name]
    wrong += [f'has no "{RATER}"'] if RATER not in names else []
    wrong += ["has a column without a name"] if "" in names and len(names) > 1 else []
    wrong += [f'has "{FAILED}" and no "{CHECKS}"'] if FAILED in names and CHECKS not in names else []
    fix = HEADER + nearest_column(names, {RATER}.difference(names))
    refuse(Problem(f"{path}: line 1", f'the header "{shown}" {one}', fix) for one in wrong)
