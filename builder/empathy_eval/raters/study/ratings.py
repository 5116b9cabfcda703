"""The ratings of a study between subjects: who, of which group, put which item into which category, as arrays.

A category is told by a name that is given, or by its number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import Problem, nearest
from empathy_eval.design.provenance import File, file_of
from empathy_eval.raters.agreement.columns import FILE, MISSING, Columns, Form, Named, Rows, Unfit, number_of
from empathy_eval.statistics.estimate import Codes

# The columns that say what an item is like; tests are made by each of them.
STRATA = ("valence", "stratum")
WITHOUT = "raters are permuted within the whole study, regardless of the items they saw"
NO_BLOCKS = f"the ratings have no blocks: {WITHOUT}"
Mask = NDArray[np.bool_]


def _of_object(row: Mapping[str, Any], name: str) -> object:
    """A text, a number or nothing, as a blank rating is; anything else as what no cell may hold."""
    value = row.get(name)
    if not isinstance(value, str | int | float | None) or isinstance(value, bool):
        return Unfit(json.dumps(value))
    return None if name == "rating" and isinstance(value, str) and not value.strip() else value


FORM = Form(
    "study_row",
    "the first line names the columns: item,group,rater,rating and optionally stratum,valence,block,criterion",
    keys=("item", "group", "rater", "rating"),
    keys_fix="write each of them; null marks a missing rating",
    of_object=_of_object,
)


# So many names of a column are told where one of them is to be chosen.
MOST_NAMED = 20
MOST_GROUPS, MOST_STRATA = 30, 200


@dataclass(frozen=True)
class Table(File):
    """A file that ratings came from; ``added`` says that it brought groups that came later."""

    added: bool


def tables_of(paths: Sequence[Path], add: Sequence[Path]) -> tuple[Table, ...]:
    """What is told of files: names that are alike with as many of the folders above them as tell them apart."""
    whole = list(dict.fromkeys([*paths, *add]))
    parts = next((size for size in range(1, 100) if len({one.parts[-size:] for one in whole}) == len(whole)), 1)
    told = [(one, False) for one in paths] + [(one, True) for one in add]
    return tuple(Table(Path(*one.parts[-parts:]).as_posix(), file_of(one).sha256, added) for one, added in told)


@dataclass(frozen=True)
class Study:
    """The ratings of a study, a place a rating in ``rater``, ``item`` and ``category``; names are sorted, the baseline before other groups.

    ``labels`` are the categories, lowest first. ``group_of`` and ``block_of`` have a place a rater, in ``groups`` and ``blocks``; there
    may be no blocks. ``strata`` has by column ("stratum", "valence") its names and the place of each rating among them; ``added`` are the
    groups that came later, ``notes`` what is to be said of how the ratings were taken up, ``criterion`` what they are on where that is
    told, and ``tables`` the files that they came from.
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
    criterion: str | None = None
    tables: tuple[Table, ...] = ()

    def by_rater(self, where: Mask | None = None) -> Codes:
        """How often each rater gave each category, among the ratings ``where`` (all), shape (raters, categories)."""
        return self._of_raters if where is None else self._counted(self.rater, len(self.raters), where)

    def counts(self, where: Mask | None = None) -> Codes:
        """How often each group was given each category, among the ratings ``where`` (all), shape (groups, categories)."""
        return self._of_groups if where is None else self._counted(self.group_of[self.rater], len(self.groups), where)

    @cached_property
    def _of_raters(self) -> Codes:
        """The counts of all raters, which many figures ask for."""
        return self._counted(self.rater, len(self.raters))

    @cached_property
    def _of_groups(self) -> Codes:
        return self._counted(self.group_of[self.rater], len(self.groups))

    def only(self, where: Mask) -> Study:
        """The study of some of the ratings, with all names and raters as they are."""
        strata = {name: (names, place[where]) for name, (names, place) in self.strata.items()}
        return replace(self, rater=self.rater[where], item=self.item[where], category=self.category[where], strata=strata)

    def _counted(self, of: Codes, number: int, where: Mask | slice = slice(None)) -> Codes:
        cells = (of * len(self.labels) + self.category)[where]
        counted = np.bincount(cells, minlength=number * len(self.labels)).reshape(number, len(self.labels))
        counted.setflags(write=False)
        return counted


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
    columns, said = Columns(FORM), odd_labels(reading.labels)
    for path in (*paths, *add):
        columns.read(path)
    rows = Rows(columns, columns.note_broken())
    group, chosen = rows.named("group", reading.baseline), _criterion(rows, reading.criterion, said)
    if len(rows.row):
        said += _odd_groups(group[0], reading.baseline)
    if chosen is None or len(group[0]) > MOST_GROUPS:
        columns.faults.refuse(said)
    rows = _each_file_gives(rows, chosen or "")
    if len(rows.row):
        group = rows.named("group", reading.baseline)
        scale = scale_of(rows, reading.labels)
        made = _study(rows, group, scale, _added(rows, group, len(paths)))
        if len(given := np.unique(scale.place)) == 1 and not columns.faults.found:
            what = f'has only one category: every rating is "{scale.labels[given[0]]}"'
            columns.faults.of_file(0, what, "give it ratings in at least two categories")
    columns.faults.refuse(said)
    return replace(made, criterion=chosen or None, tables=tables_of(paths, add))


