"""Direction of plain features: what a metric that is trained on a contrast would learn of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.evaluation.resampling import Clusters, Estimate, interval
from empathy_eval.evaluation.results import PLACES
from empathy_eval.evaluation.shortcut_rows import Direction
from empathy_eval.metrics.empathy_score.features import UNIT, Features, Shares
from empathy_eval.metrics.empathy_score.word_lists import word_lists
from empathy_eval.metrics.protocol import Array, Segments

if TYPE_CHECKING:
    from empathy_eval.evaluation.inversion import Chance


def shares_of(texts: Sequence[str]) -> Shares:
    """The plain features of texts in millionths, shape (texts, features); without contexts nothing is an echo."""
    return Features(word_lists()).of(Segments(texts, [""] * len(texts)))


def directions(kind: Shares, cold: Shares, clusters: Clusters, chance: Chance) -> tuple[Direction, ...]:
    """The direction of each feature, with intervals over dialogues where there are two or more."""
    sides = [shares.astype(np.float64) / UNIT for shares in (kind, cold)]
    sums = np.column_stack([np.ones(len(kind)), *(part for shares in sides for part in (shares, shares**2))])
    totals = clusters.totals(sums)
    values = _standardised(totals.sum(axis=0, keepdims=True))[0]
    drawn = _standardised(clusters.bootstrapped(totals, chance.resamples, chance.seed)) if len(clusters) > 1 else None
    lists, found = word_lists(), list[Direction]()
    settings = signature_line(difference="Cohen's d,mean-of-variances", features=lists.sha256[:12], vader=lists.vader[:12])
    signature = f"{settings}|{chance.of_intervals(clusters)}"
    for place, (value, listed) in enumerate(zip(values.tolist(), lists.features, strict=True)):
        # Where a resample has no spread, no interval is valid.
        bounds = () if drawn is None or np.isnan(drawn[:, place]).any() else interval(drawn[:, place], PLACES)
        difference = None if np.isnan(value) else Estimate(round(value, PLACES), *bounds)
        found.append(Direction(listed.name, listed.what, difference, signature))
    return tuple(found)


def _standardised(totals: Array) -> Array:
    """Cohen's d of each feature from rows of sums (count, then sums and sums of squares of each side); NaN without spread."""
    count, parts = totals[:, :1], np.split(totals[:, 1:], 4, axis=1)
    means, squares = [parts[0] / count, parts[2] / count], [parts[1] / count, parts[3] / count]
    spread = np.sqrt(np.maximum((squares[0] - means[0] ** 2 + squares[1] - means[1] ** 2) / 2, 0))
    return np.divide(means[0] - means[1], spread, out=np.full_like(spread, np.nan), where=spread > 0)
