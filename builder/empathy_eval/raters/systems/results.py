"""Results of a comparison of systems: means with intervals by dialogue, at equal length and by part, differences, and scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from empathy_eval.design.provenance import KEYS, LongForm
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings, estimate_difference
from empathy_eval.evaluation.inversion.results import PLACES
from empathy_eval.metrics.protocol import Array
from empathy_eval.raters.judges.annotations import AnnotationFolder
from empathy_eval.raters.systems.figures import JUDGE, LENGTH, METRIC, PEOPLE, SAFETY, WINS, FigureColumn, RepliesBySystem, Values
from empathy_eval.statistics.estimate import HALF_A_WIN, SIGNED, TESTED, Clusters, Estimate, bradley_terry, connected, student_interval

# Attributes of contexts whose groups have means of their own.
PARTS = ("scenario", "phase", "register")
# A slope is of so many words more.
WORDS = 10
EXCHANGES_A_PAIR = 100
NUMBERS = ("contexts", "value", "low", "high", "p", "holm")
RECORD = ("table", "figure", "kind", "system", "other", "by", "group", *NUMBERS, "place", "told", "signature")


@dataclass(frozen=True)
class MetricWorth:
    """The accuracy of a metric at equal closeness on the release, and the accuracy of the best shortcut there (``line``).

    ``place`` is "above", "at", "below" or "untested"; ``why`` is the place in words, or why it is not known.
    """

    accuracy: Estimate | None
    line: float | None
    place: str
    why: str


@dataclass(frozen=True)
class SystemMean:
    """The mean of a figure over the replies of a system, and the same at the mean length of all replies."""

    system: str
    contexts: int
    mean: Estimate | None
    at_equal_length: Estimate | None


@dataclass(frozen=True)
class FigureRow:
    """A figure of all systems; ``per_words`` is its change with ``WORDS`` words more, within contexts."""

    name: str
    kind: str
    higher_is_better: bool | None
    cells: tuple[SystemMean, ...]
    per_words: Estimate | None
    worth: MetricWorth | None
    signature: str


@dataclass(frozen=True)
class SystemDifference:
    """The first system minus the second over the contexts that have both figures; ``left_out`` contexts have one of them."""

    figure: str
    system: str
    other: str
    contexts: int
    left_out: int
    difference: Estimate | None = field(metadata=TESTED)
    signature: str


@dataclass(frozen=True)
class Part:
    """The mean of a figure over some contexts of a system."""

    figure: str
    system: str
    by: str
    group: str
    contexts: int
    mean: Estimate | None


@dataclass(frozen=True)
class Strength:
    """The Bradley-Terry score of a system by a judge's comparisons; None for the reason ``why``."""

    judge: str
    system: str
    comparisons: int
    score: Estimate | None
    why: str
    signature: str


@dataclass(frozen=True)
class Example:
    """A context whose replies differ most in a figure, with the replies and their values by system."""

    pair_id: str
    figure: str
    turns: tuple[tuple[str, str], ...]
    texts: Mapping[str, str]
    values: Mapping[str, float]


@dataclass(frozen=True, repr=False)
class SystemComparison(LongForm):
    """All figures of the systems; ``diversity`` is by measure and system, ``conclusions`` and ``limits`` are sentences."""

    columns: ClassVar[tuple[str, ...]] = (*KEYS, *RECORD)
    numbers: ClassVar[tuple[str, ...]] = NUMBERS
    systems: tuple[str, ...]
    baselines: tuple[str, ...]
    contexts: int
    figures: tuple[FigureRow, ...]
    gaps: tuple[SystemDifference, ...]
    strengths: tuple[Strength, ...]
    parts: tuple[Part, ...]
    diversity: Mapping[str, Mapping[str, float]]
    examples: tuple[Example, ...]
    conclusions: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def main(self) -> FigureRow | None:
        """The figure that conclusions and examples are about: people's ratings, else a judge's preferences, ratings, or a metric."""
        order = (PEOPLE, WINS, JUDGE, METRIC)
        known = [row for row in self.figures if row.kind in order and row.higher_is_better is not None]
        return min(known, key=lambda row: order.index(row.kind), default=None)

    def _records(self) -> Iterator[dict[str, Any]]:
        for row in self.figures:
            about = {"figure": row.name, "kind": row.kind, "signature": row.signature}
            for cell in row.cells:
                yield _record("means", cell.mean, about, **vars(cell))
                yield _record("at equal length", cell.at_equal_length, about, **vars(cell))
            yield _record("per words", row.per_words, about)
            if row.worth:
                yield _record("worth", row.worth.accuracy, about, place=row.worth.place, told=row.worth.why)
        yield from (_record("differences", gap.difference, vars(gap)) for gap in self.gaps)
        yield from (_record("parts", part.mean, vars(part)) for part in self.parts)
        for each in self.strengths:
            yield _record("strengths", each.score, vars(each), figure=each.judge, contexts=each.comparisons, told=each.why)
        for name, some in self.diversity.items():
            yield from (_record("diversity", Estimate(value), {"figure": name, "system": system}) for system, value in some.items())
        for table in ("conclusions", "limits", "notes", "faults"):
            yield from (_record(table, None, told=line) for line in getattr(self, table))


