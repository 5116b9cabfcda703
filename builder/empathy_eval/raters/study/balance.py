"""How alike the groups of a study are in what the raters' table says of raters, and how these did on checks of attention.

Few people are never told: no figure is of fewer than five raters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import derived_random, signature_line
from empathy_eval.raters.agreement.columns import MISSING
from empathy_eval.raters.study.by_rater import Wanted, permuted
from empathy_eval.raters.study.raters_table import FEW_NUMBERS, RatersTable
from empathy_eval.raters.study.ratings import Study
from empathy_eval.raters.study.results import Attention, Balance, Balanced, Groups, Studied
from empathy_eval.statistics.chi_square import LEAST_EXPECTED, ChiSquaredTest, CountTable, figure, pearson, tested
from empathy_eval.statistics.estimate import Codes, Floats
from empathy_eval.statistics.ranking import holm

# A cell with fewer raters is not told, and cannot be worked out.
FEWEST = 5

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


# Classes with the numbers of raters in them, shape (groups, classes).
Told = tuple[Classes, Counts]


class Telling:
    """Which classes of raters may be told, after those that were: of raters of these groups."""

    def __init__(self, group_of: Codes, groups: int) -> None:
        self._group_of, self._groups = group_of, groups
        # Classes that were told, and those that can be worked out of them, as the place of each rater.
        self._known = list[Codes]()

    def first(self, candidates: Iterable[Classes]) -> Told | None:
        """The first candidate that may be told, which is kept as told; None where none may.

        There are two classes or more, each with five raters of every group, and no part has one to four.
        """
        for one in candidates:
            counts = self._cells(one.place, len(one.names))
            enough = len(one.names) > 1 and counts.min() >= FEWEST and not any(0 < part < FEWEST for part in one.parts)
            if enough and (known := self._worked_out(one.place)) is not None:
                self._known += known
                return one, counts
        return None

    def _cells(self, place: Codes, number: int) -> Counts:
        """How many raters of each group are in each class, shape (groups, classes)."""
        cells = np.bincount(self._group_of * number + place, minlength=self._groups * number)
        return cells.reshape(self._groups, number)

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


def poolings(table: RatersTable, column: str, group_of: Codes, groups: int) -> Iterator[Classes]:
    """The values of a column with rare ones pooled, from as fine as may be: the rarest that is left goes into the pool next."""
    values, place = table.values(column)
    number = len(values)
    # A last column for raters of whom nothing is told.
    place = np.where(place == MISSING, number, place)
    counts = np.bincount(group_of * (number + 1) + place, minlength=groups * (number + 1)).reshape(groups, number + 1)
    totals = counts.sum(axis=0)
    kept = [one for one in range(number) if counts[:, one].min() >= FEWEST]
    for rarest in [None, *sorted(kept, key=lambda one: (totals[one], values[one]))]:
        kept = [one for one in kept if one != rarest]
        known = np.full(number + 1, len(kept))
        known[kept] = np.arange(len(kept))
        others, silent = int(totals[:-1].sum() - totals[kept].sum()), int(totals[-1])
        rest = OTHERS if not silent else (BOTH if others else NOT_TOLD)
        names = [name if len(name := values[one]) <= 80 else f"{name[:79]}…" for one in kept] + [rest] * (others + silent > 0)
        yield Classes(tuple(names), known[place], (others, others + silent - table.untold) if silent else ())


NO_VALUES = f"not reported: there are no two values, or sets of values, with at least {FEWEST} raters in each group"
NO_NUMBERS = f"not reported: no two groups have at least {FEWEST} raters with a known number, or all numbers are equal"
COPIED = "not reported: it nearly repeats an earlier column, and two nearly equal medians could reveal the value of one rater"
# Of two columns of numbers that say nearly the same the ranks of raters correlate more, or more than half of the numbers are equal.
NEARLY = 0.9
RULE = f"no cell with fewer than {FEWEST} raters is shown or can be deduced: rare values are pooled, and all figures are of the table shown"
MEDIANS = (
    f"a median or quartile is the mean of the five or six values around it, so it is no single rater's value; a quartile is reported if at "
    f"least {FEWEST} values are beyond these on either side"
)
# Figures of numbers, in significant digits: exact ones could be solved for what single raters said.
DIGITS = 3
QUARTER = {0.25: FEWEST, 0.5: 0, 0.75: FEWEST}
# What rounding alone does to the statistic of a table that is drawn.
ROUNDING = 1e-12


def balance(table: RatersTable, study: Study, permutations: int = 2000, seed: int = 0) -> Balance:
    """Each column of the raters' table by group: chi-squared of pooled values, Kruskal and Wallis' test of numbers, corrected by Holm."""
    told = tellings(table, study)
    numbers = {name: found for name in table.columns if (found := table.numbers(name)) is not None}
    copies = copied(numbers, study)
    columns = [
        _of_values(name, told[name], study, (permutations, seed))
        if name not in numbers
        else Balanced(name, "numbers", why=COPIED)
        if name in copies
        else _of_numbers(name, numbers[name], study)
        for name in table.columns
    ]
    p = {place: one.test.gone_by for place, one in enumerate(columns) if one.test is not None and one.test.gone_by is not None}
    for place, value in zip(p, holm(list(p.values())), strict=True):
        columns[place] = replace(columns[place], holm=figure(value), family=len(p))
    signature = signature_line(balance="raters", fewest=FEWEST, pooled="rarest-first", few_numbers=FEW_NUMBERS, corrected="holm")
    return Balance(sizes(study), tuple(columns), table.untold, table.unknown, tuple(_notes(table, columns)), signature)


def tellings(table: RatersTable, study: Study) -> dict[str | None, Told | None]:
    """By column of values what may be told of it: its classes with their counts by group, or None; checks of attention have no name."""
    groups = len(study.groups)
    telling = Telling(study.group_of, groups)
    columns = [name for name in table.columns if table.numbers(name) is None]
    wanted: dict[str | None, Iterator[Classes]] = {name: poolings(table, name, study.group_of, groups) for name in columns}
    if table.has_checks:
        wanted[None] = attentive(table)
    return {name: telling.first(candidates) for name, candidates in wanted.items()}


def attentive(table: RatersTable) -> Iterator[Classes]:
    """How much of their checks raters failed, from as fine as may be: raters of whom nothing is told are a class of their own, if any."""
    share = table.failed
    silent = np.isnan(share)
    blank = int(silent.sum()) - table.untold
    untold = ["not told"] * bool(silent.any())
    level = np.where(silent, 3, np.where(share > 0, np.where(share > 0.5, 2, 1), 0))
    yield Classes(("none", "up to half", "more than half", *untold), level, (blank,))
    yield Classes(("none", "some", *untold), np.array([0, 1, 1, 2])[level], (blank,))
    if silent.any():
        some = int((~silent & (share > 0)).sum())
        yield Classes(("none", "some, or not told"), np.minimum(level, 1), (some, some + blank))


def sizes(study: Study) -> Groups:
    """The groups with their numbers of raters."""
    return tuple(zip(study.groups, np.bincount(study.group_of, minlength=len(study.groups)).tolist(), strict=True))


def _of_values(name: str, told: Told | None, study: Study, chance: tuple[int, int]) -> Balanced:
    if told is None:
        return Balanced(name, "values", why=NO_VALUES)
    classes, counts = told
    line = signature_line(permutations=chance[0], unit="rater", within="study", seed=chance[1], numpy=np.__version__)
    test = tested(CountTable(study.groups, classes.names, counts), drawn(counts, *chance, name), line)
    return Balanced(name, "values", classes.names, tuple(map(tuple, counts.tolist())), test=replace(test, n=None))


def drawn(counts: Counts, permutations: int, seed: int, *name: str) -> float | None:
    """The p of exchanging raters between groups, of the table alone: tables with its margins are drawn (Patefield 1981).

    So it gives away nothing beyond the table. None without permutations.
    """
    if not permutations:
        return None
    from scipy.stats import random_table

    rng = np.random.default_rng(derived_random(seed, "study-raters", *name).getrandbits(64))
    tables = random_table(counts.sum(axis=1), counts.sum(axis=0)).rvs(permutations, method="patefield", random_state=rng)
    seen = pearson(counts) * (1 - ROUNDING)
    return (1 + sum(pearson(one) >= seen for one in tables)) / (1 + permutations)


def _of_numbers(name: str, numbers: Floats, study: Study) -> Balanced:
    """A column of numbers: a group's median and quartiles, and whether groups differ."""
    groups = [np.sort(some[~np.isnan(some)]) for some in (numbers[study.group_of == one] for one in range(len(study.groups)))]
    quartiles = tuple(tuple(quartile(some, part) for part in QUARTER) for some in groups)
    enough = [some for some in groups if len(some) >= FEWEST]
    signature = signature_line(test="kruskal-wallis", ties="corrected", fewest=FEWEST, digits=DIGITS)
    if len(enough) < 2 or len(np.unique(np.concatenate(enough))) < 2:
        return Balanced(name, "numbers", quartiles=quartiles, why=NO_NUMBERS)
    from scipy.stats import kruskal

    found = kruskal(*enough)
    why = None if len(enough) == len(groups) else f"groups with fewer than {FEWEST} known numbers are left out"
    statistic, p = figure(float(found.statistic), DIGITS), figure(float(found.pvalue), DIGITS)
    test = ChiSquaredTest(statistic, len(enough) - 1, p, None, None, None, None, "kruskal-wallis", why, signature)
    return Balanced(name, "numbers", quartiles=quartiles, test=test)


