"""A row of the page of reliability: all that is said of one criterion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from empathy_eval.raters.agreement.bootstrap import Measure


@dataclass(frozen=True)
class Paired:
    """Two experts and their kappa."""

    raters: tuple[str, str]
    kappa: Measure


@dataclass(frozen=True)
class Placed:
    """A judge, or the crowd, beside the median expert.

    ``minus_benchmark`` is its kappa minus the median kappa of pairs of experts on this criterion. ``at_benchmark`` says whether it is at
    that or above, ``at_overall`` the same of the benchmark over all criteria; None where one of the two is not defined.
    """

    kappa: Measure
    minus_benchmark: Measure
    at_benchmark: bool | None
    at_overall: bool | None = None


@dataclass(frozen=True)
class ReliabilityRow:
    """The figures of one criterion; kappas are of the weights of the page.

    ``scale`` are the values that ``histogram`` counts, by "experts" (all their ratings), "median expert" (halves where the two middle ones
    differ), judge and "crowd" (as rounded). ``experts`` is the benchmark, the median of ``pairs``. ``crowd_alpha`` is interval alpha of the
    median expert and the crowd, which needs no rounding. ``inflation``, in points of the scale, is by judge and "crowd", and so is ``f1``,
    which has the experts too; ``alpha`` is by "experts" and "judges". Of several samples of a judge the first stands here.
    """

    criterion: str
    items: int
    ratings: int
    scale: tuple[float, ...]
    better: str | None
    pairs: tuple[Paired, ...]
    experts: Measure
    judges: dict[str, Placed]
    crowd: Placed | None
    crowd_alpha: Measure | None
    crowd_with_judge: dict[str, Measure]
    alpha: dict[str, Measure]
    f1: dict[str, Any]
    inflation: dict[str, Measure]
    histogram: dict[str, tuple[float, ...]]
    vif: Measure
    band: str | None
    signature: str
