"""The experts' agreement as a benchmark, and the agreement of judges with the median expert."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.design.rubrics import Scale
from empathy_eval.raters.agreement.columns import MISSING
from empathy_eval.raters.agreement.panel import Crowd
from empathy_eval.raters.agreement.table import STEPS, CriterionRatings
from empathy_eval.statistics.agreement import WEIGHTS, ItemBootstrap, cohen_kappas, interval_alpha, kappa_estimates, kappa_sums, ratio
from empathy_eval.statistics.estimate import Codes, Estimate, Floats

# Signature of the median.
MEDIAN = signature_line(median="of-other-experts")
# Why there is no F1.
NEITHER = "neither gives such a rating"


@dataclass(frozen=True)
class AgainstMedian:
    """Agreement of a rater with the median expert; ``binary_f1`` has (threshold, measure) for every value but the lowest."""

    rater: str
    kappa: dict[str, Estimate]
    macro_f1: Estimate
    binary_f1: tuple[tuple[float, Estimate], ...]


@dataclass(frozen=True)
class AtThreshold:
    """F1 of the binary question whether a rating is at least ``threshold``."""

    threshold: float
    f1: Estimate


@dataclass(frozen=True)
class F1:
    """F1 of a rater against the median expert: over all values (``macro``), and the least, mean and greatest of the binary ones.

    Of equal ones the lowest threshold counts; None if there is one value, and so no threshold. ``guess_macro`` and ``guess_binary`` are the
    expected F1 of guessing each of the ``values`` of the scale with equal probability, on the same items and thresholds.
    """

    macro: Estimate
    least: AtThreshold | None
    mean: Estimate
    most: AtThreshold | None
    guess_macro: Estimate
    guess_binary: Estimate
    values: tuple[float, ...]


def medians(counts: Codes) -> tuple[Codes, Codes]:
    """The two middle values of each item (equal if the number of ratings is odd), as indices of the scale.

    ``counts`` has shape (items, steps); the result is meaningless for items without a rating.
    """
    below = 2 * np.cumsum(counts, axis=1)
    total = counts.sum(axis=1, keepdims=True)
    return np.argmax(below >= total, axis=1), np.argmax(below > total, axis=1)


@dataclass(frozen=True)
class Experts:
    """The experts among the raters (``places``), and the bootstrap sample and signature of figures against their median."""

    ratings: CriterionRatings
    places: Sequence[int]
    sample: ItemBootstrap
    signature: str = MEDIAN

    @cached_property
    def counts(self) -> Codes:
        """How often they gave each item each value, shape (items, steps)."""
        return self.ratings.counts(self.places)


class RaterAgainstMedian:
    """One rater against the median of the experts without that rater, over the items that both rated (``items``).

    A median with the rater's own rating would favour experts over judges, so an expert is left out of it. The median of an even number of
    ratings may be off the scale; if the two middle ratings (``low`` and ``high``, indices of the scale) differ, the item counts half for
    each.
    """

    def __init__(self, experts: Experts, rater: int) -> None:
        self.ratings, self.sample, self.rater = experts.ratings, experts.sample, rater
        self._settings = f"{experts.signature}|{experts.sample.signature}"
        own = self.ratings.of_rater(rater)
        rated = np.flatnonzero(own != MISSING)
        other_experts = experts.counts[rated]
        if rater in experts.places:
            other_experts[np.arange(len(rated)), own[rated]] -= 1
        shared = other_experts.sum(axis=1) > 0
        self.items, self.own = rated[shared], own[rated[shared]]
        self.low, self.high = medians(other_experts[shared])

    @property
    def median(self) -> Floats:
        """The median itself, half-way between the two middle ratings."""
        return (self.ratings.scale[self.low] + self.ratings.scale[self.high]) / 2

    @cached_property
    def _sums(self) -> Floats:
        """Sums for kappa, then those for F1, over the table and each resample."""
        twice, steps, sample = np.tile(self.items, 2), len(self.ratings.scale), self.sample
        own, median = np.tile(self.own, 2), np.concatenate([self.low, self.high])
        halves = np.full(len(twice), 0.5)
        # Both ratings reach a threshold if the smaller one does.
        both = sample.tally(twice, np.minimum(own, median), steps, halves)
        same = own == median
        equal = sample.tally(twice[same], own[same], steps, halves[same])
        return sample.resample(np.hstack([kappa_sums(twice, own, median, self.ratings.scale, sample, halves), equal, both]))

    @cached_property
    def kappas(self) -> Floats:
        """Kappa by weights, over the table and each resample, shape (3, 1 + resamples)."""
        return cohen_kappas(self._sums, self.ratings.scale)

    @cached_property
    def kappa(self) -> dict[str, Estimate]:
        """Kappa by weights."""
        return kappa_estimates(self.kappas, len(self.items), self._settings)

    @cached_property
    def _counted(self) -> Floats:
        """Shape (4, 1 + resamples, steps): counts by the rater, by the median, by both alike, and of the smaller of the two."""
        return np.moveaxis(self._sums[:, 3:].reshape(len(self._sums), 4, len(self.ratings.scale)), 1, 0)

    @cached_property
    def _from(self) -> Floats:
        """The same for ratings of at least a value, by every value but the lowest."""
        return np.cumsum(self._counted[:, :, ::-1], axis=2)[:, :, ::-1][:, :, 1:]

    @cached_property
    def _binary(self) -> Floats:
        """F1 of "at least this" by threshold, shape (1 + resamples, steps - 1)."""
        own, median, _, both = self._from
        return ratio(2 * both, own + median)

    def _f1(self, column: Floats, reason: str = NEITHER, /, **settings: object) -> Estimate:
        line = f"{signature_line(**settings)}|{self._settings}"
        return Estimate.of_resamples(column, len(self.items), "that other experts have rated", reason, line)

    @cached_property
    def figures(self) -> AgainstMedian:
        """Kappas, macro F1 over the values that occur, and F1 of "at least this" by threshold."""
        own, median, equal, _ = self._counted
        thresholds = zip(self.ratings.scale[1:].tolist(), self._binary.T, strict=True)
        binary = tuple((value, self._f1(column, f1="binary", positive=f">={value:g}")) for value, column in thresholds)
        macro = self._f1(_mean(ratio(2 * equal, own + median)), f1="macro")
        return AgainstMedian(self.ratings.raters[self.rater], self.kappa, macro, binary)

    def f1(self, values: Sequence[float]) -> F1:
        """F1, and the F1 of guessing from ``values``, with intervals from the same draws.

        The F1 of guessing is that of expected frequencies: for a value that is the median's in a share p of items, and is guessed with
        probability q, it is 2 q p / (q + p). Macro F1 is the mean over all ``values``, of which those that the median never is count 0.
        Binary F1 is the mean over the thresholds at which the rater's own F1 is defined, so that both means are comparable.
        """
        median, scale = self._counted[1], self.ratings.scale
        number = median.sum(axis=1, keepdims=True)
        share, share_from = ratio(median, number), ratio(self._from[1], number)
        guessed_from = np.array([np.mean(np.array(values) >= value) for value in scale[1:]])
        guess = np.where(np.isfinite(self._binary), ratio(2 * guessed_from * share_from, guessed_from + share_from), np.nan)
        macro = np.sum(ratio(2 * share, 1 + len(values) * share), axis=1) / len(values)
        reason = "there is only one value, and so no threshold" if len(scale) < 2 else NEITHER
        guessing = {"guess": "each-value-alike", "values": len(values), "of": "expected-frequencies"}
        ends = [AtThreshold(threshold, f1) for threshold, f1 in self.figures.binary_f1 if f1.value is not None]
        return F1(
            self.figures.macro_f1, min(ends, key=_value, default=None),
            self._f1(_mean(self._binary), reason, f1="binary", over="thresholds,mean"), max(ends, key=_value, default=None),
            self._f1(macro, reason, f1="macro", **guessing),
            self._f1(_mean(guess), reason, f1="binary", over="thresholds,mean", **guessing), tuple(values),
        )  # fmt: skip

    def inflation(self, crowd: Crowd | None = None) -> Estimate:
        """Mean difference of the rater from the median, in points of the scale. A crowd's values are not rounded."""
        ratings = crowd.at(self.items) if crowd else self.ratings.scale[self.own]
        number, apart = self.sample.totals(self.items, [np.ones(len(self.items)), ratings - self.median]).T
        line = self.sample.line(mean="rater-minus-median-expert")
        return Estimate.of_resamples(ratio(apart, number), len(self.items), "that experts have rated", "no item is drawn", line)


