"""A row of the page of reliability: all that is said of one criterion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from empathy_eval.base.hashing import signature_line
from empathy_eval.raters.agreement.agree import Criterion
from empathy_eval.raters.agreement.experts import (
    F1,
    MEDIAN,
    PANEL,
    BesideMedian,
    Experts,
    crowd_alpha,
    histogram,
    median_of_pairs,
    pair_up,
    steps_of,
)
from empathy_eval.raters.agreement.overall import Kappas, at_least
from empathy_eval.raters.agreement.panel import CROWD, Crowd, Framework, Panel
from empathy_eval.raters.agreement.table import Ratings
from empathy_eval.statistics.agreement import LEVELS, WEIGHTS, alpha
from empathy_eval.statistics.estimate import Floats, Measure
from empathy_eval.statistics.resampling import ItemBootstrap

# Up to the first a variance inflation factor is low, from the second on high.
BANDS = (4, 10)
# Why a crowd that there is has no figure.
APART = "on this criterion the crowd rated no item that experts or judges rated"


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
    f1: dict[str, F1]
    inflation: dict[str, Measure]
    histogram: dict[str, tuple[float, ...]]
    vif: Measure
    band: str | None
    signature: str

    def kappas(self, framework: str) -> Kappas:
        """Its kappas as numbers, without their intervals."""
        judges, pairs = {name: one.kappa.value for name, one in self.judges.items()}, tuple(one.kappa.value for one in self.pairs)
        return Kappas(framework, self.criterion, pairs, judges, self.crowd.kappa.value if self.crowd else None)


@dataclass(frozen=True)
class OnCriterion:
    """What a row is made of: the ratings of the panel and their figures (``found``), what a rubric says, and how chance is drawn.

    The crowd is None where it rates nothing that the panel does; ``benchmark`` is that over all criteria.
    """

    ratings: Ratings
    found: Criterion
    panel: Panel
    crowd: Crowd | None
    framework: Framework
    sample: ItemBootstrap
    benchmark: float | None

    @property
    def weights(self) -> str:
        """Those of all kappas."""
        return self.found.benchmark.weights

    def places(self, names: Iterable[str]) -> list[int]:
        """Where raters are among those of the ratings."""
        return [self.ratings.raters.index(name) for name in names]


def row_of(on: OnCriterion, vif: Measure) -> ReliabilityRow:
    """The row of one criterion."""
    level, ratings, found = LEVELS[WEIGHTS.index(on.weights)], on.ratings, on.found
    experts, judges = on.places(on.panel.experts), on.places(one.rater for one in on.panel.first)
    of = Experts(ratings, experts, on.sample)
    steps = steps_of(on.crowd.ratings if on.crowd else ratings, on.framework.scales.get(found.criterion))
    counted = histogram(ratings, experts, judges, steps)
    beside = {ratings.raters[place]: BesideMedian(of, place) for place in (*(experts if len(experts) <= PANEL else ()), *judges)}
    pairs = None
    if found.benchmark.median.value is not None:
        pairs = median_of_pairs(pair_up(ratings, list(combinations(experts, 2)), on.weights, on.sample)[1])
    placed = {ratings.raters[judge]: _placed(on, beside[ratings.raters[judge]], pairs) for judge in judges}
    inflation = {name: beside[name].inflation() for name in placed}
    f1 = {name: one.f1(steps.tolist()) for name, one in beside.items()}
    crowd = third = None
    if on.crowd:
        place, signature = len(ratings.raters), f"{MEDIAN}|{on.crowd.signature}"
        own = BesideMedian(Experts(on.crowd.ratings, experts, on.sample, signature), place)
        crowd, third = _placed(on, own, pairs), crowd_alpha(on.crowd, own)
        f1[CROWD], inflation[CROWD] = own.f1(steps.tolist()), own.inflation(on.crowd)
        counted |= histogram(on.crowd.ratings, (), [place], steps)
    elif on.panel.crowd:
        inflation[CROWD] = third = Measure.undefined(APART, on.sample.signature)
        crowd = Placed(third, third, None)
    return ReliabilityRow(
        found.criterion, found.items, found.ratings, tuple(steps.tolist()), on.framework.better.get(found.criterion),
        tuple(Paired(one.raters, one.kappa[on.weights]) for one in found.benchmark.pairs), found.benchmark.median,
        placed, crowd, third, _with_judges(on, judges), {"experts": found.alpha[level], "judges": _of_judges(on, judges, level)},
        f1, inflation, counted, vif, band(vif), on.sample.signature,
    )  # fmt: skip


def _placed(on: OnCriterion, beside: BesideMedian, pairs: Floats | None) -> Placed:
    """A rater that is no expert, beside the median expert and the median kappa of pairs of experts, over the table and each resample."""
    kappa, best = beside.kappa[on.weights], on.found.benchmark.median
    line = signature_line(minus="median-kappa-of-pairs-of-experts") + f"|{kappa.signature}"
    if kappa.value is None or pairs is None:
        why = str(kappa.why) if kappa.value is None else f"the experts have no benchmark: {best.why}"
        minus = Measure.undefined(why, line, kappa.items)
    else:
        values = beside.kappas[WEIGHTS.index(on.weights)] - pairs
        minus = Measure.of(values, kappa.items, "in common", "one of the two is not defined", line)
    return Placed(kappa, minus, at_least(kappa.value, best.value), at_least(kappa.value, on.benchmark))


def _with_judges(on: OnCriterion, judges: Sequence[int]) -> dict[str, Measure]:
    """Kappa of the crowd with each judge."""
    if not on.crowd:
        apart = Measure.undefined(APART, on.sample.signature)
        return {on.ratings.raters[judge]: apart for judge in judges} if on.panel.crowd else {}
    sample = replace(on.sample, signature=f"{on.crowd.signature}|{on.sample.signature}")
    pairs, _ = pair_up(on.crowd.ratings, [(judge, len(on.ratings.raters)) for judge in judges], on.weights, sample)
    return {one.raters[0]: one.kappa[on.weights] for one in pairs}


def _of_judges(on: OnCriterion, judges: Sequence[int], level: str) -> Measure:
    """Alpha of the judges, of their first samples."""
    found = alpha(on.ratings.counts(judges), on.ratings.scale, on.sample)[level]
    if len(judges) < 2:
        return Measure.undefined(f"there is {'only one judge' if judges else 'no judge'}", found.signature)
    return found


def band(vif: Measure) -> str | None:
    """The studies' word for a variance inflation factor: low up to 4, high from 10 on, moderate between."""
    if vif.value is None:
        return None
    low, high = BANDS
    return "low" if vif.value <= low else "high" if vif.value >= high else "moderate"
