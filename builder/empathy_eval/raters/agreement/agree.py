"""All agreement figures of a table of ratings in one call."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from empathy_eval.base.errors import Problem, nearest, refuse
from empathy_eval.base.stages import advance, stage
from empathy_eval.design.provenance import KEYS, LongForm
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.raters.agreement.experts import PANEL, AgainstMedian, Benchmark, Experts, RaterAgainstMedian, benchmark
from empathy_eval.raters.agreement.table import RatingTable
from empathy_eval.statistics.agreement import LEVELS, WEIGHTS, ItemBootstrap, fleiss_kappa, krippendorff_alpha
from empathy_eval.statistics.estimate import Codes, Estimate, Floats

# Column of tags found wrong without a better strategy.
NOT_SAID = "not said"


@dataclass(frozen=True)
class TagJudgement:
    """One judgement of the planned strategy of a turn: the strategy it was ``called``, equal to the planned one if held right.

    None if it was found wrong and no better strategy was named.
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
    """How one rater or judge tagged a strategy: number judged, number held right, and counts of other strategies, most frequent first."""

    strategy: str
    by: str
    judged: int
    right: int
    instead: dict[str, int]


@dataclass(frozen=True)
class TagAudit:
    """Rows by strategy, in the taxonomy's order, and rater; ``right`` is the share of tags held right by rater."""

    rows: tuple[TagRow, ...]
    right: dict[str, Estimate]


def tag_rows(judgements: Mapping[str, Iterable[TagJudgement]]) -> tuple[TagRow, ...]:
    """Rows of an audit from the judgements by rater."""
    called: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for by, tags in judgements.items():
        for tag in tags:
            called[tag.strategy, by][tag.called or NOT_SAID] += 1
    names = [strategy.name for strategy in load_taxonomy().strategies]
    rows = list[TagRow]()
    for strategy, by in [(name, by) for name in [*names, *sorted({name for name, _ in called} - {*names})] for by in judgements]:
        if counts := called.get((strategy, by)):
            other_tags = [(name, counts[name]) for name in [*names, NOT_SAID] if name in counts and name != strategy]
            instead = dict(sorted(other_tags, key=lambda other: -other[1]))
            rows.append(TagRow(strategy, by, counts.total(), counts[strategy], instead))
    return tuple(rows)


# Tolerances: of an eigenvalue of 0 of a correlation matrix, and of a variance of 0 relative to the squares it is computed from.
NOUGHT, FLAT = 1e-10, 1e-12


def variance_inflation(table: RatingTable, raters: Sequence[str], resamples: int, seed: int) -> dict[str, Estimate]:
    """Variance inflation factor of each criterion, over the ratings of items by these raters that have all criteria.

    VIF = 1 / (1 - R²) of a least-squares regression of the criterion on all others with an intercept. Rows of all raters are pooled; items
    are resampled.
    """
    items, values = _complete(table, raters)
    places, item = np.unique(items, return_inverse=True)
    sample = ItemBootstrap.of(len(places), resamples, seed)
    line = sample.line(vif="1/(1-R2)", criteria=len(table.criteria), rows=len(values))
    if len(table.criteria) < 2:
        return {name: Estimate.undefined("there is only one criterion", line, len(places)) for name in table.criteria}
    # Centred first, because sums of squares of large numbers lose digits.
    values = values - values.sum(axis=0) / max(len(values), 1)
    products = np.einsum("ij,ik->jki", values, values).reshape(len(table.criteria) ** 2, len(values))
    sums = sample.totals(item, [np.ones(len(values)), *values.T, *products])
    reason = "all its ratings are the same, or it follows exactly from the other criteria"
    factors = zip(table.criteria, inflation_factors(sums, len(table.criteria)).T, strict=True)
    return {name: Estimate.of_resamples(column, len(places), "with all criteria", reason, line) for name, column in factors}


