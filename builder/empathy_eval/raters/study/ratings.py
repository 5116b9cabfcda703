"""The ratings of a between-subjects study as arrays: rater, group, item and category.

A category is given by name, or by number.
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
from empathy_eval.raters.agreement.columns import FILE, MISSING, CodedColumns, InvalidCell, NamedCodes, Rows, TableForm, number_of
from empathy_eval.statistics.estimate import Codes

# Columns of strata of items, by which tests are repeated.
STRATA = ("valence", "stratum")
WITHOUT = "raters are permuted within the whole study, regardless of the items they saw"
NO_BLOCKS = f"the ratings have no blocks: {WITHOUT}"
Mask = NDArray[np.bool_]


def _of_object(row: Mapping[str, Any], name: str) -> object:
    """A text, a number or None (also for a blank rating); anything else as an invalid cell."""
    value = row.get(name)
    if not isinstance(value, str | int | float | None) or isinstance(value, bool):
        return InvalidCell(json.dumps(value))
    return None if name == "rating" and isinstance(value, str) and not value.strip() else value


FORM = TableForm(
    "study_row",
    "the first line names the columns: item,group,rater,rating and optionally stratum,valence,block,criterion",
    keys=("item", "group", "rater", "rating"),
    keys_fix="write each of them; null marks a missing rating",
    of_object=_of_object,
)


# Maximum number of names listed as choices.
MOST_NAMED = 20
MOST_GROUPS, MOST_STRATA = 30, 200


@dataclass(frozen=True)
class RatingsFile(File):
    """A file of ratings; ``added`` says that it adds groups later."""

    added: bool


def ratings_files(paths: Sequence[Path], add: Sequence[Path]) -> tuple[RatingsFile, ...]:
    """Files with their hashes; equal names are given with as many parent folders as distinguish them."""
    whole = list(dict.fromkeys([*paths, *add]))
    parts = next((size for size in range(1, 100) if len({path.parts[-size:] for path in whole}) == len(whole)), 1)
    files = [(path, False) for path in paths] + [(path, True) for path in add]
    return tuple(RatingsFile(Path(*path.parts[-parts:]).as_posix(), file_of(path).sha256, added) for path, added in files)


@dataclass(frozen=True)
class StudyTable:
    """Ratings of a study: ``rater``, ``item`` and ``category`` have one entry a rating. Names are sorted, the baseline first among groups.

    ``labels`` are the categories, lowest first. ``group_of`` and ``block_of`` have one entry a rater, as indices of ``groups`` and
    ``blocks``; there may be no blocks. ``strata`` has by column ("stratum", "valence") its names and the index of each rating's. ``added``
    are groups added later, ``notes`` remarks on how ratings were read, ``criterion`` what they rate, if known, and ``files`` their sources.
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
    tables: tuple[RatingsFile, ...] = ()

    def by_rater(self, where: Mask | None = None) -> Codes:
        """How often each rater gave each category, among the ratings ``where`` (None: all), shape (raters, categories)."""
        return self._of_raters if where is None else self._counted(self.rater, len(self.raters), where)

    def counts(self, where: Mask | None = None) -> Codes:
        """How often each group got each category, among the ratings ``where`` (None: all), shape (groups, categories)."""
        return self._of_groups if where is None else self._counted(self.group_of[self.rater], len(self.groups), where)

    @cached_property
    def _of_raters(self) -> Codes:
        """Counts of all ratings, cached because many figures need them."""
        return self._counted(self.rater, len(self.raters))

    @cached_property
    def _of_groups(self) -> Codes:
        return self._counted(self.group_of[self.rater], len(self.groups))

    def subset(self, where: Mask) -> StudyTable:
        """The study with some of its ratings; names and raters stay."""
        strata = {name: (names, codes[where]) for name, (names, codes) in self.strata.items()}
        return replace(self, rater=self.rater[where], item=self.item[where], category=self.category[where], strata=strata)

    def _counted(self, owner: Codes, number: int, where: Mask | slice = slice(None)) -> Codes:
        cells = (owner * len(self.labels) + self.category)[where]
        counted = np.bincount(cells, minlength=number * len(self.labels)).reshape(number, len(self.labels))
        counted.setflags(write=False)
        return counted


@dataclass(frozen=True)
class ReadOptions:
    """How ratings are read: the baseline group, the names of the categories, and the criterion."""

    baseline: str
    labels: tuple[str, ...] = ()
    criterion: str | None = None


