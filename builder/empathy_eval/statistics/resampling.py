"""Dialogues as the unit of chance: the bootstrap over them within scenario, and the exchange of variants within them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import derived_random, signature_line
from empathy_eval.statistics.estimate import CONFIDENCE, TAILS, Codes, Floats

# Resamples of clusters, and of pigeonholes, that are drawn at once.
AT_ONCE, PIGEONHOLES_AT_ONCE = 50, 20


def blocks(resamples: int, at_once: int, seed: int, name: str) -> Iterator[tuple[np.random.Generator, int]]:
    """Generators of random numbers, and how many resamples each draws at once: memory does not grow with their number."""
    for start in range(0, resamples, at_once):
        yield np.random.default_rng(derived_random(seed, name, start).getrandbits(64)), min(at_once, resamples - start)


def sums_by(unit: Codes, columns: Iterable[Floats], units: int) -> Floats:
    """Sums of columns by the unit of each entry, shape (units, columns)."""
    sums = [np.bincount(unit, column, units) for column in columns]
    return np.column_stack(sums) if sums else np.zeros((units, 0))


@dataclass(frozen=True)
class Clusters:
    """Which dialogue each segment belongs to (``members``), and which scenario each dialogue."""

    members: Codes
    scenarios: Codes

    @classmethod
    def of(cls, dialogues: Sequence[str], scenarios: Sequence[int]) -> Clusters:
        """From the dialogue and the scenario of each segment."""
        scenario_of = dict(zip(dialogues, scenarios, strict=True))
        place = {dialogue: number for number, dialogue in enumerate(scenario_of)}
        return cls(np.array([place[one] for one in dialogues], dtype=np.int64), np.array([*scenario_of.values()], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.scenarios)

    def take(self, rows: NDArray[np.bool_]) -> Clusters:
        """The clusters of some of the segments; dialogues without a segment are gone."""
        kept, members = np.unique(self.members[rows], return_inverse=True)
        return Clusters(members, self.scenarios[kept])

    def totals(self, statistics: Floats) -> Floats:
        """Sums of segment statistics by dialogue, shape (dialogues, k)."""
        return sums_by(self.members, statistics.T, len(self))

    def bootstrapped(self, totals: Floats, resamples: int, seed: int) -> Floats:
        """Sums over resampled dialogues, shape (resamples, k).

        Dialogues are drawn with replacement within their scenario, one fewer than there are, and weighted up (Rao & Wu 1988):
        without that, scenarios of few dialogues would make the intervals too narrow. Scenarios of one dialogue have no spread of
        their own and are one stratum together; a single such dialogue is always in.
        """
        strata = self._strata()
        parts = list[Floats]()
        for rng, many in blocks(resamples, AT_ONCE, seed, "bootstrap"):
            weights = np.ones((many, len(self)))
            for columns in strata:
                if (size := len(columns)) > 1:
                    weights[:, columns] = rng.multinomial(size - 1, np.full(size, 1 / size), size=many) * (size / (size - 1))
            parts.append(weights @ totals)
        return np.vstack(parts)

    def _strata(self) -> list[NDArray[np.intp]]:
        sizes = Counter(self.scenarios.tolist())
        stratum = np.array([0 if sizes[scenario] == 1 else scenario for scenario in self.scenarios.tolist()])
        return [np.flatnonzero(stratum == one) for one in np.unique(stratum)]

    @property
    def freedom(self) -> int:
        """The degrees of freedom of resamples: one fewer than dialogues in each stratum."""
        return sum(len(columns) - 1 for columns in self._strata())

    def exchanged(self, change: Floats, flips: int, seed: int) -> Floats:
        """Sums of ``change`` over randomly chosen dialogues, each in with probability one half, shape (flips, k)."""
        drawn = blocks(flips, AT_ONCE, seed, "exchange")
        return np.vstack([rng.integers(0, 2, (many, len(self))).astype(np.float64) @ change for rng, many in drawn])


def interval(values: Floats, places: int) -> tuple[float, float]:
    """The percentile interval of resampled values."""
    low, high = np.quantile(values, TAILS)
    return round(float(low), places), round(float(high), places)


def studentised(value: float, values: Floats, freedom: int, places: int) -> tuple[float, float]:
    """The interval of a value from the standard deviation of its resampled values and Student's distribution.

    Wider than that of percentiles where dialogues are few, and right there; for figures that may lie anywhere.
    """
    half = student(freedom) * float(values.std(ddof=1))
    return round(value - half, places), round(value + half, places)


def student(freedom: int) -> float:
    """The quantile of Student's distribution that belongs to CONFIDENCE."""
    # Loads in a tenth of a second; scipy.stats takes a whole one.
    from scipy.special import stdtrit

    return float(stdtrit(freedom, TAILS[1]))


