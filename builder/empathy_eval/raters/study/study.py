"""A study between subjects, reckoned: its tests, gains, spreads and power as one result."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, combinations, groupby, starmap
from typing import Any, Literal, NamedTuple

import numpy as np

from empathy_eval.base.errors import Problem, nearest, refuse
from empathy_eval.base.hashing import digest, signature_line
from empathy_eval.design.provenance import File, Provenance
from empathy_eval.raters.study.by_rater import Exchange, Wanted, by_block, gain_interval, null_point, permuted, spread
from empathy_eval.raters.study.power import needed, odd_aim, reached, smallest
from empathy_eval.raters.study.ratings import Mask, Study
from empathy_eval.raters.study.results import Gain, Group, Pairwise, Part, Powered, Spread, Studied
from empathy_eval.statistics.chi_square import ChiSquaredTest, CountTable, figure, tested
from empathy_eval.statistics.estimate import CONFIDENCE, Codes, Floats
from empathy_eval.statistics.ranking import benjamini_hochberg, holm

# The category of a comparison by all of them.
ALL = -1


class Comparison(NamedTuple):
    """What is tested: some groups by all categories or by one and the others; a gain is that of two groups, the first the baseline."""

    kind: Literal["omnibus", "category", "pair", "gain"]
    category: int
    groups: tuple[int, ...]


def comparisons(study: Study) -> Iterator[Comparison]:
    """All that is tested."""
    categories, groups = range(len(study.labels)), tuple(range(len(study.groups)))
    yield Comparison("omnibus", ALL, groups)
    yield from (Comparison("category", one, groups) for one in categories)
    yield from (Comparison("pair", ALL, pair) for pair in pairs(len(groups)))
    yield from (Comparison("gain", one, (0, other)) for one in categories for other in groups[1:])


def pairs(groups: int) -> list[tuple[int, int]]:
    """All pairs of groups, those with the baseline first."""
    return sorted(combinations(range(groups), 2), key=lambda pair: pair[0] > 0)


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
        """The tables of which a p by rater is wanted, one for each comparison."""
        # A group without a rating here is no group here: its raters exchange with nobody.
        there = tuple(np.flatnonzero(self.study.counts().sum(axis=1)).tolist())
        everybody: Literal["all"] | tuple[int, ...] = there if 1 < len(there) < len(self.study.groups) else "all"
        for one in comparisons(self.study):
            groups = one.groups if one.kind in ("pair", "gain") else everybody
            yield Wanted(self.where, "all" if one.category == ALL else one.category, groups)

    def counted(self, one: Comparison) -> CountTable:
        """The counts of a comparison."""
        names, counts = tuple(self.study.groups[place] for place in one.groups), self.study.counts()[list(one.groups)]
        if one.category == ALL:
            return CountTable(names, tuple(f'"{label}"' for label in self.study.labels), counts)
        return CountTable.of_category(names, self.study.labels[one.category], one.category, counts)


# A test, and its corrected p-values.
Corrected = tuple[ChiSquaredTest, dict[str, Any]]


def parts(pieces: Sequence[Piece], by_raters: Iterator[float], settings: str) -> tuple[Part, ...]:
    """The parts of one column: all tests of its pieces, with their p by rater (NaN where there is none) and its settings.

    p-values are corrected over all parts: the omnibus ones, those of pairs, and by category the gains.
    """
    compared = list(comparisons(pieces[0].study))
    found: list[dict[Comparison, Corrected]] = [
        {one: (tested(piece.counted(one), _defined(next(by_raters)), settings, yates=one.kind == "gain"), {}) for one in compared}
        for piece in pieces
    ]
    for _, family in groupby(compared, key=lambda one: (one.kind, one.kind == "gain" and one.category)):
        some = [(tests, one) for one in family for tests in found]
        for (tests, one), corrected in zip(some, _family([tests[one][0] for tests, one in some]), strict=True):
            tests[one][1].update(corrected)
    return tuple(starmap(_part, zip(pieces, found, strict=True)))


def _part(piece: Piece, found: Mapping[Comparison, Corrected]) -> Part:
    study, names, counts = piece.study, piece.study.groups, piece.study.counts()
    shares = tuple(tuple(map(_defined, row)) for row in shares_of(counts).tolist())
    (omnibus,), by_category, pairs, gains = (
        [(one, *found[one]) for one in found if one.kind == kind] for kind in ("omnibus", "category", "pair", "gain")
    )
    return Part(
        piece.name, tuple(map(tuple, counts.tolist())), shares, omnibus[1], **omnibus[2],
        by_category=tuple(test for _, test, _ in by_category),
        pairwise=tuple(Pairwise(names[one.groups[0]], names[one.groups[1]], test, **corrected) for one, test, corrected in pairs),
        gains=tuple(gain(study, one.groups[1], one.category, test, corrected) for one, test, corrected in gains),
    )  # fmt: skip


def gain(study: Study, group: int, category: int, test: ChiSquaredTest, corrected: dict[str, Any]) -> Gain:
    """The gain of a group over the baseline in a category, in percent of the baseline's share, with its interval by rater.

    Gains are of shares: where groups have as many ratings, those of counts are the same. Not defined where the baseline never gave it.
    """
    counts = study.counts()[[0, group]]
    names, label = (study.groups[0], study.groups[group]), study.labels[category]
    unit = "block" if by_block(study) else "rater"
    signature = signature_line(gain="percent-of-baseline-share", interval="log-ratio,linearised,t", level=CONFIDENCE, unit=unit)
    before, share = shares_of(counts)[:, category].tolist()
    low, high, value = None, None, None
    why = next((f'"{name}" has no rating here' for name, row in zip(names, counts, strict=True) if not row.sum()), None)
    if why is None and not counts[0, category]:
        why = f'"{names[0]}" was never given "{label}" here, so no gain over it can be computed'
    if why is None:
        value = figure(100 * (share / before - 1))
        found = gain_interval(study, group, category)
        if isinstance(found, str):
            why = found
        else:
            low, high = found
    return Gain(
        names[1], label, _defined(before), _defined(share), value, low, high, test, **corrected, why=why, signature=signature
    )  # fmt: skip


def shares_of(counts: Codes) -> Floats:
    """The share of each category in each row; NaN in a row without ratings."""
    totals = counts.sum(axis=1, keepdims=True)
    found: Floats = np.divide(counts, totals, out=np.full(counts.shape, np.nan), where=totals > 0)
    return found


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else figure(value)


def _family(tests: Sequence[ChiSquaredTest]) -> list[dict[str, Any]]:
    """By test its p corrected, that which is gone by and that by rater, and over how many."""
    found: list[dict[str, Any]] = [{"family": sum(one.gone_by is not None for one in tests)} for _ in tests]
    for values, end in (([one.gone_by for one in tests], ""), ([one.permutation for one in tests], "_by_rater")):
        known = [one for one in values if one is not None]
        for name, corrected_by in (("holm", holm), ("benjamini_hochberg", benjamini_hochberg)):
            some = iter(corrected_by(known))
            for one, value in zip(found, values, strict=True):
                one[name + end] = None if value is None else figure(next(some))
    return found


MOST_PERMUTATIONS = 100_000


@dataclass(frozen=True)
class Asked:
    """What is reckoned: by which columns (all there are), with how many exchanges of raters, and what effect should have been seen."""

    by: tuple[str, ...] | None = None
    permutations: int = 2000
    seed: int = 0
    effect: float = 0.3
    alpha: float = 0.05
    power: float = 0.95

    def problems(self, ratings: Study) -> list[Problem]:
        """What is wrong with it, for these ratings."""
        columns = tuple(ratings.strata)
        known = f"use one of {', '.join(columns)}" if columns else "give the ratings a column stratum or valence"
        unknown = [one for one in self.by or () if one not in columns]
        found = [Problem("by", f'the ratings have no column "{one}"', known + nearest(one, columns)) for one in unknown]
        if not _whole(self.permutations) or not 0 <= self.permutations <= MOST_PERMUTATIONS:
            fix = f"use 0 (no p-value by rater) to {MOST_PERMUTATIONS:,}"
            found.append(Problem("permutations", f'"{self.permutations}" is out of range', fix))
        if not _whole(self.seed):
            found.append(Problem("seed", f'"{self.seed}" is not a whole number', "use a whole number, such as 0"))
        return [*found, *odd_aim(self.effect, self.alpha, self.power, (len(ratings.groups), len(ratings.labels)))]


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def study(ratings: Study, asked: Asked) -> Studied:
    """All figures of a study.

    Raises:
        InputError: for columns that are not there, and numbers out of range.
    """
    from scipy.special import chdtri

    refuse(asked.problems(ratings))
    by = tuple(ratings.strata) if asked.by is None else tuple(dict.fromkeys(asked.by))
    pieces = {None: [Piece(None, None, ratings)]} | {name: Piece.of(ratings, name) for name in by}
    wanted = [one for piece in chain(*pieces.values()) for one in piece.wanted()]
    drawn = iter(permuted(ratings, wanted, asked.permutations, asked.seed))
    within = "study" if ratings.block_of is None else "block"
    chance = signature_line(permutations=asked.permutations, unit="rater", within=within, seed=asked.seed, numpy=np.__version__)
    found = {name: parts(some, drawn, chance) for name, some in pieces.items()}
    (whole,) = found.pop(None)
    spreads = tuple(spread(ratings, group, category) for group in range(len(ratings.groups)) for category in range(len(ratings.labels)))
    # Below it all but alpha of the omnibus statistics lie when groups make no difference and ratings are independent.
    if_independent = None if whole.omnibus.df is None else figure(float(chdtri(whole.omnibus.df, asked.alpha)))
    groups, baseline, how = _groups(ratings), ratings.groups[0], {**asdict(asked), "by": by}
    notes = [*_notes(ratings, groups), *_too_few([whole, *chain(*found.values())], asked)]
    return Studied(
        {"baseline": baseline, **how, "within": within, "criterion": ratings.criterion, "tables": [asdict(one) for one in ratings.tables]},
        groups, ratings.labels, whole, {str(name): some for name, some in found.items()}, spreads,
        _defined(null_point(ratings, asked.permutations, asked.seed, 1 - asked.alpha)), if_independent,
        _powered(ratings, spreads, asked), None, None,
        (*notes, *(exchanges(ratings, asked.alpha) if asked.permutations else ())), f"{_signature(ratings, by)}|{chance}",
        provenance=Provenance.of(
            files=[File(one.name, one.sha256) for one in ratings.tables], baseline=baseline, criterion=ratings.criterion,
            labels=list(ratings.labels), **how | {"by": list(by)},
        ),
    )  # fmt: skip


def _signature(ratings: Study, by: Sequence[str]) -> str:
    """The settings of a study, its tables by a digest of what they hold, in their order."""
    known = bool(ratings.tables) and all(one.sha256 for one in ratings.tables)
    held = digest([[one.sha256, one.added] for one in ratings.tables])[:19] if known else "unknown"
    criterion = "none" if ratings.criterion is None else ratings.criterion
    return signature_line(
        study="between-subjects", baseline=ratings.groups[0], by=",".join(by) or "none", criterion=criterion, tables=held
    )  # fmt: skip


def _groups(ratings: Study) -> tuple[Group, ...]:
    group = ratings.group_of[ratings.rater]
    pairs = np.unique(group * len(ratings.items) + ratings.item) // len(ratings.items)
    raters, given, items = (np.bincount(one, minlength=len(ratings.groups)).tolist() for one in (ratings.group_of, group, pairs))
    return tuple(Group(name, raters[place], given[place], items[place], name in ratings.added) for place, name in enumerate(ratings.groups))


def _powered(ratings: Study, spreads: Sequence[Spread], asked: Asked) -> Powered:
    """What these ratings can show. Their design effect is the mean over groups and categories that Rao and Scott (1981) take.

    It weighs by one minus the group's share of the ratings, and one minus that of the category.
    """
    counts = ratings.counts()
    # As the test has it: what nobody gave, and who has no ratings, is left out.
    df = max(((counts.sum(axis=1) > 0).sum().item() - 1) * ((counts.sum(axis=0) > 0).sum().item() - 1), 1)
    weights = np.outer(1 - counts.sum(axis=1) / counts.sum(), 1 - counts.sum(axis=0) / counts.sum()).ravel()
    # The only rating of a rater is as good as an independent one.
    found = [1.0 if one.ratings_a_rater == 1 else one.design_effect for one in spreads]
    there, effects = np.array([one is not None for one in found]), np.array([one or 0.0 for one in found])
    mean = max(1.0, float((weights * effects)[there].sum() / weights[there].sum())) if there.any() else None
    signature = signature_line(
        power="noncentral-chi-square", effect=asked.effect, alpha=asked.alpha, wanted=asked.power, df=df, design_effect="Rao-Scott,mean"
    )
    figures, why = dict[str, Any].fromkeys(("effective_ratings", "reached", "smallest_w", "design_effect")), None
    if mean is None:
        why = "no design effect is known: " + (next((one.why for one in spreads if one.why), None) or "no ratings")
    else:
        worth = len(ratings.rater) / mean
        known = (worth, reached(worth, asked.effect, df, asked.alpha), smallest(worth, df, asked.alpha, asked.power), mean)
        figures = dict(zip(figures, map(figure, known), strict=True))
    least = needed(asked.effect, df, asked.alpha, asked.power)
    return Powered(asked.effect, asked.alpha, asked.power, df, least, len(ratings.rater), **figures, signature=signature, why=why)


def _too_few(parts: Sequence[Part], asked: Asked) -> list[str]:
    """Whether more exchanges are needed, for p by rater to be found after their correction."""
    family = max(max(one.family for one in some) for part in parts for some in ([part], part.pairwise, part.gains))
    if not asked.permutations or family <= asked.alpha * (asked.permutations + 1):
        return []
    least = f"{asked.permutations:,} permutations give no p-value by rater below {1 / (asked.permutations + 1):.2g}"
    return [f"{least}, so Holm over {family} tests never falls below {asked.alpha:g}: use {math.ceil(family / asked.alpha):,} or more"]


def exchanges(ratings: Study, alpha: float) -> Iterator[str]:
    """Where the p by rater of a group and the baseline rests on few raters or few arrangements, which no number of draws mends."""
    for place, name in enumerate(ratings.groups[1:], 1):
        both = f'"{name}" and "{ratings.groups[0]}"'
        found = Exchange.of(ratings, (0, place))
        if found is None:
            yield f"{both} have no block in common, so their p-value by rater is not reported"
            continue
        there, of = found.of_label(1), int((ratings.group_of == place).sum())
        if there < of:
            some = f'only {there:,} of {of:,} raters of "{name}" share a block with "{ratings.groups[0]}"'
            yield f"{some}: their p-value by rater is based on those raters alone"
        if (least := math.exp(-found.ways())) > alpha * (1 - 1e-9):
            yield f"raters of {both} allow only {1 / least:.0f} permutations, so no p-value by rater is below {least:.2g}"


def _notes(ratings: Study, groups: Sequence[Group]) -> list[str]:
    """What is to be minded of these ratings, in plain words."""
    notes = list(ratings.notes)
    if ratings.added:
        whose = ", ".join(ratings.added)
        notes.append(f"{whose}: added later; its raters were not drawn together with the others and may differ from them in other ways too")
    sizes = [one.ratings for one in groups]
    if len(set(sizes)) > 1:
        notes.append(f"groups have {min(sizes):,} to {max(sizes):,} ratings: gains compare shares, not counts")
    if any(one.items < len(ratings.items) for one in groups):
        notes.append("not every item was rated in every group, so groups may also differ in their items")
    return notes
