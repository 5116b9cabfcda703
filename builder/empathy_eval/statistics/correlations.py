"""Weighted Pearson's r, Spearman's rho and Kendall's tau-b within groups, for many weightings at once; the pigeonhole bootstrap.

Rows lie group by group. A weighting has two tables of shape (weightings, rows): ``whole``, how often a row is drawn, and ``inside``, the
same without how often its group is, so that rows of two draws of one group are not compared with each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import signature_line
from empathy_eval.statistics.estimate import CONFIDENCE, Codes, Floats, blocks

# A smaller part of all squares is the rounding of values that are all alike.
LEAST = 1e-10
NAMES = ("r", "rho", "tau_b")


@dataclass(frozen=True)
class Weighting:
    """How often each row is drawn, shape (weightings, rows) each; see the module."""

    whole: Floats
    inside: Floats


@dataclass(frozen=True)
class RowSpans:
    """For each row the spans, in sums over ``order``, of the rows tied with it and of the rows of its group."""

    order: Codes
    tie: Codes
    tie_end: Codes
    group: Codes
    group_end: Codes

    @classmethod
    def of(cls, values: Floats, groups: Codes) -> RowSpans:
        """Rows in the order of their values within their group."""
        order = np.lexsort((values, groups))
        ordered, group = values[order], groups[order]
        new_group = np.diff(group, prepend=-1) != 0
        new_tie = new_group | (np.diff(ordered, prepend=np.nan) != 0)
        ends = (_ends(new_tie), _ends(new_group))
        spans = np.empty((4, len(order)), dtype=np.int64)
        spans[:, order] = np.stack([bounds for pair in ends for bounds in pair])
        return cls(order, *spans)


def _ends(new: NDArray[np.bool_]) -> tuple[Codes, Codes]:
    """Where the run of each row begins and ends; ``new`` says which rows begin one."""
    starts, run = np.flatnonzero(new), np.cumsum(new) - 1
    return starts[run], np.append(starts[1:], len(new))[run]


def _sums(weights: Floats, order: Codes) -> Floats:
    """Sums of weights in an order, from 0 on, shape (weightings, 1 + rows)."""
    sums = np.zeros((len(weights), len(order) + 1))
    np.cumsum(weights[:, order], axis=1, out=sums[:, 1:])
    return sums


class Variable:
    """One value per row, such as a score or a rating, prepared for correlation within groups."""

    def __init__(self, values: Floats, groups: Codes) -> None:
        # In units of their spread, so that rounding errors are of one size.
        spread = float(values.std())
        self.values: Floats = (values - values.mean()) / (spread if spread > 0 else 1.0)
        self.classes: Codes = np.unique(values, return_inverse=True)[1].astype(np.int64)
        self.spans = RowSpans.of(values, groups)

    def weigh(self, weighting: Weighting, starts: Codes) -> WeightedVariable:
        """Returns the weighted values and ranks for the coefficients; ``starts`` has the first row of each group."""
        whole, sums, spans = weighting.whole, _sums(weighting.inside, self.spans.order), self.spans
        below, upto = sums[:, spans.tie], sums[:, spans.tie_end]
        start, all_ = sums[:, spans.group], sums[:, spans.group_end]
        all_ -= start
        untied = np.einsum("ij,ij->i", whole, all_ - (upto - below))
        # The share of its group below it, ties half, around one half: Spearman's ranks where there is one group.
        ranks = ((below + upto) / 2 - start) / np.where(all_ > 0, all_, 1.0) - 0.5
        centred = self.values - _means(whole, self.values, starts)
        return WeightedVariable(centred, whole * centred, ranks, whole * ranks, untied)


def _means(whole: Floats, values: Floats, starts: Codes) -> Floats:
    """The mean of each row's group, shape (weightings, rows)."""
    sums, counts = np.add.reduceat(whole * values, starts, axis=1), np.add.reduceat(whole, starts, axis=1)
    means = sums / np.where(counts > 0, counts, 1.0)
    return means if len(starts) == 1 else np.repeat(means, np.diff(np.append(starts, whole.shape[1])), axis=1)


@dataclass(frozen=True)
class WeightedVariable:
    """A variable by weightings: values and ranks around those of their groups, both times the weights too, and its untied pairs."""

    centred: Floats
    weighted: Floats
    ranks: Floats
    weighted_ranks: Floats
    untied: Floats


