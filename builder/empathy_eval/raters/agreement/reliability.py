"""How reliable people and judges are, criterion by criterion and framework by framework: all that ``agree --page`` shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.design.provenance import Result
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.raters.agreement.agree import Agreement, Criterion, inflation
from empathy_eval.raters.agreement.columns import MISSING
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
from empathy_eval.raters.agreement.overall import Kappas, Overall, Styles, at_least, overall, spread, styles
from empathy_eval.raters.agreement.panel import CROWD, Crowd, Framework, Panel, Valued, crowd_on, values_of
from empathy_eval.raters.agreement.table import Ratings, Table
from empathy_eval.statistics.agreement import LEVELS, WEIGHTS, alpha, share
from empathy_eval.statistics.estimate import Floats, Measure
from empathy_eval.statistics.resampling import ItemBootstrap, ratio

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
class RowInputs:
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


def row_of(on: RowInputs, vif: Measure) -> ReliabilityRow:
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
    crowd, third, with_judge = None, None, dict[str, Measure]()
    if on.crowd:
        place, signature = len(ratings.raters), f"{MEDIAN}|{on.crowd.signature}"
        own = BesideMedian(Experts(on.crowd.ratings, experts, on.sample, signature), place)
        crowd, third = _placed(on, own, pairs), crowd_alpha(on.crowd, own)
        f1[CROWD], inflation[CROWD] = own.f1(steps.tolist()), own.inflation(on.crowd)
        counted |= histogram(on.crowd.ratings, (), [place], steps)
        sample = replace(on.sample, signature=f"{on.crowd.signature}|{on.sample.signature}")
        kappas, _ = pair_up(on.crowd.ratings, [(judge, place) for judge in judges], on.weights, sample)
        with_judge = {one.raters[0]: one.kappa[on.weights] for one in kappas}
    elif on.panel.crowd:
        inflation[CROWD] = third = Measure.undefined(APART, on.sample.signature)
        crowd, with_judge = Placed(third, third, None), dict.fromkeys(placed, third)
    return ReliabilityRow(
        found.criterion, found.items, found.ratings, tuple(steps.tolist()), on.framework.better.get(found.criterion),
        tuple(Paired(one.raters, one.kappa[on.weights]) for one in found.benchmark.pairs), found.benchmark.median,
        placed, crowd, third, with_judge, {"experts": found.alpha[level], "judges": _of_judges(on, judges, level)},
        f1, inflation, counted, vif, band(vif), on.sample.signature,
    )  # fmt: skip


def _placed(on: RowInputs, beside: BesideMedian, pairs: Floats | None) -> Placed:
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


def _of_judges(on: RowInputs, judges: Sequence[int], level: str) -> Measure:
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


# The crowd as one, by its mean or median, and whether anybody of it is high.
ANY = "any of the crowd"
EXAMPLES = 3


@dataclass(frozen=True)
class High:
    """What is high on a criterion: ``above`` the middle of the rubric's scale, or of the values that occur where no rubric says one."""

    criterion: str
    above: float
    of: str


@dataclass(frozen=True)
class Contradiction:
    """Of the items on which the experts' median is high on ``there``, how many a rater is high on ``high`` of.

    ``of`` are the items among them that the rater rated on the latter. An expert stands against the median of the other experts; ``kind``
    is "expert", "judge", "crowd" or "any of the crowd". ``examples`` are the names of up to three items: first those that the rater, and
    then the experts, hold highest.
    """

    framework: str
    high: High
    there: High
    rater: str
    kind: str
    count: int
    of: int
    share: Measure
    examples: tuple[str, ...]


