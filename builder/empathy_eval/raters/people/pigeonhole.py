"""Ratings drawn two ways at once: raters, and texts by what they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import derived_random, signature_line
from empathy_eval.metrics.protocol import Array
from empathy_eval.raters.agreement.bootstrap import CONFIDENCE

Places = NDArray[np.int64]
# Resamples drawn at once: memory does not grow with their number.
AT_ONCE = 20


@dataclass(frozen=True)
class Pigeonhole:
    """The pigeonhole bootstrap (Owen 2007, "The pigeonhole bootstrap"): a rating counts as often as its rater is drawn, times its unit.

    A unit is what texts belong to, a context or a dialogue. Both are drawn with replacement, each by itself. What is true of the ratings at
    hand alone is not drawn: where every unit has one rater, raters are drawn with all that they rated; where every rater has one unit,
    units are; a rater or a unit that stands alone always counts once.
    """

    raters: int
    units: int
    draws_raters: bool
    draws_units: bool
    resamples: int
    seed: int

    @classmethod
    def of(cls, rater: Places, unit: Places, resamples: int, seed: int) -> Pigeonhole:
        """For ratings of so many raters and units, numbered from 0 on."""
        raters, units = int(rater.max()) + 1, int(unit.max()) + 1
        met = len(np.unique(rater * units + unit))
        units_nested, raters_nested = 1 < raters < units == met, raters == met and units > 1
        return cls(raters, units, raters > 1 and not raters_nested, units > 1 and not units_nested, resamples, seed)

    @property
    def drawn(self) -> list[int]:
        """How many there are of each kind that is drawn."""
        return [count for count, is_drawn in ((self.raters, self.draws_raters), (self.units, self.draws_units)) if is_drawn]

    @property
    def freedom(self) -> int:
        """The degrees of freedom of resamples: one fewer than there are of the rarer kind; 0 where nothing is drawn."""
        return min(self.drawn, default=1) - 1

    def signature(self, unit: str) -> str:
        """The settings of intervals."""
        kinds = [(self.raters, "rater", self.draws_raters), (self.units, unit, self.draws_units)]
        drawn = ",".join(f"{name}={count}" for count, name, is_drawn in kinds if is_drawn) or "nothing"
        return signature_line(
            interval="pigeonhole-bootstrap,percentile", level=CONFIDENCE, resamples=self.resamples, drawn=drawn, seed=self.seed,
            numpy=np.__version__,
        )  # fmt: skip

    def weights(self) -> Iterator[tuple[Array, Array]]:
        """How often raters and units count, shape (weightings, raters) and (weightings, units): once each, then as they are drawn."""
        yield np.ones((1, self.raters)), np.ones((1, self.units))
        for start in range(0, self.resamples if self.drawn else 0, AT_ONCE):
            rng = np.random.default_rng(derived_random(self.seed, "people", start).getrandbits(64))
            many = min(AT_ONCE, self.resamples - start)
            yield _drawn(rng, many, self.raters, self.draws_raters), _drawn(rng, many, self.units, self.draws_units)


def _drawn(rng: np.random.Generator, many: int, count: int, is_drawn: bool) -> Array:
    if not is_drawn:
        return np.ones((many, count))
    places = rng.integers(count, size=(many, count)) + np.arange(many)[:, None] * count
    return np.bincount(places.ravel(), minlength=many * count).reshape(many, count).astype(np.float64)
