"""A rater beside the median of the experts: kappa, multi-class F1, and binary F1 at every threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.raters.agreement.bootstrap import Measure, Resampling, ratio
from empathy_eval.raters.agreement.kappa import kappa_measures, kappa_sums, kappas
from empathy_eval.raters.agreement.table import MISSING, Codes, Floats, Ratings

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


def against_median(ratings: Ratings, rater: int, experts: Sequence[int], counts: Codes, sample: Resampling) -> AgainstMedian:
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


def median_sums(ratings: Ratings, rater: int, beside: tuple[Codes, Codes, Codes], sample: Resampling) -> Floats:
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
