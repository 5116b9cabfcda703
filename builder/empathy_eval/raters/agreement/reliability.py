"""Reliability of people and judges by criterion and framework: all figures of ``agree --page``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.design.provenance import Result
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.raters.agreement import experts as expert_figures
from empathy_eval.raters.agreement.agree import Agreement, CriterionAgreement, variance_inflation
from empathy_eval.raters.agreement.columns import MISSING
from empathy_eval.raters.agreement.experts import F1, MEDIAN, PANEL, Experts, RaterAgainstMedian
from empathy_eval.raters.agreement.overall import CriterionKappas, Overall, Styles, at_least, distribution, overall, styles
from empathy_eval.raters.agreement.panel import CROWD, Crowd, Framework, ItemValues, Panel, crowd_ratings, item_values
from empathy_eval.raters.agreement.table import CriterionRatings, RatingTable
from empathy_eval.statistics.agreement import LEVELS, WEIGHTS, ItemBootstrap, krippendorff_alpha, ratio, wilson_proportion
from empathy_eval.statistics.estimate import Estimate, Floats

# A variance inflation factor is low up to the first, and high from the second.
BANDS = (4, 10)
# Reason for a crowd without figures.
NO_SHARED_ITEM = "on this criterion the crowd rated no item that experts or judges rated"


@dataclass(frozen=True)
class ExpertKappa:
    """Two experts and their kappa."""

    raters: tuple[str, str]
    kappa: Estimate


@dataclass(frozen=True)
class AgainstBenchmark:
    """A judge, or the crowd, against the median expert and the benchmark.

    ``minus_benchmark`` is its kappa minus the median kappa of pairs of experts on this criterion. ``at_benchmark`` says whether it reaches
    that, ``at_overall`` whether it reaches the benchmark over all criteria; None if undefined.
    """

    kappa: Estimate
    minus_benchmark: Estimate
    at_benchmark: bool | None
    at_overall: bool | None = None


@dataclass(frozen=True)
class ReliabilityRow:
    """Figures of one criterion; kappas have the weights of the page.

    ``scale`` lists the values that ``histogram`` counts, by "experts" (all their ratings), "median expert" (halves if the two middle ones
    differ), judge and "crowd" (rounded). ``experts`` is the benchmark, the median of ``pairs``. ``crowd_alpha`` is interval alpha of the
    median expert and the crowd, which needs no rounding. ``inflation``, in points of the scale, is by judge and "crowd"; ``f1`` has the
    experts too; ``alpha`` is by "experts" and "judges". Judges are represented by their first samples.
    """

    criterion: str
    items: int
    ratings: int
    scale: tuple[float, ...]
    better: str | None
    pairs: tuple[ExpertKappa, ...]
    experts: Estimate
    judges: dict[str, AgainstBenchmark]
    crowd: AgainstBenchmark | None
    crowd_alpha: Estimate | None
    crowd_with_judge: dict[str, Estimate]
    alpha: dict[str, Estimate]
    f1: dict[str, F1]
    inflation: dict[str, Estimate]
    histogram: dict[str, tuple[float, ...]]
    vif: Estimate
    band: str | None
    signature: str

    def kappas(self, framework: str) -> CriterionKappas:
        """Its kappas without intervals."""
        judges, pairs = {name: judge.kappa.value for name, judge in self.judges.items()}, tuple(pair.kappa.value for pair in self.pairs)
        return CriterionKappas(framework, self.criterion, pairs, judges, self.crowd.kappa.value if self.crowd else None)


@dataclass(frozen=True)
class RowInputs:
    """Inputs of a row: the ratings of the panel, their ``agreement``, the framework, and the bootstrap sample.

    The crowd is None if it rates no item that the panel does; ``benchmark`` is that over all criteria.
    """

    ratings: CriterionRatings
    agreement: CriterionAgreement
    panel: Panel
    crowd: Crowd | None
    framework: Framework
    sample: ItemBootstrap
    benchmark: float | None

    @property
    def weights(self) -> str:
        """Weights of all kappas."""
        return self.agreement.benchmark.weights

    def places(self, names: Iterable[str]) -> list[int]:
        """Indices of raters among those of the ratings."""
        return [self.ratings.raters.index(name) for name in names]


def reliability_row(on: RowInputs, vif: Estimate) -> ReliabilityRow:
    """Compute the row of one criterion."""
    level, ratings, figures = LEVELS[WEIGHTS.index(on.weights)], on.ratings, on.agreement
    experts, judges = on.places(on.panel.experts), on.places(judge.rater for judge in on.panel.first)
    panel = Experts(ratings, experts, on.sample)
    steps = expert_figures.counted_values(on.crowd.ratings if on.crowd else ratings, on.framework.scales.get(figures.criterion))
    counted = expert_figures.histogram(ratings, experts, judges, steps)
    medians = {ratings.raters[rater]: RaterAgainstMedian(panel, rater) for rater in (*(experts if len(experts) <= PANEL else ()), *judges)}
    pairs = None
    if figures.benchmark.median.value is not None:
        _, of_pairs = expert_figures.pairwise_kappas(ratings, list(combinations(experts, 2)), on.weights, on.sample)
        pairs = expert_figures.median_of_pairs(of_pairs)
    placed = {ratings.raters[judge]: _against_benchmark(on, medians[ratings.raters[judge]], pairs) for judge in judges}
    inflation = {name: medians[name].inflation() for name in placed}
    f1 = {name: rater.f1(steps.tolist()) for name, rater in medians.items()}
    crowd, third, with_judge = None, None, dict[str, Estimate]()
    if on.crowd:
        index, signature = len(ratings.raters), f"{MEDIAN}|{on.crowd.signature}"
        own = RaterAgainstMedian(Experts(on.crowd.ratings, experts, on.sample, signature), index)
        crowd, third = _against_benchmark(on, own, pairs), expert_figures.crowd_alpha(on.crowd, own)
        f1[CROWD], inflation[CROWD] = own.f1(steps.tolist()), own.inflation(on.crowd)
        counted |= expert_figures.histogram(on.crowd.ratings, (), [index], steps)
        sample = replace(on.sample, signature=f"{on.crowd.signature}|{on.sample.signature}")
        kappas, _ = expert_figures.pairwise_kappas(on.crowd.ratings, [(judge, index) for judge in judges], on.weights, sample)
        with_judge = {pair.raters[0]: pair.kappa[on.weights] for pair in kappas}
    elif on.panel.crowd:
        inflation[CROWD] = third = Estimate.undefined(NO_SHARED_ITEM, on.sample.signature)
        crowd, with_judge = AgainstBenchmark(third, third, None), dict.fromkeys(placed, third)
    return ReliabilityRow(
        figures.criterion, figures.items, figures.ratings, tuple(steps.tolist()), on.framework.better.get(figures.criterion),
        tuple(ExpertKappa(pair.raters, pair.kappa[on.weights]) for pair in figures.benchmark.pairs), figures.benchmark.median,
        placed, crowd, third, with_judge, {"experts": figures.alpha[level], "judges": _of_judges(on, judges, level)},
        f1, inflation, counted, vif, band(vif), on.sample.signature,
    )  # fmt: skip


def _against_benchmark(on: RowInputs, agreement: RaterAgainstMedian, pairs: Floats | None) -> AgainstBenchmark:
    """A judge or crowd against the median expert and the median kappa of pairs of experts, over the table and each resample."""
    kappa, best = agreement.kappa[on.weights], on.agreement.benchmark.median
    line = signature_line(minus="median-kappa-of-pairs-of-experts") + f"|{kappa.signature}"
    if kappa.value is None or pairs is None:
        why = str(kappa.reason) if kappa.value is None else f"the experts have no benchmark: {best.reason}"
        minus = Estimate.undefined(why, line, kappa.n)
    else:
        values = agreement.kappas[WEIGHTS.index(on.weights)] - pairs
        minus = Estimate.of_resamples(values, kappa.n, "in common", "one of the two is not defined", line)
    return AgainstBenchmark(kappa, minus, at_least(kappa.value, best.value), at_least(kappa.value, on.benchmark))


def _of_judges(on: RowInputs, judges: Sequence[int], level: str) -> Estimate:
    """Alpha of the judges' first samples."""
    agreement = krippendorff_alpha(on.ratings.counts(judges), on.ratings.scale, on.sample)[level]
    if len(judges) < 2:
        return Estimate.undefined(f"there is {'only one judge' if judges else 'no judge'}", agreement.signature)
    return agreement


