"""The experts' agreement with each other as a benchmark, and where a judge stands against it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.raters.agreement.bootstrap import Measure, Resampling
from empathy_eval.raters.agreement.kappa import WEIGHTS, kappa_measures, kappa_sums, kappas
from empathy_eval.raters.agreement.table import MISSING, Floats, Ratings

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


def benchmark(ratings: Ratings, experts: Sequence[int], judges: Sequence[int], weights: str, sample: Resampling) -> Benchmark:
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


def pair_up(ratings: Ratings, pairs: Sequence[tuple[int, int]], weights: str, sample: Resampling) -> tuple[tuple[Pair, ...], Floats]:
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
