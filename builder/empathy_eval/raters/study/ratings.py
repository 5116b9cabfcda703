"""The ratings of a study between subjects: who, of which group, put which item into which category, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import Problem
from empathy_eval.raters.agreement.table import MISSING, Codes
from empathy_eval.raters.study.columns import Columns
from empathy_eval.raters.study.design import MOST_GROUPS, MOST_STRATA, Named, Rows, odd_labels

# The columns that say what an item is like; tests are made by each of them.
STRATA = ("valence", "stratum")
WITHOUT = "raters are exchanged within the whole study, whatever items they saw"
NO_BLOCKS = f"the ratings have no blocks: {WITHOUT}"
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Study:
    """The ratings of a study, a place a rating in ``rater``, ``item`` and ``category``; names are sorted, the baseline before other groups.

    ``labels`` are the categories, lowest first. ``group_of`` and ``block_of`` have a place a rater, in ``groups`` and ``blocks``; there
    may be no blocks. ``strata`` has by column ("stratum", "valence") its names and the place of each rating among them; ``added`` are the
    groups that came later, ``notes`` what is to be said of how the ratings were taken up.
    """

    groups: tuple[str, ...]
    raters: tuple[str, ...]
    items: tuple[str, ...]
    labels: tuple[str, ...]
    group_of: Codes
    block_of: Codes | None
    rater: Codes
    item: Codes
    category: Codes
    strata: Mapping[str, tuple[tuple[str, ...], Codes]] = field(default_factory=dict)
    blocks: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def by_rater(self, where: Mask | None = None) -> Codes:
        """How often each rater gave each category, among the ratings ``where`` (all), shape (raters, categories)."""
        return self._of_raters if where is None else self._counted(self.rater, len(self.raters), where)

    def counts(self, where: Mask | None = None) -> Codes:
        """How often each group was given each category, among the ratings ``where`` (all), shape (groups, categories)."""
        return self._of_groups if where is None else self._counted(self.group_of[self.rater], len(self.groups), where)

    @cached_property
    def _of_raters(self) -> Codes:
        """The counts of all raters, which many figures ask for."""
        counted = self._counted(self.rater, len(self.raters), None)
        counted.setflags(write=False)
        return counted

    @cached_property
    def _of_groups(self) -> Codes:
        counted = self._counted(self.group_of[self.rater], len(self.groups), None)
        counted.setflags(write=False)
        return counted

    def only(self, where: Mask) -> Study:
        """The study of some of the ratings, with all names and raters as they are."""
        strata = {name: (names, place[where]) for name, (names, place) in self.strata.items()}
        return replace(self, rater=self.rater[where], item=self.item[where], category=self.category[where], strata=strata)

    def _counted(self, of: Codes, number: int, where: Mask | None) -> Codes:
        cells = of * len(self.labels) + self.category
        counted = np.bincount(cells if where is None else cells[where], minlength=number * len(self.labels))
        return counted.reshape(number, len(self.labels))


@dataclass(frozen=True)
class Reading:
    """How tables of ratings are read: whom the groups are held against, the names of the categories, and which criterion counts."""

    baseline: str
    labels: tuple[str, ...] = ()
    criterion: str | None = None


def read_study(paths: Sequence[Path], reading: Reading, add: Sequence[Path] = ()) -> Study:
    """The study in CSV, TSV or JSONL files with the columns ``item``, ``group``, ``rater``, ``rating`` and, where there are such,
    ``stratum``, ``valence``, ``block`` and ``criterion``; the files ``add`` bring groups that came later.

    Raises:
        InputError: for files that cannot be read; for what is no study between subjects (a rater in two groups or blocks, an item in two
            strata, or rated twice by a rater), odd ratings, labels, criteria and groups: all at once, with lines.
    """
    columns, said = Columns(), odd_labels(reading.labels)
    for path in (*paths, *add):
        columns.read(path)
    rows = _of_criterion(Rows(columns, columns.note_broken()), reading.criterion, said)
    if len(rows.row):
        group = rows.named("group")
        said += _odd_groups(group[0], reading.baseline)
        added = _added(rows, group, len(paths))
        category = rows.categories(reading.labels)
        made = _study(rows, _first(group, reading.baseline), category, added)
        if len(given := np.unique(category[1])) == 1 and not columns.faults.found:
            what = f'has one category alone: every rating is "{category[0][given[0]]}"'
            columns.faults.of_file(0, what, "a study needs ratings in two categories")
    elif not columns.faults.found and not said:
        columns.faults.of_file(0, "holds no rating", "give it a row for every rating")
    columns.faults.refuse(columns.files, said)
    return made


def _of_criterion(rows: Rows, criterion: str | None, said: list[Problem]) -> Rows:
    """The rows on one criterion; of several one must be chosen."""
    names, place = rows.named("criterion")
    if criterion is None and len(names) > 1:
        said.append(Problem("criterion", f"the ratings are on {len(names)} criteria", f"choose one with --criterion: {', '.join(names)}"))
    elif criterion is not None and criterion not in names:
        known = f"choose one of {', '.join(names)}" if names else 'the ratings have no column "criterion": leave the option out'
        said.append(Problem("criterion", f'"{criterion}" is no criterion of the ratings', known))
    elif criterion is not None:
        return Rows(rows.columns, rows.row[place == names.index(criterion)])
    return rows if len(names) < 2 else Rows(rows.columns, rows.row[place == 0])


def _odd_groups(names: Sequence[str], baseline: str) -> list[Problem]:
    shown = ", ".join(names[:MOST_GROUPS])
    if len(names) > MOST_GROUPS:
        return [Problem("group", f"the study has {len(names):,} groups", f"a study has at most {MOST_GROUPS}: is the column right?")]
    found = list[Problem]()
    if baseline not in names:
        found.append(Problem("baseline", f'"{baseline}" is no group of the study', f"use one of {shown}"))
    if len(names) == 1:
        found.append(
            Problem("group", f'the study has one group alone, "{names[0]}"', "give it the ratings of a second group, or --add them")
        )
    return found


def _added(rows: Rows, group: Named, stored: int) -> tuple[str, ...]:
    """The groups that the files after the first ones bring; notes each that was there already."""
    file = rows.columns.file[rows.row]
    known, new = set(group[1][file < stored].tolist()), list[str]()
    for number in range(stored, len(rows.columns.files)):
        places, first = np.unique(group[1][file == number], return_index=True)
        for place, row in zip(places.tolist(), np.flatnonzero(file == number)[first].tolist(), strict=True):
            if place in known:
                rows.fault(row, f'the group "{group[0][place]}" is there already', "give what is added a group of its own")
            new.append(group[0][place])
        known |= set(places.tolist())
    return tuple(sorted(set(new)))


def _first(named: Named, name: str) -> Named:
    """The same names with one of them, where it is among them, before the others."""
    names = (*(one for one in named[0] if one == name), *(one for one in named[0] if one != name))
    return names, np.array([names.index(one) for one in named[0]])[named[1]]


def _study(rows: Rows, group: Named, category: Named, added: tuple[str, ...]) -> Study:
    """The study of these rows; notes what does not fit such a design."""
    rater, item = rows.named("rater"), rows.named("item")
    fix = "a rater sees one group alone; a study within raters is another design"
    group_of = rows.held(rater, group, 'the rater "{}" is in the group "{}", and in "{}"', fix)
    rows.each_once(rater, item)
    strata = dict[str, tuple[tuple[str, ...], Codes]]()
    for name in STRATA:
        if len((found := rows.named(name))[0]) > MOST_STRATA:
            many = f'has {len(found[0]):,} different values in the column "{name}", at most {MOST_STRATA}'
            rows.columns.faults.of_file(0, many, "leave the column out, or give it fewer")
        elif found[0]:
            one_each = f'the item "{{}}" has the {name} "{{}}", and "{{}}"'
            own = rows.held(item, found, one_each, f"an item has one {name}")
            rows.all_hold(item, own, f'the item "{{}}" has no {name}', f"give every item its {name}, or leave the column out")
            strata[name] = (found[0], own[item[1]])
    block = rows.named("block")
    block_of = rows.held(rater, block, 'the rater "{}" is in the block "{}", and in "{}"', "a rater is in one block")
    why = _no_blocks(group_of, block_of, group[0]) if block[0] else NO_BLOCKS
    blocks = (None, ()) if why else (block_of, block[0])
    return Study(
        group[0], rater[0], item[0], category[0], group_of, blocks[0], rater[1], item[1], category[1], strata, blocks[1], added,
        (why,) if why else (),
    )  # fmt: skip


def _no_blocks(group_of: Codes, block_of: Codes, groups: Sequence[str]) -> str | None:
    """Why raters cannot be exchanged within blocks, if they cannot: each group must share some with the baseline."""
    if outside := int((block_of == MISSING).sum()):
        return f"{'1 rater has' if outside == 1 else f'{outside:,} raters have'} no block: {WITHOUT}"
    shared = np.isin(block_of, block_of[group_of == 0])
    alone = [name for place, name in enumerate(groups) if not shared[group_of == place].any()]
    return f"no block has raters of {groups[0]} and of {', '.join(alone)}: {WITHOUT}" if alone else None
