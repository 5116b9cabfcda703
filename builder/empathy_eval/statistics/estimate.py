"""Estimates: a number with its interval, its p-values and its settings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
CONFIDENCE = 0.95
TAILS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
# The normal quantile of that.
Z = NormalDist().inv_cdf(TAILS[1])
# Beyond these places figures may differ from machine to machine.
PLACES = 12
# Decimal places of a printed p-value.
P_PLACES = 4


def rounded(value: float) -> float:
    """A number to the places that are the same everywhere; adding 0 takes the sign off a negative zero."""
    return round(float(value), PLACES) + 0.0


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval; None where no interval is valid."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Tested(Estimate):
    """An estimate with its p-values: ``p`` is uncorrected, ``holm`` corrected for those it stands with."""

    p: float | None = None
    holm: float | None = None

    @property
    def decided(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


@dataclass(frozen=True)
class Measure:
    """A figure over so many items, with its interval and its settings; ``why`` says why figure or interval are not defined (None)."""

    value: float | None
    low: float | None
    high: float | None
    items: int
    why: str | None
    signature: str

    @classmethod
    def of(cls, values: Floats, items: int, kind: str, reason: str, signature: str) -> Measure:
        """From the values of the table itself and then of each resample, shape (1 + resamples,), NaN where not defined.

        Nothing is defined over fewer than two items; ``kind`` says which items count ("in common"), ``reason`` what NaN means.
        """
        if items < 2 or not np.isfinite(values[0]):
            few = f"{'only one item' if items else 'no item'} {kind}"
            return cls(None, None, None, items, few if items < 2 else reason, signature)
        value, resampled = rounded(values[0]), values[1:]
        defined = resampled[np.isfinite(resampled)]
        if not len(defined) or len(defined) < CONFIDENCE * len(resampled):
            undefined = f"it is not defined in {len(resampled) - len(defined)} of {len(resampled)} resamples"
            return cls(value, None, None, items, f"no interval: {undefined if len(resampled) else 'no resamples'}", signature)
        low, high = map(rounded, np.quantile(defined, TAILS))
        return cls(value, low, high, items, None, signature)

    @classmethod
    def undefined(cls, why: str, signature: str, items: int = 0) -> Measure:
        """A figure that is not defined."""
        return cls(None, None, None, items, why, signature)

    def __str__(self) -> str:
        if self.value is None:
            return f"not defined: {self.why}"
        return f"{self.value:.3f} " + ("(no interval)" if self.low is None else f"[{self.low:.3f}, {self.high:.3f}]")


def format_p(value: float, draws: int = 0, of: float | None = None) -> tuple[str, str]:
    """A relation ("=", "<" or "≤") and a number.

    A p of ``draws`` draws is never below 1 / (draws + 1): one that is there is only known to be no larger, and so is what corrects it
    (``of`` is the p before it was corrected). Without draws a p is as small as it is.
    """
    if draws and (value if of is None else of) * (draws + 1) <= 1 + 1e-9 and value < 1:
        # Rounded up, for it is a bound.
        up = math.ceil(round(value * 10**P_PLACES, 6)) / 10**P_PLACES
        return "≤", f"{up:.{P_PLACES}f}"
    return ("=", f"{value:.{P_PLACES}f}") if value >= 10**-P_PLACES else ("<", f"{10**-P_PLACES:.{P_PLACES}f}")
