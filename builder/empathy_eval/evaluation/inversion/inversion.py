"""The inversion: scores of metrics by variant, differences and preferences, with intervals and tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import signature_line
from empathy_eval.design.contrasts import Contrast
from empathy_eval.evaluation.inversion.results import PLACES, DetectableEffect, Difference, MetricComparison, MetricRow, correct_p_values
from empathy_eval.metrics.protocol import Array, Diversity, Metric
from empathy_eval.statistics.estimate import (
    CONFIDENCE,
    Clusters,
    Estimate,
    PairwiseComparisons,
    area_under_curve,
    effects,
    jackknife_error,
    percentile_interval,
    shares_won,
    spreads,
    student_interval,
)

# The two-sided quantile of the normal distribution that belongs to CONFIDENCE.
NORMAL = 1.959964
Statistics = Mapping[str, Array]
# By the name of a metric its statistics, made when they are asked for: those of one metric at a time are in memory.
StatisticsOf = Callable[[str], Statistics]
# A metric, and its statistics of the pairs and of those with controls, by variant; without scores of controls the last are empty.
Scores = tuple[Metric, Statistics, Statistics]
Key = TypeVar("Key", bound=Hashable)
Rows = NDArray[np.bool_]


@dataclass(frozen=True)
class ResamplingSettings:
    """Settings of resampling: resamples of an interval, permutations of a p-value, and the seed of both.

    With a ``limit`` no more than so many pairs are measured, drawn by the seed and their ids.
    """

    resamples: int
    exchanges: int
    seed: int
    limit: int | None = None

    def signature(self, clusters: Clusters) -> str:
        """Returns the settings behind intervals and p-values over these dialogues."""
        return self.of_intervals(clusters, p="exchange-within-dialogue,two-sided", exchanges=self.exchanges, auc="Obuchowski,normal")

    def of_intervals(self, clusters: Clusters, **tests: object) -> str:
        """Returns the settings behind intervals over these dialogues, and behind ``tests`` of them."""
        return signature_line(
            interval="bootstrap,Rao-Wu,percentile", level=CONFIDENCE, resamples=self.resamples, **tests, unit="dialogue",
            strata="scenario,singles-pooled", dialogues=len(clusters), seed=self.seed, numpy=np.__version__, **self.drawn,
        )  # fmt: skip

    @property
    def drawn(self) -> dict[str, str]:
        """The entry of signatures for a sample of pairs; empty without a limit."""
        return {"pairs": f"{self.limit},drawn,sha256"} if self.limit else {}


def metric_rows(
    metrics: Sequence[Metric], statistics: StatisticsOf, clusters: Clusters, contrasts: Sequence[Contrast], chance: ResamplingSettings
) -> list[MetricRow]:
    """Returns one row per metric, from statistics of each variant, shape (pairs, k); p-values are corrected over all of them.

    All metrics share the resamples, which are drawn once. A single dialogue has neither intervals nor p-values.
    """
    if not metrics:
        return []
    both = list(product(metrics, contrasts))
    ranked = {(metric.name, contrast.name): compare_pairs(metric, statistics(metric.name), contrast) for metric, contrast in both}
    totals = {(metric.name, name): clusters.totals(values) for metric in metrics for name, values in statistics(metric.name).items()}
    won = {key: clusters.totals(duels.sums()) for key, duels in ranked.items() if duels.sides}
    many = len(clusters) > 1
    drawn = resample_sums(totals | won, clusters, chance) if many else {}
    exchanged = {contrast.name: _exchanged(metrics, totals, clusters, contrast, chance) for contrast in contrasts} if many else {}
    rows = []
    for metric in metrics:
        sums = {name: total.sum(axis=0, keepdims=True) for (of, name), total in totals.items() if of == metric.name}
        scores = {name: round(float(metric.aggregate(total)[0]), metric.places) for name, total in sums.items()}
        several = {name: metric.aggregate(drawn[metric.name, name]) for name in sums} if many else {}
        differences = {}
        for contrast in contrasts:
            low, high = percentile_interval(_weighted(contrast, several), metric.places) if many else (None, None)
            p = _p_value(metric, sums, exchanged[contrast.name], contrast) if many else None
            forced = contrast.forced and "reference" in metric.reads
            value = round(sum(weight * scores[name] for name, weight in contrast.weights.items()), metric.places)
            difference = Difference(value, low, high, p, forced=forced, higher_is_better=metric.higher_is_better)
            key = metric.name, contrast.name
            differences[contrast.name] = _ranking(difference, ranked[key], clusters, won[key], drawn.get(key)) if key in won else difference
        settings = chance.signature(clusters)
        rows.append(MetricRow(metric.name, metric.signature, settings, scores, differences, len(clusters.members), metric.higher_is_better))
    return correct_p_values(rows)


def group_by_rows(masks: Mapping[Key, Rows]) -> list[tuple[Rows, list[Key]]]:
    """Groups keys by equal masks of rows; empty masks are left out."""
    keys_by_mask: dict[bytes, list[Key]] = {}
    for key, mask in masks.items():
        keys_by_mask.setdefault(mask.tobytes(), []).append(key)
    return [(rows, keys) for mask, keys in keys_by_mask.items() if (rows := np.frombuffer(mask, dtype=bool)).any()]


def resample_sums(tables: Mapping[Key, Array], clusters: Clusters, chance: ResamplingSettings) -> dict[Key, Array]:
    """Returns sums of tables by dialogue over resampled dialogues, which are drawn once for all of them."""
    return _columnwise(tables, lambda stacked: clusters.bootstrap(stacked, chance.resamples, chance.seed))


def _columnwise(tables: Mapping[Key, Array], work: Callable[[Array], Array]) -> dict[Key, Array]:
    """Applies ``work`` to tables of equal height side by side, and splits the result."""
    ends = np.cumsum([table.shape[1] for table in tables.values()])[:-1]
    return dict(zip(tables, np.split(work(np.hstack(list(tables.values()))), ends, axis=1), strict=True))


def _weighted(contrast: Contrast, values: Mapping[str, Array]) -> Array:
    return np.asarray(sum(weight * values[name] for name, weight in contrast.weights.items()))


def _exchanged(
    metrics: Sequence[Metric], totals: Mapping[tuple[str, str], Array], clusters: Clusters, contrast: Contrast, chance: ResamplingSettings
) -> dict[tuple[str, str], Array]:
    """Returns by metric and variant the change of its sums when it is swapped with its mirror in random dialogues."""
    first = [name for name in contrast.weights if name < contrast.mirror[name]]
    keys = [(metric.name, name) for metric in metrics for name in first]
    change = {(metric, name): totals[metric, contrast.mirror[name]] - totals[metric, name] for metric, name in keys}
    gained = _columnwise(change, lambda stacked: clusters.permute(stacked, chance.exchanges, chance.seed))
    return gained | {(metric, contrast.mirror[name]): -gain for (metric, name), gain in gained.items()}


def _p_value(metric: Metric, sums: Mapping[str, Array], gained: Mapping[tuple[str, str], Array], contrast: Contrast) -> float:
    """Returns the share of permutations with a contrast at least as far from 0; the observed one counts as one of them."""
    observed = abs(float(_weighted(contrast, {name: metric.aggregate(total) for name, total in sums.items()})[0]))
    permuted = {name: metric.aggregate(sums[name] + gained[metric.name, name]) for name in contrast.weights}
    far = np.abs(_weighted(contrast, permuted)) >= observed - 1e-12
    return round((1 + int(far.sum())) / (1 + len(far)), PLACES)


def metric_scores(metric: Metric, statistics: Array) -> Array:
    """Returns the scores of texts, rounded to the places that are equal in every process; nan without a score."""
    has = ~np.isnan(statistics[:, 0])
    scores = np.full(len(statistics), np.nan)
    if has.any():
        scores[has] = np.round(metric.scores(statistics[has]), metric.places)
    return scores


def directed_scores(metric: Metric, statistics: Array) -> Array:
    """Returns the scores of texts, negated where lower is better."""
    return -metric_scores(metric, statistics) if metric.higher_is_better is False else metric_scores(metric, statistics)


def compare_pairs(metric: Metric, statistics: Statistics, contrast: Contrast) -> PairwiseComparisons:
    """Returns the scores of both variants of each duel, higher is better; no duel where a contrast compares no stances."""
    scores = {name: directed_scores(metric, statistics[name]) for duel in contrast.duels for name in duel}
    return PairwiseComparisons([(scores[kind], scores[cold]) for kind, cold in contrast.duels])


def _ranking(difference: Difference, duels: PairwiseComparisons, clusters: Clusters, won: Array, drawn: Array | None) -> Difference:
    """Returns the difference with its pairwise figures, from sums of its duels by dialogue and resampled sums."""
    sums = won.sum(axis=0, keepdims=True)
    accuracy, effect = (estimate(float(rate(sums)[0]), None if drawn is None else rate(drawn)) for rate in (shares_won, effects))
    auc = _auc(duels.sides[0], clusters, drawn is not None) if len(duels.sides) == 1 else None
    return replace(difference, accuracy=accuracy, effect=effect, auc=auc, ties=round(duels.ties, PLACES))


def estimate(value: float, drawn: Array | None) -> Estimate | None:
    """Returns a figure with its percentile interval, if all resamples have a value; None where the figure is not defined."""
    if not np.isfinite(value):
        return None
    bounds = percentile_interval(drawn, PLACES) if drawn is not None and np.isfinite(drawn).all() else (None, None)
    return Estimate(round(value, PLACES), *bounds)


def _auc(sides: tuple[Array, Array], clusters: Clusters, many: bool) -> Estimate:
    """Returns the area under the curve with its normal interval."""
    value, error = area_under_curve(*sides, clusters.members)
    if not many or error is None:
        return Estimate(round(value, PLACES))
    bounds = (round(max(value - NORMAL * error, 0.0), PLACES), round(min(value + NORMAL * error, 1.0), PLACES))
    return Estimate(round(value, PLACES), *bounds)


def accuracies(won: Sequence[Array], clusters: Clusters, chance: ResamplingSettings) -> list[Estimate]:
    """Returns the accuracy of each of several raters, from its wins by pair; a single dialogue has no interval."""
    values = [round(float(shares.mean()), PLACES) for shares in won]
    if len(clusters) < 2:
        return [Estimate(value) for value in values]
    drawn = clusters.bootstrap(clusters.totals(np.column_stack([*won, np.ones(len(won[0]))])), chance.resamples, chance.seed)
    return [Estimate(value, *percentile_interval(drawn[:, place] / drawn[:, -1], PLACES)) for place, value in enumerate(values)]


def diversity_row(
    measure: Diversity, variants: Mapping[str, Sequence[str]], dialogues: Sequence[str], contrasts: Sequence[Contrast], seed: int
) -> MetricRow:
    """Returns the row of a measure of whole sets of texts: without pairwise figures and p-value."""
    values, words = measure.measure(variants, dialogues, seed)
    scores = {name: round(float(of_variant[0]), PLACES) for name, of_variant in values.items()}
    differences = {}
    for contrast in contrasts:
        value = round(sum(weight * scores[name] for name, weight in contrast.weights.items()), PLACES)
        half = NORMAL * jackknife_error(_weighted(contrast, values)) if len(next(iter(values.values()))) > 1 else None
        bounds = (None, None) if half is None else (round(value - half, PLACES), round(value + half, PLACES))
        differences[contrast.name] = Difference(value, *bounds)
    settings = f"{measure.signature}|words:{words}|dialogues:{len(next(iter(values.values()))) - 1}|seed:{seed}"
    return MetricRow(measure.name, settings, None, scores, differences, len(dialogues))


# Exchanges behind each p-value: the smallest that can come out is 1 / 2,000.
EXCHANGES = 1999


Two = tuple[str, str]
# Sums that differ by less are the same.
TIED = 1e-9


@dataclass(frozen=True)
class ScoredPairs:
    """The duels of a metric over all pairs, nan without a score, and its signature."""

    duels: PairwiseComparisons
    signature: str

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Which pairs have scores."""
        return np.asarray(~np.isnan(self.duels.won()))

    def take(self, rows: NDArray[Any]) -> ScoredPairs:
        """Returns the duels of these pairs."""
        return ScoredPairs(PairwiseComparisons([(kind[rows], cold[rows]) for kind, cold in self.duels.sides]), self.signature)


