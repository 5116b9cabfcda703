"""Balance of a study's groups in the raters' table, and attention checks, with small-cell suppression.

No figure describes fewer than five raters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import derived_random, signature_line
from empathy_eval.raters.agreement.columns import MISSING
from empathy_eval.raters.study.by_rater import TableSelection, permutation_p_values
from empathy_eval.raters.study.raters_table import FEW_NUMBERS, RatersTable
from empathy_eval.raters.study.ratings import StudyTable
from empathy_eval.raters.study.results import AttentionChecks, Balance, ColumnBalance, Groups, StudyReport
from empathy_eval.statistics.chi_square import (
    LEAST_EXPECTED,
    ChiSquaredTest,
    CountTable,
    chi_square_statistic,
    chi_square_test,
    round_figure,
)
from empathy_eval.statistics.estimate import Codes, Floats, holm

# A cell with fewer raters is neither published nor deducible.
MINIMUM_CELL = 5

OTHERS, NOT_TOLD, BOTH = "other values", "not told", "other values, or not told"
# With more deductions than these no further column is published.
MOST_DEDUCTIONS = 200
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class RaterClasses:
    """Raters by class: the names of the classes, and the class of each rater as an index.

    ``deducible`` are numbers of raters that can be deduced from other published numbers, such as how many are not in the table.
    """

    names: tuple[str, ...]
    class_of: Codes
    deducible: tuple[int, ...] = ()


# Classes with the numbers of raters in them, shape (groups, classes).
ClassCounts = tuple[RaterClasses, Counts]


class SmallCellSuppression:
    """Decides which classes of raters may be published, given those published before, so that no cell below five can be deduced."""

    def __init__(self, group_of: Codes, groups: int) -> None:
        self._group_of, self._groups = group_of, groups
        # Published classes, and those that can be deduced from them.
        self._known = list[Codes]()

    def first_allowed(self, candidates: Iterable[RaterClasses]) -> ClassCounts | None:
        """First candidate that may be published, which is then remembered as known; None if there is none.

        It has two classes or more, each with five raters of every group, and no deducible number from one to four.
        """
        for candidate in candidates:
            counts = self._cells(candidate.class_of, len(candidate.names))
            isolated = any(0 < number < MINIMUM_CELL for number in candidate.deducible)
            if len(candidate.names) < 2 or counts.min() < MINIMUM_CELL or isolated:
                continue
            if (known := self._deductions(candidate.class_of)) is not None:
                self._known += known
                return candidate, counts
        return None

    def _cells(self, class_of: Codes, number: int) -> Counts:
        """Number of raters of each group in each class, shape (groups, classes)."""
        cells = np.bincount(self._group_of * number + class_of, minlength=self._groups * number)
        return cells.reshape(self._groups, number)

    def _deductions(self, class_of: Codes) -> list[Codes] | None:
        """These classes and all that can be deduced from them and known ones; None if that isolates one to four raters of a group."""
        derived, masks = [class_of], set[bytes]()
        for known in (*self._known, class_of):
            for value in range(int(known.max()) + 1):
                masks.update(_mask_keys(known == value))
        for index, first in enumerate(derived):
            for other in [*self._known, *derived[:index]]:
                for subset in [*self._differences(first, other), *self._differences(other, first)]:
                    if masks.issuperset(_mask_keys(subset == 1)):
                        continue
                    if self._cells(subset, 2)[:, 1].min() < MINIMUM_CELL or len(derived) > MOST_DEDUCTIONS:
                        return None
                    masks.update(_mask_keys(subset == 1))
                    derived.append(subset)
        return derived

    def _differences(self, first: Codes, other: Codes) -> Iterator[Codes]:
        """For each class of ``first``, the union of the classes of ``other`` that meet it, less the class itself, as masks of 0 and 1."""
        width = int(other.max()) + 1
        met = np.bincount(first * width + other, minlength=(int(first.max()) + 1) * width).reshape(-1, width) > 0
        for row, columns in enumerate(met):
            if not columns.all() and (subset := (first != row) & columns[other]).any():
                yield subset.astype(np.int64)


def _mask_keys(subset: NDArray[np.bool_]) -> tuple[bytes, bytes]:
    """A mask of raters and its complement as hashable bytes."""
    return np.packbits(subset).tobytes(), np.packbits(~subset).tobytes()


def poolings(table: RatersTable, column: str, group_of: Codes, groups: int) -> Iterator[RaterClasses]:
    """The values of a column with rare ones pooled, finest first: each step adds the rarest remaining value to the pool."""
    values, class_of = table.values(column)
    number = len(values)
    # A last column for raters without a value.
    class_of = np.where(class_of == MISSING, number, class_of)
    counts = np.bincount(group_of * (number + 1) + class_of, minlength=groups * (number + 1)).reshape(groups, number + 1)
    totals = counts.sum(axis=0)
    frequent = [value for value in range(number) if counts[:, value].min() >= MINIMUM_CELL]
    for rarest in [None, *sorted(frequent, key=lambda value: (totals[value], values[value]))]:
        frequent = [value for value in frequent if value != rarest]
        known = np.full(number + 1, len(frequent))
        known[frequent] = np.arange(len(frequent))
        pooled, silent = int(totals[:-1].sum() - totals[frequent].sum()), int(totals[-1])
        rest = OTHERS if not silent else (BOTH if pooled else NOT_TOLD)
        names = [name if len(name := values[value]) <= 80 else f"{name[:79]}…" for value in frequent] + [rest] * (pooled + silent > 0)
        yield RaterClasses(tuple(names), known[class_of], (pooled, pooled + silent - table.absent) if silent else ())


NO_VALUES = f"not reported: there are no two values, or sets of values, with at least {MINIMUM_CELL} raters in each group"
NO_NUMBERS = f"not reported: no two groups have at least {MINIMUM_CELL} raters with a known number, or all numbers are equal"
COPIED = "not reported: it nearly repeats an earlier column, and two nearly equal medians could reveal the value of one rater"
# Two columns of numbers are near copies if Spearman's correlation is larger, or if more than half of the numbers are equal.
NEARLY = 0.9
NO_SMALL_CELL = f"no cell with fewer than {MINIMUM_CELL} raters is shown or can be deduced"
RULE = f"{NO_SMALL_CELL}: rare values are pooled, and all figures are of the table shown"
MEDIANS = (
    f"a median or quartile is the mean of the five or six values around it, so it is no single rater's value; a quartile is reported if at "
    f"least {MINIMUM_CELL} values are beyond these on either side"
)
# Significant digits of figures: exact ones could be solved for the values of single raters.
DIGITS = 3
QUARTER = {0.25: MINIMUM_CELL, 0.5: 0, 0.75: MINIMUM_CELL}
# Relative rounding error of the statistic of a drawn table.
ROUNDING = 1e-12


def balance(table: RatersTable, study: StudyTable, permutations: int = 2000, seed: int = 0) -> Balance:
    """Compare groups by each column of the raters' table: chi-squared of pooled values, Kruskal-Wallis of numbers, Holm's correction."""
    disclosed = disclosed_columns(table, study)
    numbers = {name: values for name in table.columns if (values := table.numbers(name)) is not None}
    copies = near_copies(numbers, study)
    columns = list[ColumnBalance]()
    for name in table.columns:
        if name in copies:
            columns.append(ColumnBalance(name, "numbers", why=COPIED))
        elif name in numbers:
            columns.append(_of_numbers(name, numbers[name], study))
        else:
            columns.append(_of_values(name, disclosed[name], study, (permutations, seed)))
    p = {index: value for index, column in enumerate(columns) if column.test and (value := column.test.reported_p) is not None}
    for index, value in zip(p, holm(list(p.values())), strict=True):
        columns[index] = replace(columns[index], holm=round_figure(value), family=len(p))
    signature = signature_line(balance="raters", fewest=MINIMUM_CELL, pooled="rarest-first", few_numbers=FEW_NUMBERS, corrected="holm")
    return Balance(group_sizes(study), tuple(columns), table.absent, table.unknown, tuple(_notes(table, columns)), signature)


def disclosed_columns(table: RatersTable, study: StudyTable) -> dict[str | None, ClassCounts | None]:
    """By column of values its publishable classes with counts by group, or None. The key None stands for attention checks."""
    groups = len(study.groups)
    suppression = SmallCellSuppression(study.group_of, groups)
    columns = [name for name in table.columns if table.numbers(name) is None]
    candidates_of: dict[str | None, Iterator[RaterClasses]] = {name: poolings(table, name, study.group_of, groups) for name in columns}
    if table.has_checks:
        candidates_of[None] = attention_classes(table)
    return {name: suppression.first_allowed(candidates) for name, candidates in candidates_of.items()}


def attention_classes(table: RatersTable) -> Iterator[RaterClasses]:
    """Classes of raters by the share of attention checks they failed, finest first; raters without data are a class of their own."""
    share = table.failed
    silent = np.isnan(share)
    blank = int(silent.sum()) - table.absent
    untold = ["not told"] * bool(silent.any())
    level = np.where(silent, 3, np.where(share > 0, np.where(share > 0.5, 2, 1), 0))
    yield RaterClasses(("none", "up to half", "more than half", *untold), level, (blank,))
    yield RaterClasses(("none", "some", *untold), np.array([0, 1, 1, 2])[level], (blank,))
    if silent.any():
        failed_some = int((~silent & (share > 0)).sum())
        yield RaterClasses(("none", "some, or not told"), np.minimum(level, 1), (failed_some, failed_some + blank))


def group_sizes(study: StudyTable) -> Groups:
    """Groups with their numbers of raters."""
    return tuple(zip(study.groups, np.bincount(study.group_of, minlength=len(study.groups)).tolist(), strict=True))


def _of_values(name: str, disclosed: ClassCounts | None, study: StudyTable, chance: tuple[int, int]) -> ColumnBalance:
    if disclosed is None:
        return ColumnBalance(name, "values", why=NO_VALUES)
    classes, counts = disclosed
    line = signature_line(permutations=chance[0], unit="rater", within="study", seed=chance[1], numpy=np.__version__)
    test = chi_square_test(CountTable(study.groups, classes.names, counts), permutation_p(counts, *chance, name), line)
    return ColumnBalance(name, "values", classes.names, tuple(map(tuple, counts.tolist())), test=replace(test, n=None))


def permutation_p(counts: Counts, permutations: int, seed: int, *name: str) -> float | None:
    """p-value of permuting raters between groups, from the table alone: tables with its margins are drawn (Patefield 1981).

    So it reveals nothing beyond the table. None without permutations.
    """
    if not permutations:
        return None
    from scipy.stats import random_table

    rng = np.random.default_rng(derived_random(seed, "study-raters", *name).getrandbits(64))
    tables = random_table(counts.sum(axis=1), counts.sum(axis=0)).rvs(permutations, method="patefield", random_state=rng)
    observed = chi_square_statistic(counts) * (1 - ROUNDING)
    return (1 + sum(chi_square_statistic(table) >= observed for table in tables)) / (1 + permutations)


def _of_numbers(name: str, numbers: Floats, study: StudyTable) -> ColumnBalance:
    """Quartiles of a column of numbers by group, and the test of whether groups differ."""
    groups = [np.sort(values[~np.isnan(values)]) for values in (numbers[study.group_of == group] for group in range(len(study.groups)))]
    quartiles = tuple(tuple(quartile(values, part) for part in QUARTER) for values in groups)
    enough = [values for values in groups if len(values) >= MINIMUM_CELL]
    signature = signature_line(test="kruskal-wallis", ties="corrected", fewest=MINIMUM_CELL, digits=DIGITS)
    if len(enough) < 2 or len(np.unique(np.concatenate(enough))) < 2:
        return ColumnBalance(name, "numbers", quartiles=quartiles, why=NO_NUMBERS)
    from scipy.stats import kruskal

    result = kruskal(*enough)
    why = None if len(enough) == len(groups) else f"groups with fewer than {MINIMUM_CELL} known numbers are left out"
    statistic, p = round_figure(float(result.statistic), DIGITS), round_figure(float(result.pvalue), DIGITS)
    test = ChiSquaredTest(statistic, len(enough) - 1, p, None, None, None, None, "kruskal-wallis", why, signature)
    return ColumnBalance(name, "numbers", quartiles=quartiles, test=test)


def near_copies(numbers: Mapping[str, Floats], study: StudyTable) -> set[str]:
    """Columns of numbers that nearly repeat an earlier, published column, such as all seconds and those kept.

    Their medians would differ by single raters, who could be identified. Units do not matter.
    """
    shares = dict[str, Floats]()
    for name, values in numbers.items():
        if not any(_nearly_equal(values, other, study) for other in shares.values()):
            shares[name] = values
    return numbers.keys() - shares.keys()


def _nearly_equal(first: Floats, second: Floats, study: StudyTable) -> bool:
    """Whether two columns are mostly equal for the raters of a group, or rank them almost alike (Spearman's correlation)."""
    from scipy.stats import rankdata

    known = ~np.isnan(first) & ~np.isnan(second)
    for ours in (known & (study.group_of == group) for group in range(len(study.groups))):
        if ours.sum() >= MINIMUM_CELL:
            ranks = [rankdata(values[ours]) for values in (first, second)]
            if (first == second)[ours].mean() > 0.5 or (all(map(np.ptp, ranks)) and abs(np.corrcoef(ranks)[0, 1]) > NEARLY):
                return True
    return False


def quartile(ascending: Floats, part: float) -> float | None:
    """Mean of the five or six values around a quartile; None if there are fewer, or too few beyond them."""
    ranks = np.arange(len(ascending))
    near = np.abs(ranks - part * (len(ascending) - 1)) <= MINIMUM_CELL / 2
    beyond = min(int(near.argmax()), int(near[::-1].argmax())) if near.any() else 0
    if near.sum() < MINIMUM_CELL or beyond < QUARTER[part]:
        return None
    return round_figure(ascending[near].mean(), DIGITS + 1)


def _notes(table: RatersTable, columns: list[ColumnBalance]) -> Iterator[str]:
    if table.absent:
        yield f"{table.absent:,} of {len(table.study.raters):,} raters of the study are not in the table"
    if table.unknown:
        yield f"{table.unknown:,} raters of the table gave no rating and are left out"
    if columns:
        yield RULE
    if any(column.quartiles for column in columns):
        yield MEDIANS
    if any(column.test is not None and column.test.p_by == "permutation" for column in columns):
        yield f"if an expected count is below {LEAST_EXPECTED}, the p-value of the permutation test is used"


NOT_REPORTED = "the test without them is not reported, because it would reveal their ratings"
FEW_FAILED = f"fewer than {MINIMUM_CELL} raters failed more than half of their checks: {NOT_REPORTED}"


def attention_checks(
    table: RatersTable, study: StudyTable, whole: ChiSquaredTest, chance: tuple[int, int], alpha: float = 0.05
) -> AttentionChecks | None:
    """Raters of each group who failed none, some and most of their checks, and the omnibus test without those who failed most.

    ``whole`` is the omnibus test of all raters, ``chance`` the number of permutations and their seed. None for a table without checks.
    """
    if not table.has_checks:
        return None
    disclosed = disclosed_columns(table, study)[None]
    values, cells = ((), ()) if disclosed is None else (disclosed[0].names, tuple(map(tuple, disclosed[1].tolist())))
    left_out = np.nan_to_num(table.failed) > 0.5
    fewer, holds = _without(study, left_out, whole, chance, alpha)
    notes = []
    if left_out.sum() < MINIMUM_CELL:
        fewer = None
        notes.append(FEW_FAILED)
    if holds is not None:
        side = "below" if (_p(whole) or 0) < alpha else "not below"
        now = side if holds else ("not below" if side == "below" else "below")
        by = "by rater" if whole.permutation is not None else "by chi-squared"
        without_them = f"{now} it without those who failed more than half of their checks"
        notes.append(f"the omnibus p-value {by} is {side} {alpha:g} with all raters, and {without_them}")
    signature = signature_line(attention="checks-failed", fewest=MINIMUM_CELL, alpha=alpha)
    why = NO_VALUES if disclosed is None else None
    return AttentionChecks(group_sizes(study), values, cells, fewer, holds, alpha, why, tuple(notes), signature)


def _without(
    study: StudyTable, left_out: NDArray[np.bool_], whole: ChiSquaredTest, chance: tuple[int, int], alpha: float
) -> tuple[ChiSquaredTest | None, bool | None]:
    """Omnibus test without some raters, and whether its p-value is on the same side of ``alpha``; None if undefined."""
    fewer = without_raters(study, left_out)
    drawn = permutation_p_values(fewer, [TableSelection()], *chance)[0] if whole.permutation is not None else math.nan
    settings = whole.signature.partition("|permutations:")[2]
    test = chi_square_test(
        CountTable(study.groups, study.labels, fewer.counts()), None if math.isnan(drawn) else drawn, f"permutations:{settings}"
    )
    p, known = _p(test), _p(whole)
    # A lost group or category would reveal whose it was.
    if test.statistic is None or test.p is None or test.v is None or test.df != whole.df or p is None or known is None:
        return None, None
    signature = f"{test.signature}|digits:{DIGITS}"
    statistic, chi_square, v = (round_figure(value, DIGITS) for value in (test.statistic, test.p, test.v))
    compared = replace(test, statistic=statistic, p=chi_square, v=v, n=None, least_expected=None, why=None, signature=signature)
    return compared, (p < alpha) == (known < alpha)


def _p(test: ChiSquaredTest) -> float | None:
    """p-value by rater if there is one, because ratings of a rater depend on each other."""
    return test.p if test.permutation is None else test.permutation


def without_raters(study: StudyTable, left_out: NDArray[np.bool_]) -> StudyTable:
    """The study without some of its raters; groups, items and labels stay."""
    present = ~left_out
    new_index = np.cumsum(present) - 1
    rows = present[study.rater]
    fewer = study.subset(rows)
    return replace(
        fewer, raters=tuple(np.array(study.raters, dtype=object)[present]), group_of=study.group_of[present], rater=new_index[fewer.rater],
        block_of=None if study.block_of is None else study.block_of[present],
    )  # fmt: skip


def with_raters(studied: StudyReport, study: StudyTable, table: RatersTable) -> StudyReport:
    """Add balance and attention checks from the raters' table to the report of a study."""
    chance = (studied.settings["permutations"], studied.settings["seed"])
    checks = attention_checks(table, study, studied.whole.omnibus, chance, studied.settings["alpha"])
    source = None if table.source is None else asdict(table.source)
    completed = replace(studied, settings={**studied.settings, "raters": source}, balance=balance(table, study, *chance), attention=checks)
    return completed.beside([table.source] if table.source else ())
