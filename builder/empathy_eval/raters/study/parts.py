"""All tests of some of the ratings of a study, and their p-values corrected for standing together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from empathy_eval.evaluation.ranking import benjamini_hochberg, holm
from empathy_eval.raters.study.chi_square import Counted, figure, tested
from empathy_eval.raters.study.gains import gain, shares_of
from empathy_eval.raters.study.permutation import Wanted
from empathy_eval.raters.study.ratings import Mask, Study
from empathy_eval.raters.study.results import NOT_YET, Gain, Pairwise, Part, Test


@dataclass(frozen=True)
class Piece:
    """Ratings that are tested together: those ``where`` (all) of a study, which is of them alone; ``name`` is their stratum's."""

    name: str | None
    where: Mask | None
    study: Study

    @classmethod
    def of(cls, study: Study, by: str) -> list[Piece]:
        """A piece for each value of a column of strata."""
        names, place = study.strata[by]
        return [cls(name, where := place == number, study.only(where)) for number, name in enumerate(names)]

    def wanted(self) -> Iterator[Wanted]:
        """The tables of which a p by rater is wanted, in the order in which :func:`part` takes them."""
        categories, others = range(len(self.study.labels)), range(1, len(self.study.groups))
        # A group without a rating here is no group here: its raters exchange with nobody.
        there = tuple(np.flatnonzero(self.study.counts().sum(axis=1)).tolist())
        groups: Literal["all"] | tuple[int, ...] = there if 1 < len(there) < len(self.study.groups) else "all"
        yield Wanted(self.where, groups=groups)
        yield from (Wanted(self.where, categories=one, groups=groups) for one in categories)
        yield from (Wanted(self.where, groups=pair) for pair in pairs(len(self.study.groups)))
        yield from (Wanted(self.where, categories=one, groups=(0, other)) for one in categories for other in others)


def pairs(groups: int) -> list[tuple[int, int]]:
    """All pairs of groups, those with the baseline first."""
    return sorted(combinations(range(groups), 2), key=lambda pair: pair[0] > 0)


def part(piece: Piece, by_raters: Iterator[float], settings: str) -> Part:
    """All tests of a piece, with their p by rater (NaN where there is none) and its settings."""
    study = piece.study
    counts = study.counts()
    quoted = tuple(f'"{label}"' for label in study.labels)

    def by_rater() -> float | None:
        p = next(by_raters)
        return None if math.isnan(p) else figure(p)

    omnibus = tested(Counted(study.groups, quoted, counts), by_rater(), settings)
    by_category = tuple(
        tested(Counted.of_category(study.groups, label, place, counts), by_rater(), settings) for place, label in enumerate(study.labels)
    )
    pairwise = tuple(_pairwise(study, pair, by_rater(), settings) for pair in pairs(len(study.groups)))
    gains = tuple(
        gain(study, group, category, by_rater(), settings) for category in range(len(study.labels)) for group in range(1, len(study.groups))
    )
    shares = [[None if math.isnan(one) else figure(one) for one in row] for row in shares_of(counts).tolist()]
    of_counts, of_shares = tuple(map(tuple, counts.tolist())), tuple(map(tuple, shares))
    return Part(piece.name, of_counts, of_shares, omnibus, *NOT_YET, by_category, pairwise, gains)


def _pairwise(study: Study, pair: tuple[int, int], permutation: float | None, settings: str) -> Pairwise:
    names = study.groups[pair[0]], study.groups[pair[1]]
    table = Counted(names, tuple(f'"{label}"' for label in study.labels), study.counts()[list(pair)])
    return Pairwise(names[0], names[1], tested(table, permutation, settings), *NOT_YET)


def corrected(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts of one column with their p-values corrected over all parts: the omnibus ones, those of pairs, and by category the gains."""
    whole = iter(_family([one.omnibus for one in parts]))
    pairwise = iter(_family([pair.test for one in parts for pair in one.pairwise]))
    labels = dict.fromkeys(one.category for one in parts[0].gains)
    gains = {label: iter(_family([one.test for some in parts for one in some.gains if one.category == label])) for label in labels}

    def of_gain(one: Gain) -> Gain:
        return replace(one, **next(gains[one.category]))

    def of_part(one: Part) -> Part:
        pairs = tuple(replace(pair, **next(pairwise)) for pair in one.pairwise)
        return replace(one, **next(whole), pairwise=pairs, gains=tuple(map(of_gain, one.gains)))

    return tuple(map(of_part, parts))


def _family(tests: Sequence[Test]) -> list[dict[str, Any]]:
    """By test its p corrected, that which is gone by and that by rater, and over how many."""
    found: list[dict[str, Any]] = [{"family": sum(one.gone_by is not None for one in tests)} for _ in tests]
    for values, end in (([one.gone_by for one in tests], ""), ([one.permutation for one in tests], "_by_rater")):
        known = [one for one in values if one is not None]
        for name, corrected_by in (("holm", holm), ("benjamini_hochberg", benjamini_hochberg)):
            some = iter(corrected_by(known))
            for one, value in zip(found, values, strict=True):
                one[name + end] = None if value is None else figure(next(some))
    return found
