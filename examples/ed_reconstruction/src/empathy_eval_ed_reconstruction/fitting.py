"""Weights that come nearest to what people rated, by the mean of squared errors; the same ratings always give the same weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from empathy_eval.base.errors import InputError, Problem
from empathy_eval.metrics.protocol import Array, Segments

from empathy_eval_ed_reconstruction.features import Features
from empathy_eval_ed_reconstruction.readings import Readings, StandIn
from empathy_eval_ed_reconstruction.weights import VECTORS, Fitted, sigmoid

# Times the squares of the weights, beside the mean of squared errors: there are three weights for each place of an embedding.
RIDGE = 0.001
SCALE = (1.0, 5.0)
STEPS = 200
# Shares of the scale nearer to an end than this have no useful logarithm of their odds, where the search starts.
INSIDE = 0.05
# Decimal places of weights that most machines agree on.
PLACES = 6


def fitted_to(
    segments: Segments, ratings: Sequence[float], scale: tuple[float, float] = SCALE, readings: Readings | None = None, ridge: float = RIDGE
) -> Fitted:
    """The weights for replies and the rating of each, such as the mean of its raters, on a ``scale`` from the lowest to the highest.

    Raises:
        InputError: if there are too few ratings, or one is off the scale.
        ValueError: as :meth:`Features.of`.
    """
    low, high = scale
    where, problems = "ratings", list[Problem]()
    if not low < high or not ridge > 0:
        problems.append(Problem("scale, ridge", f"({low}, {high}) and {ridge} are no scale and no weight", "use low < high and ridge > 0"))
    if len(ratings) != len(segments.texts) or len(ratings) < 2:
        what = f"{len(ratings)} ratings of {len(segments.texts)} replies"
        problems.append(Problem(where, what, "give one rating for each of two replies or more"))
    if off := [rating for rating in ratings if not low <= rating <= high]:
        problems.append(Problem(where, f"{off[0]!r} is not on the scale from {low} to {high}", "name the scale of the ratings"))
    if problems:
        raise InputError(problems)
    features = Features(readings or StandIn())
    found, bias = least_squares(features.of(segments), (np.asarray(ratings, dtype=np.float64) - low) / (high - low), ridge)
    vectors = {name: tuple(np.round(part, PLACES).tolist()) for name, part in zip(VECTORS, np.split(found, 3), strict=True)}
    return Fitted(
        **vectors, bias=round(bias, PLACES), scale=(float(low), float(high)), ridge=float(ridge), ratings=len(ratings),
        readings=features.readings, embedding=features.embedding,
    )  # fmt: skip


def least_squares(features: Array, wanted: Array, ridge: float) -> tuple[Array, float]:
    """Weights and bias with the least ``mean((sigmoid(features @ w + b) - wanted) ** 2) + ridge * w @ w`` that is found.

    The search starts at the ridge regression of the logarithms of the odds and takes damped steps of Gauss and Newton. Nothing is drawn.
    """
    # The best weights are a mixture of the rows, and there are far fewer ratings than places.
    basis = np.linalg.svd(features, full_matrices=False)[2]
    rows = np.column_stack([features @ basis.T, np.ones(len(features))])
    # The bias alone is free.
    held = np.append(np.full(len(basis), ridge), 0.0)
    inside = np.clip(wanted, INSIDE, 1 - INSIDE)
    found: Array = _solved(rows.T @ rows / len(rows), held, rows.T @ np.log(inside / (1 - inside)) / len(rows))
    least, damping = _loss(rows, wanted, held, found), 1e-3
    for _ in range(STEPS):
        values = sigmoid(rows @ found)
        slopes = rows * (values * (1 - values))[:, None]
        downhill = slopes.T @ (wanted - values) / len(rows) - held * found
        there = found + _solved(slopes.T @ slopes / len(rows), held + damping, downhill)
        loss = _loss(rows, wanted, held, there)
        if loss >= least:
            damping *= 10
            if damping > 1e6:
                break
            continue
        found, won, least, damping = there, least - loss, loss, max(damping / 10, 1e-12)
        if won < 1e-14:
            break
    return basis.T @ found[:-1], float(found[-1])


def _loss(rows: Array, wanted: Array, held: Array, found: Array) -> float:
    return float(np.mean((sigmoid(rows @ found) - wanted) ** 2) + held @ found**2)


def _solved(squares: Array, added: Array, right: Array) -> Array:
    return np.asarray(np.linalg.solve(squares + np.diag(added), right), dtype=np.float64)
