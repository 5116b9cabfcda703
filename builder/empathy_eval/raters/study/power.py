"""Power analysis of chi-squared tests, and the size of a study for a given effect.

The effect size is Cohen's w: the root of the sum, over the cells of a table, of (share - share without an effect)² over the share without
an effect (Cohen 1988, *Statistical Power Analysis for the Behavioral Sciences*, equation 7.2.1). With N independent ratings the statistic
has the noncentral chi-squared distribution of noncentrality N w² (his section 7.4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from empathy_eval.base.errors import Problem, refuse
from empathy_eval.base.hashing import signature_line
from empathy_eval.design.provenance import Provenance, Result

CONFIDENCE = 0.95
# From this number the coverage of intervals by rater is tested.
FEW_RATERS = 40
# Ranges of the whole numbers of a plan.
WHOLE = {"groups": (2, 1000), "categories": (2, 11), "per_rater": (1, 10**6)}
# Minimum of an effect, and of the distance of levels from 0, 1 and each other: below it rounding dominates.
LEAST = 1e-6
# Effective ratings of the category in a group that an interval of a gain needs.
LEAST_EXPECTED = 5
# Relative rounding error of a noncentrality, which must not change a whole number.
ROUNDING = 1e-9


def ratings_needed(w: float, df: int, alpha: float = 0.05, power: float = 0.95) -> int:
    """Smallest number of independent ratings with which a test at ``alpha`` detects an effect ``w`` with probability ``power``."""
    return max(math.ceil(_noncentrality(df, alpha, power) / w**2 * (1 - ROUNDING)), 1)


def smallest_effect(ratings: float, df: int, alpha: float = 0.05, power: float = 0.95) -> float:
    """Smallest effect w that this many independent ratings show with probability ``power``: the inverse of :func:`ratings_needed`."""
    return math.sqrt(_noncentrality(df, alpha, power) / ratings)


def power_reached(ratings: float, w: float, df: int, alpha: float = 0.05) -> float:
    """Probability with which this many independent ratings detect an effect ``w``."""
    from scipy import stats

    return float(stats.ncx2.sf(stats.chi2.isf(alpha, df), df, ratings * w**2))


@cache
def _noncentrality(df: int, alpha: float, power: float) -> float:
    """Noncentrality at which the test has its power."""
    from scipy import optimize, stats

    point = stats.chi2.isf(alpha, df)
    above = 1.0
    while stats.ncx2.sf(point, df, above) < power:
        above *= 2
    return float(optimize.brentq(lambda more: stats.ncx2.sf(point, df, more) - power, 0, above, xtol=1e-12, rtol=1e-14))


@dataclass(frozen=True, repr=False)
class StudyPlan(Result):
    """Size of a study for an effect, with groups of one size.

    ``independent`` ratings suffice if each comes from a rater of its own; ``clustered`` is that times ``design_effect``, if a rater gives
    ``per_rater``. Raters are whole and equally many per group, so ``ratings`` is at least as large. ``items`` lets each item be rated once
    per group. ``low`` and ``high`` are the interval (percent) of a gain of 0 over a baseline of ``share``; None without a share, or if a
    group has ratings of it worth fewer than five independent ones. ``note`` holds caveats.
    """

    effect: float
    alpha: float
    power: float
    groups: int
    categories: int
    per_rater: int
    icc: float
    share: float | None
    df: int
    independent: int
    design_effect: float
    clustered: int
    raters_a_group: int
    raters: int
    ratings: int
    items: int
    low: float | None
    high: float | None
    note: str | None
    signature: str


def study_plan(
    effect: float = 0.3, *, groups: int, categories: int, alpha: float = 0.05, power: float = 0.95, per_rater: int = 10, icc: float = 0.1,
    share: float | None = None,
) -> StudyPlan:  # fmt: skip
    """Number of raters and items that a study needs to detect an effect (Cohen's w) among so many groups and categories.

    Each rater gives ``per_rater`` ratings with an intraclass correlation of ``icc``, so their number is divided by 1 + (per_rater - 1) icc
    (Donner, Birkett and Buck 1981, "Randomization by cluster: sample size requirements and analysis", *American Journal of Epidemiology*
    114). With the ``share`` of a category in the baseline, the plan has the interval of a gain.

    Raises
    ------
    InputError
        For impossible numbers, all at once.
    """
    plan: dict[str, Any] = {
        "effect": effect, "alpha": alpha, "power": power, "groups": groups, "categories": categories, "per_rater": per_rater, "icc": icc,
        "share": share,
    }  # fmt: skip
    refuse(_problems(plan))
    df = (groups - 1) * (categories - 1)
    inflation = design_effect(per_rater, icc)
    independent = ratings_needed(effect, df, alpha, power)
    clustered = math.ceil(independent * inflation * (1 - ROUNDING))
    # One rater per group would not show how raters differ.
    raters = max(math.ceil(clustered / (groups * per_rater)), 2)
    expected = None if share is None else share * raters * per_rater / inflation
    low, high = (None, None) if share is None or (expected or 0) < LEAST_EXPECTED else null_gain_interval(share, raters, per_rater, icc)
    return StudyPlan(
        **plan, df=df, independent=independent, design_effect=inflation, clustered=clustered, raters_a_group=raters, raters=raters * groups,
        ratings=raters * groups * per_rater, items=raters * per_rater, low=low, high=high, note="; ".join(_notes(raters, expected)) or None,
        signature=signature_line(plan="chi-square", **plan, level=CONFIDENCE), provenance=Provenance.of(**plan),
    )  # fmt: skip


def _notes(raters: int, expected: float | None) -> list[str]:
    """Caveats of a plan with this many raters per group, and ``expected`` effective ratings of the share in each."""
    few = f"intervals and design effects are validated for {FEW_RATERS} or more raters per group; with {raters} they are approximate"
    none = f"no interval of a gain: a group has ratings of that share worth {expected or 0:.2g} independent ones, below {LEAST_EXPECTED}"
    return [few] * (raters < FEW_RATERS) + [none] * (expected is not None and expected < LEAST_EXPECTED)


def design_effect(ratings_a_rater: float, icc: float) -> float:
    """Number of clustered ratings worth one independent rating, at least 1: a negative correlation counts as none."""
    return max(1 + (ratings_a_rater - 1) * icc, 1.0)


def null_gain_interval(share: float, raters_a_group: int, per_rater: int, icc: float) -> tuple[float, float]:
    """95 % interval, in percent, of a gain of 0 between two groups that both have ``share`` of a category.

    It uses the log of the ratio of shares, as :mod:`empathy_eval.raters.study.by_rater` does with ratings.
    """
    from scipy import stats

    error = math.sqrt(2 * (1 - share) / share * design_effect(per_rater, icc) / (raters_a_group * per_rater))
    reach = float(stats.t.isf((1 - CONFIDENCE) / 2, 2 * (raters_a_group - 1))) * error
    return 100 * math.expm1(-reach), 100 * math.expm1(reach)


def _problems(plan: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of the numbers of a plan."""
    for name, (least, most) in WHOLE.items():
        number = plan[name]
        if not isinstance(number, int) or not _between(number, least, most):
            yield Problem(name.replace("_", "-"), f'"{number}" is out of range', f"use a whole number from {least} to {most:,}")
    if plan["share"] is not None:
        yield from _probability_problems("share", plan["share"])
    if not _between(plan["icc"], 0, 1):
        yield Problem("icc", f'"{plan["icc"]}" is not an intraclass correlation that a plan can use', "use one from 0 to 1, such as 0.1")
    known = all(_between(plan[name], *WHOLE[name]) for name in ("groups", "categories"))
    yield from aim_problems(plan["effect"], plan["alpha"], plan["power"], (plan["groups"], plan["categories"]) if known else None)


def aim_problems(effect: float, alpha: float, power: float, table: tuple[int, int] | None) -> Iterator[Problem]:
    """Problems of an effect size, its level and its power; ``table`` has the numbers of groups and categories."""
    if not _between(effect, LEAST, math.inf) or effect == math.inf:
        fix = f"use one from {LEAST:.6f}; Cohen calls 0.1 small, 0.3 medium, 0.5 large"
        yield Problem("effect", f'"{effect}" is not an effect size w', fix)
    elif table is not None and effect > (most := math.sqrt(min(table) - 1)):
        reason = f"above {most:.3f}, the largest effect of {table[0]} groups and {table[1]} categories"
        yield Problem("effect", f'"{effect}" is {reason}', "use a smaller one; Cohen calls 0.5 large")
    levels = list(_probability_problems("alpha", alpha)) + list(_probability_problems("power", power))
    yield from levels
    # A power equal to alpha means no effect.
    if not levels and power < alpha + LEAST:
        yield Problem("power", f'"{power}" is not above alpha ("{alpha}"), which chance alone reaches', "use a higher power, such as 0.95")


def _probability_problems(name: str, value: object) -> Iterator[Problem]:
    if not _between(value, 0, 1) or value in (0, 1):
        yield Problem(name, f'"{value}" is not a probability between 0 and 1', "use one above 0 and below 1, such as 0.05 or 0.95")
    elif not _between(value, LEAST, 1 - LEAST):
        yield Problem(name, f'"{value}" is too close to 0 or 1', f"use one from {LEAST:.6f} to {1 - LEAST:.6f}")


def _between(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
