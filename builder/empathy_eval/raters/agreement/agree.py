"""All figures of agreement of a table, as one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tqdm import tqdm

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.raters.agreement.against_median import AgainstMedian, against_median
from empathy_eval.raters.agreement.alpha import LEVELS, alpha, fleiss
from empathy_eval.raters.agreement.benchmark import PANEL, Benchmark, benchmark
from empathy_eval.raters.agreement.bootstrap import Measure, Resampling
from empathy_eval.raters.agreement.kappa import WEIGHTS
from empathy_eval.raters.agreement.table import Table
from empathy_eval.raters.agreement.variance_inflation import inflation

# More would fill memory, and move no digit that is shown.
MOST_RESAMPLES = 10_000


@dataclass(frozen=True)
class Criterion:
    """The figures of one criterion; ``against_median`` holds the experts, unless they are a crowd, and then the judges.

    ``scale`` are the values that occur, ``signature`` how intervals were made.
    """

    criterion: str
    items: int
    ratings: int
    scale: tuple[float, ...]
    signature: str
    alpha: dict[str, Measure]
    fleiss: Measure
    benchmark: Benchmark
    against_median: tuple[AgainstMedian, ...]


@dataclass(frozen=True)
class Agreement:
    """How far the raters of a table agree; ``inflation`` is by criterion."""

    level: str
    experts: tuple[str, ...]
    judges: tuple[str, ...]
    criteria: tuple[Criterion, ...]
    inflation: dict[str, Measure]

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON values; what is not defined is null, with its reason in ``why``."""
        return asdict(self)


def agree(table: Table, judges: Sequence[str] = (), resamples: int = 1000, seed: int = 0, level: str = "interval") -> Agreement:
    """All figures of agreement of the raters of a table, with 95 % intervals from ``resamples`` draws of items.

    All raters that are no judges are experts; alpha, Fleiss' kappa, the benchmark and the inflation are theirs alone. ``level`` says
    what the distance of two ratings means, and so which kappa the benchmark takes: plain (nominal), linear (ordinal) or
    quadratic (interval).

    Raises:
        InputError: for a judge who is not in the table, a level that is not known, or a number of resamples out of range.
    """
    judges = tuple(dict.fromkeys(judges))
    _check(table, judges, resamples, level)
    experts = tuple(name for name in table.raters if name not in judges)
    names = tqdm(table.criteria, unit="criterion", desc="agree", disable=None, delay=2)
    criteria = tuple(_criterion(table, name, judges, WEIGHTS[LEVELS.index(level)], resamples, seed) for name in names)
    return Agreement(level, experts, judges, criteria, inflation(table, experts, resamples, seed))


def _criterion(table: Table, name: str, judges: Sequence[str], weights: str, resamples: int, seed: int) -> Criterion:
    ratings = table.on(name)
    sample = Resampling.of(ratings.items, resamples, seed)
    named = [ratings.raters.index(judge) for judge in judges]
    experts = [place for place in range(len(ratings.raters)) if place not in named]
    counts = ratings.counts(experts)
    listed = (experts if len(experts) <= PANEL else []) + named
    return Criterion(
        name,
        ratings.items,
        len(ratings.step),
        tuple(ratings.scale.tolist()),
        sample.signature,
        alpha(counts, ratings.scale, sample),
        fleiss(counts, sample),
        benchmark(ratings, experts, named, weights, sample),
        tuple(against_median(ratings, place, experts, counts, sample) for place in listed),
    )


def _check(table: Table, judges: Sequence[str], resamples: int, level: str) -> None:
    known = ", ".join(table.raters[:PANEL])
    problems = [
        Problem("judge", f'"{judge}" is no rater of the table', f"use one of {known}") for judge in judges if judge not in table.raters
    ]
    if level not in LEVELS:
        problems.append(Problem("level", f'"{level}" is not known', f"use one of {', '.join(LEVELS)}"))
    if not 0 <= resamples <= MOST_RESAMPLES:
        problems.append(Problem("resamples", f'"{resamples}" is out of range', f"use 0 (no intervals) to {MOST_RESAMPLES}"))
    if problems:
        raise InputError(problems)
