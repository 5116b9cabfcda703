"""The share of items that something is so of, with an interval that is right for few of them and where it is so of none."""

from __future__ import annotations

import math
from statistics import NormalDist

from empathy_eval.base.hashing import signature_line
from empathy_eval.raters.agreement.bootstrap import CONFIDENCE, PLACES, Measure

Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


def share(count: int, of: int, none: str, **settings: object) -> Measure:
    """``count`` of ``of`` items with Wilson's interval (1927); ``none`` says what no item is like, where there is none.

    Drawing items again would say that what was never seen can never be: its interval of 0 in 12 is from 0 to 0.
    """
    line = signature_line(**settings, interval="Wilson", level=CONFIDENCE, unit="item")
    if not of:
        return Measure.undefined(none, line)
    found, spread = count / of, Z * Z / of
    middle = (found + spread / 2) / (1 + spread)
    half = math.sqrt(found * (1 - found) * spread + spread * spread / 4) / (1 + spread)
    low, high = (min(max(round(one, PLACES), 0.0), 1.0) + 0.0 for one in (middle - half, middle + half))
    return Measure(round(found, PLACES), low, high, of, None, line)
