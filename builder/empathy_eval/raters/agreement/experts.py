"""The experts' agreement with each other as a benchmark, and where a judge stands against it."""

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
from empathy_eval.raters.agreement.table import STEPS, Ratings
from empathy_eval.statistics.agreement import WEIGHTS, interval_alpha, kappa_measures, kappa_sums, kappas
from empathy_eval.statistics.estimate import Codes, Floats, Measure
from empathy_eval.statistics.resampling import ItemBootstrap, ratio

# How the median is signed.
MEDIAN = signature_line(median="of-other-experts")
# Why there is no F1.
NEITHER = "neither gives such a rating"


@dataclass(frozen=True)
class AgainstMedian:
    """How one rater stands to the median expert; ``binary_f1`` has an entry (threshold, measure) for every value but the lowest."""

    rater: str
    kappa: dict[str, Measure]
    macro_f1: Measure
    binary_f1: tuple[tuple[float, Measure], ...]


@dataclass(frozen=True)
class AtThreshold:
    """F1 of the one question whether a rating is at least ``threshold``."""

    threshold: float
    f1: Measure


@dataclass(frozen=True)
class F1:
    """F1 of a rater against the median expert: over all values (``macro``), and of the binary ones the least, the mean and the most.

    Of equal ones that of the lowest threshold; None where there is one value, and so no threshold. ``guess_macro`` and ``guess_binary``
    are what those are told to reach, on the same items and thresholds, who draw each of the ``values`` of the scale alike.
    """

    macro: Measure
    least: AtThreshold | None
    mean: Measure
    most: AtThreshold | None
    guess_macro: Measure
    guess_binary: Measure
    values: tuple[float, ...]


def medians(counts: Codes) -> tuple[Codes, Codes]:
    """The two middle values of each item (the same twice if their number is odd), as places in the scale.

    ``counts`` has shape (items, steps); items without a rating give nonsense.
    """
    below = 2 * np.cumsum(counts, axis=1)
    total = counts.sum(axis=1, keepdims=True)
    return np.argmax(below >= total, axis=1), np.argmax(below > total, axis=1)


@dataclass(frozen=True)
class Experts:
    """The experts among those who gave ratings (``places``), and how figures beside their median are drawn and signed."""

    ratings: Ratings
    places: Sequence[int]
    sample: ItemBootstrap
    signature: str = MEDIAN

    @cached_property
    def counts(self) -> Codes:
        """How often they gave each item each value, shape (items, steps)."""
        return self.ratings.counts(self.places)


