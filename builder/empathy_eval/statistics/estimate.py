"""Estimates: a number with its interval and settings; resampling over dialogues; pairwise comparisons; corrections of p-values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import derived_random
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
    """Rounds a number to the places that are equal on every machine; adding 0 removes the sign of a negative zero."""
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
        """All fields by their names in tables, except those named."""
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


# A smaller spread is the rounding of scores that are all alike.
LEAST_SPREAD = 1e-9


def wins(first: Floats, second: Floats) -> Floats:
    """Returns 1 where the first score is higher, 0 where the second is, one half for a tie; shape (pairs,)."""
    return np.asarray((np.sign(first - second) + 1) / 2)


@dataclass(frozen=True)
class PairwiseComparisons:
    """The scores (kind, cold) of each duel of a contrast, higher is better; shape (pairs,) each."""

    sides: Sequence[tuple[Floats, Floats]]

    def won(self, missing: float = math.nan) -> Floats:
        """By pair the share of its duels that the kind text won, ties half; ``missing`` is what a duel without scores counts."""
        return np.asarray(np.mean([np.nan_to_num(wins(*side), nan=missing) for side in self.sides], axis=0))

    @property
    def ties(self) -> float:
        """The share of duels whose two scores are equal."""
        return float(np.mean([first == second for first, second in self.sides]))

    @property
    def pull(self) -> Floats:
        """By pair the mean of kind minus cold score over its duels."""
        return np.asarray(np.mean([first - second for first, second in self.sides], axis=0))

    def sums(self) -> Floats:
        """Rows by pair whose sums give :func:`shares_won` and :func:`effects`.

        Columns: won, 1, then score and squared score of each side; scores lie around their mean, which changes no effect.
        """
        flat = [side for duel in self.sides for side in duel]
        middle = float(np.mean(flat)) if len(flat[0]) else 0.0
        columns = [column for side in flat for column in (side - middle, (side - middle) ** 2)]
        return np.column_stack([self.won(), np.ones(len(flat[0])), *columns])


def shares_won(sums: Floats) -> Floats:
    """Accuracies from summed rows of :meth:`PairwiseComparisons.sums`, shape (m,)."""
    return np.asarray(sums[:, 0] / sums[:, 1])


def effects(sums: Floats) -> Floats:
    """Standardised effects from summed rows of :meth:`PairwiseComparisons.sums`, shape (m,); nan where scores have no spread.

    The mean over duels of kind minus cold, over :func:`spreads`.
    """
    means = sums[:, 2::2] / sums[:, 1:2]
    return np.asarray((means[:, 0::2] - means[:, 1::2]).mean(axis=1) / spreads(sums))


def spreads(sums: Floats) -> Floats:
    """The standard deviation of scores within a cell, its square the mean over cells, shape (m,); nan where there is none."""
    means, squares = sums[:, 2::2] / sums[:, 1:2], sums[:, 3::2] / sums[:, 1:2]
    spread = np.sqrt(np.maximum(squares - means**2, 0.0).mean(axis=1))
    return np.asarray(np.where(spread > LEAST_SPREAD, spread, np.nan))


def area_under_curve(first: Floats, second: Floats, members: NDArray[np.int64]) -> tuple[float, float | None]:
    """The area under the ROC curve and its standard error.

    The area is the chance that a text of the first variant scores higher than one of the second, drawn anywhere, ties half. The error
    is that of Obuchowski (1997) for clustered data: pairs of one dialogue (``members``) are not independent. None for one cluster.
    """
    above, below = _placements(first, second), 1 - _placements(second, first)
    value, count = float(above.mean()), len(first)
    clusters = int(members.max()) + 1
    if clusters < 2:
        return value, None
    sizes = np.bincount(members, minlength=clusters)
    first_sums = np.bincount(members, above, clusters) - sizes * value
    second_sums = np.bincount(members, below, clusters) - sizes * value
    factor = clusters / (clusters - 1) / count**2
    variance = factor * float(first_sums @ first_sums + second_sums @ second_sums + 2 * first_sums @ second_sums)
    return value, math.sqrt(max(variance, 0.0))


def _placements(scores: Floats, others: Floats) -> Floats:
    """For each score the share of the others below it, ties half."""
    ordered = np.sort(others)
    below, upto = np.searchsorted(ordered, scores, "left"), np.searchsorted(ordered, scores, "right")
    return np.asarray((below + upto) / 2 / len(others))


def holm(values: list[float]) -> list[float]:
    """p-values with Holm's correction (1979), in their order."""
    order = np.argsort(values, kind="stable")
    raised = np.maximum.accumulate(np.minimum(np.arange(len(values), 0, -1) * np.sort(values), 1.0))
    return [float(raised[rank]) for rank in np.argsort(order)]


Corrected = TypeVar("Corrected", bound=Estimate)


def holm_corrected(estimates: Iterable[Corrected], places: int) -> list[Corrected]:
    """Estimates with Holm-corrected p-values, rounded to ``places``; those without a p-value are unchanged."""
    listed = list(estimates)
    values = iter(holm([estimate.p for estimate in listed if estimate.p is not None]))
    return [estimate if estimate.p is None else replace(estimate, p_corrected=round(next(values), places)) for estimate in listed]


