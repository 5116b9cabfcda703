"""A judge beside itself: how far its samples, asked the same, give the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.raters.agreement.alpha import LEVELS, alpha
from empathy_eval.raters.agreement.benchmark import PANEL, median_of_pairs, pair_up
from empathy_eval.raters.agreement.bootstrap import Measure, Resampling, ratio
from empathy_eval.raters.agreement.kappa import WEIGHTS
from empathy_eval.raters.agreement.panel import Panel
from empathy_eval.raters.agreement.shares import share
from empathy_eval.raters.agreement.table import MISSING, Codes, Floats, Ratings

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


def stability(criterion: str, ratings: Ratings, panel: Panel, level: str, sample: Resampling) -> tuple[Stability, ...]:
    """Each judge beside itself on a criterion; where there is one sample nothing is defined. A judge that did not rate it is left out."""
    found = []
    for judge, samples in panel.samples.items():
        places = [ratings.raters.index(one.rater) for one in samples if one.rater in ratings.raters]
        rated = [place for place in places if np.any(ratings.rater == place)]
        if rated:
            found.append(Stability(judge, criterion, len(rated), *_figures(ratings, rated, level, sample)))
    return tuple(found)


def _figures(ratings: Ratings, places: Sequence[int], level: str, sample: Resampling) -> Iterator[Measure]:
    """The share of items alike, alpha, the median kappa and the mean range."""
    given = np.stack([ratings.of_rater(place) for place in places])
    items = np.flatnonzero(np.all(given != MISSING, axis=0))
    values = ratings.scale[given[:, items]]
    apart = values.max(axis=0) - values.min(axis=0)
    found = (
        share(int(np.sum(apart == 0)), len(items), NONE, share="all-alike", raters="samples", samples=len(places)),
        alpha(ratings.counts(places), ratings.scale, sample)[level],
        _kappa(ratings, places, WEIGHTS[LEVELS.index(level)], sample),
        _range(apart, items, len(places), sample),
    )
    for one in found:
        yield one if len(places) > 1 else Measure.undefined(ALONE, one.signature, len(items))


def _kappa(ratings: Ratings, places: Sequence[int], weights: str, sample: Resampling) -> Measure:
    line = signature_line(kappa="cohen", weights=weights, median="of-pairs-of-samples", samples=len(places)) + f"|{sample.signature}"
    if len(places) > PANEL:
        return Measure.undefined(f"there are {len(places)} samples: pairs are compared for at most {PANEL}", line, ratings.items)
    _, values = pair_up(ratings, list(combinations(places, 2)), weights, sample)
    return Measure.of(median_of_pairs(values), ratings.items, "rated", "no pair has a kappa", line)


def _range(apart: Floats, items: Codes, samples: int, sample: Resampling) -> Measure:
    line = signature_line(range="mean", raters="samples", samples=samples) + f"|{sample.signature}"
    sums = sample.resampled(sample.total(items, np.stack([apart, np.ones(len(items))])))
    return Measure.of(ratio(*sums.T), len(items), "that all samples rate", "no item of the draw is rated by all samples", line)