def copied(numbers: Mapping[str, Floats], study: Study) -> set[str]:
    """The columns of numbers that say nearly the same of the raters of a group as one that is told, such as all seconds and those kept.

    Their medians differ by single raters, who could be worked out; their units do not matter.
    """
    told = dict[str, Floats]()
    for name, found in numbers.items():
        if not any(_alike(found, other, study) for other in told.values()):
            told[name] = found
    return numbers.keys() - told.keys()


def _alike(first: Floats, second: Floats, study: Study) -> bool:
    known = ~np.isnan(first) & ~np.isnan(second)
    return any(
        (first == second)[ours].mean() > 0.5 or abs(_ranked_alike(first[ours], second[ours])) > NEARLY
        for ours in (known & (study.group_of == group) for group in range(len(study.groups)))
        if ours.sum() >= FEWEST
    )


def _ranked_alike(first: Floats, second: Floats) -> float:
    """Spearman's correlation; 0 where all numbers of one are one."""
    from scipy.stats import rankdata

    one, other = (rankdata(some) - (len(some) + 1) / 2 for some in (first, second))
    spread = math.sqrt(float(one @ one) * float(other @ other))
    return float(one @ other) / spread if spread else 0.0


def quartile(ascending: Floats, part: float) -> float | None:
    """The mean of the five or six values around a quartile; None where they are not there, or too few are beyond them."""
    ranks = np.arange(len(ascending))
    near = np.abs(ranks - part * (len(ascending) - 1)) <= FEWEST / 2
    beyond = min(int(near.argmax()), int(near[::-1].argmax())) if near.any() else 0
    if near.sum() < FEWEST or beyond < QUARTER[part]:
        return None
    return figure(ascending[near].mean(), DIGITS + 1)


