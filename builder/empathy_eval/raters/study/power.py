"""What a chi-squared test of so many ratings can show, and the study that a wanted effect takes.

An effect is Cohen's w: the root of the sum, over the cells of a table, of (share - share without an effect)² over the share without an
effect (Cohen 1988, *Statistical Power Analysis for the Behavioral Sciences*, equation 7.2.1). With N independent ratings the statistic
then has the noncentral chi-squared distribution of noncentrality N w² (his section 7.4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from empathy_eval.base.errors import Problem, refuse
from empathy_eval.base.hashing import signature_line
from empathy_eval.design.provenance import Provenance, Result

CONFIDENCE = 0.95
# From here on tests hold that intervals by rater cover what they should.
FEW_RATERS = 40
# The least and the largest whole numbers of a plan.
WHOLE = {"groups": (2, 1000), "categories": (2, 11), "per_rater": (1, 10**6)}
# The least effect, and how far levels are from 0, from 1 and from each other: below it figures are all rounding.
LEAST = 1e-6
# An interval of a gain takes so many ratings of the category in a group, counted as independent ones.
LEAST_EXPECTED = 5
# What rounding of a noncentrality may do to a whole number.
ROUNDING = 1e-9


def needed(w: float, df: int, alpha: float = 0.05, power: float = 0.95) -> int:
    """The smallest number of independent ratings with which a test at ``alpha`` finds an effect ``w`` with a probability of ``power``."""
    return max(math.ceil(_noncentrality(df, alpha, power) / w**2 * (1 - ROUNDING)), 1)


def smallest(ratings: float, df: int, alpha: float = 0.05, power: float = 0.95) -> float:
    """The smallest effect w that so many independent ratings show with a probability of ``power``: the inverse of :func:`needed`."""
    return math.sqrt(_noncentrality(df, alpha, power) / ratings)


def reached(ratings: float, w: float, df: int, alpha: float = 0.05) -> float:
    """The probability with which so many independent ratings show an effect ``w``."""
    from scipy import stats

    return float(stats.ncx2.sf(stats.chi2.isf(alpha, df), df, ratings * w**2))


@cache
def _noncentrality(df: int, alpha: float, power: float) -> float:
    """The noncentrality at which the test has its power."""
    from scipy import optimize, stats

    point = stats.chi2.isf(alpha, df)
    above = 1.0
    while stats.ncx2.sf(point, df, above) < power:
        above *= 2
    return float(optimize.brentq(lambda more: stats.ncx2.sf(point, df, more) - power, 0, above, xtol=1e-12, rtol=1e-14))


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """The study that an effect takes, all groups of one size.

    ``independent`` ratings would do if each came from a rater of its own; ``clustered``, that many times ``design_effect``, where a
    rater gives ``per_rater``. Raters are whole and as many in each group, so ``ratings`` are at least as many. ``items`` lets an item be
    rated once in each group. ``low`` and ``high`` are the interval (percent) that a gain of nothing over a baseline of ``share`` would
    have; None without a share, and of one that fewer than five ratings of a group would be worth. ``note`` is what to mind.
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

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return self._with_provenance(asdict(self))


def study_plan(
    effect: float = 0.3, *, groups: int, categories: int, alpha: float = 0.05, power: float = 0.95, per_rater: int = 10, icc: float = 0.1,
    share: float | None = None,
) -> Plan:  # fmt: skip
    """How many raters and items a study takes to see an effect (Cohen's w) among so many groups and categories.

    Each rater gives ``per_rater`` ratings, whose intraclass correlation is ``icc`` (the ratings of a rater resemble each other): they are
    worth fewer by 1 + (per_rater - 1) icc (Donner, Birkett and Buck 1981, "Randomization by cluster: sample size requirements and
    analysis", *American Journal of Epidemiology* 114). With the ``share`` that the baseline has of a category it is said how far the
    interval of a gain would reach.

    Raises
    ------
    InputError
        For numbers that no study has, all at once.
    """
    asked: dict[str, Any] = {
        "effect": effect, "alpha": alpha, "power": power, "groups": groups, "categories": categories, "per_rater": per_rater, "icc": icc,
        "share": share,
    }  # fmt: skip
    refuse(_problems(asked))
    df = (groups - 1) * (categories - 1)
    worth = design_effect(per_rater, icc)
    independent = needed(effect, df, alpha, power)
    clustered = math.ceil(independent * worth * (1 - ROUNDING))
    # A group of one rater tells nothing of how raters differ.
    raters = max(math.ceil(clustered / (groups * per_rater)), 2)
    expected = None if share is None else share * raters * per_rater / worth
    low, high = (None, None) if share is None or (expected or 0) < LEAST_EXPECTED else gain_of_nothing(share, raters, per_rater, icc)
    return Plan(
        **asked, df=df, independent=independent, design_effect=worth, clustered=clustered, raters_a_group=raters, raters=raters * groups,
        ratings=raters * groups * per_rater, items=raters * per_rater, low=low, high=high, note="; ".join(_notes(raters, expected)) or None,
        signature=signature_line(plan="chi-square", **asked, level=CONFIDENCE), provenance=Provenance.of(**asked),
    )  # fmt: skip


