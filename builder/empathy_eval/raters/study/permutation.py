"""The p of a study by rater: groups are exchanged among whole raters of a block, so that what a rater is like counts as chance.

Ratings of one rater resemble each other, and those of a block are of the same items; chi-squared takes all for independent. If groups
make no difference, any rater of a block might as well have been of any group that the block has, with all ratings given (Good 2005,
*Permutation, Parametric and Bootstrap Tests of Hypotheses*). The statistic is Pearson's chi-squared of the counts; p is (1 + draws that
reach what was seen) / (1 + draws).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from empathy_eval.raters.agreement.table import Floats
from empathy_eval.raters.study.exchange import Exchange
from empathy_eval.raters.study.ratings import Mask, Study

# Counts of raters that are held at once: memory does not grow with the number of strata.
HELD = 2**25
# Draws that differ from what was seen by rounding alone are as large.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Wanted:
    """A table of counts whose p is wanted: of the ratings ``where`` (all), by all categories or one and the rest, of all groups or some.

    Places of groups and categories are those of the study. With some groups, only their raters are exchanged: what others gave says
    nothing of whether these differ.
    """

    where: Mask | None = None
    categories: Literal["all"] | int = "all"
    groups: Literal["all"] | tuple[int, ...] = "all"


def permuted(study: Study, tables: Sequence[Wanted], permutations: int, seed: int) -> list[float]:
    """The p by rater of each table; NaN where it has no two groups or categories, or no block has raters of two groups.

    The same for the same study, seed and number of draws, whichever tables are asked for: one set of draws for each set of groups.
    """
    found = [math.nan] * len(tables)
    for places, drawn in _drawn(study, tables, permutations, seed):
        for place, ratios in zip(places, drawn, strict=True):
            hits = int((ratios[1:] >= ratios[0] * (1 - ROUNDING)).sum())
            found[place] = (1 + hits) / (1 + permutations) if np.isfinite(ratios[0]) and permutations > 0 else math.nan
    return found


def null_point(study: Study, permutations: int, seed: int, quantile: float = 0.95) -> float:
    """The point below which so many (``quantile``) of the omnibus statistics lie that exchanged raters give; NaN where not defined.

    Chi-squared's own point holds for independent ratings alone, and lies lower where raters differ in severity.
    """
    for _, (ratios,) in _drawn(study, [Wanted()], permutations, seed):
        if np.isfinite(ratios[0]) and permutations > 0:
            return float(np.quantile((ratios[1:] - 1) * len(study.rater), quantile))
    return math.nan


def _drawn(study: Study, tables: Sequence[Wanted], permutations: int, seed: int) -> Iterator[tuple[list[int], list[Floats]]]:
    """By part of the tables their places, and of each what was seen and each draw: chi-squared over the number of ratings, plus 1."""
    masks = {id(one.where): one.where for one in tables}
    number = len(study.labels)
    at_once = max(HELD // (len(study.raters) * number), 1)
    for start in range(0, len(masks), at_once):
        some = dict(list(masks.items())[start : start + at_once])
        counts = np.hstack([study.by_rater(mask) for mask in some.values()])
        column = {mask: place * number for place, mask in enumerate(some)}
        for groups in dict.fromkeys(one.groups for one in tables):
            places = [place for place, one in enumerate(tables) if one.groups == groups and id(one.where) in some]
            exchanged = Exchange.of(study, groups)
            if not places or exchanged is None:
                continue
            slices = [(column[id(tables[place].where)], tables[place].categories) for place in places]
            ratios: list[list[Floats]] = [[] for _ in places]
            for batch in exchanged.counts(counts, permutations, seed):
                for kept, (at, category) in zip(ratios, slices, strict=True):
                    kept.append(_ratio(_folded(batch[:, :, at : at + number], category)))
            yield places, [np.concatenate(kept) for kept in ratios]


def _folded(counts: Floats, category: Literal["all"] | int) -> Floats:
    """Counts by category, shape (..., categories), as those of one and of the rest."""
    if category == "all":
        return counts
    one = counts[..., category]
    return np.stack([one, counts.sum(axis=-1) - one], axis=-1)


def _ratio(counts: Floats) -> Floats:
    """The sum of count² over the product of its margins, of tables of shape (n, groups, categories): chi-squared / ratings + 1.

    Groups and categories without a rating are left out; NaN where not two of both are left.
    """
    rows, columns = counts.sum(axis=2, keepdims=True), counts.sum(axis=1, keepdims=True)
    margins = rows * columns
    parts = np.divide(counts * counts, margins, out=np.zeros_like(counts), where=margins > 0)
    defined = ((rows > 0).sum(axis=(1, 2)) > 1) & ((columns > 0).sum(axis=(1, 2)) > 1)
    ratios: Floats = np.where(defined, parts.sum(axis=(1, 2)), np.nan)
    return ratios