def _notes(table: RatersTable, columns: list[Balanced]) -> Iterator[str]:
    if table.untold:
        yield f"{table.untold:,} of {len(table.study.raters):,} raters of the study are not in the table"
    if table.unknown:
        yield f"{table.unknown:,} raters of the table gave no rating and are left out"
    if columns:
        yield RULE
    if any(one.quartiles for one in columns):
        yield MEDIANS
    if any(one.test is not None and one.test.p_by == "permutation" for one in columns):
        yield f"if an expected count is below {LEAST_EXPECTED}, the p-value of the permutation test is used"


FEW_FAILED = (
    f"fewer than {FEWEST} raters failed more than half of their checks: the test without them is not reported, because it would reveal "
    "their ratings"
)


def attention(table: RatersTable, study: Study, whole: ChiSquaredTest, chance: tuple[int, int], alpha: float = 0.05) -> Attention | None:
    """How many raters of each group failed none, some and most of their checks, and the omnibus test without those who failed most.

    ``whole`` is the omnibus test of all raters, ``chance`` exchanges and seed of permutations. None for a table without checks.
    """
    if not table.has_checks:
        return None
    told = tellings(table, study)[None]
    values, cells = ((), ()) if told is None else (told[0].names, tuple(map(tuple, told[1].tolist())))
    left_out = np.nan_to_num(table.failed) > 0.5
    fewer, holds = _without(study, left_out, whole, chance, alpha)
    notes = []
    if left_out.sum() < FEWEST:
        fewer = None
        notes.append(FEW_FAILED)
    if holds is not None:
        side = "below" if (_p(whole) or 0) < alpha else "not below"
        now = side if holds else ("not below" if side == "below" else "below")
        by = "by rater" if whole.permutation is not None else "by chi-squared"
        without_them = f"{now} it without those who failed more than half of their checks"
        notes.append(f"the omnibus p-value {by} is {side} {alpha:g} with all raters, and {without_them}")
    signature = signature_line(attention="checks-failed", fewest=FEWEST, alpha=alpha)
    why = NO_VALUES if told is None else None
    return Attention(sizes(study), values, cells, fewer, holds, alpha, why, tuple(notes), signature)


