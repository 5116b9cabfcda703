"""Raters as the unit of chance: intervals of gains, how alike a rater's ratings are, and the p of a study by rater.

For that p groups are exchanged among whole raters of a block, so that what a rater is like counts as chance.

Ratings of one rater resemble each other, and those of a block are of the same items; chi-squared takes all for independent. If groups
make no difference, any rater of a block might as well have been of any group that the block has, with all ratings given (Good 2005,
*Permutation, Parametric and Bootstrap Tests of Hypotheses*). The statistic is Pearson's chi-squared of the counts; p is (1 + draws that
reach what was seen) / (1 + draws).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import derived_random, signature_line
from empathy_eval.raters.study.power import design_effect
from empathy_eval.raters.study.ratings import Mask, Study
from empathy_eval.raters.study.results import Spread
from empathy_eval.statistics.chi_square import one_and_rest
from empathy_eval.statistics.estimate import CONFIDENCE, PLACES, Codes, Floats


def gain_interval(study: Study, group: int, category: int, where: Mask | None = None) -> tuple[float, float] | str:
    """The 95 % interval, in percent, of how much larger a group's share of a category is than the baseline's; or why there is none.

    It is that of the log of the ratio of shares (:func:`log_ratio`), by Student's distribution. Clusters are raters; in a study of several
    blocks they are blocks, since raters of one block saw the same items.
    """
    from scipy import stats

    counts = study.by_rater(where)
    ratings = counts.sum(axis=1)
    side = (study.group_of == group).astype(np.int64) - (study.group_of == 0)
    kept = np.flatnonzero((side != 0) & (ratings > 0))
    side, ratings, given = side[kept], ratings[kept], counts[kept, category]
    blocks = study.block_of[kept] if study.block_of is not None and by_block(study) else None
    for one, name in ((-1, study.groups[0]), (1, study.groups[group])):
        if (number := int((side == one).sum())) < 2:
            return f'no interval: {"one rater" if number else "no rater"} of "{name}" has ratings here'
        if not given[side == one].any():
            return f'no interval: "{name}" was never given "{study.labels[category]}" here'
    if blocks is not None and np.logical_and(*(np.bincount(blocks[side == one], minlength=blocks.max() + 1) for one in (-1, 1))).sum() < 2:
        return f'no interval: fewer than two blocks have ratings of "{study.groups[group]}" and of "{study.groups[0]}" here'
    value, error, freedom = (float(one) for one in log_ratio(given, ratings, side, blocks))
    # Shares that are whole have no error but that of rounding.
    if error < 1e-9:
        return "no interval: raters do not differ in this category here"
    reach = float(stats.t.isf((1 - CONFIDENCE) / 2, freedom)) * error
    low, high = (round(100 * math.expm1(min(end, 700.0)), PLACES) for end in (value - reach, value + reach))
    return low, high


def by_block(study: Study) -> bool:
    """Whether the clusters of a study are its blocks; a single block tells no more than none."""
    return study.block_of is not None and bool((study.block_of != study.block_of[0]).any())


def log_ratio(given: Codes, ratings: Codes, side: Codes, blocks: Codes | None) -> tuple[Floats, Floats, Floats]:
    """The log of a ratio of two shares, its standard error and degrees of freedom, from ratings in clusters.

    The last axis of ``given`` (how often a rater gave the category) are raters, and axes before it studies; ``ratings`` is how many each
    gave, ``side`` whether they are of the group (1) or of the baseline (-1).

    A share is a ratio of sums over clusters (Cochran 1977, *Sampling Techniques*, chapter 6), and its log is linearised: a cluster with n
    of the N ratings of a side, y of them of the category, whose share is p, adds (y - p n) / (N p). Without a cluster its side's share
    moves by that over 1 - n / N, and the variance is the jackknife's: (K - 1) / K times the sum of squares of those over K clusters, which
    does not make intervals too narrow where clusters are few or of unequal size. Degrees of freedom are those of Welch (1947, "The
    generalization of Student's problem", *Biometrika* 34). Blocks are clusters of both sides: a block adds the difference of its sides, and
    degrees of freedom are Welch's over the blocks that a side has ratings in, at most the number of blocks less one: a group that is in
    few of the blocks tells no more than those.
    """
    there, places = np.unique(np.arange(len(side)) if blocks is None else blocks, return_inverse=True)
    logs, parts, freedoms = [], [], []
    for one in (-1, 1):
        n, y = (np.asarray(values, np.float64)[..., side == one] for values in (ratings, given))
        if blocks is not None:
            n, y = (_summed(values, places[side == one], len(there)) for values in (n, y))
        share = y.sum(-1, keepdims=True) / n.sum()
        logs.append(np.log(share[..., 0]))
        parts.append((y - share * n) / (n.sum() * share) / (1 - n / n.sum()))
        freedoms.append(int((n > 0).sum()) - 1)
    spreads = [jackknifed(one) for one in parts]
    whole = spreads[0] + spreads[1]
    below = sum(spread**2 / freedom for spread, freedom in zip(spreads, freedoms, strict=True))
    freedom = np.divide(whole**2, below, out=np.ones_like(whole), where=below > 0)
    if blocks is None:
        return logs[1] - logs[0], np.sqrt(whole), freedom
    return logs[1] - logs[0], np.sqrt(jackknifed(parts[1] - parts[0])), np.minimum(freedom, len(there) - 1.0)


def jackknifed(parts: Floats) -> Floats:
    """A variance from what each cluster moves."""
    number = parts.shape[-1]
    variance: Floats = (number - 1) / number * (parts**2).sum(-1)
    return variance


def _summed(values: Floats, places: Codes, number: int) -> Floats:
    """Sums of the last axis by place."""
    rows = np.arange(values.size // len(places))[:, None] * number
    sums = np.bincount((rows + places).ravel(), values.ravel(), len(rows) * number)
    return sums.reshape(*values.shape[:-1], number).astype(np.float64, copy=False)


def spread(study: Study, group: int, category: int) -> Spread:
    """How alike the ratings of a rater of a group are in giving a category, and how many ratings are worth an independent one.

    The intraclass correlation is the estimator of the analysis of variance (Fisher 1925; for yes and no: Ridout, Demétrio and Firth 1999,
    "Estimating intraclass correlation for binary data", *Biometrics* 55): (B - W) / (B + (m0 - 1) W), B and W the mean squares between and
    within raters, m0 = (N - sum of n² / N) / (raters - 1) for N ratings, n of a rater. It may be negative, and is told as it is.

    The design effect is 1 + (m - 1) icc with m = sum of n² / N (Donner, Birkett and Buck 1981, *American Journal of Epidemiology* 114),
    the ``ratings_a_rater``: the mean number where all give as many. It is at least 1, so that no rating counts for more than one.
    """
    counts = study.by_rater()[study.group_of == group]
    counts = counts[counts.sum(axis=1) > 0]
    given, ratings = counts[:, category].astype(np.float64), counts.sum(axis=1).astype(np.float64)
    raters, total = len(ratings), float(ratings.sum())
    signature = signature_line(icc="one-way-anova", design_effect="at-least-1", raters=raters)
    names = study.groups[group], study.labels[category]
    a_rater = round(float((ratings**2).sum()) / total, PLACES) if raters else None
    if (why := _no_correlation(raters, total, float(given.sum()))) or a_rater is None:
        return Spread(*names, None, None, a_rater, why, signature)
    own, share = given / ratings, given.sum() / total
    between = float((ratings * (own - share) ** 2).sum()) / (raters - 1)
    within = float((given * (1 - own)).sum()) / (total - raters)
    even = (total - float((ratings**2).sum()) / total) / (raters - 1)
    icc = round((between - within) / (between + (even - 1) * within), PLACES) + 0.0
    return Spread(*names, icc, round(design_effect(a_rater, icc), PLACES), a_rater, None, signature)


def _no_correlation(raters: int, ratings: float, given: float) -> str | None:
    """Why there is no intraclass correlation."""
    if raters < 2:
        return "one rater does not show how raters differ" if raters else "nobody rated"
    if ratings == raters:
        return "each rater gave one rating, which does not show how similar a rater's ratings are"
    return "all ratings are equal in this category" if given in (0, ratings) else None


# Draws that are made together, and raters whose labels are drawn together: memory does not grow with a study.
DRAWS = 500
RATERS = 4096
# Labels of a batch that are held at once.
HELD = 2**26
# Labels that have no more arrangements are drawn from a list of them, and those of larger blocks are dealt, both many times as fast.
ARRANGEMENTS = 5040
LARGE = 1000
DEAL = 2**8
# Whole numbers up to here are exact in 32 bits of a float.
EXACT = 2**24

Labels = NDArray[Any]


@dataclass(frozen=True)
class Exchange:
    """The raters of some groups who can be exchanged: ``label`` is a rater's place among those groups (-1: of none)."""

    label: Codes
    names: tuple[str, ...]
    blocks: tuple[Blocks, ...]

    @classmethod
    def of(cls, study: Study, groups: Literal["all"] | tuple[int, ...]) -> Exchange | None:
        """The raters of all groups, or of some, within their blocks; None where no block has raters of two of them."""
        places = list(range(len(study.groups))) if groups == "all" else list(groups)
        place_of = np.full(len(study.groups), -1)
        place_of[places] = np.arange(len(places))
        label = place_of[study.group_of]
        block = np.zeros_like(label) if study.block_of is None else study.block_of
        order = np.lexsort((label, block))
        order = order[label[order] >= 0]
        _, starts = np.unique(block[order], return_index=True)
        sizes = np.diff(np.append(starts, len(order)))
        blocks = []
        for size in np.unique(sizes[sizes > 1]):
            raters = order[starts[sizes == size][:, None] + np.arange(size)]
            labels = label[raters].astype(np.min_scalar_type(len(places)))
            blocks += list(Blocks.alike(raters, labels))
        return cls(label, tuple(study.groups[place] for place in places), tuple(blocks)) if blocks else None

    def ways(self) -> float:
        """In how many ways their groups can be arranged, as the natural logarithm."""
        return sum(len(one.raters) * _log_ways(one.labels) for one in self.blocks)

    def of_label(self, label: int) -> int:
        """How many raters of one of the groups can be exchanged."""
        return sum(len(one.raters) * int((one.labels == label).sum()) for one in self.blocks)

    def counts(self, by_rater: Codes, draws: int, seed: int) -> Iterator[Floats]:
        """Counts by group, shape (n, groups, columns), from those by rater: what was seen, then the draws, a batch at a time.

        Raters who cannot be exchanged count where they are.
        """
        seen = _totals(by_rater, self.label, len(self.names))
        yield seen[None].astype(np.float64)
        kind = np.float32 if by_rater.max(initial=0) * RATERS < EXACT else np.float64
        # Seat by seat, so that the labels of a seat are drawn in one go.
        exchanged = [by_rater[one.raters.T].astype(kind) for one in self.blocks]
        still = np.ones(len(self.label), bool)
        for one in self.blocks:
            still[one.raters] = False
        start = _totals(by_rater[still], self.label[still], len(self.names)).astype(np.float64)
        for one, of_raters in zip(self.blocks, exchanged, strict=True):
            start += np.bincount(one.labels, minlength=len(start))[:, None] * of_raters[0].sum(axis=0, dtype=np.float64)
        rng = np.random.default_rng(derived_random(seed, "study", *self.names).getrandbits(64))
        batch = min(DRAWS, HELD // max(one.raters.shape[1] for one in self.blocks) + 1)
        for first in range(0, draws, batch):
            drawn = np.repeat(start[None], min(batch, draws - first), axis=0)
            for one, of_raters in zip(self.blocks, exchanged, strict=True):
                one.exchange(drawn, of_raters, rng)
            # Whatever is drawn, the ratings of all groups together are what they were.
            drawn[:, -1] = seen.sum(axis=0) - drawn[:, :-1].sum(axis=1)
            yield drawn


def _totals(by_rater: Codes, label: Codes, groups: int) -> Codes:
    """Sums of counts by label."""
    return np.stack([by_rater[label == one].sum(axis=0, dtype=np.int64) for one in range(groups)])


@dataclass(frozen=True)
class Blocks:
    """Blocks that have the same labels: their raters, shape (blocks, size), those labels ascending, and their arrangements if few."""

    raters: Codes
    labels: Labels
    arrangements: Labels | None

    @classmethod
    def alike(cls, raters: Codes, labels: Labels) -> Iterator[Blocks]:
        """From blocks of one size, shape (blocks, size), those that go together; blocks of one label have nothing to exchange."""
        numbers = np.stack([(labels == label).sum(axis=1) for label in range(labels.max() + 1)], axis=1)
        _, first, kind = np.unique(numbers, axis=0, return_index=True, return_inverse=True)
        for place, one in enumerate(labels[first]):
            if one[0] < one[-1]:
                few = len(one) <= LARGE and _log_ways(one) <= math.log(ARRANGEMENTS + 0.5)
                yield cls(raters[kind.ravel() == place], one, np.array(_arrangements(tuple(one.tolist())), one.dtype) if few else None)

    def exchange(self, drawn: Floats, of_raters: Labels, rng: np.random.Generator) -> None:
        """Adds what each group but the last gets to draws, shape (draws, groups, columns); ``of_raters``: (size, blocks, columns).

        The draws have the counts of a block's first rater for each label of the block, so that others add what they have more than that.
        """
        size, number, columns = of_raters.shape
        present = [label for label in np.unique(self.labels) if label < drawn.shape[1] - 1]
        for start in range(0, number, step := max(RATERS // size, 1)):
            counts = of_raters[:, start : start + step]
            labels = self._drawn(len(drawn), counts.shape[1], rng)
            more = (counts[1:] - counts[0]).reshape(-1, columns)
            for at in range(0, len(more), RATERS):
                for label in present:
                    taken = (labels[:, at : at + RATERS] == label).astype(more.dtype)
                    drawn[:, label] += taken @ more[at : at + RATERS]

    def _drawn(self, draws: int, blocks: int, rng: np.random.Generator) -> Labels:
        """The labels of so many blocks, exchanged within each, shape (draws, (size - 1) * blocks): seat by seat, without the first."""
        size = len(self.labels)
        if self.arrangements is not None:
            kinds = _kinds(len(self.arrangements), (draws, blocks), rng)
            labels = np.empty((draws, size - 1, blocks), self.labels.dtype)
            for seat, of_kind in enumerate(self.arrangements.T[1:]):
                labels[:, seat] = np.take(of_kind, kinds)
        elif size <= LARGE:
            rows = np.broadcast_to(self.labels, (draws * blocks, size))
            labels = rng.permuted(rows, axis=1).reshape(draws, blocks, size).swapaxes(1, 2)[:, 1:]
        else:
            labels = np.stack([_dealt(self.labels, draws, rng) for _ in range(blocks)], axis=2)[:, 1:]
        return labels.reshape(draws, -1)


def _kinds(ways: int, shape: tuple[int, int], rng: np.random.Generator) -> Labels:
    """Places among so many arrangements; of two, by a bit each."""
    if ways > 2:
        return rng.integers(0, ways, shape)
    rows, columns = shape
    return np.unpackbits(rng.integers(0, 256, (rows, -(-columns // 8)), dtype=np.uint8), axis=1, count=columns)


def _dealt(labels: Labels, draws: int, rng: np.random.Generator) -> Labels:
    """Labels of a large block at random, shape (draws, size): each by a draw of its own, and then as few changed as make them right.

    Nothing in that tells raters apart, so all arrangements are alike likely.
    """
    wanted = np.bincount(labels)
    by_number = labels[np.arange(DEAL) * len(labels) // DEAL]
    dealt = np.empty((draws, len(labels)), labels.dtype)
    for row in dealt:
        row[:] = np.take(by_number, np.frombuffer(rng.bytes(len(labels)), np.uint8))
        over = np.bincount(row, minlength=len(wanted)) - wanted
        spare = [rng.choice(np.flatnonzero(row == label), over[label], replace=False, shuffle=False) for label in np.flatnonzero(over > 0)]
        if spare:
            row[rng.permutation(np.concatenate(spare))] = np.repeat(np.arange(len(wanted)), np.maximum(-over, 0))
    return dealt


def _log_ways(labels: Labels) -> float:
    """The logarithm of how many arrangements labels have, which is quick for large blocks too."""
    return math.lgamma(len(labels) + 1) - sum(math.lgamma(times + 1) for times in np.bincount(labels).tolist())


def _arrangements(labels: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All arrangements of labels."""
    if len(labels) < 2:
        return [labels]
    firsts = [place for place, one in enumerate(labels) if one not in labels[:place]]
    return [(labels[place], *rest) for place in firsts for rest in _arrangements(labels[:place] + labels[place + 1 :])]


# Counts of raters that are held at once: memory does not grow with the number of strata.
NUMBERS_HELD = 2**25
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
            found[place] = (1 + hits) / (1 + permutations) if np.isfinite(ratios[0]) else math.nan
    return found


def null_point(study: Study, permutations: int, seed: int, quantile: float = 0.95) -> float:
    """The point below which so many (``quantile``) of the omnibus statistics lie that exchanged raters give; NaN where not defined.

    Chi-squared's own point holds for independent ratings alone, and lies lower where raters differ in severity.
    """
    for _, (ratios,) in _drawn(study, [Wanted()], permutations, seed):
        if np.isfinite(ratios[0]):
            return float(np.quantile((ratios[1:] - 1) * len(study.rater), quantile))
    return math.nan


def _drawn(study: Study, tables: Sequence[Wanted], permutations: int, seed: int) -> Iterator[tuple[list[int], list[Floats]]]:
    """By part of the tables their places, and of each what was seen and each draw: chi-squared over the number of ratings, plus 1."""
    masks = {id(one.where): one.where for one in tables if permutations > 0}
    number = len(study.labels)
    at_once = max(NUMBERS_HELD // (len(study.raters) * number), 1)
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
                    table = batch[:, :, at : at + number]
                    kept.append(_ratio(table if category == "all" else one_and_rest(table, category)))
            yield places, [np.concatenate(kept) for kept in ratios]


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
