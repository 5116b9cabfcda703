"""The categories of a study: which of them each rating is, by the names that are given or by its number."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from empathy_eval.base.errors import Problem
from empathy_eval.raters.agreement.columns import NUMBER, Columns, number_of, repeated
from empathy_eval.raters.agreement.table import MISSING
from empathy_eval.statistics.estimate import Codes

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

    def named(self, name: str, first: str | None = None) -> Named:
        """The names in a column in order, and the place of each row among them; ``MISSING`` where its file has no such column.

        Names that are all numbers are in the order of these: 2 before 10. One of them may be the ``first``.
        """
        values = list(self.columns.values[name])
        codes = self.columns.codes(name)[self.row]
        used = [place for place in np.unique(codes).tolist() if values[place] is not None]
        names = tuple(sorted(in_order({values[place].strip() for place in used}), key=lambda one: one != first))
        places = {one: place for place, one in enumerate(names)}
        found = np.full(len(values), MISSING)
        found[used] = [places[values[place].strip()] for place in used]
        return names, found[codes]

    def fault(self, row: int, what: str, fix: str, before: int | None = None) -> None:
        """Notes what is wrong with one of these rows, and at which other row it began."""
        place = self.row[row]
        at = "" if before is None else f" at {self.columns.at(self.row[before], place)}"
        self.columns.fault(place, what + at, fix)

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
        for row in self.columns.faults.first(rows[np.sort(np.unique(place[rows], return_index=True)[1])]):
            self.fault(row, said.format(names[place[row]], others[value[row]], others[own[place[row]]]), fix, first[place[row]])
        return own

    def all_hold(self, of: Named, own: Codes, said: str, fix: str) -> None:
        """Notes each name that holds nothing where others hold something."""
        _, first = np.unique(of[1], return_index=True)
        for place in self.columns.faults.first(np.flatnonzero(own == MISSING)):
            self.fault(int(first[place]), said.format(of[0][place]), fix)

    def each_once(self, rater: Named, item: Named) -> None:
        """Notes each row whose item its rater rated before."""
        again, before = repeated(rater[1], item[1])
        for row, first in zip(self.columns.faults.first(again), before.tolist(), strict=False):
            again_rated = f'"{rater[0][rater[1][row]]}" rates "{item[0][item[1][row]]}" again, after the rating'
            self.fault(row, again_rated, "keep one of the two", first)


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