def compare_metrics(
    contrast: str, rated: Mapping[str, ScoredPairs], clusters: Clusters, chance: ResamplingSettings
) -> list[MetricComparison]:
    """Compares every two metrics in a contrast, over the pairs that both have scores of; two without any are left out.

    Intervals are of the resamples of all other figures and Student's distribution. A p-value is of the exchange of the two metrics within
    dialogues, their scores in units of their spread for the effect, ties half (mid-p); p-values are corrected over all comparisons of the
    contrast.
    """
    has = {name: pairs.scored for name, pairs in rated.items()}
    both = {(first, second): has[first] & has[second] for first, second in combinations(rated, 2)}
    comparisons: dict[Two, MetricComparison] = {}
    for common, couples in group_by_rows(both):
        shared = {name: rated[name].take(common) for couple in couples for name in couple}
        comparisons |= {(row.first, row.other): row for row in _over(contrast, couples, shared, clusters.take(common), chance)}
    return correct_p_values(comparisons[couple] for couple in both if couple in comparisons)


def _over(
    contrast: str, couples: Sequence[Two], rated: Mapping[str, ScoredPairs], clusters: Clusters, chance: ResamplingSettings
) -> Iterator[MetricComparison]:
    """Yields comparisons over the same pairs, with the same resamples and permutations."""
    totals = {name: clusters.totals(pairs.duels.sums()) for name, pairs in rated.items()}
    whole = {name: total.sum(axis=0, keepdims=True) for name, total in totals.items()}
    # What each dialogue adds to the two figures of each two.
    gaps = (_gaps((rated[first], whole[first]), (rated[second], whole[second])) for first, second in couples)
    added = np.hstack([clusters.totals(gap) for gap in gaps])
    if many := len(clusters) > 1:
        drawn = resample_sums(totals, clusters, chance)
        swapped = added.sum(axis=0) + clusters.permute(-2 * added, chance.exchanges, chance.seed)
    for place, (first, second) in enumerate(couples):
        accuracy, effect = (
            estimate_difference(
                float(rate(whole[first])[0] - rate(whole[second])[0]),
                (rate(drawn[first]) - rate(drawn[second]), swapped[:, column], added[:, column].sum()) if many else None,
                clusters.degrees_of_freedom,
            )
            for column, rate in enumerate((shares_won, effects), 2 * place)
        )
        settings = f"{chance.signature(clusters)}|ties:half|interval:student,freedom:{clusters.degrees_of_freedom}"
        signature = f"{rated[first].signature}|minus|{rated[second].signature}|{settings}"
        defined = effect if np.isfinite(effect.number) else None
        yield MetricComparison(first, second, contrast, len(clusters.members), accuracy, defined, signature)