def band(vif: Estimate) -> str | None:
    """Conventional word for a variance inflation factor: low up to 4, high from 10, moderate between."""
    if vif.value is None:
        return None
    low, high = BANDS
    return "low" if vif.value <= low else "high" if vif.value >= high else "moderate"


# Rater name for "whether any member of the crowd rates high", beside the crowd's mean or median.
ANY = "any of the crowd"
EXAMPLES = 3


@dataclass(frozen=True)
class High:
    """When a rating of a criterion is high: ``above`` the middle of the rubric's scale, or of the values that occur without one."""

    criterion: str
    above: float
    of: str


@dataclass(frozen=True)
class Contradiction:
    """Of the items on which the experts' median is high on ``there``, how many a rater also rates high on ``high``.

    ``of`` counts those among them that the rater rated on the latter. An expert is compared with the median of the other experts; ``kind``
    is "expert", "judge", "crowd" or "any of the crowd". ``examples`` names up to three items, highest first.
    """

    framework: str
    high: High
    opposite: High = field(metadata={"name": "there"})
    rater: str
    kind: str
    count: int
    of: int
    share: Estimate
    examples: tuple[str, ...]


def contradictions(table: RatingTable, panel: Panel, framework: Framework) -> tuple[Contradiction, ...]:
    """Contradictions of all raters on the opposites of a framework, each pair in both directions.

    The median of an even number of experts is the mean of the two middle ratings here, because only its side of the middle matters. More
    than thirty experts are not compared individually.
    """
    rows = []
    for name, opposite in [pair for first, other in framework.opposites for pair in ((first, other), (other, first))]:
        if name in table.criteria and opposite in table.criteria:
            high, opposite_high = _high(table, name, framework), _high(table, opposite, framework)
            middle = high.of if high.of == opposite_high.of else f"{high.of},{opposite_high.of}"
            none = f'no item that is rated on "{name}" has a high median of the experts on "{opposite}"'
            settings = {"share": "high", "above": f"{high.above:g}", "where": "median-expert-high-on-opposite"}
            settings |= {"there_above": f"{opposite_high.above:g}", "middle": middle}
            for rater, kind, how, own, median in _sides(table, panel, name, opposite):
                item, own_index, there_index = np.intersect1d(own[0], median[0], assume_unique=True, return_indices=True)
                values, medians = own[1][own_index], median[1][there_index]
                high_median = medians > opposite_high.above
                hit = high_median & (values > high.above)
                worst = np.lexsort((item[hit], -medians[hit], -values[hit]))[:EXAMPLES]
                count, of, examples = int(hit.sum()), int(high_median.sum()), tuple(table.items[index] for index in item[hit][worst])
                part = wilson_proportion(count, of, none, **settings, **how)
                rows.append(Contradiction(framework.name, high, opposite_high, rater, kind, count, of, part, examples))
    return tuple(rows)