class Concordance:
    """Concordant minus discordant pairs of rows of a group, of two variables.

    Rows are parted by the binary digits of the second variable's class: of two rows the one whose first differing digit is 1 is the
    higher one, so that a pair counts at one digit, among rows that are alike before it. The work grows with the number of digits.
    """

    def __init__(self, first: Variable, second: Variable, groups: Codes) -> None:
        digits = int(second.classes.max(initial=0)).bit_length()
        self._digits = [self._digit(first, second.classes >> digit, groups) for digit in range(digits)]

    @staticmethod
    def _digit(first: Variable, classes: Codes, groups: Codes) -> tuple[Codes, Codes, Codes]:
        alike = groups * (int(classes.max()) // 2 + 1) + classes // 2
        spans = RowSpans.of(first.values, alike)
        lower = classes[spans.order] % 2 == 0
        before = np.append(0, np.cumsum(lower))
        higher = np.flatnonzero(classes % 2)
        ends = np.stack([before[end[higher]] for end in (spans.tie, spans.tie_end, spans.group, spans.group_end)])
        # A row with nothing lower beside it adds nothing.
        met = ends[2] < ends[3]
        return spans.order[lower], higher[met], ends[:, met]

    def of(self, weighting: Weighting) -> Floats:
        """The surplus, shape (weightings,)."""
        surplus = np.zeros(len(weighting.whole))
        for lower, higher, (tie, tie_end, group, group_end) in self._digits:
            sums = _sums(weighting.inside, lower)
            # Those below less those above: (tie - group) - (group_end - tie_end).
            beaten = sums[:, tie] + sums[:, tie_end] - sums[:, group] - sums[:, group_end]
            surplus += np.einsum("ij,ij->i", weighting.whole[:, higher], beaten)
        return surplus


def coefficients(first: WeightedVariable, second: WeightedVariable, surplus: Floats) -> Floats:
    """r, rho and tau-b, shape (weightings, 3); nan where one of the two does not vary within groups."""
    with np.errstate(invalid="ignore", divide="ignore"):
        r = _quotient(first.weighted, first.centred, second.weighted, second.centred)
        rho = _quotient(first.weighted_ranks, first.ranks, second.weighted_ranks, second.ranks)
        tau = 2 * surplus / np.sqrt(first.untied * second.untied)
    result: Floats = np.column_stack([r, rho, np.where((first.untied > 0) & (second.untied > 0), tau, np.nan)])
    return result.clip(-1.0, 1.0)


def _quotient(weighted: Floats, values: Floats, other_weighted: Floats, other_values: Floats) -> Floats:
    squares, other_squares = np.einsum("ij,ij->i", weighted, values), np.einsum("ij,ij->i", other_weighted, other_values)
    common = np.einsum("ij,ij->i", weighted, other_values)
    # Values are in units of their spread, and ranks are parts of one: so many squares are rounding.
    least = LEAST * np.maximum(values.shape[1], 1)
    return np.asarray(np.where((squares > least) & (other_squares > least), common / np.sqrt(squares * other_squares), np.nan))


def partial_correlation(first_second: Floats, first_third: Floats, second_third: Floats) -> Floats:
    """Partial correlation of two variables given a third, from their three coefficients; nan where the third equals one of them."""
    free_first, free_second = 1 - first_third**2, 1 - second_third**2
    defined = (free_first > LEAST) & (free_second > LEAST)
    with np.errstate(invalid="ignore", divide="ignore"):
        result = (first_second - first_third * second_third) / np.sqrt(free_first * free_second)
    return np.asarray(np.where(defined, np.clip(result, -1.0, 1.0), np.nan))


# Resamples that are drawn at once.
PIGEONHOLES_AT_ONCE = 20


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
    def degrees_of_freedom(self) -> int:
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


RAW, BY_RATER, IN_CONTEXT, GIVEN_LENGTH = FORMS = ("raw", "centred by rater", "within context", "given length")


@dataclass(frozen=True)
class RatedScores:
    """Ratings whose texts have a score in every row of the table: by rating its text, rater, unit, context and value.

    Texts, raters, units and contexts are numbers; raters and units from 0 on.
    """

    text: Codes
    rater: Codes
    unit: Codes
    context: Codes
    rating: Floats

    def __len__(self) -> int:
        return len(self.rating)

    def take(self, rows: Codes) -> RatedScores:
        """The ratings of those rows."""
        return RatedScores(self.text[rows], self.rater[rows], self.unit[rows], self.context[rows], self.rating[rows])

    def groups(self, form: str) -> Codes:
        """The group of each rating: only ratings of one group are compared."""
        return {BY_RATER: self.rater, IN_CONTEXT: self.context}.get(form, np.zeros(len(self), dtype=np.int64))


class GroupedRatings:
    """Ratings and the scores of their texts, within the groups of a form; ``lengths`` where all is given them."""

    def __init__(self, name: str, rated: RatedScores, scores: Sequence[Floats], lengths: Floats | None = None) -> None:
        rows = np.argsort(rated.groups(name), kind="stable")
        self._name, self._rated = name, rated.take(rows)
        groups = np.unique(self._rated.groups(name), return_inverse=True)[1].astype(np.int64)
        self._starts = np.flatnonzero(np.diff(groups, prepend=-1))
        self._ratings = Variable(self._rated.rating, groups)
        # Lengths come last.
        self._scores = [Variable(score[self._rated.text], groups) for score in (*scores, *([] if lengths is None else [lengths]))]
        self._with_ratings = [Concordance(score, self._ratings, groups) for score in self._scores]
        *others, last = self._scores
        self._with_length = [] if lengths is None else [Concordance(variable, last, groups) for variable in others]

    def coefficients(self, of_raters: Floats, of_units: Floats) -> list[Floats]:
        """By form (its own, then given length) the coefficients of every row of scores, shape (rows, weightings, 3)."""
        raters, units = of_raters[:, self._rated.rater], of_units[:, self._rated.unit]
        weighting = Weighting(whole := raters * units, {BY_RATER: units, IN_CONTEXT: raters}.get(self._name, whole))
        ratings, *weighted = (variable.weigh(weighting, self._starts) for variable in (self._ratings, *self._scores))

        def correlate(other: WeightedVariable, counts: Sequence[Concordance]) -> Floats:
            return np.stack([coefficients(values, other, pairs.of(weighting)) for values, pairs in zip(weighted, counts, strict=False)])

        result = correlate(ratings, self._with_ratings)
        if not self._with_length:
            return [result]
        return [result[:-1], partial_correlation(result[:-1], correlate(weighted[-1], self._with_length), result[-1])]


def resampled_correlations(rated: RatedScores, scores: Sequence[Floats], lengths: Floats, draws: Pigeonhole) -> dict[str, Floats]:
    """Coefficients by form of every row of scores (by text), shape (rows, 1 + resamples, 3): over all ratings, then over each resample."""
    forms = [GroupedRatings(RAW, rated, scores, lengths), *(GroupedRatings(form, rated, scores) for form in (BY_RATER, IN_CONTEXT))]
    parts: list[list[Floats]] = [[] for _ in range(len(FORMS))]
    for weights in draws.weights():
        (raw, given_length), (by_rater,), (in_context,) = (form.coefficients(*weights) for form in forms)
        for part, values in zip(parts, (raw, by_rater, in_context, given_length), strict=True):
            part.append(values)
    return {name: np.concatenate(part, axis=1) for name, part in zip(FORMS, parts, strict=True)}


def correlations_of_means(ratings: Floats, scores: Sequence[Floats]) -> Floats:
    """Coefficients of few values that count once each, such as the means of systems; shape (rows, 3)."""
    alike = np.zeros(len(ratings), dtype=np.int64)
    form = GroupedRatings(RAW, RatedScores(np.arange(len(ratings)), alike, alike, alike, ratings), scores)
    return form.coefficients(np.ones((1, 1)), np.ones((1, 1)))[0][:, 0]


def midranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the middle of their ranks; shape (values,)."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(count) - (count - 1) / 2)[place]
    return ranks


def varies(values: Floats | Codes, groups: Codes) -> bool:
    """Returns whether some group has two different values."""
    pairs: NDArray[np.float64] = np.unique(np.column_stack([groups, values]), axis=0)
    return len(pairs) > len(np.unique(groups))