def _gaps(first: tuple[ScoredPairs, Array], second: tuple[ScoredPairs, Array]) -> Array:
    """Returns by pair its part of the difference of accuracy, and of standardised effect."""
    (first_pairs, first_sums), (second_pairs, second_sums) = first, second
    pulled = first_pairs.duels.pull / spreads(first_sums) - second_pairs.duels.pull / spreads(second_sums)
    return np.column_stack([first_pairs.duels.won() - second_pairs.duels.won(), pulled])


def estimate_difference(value: float, chances: tuple[Array, Array, float] | None, freedom: int) -> Estimate:
    """Returns a difference with the interval of its resamples and the p-value of its permutations."""
    if chances is None:
        return Estimate(round(value, PLACES))
    drawn, swapped, observed = chances
    low, high = student_interval(value, drawn, freedom, PLACES) if freedom and np.isfinite(drawn).all() else (None, None)
    beyond = np.abs(swapped) - abs(observed)
    # Wins are few whole numbers, so exchanges as far from 0 as what was seen count half: without that p is too high.
    far = float((beyond > TIED).sum() + (np.abs(beyond) <= TIED).sum() / 2)
    p = (1 + far) / (1 + len(swapped)) if abs(observed) > TIED else 1.0
    return Estimate(round(value, PLACES), low, high, round(p, PLACES))