def _criterion(rows: Rows, criterion: str | None, said: list[Problem]) -> str | None:
    """The criterion that counts, "" where the ratings are on none; None if one must be chosen of several, or another."""
    names, _ = rows.named("criterion")
    listed = ", ".join(one[:80] for one in names[:MOST_NAMED]) + (f" ... ({len(names):,} in all)" if len(names) > MOST_NAMED else "")
    if criterion is None and len(names) > 1:
        said.append(Problem("criterion", f"the ratings are on {len(names):,} criteria", f"choose one with --criterion: {listed}"))
        return None
    if criterion is not None and criterion not in names:
        known = f"choose one of {listed}" if names else 'the ratings have no column "criterion": leave the option out'
        said.append(Problem("criterion", f'"{criterion}" is not a criterion of the ratings', known + nearest(criterion, names)))
        return None
    return criterion or (names[0] if names else "")


def _each_file_gives(rows: Rows, criterion: str) -> Rows:
    """The rows on a criterion ("": all); notes each file that has none, or has rows without a criterion where others have one."""
    columns, names = rows.columns, rows.named("criterion")
    of = names[1] == (names[0].index(criterion) if criterion else MISSING)
    read, file = np.bincount(columns.codes(FILE), minlength=len(columns.faults.files)), columns.codes(FILE)[rows.row]
    chosen, without = (np.bincount(file[one], minlength=len(columns.faults.files)) for one in (of, names[1] == MISSING))
    for number in range(len(columns.faults.files)):
        if not read[number] and not columns.faults.of(number):
            columns.faults.of_file(number, "holds no rating", "give it a row for every rating, or leave the file out")
        elif criterion and without[number]:
            what = f'has {without[number]:,} ratings without a criterion, while others are on "{criterion[:80]}"'
            columns.faults.of_file(number, what, 'give it a column "criterion"')
        elif not chosen[number] and not columns.faults.of(number):
            columns.faults.of_file(number, f'holds no rating on "{criterion[:80]}"', "leave the file out, or choose another criterion")
    return Rows(columns, rows.row[of])


def _odd_groups(names: Sequence[str], baseline: str) -> list[Problem]:
    shown = ", ".join(names[:MOST_GROUPS])
    if len(names) > MOST_GROUPS:
        return [Problem("group", f"the study has {len(names):,} groups", f"use at most {MOST_GROUPS} groups; check the column")]
    found = list[Problem]()
    if baseline not in names:
        found.append(Problem("baseline", f'"{baseline}" is not a group of the study', f"use one of {shown}{nearest(baseline, names)}"))
    if len(names) == 1:
        found.append(
            Problem("group", f'the study has only one group, "{names[0]}"', "give it the ratings of a second group, or --add them")
        )
    return found


def _added(rows: Rows, group: Named, stored: int) -> tuple[str, ...]:
    """The groups that the files after the first ones bring; notes each that was there already."""
    file = rows.columns.codes(FILE)[rows.row]
    known, new = set(group[1][file < stored].tolist()), list[str]()
    for number in range(stored, len(rows.columns.faults.files)):
        places, first = np.unique(group[1][file == number], return_index=True)
        for place, row in zip(places.tolist(), np.flatnonzero(file == number)[first].tolist(), strict=True):
            if place in known:
                rows.fault(row, f'the group "{group[0][place]}" already exists', "give added ratings a group of their own")
            new.append(group[0][place])
        known |= set(places.tolist())
    return tuple(sorted(set(new)))


