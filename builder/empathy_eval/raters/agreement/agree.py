"""All figures of agreement of a table, as one call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from empathy_eval.base.data_frames import data_frame
from empathy_eval.base.errors import InputError, Problem, nearest
from empathy_eval.base.stages import advance, stage
from empathy_eval.design.provenance import KEYS, Result
from empathy_eval.raters.agreement.against_median import AgainstMedian, against_median
from empathy_eval.raters.agreement.alpha import LEVELS, alpha, fleiss
from empathy_eval.raters.agreement.benchmark import PANEL, Benchmark, benchmark
from empathy_eval.raters.agreement.bootstrap import Measure, Resampling
from empathy_eval.raters.agreement.kappa import WEIGHTS
from empathy_eval.raters.agreement.table import Table
from empathy_eval.raters.agreement.tags import TagAudit
from empathy_eval.raters.agreement.variance_inflation import inflation

if TYPE_CHECKING:
    import pandas as pd

# More would fill memory, and move no digit that is shown.
MOST_RESAMPLES = 10_000
# The long form: a row a figure. Of two raters, the second is ``other``; the figures of all experts name none.
NUMBERS = ("value", "low", "high")
FIGURE_COLUMNS = ("criterion", "figure", "by", "rater", "other", *NUMBERS, "items", "why", "signature")
# What a figure is called, by what (level, weights or threshold), and whose it is.
Figure = tuple[str, str | None, str | None, str | None, Measure]


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

    def figures(self) -> Iterator[Figure]:
        """All figures, one by one."""
        yield from (("alpha", level, None, None, one) for level, one in self.alpha.items())
        yield "fleiss", None, None, None, self.fleiss
        weights, judges = self.benchmark.weights, self.benchmark.judges
        yield "benchmark", weights, None, None, self.benchmark.median
        for pair in (*self.benchmark.pairs, *(pair for judge in judges for pair in judge.pairs)):
            yield from (("kappa", name, *pair.raters, one) for name, one in pair.kappa.items())
        for judge in judges:
            yield "median kappa", weights, judge.judge, None, judge.median
            yield "median kappa minus benchmark", weights, judge.judge, None, judge.difference
        for rater in self.against_median:
            yield from (("kappa with the median", name, rater.rater, None, one) for name, one in rater.kappa.items())
            yield "macro F1 with the median", None, rater.rater, None, rater.macro_f1
            yield from (("F1 with the median", f">={least:g}", rater.rater, None, one) for least, one in rater.binary_f1)


@dataclass(frozen=True, repr=False)
class Agreement(Result):
    """How far the raters of a table agree; ``inflation`` is by criterion, ``tags`` the audit of strategy tags, where some were judged."""

    columns: ClassVar[tuple[str, ...]] = (*KEYS, *FIGURE_COLUMNS)
    level: str
    experts: tuple[str, ...]
    judges: tuple[str, ...]
    criteria: tuple[Criterion, ...]
    inflation: dict[str, Measure]
    tags: TagAudit | None = None

    @property
    def headline(self) -> dict[str, Measure]:
        """By criterion the benchmark: the median kappa of pairs of experts, with its interval."""
        return {one.criterion: one.benchmark.median for one in self.criteria}

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON values; what is not defined is null, with its reason in ``why``. Without tags nothing is said of them."""
        found = self._with_provenance(asdict(self))
        return found if self.tags else {name: value for name, value in found.items() if name != "tags"}

    def records(self) -> Iterator[dict[str, Any]]:
        """The long form, a record a figure with the columns ``columns``; ranks among pairs (``reached``) are in JSON alone."""
        return self._stamped(self._records())

    def _records(self) -> Iterator[dict[str, Any]]:
        found = [(one.criterion, *figure) for one in self.criteria for figure in one.figures()]
        found += [(criterion, "variance inflation", None, None, None, one) for criterion, one in self.inflation.items()]
        found += [("strategy tags", "held right", None, by, None, one) for by, one in (self.tags.right if self.tags else {}).items()]
        for *about, one in found:
            yield dict(zip(FIGURE_COLUMNS, (*about, one.value, one.low, one.high, one.items, one.why, one.signature), strict=True))

    def to_pandas(self) -> pd.DataFrame:
        """The long form as a data frame; what is not defined is NaN, with its reason in ``why``.

        Raises:
            InputError: if pandas is not installed.
        """
        return data_frame(self.records(), self.columns, NUMBERS)


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
    stage("agreement of raters", len(table.criteria), "criteria")
    criteria = list[Criterion]()
    for name in table.criteria:
        criteria.append(_criterion(table, name, judges, WEIGHTS[LEVELS.index(level)], resamples, seed))
        advance()
    stage("variance inflation")
    return Agreement(level, experts, judges, tuple(criteria), inflation(table, experts, resamples, seed))


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
        Problem("judge", f'"{judge}" is not a rater in the table', f"use one of {known}{nearest(judge, table.raters)}")
        for judge in judges
        if judge not in table.raters
    ]
    problems += odd_options(resamples, level)
    if problems:
        raise InputError(problems)


def odd_options(resamples: int, level: str) -> list[Problem]:
    """What is wrong with a number of resamples and a level."""
    problems = list[Problem]()
    if level not in LEVELS:
        problems.append(Problem("level", f'"{level}" is not known', f"use one of {', '.join(LEVELS)}"))
    if not 0 <= resamples <= MOST_RESAMPLES:
        problems.append(Problem("resamples", f'"{resamples}" is out of range', f"use 0 (no intervals) to {MOST_RESAMPLES}"))
    return problems
