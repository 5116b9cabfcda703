"""Estimates: a number with its interval, its p-values and its settings."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.json_text import fields_json

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


# What a table writes of an estimate beside its value and interval: p-values where it tests, the others where figures are signed one by one.
TESTS, SIGNED = ("p", "holm"), ("items", "why", "signature")


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval; None where the figure, an interval or a test is not defined.

    ``p`` is uncorrected, ``p_corrected`` is Holm's over the tests of the same table. ``n`` is the number of items that the figure is over,
    ``reason`` says why figure or interval are not defined, and ``signature`` names the settings.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_corrected: float | None = field(default=None, metadata={"name": "holm"})
    n: int = field(default=0, metadata={"name": "items"})
    reason: str | None = field(default=None, metadata={"name": "why"})
    signature: str = ""

    @classmethod
    def of_resamples(cls, values: Floats, n: int, kind: str, reason: str, signature: str) -> Estimate:
        """From the values of the table itself and then of each resample, shape (1 + resamples,), NaN where not defined.

        Nothing is defined over fewer than two items; ``kind`` says which items count ("in common"), ``reason`` what NaN means.
        """
        if n < 2 or not np.isfinite(values[0]):
            return cls.undefined(f"{'only one item' if n else 'no item'} {kind}" if n < 2 else reason, signature, n)
        value, resampled = rounded(values[0]), values[1:]
        defined = resampled[np.isfinite(resampled)]
        if not len(defined) or len(defined) < CONFIDENCE * len(resampled):
            undefined = f"it is not defined in {len(resampled) - len(defined)} of {len(resampled)} resamples"
            return cls(value, n=n, reason=f"no interval: {undefined if len(resampled) else 'no resamples'}", signature=signature)
        low, high = map(rounded, np.quantile(defined, TAILS))
        return cls(value, low, high, n=n, signature=signature)

    @classmethod
    def undefined(cls, reason: str, signature: str, n: int = 0) -> Estimate:
        """A figure that is not defined."""
        return cls(None, n=n, reason=reason, signature=signature)

    @property
    def number(self) -> float:
        """The value of a figure that is defined.

        Raises:
            ValueError: if it is not defined.
        """
        if self.value is None:
            raise ValueError(f"the figure is not defined: {self.reason}")
        return self.value

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the interval; None without one."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def decided(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.interval is not None and not self.interval[0] <= 0 <= self.interval[1]

    def to_json(self) -> dict[str, Any]:
        """Value and interval; where it is signed also the number of items, the reason and the settings."""
        return self.written(*TESTS, *(() if self.signature else SIGNED))

    def written(self, *without: str) -> dict[str, Any]:
        """All fields by the names that they have in tables, but for those named."""
        return {name: value for name, value in fields_json(self).items() if name not in without}

    def __str__(self) -> str:
        if self.value is None:
            return f"not defined: {self.reason}"
        return f"{self.value:.3f} " + ("(no interval)" if self.low is None else f"[{self.low:.3f}, {self.high:.3f}]")


# The metadata of a field that holds an estimate whose p-values its table writes too.
TESTED = {"json": lambda estimate: estimate and estimate.written(*SIGNED)}


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
