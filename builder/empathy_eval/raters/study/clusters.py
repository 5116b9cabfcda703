"""Raters as the unit of chance: intervals of gains, how alike a rater's ratings are, and what that does to the worth of a rating."""

from __future__ import annotations

import math

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.raters.study.power import CONFIDENCE, design_effect
from empathy_eval.raters.study.ratings import Mask, Study
from empathy_eval.raters.study.results import Spread
from empathy_eval.statistics.estimate import Codes, Floats

# Beyond these places figures may differ from machine to machine.
PLACES = 12


def gain_interval(study: Study, group: int, category: int, where: Mask | None = None) -> tuple[float, float] | str:
    """The 95 % interval, in percent, of how much larger a group's share of a category is than the baseline's; or why there is none.

    It is that of the log of the ratio of shares (:func:`log_ratio`), by Student's distribution. Clusters are raters; in a study of several
    blocks they are blocks, since raters of one block saw the same items.
    """
    from scipy import stats

    counts = study.by_rater(where)
    ratings = counts.sum(axis=1)
    side = (study.group_of == group).astype(np.int64) - (study.group_of == 0)
    kept = np.flatnonzero((side != 0) & (ratings > 0))
    side, ratings, given = side[kept], ratings[kept], counts[kept, category]
    blocks = study.block_of[kept] if study.block_of is not None and by_block(study) else None
    for one, name in ((-1, study.groups[0]), (1, study.groups[group])):
        if (number := int((side == one).sum())) < 2:
            return f'no interval: {"one rater" if number else "no rater"} of "{name}" has ratings here'
        if not given[side == one].any():
            return f'no interval: "{name}" was never given "{study.labels[category]}" here'
    if blocks is not None and np.logical_and(*(np.bincount(blocks[side == one], minlength=blocks.max() + 1) for one in (-1, 1))).sum() < 2:
        return f'no interval: fewer than two blocks have ratings of "{study.groups[group]}" and of "{study.groups[0]}" here'
    value, error, freedom = (float(one) for one in log_ratio(given, ratings, side, blocks))
    # Shares that are whole have no error but that of rounding.
    if error < 1e-9:
        return "no interval: raters do not differ in this category here"
    reach = float(stats.t.isf((1 - CONFIDENCE) / 2, freedom)) * error
    low, high = (round(100 * math.expm1(min(end, 700.0)), PLACES) for end in (value - reach, value + reach))
    return low, high


def by_block(study: Study) -> bool:
    """Whether the clusters of a study are its blocks; a single block tells no more than none."""
    return study.block_of is not None and bool((study.block_of != study.block_of[0]).any())


def log_ratio(given: Codes, ratings: Codes, side: Codes, blocks: Codes | None) -> tuple[Floats, Floats, Floats]:
    """The log of a ratio of two shares, its standard error and degrees of freedom, from ratings in clusters.

    The last axis of ``given`` (how often a rater gave the category) are raters, and axes before it studies; ``ratings`` is how many each
    gave, ``side`` whether they are of the group (1) or of the baseline (-1).

    A share is a ratio of sums over clusters (Cochran 1977, *Sampling Techniques*, chapter 6), and its log is linearised: a cluster with n
    of the N ratings of a side, y of them of the category, whose share is p, adds (y - p n) / (N p). Without a cluster its side's share
    moves by that over 1 - n / N, and the variance is the jackknife's: (K - 1) / K times the sum of squares of those over K clusters, which
    does not make intervals too narrow where clusters are few or of unequal size. Degrees of freedom are those of Welch (1947, "The
    generalization of Student's problem", *Biometrika* 34). Blocks are clusters of both sides: a block adds the difference of its sides, and
    degrees of freedom are Welch's over the blocks that a side has ratings in, at most the number of blocks less one: a group that is in
    few of the blocks tells no more than those.
    """
    there, places = np.unique(np.arange(len(side)) if blocks is None else blocks, return_inverse=True)
    logs, parts, freedoms = [], [], []
    for one in (-1, 1):
        n, y = (np.asarray(values, np.float64)[..., side == one] for values in (ratings, given))
        if blocks is not None:
            n, y = (_summed(values, places[side == one], len(there)) for values in (n, y))
        share = y.sum(-1, keepdims=True) / n.sum()
        logs.append(np.log(share[..., 0]))
        parts.append((y - share * n) / (n.sum() * share) / (1 - n / n.sum()))
        freedoms.append(int((n > 0).sum()) - 1)
    spreads = [jackknifed(one) for one in parts]
    whole = spreads[0] + spreads[1]
    below = sum(spread**2 / freedom for spread, freedom in zip(spreads, freedoms, strict=True))
    freedom = np.divide(whole**2, below, out=np.ones_like(whole), where=below > 0)
    if blocks is None:
        return logs[1] - logs[0], np.sqrt(whole), freedom
    return logs[1] - logs[0], np.sqrt(jackknifed(parts[1] - parts[0])), np.minimum(freedom, len(there) - 1.0)


