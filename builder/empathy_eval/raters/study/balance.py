"""How alike the groups of a study are in what the raters' table says of raters; few people are never told (:mod:`few_people`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from empathy_eval.base.hashing import derived_random, signature_line
from empathy_eval.evaluation.ranking import holm
from empathy_eval.raters.agreement.table import Floats
from empathy_eval.raters.study.chi_square import LEAST_EXPECTED, Counted, figure, pearson, tested
from empathy_eval.raters.study.few_people import Classes, Counts, Telling, poolings
from empathy_eval.raters.study.raters_table import FEW_NUMBERS, RatersTable
from empathy_eval.raters.study.ratings import Study
from empathy_eval.raters.study.told_of_raters import FEWEST, Balance, Balanced, Compared

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
        else Balanced(name, "numbers", (), (), (), None, None, 0, COPIED)
        if name in copies
        else _of_numbers(name, numbers[name], study)
        for name in table.columns
    ]
    p = [one.test.gone_by for one in columns if one.test is not None and one.test.gone_by is not None]
    corrected = iter(holm(p))
    columns = [
        replace(one, holm=figure(next(corrected)), family=len(p)) if one.test is not None and one.test.gone_by is not None else one
        for one in columns
    ]
    signature = signature_line(balance="raters", fewest=FEWEST, pooled="rarest-first", few_numbers=FEW_NUMBERS, corrected="holm")
    return Balance(sizes(study), tuple(columns), table.untold, table.unknown, tuple(_notes(table, columns)), signature)


def tellings(table: RatersTable, study: Study) -> dict[str | None, tuple[Classes, Counts] | None]:
    """By column of values what may be told of it: its classes with their counts by group, or None; checks of attention have no name."""
    groups = len(study.groups)
    telling = Telling(study.group_of, groups)
    columns = [name for name in table.columns if table.numbers(name) is None]
    wanted: dict[str | None, Iterator[Classes]] = {name: poolings(table.values(name), study.group_of, groups) for name in columns}
    if table.has_checks:
        wanted[None] = attentive(table)
    found = dict[str | None, tuple[Classes, Counts] | None]()
    for name, candidates in wanted.items():
        classes = telling.first(candidates)
        found[name] = None if classes is None else (classes, telling.counts(classes))
    return found


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


def sizes(study: Study) -> tuple[tuple[str, int], ...]:
    """The groups with their numbers of raters."""
    return tuple(zip(study.groups, np.bincount(study.group_of, minlength=len(study.groups)).tolist(), strict=True))


def _of_values(name: str, told: tuple[Classes, Counts] | None, study: Study, chance: tuple[int, int]) -> Balanced:
    if told is None:
        return Balanced(name, "values", (), (), (), None, None, 0, NO_VALUES)
    classes, counts = told
    test = tested(Counted(study.groups, classes.names, counts), drawn(counts, *chance, name), settings(*chance))
    compared = Compared(
        test.statistic, test.df, test.p, test.v, test.least_expected, test.permutation, test.p_by, test.why, test.signature
    )  # fmt: skip
    cells = tuple(tuple(row) for row in counts.tolist())
    return Balanced(name, "values", classes.names, cells, (), compared, None, 0, None)


def settings(permutations: int, seed: int) -> str:
    """The settings behind the p of tables that are drawn."""
    return signature_line(permutations=permutations, unit="rater", within="study", seed=seed, numpy=np.__version__)


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
    quartiles = tuple((quartile(some, 0.25), quartile(some, 0.5), quartile(some, 0.75)) for some in groups)
    enough = [some for some in groups if len(some) >= FEWEST]
    signature = signature_line(test="kruskal-wallis", ties="corrected", fewest=FEWEST, digits=DIGITS)
    if len(enough) < 2 or len(np.unique(np.concatenate(enough))) < 2:
        return Balanced(name, "numbers", (), (), quartiles, None, None, 0, NO_NUMBERS)
    from scipy.stats import kruskal

    found = kruskal(*enough)
    why = None if len(enough) == len(groups) else f"groups with fewer than {FEWEST} known numbers are left out"
    statistic, p = rounded(float(found.statistic)), rounded(float(found.pvalue))
    test = Compared(statistic, len(enough) - 1, p, None, None, None, "kruskal-wallis", why, signature)
    return Balanced(name, "numbers", (), (), quartiles, test, None, 0, None)


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
    for group in range(len(study.groups)):
        ours = known & (study.group_of == group)
        if ours.sum() >= FEWEST and ((first == second)[ours].mean() > 0.5 or abs(_ranked_alike(first[ours], second[ours])) > NEARLY):
            return True
    return False


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
    return float(f"{ascending[near].mean():.{DIGITS + 1}g}")


def rounded(value: float) -> float:
    """A number to so few digits that it cannot be solved for what single raters said."""
    return float(f"{value:.{DIGITS}g}")


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
