"""Dialogues as the unit of chance: the bootstrap over them within scenario, and the exchange of variants within them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import derived_random
from empathy_eval.metrics.protocol import Array

CONFIDENCE = 0.95
# Resamples drawn at once: memory does not grow with their number.
AT_ONCE = 50
TAILS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)


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
class Clusters:
    """Which dialogue each segment belongs to (``members``), and which scenario each dialogue."""

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
        parts = [weights @ totals for weights in self._weights(resamples, seed)]
        return np.vstack(parts)

    def _strata(self) -> list[NDArray[np.intp]]:
        sizes = Counter(self.scenarios.tolist())
        stratum = np.array([0 if sizes[scenario] == 1 else scenario for scenario in self.scenarios.tolist()])
        return [np.flatnonzero(stratum == one) for one in np.unique(stratum)]

    @property
    def freedom(self) -> int:
        """The degrees of freedom of resamples: one fewer than dialogues in each stratum."""
        return sum(len(columns) - 1 for columns in self._strata())

    def _weights(self, resamples: int, seed: int) -> Iterator[Array]:
        strata = self._strata()
        for start in range(0, resamples, AT_ONCE):
            rng = np.random.default_rng(derived_random(seed, "bootstrap", start).getrandbits(64))
            weights = np.ones((min(AT_ONCE, resamples - start), len(self)))
            for columns in strata:
                if (size := len(columns)) > 1:
                    drawn = rng.multinomial(size - 1, np.full(size, 1 / size), size=len(weights))
                    weights[:, columns] = drawn * (size / (size - 1))
            yield weights

    def exchanged(self, change: Array, flips: int, seed: int) -> Array:
        """Sums of ``change`` over randomly chosen dialogues, each in with probability one half, shape (flips, k)."""
        parts = []
        for start in range(0, flips, AT_ONCE):
            rng = np.random.default_rng(derived_random(seed, "exchange", start).getrandbits(64))
            parts.append(rng.integers(0, 2, (min(AT_ONCE, flips - start), len(self))).astype(np.float64) @ change)
        return np.vstack(parts)


def interval(values: Array, places: int) -> tuple[float, float]:
    """The percentile interval of resampled values."""
    low, high = np.quantile(values, TAILS)
    return round(float(low), places), round(float(high), places)


def studentised(value: float, values: Array, freedom: int, places: int) -> tuple[float, float]:
    """The interval of a value from the standard deviation of its resampled values and Student's distribution.

    Wider than that of percentiles where dialogues are few, and right there; for figures that may lie anywhere.
    """
    half = student(freedom) * float(values.std(ddof=1))
    return round(value - half, places), round(value + half, places)


def student(freedom: int) -> float:
    """The quantile of Student's distribution that belongs to CONFIDENCE, within a part in 500.

    Exact for 1 and 2 degrees of freedom; else the expansion 26.7.5 of Abramowitz and Stegun, *Handbook of Mathematical Functions*.
    """
    tail = TAILS[1]
    if freedom < 3:
        return math.tan(math.pi * (tail - 0.5)) if freedom == 1 else (2 * tail - 1) * math.sqrt(2 / (4 * tail * (1 - tail)))
    z = NormalDist().inv_cdf(tail)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / freedom**power for power, term in enumerate(terms, 1))


# With more degrees of freedom Student's distribution is the normal one, within a part in a hundred where p is 0.001.
MOST_FREEDOM = 1000


def student_p(ratio: float, freedom: int) -> float:
    """The two-sided p-value of a ratio that has Student's distribution with so many degrees of freedom.

    The sums 26.7.3 and 26.7.4 of Abramowitz and Stegun, *Handbook of Mathematical Functions*.
    """
    if freedom > MOST_FREEDOM:
        return math.erfc(abs(ratio) / math.sqrt(2))
    angle = math.atan(abs(ratio) / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = total = (cosine if odd else 1.0) if freedom > 1 else 0.0
    for power in range(2 + odd, freedom, 2):
        term *= cosine**2 * (power - 1) / power
        total += term
    inside = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return min(max(1 - inside, 0.0), 1.0)


def jackknifed(values: Array) -> float:
    """The standard error from a value and the values without each dialogue."""
    without = values[1:]
    count = len(without)
    return math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))