def inflation_factors(sums: Floats, criteria: int) -> Floats:
    """Variance inflation factors from rows of sums (number, sums, sums of products), from shape (m, 1 + k + k * k) to (m, k).

    NaN if infinite, and for a criterion without variance. They are the diagonal of the inverse of the correlation matrix, computed from its
    eigenvalues: a criterion that loads on an eigenvalue of 0 is a linear combination of others.
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


def _complete(table: RatingTable, raters: Sequence[str]) -> tuple[Codes, Floats]:
    """Item of each (item, rater) with all criteria, and its ratings, shape (n, criteria)."""
    mask = table.by(raters)
    key = table.item * len(table.raters) + table.rater
    rows = [np.flatnonzero(mask & (table.criterion == criterion)) for criterion in range(len(table.criteria))]
    rows = [places[np.argsort(key[places])] for places in rows]
    common = reduce(lambda first, other: np.intersect1d(first, other, assume_unique=True), (key[places] for places in rows))
    values = [table.rating[places[np.isin(key[places], common)]] for places in rows]
    return common // len(table.raters), np.stack(values, axis=1)


# More would fill memory without changing a printed digit.
MOST_RESAMPLES = 10_000
# Columns of the long form, a row a figure. ``other`` is the second of two raters; figures of all experts name none.
NUMBERS = ("value", "low", "high")
FIGURE_COLUMNS = ("criterion", "figure", "by", "rater", "other", *NUMBERS, "items", "why", "signature")
# (name, level or weights or threshold, rater, other rater, measure) of a figure.
Figure = tuple[str, str | None, str | None, str | None, Estimate]


@dataclass(frozen=True)
class CriterionAgreement:
    """Agreement on one criterion; ``against_median`` has the experts, unless they are too many to be compared in pairs, then the judges.

    ``scale`` lists the values that occur; ``signature`` describes the intervals.
    """

    criterion: str
    items: int
    ratings: int
    scale: tuple[float, ...]
    signature: str
    alpha: dict[str, Estimate]
    fleiss: Estimate
    benchmark: Benchmark
    against_median: tuple[AgainstMedian, ...]

    def figures(self) -> Iterator[Figure]:
        """All figures: (name, level or weights or threshold, rater, other rater, measure)."""
        yield from (("alpha", level, None, None, measure) for level, measure in self.alpha.items())
        yield "fleiss", None, None, None, self.fleiss
        weights, judges = self.benchmark.weights, self.benchmark.judges
        yield "benchmark", weights, None, None, self.benchmark.median
        for pair in (*self.benchmark.pairs, *(pair for judge in judges for pair in judge.pairs)):
            yield from (("kappa", name, *pair.raters, measure) for name, measure in pair.kappa.items())
        for judge in judges:
            yield "median kappa", weights, judge.judge, None, judge.median
            yield "median kappa minus benchmark", weights, judge.judge, None, judge.difference
        for rater in self.against_median:
            yield from (("kappa with the median", name, rater.rater, None, measure) for name, measure in rater.kappa.items())
            yield "macro F1 with the median", None, rater.rater, None, rater.macro_f1
            yield from (("F1 with the median", f">={least:g}", rater.rater, None, measure) for least, measure in rater.binary_f1)


@dataclass(frozen=True, repr=False)
class Agreement(LongForm):
    """Agreement of the raters of a table; ``inflation`` is by criterion, ``tags`` the audit of strategy tags, if any."""

    columns, numbers = (*KEYS, *FIGURE_COLUMNS), NUMBERS
    level: str
    experts: tuple[str, ...]
    judges: tuple[str, ...]
    criteria: tuple[CriterionAgreement, ...]
    inflation: dict[str, Estimate]
    tags: TagAudit | None = None

    @property
    def headline(self) -> dict[str, Estimate]:
        """By criterion the benchmark: the median kappa of pairs of experts, with its interval."""
        return {criterion.criterion: criterion.benchmark.median for criterion in self.criteria}

    def to_json(self) -> dict[str, Any]:
        """Figures as JSON values; undefined values are null, with a reason in ``why``. Without tags there is no key ``tags``."""
        fields = super().to_json()
        return fields if self.tags else {name: value for name, value in fields.items() if name != "tags"}

    def _records(self) -> Iterator[dict[str, Any]]:
        """A record a figure; ranks among pairs (``reached``) are in JSON alone."""
        rows = [(criterion.criterion, *figure) for criterion in self.criteria for figure in criterion.figures()]
        rows += [(criterion, "variance inflation", None, None, None, measure) for criterion, measure in self.inflation.items()]
        rows += [("strategy tags", "held right", None, by, None, measure) for by, measure in (self.tags.right if self.tags else {}).items()]
        for *about, measure in rows:
            values = (measure.value, measure.low, measure.high, measure.n, measure.reason, measure.signature)
            yield dict(zip(FIGURE_COLUMNS, (*about, *values), strict=True))


def agree(table: RatingTable, judges: Sequence[str] = (), resamples: int = 1000, seed: int = 0, level: str = "interval") -> Agreement:
    """Compute all agreement figures of a table, with 95 % intervals from ``resamples`` bootstrap draws of items.

    All raters that are no judges are experts; alpha, Fleiss' kappa, the benchmark and the variance inflation are theirs alone. ``level`` is
    the level of measurement, which decides the kappa of the benchmark: plain (nominal), linear (ordinal) or quadratic (interval).

    Raises:
        InputError: for a judge who is not in the table, an unknown level, or a number of resamples out of range.
    """
    judges = tuple(dict.fromkeys(judges))
    refuse([*unknown_raters(table, "judge", judges), *option_problems(resamples, level)])
    experts = tuple(name for name in table.raters if name not in judges)
    stage("agreement of raters", len(table.criteria), "criteria")
    criteria = list[CriterionAgreement]()
    for name in table.criteria:
        criteria.append(_criterion(table, name, judges, WEIGHTS[LEVELS.index(level)], resamples, seed))
        advance()
    stage("variance inflation")
    return Agreement(level, experts, judges, tuple(criteria), variance_inflation(table, experts, resamples, seed))


def _criterion(table: RatingTable, name: str, judges: Sequence[str], weights: str, resamples: int, seed: int) -> CriterionAgreement:
    ratings = table.on(name)
    sample = ItemBootstrap.of(ratings.items, resamples, seed)
    named = [ratings.raters.index(judge) for judge in judges]
    experts = [criterion for criterion in range(len(ratings.raters)) if criterion not in named]
    panel = Experts(ratings, experts, sample)
    listed = (experts if len(experts) <= PANEL else []) + named
    return CriterionAgreement(
        name, ratings.items, len(ratings.step), tuple(ratings.scale.tolist()), sample.signature,
        krippendorff_alpha(panel.counts, ratings.scale, sample), fleiss_kappa(panel.counts, sample), benchmark(panel, named, weights),
        tuple(RaterAgainstMedian(panel, rater).figures for rater in listed),
    )  # fmt: skip


def unknown_raters(table: RatingTable, role: str, names: Iterable[str]) -> list[Problem]:
    """Problems of names of raters who are not in a table."""
    known = ", ".join(table.raters[:PANEL])
    strange = [name for name in names if name not in table.raters]
    return [Problem(role, f'"{name}" is not a rater in the table', f"use one of {known}{nearest(name, table.raters)}") for name in strange]


def option_problems(resamples: int, level: str) -> list[Problem]:
    """Problems of a number of resamples and a level."""
    problems = list[Problem]()
    if level not in LEVELS:
        problems.append(Problem("level", f'"{level}" is not known', f"use one of {', '.join(LEVELS)}"))
    if not 0 <= resamples <= MOST_RESAMPLES:
        problems.append(Problem("resamples", f'"{resamples}" is out of range', f"use 0 (no intervals) to {MOST_RESAMPLES}"))
    return problems