def _without(
    study: Study, left_out: NDArray[np.bool_], whole: ChiSquaredTest, chance: tuple[int, int], alpha: float
) -> tuple[ChiSquaredTest | None, bool | None]:
    """The omnibus test without some raters, and whether its p is on the same side of ``alpha``; None where it is not defined."""
    fewer = without(study, left_out)
    drawn = permuted(fewer, [Wanted()], *chance)[0] if whole.permutation is not None else math.nan
    settings = whole.signature.partition("|permutations:")[2]
    test = tested(CountTable(study.groups, study.labels, fewer.counts()), None if math.isnan(drawn) else drawn, f"permutations:{settings}")
    p, known = _p(test), _p(whole)
    # Where a group or category is gone, it would be told of whom it was.
    if test.statistic is None or test.p is None or test.v is None or test.df != whole.df or p is None or known is None:
        return None, None
    signature = f"{test.signature}|digits:{DIGITS}"
    statistic, chi_square, v = (figure(one, DIGITS) for one in (test.statistic, test.p, test.v))
    compared = replace(test, statistic=statistic, p=chi_square, v=v, n=None, least_expected=None, why=None, signature=signature)
    return compared, (p < alpha) == (known < alpha)


def _p(test: ChiSquaredTest) -> float | None:
    """The p by rater where there is one, for ratings of a rater depend on each other."""
    return test.p if test.permutation is None else test.permutation


def without(study: Study, left_out: NDArray[np.bool_]) -> Study:
    """The study without some of its raters; groups, items and labels stay as they are."""
    kept = ~left_out
    place = np.cumsum(kept) - 1
    rows = kept[study.rater]
    fewer = study.only(rows)
    return replace(
        fewer, raters=tuple(np.array(study.raters, dtype=object)[kept]), group_of=study.group_of[kept], rater=place[fewer.rater],
        block_of=None if study.block_of is None else study.block_of[kept],
    )  # fmt: skip


def with_raters(studied: Studied, study: Study, table: RatersTable) -> Studied:
    """What a study says, and what is told of its raters."""
    chance = (studied.settings["permutations"], studied.settings["seed"])
    found = attention(table, study, studied.whole.omnibus, chance, studied.settings["alpha"])
    source = None if table.source is None else asdict(table.source)
    told = replace(studied, settings={**studied.settings, "raters": source}, balance=balance(table, study, *chance), attention=found)
    return told.beside([table.source] if table.source else ())