def _record(table: str, estimate: Estimate | None, about: Mapping[str, Any] = {}, **more: Any) -> dict[str, Any]:  # noqa: B006
    """A record of the long form; values that are no column are dropped there."""
    return {**about, **more, "table": table, **(estimate.written(*SIGNED) if estimate else {})}


@dataclass(frozen=True)
class Grid:
    """A column as numbers, shape (contexts, systems), NaN where there is none; and the words of the same replies."""

    values: Array
    words: Array
    clusters: Clusters

    @classmethod
    def of(cls, column: FigureColumn, replies: RepliesBySystem) -> Grid:
        """Of all contexts."""

        def numbers(values: Values) -> Array:
            return np.array([[values.get(name, {}).get(row.pair_id, np.nan) for name in replies.systems] for row in replies.contexts])

        clusters = Clusters.of([row.dialogue_id for row in replies.contexts], [row.scenario_id for row in replies.contexts])
        return cls(numbers(column.values), numbers(replies.checked("words")), clusters)

    def take(self, rows: Any) -> Grid:
        """Some of the contexts."""
        return Grid(self.values[rows], self.words[rows], self.clusters.take(rows))

    def counts(self) -> list[int]:
        """The number of values of each system."""
        return [int(count) for count in (~np.isnan(self.values)).sum(axis=0)]

    def sums(self) -> Array:
        """By context the terms of means and slopes: by system value, 1 and words; then within contexts xy and xx."""
        present = ~np.isnan(self.values)
        values, words = (np.where(present, np.nan_to_num(numbers), 0.0) for numbers in (self.values, self.words))
        many = np.maximum(present.sum(axis=1, keepdims=True), 1)
        x, y = (np.where(present, numbers - numbers.sum(axis=1, keepdims=True) / many, 0.0) for numbers in (words, values))
        within = np.column_stack([(x * y).sum(axis=1), (x * x).sum(axis=1)])
        return np.hstack([values, present.astype(np.float64), words, within])

    def estimates(self, chance: ResamplingSettings) -> tuple[list[Estimate | None], list[Estimate | None], Estimate | None]:
        """By system the mean and the mean at equal length, None where there is no value; and the slope of ``WORDS`` words."""
        count = self.values.shape[1]
        estimates = _estimates(self.sums(), self.clusters, lambda sums: _means_and_slope(sums, count), chance)
        return estimates[:count], estimates[count:-1], estimates[-1]


def _means_and_slope(sums: Array, count: int) -> Array:
    """Means, means at equal length and the slope, from summed rows of :meth:`Grid.sums`; shape (m, 2 * systems + 1)."""
    value, present, words = (sums[:, place * count : (place + 1) * count] for place in range(3))
    with np.errstate(divide="ignore", invalid="ignore"):
        means, lengths = value / present, words / present
        slope = np.where(sums[:, -1] > 1e-9, sums[:, -2] / sums[:, -1], np.nan)
        overall = words.sum(axis=1) / present.sum(axis=1)
        return np.column_stack([means, means - slope[:, None] * (lengths - overall[:, None]), slope * WORDS])


def _estimates(sums: Array, clusters: Clusters, figures: Callable[[Array], Array], chance: ResamplingSettings) -> list[Estimate | None]:
    """Estimates of the ``figures`` of summed rows, with intervals by dialogue; None for a figure that is not defined."""
    totals, freedom = clusters.totals(sums), clusters.degrees_of_freedom
    resampled = figures(clusters.bootstrap(totals, chance.resamples, chance.seed)).T if freedom > 0 else None
    estimates = list[Estimate | None]()
    for place, value in enumerate(map(float, figures(totals.sum(axis=0, keepdims=True))[0])):
        drawn = None if resampled is None else resampled[place]
        # A figure that never varies has no interval.
        varies = drawn is not None and np.isfinite(drawn).all() and drawn.std() >= 1e-12
        low, high = student_interval(value, drawn, freedom, PLACES) if varies and drawn is not None else (None, None)
        estimates.append(Estimate(round(value, PLACES) + 0.0, low, high) if np.isfinite(value) else None)
    return estimates


def figure_row(column: FigureColumn, replies: RepliesBySystem, chance: ResamplingSettings, worth: MetricWorth | None) -> FigureRow:
    """The figure of all systems, with the settings of its intervals."""
    grid = Grid.of(column, replies)
    means, equal, slope = grid.estimates(chance)
    if column.kind in (LENGTH, SAFETY):
        equal, slope = [None] * len(means), None
    cells = tuple(map(SystemMean, replies.systems, grid.counts(), means, equal))
    signature = f"{column.signature}|mean:contexts|length:within-context-slope|{_settings(chance, grid.clusters)}"
    return FigureRow(column.name, column.kind, column.higher_is_better, cells, slope, worth, signature)


def _settings(chance: ResamplingSettings, clusters: Clusters, **tests: object) -> str:
    return chance.of_intervals(clusters, **tests).replace("Rao-Wu,percentile", "Rao-Wu,student")