def benjamini_hochberg(values: list[float]) -> list[float]:
    """p-values adjusted for the false discovery rate (Benjamini and Hochberg 1995), in their order."""
    order = np.argsort(values, kind="stable")
    raised = np.minimum(np.sort(values) * len(values) / np.arange(1, len(values) + 1), 1.0)
    lowered = np.minimum.accumulate(raised[::-1])[::-1]
    return [float(lowered[rank]) for rank in np.argsort(order)]


# Resamples of clusters, and of pigeonholes, that are drawn at once.
AT_ONCE = 50


def blocks(resamples: int, at_once: int, seed: int, name: str) -> Iterator[tuple[np.random.Generator, int]]:
    """Random generators, and how many resamples each draws at once: memory does not grow with the number of resamples."""
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
        return cls(np.array([place[dialogue] for dialogue in dialogues], dtype=np.int64), np.array([*scenario_of.values()], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.scenarios)

    def take(self, rows: NDArray[np.bool_]) -> Clusters:
        """The clusters of the chosen segments; dialogues without a segment are dropped."""
        present, members = np.unique(self.members[rows], return_inverse=True)
        return Clusters(members, self.scenarios[present])

    def totals(self, statistics: Floats) -> Floats:
        """Sums of segment statistics by dialogue, shape (dialogues, k)."""
        return sums_by(self.members, statistics.T, len(self))

    def bootstrap(self, totals: Floats, resamples: int, seed: int) -> Floats:
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
        return [np.flatnonzero(stratum == number) for number in np.unique(stratum)]

    @property
    def degrees_of_freedom(self) -> int:
        """The degrees of freedom of resamples: one fewer than dialogues in each stratum."""
        return sum(len(columns) - 1 for columns in self._strata())

    def permute(self, change: Floats, flips: int, seed: int) -> Floats:
        """Sums of ``change`` over randomly chosen dialogues, each in with probability one half, shape (flips, k)."""
        drawn = blocks(flips, AT_ONCE, seed, "exchange")
        return np.vstack([rng.integers(0, 2, (many, len(self))).astype(np.float64) @ change for rng, many in drawn])


def percentile_interval(values: Floats, places: int) -> tuple[float, float]:
    """Percentile interval of resampled values."""
    low, high = np.quantile(values, TAILS)
    return round(float(low), places), round(float(high), places)


def student_interval(value: float, values: Floats, freedom: int, places: int) -> tuple[float, float]:
    """Interval of a value from the standard deviation of its resampled values and Student's distribution.

    With few dialogues it is wider than the percentile interval, and has the right coverage. It fits unbounded figures.
    """
    half = student_quantile(freedom) * float(values.std(ddof=1))
    return round(value - half, places), round(value + half, places)


def student_quantile(freedom: int) -> float:
    """The quantile of Student's distribution for a two-sided interval at CONFIDENCE."""
    # Loads in a tenth of a second; scipy.stats takes a whole one.
    from scipy.special import stdtrit

    return float(stdtrit(freedom, TAILS[1]))


def student_p(ratio: float, freedom: int) -> float:
    """Two-sided p-value of a ratio under Student's distribution."""
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(ratio)))


def jackknife_error(values: Floats) -> float:
    """Jackknife standard error, from the value and the values without each dialogue, shape (1 + dialogues,)."""
    without = values[1:]
    count = len(without)
    return math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))


# Half a win each way between every two that met: a system that won everything has a finite score.
HALF_A_WIN = 0.5
ROUNDS = 500


def bradley_terry(won: Floats, met: NDArray[np.bool_] | None = None) -> Floats:
    """Scores whose differences are the log-odds of winning, shape (m, n) with mean 0, from wins of row over column, shape (m, n, n).

    Bradley and Terry (1952), "Rank Analysis of Incomplete Block Designs: The Method of Paired Comparisons"; fitted by the iteration of
    Hunter (2004), "MM Algorithms for Generalized Bradley-Terry Models", equation 3. Ties are half a win each, and ``HALF_A_WIN`` is added
    to either side of every two that met: in ``won``, or by ``met``, shape (n, n), so that a resample without some of them has scores too.
    """
    wins = won + HALF_A_WIN * ((won + won.transpose(0, 2, 1)) > 0 if met is None else met)
    games, total = wins + wins.transpose(0, 2, 1), wins.sum(axis=2)
    strength = np.ones(total.shape)
    for _ in range(ROUNDS):
        before = strength
        strength = total / np.maximum((games / (strength[:, :, None] + strength[:, None, :])).sum(axis=2), 1e-300)
        strength = strength / np.exp(np.log(np.maximum(strength, 1e-300)).mean(axis=1, keepdims=True))
        if np.abs(strength - before).max() < 1e-10:
            break
    logged = np.log(np.maximum(strength, 1e-300))
    return np.asarray(logged - logged.mean(axis=1, keepdims=True))


def connected(met: NDArray[np.bool_]) -> bool:
    """Whether all have met, directly or by way of others: else their scores cannot be compared; shape (n, n)."""
    reach = met | met.T | np.eye(len(met), dtype=bool)
    for _ in range(len(met)):
        reach = (reach.astype(np.int64) @ reach.astype(np.int64)) > 0
    return bool(reach.all())