def _mean(columns: Floats) -> Floats:
    """Mean over the columns that are defined, NaN if none is."""
    return ratio(np.nansum(columns, axis=1), np.sum(np.isfinite(columns), axis=1))


def _value(at: AtThreshold) -> float:
    return at.f1.value or 0.0


# More experts are not compared in pairs: there would be thousands, with few items in common each.
PANEL = 30
# Kappas this close are equal up to rounding.
ALIKE = 1e-12


@dataclass(frozen=True)
class RaterPair:
    """Two raters and their kappa by weights."""

    raters: tuple[str, str]
    kappa: dict[str, Estimate]


@dataclass(frozen=True)
class JudgeAgainstBenchmark:
    """A judge against the benchmark.

    ``median`` is the median kappa with the experts, ``difference`` that minus the benchmark, ``reached`` the number of expert pairs, out of
    ``of``, whose kappa is at most the judge's median (None if that is undefined).
    """

    judge: str
    pairs: tuple[RaterPair, ...]
    median: Estimate
    difference: Estimate
    reached: int | None
    of: int


@dataclass(frozen=True)
class Benchmark:
    """Kappa of all pairs of experts, their median (the benchmark), and the judges against it."""

    weights: str
    pairs: tuple[RaterPair, ...]
    median: Estimate
    judges: tuple[JudgeAgainstBenchmark, ...]