def _high(table: RatingTable, criterion: str, framework: Framework) -> High:
    if scale := framework.scales.get(criterion):
        return High(criterion, (scale.low + scale.high) / 2, "scale-of-the-rubric")
    values = table.rating[table.criterion == table.criteria.index(criterion)]
    return High(criterion, float(values.min() + values.max()) / 2, "values-that-occur")


def _sides(table: RatingTable, panel: Panel, name: str, opposite: str) -> Iterator[tuple[str, str, dict[str, str], ItemValues, ItemValues]]:
    """Each rater with kind and settings, its values on a criterion, and the experts' medians on the opposite one."""
    median = item_values(table, opposite, panel.experts, "median")
    for expert in panel.experts if 1 < len(panel.experts) <= PANEL else ():
        other_experts = [name for name in panel.experts if name != expert]
        yield expert, "expert", {}, item_values(table, name, [expert]), item_values(table, opposite, other_experts, "median")
    for judge in panel.first:
        yield judge.rater, "judge", {}, item_values(table, name, [judge.rater]), median
    if panel.crowd:
        how = {"crowd": f"{panel.crowd_as},not-rounded"}
        yield CROWD, CROWD, how, item_values(table, name, panel.crowd, panel.crowd_as), median
        yield ANY, ANY, {"crowd": "any-of-them"}, item_values(table, name, panel.crowd, "most"), median


ONE_SAMPLE = "there is only one sample"
NONE = "there is no item that all samples rate"


@dataclass(frozen=True)
class Stability:
    """Stability of a judge on a criterion over its samples.

    ``same`` is the share of items with equal values, ``range`` the mean difference of the highest and lowest value of an item, in points of
    the scale, both over items that all samples rate; ``kappa`` is the median over pairs of samples.
    """

    judge: str
    criterion: str
    samples: int
    same: Estimate
    alpha: Estimate
    kappa: Estimate
    range: Estimate


def stability(criterion: str, ratings: CriterionRatings, panel: Panel, level: str, sample: ItemBootstrap) -> tuple[Stability, ...]:
    """Stability of each judge on a criterion; undefined with one sample. A judge that did not rate it is left out."""
    rows = []
    for judge, samples in panel.samples.items():
        places = [ratings.raters.index(sample.rater) for sample in samples if sample.rater in ratings.raters]
        rated = [rater for rater in places if np.any(ratings.rater == rater)]
        if rated:
            rows.append(Stability(judge, criterion, len(rated), *_figures(ratings, rated, level, sample)))
    return tuple(rows)