def read_study(paths: Sequence[Path], reading: ReadOptions, add: Sequence[Path] = ()) -> StudyTable:
    """Read a study from CSV, TSV or JSONL files with the columns ``item``, ``group``, ``rater``, ``rating``.

    Optional columns are ``stratum``, ``valence``, ``block`` and ``criterion``. The files ``add`` bring groups that came later.

    Raises:
        InputError: for unreadable files, contradictions with the design (a rater in two groups or blocks, an item in two strata, or rated
            twice by a rater), and invalid ratings, labels, criteria and groups: all at once, with lines.
    """
    columns, problems = CodedColumns(FORM), label_problems(reading.labels)
    for path in (*paths, *add):
        columns.read(path)
    rows = Rows(columns, columns.valid_rows())
    group, chosen = rows.coded("group", reading.baseline), _criterion(rows, reading.criterion, problems)
    if len(rows.row):
        problems += _group_problems(group[0], reading.baseline)
    if chosen is None or len(group[0]) > MOST_GROUPS:
        columns.faults.refuse(problems)
    rows = _rows_of_criterion(rows, chosen or "")
    if len(rows.row):
        group = rows.coded("group", reading.baseline)
        scale = rating_scale(rows, reading.labels)
        study = _study(rows, group, scale, _added(rows, group, len(paths)))
        if len(steps_used := np.unique(scale.codes)) == 1 and not columns.faults.noted:
            what = f'has only one category: every rating is "{scale.labels[steps_used[0]]}"'
            columns.faults.of_file(0, what, "give it ratings in at least two categories")
    columns.faults.refuse(problems)
    return replace(study, criterion=chosen or None, tables=ratings_files(paths, add))


def _criterion(rows: Rows, criterion: str | None, problems: list[Problem]) -> str | None:
    """The criterion to use, "" if ratings have none; None if it is invalid or must be chosen."""
    names, _ = rows.coded("criterion")
    listed = ", ".join(name[:80] for name in names[:MOST_NAMED]) + (f" ... ({len(names):,} in all)" if len(names) > MOST_NAMED else "")
    if criterion is None and len(names) > 1:
        problems.append(Problem("criterion", f"the ratings are on {len(names):,} criteria", f"choose one with --criterion: {listed}"))
        return None
    if criterion is not None and criterion not in names:
        known = f"choose one of {listed}" if names else 'the ratings have no column "criterion": leave the option out'
        problems.append(Problem("criterion", f'"{criterion}" is not a criterion of the ratings', known + nearest(criterion, names)))
        return None
    return criterion or (names[0] if names else "")


def _rows_of_criterion(rows: Rows, criterion: str) -> Rows:
    """Rows on a criterion ("": all); notes each file without any, or with rows that lack a criterion."""
    columns, names = rows.columns, rows.coded("criterion")
    on_criterion = names[1] == (names[0].index(criterion) if criterion else MISSING)
    read, file = np.bincount(columns.codes(FILE), minlength=len(columns.faults.files)), columns.codes(FILE)[rows.row]
    chosen, without = (np.bincount(file[mask], minlength=len(columns.faults.files)) for mask in (on_criterion, names[1] == MISSING))
    for number in range(len(columns.faults.files)):
        if not read[number] and not columns.faults.of(number):
            columns.faults.of_file(number, "holds no rating", "give it a row for every rating, or leave the file out")
        elif criterion and without[number]:
            what = f'has {without[number]:,} ratings without a criterion, while others are on "{criterion[:80]}"'
            columns.faults.of_file(number, what, 'give it a column "criterion"')
        elif not chosen[number] and not columns.faults.of(number):
            columns.faults.of_file(number, f'holds no rating on "{criterion[:80]}"', "leave the file out, or choose another criterion")
    return Rows(columns, rows.row[on_criterion])


def _group_problems(names: Sequence[str], baseline: str) -> list[Problem]:
    shown = ", ".join(names[:MOST_GROUPS])
    if len(names) > MOST_GROUPS:
        return [Problem("group", f"the study has {len(names):,} groups", f"use at most {MOST_GROUPS} groups; check the column")]
    problems = list[Problem]()
    if baseline not in names:
        problems.append(Problem("baseline", f'"{baseline}" is not a group of the study', f"use one of {shown}{nearest(baseline, names)}"))
    if len(names) == 1:
        fix = "give it the ratings of a second group, or --add them"
        problems.append(Problem("group", f'the study has only one group, "{names[0]}"', fix))
    return problems