def student_p(ratio: float, freedom: int) -> float:
    """The two-sided p-value of a ratio that has Student's distribution with so many degrees of freedom."""
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(ratio)))


def jackknifed(values: Floats) -> float:
    """The standard error from a value and the values without each dialogue."""
    without = values[1:]
    count = len(without)
    return math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))


# Where there are more items, random groups of equal size are drawn instead: the work no longer grows with the items, and that many
# groups know the spread of a sum within one part in sixty, which is closer than a thousand resamples know a percentile.
UNITS = 2000


@dataclass(frozen=True)
class ItemBootstrap:
    """Items drawn with replacement, the same ones for every figure, so that figures can be compared resample by resample.

    ``unit`` is the unit of each item: the item itself, or its group. ``weights`` has shape (1 + resamples, units): how often each unit
    is drawn, and first the table itself, where each counts once.
    """

    unit: Codes
    weights: Floats
    signature: str

    @classmethod
    def of(cls, items: int, resamples: int, seed: int) -> ItemBootstrap:
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

    def total(self, items: Codes, columns: Iterable[Floats]) -> Floats:
        """Sums by unit of columns that belong to items, shape (units, columns)."""
        return sums_by(self.unit[items], columns, self.weights.shape[1])

    def resampled(self, sums: Floats) -> Floats:
        """Sums over the table and over each resample, from shape (units, k) to shape (1 + resamples, k)."""
        return np.asarray(self.weights @ sums)

    def totals(self, items: Codes, columns: Iterable[Floats]) -> Floats:
        """Sums over the table and over each resample of columns that belong to items, shape (1 + resamples, columns)."""
        return self.resampled(self.total(items, columns))

    def line(self, **settings: object) -> str:
        """The settings of a figure, and after them those of its interval."""
        return f"{signature_line(**settings)}|{self.signature}"


def ratio(above: Floats, below: Floats) -> Floats:
    """A quotient that is NaN where it is not defined."""
    return np.asarray(np.divide(above, below, out=np.full(np.broadcast(above, below).shape, np.nan), where=below > 0))


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
    def of(cls, rater: Codes, unit: Codes, resamples: int, seed: int) -> Pigeonhole:
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

    def weights(self) -> Iterator[tuple[Floats, Floats]]:
        """How often raters and units count, shape (weightings, raters) and (weightings, units): once each, then as they are drawn."""
        yield np.ones((1, self.raters)), np.ones((1, self.units))
        for rng, many in blocks(self.resamples if self.drawn else 0, PIGEONHOLES_AT_ONCE, self.seed, "people"):
            yield _drawn(rng, many, self.raters, self.draws_raters), _drawn(rng, many, self.units, self.draws_units)


def _drawn(rng: np.random.Generator, many: int, count: int, is_drawn: bool) -> Floats:
    if not is_drawn:
        return np.ones((many, count))
    places = rng.integers(count, size=(many, count)) + np.arange(many)[:, None] * count
    return np.bincount(places.ravel(), minlength=many * count).reshape(many, count).astype(np.float64)