def benchmark(panel: Experts, judges: Sequence[int], weights: str) -> Benchmark:
    """Median kappa of the pairs of experts, and each judge's median kappa with the experts.

    The agreement that experts reach with each other is what can be asked of others. Pairs with an undefined kappa are left out of a median.
    ``weights`` is one of ``WEIGHTS``.
    """
    ratings, experts = panel.ratings, panel.places
    line = panel.sample.line(kappa="cohen", weights=weights, median="of-pairs")
    if len(experts) > PANEL:
        crowd = Estimate.undefined(f"there are {len(experts)} raters: pairs are compared for at most {PANEL}", line, ratings.items)
        return Benchmark(
            weights, (), crowd, tuple(JudgeAgainstBenchmark(ratings.raters[judge], (), crowd, crowd, None, 0) for judge in judges)
        )

    def measure(values: Floats) -> Estimate:
        few = "no pair has a kappa" if len(experts) > 1 else "there are fewer than two experts"
        return Estimate.of_resamples(values, ratings.items, "rated", few, line)

    pairs, values = pairwise_kappas(ratings, list(combinations(experts, 2)), weights, panel.sample)
    best, standings = median_of_pairs(values), list[JudgeAgainstBenchmark]()
    for judge in judges:
        own, values_of = pairwise_kappas(ratings, [(judge, expert) for expert in experts], weights, panel.sample)
        median = median_of_pairs(values_of)
        reached = int(np.sum(values[:, 0] <= median[0] + ALIKE)) if np.isfinite(median[0]) else None
        defined = int(np.sum(np.isfinite(values[:, 0])))
        standings.append(JudgeAgainstBenchmark(ratings.raters[judge], own, measure(median), measure(median - best), reached, defined))
    return Benchmark(weights, pairs, measure(best), tuple(standings))


def median_of_pairs(values: Floats) -> Floats:
    """Median over pairs, shape (pairs, m), ignoring undefined ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the median of nothing is NaN, as it should be
        median: Floats = np.nanmedian(values, axis=0)
    return median


def pairwise_kappas(
    ratings: CriterionRatings, pairs: Sequence[tuple[int, int]], weights: str, sample: ItemBootstrap
) -> tuple[tuple[RaterPair, ...], Floats]:
    """Each pair over the items in common, and its kappa of one weighting by resample, shape (pairs, 1 + resamples)."""
    rows, chosen = [], np.empty((len(pairs), len(sample.weights)))
    for index, pair in enumerate(pairs):
        first, second = map(ratings.of_rater, pair)
        items = np.flatnonzero((first != MISSING) & (second != MISSING))
        sums = sample.resample(kappa_sums(items, first[items], second[items], ratings.scale, sample))
        values = cohen_kappas(sums, ratings.scale)
        names = (ratings.raters[pair[0]], ratings.raters[pair[1]])
        rows.append(RaterPair(names, kappa_estimates(values, len(items), sample.signature)))
        # One item in common defines no kappa: see Estimate.of_resamples.
        chosen[index] = values[WEIGHTS.index(weights)] if len(items) > 1 else np.nan
    return tuple(rows), chosen


# Fractions of a point in which the median expert and the crowd are counted where integers are needed.
PARTS = 1000


def crowd_alpha(crowd: Crowd, agreement: RaterAgainstMedian) -> Estimate:
    """Krippendorff's interval alpha of the median expert and the crowd, neither rounded to the scale."""
    both = np.concatenate([agreement.median, crowd.at(agreement.items)])
    line = signature_line(raters="median-expert,crowd", values=f"in-1/{PARTS}-of-a-point")
    alpha = interval_alpha(np.tile(agreement.items, 2), np.rint(both * PARTS).astype(np.int64), agreement.sample)
    return replace(alpha, signature=f"{line}|{alpha.signature}")


def counted_values(ratings: CriterionRatings, scale: Scale | None) -> Floats:
    """Values to be counted: all of the rubric's scale; without one all whole numbers from the least to the greatest rating.

    For scales of other numbers, or with very many, only the values that occur.
    """
    low, high = (scale.low, scale.high) if scale else (ratings.scale[0], ratings.scale[-1])
    whole = scale.whole if scale else bool(np.all(ratings.scale == np.rint(ratings.scale)))
    return np.arange(low, high + 1) if whole and high - low < STEPS else ratings.scale


def histogram(ratings: CriterionRatings, experts: Sequence[int], raters: Iterable[int], steps: Floats) -> dict[str, tuple[float, ...]]:
    """How often each value is given: by all experts together and by their median, if there are any, and by each of the raters."""
    counts = ratings.counts(experts)
    low, high = medians(counts[counts.sum(axis=1) > 0])
    counted: dict[str, Codes | Floats] = {}
    if experts:
        median = np.bincount(np.concatenate([low, high]), minlength=len(ratings.scale)) / 2
        counted = {"experts": counts.sum(axis=0), "median expert": median}
    counted |= {ratings.raters[rater]: ratings.counts([rater]).sum(axis=0) for rater in raters}
    step = np.searchsorted(steps, ratings.scale)
    return {name: tuple(np.bincount(step, weights=values, minlength=len(steps)).tolist()) for name, values in counted.items()}
