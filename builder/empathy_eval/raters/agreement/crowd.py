"""A crowd as one rater: the mean or the median of its ratings of each item, and that rounded onto the scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.design.rubrics import Scale
from empathy_eval.raters.agreement.panel import CROWD, Panel
from empathy_eval.raters.agreement.table import Codes, Floats, Ratings, Table

# Beneath this a value is half-way but for rounding.
HAIR = 1e-9


@dataclass(frozen=True)
class Crowd:
    """What a crowd makes of the items of a criterion.

    ``item`` are the places of the items that it rated, among those of ``ratings``, and ``value`` its mean or median of each, as it is.
    ``ratings`` are those of the panel with the crowd as a last rater, its values rounded onto the scale; ``signature`` says how.
    """

    item: Codes
    value: Floats
    ratings: Ratings
    signature: str


def crowd_on(table: Table, criterion: str, panel: Panel, ratings: Ratings, scale: Scale | None) -> Crowd | None:
    """The crowd of a panel on a criterion, over the items that experts or judges rated (``ratings``); None where it rated none of them.

    Halves are rounded up: onto whole numbers where the scale has these alone, or, of a scale that no rubric says, where experts and judges
    give these alone; else onto the nearest value that experts and judges give.
    """
    rows = table.criterion == table.criteria.index(criterion)
    members = np.isin(table.rater, [place for place, name in enumerate(table.raters) if name in set(panel.crowd)])
    known = np.unique(table.item[rows & ~members])
    item, value = table.item[rows & members], table.rating[rows & members]
    shared = np.isin(item, known)
    if not shared.any():
        return None
    item, value = one_each(np.searchsorted(known, item[shared]), value[shared], panel.crowd_as)
    whole = scale.whole if scale else bool(np.all(ratings.scale == np.rint(ratings.scale)))
    rounded = np.floor(value + 0.5 + HAIR) if whole else _nearest(value, ratings.scale)
    line = signature_line(crowd=panel.crowd_as, rounded="halves-up", onto="whole-numbers" if whole else "values-of-experts-and-judges")
    return Crowd(item, value, _with(ratings, item, rounded), line)


def one_each(item: Codes, value: Floats, how: str) -> tuple[Codes, Floats]:
    """The items that occur, and the mean or the median of the values of each."""
    order = np.lexsort((value, item))
    item, value = item[order], value[order]
    items, first, number = np.unique(item, return_index=True, return_counts=True)
    if how == "median":
        return items, (value[first + (number - 1) // 2] + value[first + number // 2]) / 2
    return items, np.add.reduceat(value, first) / number


def _nearest(values: Floats, scale: Floats) -> Floats:
    """The nearest value of a scale, of two that are as near the higher one."""
    between = (scale[1:] + scale[:-1]) / 2
    nearest: Floats = scale[np.searchsorted(between - HAIR, values, side="right")]
    return nearest


def _with(ratings: Ratings, item: Codes, value: Floats) -> Ratings:
    """Ratings with one more rater, the crowd, whose values may be ones that nobody else gives."""
    scale = np.union1d(ratings.scale, value)
    rater = np.full(len(item), len(ratings.raters))
    return Ratings(
        ratings.items,
        (*ratings.raters, CROWD),
        scale,
        np.concatenate([ratings.item, item]),
        np.concatenate([ratings.rater, rater]),
        np.searchsorted(scale, np.concatenate([ratings.scale[ratings.step], value])),
    )
