"""How a metric ranks variants: pairwise accuracy, standardised effect, and the area under the curve."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from empathy_eval.statistics.estimate import Estimate, Floats

# A smaller spread is the rounding of scores that are all alike.
LEAST_SPREAD = 1e-9


def wins(one: Floats, other: Floats) -> Floats:
    """1 where the first score is higher, 0 where the second is, one half for a tie; shape (pairs,)."""
    return np.asarray((np.sign(one - other) + 1) / 2)


@dataclass(frozen=True)
class PairwiseComparisons:
    """The scores (kind, cold) of each duel of a contrast, higher is better; shape (pairs,) each."""

    sides: Sequence[tuple[Floats, Floats]]

    def won(self, missing: float = math.nan) -> Floats:
        """By pair the share of its duels that the kind text won, ties half; ``missing`` is what a duel without scores counts."""
        return np.asarray(np.mean([np.nan_to_num(wins(*one), nan=missing) for one in self.sides], axis=0))

    @property
    def ties(self) -> float:
        """The share of duels whose two scores are equal."""
        return float(np.mean([one == other for one, other in self.sides]))

    @property
    def pull(self) -> Floats:
        """By pair the mean of kind minus cold score over its duels."""
        return np.asarray(np.mean([one - other for one, other in self.sides], axis=0))

    def sums(self) -> Floats:
        """By pair what :func:`shares_won` and :func:`effects` are made of, so that sums of rows are enough for them.

        Columns: won, 1, then score and squared score of each side; scores lie around their mean, which changes no effect.
        """
        flat = [side for duel in self.sides for side in duel]
        middle = float(np.mean(flat)) if len(flat[0]) else 0.0
        columns = [column for side in flat for column in (side - middle, (side - middle) ** 2)]
        return np.column_stack([self.won(), np.ones(len(flat[0])), *columns])


def shares_won(sums: Floats) -> Floats:
    """Accuracies of rows of summed :meth:`Duels.sums`, shape (m,)."""
    return np.asarray(sums[:, 0] / sums[:, 1])


def effects(sums: Floats) -> Floats:
    """Standardised effects of rows of summed :meth:`Duels.sums`, shape (m,); nan where scores have no spread.

    The mean over duels of kind minus cold, over :func:`spreads`.
    """
    means = sums[:, 2::2] / sums[:, 1:2]
    return np.asarray((means[:, 0::2] - means[:, 1::2]).mean(axis=1) / spreads(sums))


def spreads(sums: Floats) -> Floats:
    """The standard deviation of scores within a cell, its square the mean over cells, shape (m,); nan where there is none."""
    means, squares = sums[:, 2::2] / sums[:, 1:2], sums[:, 3::2] / sums[:, 1:2]
    spread = np.sqrt(np.maximum(squares - means**2, 0.0).mean(axis=1))
    return np.asarray(np.where(spread > LEAST_SPREAD, spread, np.nan))


def area(one: Floats, other: Floats, members: NDArray[np.int64]) -> tuple[float, float | None]:
    """The area under the ROC curve and its standard error.

    The area is the chance that a text of the first variant scores higher than one of the second, drawn anywhere, ties half. The error
    is that of Obuchowski (1997) for clustered data: pairs of one dialogue (``members``) are not independent. None for one cluster.
    """
    here, there = _placements(one, other), 1 - _placements(other, one)
    value, count = float(here.mean()), len(one)
    clusters = int(members.max()) + 1
    if clusters < 2:
        return value, None
    sizes = np.bincount(members, minlength=clusters)
    first = np.bincount(members, here, clusters) - sizes * value
    second = np.bincount(members, there, clusters) - sizes * value
    factor = clusters / (clusters - 1) / count**2
    variance = factor * float(first @ first + second @ second + 2 * first @ second)
    return value, math.sqrt(max(variance, 0.0))


def _placements(one: Floats, other: Floats) -> Floats:
    """For each first score the share of second scores below it, ties half."""
    ordered = np.sort(other)
    below, upto = np.searchsorted(ordered, one, "left"), np.searchsorted(ordered, one, "right")
    return np.asarray((below + upto) / 2 / len(other))


def holm(values: list[float]) -> list[float]:
    """p-values corrected for standing together (Holm 1979), in their order."""
    order = np.argsort(values, kind="stable")
    raised = np.maximum.accumulate(np.minimum(np.arange(len(values), 0, -1) * np.sort(values), 1.0))
    return [float(raised[rank]) for rank in np.argsort(order)]


Corrected = TypeVar("Corrected", bound=Estimate)


def holm_corrected(found: Iterable[Corrected], places: int) -> list[Corrected]:
    """Estimates with their p-values corrected for standing together, to so many places; those without one stay as they are."""
    every = list(found)
    values = iter(holm([one.p for one in every if one.p is not None]))
    return [one if one.p is None else replace(one, p_corrected=round(next(values), places)) for one in every]


def benjamini_hochberg(values: list[float]) -> list[float]:
    """p-values corrected so that no more than that share of what is found is false (Benjamini and Hochberg 1995), in their order."""
    order = np.argsort(values, kind="stable")
    raised = np.minimum(np.sort(values) * len(values) / np.arange(1, len(values) + 1), 1.0)
    lowered = np.minimum.accumulate(raised[::-1])[::-1]
    return [float(lowered[rank]) for rank in np.argsort(order)]


# Half a win each way between every two that met: a system that won everything has a finite score.
HALF_A_WIN = 0.5
ROUNDS = 500


def bradley_terry(won: Floats) -> Floats:
    """Scores whose differences are the log-odds of winning, shape (m, n) with mean 0, from wins of row over column, shape (m, n, n).

    Bradley and Terry (1952), "Rank Analysis of Incomplete Block Designs: The Method of Paired Comparisons"; fitted by the iteration of
    Hunter (2004), "MM Algorithms for Generalized Bradley-Terry Models", equation 3. Ties are half a win each, and ``HALF_A_WIN`` is added
    to either side of every two that met.
    """
    met = (won + won.transpose(0, 2, 1)) > 0
    wins = won + HALF_A_WIN * met
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
