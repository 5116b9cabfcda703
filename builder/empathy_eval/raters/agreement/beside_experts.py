"""A judge or a crowd beside the median expert, and what each of them gives how often."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.design.rubrics import Scale
from empathy_eval.raters.agreement.against_median import MEDIAN, beside_median, median_sums, medians
from empathy_eval.raters.agreement.alpha import interval_alpha
from empathy_eval.raters.agreement.bootstrap import Measure, Resampling, ratio
from empathy_eval.raters.agreement.crowd import Crowd
from empathy_eval.raters.agreement.kappa import WEIGHTS, kappa_measures, kappas
from empathy_eval.raters.agreement.table import STEPS, Codes, Floats, Ratings

# In such parts of a point the median expert and the crowd are counted where whole numbers are needed.
PARTS = 1000


def median_kappa(ratings: Ratings, rater: int, experts: Sequence[int], weights: str, sample: Resampling) -> tuple[Measure, Floats]:
    """Kappa of a rater with the median of the (other) experts, and its values over the table and each resample."""
    beside = beside_median(ratings, rater, experts, ratings.counts(experts))
    values = kappas(median_sums(ratings, rater, beside, sample), ratings.scale)
    found = kappa_measures(values, len(beside[0]), f"{MEDIAN}|{sample.signature}")[weights]
    return found, values[WEIGHTS.index(weights)]


def inflated(ratings: Ratings, rater: int, experts: Sequence[int], sample: Resampling, crowd: Crowd | None = None) -> Measure:
    """How far a rater is above the median expert on average, in points of the scale, over the items of both.

    Of an even number of experts the median is half-way between the two middle ratings. A crowd counts as it is, not rounded.
    """
    items, low, high = beside_median(ratings, rater, experts, ratings.counts(experts))
    given = crowd.value[np.searchsorted(crowd.item, items)] if crowd else ratings.scale[ratings.of_rater(rater)[items]]
    apart = given - (ratings.scale[low] + ratings.scale[high]) / 2
    sums = sample.resampled(sample.total(items, np.stack([np.ones(len(items)), apart])))
    line = signature_line(mean="rater-minus-median-expert") + f"|{sample.signature}"
    return Measure.of(ratio(sums[:, 1], sums[:, 0]), len(items), "that experts have rated", "no item is drawn", line)


def crowd_alpha(crowd: Crowd, experts: Sequence[int], sample: Resampling) -> Measure:
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