def _study(rows: Rows, group: Named, scale: Scale, added: tuple[str, ...]) -> Study:
    """The study of these rows; notes what does not fit such a design."""
    rater, item = rows.named("rater"), rows.named("item")
    fix = "assign each rater to one group only; a within-rater study is another design"
    group_of = rows.held(rater, group, 'the rater "{}" is in the group "{}", and in "{}"', fix)
    rows.each_once(rater, item)
    strata = dict[str, tuple[tuple[str, ...], Codes]]()
    for name in STRATA:
        if len((found := rows.named(name))[0]) > MOST_STRATA:
            many = f'has {len(found[0]):,} different values in the column "{name}"; at most {MOST_STRATA} are allowed'
            rows.columns.faults.of_file(0, many, "leave the column out, or use fewer values")
        elif found[0]:
            one_each = f'the item "{{}}" has the {name} "{{}}", and "{{}}"'
            own = rows.held(item, found, one_each, f"give each item one {name}")
            rows.all_hold(item, own, f'the item "{{}}" has no {name}', f"give every item its {name}, or leave the column out")
            strata[name] = (found[0], own[item[1]])
    block = rows.named("block")
    block_of = rows.held(rater, block, 'the rater "{}" is in the block "{}", and in "{}"', "put each rater into one block")
    why = _no_blocks(group_of, block_of, group[0]) if block[0] else NO_BLOCKS
    blocks = (None, ()) if why else (block_of, block[0])
    return Study(
        group[0], rater[0], item[0], scale.labels, group_of, blocks[0], rater[1], item[1], scale.place, strata, blocks[1], added,
        tuple(one for one in (scale.note, why) if one),
    )  # fmt: skip


def _no_blocks(group_of: Codes, block_of: Codes, groups: Sequence[str]) -> str | None:
    """Why raters cannot be exchanged within blocks, if they cannot: each group must share some with the baseline."""
    if outside := int((block_of == MISSING).sum()):
        return f"{'1 rater has' if outside == 1 else f'{outside:,} raters have'} no block: {WITHOUT}"
    shared = np.isin(block_of, block_of[group_of == 0])
    alone = [name for place, name in enumerate(groups) if not shared[group_of == place].any()]
    return f"no block has raters of {groups[0]} and of {', '.join(alone)}: {WITHOUT}" if alone else None


MOST_CATEGORIES = 11
ONE_BY_ONE = "name each category once, lowest rating first: --labels Bad,Okay,Good"

ANOTHER = "if the scale begins with another number, give its numbers as labels"


@dataclass(frozen=True)
class Scale:
    """The labels of the categories, lowest first, the place of each rating among them, and how numbers were given names, if they were."""

    labels: tuple[str, ...]
    place: Codes
    note: str | None = None


def scale_of(rows: Rows, labels: Sequence[str]) -> Scale:
    """The category of each row; notes what is none.

    Ratings are all names of ``labels``, where a label that is a number is met by every form of it (1 and 1.0). Or all are numbers and no
    label is: with one label for each of them they take these in their order; from 1 on, 1 is the first label. Without labels numbers name
    themselves.
    """
    texts = [str(one).strip() for one in rows.columns.values["rating"]]
    keys = [_key(one) for one in texts]
    codes = rows.columns.codes("rating")[rows.row]
    used, first = (found.tolist() for found in np.unique(codes, return_index=True))
    known = {_key(one): place for place, one in reversed(list(enumerate(labels)))}
    if labels and all(keys[place] in known for place in used):
        return Scale(tuple(labels), np.array([known.get(one, MISSING) for one in keys])[codes])
    if odd := _no_categories(texts, keys, used, known):
        first_of = dict(zip(used, first, strict=True))
        for at in rows.columns.faults.first(np.arange(len(odd))):
            place, what = odd[at]
            rows.fault(first_of[place], f'the rating "{texts[place][:80]}" is {what}', _mending(labels))
        return Scale(tuple(labels), codes * 0)
    numbers = np.array([one if isinstance(one, float) else math.nan for one in keys])[codes]
    steps, of = np.unique(numbers, return_inverse=True)
    return _numbered(rows, steps.tolist(), of, labels)


