"""The experts' agreement with each other as a benchmark, and where a judge stands against it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class AgainstMedian:
    """How one rater stands to the median expert; ``binary_f1`` has an entry (threshold, measure) for every value but the lowest."""

    rater: str
    kappa: dict[str, Measure]
    macro_f1: Measure
    binary_f1: tuple[tuple[float, Measure], ...]


def medians(counts: Codes) -> tuple[Codes, Codes]:
    """The two middle values of each item (the same twice if their number is odd), as places in the scale.

    ``counts`` has shape (items, steps); items without a rating give nonsense.
    """
    below = 2 * np.cumsum(counts, axis=1)
    total = counts.sum(axis=1, keepdims=True)
    return np.argmax(below >= total, axis=1), np.argmax(below > total, axis=1)


def against_median(ratings: Ratings, rater: int, experts: Sequence[int], counts: Codes, sample: ItemBootstrap) -> AgainstMedian:
    """One rater against the median of the experts without that rater, over the items that both have.

    A median that holds the rater's own rating would flatter an expert beside a judge, so an expert is left out of it. The median of an
    even number of ratings is not always on the scale; where the two middle ratings differ the item counts half for each of them.
    ``counts`` are those of all experts, shape (items, steps).
    """
    items, low, high = beside_median(ratings, rater, experts, counts)
    sums = median_sums(ratings, rater, (items, low, high), sample)
    settings = f"{MEDIAN}|{sample.signature}"
    return AgainstMedian(
        ratings.raters[rater],
        kappa_measures(kappas(sums, ratings.scale), len(items), settings),
        *_f1(sums[:, 3:].reshape(len(sums), 4, len(ratings.scale)), ratings.scale, len(items), settings),
    )


def beside_median(ratings: Ratings, rater: int, experts: Sequence[int], counts: Codes) -> tuple[Codes, Codes, Codes]:
    """The items that a rater and another expert rated, and the two middle values of those others, as places in the scale."""
    own = ratings.of_rater(rater)
    rated = np.flatnonzero(own != MISSING)
    others = counts[rated]
    if rater in experts:
        others[np.arange(len(rated)), own[rated]] -= 1
    shared = others.sum(axis=1) > 0
    return rated[shared], *medians(others[shared])


def median_sums(ratings: Ratings, rater: int, beside: tuple[Codes, Codes, Codes], sample: ItemBootstrap) -> Floats:
    """The sums of kappa, and after them those of F1, of a rater and what :func:`beside_median` found, over the table and each resample."""
    items, low, high = beside
    twice = np.tile(items, 2)
    given, median = ratings.of_rater(rater)[twice], np.concatenate([low, high])
    halves = np.full(len(twice), 0.5)
    # The smaller of the two: both are at a threshold or above where it is.
    both = sample.tally(twice, np.minimum(given, median), len(ratings.scale), halves)
    same = given == median
    equal = sample.tally(twice[same], given[same], len(ratings.scale), halves[same])
    return sample.resampled(np.hstack([kappa_sums(twice, given, median, ratings.scale, sample, halves), equal, both]))


def _f1(sums: Floats, scale: Floats, items: int, settings: str) -> tuple[Measure, tuple[tuple[float, Measure], ...]]:
    """Macro F1 over the values that occur, and F1 of "at least this" by threshold.

    ``sums`` has shape (1 + resamples, 4, steps): given by the rater, by the median, by both alike, and the smaller of the two.
    """
    given, median, equal, both = np.moveaxis(sums, 1, 0)
    by_value = ratio(2 * equal, given + median)
    macro = ratio(np.nansum(by_value, axis=1), np.sum(np.isfinite(by_value), axis=1))
    above, given, median = (np.cumsum(part[:, ::-1], axis=1)[:, ::-1] for part in (both, given, median))
    binary = ratio(2 * above, given + median)
    kind, none = "that other experts have rated", "neither gives such a rating"
    return Measure.of(macro, items, kind, none, signature_line(f1="macro") + f"|{settings}"), tuple(
        (float(value), Measure.of(column, items, kind, none, signature_line(f1="binary", positive=f">={value:g}") + f"|{settings}"))
        for value, column in zip(scale[1:], binary.T[1:], strict=True)
    )


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
class Standing:
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
    judges: tuple[Standing, ...]


def benchmark(ratings: Ratings, experts: Sequence[int], judges: Sequence[int], weights: str, sample: ItemBootstrap) -> Benchmark:
    """The median kappa of the pairs of experts, and each judge's median kappa with the experts beside it.

    The idea is from the comparison of expert, crowd and model ratings of empathy: what experts reach with each other is what can be
    asked of others. Pairs whose kappa is not defined are left out of a median. ``weights`` is one of ``kappa.WEIGHTS``.
    """
    line = signature_line(kappa="cohen", weights=weights, median="of-pairs") + f"|{sample.signature}"
    if len(experts) > PANEL:
        crowd = Measure.undefined(f"there are {len(experts)} raters: pairs are compared for at most {PANEL}", line, ratings.items)
        alone = (Standing(ratings.raters[judge], (), crowd, crowd, None, 0) for judge in judges)
        return Benchmark(weights, (), crowd, tuple(alone))

    def median_of(values: Floats) -> Measure:
        few = "no pair has a kappa" if len(experts) > 1 else "there are fewer than two experts"
        return Measure.of(values, ratings.items, "rated", few, line)

    pairs, values = pair_up(ratings, list(combinations(experts, 2)), weights, sample)
    standings = []
    for judge in judges:
        own, theirs = pair_up(ratings, [(judge, expert) for expert in experts], weights, sample)
        median, difference = median_of_pairs(theirs), median_of_pairs(theirs) - median_of_pairs(values)
        reached = int(np.sum(values[:, 0] <= median[0] + ALIKE)) if np.isfinite(median[0]) else None
        of = int(np.sum(np.isfinite(values[:, 0])))
        standings.append(Standing(ratings.raters[judge], own, median_of(median), median_of(difference), reached, of))
    return Benchmark(weights, pairs, median_of(median_of_pairs(values)), tuple(standings))


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


def median_kappa(ratings: Ratings, rater: int, experts: Sequence[int], weights: str, sample: ItemBootstrap) -> tuple[Measure, Floats]:
    """Kappa of a rater with the median of the (other) experts, and its values over the table and each resample."""
    beside = beside_median(ratings, rater, experts, ratings.counts(experts))
    values = kappas(median_sums(ratings, rater, beside, sample), ratings.scale)
    found = kappa_measures(values, len(beside[0]), f"{MEDIAN}|{sample.signature}")[weights]
    return found, values[WEIGHTS.index(weights)]


def inflated(ratings: Ratings, rater: int, experts: Sequence[int], sample: ItemBootstrap, crowd: Crowd | None = None) -> Measure:
    """How far a rater is above the median expert on average, in points of the scale, over the items of both.

    Of an even number of experts the median is half-way between the two middle ratings. A crowd counts as it is, not rounded.
    """
    items, low, high = beside_median(ratings, rater, experts, ratings.counts(experts))
    given = crowd.value[np.searchsorted(crowd.item, items)] if crowd else ratings.scale[ratings.of_rater(rater)[items]]
    apart = given - (ratings.scale[low] + ratings.scale[high]) / 2
    sums = sample.resampled(sample.total(items, np.stack([np.ones(len(items)), apart])))
    line = signature_line(mean="rater-minus-median-expert") + f"|{sample.signature}"
    return Measure.of(ratio(sums[:, 1], sums[:, 0]), len(items), "that experts have rated", "no item is drawn", line)


def crowd_alpha(crowd: Crowd, experts: Sequence[int], sample: ItemBootstrap) -> Measure:
    """Krippendorff's alpha at the interval level of two raters, the median expert and the crowd, neither of them rounded to the scale."""
    ratings = crowd.ratings
    items, low, high = beside_median(ratings, len(ratings.raters) - 1, experts, ratings.counts(experts))
    median = (ratings.scale[low] + ratings.scale[high]) / 2
    both = np.concatenate([median, crowd.value[np.searchsorted(crowd.item, items)]])
    line = signature_line(raters="median-expert,crowd", values=f"in-1/{PARTS}-of-a-point")
    found = interval_alpha(np.tile(items, 2), np.rint(both * PARTS).astype(np.int64), sample)
    return Measure(found.value, found.low, found.high, found.items, found.why, f"{line}|{found.signature}")


