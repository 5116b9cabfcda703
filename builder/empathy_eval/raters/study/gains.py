"""Gains: how much larger or smaller a group's share of a category is than the baseline's."""

from __future__ import annotations

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.raters.agreement.bootstrap import CONFIDENCE
from empathy_eval.raters.agreement.table import Codes, Floats
from empathy_eval.raters.study.chi_square import Counted, figure, tested
from empathy_eval.raters.study.clusters import by_block, gain_interval
from empathy_eval.raters.study.ratings import Study
from empathy_eval.raters.study.results import NOT_YET, Gain


def gain(study: Study, group: int, category: int, permutation: float | None, settings: str) -> Gain:
    """The gain of a group over the baseline in a category, in percent of the baseline's share, with its interval by rater.

    Gains are of shares: where groups have as many ratings, those of counts are the same. Not defined where the baseline never gave it.
    """
    counts = study.counts()[[0, group]]
    names, label = (study.groups[0], study.groups[group]), study.labels[category]
    table = Counted.of_category(names, label, category, counts)
    unit = "block" if by_block(study) else "rater"
    signature = signature_line(gain="percent-of-baseline-share", interval="log-ratio,linearised,t", level=CONFIDENCE, unit=unit)
    shares = shares_of(counts)[:, category].tolist()
    why = _why(counts, names, label, category)
    low, high, value = None, None, None
    if why is None:
        value = figure(100 * (shares[1] / shares[0] - 1))
        found = gain_interval(study, group, category, None)
        if isinstance(found, str):
            why = found
        else:
            low, high = found
    before, share = (None if np.isnan(one) else figure(one) for one in shares)
    test = tested(table, permutation, settings, yates=True)
    return Gain(names[1], label, before, share, value, low, high, test, *NOT_YET, why, signature)


def shares_of(counts: Codes) -> Floats:
    """The share of each category in each row; NaN in a row without ratings."""
    totals = counts.sum(axis=1, keepdims=True)
    found: Floats = np.divide(counts, totals, out=np.full(counts.shape, np.nan), where=totals > 0)
    return found


def _why(counts: Codes, names: tuple[str, str], label: str, category: int) -> str | None:
    """Why there is no gain."""
    for name, row in zip(names, counts, strict=True):
        if not row.sum():
            return f'"{name}" has no rating here'
    return None if counts[0, category] else f'"{names[0]}" was never given "{label}" here, so no gain over it can be computed'
