"""All figures of agreement of a table, as one call."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from typing import Any

import numpy as np

from empathy_eval.base.errors import Problem, nearest, refuse
from empathy_eval.base.stages import advance, stage
from empathy_eval.design.provenance import KEYS, LongForm
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.raters.agreement.experts import PANEL, AgainstMedian, Benchmark, BesideMedian, Experts, benchmark
from empathy_eval.raters.agreement.table import Table
from empathy_eval.statistics.agreement import LEVELS, WEIGHTS, alpha, fleiss
from empathy_eval.statistics.estimate import Codes, Floats, Measure
from empathy_eval.statistics.resampling import ItemBootstrap

# Of a tag that was found wrong, when nobody said what it should be.
NOT_SAID = "not said"


@dataclass(frozen=True)
class Tag:
    """One judgement of the planned strategy of a turn: what it was ``called``, which is the strategy itself where it was held right.

    None is called nothing: found wrong without a better one.
    """

    pair_id: str
    strategy: str
    called: str | None

    @property
    def right(self) -> bool:
        """Whether the tag was held right."""
        return self.called == self.strategy


@dataclass(frozen=True)
class TagRow:
    """How often one judged the tags of a strategy: how many were held right, and what each other was called, most frequent first."""

    strategy: str
    by: str
    judged: int
    right: int
    instead: dict[str, int]


@dataclass(frozen=True)
class TagAudit:
    """The rows by strategy, in the taxonomy's order, and who judged; ``right`` is the share of tags held right by who judged."""

    rows: tuple[TagRow, ...]
    right: dict[str, Measure]


def tag_rows(given: Mapping[str, Iterable[Tag]]) -> tuple[TagRow, ...]:
    """The rows of tags by who judged them."""
    called: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for by, tags in given.items():
        for one in tags:
            called[one.strategy, by][one.called or NOT_SAID] += 1
    names = [one.name for one in load_taxonomy().strategies]
    rows = list[TagRow]()
    for strategy, by in [(name, by) for name in [*names, *sorted({name for name, _ in called} - {*names})] for by in given]:
        if counts := called.get((strategy, by)):
            others = [(name, counts[name]) for name in [*names, NOT_SAID] if name in counts and name != strategy]
            instead = dict(sorted(others, key=lambda other: -other[1]))
            rows.append(TagRow(strategy, by, counts.total(), counts[strategy], instead))
    return tuple(rows)


# An eigenvalue of a correlation matrix that is 0 but for rounding, and a variance beside the squares it is the difference of.
NOUGHT, FLAT = 1e-10, 1e-12


def inflation(table: Table, raters: Sequence[str], resamples: int, seed: int) -> dict[str, Measure]:
    """The variance inflation factor of each criterion, over the ratings of items by these raters that have all criteria.

    VIF = 1 / (1 - R2) of a least-squares regression of the criterion on all others with an intercept. Rows of all raters are pooled;
    items are drawn.
    """
    items, values = _complete(table, raters)
    places, item = np.unique(items, return_inverse=True)
    sample = ItemBootstrap.of(len(places), resamples, seed)
    line = sample.line(vif="1/(1-R2)", criteria=len(table.criteria), rows=len(values))
    if len(table.criteria) < 2:
        return {name: Measure.undefined("there is only one criterion", line, len(places)) for name in table.criteria}
    # Sums of squares of numbers around 0 lose no digits.
    values = values - values.sum(axis=0) / max(len(values), 1)
    products = np.einsum("ij,ik->jki", values, values).reshape(len(table.criteria) ** 2, len(values))
    sums = sample.totals(item, [np.ones(len(values)), *values.T, *products])
    reason = "all its ratings are the same, or it follows exactly from the other criteria"
    return {
        name: Measure.of(column, len(places), "with all criteria", reason, line)
        for name, column in zip(table.criteria, inflations(sums, len(table.criteria)).T, strict=True)
    }