def _figures(ratings: CriterionRatings, places: Sequence[int], level: str, sample: ItemBootstrap) -> list[Estimate]:
    """Share of items alike, alpha, median kappa and mean range."""
    rated = np.stack([ratings.of_rater(rater) for rater in places])
    items = np.flatnonzero(np.all(rated != MISSING, axis=0))
    values = ratings.scale[rated[:, items]]
    apart = values.max(axis=0) - values.min(axis=0)
    how: dict[str, object] = {"raters": "samples", "samples": len(places)}
    weights, none = WEIGHTS[LEVELS.index(level)], "no item of the draw is rated by all samples"
    line = sample.line(kappa="cohen", weights=weights, median="of-pairs-of-samples", samples=len(places))
    kappa = Estimate.undefined(f"there are {len(places)} samples: pairs are compared for at most {PANEL}", line, ratings.items)
    if len(places) <= PANEL:
        _, kappas = expert_figures.pairwise_kappas(ratings, list(combinations(places, 2)), weights, sample)
        kappa = Estimate.of_resamples(expert_figures.median_of_pairs(kappas), ratings.items, "rated", "no pair has a kappa", line)
    ranges = ratio(*sample.totals(items, [apart, np.ones(len(items))]).T)
    measures = [
        wilson_proportion(int(np.sum(apart == 0)), len(items), NONE, share="all-alike", **how),
        krippendorff_alpha(ratings.counts(places), ratings.scale, sample)[level],
        kappa,
        Estimate.of_resamples(ranges, len(items), "that all samples rate", none, sample.line(range="mean", **how)),
    ]
    return measures if len(places) > 1 else [Estimate.undefined(ONE_SAMPLE, measure.signature, len(items)) for measure in measures]


@dataclass(frozen=True)
class FrameworkRows:
    """A framework and the rows of its criteria, in order."""

    framework: Framework
    rows: tuple[ReliabilityRow, ...]


@dataclass(frozen=True, repr=False)
class Reliability(Result):
    """All figures of a page: ``weights`` are those of every kappa, ``level`` that of every alpha of a group.

    ``crowd_alone`` are the criteria that only the crowd rated: they are in no framework.
    """

    level: str
    weights: str
    panel: Panel
    frameworks: tuple[FrameworkRows, ...]
    overall: Overall
    stability: tuple[Stability, ...]
    styles: Styles | None
    contradictions: tuple[Contradiction, ...]
    signature: str
    crowd_alone: tuple[str, ...] = ()


def reliability(
    table: RatingTable, panel: Panel, frameworks: tuple[Framework, ...], agreement: Agreement, chance: ResamplingSettings
) -> Reliability:
    """Compute all figures of the raters of a table, with the roles of ``panel``, by framework.

    ``agreement`` is that of the experts and judges, without the crowd, from the same draws of items.
    """
    weights = WEIGHTS[LEVELS.index(agreement.level)]
    judged = table.without(panel.crowd)
    figures = {criterion.criterion: criterion for criterion in agreement.criteria}
    benchmarks = [figures[name].benchmark for framework in frameworks for name in framework.criteria]
    every = distribution((pair.kappa[weights].value for benchmark in benchmarks for pair in benchmark.pairs), "").median
    rows, stable = list[FrameworkRows](), list[Stability]()
    for framework in frameworks:
        factors, own = _factors(judged, framework, panel, agreement, chance), list[ReliabilityRow]()
        for name in framework.criteria:
            ratings = judged.on(name)
            sample = ItemBootstrap.of(ratings.items, chance.resamples, chance.seed)
            crowd = crowd_ratings(table, name, panel, ratings, framework.scales.get(name))
            own.append(reliability_row(RowInputs(ratings, figures[name], panel, crowd, framework, sample, every), factors[name]))
            stable += stability(name, ratings, panel, agreement.level, sample)
        rows.append(FrameworkRows(framework, tuple(own)))
    together = overall([row.kappas(part.framework.name) for part in rows for row in part.rows], weights)
    kappas = {row.criterion: {name: placed.kappa for name, placed in row.judges.items()} for part in rows for row in part.rows}
    line = signature_line(
        level=agreement.level, weights=weights, experts=len(panel.experts), judges=len(panel.first), crowd=len(panel.crowd),
        crowd_as=panel.crowd_as, resamples=chance.resamples, seed=chance.seed,
    )  # fmt: skip
    contradicting = tuple(contradiction for framework in frameworks for contradiction in contradictions(table, panel, framework))
    return Reliability(
        agreement.level, weights, panel, tuple(rows), together, tuple(stable), styles(panel.first, kappas), contradicting, line,
        tuple(name for name in table.criteria if name not in judged.criteria),
    )  # fmt: skip


def _factors(
    judged: RatingTable, framework: Framework, panel: Panel, agreement: Agreement, chance: ResamplingSettings
) -> dict[str, Estimate]:
    """Variance inflation factors of the criteria of a framework, among each other."""
    if set(framework.criteria) == set(judged.criteria):
        return agreement.inflation
    own = judged.of_criteria(framework.criteria)
    return variance_inflation(own, [expert for expert in panel.experts if expert in own.raters], chance.resamples, chance.seed)
