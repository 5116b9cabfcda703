"""A study between subjects, reckoned: its tests, gains, spreads and power as one result."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from empathy_eval.base.errors import InputError, Problem, nearest
from empathy_eval.base.hashing import digest, signature_line
from empathy_eval.design.provenance import File, Provenance
from empathy_eval.raters.study.clusters import by_block, gain_interval, spread
from empathy_eval.raters.study.permutation import Exchange, Wanted, null_point, permuted
from empathy_eval.raters.study.power import needed, odd_aim, reached, smallest
from empathy_eval.raters.study.ratings import Mask, Study
from empathy_eval.raters.study.results import NOT_YET, Gain, Group, Pairwise, Part, Powered, Spread, Studied
from empathy_eval.statistics.chi_square import Counted, Test, figure, tested
from empathy_eval.statistics.estimate import CONFIDENCE, Codes, Floats
from empathy_eval.statistics.ranking import benjamini_hochberg, holm


def gain(study: Study, group: int, category: int, permutation: float | None, settings: str) -> Gain:
    """The gain of a group over the baseline in a category, in percent of the baseline's share, with its interval by rater.

    Gains are of shares: where groups have as many ratings, those of counts are the same. Not defined where the baseline never gave it.
    """
    counts = study.counts()[[0, group]]
    names, label = (study.groups[0], study.groups[group]), study.labels[category]
    table = Counted.of_category(names, label, category, counts)
    unit = "block" if by_block(study) else "rater"
    signature = signature_line(gain="percent-of-baseline-share", interval="log-ratio,linearised,t", level=CONFIDENCE, unit=unit)
    shares = shares_of(counts)[:, category].tolist()
    why = _why(counts, names, label, category)
    low, high, value = None, None, None
    if why is None:
        value = figure(100 * (shares[1] / shares[0] - 1))
        found = gain_interval(study, group, category, None)
        if isinstance(found, str):
            why = found
        else:
            low, high = found
    before, share = (None if np.isnan(one) else figure(one) for one in shares)
    test = tested(table, permutation, settings, yates=True)
    return Gain(names[1], label, before, share, value, low, high, test, *NOT_YET, why, signature)


def shares_of(counts: Codes) -> Floats:
    """The share of each category in each row; NaN in a row without ratings."""
    totals = counts.sum(axis=1, keepdims=True)
    found: Floats = np.divide(counts, totals, out=np.full(counts.shape, np.nan), where=totals > 0)
    return found


def _why(counts: Codes, names: tuple[str, str], label: str, category: int) -> str | None:
    """Why there is no gain."""
    for name, row in zip(names, counts, strict=True):
        if not row.sum():
            return f'"{name}" has no rating here'
    return None if counts[0, category] else f'"{names[0]}" was never given "{label}" here, so no gain over it can be computed'


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
    if problems := asked.problems(ratings):
        raise InputError(problems)
    by = tuple(ratings.strata) if asked.by is None else tuple(dict.fromkeys(asked.by))
    pieces = {None: [Piece(None, None, ratings)]} | {name: Piece.of(ratings, name) for name in by}
    wanted = [one for some in pieces.values() for piece in some for one in piece.wanted()]
    drawn = permuted(ratings, wanted, asked.permutations, asked.seed) if asked.permutations else [math.nan] * len(wanted)
    by_raters, settings = iter(drawn), _settings(ratings, asked)
    parts = {name: corrected([part(one, by_raters, settings) for one in some]) for name, some in pieces.items()}
    (whole,) = parts.pop(None)
    spreads = tuple(spread(ratings, group, category) for group in range(len(ratings.groups)) for category in range(len(ratings.labels)))
    line = signature_line(study="between-subjects", baseline=ratings.groups[0], by=",".join(by) or "none", **_source(ratings))
    groups = _groups(ratings)
    power = _powered(ratings, spreads, asked)
    few = _too_few([whole, *(one for some in parts.values() for one in some)], asked)
    return Studied(
        {"baseline": ratings.groups[0], **asdict(asked), "by": by, "within": _within(ratings), **_named(ratings)},
        groups, ratings.labels, whole,
        {name: found for name, found in parts.items() if name}, spreads, *_null_points(ratings, whole.omnibus.df, asked), power, None, None,
        tuple(_notes(ratings, groups) + few + (list(exchanges(ratings, asked.alpha)) if asked.permutations else [])),
        f"{line}|{settings}", provenance=_provenance(ratings, asked, by),
    )  # fmt: skip


def _provenance(ratings: Study, asked: Asked, by: Sequence[str]) -> Provenance:
    """The files that the ratings came from, and what was asked of them."""
    how = {"baseline": ratings.groups[0], "criterion": ratings.criterion, "labels": list(ratings.labels), **asdict(asked), "by": list(by)}
    return Provenance.of(files=[File(one.name, one.sha256) for one in ratings.tables], **how)


def _null_points(ratings: Study, df: int | None, asked: Asked) -> tuple[float | None, float | None]:
    """Below which omnibus statistic all but ``alpha`` lie when groups make no difference: by exchanged raters, and if ratings were all
    independent."""
    from scipy.special import chdtri

    point = null_point(ratings, asked.permutations, asked.seed, 1 - asked.alpha) if asked.permutations else math.nan
    return None if math.isnan(point) else figure(point), None if df is None else figure(float(chdtri(df, asked.alpha)))


def _settings(ratings: Study, asked: Asked) -> str:
    """The settings behind a p by rater."""
    return signature_line(
        permutations=asked.permutations, unit="rater", within=_within(ratings), seed=asked.seed,
        numpy=np.__version__,
    )  # fmt: skip


def _named(ratings: Study) -> dict[str, Any]:
    """Which criterion of which tables."""
    return {"criterion": ratings.criterion, "tables": [asdict(one) for one in ratings.tables]}


def _source(ratings: Study) -> dict[str, str]:
    """The same for a signature: the tables by a digest of what they hold, in their order."""
    known = bool(ratings.tables) and all(one.sha256 for one in ratings.tables)
    held = digest([[one.sha256, one.added] for one in ratings.tables])[:19] if known else "unknown"
    return {"criterion": "none" if ratings.criterion is None else ratings.criterion, "tables": held}


def _within(ratings: Study) -> str:
    """Within what raters are exchanged."""
    return "study" if ratings.block_of is None else "block"


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
    known, effects = np.array([one is not None for one in found]), np.array([one or 0.0 for one in found])
    mean = max(1.0, float((weights * effects)[known].sum() / weights[known].sum())) if known.any() else None
    worth = None if mean is None else len(ratings.rater) / mean
    signature = signature_line(
        power="noncentral-chi-square", effect=asked.effect, alpha=asked.alpha, wanted=asked.power, df=df, design_effect="Rao-Scott,mean"
    )
    return Powered(
        asked.effect, asked.alpha, asked.power, df, needed(asked.effect, df, asked.alpha, asked.power), len(ratings.rater),
        None if worth is None else figure(worth),
        None if worth is None else figure(reached(worth, asked.effect, df, asked.alpha)),
        None if worth is None else figure(smallest(worth, df, asked.alpha, asked.power)),
        None if mean is None else figure(mean), signature,
        None if mean is not None else "no design effect is known: " + (next((one.why for one in spreads if one.why), None) or "no ratings"),
    )  # fmt: skip


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
