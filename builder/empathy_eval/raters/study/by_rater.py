"""Inference with raters as the unit: intervals of gains, intraclass correlation, and permutation tests.

Ratings of one rater resemble each other, and raters of a block see the same items, so chi-squared's assumption of independence fails. The
permutation test exchanges groups among whole raters of a block, with all their ratings (Good 2005, *Permutation, Parametric and Bootstrap
Tests of Hypotheses*). Its statistic is Pearson's chi-squared of the counts; p is (1 + draws that reach the observed value) / (1 + draws).
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
from empathy_eval.raters.study.ratings import Mask, StudyTable
from empathy_eval.raters.study.results import IntraclassCorrelation
from empathy_eval.statistics.chi_square import split_category
from empathy_eval.statistics.estimate import CONFIDENCE, PLACES, Codes, Floats


def gain_interval(study: StudyTable, group: int, category: int, where: Mask | None = None) -> tuple[float, float] | str:
    """95 % interval, in percent, of a group's gain over the baseline in a category; or the reason why there is none.

    It is the interval of the log of the ratio of shares (:func:`log_ratio`), by Student's distribution. Clusters are raters; in a study of
    several blocks they are blocks, since raters of one block saw the same items.
    """
    from scipy import stats

    counts = study.by_rater(where)
    ratings = counts.sum(axis=1)
    side = (study.group_of == group).astype(np.int64) - (study.group_of == 0)
    rows = np.flatnonzero((side != 0) & (ratings > 0))
    side, ratings, counted = side[rows], ratings[rows], counts[rows, category]
    blocks = study.block_of[rows] if study.block_of is not None and clustered_by_block(study) else None
    for sign, name in ((-1, study.groups[0]), (1, study.groups[group])):
        if (number := int((side == sign).sum())) < 2:
            return f'no interval: {"one rater" if number else "no rater"} of "{name}" has ratings here'
        if not counted[side == sign].any():
            return f'no interval: "{name}" was never given "{study.labels[category]}" here'
    if blocks is not None and len(np.intersect1d(blocks[side == -1], blocks[side == 1])) < 2:
        return f'no interval: fewer than two blocks have ratings of "{study.groups[group]}" and of "{study.groups[0]}" here'
    value, error, freedom = (float(array) for array in log_ratio(counted, ratings, side, blocks))
    # Equal shares of all raters have only rounding error.
    if error < 1e-9:
        return "no interval: raters do not differ in this category here"
    reach = float(stats.t.isf((1 - CONFIDENCE) / 2, freedom)) * error
    low, high = (round(100 * math.expm1(min(end, 700.0)), PLACES) for end in (value - reach, value + reach))
    return low, high


def clustered_by_block(study: StudyTable) -> bool:
    """Whether the clusters of a study are its blocks; a single block is no cluster."""
    return study.block_of is not None and bool((study.block_of != study.block_of[0]).any())


def log_ratio(counted: Codes, ratings: Codes, side: Codes, blocks: Codes | None) -> tuple[Floats, Floats, Floats]:
    """Log of a ratio of two shares, its standard error and degrees of freedom, from ratings in clusters.

    The last axis of ``given`` (how often a rater gave the category) are raters, axes before it are studies. ``ratings`` counts the ratings
    of each rater; ``side`` is 1 for the group and -1 for the baseline.

    A share is a ratio of sums over clusters (Cochran 1977, *Sampling Techniques*, chapter 6), and its log is linearised: a cluster with n
    of the N ratings of a side, y of them of the category, whose share is p, contributes (y - p n) / (N p). Leaving out a cluster moves its
    side's share by that over 1 - n / N. The variance is the jackknife's: (K - 1) / K times the sum of squares over K clusters, which stays
    wide enough if clusters are few or unequal. Degrees of freedom are Welch's (1947, "The generalization of Student's problem",
    *Biometrika* 34). A block is a cluster of both sides and contributes the difference of its sides; degrees of freedom are then at most
    the number of blocks less one.
    """
    clusters, places = np.unique(np.arange(len(side)) if blocks is None else blocks, return_inverse=True)
    logs, parts, freedoms = [], [], []
    for sign in (-1, 1):
        n, y = (np.asarray(values, np.float64)[..., side == sign] for values in (ratings, counted))
        if blocks is not None:
            n, y = (_sums_by_cluster(values, places[side == sign], len(clusters)) for values in (n, y))
        share = y.sum(-1, keepdims=True) / n.sum()
        logs.append(np.log(share[..., 0]))
        parts.append((y - share * n) / (n.sum() * share) / (1 - n / n.sum()))
        freedoms.append(int((n > 0).sum()) - 1)
    spreads = [jackknife_variance(part) for part in parts]
    whole = spreads[0] + spreads[1]
    below = sum(spread**2 / freedom for spread, freedom in zip(spreads, freedoms, strict=True))
    freedom = np.divide(whole**2, below, out=np.ones_like(whole), where=below > 0)
    if blocks is None:
        return logs[1] - logs[0], np.sqrt(whole), freedom
    return logs[1] - logs[0], np.sqrt(jackknife_variance(parts[1] - parts[0])), np.minimum(freedom, len(clusters) - 1.0)


def jackknife_variance(parts: Floats) -> Floats:
    """Variance from the contributions of clusters (last axis)."""
    number = parts.shape[-1]
    variance: Floats = (number - 1) / number * (parts**2).sum(-1)
    return variance


def _sums_by_cluster(values: Floats, places: Codes, number: int) -> Floats:
    """Sums over the last axis by cluster."""
    rows = np.arange(values.size // len(places))[:, None] * number
    sums = np.bincount((rows + places).ravel(), values.ravel(), len(rows) * number)
    return sums.reshape(*values.shape[:-1], number).astype(np.float64, copy=False)


def intraclass_correlation(study: StudyTable, group: int, category: int) -> IntraclassCorrelation:
    """Similarity of the ratings of a rater of a group in giving a category, and the resulting design effect.

    The intraclass correlation is the ANOVA estimator (Fisher 1925; for binary data: Ridout, Demétrio and Firth 1999, "Estimating intraclass
    correlation for binary data", *Biometrics* 55): (B - W) / (B + (m0 - 1) W), B and W the mean squares between and within raters, m0 = (N
    - sum of n² / N) / (raters - 1) for N ratings, n of a rater. It may be negative.

    The design effect is 1 + (m - 1) icc with m = sum of n² / N (Donner, Birkett and Buck 1981, *American Journal of Epidemiology* 114), the
    ``ratings_a_rater``. It is at least 1, so that no rating counts for more than one.
    """
    counts = study.by_rater()[study.group_of == group]
    counts = counts[counts.sum(axis=1) > 0]
    counted, ratings = counts[:, category].astype(np.float64), counts.sum(axis=1).astype(np.float64)
    raters, total = len(ratings), float(ratings.sum())
    signature = signature_line(icc="one-way-anova", design_effect="at-least-1", raters=raters)
    names = study.groups[group], study.labels[category]
    a_rater = round(float((ratings**2).sum()) / total, PLACES) if raters else None
    if (why := _no_correlation(raters, total, float(counted.sum()))) or a_rater is None:
        return IntraclassCorrelation(*names, None, None, a_rater, why, signature)
    own, share = counted / ratings, counted.sum() / total
    between = float((ratings * (own - share) ** 2).sum()) / (raters - 1)
    within = float((counted * (1 - own)).sum()) / (total - raters)
    even = (total - float((ratings**2).sum()) / total) / (raters - 1)
    icc = round((between - within) / (between + (even - 1) * within), PLACES) + 0.0
    return IntraclassCorrelation(*names, icc, round(design_effect(a_rater, icc), PLACES), a_rater, None, signature)


def _no_correlation(raters: int, ratings: float, share: float) -> str | None:
    """Reason why there is no intraclass correlation, or None."""
    if raters < 2:
        return "one rater does not show how raters differ" if raters else "nobody rated"
    if ratings == raters:
        return "each rater gave one rating, which does not show how similar a rater's ratings are"
    return "all ratings are equal in this category" if share in (0, ratings) else None


# Draws per batch, and raters whose labels are drawn together, so that memory does not grow with the study.
DRAWS = 500
RATERS = 4096
# Maximum number of labels in memory.
HELD = 2**26
# With at most this many arrangements labels are drawn from a list, in larger blocks by shuffling; both are many times faster.
ARRANGEMENTS = 5040
LARGE = 1000
DEAL = 2**8
# Whole numbers up to here are exact in a 32-bit float.
EXACT = 2**24

Labels = NDArray[Any]


@dataclass(frozen=True)
class Permutation:
    """Raters of some groups who can be permuted: ``label`` is a rater's index among those groups (-1: none of them)."""

    label: Codes
    names: tuple[str, ...]
    blocks: tuple[Blocks, ...]

    @classmethod
    def of(cls, study: StudyTable, groups: Literal["all"] | tuple[int, ...]) -> Permutation | None:
        """Raters of all groups, or of some, within their blocks; None if no block has raters of two of them."""
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
        return cls(label, tuple(study.groups[index] for index in places), tuple(blocks)) if blocks else None

    def log_arrangements(self) -> float:
        """Natural logarithm of the number of arrangements of the groups."""
        return sum(len(block.raters) * _log_arrangements(block.labels) for block in self.blocks)

    def of_label(self, label: int) -> int:
        """Number of raters of one of the groups that can be permuted."""
        return sum(len(block.raters) * int((block.labels == label).sum()) for block in self.blocks)

    def counts(self, by_rater: Codes, draws: int, seed: int) -> Iterator[Floats]:
        """Counts by group, shape (n, groups, columns), from those by rater: first the observed ones, then the draws, in batches.

        Raters who cannot be permuted count where they are.
        """
        totals = _totals(by_rater, self.label, len(self.names))
        yield totals[None].astype(np.float64)
        kind = np.float32 if by_rater.max(initial=0) * RATERS < EXACT else np.float64
        # Ordered by seat, so that the labels of a seat are drawn at once.
        exchanged = [by_rater[block.raters.T].astype(kind) for block in self.blocks]
        still = np.ones(len(self.label), bool)
        for block in self.blocks:
            still[block.raters] = False
        start = _totals(by_rater[still], self.label[still], len(self.names)).astype(np.float64)
        for block, of_raters in zip(self.blocks, exchanged, strict=True):
            start += np.bincount(block.labels, minlength=len(start))[:, None] * of_raters[0].sum(axis=0, dtype=np.float64)
        rng = np.random.default_rng(derived_random(seed, "study", *self.names).getrandbits(64))
        batch = min(DRAWS, HELD // max(block.raters.shape[1] for block in self.blocks) + 1)
        for first in range(0, draws, batch):
            drawn = np.repeat(start[None], min(batch, draws - first), axis=0)
            for block, of_raters in zip(self.blocks, exchanged, strict=True):
                block.exchange(drawn, of_raters, rng)
            # Permutation does not change the total over all groups.
            drawn[:, -1] = totals.sum(axis=0) - drawn[:, :-1].sum(axis=1)
            yield drawn


def _totals(by_rater: Codes, label: Codes, groups: int) -> Codes:
    """Sums of counts by label."""
    return np.stack([by_rater[label == group].sum(axis=0, dtype=np.int64) for group in range(groups)])


@dataclass(frozen=True)
class Blocks:
    """Blocks with the same labels: raters of shape (blocks, size), their labels ascending, and all arrangements if few."""

    raters: Codes
    labels: Labels
    arrangements: Labels | None

    @classmethod
    def alike(cls, raters: Codes, labels: Labels) -> Iterator[Blocks]:
        """Group blocks of one size, shape (blocks, size), by their labels; blocks of one label have nothing to permute."""
        numbers = np.stack([(labels == label).sum(axis=1) for label in range(labels.max() + 1)], axis=1)
        _, first, kind = np.unique(numbers, axis=0, return_index=True, return_inverse=True)
        for kind_index, first_labels in enumerate(labels[first]):
            if first_labels[0] < first_labels[-1]:
                few = len(first_labels) <= LARGE and _log_arrangements(first_labels) <= math.log(ARRANGEMENTS + 0.5)
                arrangements = np.array(_arrangements(tuple(first_labels.tolist())), first_labels.dtype) if few else None
                yield cls(raters[kind.ravel() == kind_index], first_labels, arrangements)

    def exchange(self, drawn: Floats, of_raters: Labels, rng: np.random.Generator) -> None:
        """Add the permuted counts of each group but the last to draws of shape (draws, groups, columns).

        ``of_raters`` has shape (size, blocks, columns). The draws already hold the counts of a block's first rater for each label of the
        block, so that the others add only their difference from it.
        """
        size, number, columns = of_raters.shape
        present = [label for label in np.unique(self.labels) if label < drawn.shape[1] - 1]
        for start in range(0, number, step := max(RATERS // size, 1)):
            counts = of_raters[:, start : start + step]
            labels = self._drawn(len(drawn), counts.shape[1], rng)
            more = (counts[1:] - counts[0]).reshape(-1, columns)
            for offset in range(0, len(more), RATERS):
                for label in present:
                    chosen = (labels[:, offset : offset + RATERS] == label).astype(more.dtype)
                    drawn[:, label] += chosen @ more[offset : offset + RATERS]

    def _drawn(self, draws: int, blocks: int, rng: np.random.Generator) -> Labels:
        """Permuted labels of this many blocks, shape (draws, (size - 1) * blocks): seat by seat, without the first."""
        size = len(self.labels)
        if self.arrangements is not None:
            kinds = _random_arrangements(len(self.arrangements), (draws, blocks), rng)
            labels = np.empty((draws, size - 1, blocks), self.labels.dtype)
            for seat, of_kind in enumerate(self.arrangements.T[1:]):
                labels[:, seat] = np.take(of_kind, kinds)
        elif size <= LARGE:
            rows = np.broadcast_to(self.labels, (draws * blocks, size))
            labels = rng.permuted(rows, axis=1).reshape(draws, blocks, size).swapaxes(1, 2)[:, 1:]
        else:
            labels = np.stack([_shuffled_labels(self.labels, draws, rng) for _ in range(blocks)], axis=2)[:, 1:]
        return labels.reshape(draws, -1)


def _random_arrangements(number: int, shape: tuple[int, int], rng: np.random.Generator) -> Labels:
    """Random indices of arrangements; of two arrangements, one bit each."""
    if number > 2:
        return rng.integers(0, number, shape)
    rows, columns = shape
    return np.unpackbits(rng.integers(0, 256, (rows, -(-columns // 8)), dtype=np.uint8), axis=1, count=columns)


def _shuffled_labels(labels: Labels, draws: int, rng: np.random.Generator) -> Labels:
    """Random labels of a large block, shape (draws, size): drawn independently, then corrected by as few changes as possible.

    The correction treats all raters alike, so all arrangements are equally likely.
    """
    counts = np.bincount(labels)
    by_number = labels[np.arange(DEAL) * len(labels) // DEAL]
    dealt = np.empty((draws, len(labels)), labels.dtype)
    for row in dealt:
        row[:] = np.take(by_number, np.frombuffer(rng.bytes(len(labels)), np.uint8))
        over = np.bincount(row, minlength=len(counts)) - counts
        spare = [rng.choice(np.flatnonzero(row == label), over[label], replace=False, shuffle=False) for label in np.flatnonzero(over > 0)]
        if spare:
            row[rng.permutation(np.concatenate(spare))] = np.repeat(np.arange(len(counts)), np.maximum(-over, 0))
    return dealt


def _log_arrangements(labels: Labels) -> float:
    """Natural logarithm of the number of arrangements of labels."""
    return math.lgamma(len(labels) + 1) - sum(math.lgamma(times + 1) for times in np.bincount(labels).tolist())


def _arrangements(labels: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All arrangements of labels."""
    if len(labels) < 2:
        return [labels]
    firsts = [index for index, label in enumerate(labels) if label not in labels[:index]]
    return [(labels[index], *rest) for index in firsts for rest in _arrangements(labels[:index] + labels[index + 1 :])]


# Maximum number of counts in memory, so that memory does not grow with the number of strata.
NUMBERS_HELD = 2**25
# Draws that differ from the observed value by rounding alone count as equal.
ROUNDING = 1e-12


@dataclass(frozen=True)
class TableSelection:
    """A table of counts to be tested: which ratings (``where``, None for all), which categories, which groups.

    Groups and categories are indices of the study. If only some groups are compared, only their raters are permuted: the ratings of others
    say nothing about whether these differ.
    """

    where: Mask | None = None
    categories: Literal["all"] | int = "all"
    groups: Literal["all"] | tuple[int, ...] = "all"


def permutation_p_values(study: StudyTable, tables: Sequence[TableSelection], permutations: int, seed: int) -> list[float]:
    """p-value by rater of each table; NaN without two groups or categories, or without a block with raters of two groups.

    It depends on the study, the seed and the number of draws only: there is one set of draws for each set of groups.
    """
    p_values = [math.nan] * len(tables)
    for places, drawn in _drawn(study, tables, permutations, seed):
        for index, ratios in zip(places, drawn, strict=True):
            hits = int((ratios[1:] >= ratios[0] * (1 - ROUNDING)).sum())
            p_values[index] = (1 + hits) / (1 + permutations) if np.isfinite(ratios[0]) else math.nan
    return p_values


def null_point(study: StudyTable, permutations: int, seed: int, quantile: float = 0.95) -> float:
    """Quantile of the omnibus statistic under permutation of raters; NaN if undefined.

    The quantile of chi-squared holds for independent ratings alone, and is smaller if raters differ in severity.
    """
    for _, (ratios,) in _drawn(study, [TableSelection()], permutations, seed):
        if np.isfinite(ratios[0]):
            return float(np.quantile((ratios[1:] - 1) * len(study.rater), quantile))
    return math.nan


def _drawn(study: StudyTable, tables: Sequence[TableSelection], permutations: int, seed: int) -> Iterator[tuple[list[int], list[Floats]]]:
    """For each chunk of the tables their indices and, by table, the observed and the drawn chi-squared / ratings + 1."""
    masks = {id(table.where): table.where for table in tables if permutations > 0}
    number = len(study.labels)
    at_once = max(NUMBERS_HELD // (len(study.raters) * number), 1)
    for start in range(0, len(masks), at_once):
        chunk = dict(list(masks.items())[start : start + at_once])
        counts = np.hstack([study.by_rater(mask) for mask in chunk.values()])
        column = {mask: index * number for index, mask in enumerate(chunk)}
        for groups in dict.fromkeys(table.groups for table in tables):
            places = [index for index, table in enumerate(tables) if table.groups == groups and id(table.where) in chunk]
            exchanged = Permutation.of(study, groups)
            if not places or exchanged is None:
                continue
            slices = [(column[id(tables[index].where)], tables[index].categories) for index in places]
            ratios: list[list[Floats]] = [[] for _ in places]
            for batch in exchanged.counts(counts, permutations, seed):
                for ratio, (at, category) in zip(ratios, slices, strict=True):
                    table = batch[:, :, at : at + number]
                    ratio.append(_ratio(table if category == "all" else split_category(table, category)))
            yield places, [np.concatenate(ratio) for ratio in ratios]


def _ratio(counts: Floats) -> Floats:
    """Sum of count² over the product of its margins for tables of shape (n, groups, categories): chi-squared / ratings + 1.

    Groups and categories without a rating are left out; NaN unless two of both remain.
    """
    rows, columns = counts.sum(axis=2, keepdims=True), counts.sum(axis=1, keepdims=True)
    margins = rows * columns
    parts = np.divide(counts * counts, margins, out=np.zeros_like(counts), where=margins > 0)
    defined = ((rows > 0).sum(axis=(1, 2)) > 1) & ((columns > 0).sum(axis=(1, 2)) > 1)
    ratios: Floats = np.where(defined, parts.sum(axis=(1, 2)), np.nan)
    return ratios