POWER = 0.8
# The quantile of the normal distribution that belongs to POWER.
_REACHED = 0.841621
# An accuracy without any skill.
NO_SKILL = 0.5


def detectable_effect(rows: Sequence[MetricRow], contrast: Contrast, pairs: int) -> DetectableEffect:
    """Returns the smallest true accuracy and effect that a test at 5 % would have found in 4 of 5 such releases.

    The standard error is the largest that a metric with a better direction has here, from its interval, where the checks force nothing;
    and at least that of pairs that have nothing to do with each other: one half, and the square root of 2, over the square root of the
    number of duels.
    """
    directed = [row.differences for row in rows if row.higher_is_better is not None]
    differences = [difference for by_contrast in directed if (difference := by_contrast.get(contrast.name)) and not difference.forced]
    duels = pairs * len(contrast.duels)
    accuracy = _reach(NO_SKILL / math.sqrt(duels), (difference.accuracy for difference in differences))
    effect = _reach(math.sqrt(2 / duels), (difference.effect for difference in differences))
    settings = signature_line(power=POWER, level=round(1 - CONFIDENCE, 2), sides=2, error="largest-of-metrics,at-least-independent")
    return DetectableEffect(pairs, round(min(NO_SKILL + accuracy, 1.0), PLACES), round(effect, PLACES), settings)


def _reach(least: float, estimates: Iterable[Estimate | None]) -> float:
    """Returns the smallest detectable distance from the null value, from the standard errors of estimates."""
    intervals = [estimate.interval for estimate in estimates if estimate]
    errors = [(interval[1] - interval[0]) / 2 / NORMAL for interval in intervals if interval]
    return (NORMAL + _REACHED) * max([least, *errors])