def inflations(sums: Floats, criteria: int) -> Floats:
    """The factors of each row of sums (number, sums, sums of products), from shape (m, 1 + k + k * k) to (m, k).

    NaN where infinite, and of a criterion without variance. They are the diagonal of the inverse of the correlation matrix, here
    through its eigenvalues: a criterion that has a part in one that is 0 follows from the others.
    """
    number = np.maximum(sums[:, :1], 1)
    mean = sums[:, 1 : 1 + criteria] / number
    products = sums[:, 1 + criteria :].reshape(-1, criteria, criteria) / number[:, :, None]
    covariance = products - mean[:, :, None] * mean[:, None]
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    flat = variance <= FLAT * np.maximum(np.diagonal(products, axis1=1, axis2=2), mean**2)
    # A criterion without variance has no correlation with any other.
    scale = np.sqrt(np.where(flat, np.inf, variance))
    values, vectors = np.linalg.eigh(covariance / (scale[:, :, None] * scale[:, None]))
    parts = vectors**2
    nought = values[:, None] < NOUGHT
    factors = np.sum(np.where(nought, 0, parts / np.where(nought, 1, values[:, None])), axis=2)
    return np.where(np.sum(np.where(nought, parts, 0), axis=2) > NOUGHT, np.nan, factors)


def _complete(table: Table, raters: Sequence[str]) -> tuple[Codes, Floats]:
    """The item of each (item, rater) with all criteria, and its ratings, shape (n, criteria)."""
    wanted = table.by(raters)
    key = table.item * len(table.raters) + table.rater
    rows = [np.flatnonzero(wanted & (table.criterion == place)) for place in range(len(table.criteria))]
    rows = [places[np.argsort(key[places])] for places in rows]
    common = reduce(lambda one, other: np.intersect1d(one, other, assume_unique=True), (key[places] for places in rows))
    values = [table.rating[places[np.isin(key[places], common)]] for places in rows]
    return common // len(table.raters), np.stack(values, axis=1)


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
class Agreement(LongForm):
    """How far the raters of a table agree; ``inflation`` is by criterion, ``tags`` the audit of strategy tags, where some were judged."""

    columns, numbers = (*KEYS, *FIGURE_COLUMNS), NUMBERS
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

    def _records(self) -> Iterator[dict[str, Any]]:
        """A record a figure; ranks among pairs (``reached``) are in JSON alone."""
        found = [(one.criterion, *figure) for one in self.criteria for figure in one.figures()]
        found += [(criterion, "variance inflation", None, None, None, one) for criterion, one in self.inflation.items()]
        found += [("strategy tags", "held right", None, by, None, one) for by, one in (self.tags.right if self.tags else {}).items()]
        for *about, one in found:
            yield dict(zip(FIGURE_COLUMNS, (*about, one.value, one.low, one.high, one.items, one.why, one.signature), strict=True))


def agree(table: Table, judges: Sequence[str] = (), resamples: int = 1000, seed: int = 0, level: str = "interval") -> Agreement:
    """All figures of agreement of the raters of a table, with 95 % intervals from ``resamples`` draws of items.

    All raters that are no judges are experts; alpha, Fleiss' kappa, the benchmark and the inflation are theirs alone. ``level`` says
    what the distance of two ratings means, and so which kappa the benchmark takes: plain (nominal), linear (ordinal) or
    quadratic (interval).

    Raises:
        InputError: for a judge who is not in the table, a level that is not known, or a number of resamples out of range.
    """
    judges = tuple(dict.fromkeys(judges))
    refuse([*strangers(table, "judge", judges), *odd_options(resamples, level)])
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
    sample = ItemBootstrap.of(ratings.items, resamples, seed)
    named = [ratings.raters.index(judge) for judge in judges]
    experts = [place for place in range(len(ratings.raters)) if place not in named]
    of = Experts(ratings, experts, sample)
    listed = (experts if len(experts) <= PANEL else []) + named
    return Criterion(
        name, ratings.items, len(ratings.step), tuple(ratings.scale.tolist()), sample.signature,
        alpha(of.counts, ratings.scale, sample), fleiss(of.counts, sample), benchmark(of, named, weights),
        tuple(BesideMedian(of, place).figures for place in listed),
    )  # fmt: skip


def strangers(table: Table, role: str, names: Iterable[str]) -> list[Problem]:
    """What is wrong with names of raters who are not in a table."""
    known = ", ".join(table.raters[:PANEL])
    return [
        Problem(role, f'"{name}" is not a rater in the table', f"use one of {known}{nearest(name, table.raters)}")
        for name in names
        if name not in table.raters
    ]


def odd_options(resamples: int, level: str) -> list[Problem]:
    """What is wrong with a number of resamples and a level."""
    problems = list[Problem]()
    if level not in LEVELS:
        problems.append(Problem("level", f'"{level}" is not known', f"use one of {', '.join(LEVELS)}"))
    if not 0 <= resamples <= MOST_RESAMPLES:
        problems.append(Problem("resamples", f'"{resamples}" is out of range', f"use 0 (no intervals) to {MOST_RESAMPLES}"))
    return problems