def steps_of(ratings: Ratings, scale: Scale | None) -> Floats:
    """The values that are counted: all of the rubric's scale; without one all whole numbers from the least to the greatest rating.

    Of a scale that is not of whole numbers, or has very many, these are the ones that occur.
    """
    low, high = (scale.low, scale.high) if scale else (ratings.scale[0], ratings.scale[-1])
    whole = scale.whole if scale else bool(np.all(ratings.scale == np.rint(ratings.scale)))
    return np.arange(low, high + 1) if whole and high - low < STEPS else ratings.scale


def histogram(ratings: Ratings, experts: Sequence[int], raters: Sequence[int], steps: Floats) -> dict[str, tuple[float, ...]]:
    """How often each value is given: by all experts together and by their median, where there are any, and by each of the raters."""
    counts = ratings.counts(experts)
    low, high = medians(counts[counts.sum(axis=1) > 0])
    found: dict[str, Codes | Floats] = {}
    if experts:
        found = {"experts": counts.sum(axis=0), "median expert": np.bincount(np.concatenate([low, high]), minlength=len(ratings.scale)) / 2}
    found |= {ratings.raters[rater]: ratings.counts([rater]).sum(axis=0) for rater in raters}
    place = np.searchsorted(steps, ratings.scale)
    return {name: tuple(np.bincount(place, weights=some, minlength=len(steps)).tolist()) for name, some in found.items()}