def jackknifed(parts: Floats) -> Floats:
    """A variance from what each cluster moves."""
    number = parts.shape[-1]
    variance: Floats = (number - 1) / number * (parts**2).sum(-1)
    return variance


def _summed(values: Floats, places: Codes, number: int) -> Floats:
    """Sums of the last axis by place."""
    rows = np.arange(values.size // len(places))[:, None] * number
    sums = np.bincount((rows + places).ravel(), values.ravel(), len(rows) * number)
    return sums.reshape(*values.shape[:-1], number).astype(np.float64, copy=False)


def spread(study: Study, group: int, category: int) -> Spread:
    """How alike the ratings of a rater of a group are in giving a category, and how many ratings are worth an independent one.

    The intraclass correlation is the estimator of the analysis of variance (Fisher 1925; for yes and no: Ridout, Demétrio and Firth 1999,
    "Estimating intraclass correlation for binary data", *Biometrics* 55): (B - W) / (B + (m0 - 1) W), B and W the mean squares between and
    within raters, m0 = (N - sum of n² / N) / (raters - 1) for N ratings, n of a rater. It may be negative, and is told as it is.

    The design effect is 1 + (m - 1) icc with m = sum of n² / N (Donner, Birkett and Buck 1981, *American Journal of Epidemiology* 114),
    the ``ratings_a_rater``: the mean number where all give as many. It is at least 1, so that no rating counts for more than one.
    """
    counts = study.by_rater()[study.group_of == group]
    counts = counts[counts.sum(axis=1) > 0]
    given, ratings = counts[:, category].astype(np.float64), counts.sum(axis=1).astype(np.float64)
    raters, total = len(ratings), float(ratings.sum())
    signature = signature_line(icc="one-way-anova", design_effect="at-least-1", raters=raters)
    names = study.groups[group], study.labels[category]
    a_rater = round(float((ratings**2).sum()) / total, PLACES) if raters else None
    if (why := _no_correlation(raters, total, float(given.sum()))) or a_rater is None:
        return Spread(*names, None, None, a_rater, why, signature)
    own, share = given / ratings, given.sum() / total
    between = float((ratings * (own - share) ** 2).sum()) / (raters - 1)
    within = float((given * (1 - own)).sum()) / (total - raters)
    even = (total - float((ratings**2).sum()) / total) / (raters - 1)
    icc = round((between - within) / (between + (even - 1) * within), PLACES) + 0.0
    return Spread(*names, icc, round(design_effect(a_rater, icc), PLACES), a_rater, None, signature)


def _no_correlation(raters: int, ratings: float, given: float) -> str | None:
    """Why there is no intraclass correlation."""
    if raters < 2:
        return "one rater does not show how raters differ" if raters else "nobody rated"
    if ratings == raters:
        return "each rater gave one rating, which does not show how similar a rater's ratings are"
    return "all ratings are equal in this category" if given in (0, ratings) else None