def _notes(raters: int, expected: float | None) -> list[str]:
    """What to mind of a plan with so many raters a group, and so many ratings of the share in each, counted as independent ones."""
    few = f"intervals and design effects are validated for {FEW_RATERS} or more raters per group; with {raters} they are approximate"
    none = f"no interval of a gain: a group has ratings of that share worth {expected or 0:.2g} independent ones, below {LEAST_EXPECTED}"
    return [few] * (raters < FEW_RATERS) + [none] * (expected is not None and expected < LEAST_EXPECTED)


def design_effect(ratings_a_rater: float, icc: float) -> float:
    """How many ratings of raters are worth one independent rating, at least 1: a negative correlation seen is taken for none."""
    return max(1 + (ratings_a_rater - 1) * icc, 1.0)


def gain_of_nothing(share: float, raters_a_group: int, per_rater: int, icc: float) -> tuple[float, float]:
    """The 95 % interval, in percent, of a gain of 0 between two groups of so many raters, where both have ``share`` of a category.

    By the log of the ratio of shares, as :mod:`empathy_eval.raters.study.by_rater` reckons it from ratings.
    """
    from scipy import stats

    error = math.sqrt(2 * (1 - share) / share * design_effect(per_rater, icc) / (raters_a_group * per_rater))
    reach = float(stats.t.isf((1 - CONFIDENCE) / 2, 2 * (raters_a_group - 1))) * error
    return 100 * math.expm1(-reach), 100 * math.expm1(reach)


def _problems(asked: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with the numbers of a plan."""
    for name, (least, most) in WHOLE.items():
        number = asked[name]
        if not isinstance(number, int) or not _between(number, least, most):
            yield Problem(name.replace("_", "-"), f'"{number}" is out of range', f"use a whole number from {least} to {most:,}")
    if asked["share"] is not None:
        yield from _no_probability("share", asked["share"])
    if not _between(asked["icc"], 0, 1):
        yield Problem("icc", f'"{asked["icc"]}" is not an intraclass correlation that a plan can use', "use one from 0 to 1, such as 0.1")
    known = all(_between(asked[name], *WHOLE[name]) for name in ("groups", "categories"))
    yield from odd_aim(asked["effect"], asked["alpha"], asked["power"], (asked["groups"], asked["categories"]) if known else None)


def odd_aim(effect: float, alpha: float, power: float, table: tuple[int, int] | None) -> Iterator[Problem]:
    """What is wrong with an effect that is to be seen, its level and its power; ``table`` are the numbers of groups and categories."""
    if not _between(effect, LEAST, math.inf) or effect == math.inf:
        yield Problem(
            "effect", f'"{effect}" is not an effect size w', f"use one from {LEAST:.6f}; Cohen calls 0.1 small, 0.3 medium, 0.5 large"
        )
    elif table is not None and effect > (most := math.sqrt(min(table) - 1)):
        reason = f"above {most:.3f}, the largest effect of {table[0]} groups and {table[1]} categories"
        yield Problem("effect", f'"{effect}" is {reason}', "use a smaller one; Cohen calls 0.5 large")
    levels = list(_no_probability("alpha", alpha)) + list(_no_probability("power", power))
    yield from levels
    # A power that is alpha but for rounding is an effect of nothing.
    if not levels and power < alpha + LEAST:
        yield Problem("power", f'"{power}" is not above alpha ("{alpha}"), which chance alone reaches', "use a higher power, such as 0.95")


def _no_probability(name: str, value: object) -> Iterator[Problem]:
    if not _between(value, 0, 1) or value in (0, 1):
        yield Problem(name, f'"{value}" is not a probability between 0 and 1', "use one above 0 and below 1, such as 0.05 or 0.95")
    elif not _between(value, LEAST, 1 - LEAST):
        yield Problem(name, f'"{value}" is too close to 0 or 1', f"use one from {LEAST:.6f} to {1 - LEAST:.6f}")


def _between(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