def contradictions(table: Table, panel: Panel, framework: Framework) -> tuple[Contradiction, ...]:
    """The contradictions of all raters by the opposites of a framework, each pair in both directions.

    The median of an even number of experts is the mean of the two middle ratings here, for nothing but which side of the middle it is on
    is asked of it. More than thirty experts are a crowd, and not looked at one by one.
    """
    found = []
    for name, opposite in [pair for one, other in framework.opposites for pair in ((one, other), (other, one))]:
        if name in table.criteria and opposite in table.criteria:
            high, there = _high(table, name, framework), _high(table, opposite, framework)
            middle = high.of if high.of == there.of else f"{high.of},{there.of}"
            none = f'no item that is rated on "{name}" has a high median of the experts on "{opposite}"'
            settings = {"share": "high", "above": f"{high.above:g}", "where": "median-expert-high-on-opposite"}
            settings |= {"there_above": f"{there.above:g}", "middle": middle}
            for rater, kind, how, own, theirs in _sides(table, panel, name, opposite):
                item, here, place = np.intersect1d(own[0], theirs[0], assume_unique=True, return_indices=True)
                values, medians = own[1][here], theirs[1][place]
                asked = medians > there.above
                hit = asked & (values > high.above)
                worst = np.lexsort((item[hit], -medians[hit], -values[hit]))[:EXAMPLES]
                count, of, examples = int(hit.sum()), int(asked.sum()), tuple(table.items[one] for one in item[hit][worst])
                part = share(count, of, none, **settings, **how)
                found.append(Contradiction(framework.name, high, there, rater, kind, count, of, part, examples))
    return tuple(found)


def _high(table: Table, criterion: str, framework: Framework) -> High:
    if scale := framework.scales.get(criterion):
        return High(criterion, (scale.low + scale.high) / 2, "scale-of-the-rubric")
    values = table.rating[table.criterion == table.criteria.index(criterion)]
    return High(criterion, float(values.min() + values.max()) / 2, "values-that-occur")


def _sides(table: Table, panel: Panel, name: str, opposite: str) -> Iterator[tuple[str, str, dict[str, str], Valued, Valued]]:
    """Each rater with its kind and settings, its own values on a criterion, and the experts' medians on the opposite one."""
    median = values_of(table, opposite, panel.experts, "median")
    for expert in panel.experts if 1 < len(panel.experts) <= PANEL else ():
        others = [one for one in panel.experts if one != expert]
        yield expert, "expert", {}, values_of(table, name, [expert]), values_of(table, opposite, others, "median")
    for judge in panel.first:
        yield judge.rater, "judge", {}, values_of(table, name, [judge.rater]), median
    if panel.crowd:
        how = {"crowd": f"{panel.crowd_as},not-rounded"}
        yield CROWD, CROWD, how, values_of(table, name, panel.crowd, panel.crowd_as), median
        yield ANY, ANY, {"crowd": "any-of-them"}, values_of(table, name, panel.crowd, "most"), median


ALONE = "there is only one sample"
NONE = "there is no item that all samples rate"


@dataclass(frozen=True)
class Stability:
    """How alike the samples of a judge are on a criterion.

    ``same`` is the share of items to which all give one value, ``range`` the mean distance of the highest and the lowest of an item, in
    points of the scale, both over items that all samples rate; ``kappa`` is the median over pairs of samples.
    """

    judge: str
    criterion: str
    samples: int
    same: Measure
    alpha: Measure
    kappa: Measure
    range: Measure


def stability(criterion: str, ratings: Ratings, panel: Panel, level: str, sample: ItemBootstrap) -> tuple[Stability, ...]:
    """Each judge beside itself on a criterion; where there is one sample nothing is defined. A judge that did not rate it is left out."""
    found = []
    for judge, samples in panel.samples.items():
        places = [ratings.raters.index(one.rater) for one in samples if one.rater in ratings.raters]
        rated = [place for place in places if np.any(ratings.rater == place)]
        if rated:
            found.append(Stability(judge, criterion, len(rated), *_figures(ratings, rated, level, sample)))
    return tuple(found)