def _added(rows: Rows, group: NamedCodes, stored: int) -> tuple[str, ...]:
    """Groups that the files after the first ``stored`` ones add; notes each group that exists already."""
    file = rows.columns.codes(FILE)[rows.row]
    known, new = set(group[1][file < stored].tolist()), list[str]()
    for number in range(stored, len(rows.columns.faults.files)):
        places, first = np.unique(group[1][file == number], return_index=True)
        for index, row in zip(places.tolist(), np.flatnonzero(file == number)[first].tolist(), strict=True):
            if index in known:
                rows.fault(row, f'the group "{group[0][index]}" already exists', "give added ratings a group of their own")
            new.append(group[0][index])
        known |= set(places.tolist())
    return tuple(sorted(set(new)))


def _study(rows: Rows, group: NamedCodes, scale: RatingScale, added: tuple[str, ...]) -> StudyTable:
    """The study of these rows; notes what does not fit its design."""
    rater, item = rows.coded("rater"), rows.coded("item")
    fix = "assign each rater to one group only; a within-rater study is another design"
    group_of = rows.value_per_name(rater, group, 'the rater "{}" is in the group "{}", and in "{}"', fix)
    rows.refuse_repeats(rater, item)
    strata = dict[str, tuple[tuple[str, ...], Codes]]()
    for name in STRATA:
        if len((values := rows.coded(name))[0]) > MOST_STRATA:
            many = f'has {len(values[0]):,} different values in the column "{name}"; at most {MOST_STRATA} are allowed'
            rows.columns.faults.of_file(0, many, "leave the column out, or use fewer values")
        elif values[0]:
            one_each = f'the item "{{}}" has the {name} "{{}}", and "{{}}"'
            own = rows.value_per_name(item, values, one_each, f"give each item one {name}")
            rows.require_values(item, own, f'the item "{{}}" has no {name}', f"give every item its {name}, or leave the column out")
            strata[name] = (values[0], own[item[1]])
    block = rows.coded("block")
    block_of = rows.value_per_name(rater, block, 'the rater "{}" is in the block "{}", and in "{}"', "put each rater into one block")
    why = _why_no_blocks(group_of, block_of, group[0]) if block[0] else NO_BLOCKS
    blocks = (None, ()) if why else (block_of, block[0])
    return StudyTable(
        group[0], rater[0], item[0], scale.labels, group_of, blocks[0], rater[1], item[1], scale.codes, strata, blocks[1], added,
        tuple(note for note in (scale.note, why) if note),
    )  # fmt: skip


def _why_no_blocks(group_of: Codes, block_of: Codes, groups: Sequence[str]) -> str | None:
    """Reason why raters cannot be permuted within blocks, or None: each group must share a block with the baseline."""
    if outside := int((block_of == MISSING).sum()):
        return f"{'1 rater has' if outside == 1 else f'{outside:,} raters have'} no block: {WITHOUT}"
    shared = np.isin(block_of, block_of[group_of == 0])
    alone = [name for index, name in enumerate(groups) if not shared[group_of == index].any()]
    return f"no block has raters of {groups[0]} and of {', '.join(alone)}: {WITHOUT}" if alone else None


MOST_CATEGORIES = 11
ONE_BY_ONE = "name each category once, lowest rating first: --labels Bad,Okay,Good"

ANOTHER = "if the scale begins with another number, give its numbers as labels"


@dataclass(frozen=True)
class RatingScale:
    """Labels of the categories, lowest first, the category of each rating, and how numbers were mapped to labels, if they were."""

    labels: tuple[str, ...]
    codes: Codes
    note: str | None = None


def rating_scale(rows: Rows, labels: Sequence[str]) -> RatingScale:
    """The category of each row; notes invalid ratings.

    Ratings are either all names of ``labels``, where a numeric label matches every form of its number (1 and 1.0). Or all are numbers and
    no label is: with one label for each number they take labels in order; if they are 1 to the number of labels, 1 is the first label.
    Without labels numbers name themselves.
    """
    texts = [str(value).strip() for value in rows.columns.values["rating"]]
    keys = [_key(text) for text in texts]
    codes = rows.columns.codes("rating")[rows.row]
    used, first = (array.tolist() for array in np.unique(codes, return_index=True))
    known = {_key(label): index for index, label in reversed(list(enumerate(labels)))}
    if labels and all(keys[code] in known for code in used):
        return RatingScale(tuple(labels), np.array([known.get(key, MISSING) for key in keys])[codes])
    if odd := _invalid_ratings(texts, keys, used, known):
        first_of = dict(zip(used, first, strict=True))
        for at in rows.columns.faults.shown(np.arange(len(odd))):
            code, what = odd[at]
            rows.fault(first_of[code], f'the rating "{texts[code][:80]}" is {what}', _rating_fix(labels))
        return RatingScale(tuple(labels), codes * 0)
    numbers = np.array([key if isinstance(key, float) else math.nan for key in keys])[codes]
    steps, step_of = np.unique(numbers, return_inverse=True)
    return _numbered(rows, steps.tolist(), step_of, labels)


