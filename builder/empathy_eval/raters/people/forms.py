"""The forms in which scores are put beside ratings: as they are, within raters, within contexts, and given length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from empathy_eval.metrics.protocol import Array
from empathy_eval.raters.people.correlations import NAMES, Concordance, Seen, Variable, Weighting, coefficients, partial
from empathy_eval.raters.people.pigeonhole import Pigeonhole, Places

# Length, its pairs with every row of scores, and with the ratings.
Third = tuple[Variable, list[Concordance], Concordance]
RAW, BY_RATER, IN_CONTEXT, GIVEN_LENGTH = FORMS = ("raw", "centred by rater", "within context", "given length")


@dataclass(frozen=True)
class Rated:
    """Ratings that have a score by every row of the table: by rating its text, rater, unit, context and value.

    Texts, raters, units and contexts are numbers; raters and units from 0 on.
    """

    text: Places
    rater: Places
    unit: Places
    context: Places
    rating: Array

    def __len__(self) -> int:
        return len(self.rating)

    def take(self, rows: Places) -> Rated:
        """The ratings of those rows."""
        return Rated(self.text[rows], self.rater[rows], self.unit[rows], self.context[rows], self.rating[rows])

    def groups(self, form: str) -> Places:
        """The group of each rating: only ratings of one group are compared."""
        return {BY_RATER: self.rater, IN_CONTEXT: self.context}.get(form, np.zeros(len(self), dtype=np.int64))


class Form:
    """Ratings and the scores of their texts, within the groups of a form; ``lengths`` where all is given them."""

    def __init__(self, name: str, rated: Rated, scores: Sequence[Array], lengths: Array | None = None) -> None:
        rows = np.argsort(rated.groups(name), kind="stable")
        self._name, self._rated = name, rated.take(rows)
        groups = np.unique(self._rated.groups(name), return_inverse=True)[1].astype(np.int64)
        self._starts = np.flatnonzero(np.diff(groups, prepend=-1))
        self._ratings = Variable(self._rated.rating, groups)
        self._scores = [Variable(one[self._rated.text], groups) for one in scores]
        self._beside = [Concordance(one, self._ratings, groups) for one in self._scores]
        self._third: Third | None = None
        if lengths is not None:
            length = Variable(lengths[self._rated.text], groups)
            self._third = length, [Concordance(one, length, groups) for one in self._scores], Concordance(length, self._ratings, groups)

    def coefficients(self, weights: tuple[Array, Array]) -> list[Array]:
        """By form (its own, then given length) the coefficients of every row of scores, shape (rows, weightings, 3)."""
        weighting = self._weighting(*weights)
        ratings = self._ratings.seen(weighting, self._starts)
        seen = [one.seen(weighting, self._starts) for one in self._scores]
        plain = [coefficients(one, ratings, beside.of(weighting)) for one, beside in zip(seen, self._beside, strict=True)]
        given = [] if self._third is None else [np.stack(_given(self._third, self._starts, weighting, seen, ratings, plain))]
        return [np.stack(plain), *given]

    def _weighting(self, of_raters: Array, of_units: Array) -> Weighting:
        raters, units = of_raters[:, self._rated.rater], of_units[:, self._rated.unit]
        whole = raters * units
        return Weighting(whole, {BY_RATER: units, IN_CONTEXT: raters}.get(self._name, whole))


def _given(third: Third, starts: Places, weighting: Weighting, seen: Sequence[Seen], ratings: Seen, plain: Sequence[Array]) -> list[Array]:
    """The coefficients of every row given a third variable."""
    variable, beside, with_ratings = third
    length = variable.seen(weighting, starts)
    of_ratings = coefficients(length, ratings, with_ratings.of(weighting))
    of_scores = [coefficients(one, length, pairs.of(weighting)) for one, pairs in zip(seen, beside, strict=True)]
    return [partial(one, of_score, of_ratings) for one, of_score in zip(plain, of_scores, strict=True)]


def resampled(rated: Rated, scores: Sequence[Array], lengths: Array, draws: Pigeonhole) -> dict[str, Array]:
    """By form the coefficients of every row of scores (by text), shape (rows, 1 + resamples, 3): of all ratings, then of each resample."""
    forms = [Form(RAW, rated, scores, lengths), Form(BY_RATER, rated, scores), Form(IN_CONTEXT, rated, scores)]
    parts: list[list[Array]] = [[] for _ in range(len(FORMS))]
    for weights in draws.weights():
        (raw, given), (by_rater,), (in_context,) = (one.coefficients(weights) for one in forms)
        for part, found in zip(parts, (raw, by_rater, in_context, given), strict=True):
            part.append(found)
    return {name: np.concatenate(part, axis=1) for name, part in zip(FORMS, parts, strict=True)}


def of_means(ratings: Array, scores: Sequence[Array]) -> Array:
    """The coefficients of few values that count once each, such as the means of systems; shape (rows, 3)."""
    groups, once = np.zeros(len(ratings), dtype=np.int64), np.ones((1, len(ratings)))
    weighting, starts = Weighting(once, once), np.zeros(1, dtype=np.int64)
    people = Variable(ratings, groups)
    seen = people.seen(weighting, starts)
    found = [Variable(one, groups) for one in scores]
    rows = [coefficients(one.seen(weighting, starts), seen, Concordance(one, people, groups).of(weighting))[0] for one in found]
    return np.stack(rows) if rows else np.zeros((0, len(NAMES)))


def varies(values: Array | Places, groups: Places) -> bool:
    """Whether some group has two different values."""
    pairs: NDArray[np.float64] = np.unique(np.column_stack([groups, values]), axis=0)
    return len(pairs) > len(np.unique(groups))