def _figures(ratings: Ratings, places: Sequence[int], level: str, sample: ItemBootstrap) -> list[Measure]:
    """The share of items alike, alpha, the median kappa and the mean range."""
    given = np.stack([ratings.of_rater(place) for place in places])
    items = np.flatnonzero(np.all(given != MISSING, axis=0))
    values = ratings.scale[given[:, items]]
    apart = values.max(axis=0) - values.min(axis=0)
    how: dict[str, object] = {"raters": "samples", "samples": len(places)}
    weights, none = WEIGHTS[LEVELS.index(level)], "no item of the draw is rated by all samples"
    line = sample.line(kappa="cohen", weights=weights, median="of-pairs-of-samples", samples=len(places))
    kappa = Measure.undefined(f"there are {len(places)} samples: pairs are compared for at most {PANEL}", line, ratings.items)
    if len(places) <= PANEL:
        _, kappas = pair_up(ratings, list(combinations(places, 2)), weights, sample)
        kappa = Measure.of(median_of_pairs(kappas), ratings.items, "rated", "no pair has a kappa", line)
    ranges = ratio(*sample.totals(items, [apart, np.ones(len(items))]).T)
    found = [
        share(int(np.sum(apart == 0)), len(items), NONE, share="all-alike", **how),
        alpha(ratings.counts(places), ratings.scale, sample)[level],
        kappa,
        Measure.of(ranges, len(items), "that all samples rate", none, sample.line(range="mean", **how)),
    ]
    return found if len(places) > 1 else [Measure.undefined(ALONE, one.signature, len(items)) for one in found]


@dataclass(frozen=True)
class InFramework:
    """A framework and the rows of its criteria, in its order."""

    framework: Framework
    rows: tuple[ReliabilityRow, ...]


@dataclass(frozen=True, repr=False)
class Reliability(Result):
    """All figures of a page: ``weights`` are those of every kappa, ``level`` is that of every alpha of a group.

    ``crowd_alone`` are the criteria that nobody but the crowd rated: there is nobody to hold it against, and they are in no framework.
    """

    level: str
    weights: str
    panel: Panel
    frameworks: tuple[InFramework, ...]
    overall: Overall
    stability: tuple[Stability, ...]
    styles: Styles | None
    contradictions: tuple[Contradiction, ...]
    signature: str
    crowd_alone: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON values; what is not defined is null, with its reason in ``why``."""
        return self._with_provenance(asdict(self))


def reliability(
    table: Table, panel: Panel, frameworks: tuple[Framework, ...], agreement: Agreement, chance: ResamplingSettings
) -> Reliability:
    """All figures of the raters of a table, who are as ``panel`` says, by framework.

    ``agreement`` is that of the experts and judges, without the crowd, by the same draws of items.
    """
    weights = WEIGHTS[LEVELS.index(agreement.level)]
    judged = table.without(panel.crowd)
    figures = {one.criterion: one for one in agreement.criteria}
    benchmarks = [figures[name].benchmark for one in frameworks for name in one.criteria]
    every = spread((pair.kappa[weights].value for one in benchmarks for pair in one.pairs), "").median
    rows, stable = list[InFramework](), list[Stability]()
    for one in frameworks:
        factors, own = _factors(judged, one, panel, agreement, chance), list[ReliabilityRow]()
        for name in one.criteria:
            ratings = judged.on(name)
            sample = ItemBootstrap.of(ratings.items, chance.resamples, chance.seed)
            crowd = crowd_on(table, name, panel, ratings, one.scales.get(name))
            own.append(row_of(RowInputs(ratings, figures[name], panel, crowd, one, sample, every), factors[name]))
            stable += stability(name, ratings, panel, agreement.level, sample)
        rows.append(InFramework(one, tuple(own)))
    together = overall([row.kappas(one.framework.name) for one in rows for row in one.rows], weights)
    kappas = {row.criterion: {name: placed.kappa for name, placed in row.judges.items()} for one in rows for row in one.rows}
    line = signature_line(
        level=agreement.level, weights=weights, experts=len(panel.experts), judges=len(panel.first), crowd=len(panel.crowd),
        crowd_as=panel.crowd_as, resamples=chance.resamples, seed=chance.seed,
    )  # fmt: skip
    contradicting = tuple(found for one in frameworks for found in contradictions(table, panel, one))
    return Reliability(
        agreement.level, weights, panel, tuple(rows), together, tuple(stable), styles(panel.first, kappas), contradicting, line,
        tuple(name for name in table.criteria if name not in judged.criteria),
    )  # fmt: skip


def _factors(judged: Table, framework: Framework, panel: Panel, agreement: Agreement, chance: ResamplingSettings) -> dict[str, Measure]:
    """The variance inflation factors of the criteria of a framework, beside each other alone."""
    if set(framework.criteria) == set(judged.criteria):
        return agreement.inflation
    own = judged.of_criteria(framework.criteria)
    return inflation(own, [one for one in panel.experts if one in own.raters], chance.resamples, chance.seed)