class BesideMedian:
    """One rater beside the median of the experts without that rater, over the items that both have (``items``).

    A median that holds the rater's own rating would flatter an expert beside a judge, so an expert is left out of it. The median of an
    even number of ratings is not always on the scale; where the two middle ratings (``low`` and ``high``, places in the scale) differ
    the item counts half for each of them.
    """

    def __init__(self, experts: Experts, rater: int) -> None:
        self.ratings, self.sample, self.rater = experts.ratings, experts.sample, rater
        self._settings = f"{experts.signature}|{experts.sample.signature}"
        own = self.ratings.of_rater(rater)
        rated = np.flatnonzero(own != MISSING)
        others = experts.counts[rated]
        if rater in experts.places:
            others[np.arange(len(rated)), own[rated]] -= 1
        shared = others.sum(axis=1) > 0
        self.items, self.given = rated[shared], own[rated[shared]]
        self.low, self.high = medians(others[shared])

    @property
    def median(self) -> Floats:
        """The median itself, half-way between the two middle ratings."""
        return (self.ratings.scale[self.low] + self.ratings.scale[self.high]) / 2

    @cached_property
    def _sums(self) -> Floats:
        """The sums of kappa, and after them those of F1, over the table and each resample."""
        twice, steps, sample = np.tile(self.items, 2), len(self.ratings.scale), self.sample
        given, median = np.tile(self.given, 2), np.concatenate([self.low, self.high])
        halves = np.full(len(twice), 0.5)
        # The smaller of the two: both are at a threshold or above where it is.
        both = sample.tally(twice, np.minimum(given, median), steps, halves)
        same = given == median
        equal = sample.tally(twice[same], given[same], steps, halves[same])
        return sample.resampled(np.hstack([kappa_sums(twice, given, median, self.ratings.scale, sample, halves), equal, both]))

    @cached_property
    def kappas(self) -> Floats:
        """Kappa by weight, over the table and each resample, shape (3, 1 + resamples)."""
        return kappas(self._sums, self.ratings.scale)

    @cached_property
    def kappa(self) -> dict[str, Measure]:
        """Kappa by weight."""
        return kappa_measures(self.kappas, len(self.items), self._settings)

    @cached_property
    def _counted(self) -> Floats:
        """Shape (4, 1 + resamples, steps): given by the rater, by the median, by both alike, and the smaller of the two."""
        return np.moveaxis(self._sums[:, 3:].reshape(len(self._sums), 4, len(self.ratings.scale)), 1, 0)

    @cached_property
    def _from(self) -> Floats:
        """The same of ratings that are at least a value, by every value but the lowest."""
        return np.cumsum(self._counted[:, :, ::-1], axis=2)[:, :, ::-1][:, :, 1:]

    @cached_property
    def _binary(self) -> Floats:
        """F1 of "at least this" by threshold, shape (1 + resamples, steps - 1)."""
        given, median, _, both = self._from
        return ratio(2 * both, given + median)

    def _f1(self, column: Floats, reason: str = NEITHER, /, **settings: object) -> Measure:
        line = f"{signature_line(**settings)}|{self._settings}"
        return Measure.of(column, len(self.items), "that other experts have rated", reason, line)

    @cached_property
    def figures(self) -> AgainstMedian:
        """Kappas, macro F1 over the values that occur, and F1 of "at least this" by threshold."""
        given, median, equal, _ = self._counted
        thresholds = zip(self.ratings.scale[1:].tolist(), self._binary.T, strict=True)
        return AgainstMedian(
            self.ratings.raters[self.rater],
            self.kappa,
            self._f1(_mean(ratio(2 * equal, given + median)), f1="macro"),
            tuple((value, self._f1(column, f1="binary", positive=f">={value:g}")) for value, column in thresholds),
        )

    def f1(self, values: Sequence[float]) -> F1:
        """F1, and what guessing from ``values`` reaches, with intervals of the same draws.

        What guessing reaches is F1 of the frequencies that are expected: of a value that is the median's in a share p of items, and is
        guessed with probability q, 2 q p / (q + p). Macro, it is the mean over all ``values``, where one that the median never is counts
        0. Binary, it is the mean over the thresholds at which the rater's own F1 is defined, so that both means are of the same.
        """
        median, scale = self._counted[1], self.ratings.scale
        number = median.sum(axis=1, keepdims=True)
        share, share_from = ratio(median, number), ratio(self._from[1], number)
        guessed_from = np.array([np.mean(np.array(values) >= value) for value in scale[1:]])
        guess = np.where(np.isfinite(self._binary), ratio(2 * guessed_from * share_from, guessed_from + share_from), np.nan)
        macro = np.sum(ratio(2 * share, 1 + len(values) * share), axis=1) / len(values)
        reason = "there is only one value, and so no threshold" if len(scale) < 2 else NEITHER
        guessing = {"guess": "each-value-alike", "values": len(values), "of": "expected-frequencies"}
        ends = [AtThreshold(threshold, one) for threshold, one in self.figures.binary_f1 if one.value is not None]
        return F1(
            self.figures.macro_f1, min(ends, key=_value, default=None),
            self._f1(_mean(self._binary), reason, f1="binary", over="thresholds,mean"), max(ends, key=_value, default=None),
            self._f1(macro, reason, f1="macro", **guessing),
            self._f1(_mean(guess), reason, f1="binary", over="thresholds,mean", **guessing), tuple(values),
        )  # fmt: skip

    def inflation(self, crowd: Crowd | None = None) -> Measure:
        """How far the rater is above the median on average, in points of the scale. A crowd counts as it is, not rounded."""
        given = crowd.at(self.items) if crowd else self.ratings.scale[self.given]
        number, apart = self.sample.totals(self.items, [np.ones(len(self.items)), given - self.median]).T
        line = self.sample.line(mean="rater-minus-median-expert")
        return Measure.of(ratio(apart, number), len(self.items), "that experts have rated", "no item is drawn", line)


def _mean(columns: Floats) -> Floats:
    """The mean over the columns that are defined, NaN where none is."""
    return ratio(np.nansum(columns, axis=1), np.sum(np.isfinite(columns), axis=1))


def _value(one: AtThreshold) -> float:
    return one.f1.value or 0.0


# With more raters than these they are a crowd: their pairs would be thousands, with few items in common each.
PANEL = 30
# Two kappas this close are equal but for rounding.
ALIKE = 1e-12


@dataclass(frozen=True)
class Pair:
    """Two raters and their kappa by weight."""

    raters: tuple[str, str]
    kappa: dict[str, Measure]


@dataclass(frozen=True)
class JudgeAgainstBenchmark:
    """A judge against the benchmark.

    ``median`` is the median kappa with the experts, ``difference`` that minus the benchmark, ``reached`` the number of
    expert pairs, out of ``of``, whose kappa is at most the judge's median (None where that is not defined).
    """

    judge: str
    pairs: tuple[Pair, ...]
    median: Measure
    difference: Measure
    reached: int | None
    of: int


@dataclass(frozen=True)
class Benchmark:
    """Kappa of all pairs of experts, their median (the benchmark) and the judges' standings."""

    weights: str
    pairs: tuple[Pair, ...]
    median: Measure
    judges: tuple[JudgeAgainstBenchmark, ...]


