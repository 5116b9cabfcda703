"""What so many pairs of so many dialogues could have shown: the smallest accuracy and the smallest effect."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from empathy_eval.base.hashing import signature_line
from empathy_eval.design.contrasts import Contrast
from empathy_eval.evaluation.inversion import NORMAL
from empathy_eval.evaluation.resampling import CONFIDENCE, Estimate
from empathy_eval.evaluation.results import PLACES, MetricRow, Smallest

POWER = 0.8
# The quantile of the normal distribution that belongs to POWER.
_REACHED = 0.841621
# An accuracy without any skill.
NO_SKILL = 0.5


def smallest(rows: Sequence[MetricRow], contrast: Contrast, pairs: int) -> Smallest:
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
    return Smallest(pairs, round(min(NO_SKILL + accuracy, 1.0), PLACES), round(effect, PLACES), settings)


def _reach(least: float, found: Iterable[Estimate | None]) -> float:
    """How far from nothing something must lie to be found, from the standard errors of what was found."""
    errors = [(one.high - one.low) / 2 / NORMAL for one in found if one and one.low is not None and one.high is not None]
    return (NORMAL + _REACHED) * max([least, *errors])
