"""A figure with its interval: percentile bootstrap over items, on sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import derived_random, signature_line
from empathy_eval.raters.agreement.table import Codes, Floats

CONFIDENCE = 0.95
# Where there are more items, random groups of equal size are drawn instead: the work no longer grows with the items, and that many
# groups know the spread of a sum within one part in sixty, which is closer than a thousand resamples know a percentile.
UNITS = 2000
# Beyond these places figures may differ from machine to machine.
PLACES = 12


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
        # Adding 0 takes the sign off a negative zero.
        value = round(float(values[0]), PLACES) + 0.0
        resampled = values[1:]
        defined = resampled[np.isfinite(resampled)]
        if not len(defined) or len(defined) < CONFIDENCE * len(resampled):
            undefined = f"it is not defined in {len(resampled) - len(defined)} of {len(resampled)} resamples"
            return cls(value, None, None, items, f"no interval: {undefined if len(resampled) else 'no resamples'}", signature)
        low, high = np.quantile(defined, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        return cls(value, round(float(low), PLACES) + 0.0, round(float(high), PLACES) + 0.0, items, None, signature)

    @classmethod
    def undefined(cls, why: str, signature: str, items: int = 0) -> Measure:
        """A figure that is not defined."""
        return cls(None, None, None, items, why, signature)

    def __str__(self) -> str:
        if self.value is None:
            return f"not defined: {self.why}"
        return f"{self.value:.3f} " + ("(no interval)" if self.low is None else f"[{self.low:.3f}, {self.high:.3f}]")


@dataclass(frozen=True)
class Resampling:
    """Items drawn with replacement, the same ones for every figure, so that figures can be compared resample by resample.

    ``unit`` is the unit of each item: the item itself, or its group. ``weights`` has shape (1 + resamples, units): how often each unit
    is drawn, and first the table itself, where each counts once.
    """

    unit: Codes
    weights: Floats
    signature: str

    @classmethod
    def of(cls, items: int, resamples: int, seed: int) -> Resampling:
        """Draws for items in the order of their names; the same for the same numbers."""
        rng = np.random.default_rng(derived_random(seed, "agreement").getrandbits(64))
        units = min(items, UNITS)
        unit = np.arange(items) if units == items else rng.permutation(items) * units // items
        weights = np.ones((1 + resamples, units))
        for row in weights[1:]:
            row[:] = np.bincount(rng.integers(units, size=units), minlength=units)
        line = signature_line(
            interval="percentile", level=CONFIDENCE, resamples=resamples, seed=seed,
            unit="item" if units == items else "group-of-items", units=units, numpy=np.__version__,
        )  # fmt: skip
        return cls(unit, weights, line)

    def tally(self, items: Codes, classes: Codes, number: int, shares: Floats | None = None) -> Floats:
        """How often each class occurs in each unit, shape (units, number); entries may count by shares."""
        units = self.weights.shape[1]
        flat = np.bincount(self.unit[items] * number + classes, weights=shares, minlength=units * number)
        return flat.reshape(units, number).astype(np.float64)

    def total(self, items: Codes, values: Floats) -> Floats:
        """Sums by unit of values that belong to items, from shape (k, n) to shape (units, k)."""
        units = self.weights.shape[1]
        return np.stack([np.bincount(self.unit[items], weights=row, minlength=units) for row in values], axis=1)

    def resampled(self, sums: Floats) -> Floats:
        """Sums over the table and over each resample, from shape (units, k) to shape (1 + resamples, k)."""
        drawn: Floats = self.weights @ sums
        return drawn


def ratio(above: Floats, below: Floats) -> Floats:
    """A quotient that is NaN where it is not defined."""
    result: NDArray[np.float64] = np.divide(above, below, out=np.full(np.broadcast(above, below).shape, np.nan), where=below > 0)
    return result
