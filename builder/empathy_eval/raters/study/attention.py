"""How raters of a study did on checks of attention, and whether what the study says hangs on those who failed most of theirs."""

from __future__ import annotations

import math
from dataclasses import asdict, replace

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import signature_line
from empathy_eval.raters.study.balance import DIGITS, FEWEST, NO_VALUES, Attention, balance, rounded, sizes, tellings
from empathy_eval.raters.study.permutation import Wanted, permuted
from empathy_eval.raters.study.raters_table import RatersTable
from empathy_eval.raters.study.ratings import Study
from empathy_eval.raters.study.results import Studied
from empathy_eval.statistics.chi_square import Counted, Test, tested

FEW_FAILED = (
    f"fewer than {FEWEST} raters failed more than half of their checks: the test without them is not reported, because it would reveal "
    "their ratings"
)


def attention(table: RatersTable, study: Study, whole: Test, chance: tuple[int, int], alpha: float = 0.05) -> Attention | None:
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
    study: Study, left_out: NDArray[np.bool_], whole: Test, chance: tuple[int, int], alpha: float
) -> tuple[Test | None, bool | None]:
    """The omnibus test without some raters, and whether its p is on the same side of ``alpha``; None where it is not defined."""
    fewer = without(study, left_out)
    drawn = permuted(fewer, [Wanted()], *chance)[0] if whole.permutation is not None else math.nan
    settings = whole.signature.partition("|permutations:")[2]
    test = tested(Counted(study.groups, study.labels, fewer.counts()), None if math.isnan(drawn) else drawn, f"permutations:{settings}")
    p, known = _p(test), _p(whole)
    # Where a group or category is gone, it would be told of whom it was.
    if test.statistic is None or test.p is None or test.v is None or test.df != whole.df or p is None or known is None:
        return None, None
    signature = f"{test.signature}|digits:{DIGITS}"
    statistic, chi_square, v = (rounded(one) for one in (test.statistic, test.p, test.v))
    compared = replace(test, statistic=statistic, p=chi_square, v=v, n=None, least_expected=None, why=None, signature=signature)
    return compared, (p < alpha) == (known < alpha)


def _p(test: Test) -> float | None:
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