def benchmark(of: Experts, judges: Sequence[int], weights: str) -> Benchmark:
    """The median kappa of the pairs of experts, and each judge's median kappa with the experts beside it.

    The idea is from the comparison of expert, crowd and model ratings of empathy: what experts reach with each other is what can be
    asked of others. Pairs whose kappa is not defined are left out of a median. ``weights`` is one of ``kappa.WEIGHTS``.
    """
    ratings, experts = of.ratings, of.places
    line = of.sample.line(kappa="cohen", weights=weights, median="of-pairs")
    if len(experts) > PANEL:
        crowd = Measure.undefined(f"there are {len(experts)} raters: pairs are compared for at most {PANEL}", line, ratings.items)
        return Benchmark(
            weights, (), crowd, tuple(JudgeAgainstBenchmark(ratings.raters[judge], (), crowd, crowd, None, 0) for judge in judges)
        )

    def measure(values: Floats) -> Measure:
        few = "no pair has a kappa" if len(experts) > 1 else "there are fewer than two experts"
        return Measure.of(values, ratings.items, "rated", few, line)

    pairs, values = pair_up(ratings, list(combinations(experts, 2)), weights, of.sample)
    best, standings = median_of_pairs(values), list[JudgeAgainstBenchmark]()
    for judge in judges:
        own, theirs = pair_up(ratings, [(judge, expert) for expert in experts], weights, of.sample)
        median = median_of_pairs(theirs)
        reached = int(np.sum(values[:, 0] <= median[0] + ALIKE)) if np.isfinite(median[0]) else None
        defined = int(np.sum(np.isfinite(values[:, 0])))
        standings.append(JudgeAgainstBenchmark(ratings.raters[judge], own, measure(median), measure(median - best), reached, defined))
    return Benchmark(weights, pairs, measure(best), tuple(standings))


def median_of_pairs(values: Floats) -> Floats:
    """The median over pairs, shape (pairs, m), without those that are not defined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the median of nothing is NaN, as it should be
        median: Floats = np.nanmedian(values, axis=0)
    return median


def pair_up(ratings: Ratings, pairs: Sequence[tuple[int, int]], weights: str, sample: ItemBootstrap) -> tuple[tuple[Pair, ...], Floats]:
    """Each pair over the items in common, and its kappa of one weight by resample, shape (pairs, 1 + resamples)."""
    found, chosen = [], np.empty((len(pairs), len(sample.weights)))
    for place, (one, other) in enumerate(pairs):
        first, second = ratings.of_rater(one), ratings.of_rater(other)
        items = np.flatnonzero((first != MISSING) & (second != MISSING))
        sums = sample.resampled(kappa_sums(items, first[items], second[items], ratings.scale, sample))
        values = kappas(sums, ratings.scale)
        found.append(Pair((ratings.raters[one], ratings.raters[other]), kappa_measures(values, len(items), sample.signature)))
        # One item in common is no kappa: see Measure.of.
        chosen[place] = values[WEIGHTS.index(weights)] if len(items) > 1 else np.nan
    return tuple(found), chosen


# In such parts of a point the median expert and the crowd are counted where whole numbers are needed.
PARTS = 1000


def crowd_alpha(crowd: Crowd, beside: BesideMedian) -> Measure:
    """Krippendorff's alpha at the interval level of two raters, the median expert and the crowd, neither of them rounded to the scale."""
    both = np.concatenate([beside.median, crowd.at(beside.items)])
    line = signature_line(raters="median-expert,crowd", values=f"in-1/{PARTS}-of-a-point")
    found = interval_alpha(np.tile(beside.items, 2), np.rint(both * PARTS).astype(np.int64), beside.sample)
    return replace(found, signature=f"{line}|{found.signature}")


def steps_of(ratings: Ratings, scale: Scale | None) -> Floats:
    """The values that are counted: all of the rubric's scale; without one all whole numbers from the least to the greatest rating.

    Of a scale that is not of whole numbers, or has very many, these are the ones that occur.
    """
    low, high = (scale.low, scale.high) if scale else (ratings.scale[0], ratings.scale[-1])
    whole = scale.whole if scale else bool(np.all(ratings.scale == np.rint(ratings.scale)))
    return np.arange(low, high + 1) if whole and high - low < STEPS else ratings.scale


def histogram(ratings: Ratings, experts: Sequence[int], raters: Iterable[int], steps: Floats) -> dict[str, tuple[float, ...]]:
    """How often each value is given: by all experts together and by their median, where there are any, and by each of the raters."""
    counts = ratings.counts(experts)
    low, high = medians(counts[counts.sum(axis=1) > 0])
    found: dict[str, Codes | Floats] = {}
    if experts:
        found = {"experts": counts.sum(axis=0), "median expert": np.bincount(np.concatenate([low, high]), minlength=len(ratings.scale)) / 2}
    found |= {ratings.raters[rater]: ratings.counts([rater]).sum(axis=0) for rater in raters}
    place = np.searchsorted(steps, ratings.scale)
    return {name: tuple(np.bincount(place, weights=some, minlength=len(steps)).tolist()) for name, some in found.items()}
