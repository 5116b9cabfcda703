"""Metrics beside each other: how much more often one is right than another on the same pairs, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import signature_line
from empathy_eval.design.contrasts import Contrast
from empathy_eval.evaluation.inversion.inversion import NORMAL, ResamplingSettings, by_rows, resampled
from empathy_eval.evaluation.inversion.results import PLACES, DetectableEffect, MetricComparison, MetricRow, corrected
from empathy_eval.metrics.protocol import Array
from empathy_eval.statistics.estimate import CONFIDENCE, Estimate, Tested
from empathy_eval.statistics.ranking import PairwiseComparisons, effects, shares_won, spreads
from empathy_eval.statistics.resampling import Clusters, studentised

Two = tuple[str, str]
# Sums that differ by less are the same.
TIED = 1e-9


@dataclass(frozen=True)
class ScoredPairs:
    """What a metric gave all pairs: its duels, nan where there is no score, and its signature."""

    duels: PairwiseComparisons
    signature: str

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Which pairs have scores."""
        return np.asarray(~np.isnan(self.duels.won()))

    def take(self, rows: NDArray[Any]) -> ScoredPairs:
        """What it gave these pairs."""
        return ScoredPairs(PairwiseComparisons([(kind[rows], cold[rows]) for kind, cold in self.duels.sides]), self.signature)


def compared(contrast: str, rated: Mapping[str, ScoredPairs], clusters: Clusters, chance: ResamplingSettings) -> list[MetricComparison]:
    """Every two of these metrics in a contrast, over the pairs that both have scores of; two without any are left out.

    Intervals are of the resamples of all other figures and Student's distribution. A p-value is of the exchange of the two metrics within
    dialogues, their scores in units of their spread for the effect, ties half (mid-p); p-values are corrected over all comparisons of the
    contrast.
    """
    has = {name: one.scored for name, one in rated.items()}
    both = {(one, other): has[one] & has[other] for one, other in combinations(rated, 2)}
    made: dict[Two, MetricComparison] = {}
    for common, twos in by_rows(both):
        here = {name: rated[name].take(common) for two in twos for name in two}
        made |= {(one.one, one.other): one for one in _over(contrast, twos, here, clusters.take(common), chance)}
    return corrected(made[two] for two in both if two in made)


def _over(
    contrast: str, twos: Sequence[Two], rated: Mapping[str, ScoredPairs], clusters: Clusters, chance: ResamplingSettings
) -> Iterator[MetricComparison]:
    """Comparisons over the same pairs, with the same resamples and exchanges."""
    totals = {name: clusters.totals(one.duels.sums()) for name, one in rated.items()}
    whole = {name: one.sum(axis=0, keepdims=True) for name, one in totals.items()}
    # What each dialogue adds to the two figures of each two.
    gaps = (_gaps((rated[one], whole[one]), (rated[other], whole[other])) for one, other in twos)
    added = np.hstack([clusters.totals(gap) for gap in gaps])
    if many := len(clusters) > 1:
        drawn = resampled(totals, clusters, chance)
        swapped = added.sum(axis=0) + clusters.exchanged(-2 * added, chance.exchanges, chance.seed)
    for place, (one, other) in enumerate(twos):
        accuracy, effect = (
            tested(
                float(rate(whole[one])[0] - rate(whole[other])[0]),
                (rate(drawn[one]) - rate(drawn[other]), swapped[:, column], added[:, column].sum()) if many else None,
                clusters.freedom,
            )
            for column, rate in enumerate((shares_won, effects), 2 * place)
        )
        settings = f"{chance.signature(clusters)}|ties:half|interval:student,freedom:{clusters.freedom}"
        signature = f"{rated[one].signature}|minus|{rated[other].signature}|{settings}"
        defined = effect if np.isfinite(effect.value) else None
        yield MetricComparison(one, other, contrast, len(clusters.members), accuracy, defined, signature)


def _gaps(one: tuple[ScoredPairs, Array], other: tuple[ScoredPairs, Array]) -> Array:
    """By pair what it adds to the difference of accuracy, and to that of standardised effect."""
    (first, sums), (second, others) = one, other
    pulled = first.duels.pull / spreads(sums) - second.duels.pull / spreads(others)
    return np.column_stack([first.duels.won() - second.duels.won(), pulled])


def tested(value: float, chances: tuple[Array, Array, float] | None, freedom: int) -> Tested:
    """A difference, with the interval of its resamples and the p-value of its exchanges."""
    if chances is None:
        return Tested(round(value, PLACES))
    drawn, swapped, seen = chances
    low, high = studentised(value, drawn, freedom, PLACES) if freedom and np.isfinite(drawn).all() else (None, None)
    beyond = np.abs(swapped) - abs(seen)
    # Wins are few whole numbers, so exchanges as far from 0 as what was seen count half: without that p is too high.
    far = float((beyond > TIED).sum() + (np.abs(beyond) <= TIED).sum() / 2)
    p = (1 + far) / (1 + len(swapped)) if abs(seen) > TIED else 1.0
    return Tested(round(value, PLACES), low, high, round(p, PLACES))


POWER = 0.8
# The quantile of the normal distribution that belongs to POWER.
_REACHED = 0.841621
# An accuracy without any skill.
NO_SKILL = 0.5


def smallest(rows: Sequence[MetricRow], contrast: Contrast, pairs: int) -> DetectableEffect:
    """The smallest true accuracy and standardised effect of a contrast that a test at 5 % would have found in 4 of 5 such releases.

    The standard error is the largest that a metric with a better direction has here, from its interval, where the checks force nothing;
    and at least that of pairs that have nothing to do with each other: one half, and the square root of 2, over the square root of the
    number of duels.
    """
    directed = [row.differences for row in rows if row.higher_is_better is not None]
    seen = [one for found in directed if (one := found.get(contrast.name)) and not one.forced]
    duels = pairs * len(contrast.duels)
    accuracy = _reach(NO_SKILL / math.sqrt(duels), (one.accuracy for one in seen))
    effect = _reach(math.sqrt(2 / duels), (one.effect for one in seen))
    settings = signature_line(power=POWER, level=round(1 - CONFIDENCE, 2), sides=2, error="largest-of-metrics,at-least-independent")
    return DetectableEffect(pairs, round(min(NO_SKILL + accuracy, 1.0), PLACES), round(effect, PLACES), settings)


def _reach(least: float, found: Iterable[Estimate | None]) -> float:
    """How far from nothing something must lie to be found, from the standard errors of what was found."""
    errors = [(one.high - one.low) / 2 / NORMAL for one in found if one and one.low is not None and one.high is not None]
    return (NORMAL + _REACHED) * max([least, *errors])