def _invalid_ratings(
    texts: Sequence[str], keys: Sequence[float | str], used: Sequence[int], known: dict[float | str, int]
) -> list[tuple[int, str]]:
    """(index, what is wrong) of the distinct ratings that are no category."""
    if not known:
        return [(code, "not a number") for code in used if isinstance(keys[code], str)]
    # If one of the labels is a number, numbers are names rather than positions.
    names = any(isinstance(key, float) for key in known)
    odd = [(code, "not a label") for code in used if keys[code] not in known and (names or isinstance(keys[code], str))]
    named = [code for code in used if keys[code] in known]
    if named and not names:
        other = f'a number, while others are labels, such as "{texts[named[0]][:80]}"'
        odd += [(code, other) for code in used if isinstance(keys[code], float)]
    return odd


def _rating_fix(labels: Sequence[str]) -> str:
    if not labels:
        return "write numbers, or name the labels in order: --labels Bad,Okay,Good"
    names = ", ".join(labels)
    return f"write one of {names}" if any(isinstance(_key(label), float) for label in labels) else f"write only numbers, or only {names}"


def _numbered(rows: Rows, steps: Sequence[float], codes: Codes, labels: Sequence[str]) -> RatingScale:
    faults, listed_steps = rows.columns.faults, ", ".join(map(_number_name, steps[: MOST_CATEGORIES + 1]))
    if len(steps) > MOST_CATEGORIES:
        many = f"has {len(steps):,} different ratings; a scale has at most {MOST_CATEGORIES} categories"
        faults.of_file(0, many, "round them to the scale")
        return RatingScale(tuple(labels), codes)
    if not labels:
        return RatingScale(tuple(map(_number_name, steps)), codes)
    if set(steps) <= set(range(1, len(labels) + 1)):
        # Categories without ratings are kept.
        return RatingScale(tuple(labels), np.array(steps, dtype=np.int64)[codes] - 1, _label_note(range(1, len(labels) + 1), labels, steps))
    if len(labels) != len(steps):
        fix = f"name {len(steps)} labels, use the ratings 1 to {len(labels)}, or write the labels as the ratings"
        faults.of_file(0, f"has the ratings {listed_steps}; there are {len(labels)} labels ({', '.join(labels)})", fix)
    return RatingScale(tuple(labels), codes, _label_note(steps, labels, steps))


def _label_note(numbers: Sequence[float], labels: Sequence[str], steps: Sequence[float]) -> str:
    """Note on which number was taken for which label."""
    pairs = ", ".join(f"{_number_name(number)} is {label}" for number, label in zip(numbers, labels, strict=False))
    never = [_number_name(number) for number in numbers if number not in steps]
    return f"the ratings are numbers: {pairs}" + (f"; nobody gave {' or '.join(never)} ({ANOTHER})" if never else "")


def _number_name(number: float) -> str:
    """A number as a unique name."""
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e16 else repr(float(number))


def _key(text: str) -> float | str:
    """What identifies a rating or label: a number by its value, anything else by its text."""
    return text if math.isnan(number := number_of(text)) else number


def label_problems(labels: Sequence[str]) -> list[Problem]:
    """Problems of the names of categories."""
    keys = [_key(label) for label in labels]
    problems = [Problem("labels", f'"{label}" occurs twice', ONE_BY_ONE) for label in dict.fromkeys(labels) if labels.count(label) > 1]
    if len(set(labels)) > len(set(keys)):
        again = [label for index, label in enumerate(labels) if keys[index] in keys[:index] and label not in labels[:index]]
        problems += [Problem("labels", f'"{label}" is the same number as an earlier label', ONE_BY_ONE) for label in again]
    if any(not label.strip() for label in labels):
        problems.append(Problem("labels", f'"{",".join(labels)[:80]}" has an empty name', ONE_BY_ONE))
    if labels and not 2 <= len(labels) <= MOST_CATEGORIES:
        what = f"the number of labels is {len(labels)}; a study has 2 to {MOST_CATEGORIES} categories"
        problems.append(Problem("labels", what, ONE_BY_ONE))
    return problems