def paired_differences(column: FigureColumn, replies: RepliesBySystem, chance: ResamplingSettings) -> Iterator[SystemDifference]:
    """Every two systems, paired by context; p-values are of the exchange of the two within dialogues, not corrected yet."""
    grid, pairs = Grid.of(column, replies), list(combinations(range(len(replies.systems)), 2))
    # Enough exchanges that the smallest possible p-value stays small when it is corrected.
    chance = replace(chance, exchanges=max(chance.exchanges, EXCHANGES_A_PAIR * len(pairs)))
    for first, second in pairs:
        change = grid.values[:, first] - grid.values[:, second]
        both, either = ~np.isnan(change), ~np.isnan(grid.values[:, [first, second]]).all(axis=1)
        contexts = int(both.sum())
        clusters = grid.clusters.take(both) if contexts else grid.clusters
        settings = _settings(chance, clusters, p="exchange-within-dialogue,two-sided", exchanges=chance.exchanges)
        yield SystemDifference(
            column.name, replies.systems[first], replies.systems[second], contexts, int(either.sum()) - contexts,
            _paired_test(change[both], clusters, chance) if contexts else None,
            f"{column.signature}|difference:paired-by-context|{settings}",
        )  # fmt: skip


def _paired_test(change: Array, clusters: Clusters, chance: ResamplingSettings) -> Estimate:
    """The mean of the differences of two systems, shape (contexts,), with its interval and p-value."""
    totals = clusters.totals(np.column_stack([change, np.ones(len(change))]))
    whole = totals.sum(axis=0, keepdims=True)
    value, chances = float(whole[0, 0] / whole[0, 1]), None
    if len(clusters) > 1:
        resampled = clusters.bootstrap(totals, chance.resamples, chance.seed)
        swapped = whole + clusters.permute(totals * [-2.0, 0.0], chance.exchanges, chance.seed)
        chances = resampled[:, 0] / resampled[:, 1], swapped[:, 0] / swapped[:, 1], value
    return estimate_difference(value, chances, clusters.degrees_of_freedom)


def part_means(column: FigureColumn, replies: RepliesBySystem, chance: ResamplingSettings) -> Iterator[Part]:
    """The figure by scenario, phase and register of the seeker, where there are several."""
    grid = Grid.of(column, replies)
    for by in PARTS:
        groups = [getattr(context, by) for context in replies.contexts]
        for group in sorted(set(groups) - {None}) if len(set(groups)) > 1 else ():
            some = grid.take(np.array([name == group for name in groups]))
            for name, contexts, mean in zip(replies.systems, some.counts(), some.estimates(chance)[0], strict=True):
                if mean:
                    yield Part(column.name, name, by, group, contexts, mean)


def strengths(folder: AnnotationFolder, replies: RepliesBySystem, chance: ResamplingSettings) -> Iterator[Strength]:
    """Bradley-Terry scores of the systems by a judge's comparisons, with intervals by dialogue."""
    place = {name: number for number, name in enumerate(replies.systems)}
    count, games = len(place), [(case.dialogue_id, game) for case in folder.cases for game in case.comparisons]
    won = np.zeros((len(games), count, count))
    for number, (_, game) in enumerate(games):
        first, second = place[game.variant_1], place[game.variant_2]
        won[number, first, second], won[number, second, first] = game.share_of_first, 1 - game.share_of_first
    clusters = Clusters.of([name for name, _ in games], [int(name[:3]) for name, _ in games])
    times = (won + won.transpose(0, 2, 1)).sum(axis=0)
    compared = np.flatnonzero(times.any(axis=1))
    square = np.ix_(compared, compared)
    scores, why = dict[int, Estimate | None](), "the systems did not all meet, directly or by way of others"
    met = times[square] > 0
    if len(compared) and connected(met):

        def figures(sums: Array) -> Array:
            return bradley_terry(sums.reshape(-1, count, count)[:, compared][:, :, compared], met)

        scores, why = dict(zip(compared.tolist(), _estimates(won.reshape(len(games), -1), clusters, figures, chance), strict=True)), ""
    settings = f"rubric_hash:{folder.rubric_hash}|{_settings(chance, clusters)}"
    signature = f"score:bradley-terry,log-odds,mean-0|ties:half|added:{HALF_A_WIN}|{settings}"
    for name, number in place.items():
        comparisons = int(times[number].sum())
        yield Strength(folder.name, name, comparisons, scores.get(number), why or ("" if comparisons else "it was not compared"), signature)


def examples(column: FigureColumn, replies: RepliesBySystem, most: int) -> list[Example]:
    """The contexts in which the replies of systems differ most in a figure, the first of equals first."""
    rows = list[Example]()
    for context in replies.contexts:
        pair = context.pair_id
        values = {name: some[pair] for name in replies.systems if pair in (some := column.values.get(name, {}))}
        texts = {name: replies.replies[name][pair].text or "" for name in values}
        rows.append(Example(pair, column.name, context.turns, texts, values))
    several = (row for row in rows if len(row.values) > 1)
    return sorted(several, key=lambda row: min(row.values.values()) - max(row.values.values()))[:most]
