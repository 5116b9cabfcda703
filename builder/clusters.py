"""Dialogues as the unit of chance: the bootstrap over them within scenario, and the exchange of variants within them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from builder.metrics.protocol import Array
from builder.signature import derived_random

CONFIDENCE = 0.95
# Resamples drawn at once: memory does not grow with their number.
AT_ONCE = 50
TAILS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which dialogue each segment belongs to (``members``), and which scenario each dialogue.

    What was drawn last is kept in small numbers: the next metric over the same dialogues need not draw it again.
    """

    members: NDArray[np.int64]
    scenarios: NDArray[np.int64]

    @classmethod
    def of(cls, dialogues: Sequence[str], scenarios: Sequence[int]) -> Clusters:
        """From the dialogue and the scenario of each segment."""
        place: dict[str, int] = {}
        scenario_of: list[int] = []
        for dialogue, scenario in zip(dialogues, scenarios, strict=True):
            if dialogue not in place:
                place[dialogue] = len(place)
                scenario_of.append(scenario)
        return cls(np.array([place[one] for one in dialogues], dtype=np.int64), np.array(scenario_of, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.scenarios)

    def take(self, rows: NDArray[np.bool_]) -> Clusters:
        """The clusters of some of the segments; dialogues without a segment are gone."""
        kept, members = np.unique(self.members[rows], return_inverse=True)
        return Clusters(members, self.scenarios[kept])

    def totals(self, statistics: Array) -> Array:
        """Sums of segment statistics by dialogue, shape (dialogues, k)."""
        columns = [np.bincount(self.members, column, len(self)) for column in statistics.T]
        return np.column_stack(columns) if columns else np.zeros((len(self), 0))

    def bootstrapped(self, totals: Array, resamples: int, seed: int) -> Array:
        """Sums over resampled dialogues, shape (resamples, k).

        Dialogues are drawn with replacement within their scenario, one fewer than there are, and weighted up (Rao & Wu 1988):
        without that, scenarios of few dialogues would make the intervals too narrow. Scenarios of one dialogue have no spread of
        their own and are one stratum together; a single such dialogue is always in.
        """
        factors = np.ones(len(self))
        for columns in self._strata():
            if (size := len(columns)) > 1:
                factors[columns] = size / (size - 1)
        return np.vstack([(drawn * factors) @ totals for drawn in self._drawn(resamples, seed)])

    def _strata(self) -> list[NDArray[np.int64]]:
        """The dialogues of each stratum."""
        sizes = Counter(self.scenarios.tolist())
        stratum = np.array([0 if sizes[scenario] == 1 else scenario for scenario in self.scenarios.tolist()])
        return [np.flatnonzero(stratum == one) for one in np.unique(stratum)]

    @lru_cache(maxsize=1)  # noqa: B019  (one set of dialogues is kept, whichever was the last)
    def _drawn(self, resamples: int, seed: int) -> list[NDArray[np.uint16]]:
        """How often each dialogue is drawn in each resample, before it is weighted up."""
        found = []
        for start in range(0, resamples, AT_ONCE):
            rng = np.random.default_rng(derived_random(seed, "bootstrap", start).getrandbits(64))
            drawn = np.ones((min(AT_ONCE, resamples - start), len(self)), dtype=np.uint16)
            for columns in self._strata():
                if (size := len(columns)) > 1:
                    drawn[:, columns] = rng.multinomial(size - 1, np.full(size, 1 / size), size=len(drawn))
            found.append(drawn)
        return found

    def exchanged(self, change: Array, flips: int, seed: int) -> Array:
        """Sums of ``change`` over randomly chosen dialogues, each in with probability one half, shape (flips, k)."""
        parts = (np.unpackbits(bits, axis=1, count=len(self)) for bits in self._flipped(flips, seed))
        return np.vstack([part.astype(np.float64) @ change for part in parts])

    @lru_cache(maxsize=1)  # noqa: B019  (as above)
    def _flipped(self, flips: int, seed: int) -> list[NDArray[np.uint8]]:
        """Which dialogues are in, eight to a byte."""
        found = []
        for start in range(0, flips, AT_ONCE):
            rng = np.random.default_rng(derived_random(seed, "exchange", start).getrandbits(64))
            found.append(np.packbits(rng.integers(0, 2, (min(AT_ONCE, flips - start), len(self))).astype(np.uint8), axis=1))
        return found


def interval(values: Array, places: int) -> tuple[float, float]:
    """The percentile interval of resampled values."""
    low, high = np.quantile(values, TAILS)
    return round(float(low), places), round(float(high), places)