KIND, NONE = "that other experts have rated", "neither gives such a rating"


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


def f1_beside_guessing(
    ratings: Ratings, rater: int, experts: Sequence[int], against: AgainstMedian, values: Sequence[float], sample: ItemBootstrap
) -> F1:
    """F1 of a rater whose figures ``against`` the median of the (other) experts are known, and what guessing from ``values`` reaches."""
    beside = beside_median(ratings, rater, experts, ratings.counts(experts))
    return f1(against, median_sums(ratings, rater, beside, sample)[:, 3:], ratings.scale, values)


def f1(against: AgainstMedian, sums: Floats, scale: Floats, values: Sequence[float]) -> F1:
    """F1 of a rater and what guessing reaches; intervals are of the same draws as those of ``against``.

    ``sums`` has shape (1 + resamples, 4 * steps): how often the rater gives each value of ``scale``, how often the median is it, how
    often both are, and how often the smaller of the two is it. ``values`` are those that are guessed from.

    What guessing reaches is F1 of the frequencies that are expected: of a value that is the median's in a share p of items, and is
    guessed with probability q, 2 q p / (q + p). Macro, it is the mean over all ``values``, where one that the median never is counts 0.
    Binary, it is the mean over the thresholds at which the rater's own F1 is defined, so that both means are of the same.
    """
    given, median, _, both = np.moveaxis(sums.reshape(len(sums), 4, len(scale)), 1, 0)
    given, median_from, both = (np.cumsum(part[:, ::-1], axis=1)[:, ::-1][:, 1:] for part in (given, median, both))
    binary = ratio(2 * both, given + median_from)
    number = median.sum(axis=1, keepdims=True)
    share, share_from = ratio(median, number), ratio(median_from, number)
    guessed_from = np.array([np.mean(np.array(values) >= value) for value in scale[1:]])
    guess = np.where(np.isfinite(binary), ratio(2 * guessed_from * share_from, guessed_from + share_from), np.nan)
    macro = np.sum(ratio(2 * share, 1 + len(values) * share), axis=1) / len(values)
    items, settings = against.macro_f1.items, against.macro_f1.signature.partition("|")[2]

    def measure(column: Floats, **how: object) -> Measure:
        reason = "there is only one value, and so no threshold" if len(scale) < 2 else NONE
        return Measure.of(column, items, KIND, reason, f"{signature_line(**how)}|{settings}")

    least, most = _ends(against)
    guessing = {"guess": "each-value-alike", "values": len(values), "of": "expected-frequencies"}
    return F1(
        against.macro_f1,
        least,
        measure(_mean(binary), f1="binary", over="thresholds,mean"),
        most,
        measure(macro, f1="macro", **guessing),
        measure(_mean(guess), f1="binary", over="thresholds,mean", **guessing),
        tuple(values),
    )


def _mean(columns: Floats) -> Floats:
    """The mean over the columns that are defined, NaN where none is."""
    return ratio(np.nansum(columns, axis=1), np.sum(np.isfinite(columns), axis=1))


def _ends(against: AgainstMedian) -> tuple[AtThreshold | None, AtThreshold | None]:
    """The thresholds with the least and the most F1; None where none is defined."""
    found = [(one.value, AtThreshold(threshold, one)) for threshold, one in against.binary_f1 if one.value is not None]
    if not found:
        return None, None
    return min(found, key=lambda one: one[0])[1], max(found, key=lambda one: one[0])[1]