def _no_categories(
    texts: Sequence[str], keys: Sequence[float | str], used: Sequence[int], known: dict[float | str, int]
) -> list[tuple[int, str]]:
    """The different ratings that are no category, by their place, and what they are instead."""
    if not known:
        return [(place, "not a number") for place in used if isinstance(keys[place], str)]
    # Where one of the labels is a number, numbers are names, and not places among them.
    names = any(isinstance(one, float) for one in known)
    odd = [(place, "not a label") for place in used if keys[place] not in known and (names or isinstance(keys[place], str))]
    named = [place for place in used if keys[place] in known]
    if named and not names:
        other = f'a number, while others are labels, such as "{texts[named[0]][:80]}"'
        odd += [(place, other) for place in used if isinstance(keys[place], float)]
    return odd


def _mending(labels: Sequence[str]) -> str:
    if not labels:
        return "write numbers, or name the labels in order: --labels Bad,Okay,Good"
    names = ", ".join(labels)
    return f"write one of {names}" if any(isinstance(_key(one), float) for one in labels) else f"write only numbers, or only {names}"


def _numbered(rows: Rows, steps: Sequence[float], place: Codes, labels: Sequence[str]) -> Scale:
    faults, told = rows.columns.faults, ", ".join(map(_said, steps[: MOST_CATEGORIES + 1]))
    if len(steps) > MOST_CATEGORIES:
        faults.of_file(
            0, f"has {len(steps):,} different ratings; a scale has at most {MOST_CATEGORIES} categories", "round them to the scale"
        )
        return Scale(tuple(labels), place)
    if not labels:
        return Scale(tuple(map(_said, steps)), place)
    if set(steps) <= set(range(1, len(labels) + 1)):
        # A category that nobody gave is one still.
        return Scale(tuple(labels), np.array(steps, dtype=np.int64)[place] - 1, _taken(range(1, len(labels) + 1), labels, steps))
    if len(labels) != len(steps):
        fix = f"name {len(steps)} labels, use the ratings 1 to {len(labels)}, or write the labels as the ratings"
        faults.of_file(0, f"has the ratings {told}; there are {len(labels)} labels ({', '.join(labels)})", fix)
    return Scale(tuple(labels), place, _taken(steps, labels, steps))


def _taken(numbers: Sequence[float], labels: Sequence[str], given: Sequence[float]) -> str:
    """Which number was taken for which label."""
    pairs = ", ".join(f"{_said(number)} is {label}" for number, label in zip(numbers, labels, strict=False))
    never = [_said(number) for number in numbers if number not in given]
    return f"the ratings are numbers: {pairs}" + (f"; nobody gave {' or '.join(never)} ({ANOTHER})" if never else "")


def _said(number: float) -> str:
    """A number as a name, which no other number has."""
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e16 else repr(float(number))


def _key(text: str) -> float | str:
    """What a rating or label is told by: a number by its value, anything else as it is."""
    return text if math.isnan(number := number_of(text)) else number


def odd_labels(labels: Sequence[str]) -> list[Problem]:
    """What is wrong with the names of categories."""
    keys = [_key(one) for one in labels]
    found = [Problem("labels", f'"{one}" occurs twice', ONE_BY_ONE) for one in dict.fromkeys(labels) if labels.count(one) > 1]
    if len(set(labels)) > len(set(keys)):
        again = [one for place, one in enumerate(labels) if keys[place] in keys[:place] and one not in labels[:place]]
        found += [Problem("labels", f'"{one}" is the same number as an earlier label', ONE_BY_ONE) for one in again]
    if any(not one.strip() for one in labels):
        found.append(Problem("labels", f'"{",".join(labels)[:80]}" has an empty name', ONE_BY_ONE))
    if labels and not 2 <= len(labels) <= MOST_CATEGORIES:
        found.append(Problem("labels", f"the number of labels is {len(labels)}; a study has 2 to {MOST_CATEGORIES} categories", ONE_BY_ONE))
    return found
