"""Systems compared: means with intervals by dialogue, at equal length, by part, differences, scores of comparisons, and examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from empathy_eval.base.json_text import fields_json
from empathy_eval.design.provenance import KEYS, LongForm
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings, estimate_difference
from empathy_eval.metrics.protocol import Array
from empathy_eval.raters.judges.annotations import AnnotationFolder
from empathy_eval.raters.systems.figures import JUDGE, LENGTH, METRIC, PEOPLE, SAFETY, WINS, Field, FigureColumn
from empathy_eval.statistics.estimate import (
    HALF_A_WIN,
    SIGNED,
    TESTED,
    Clusters,
    Estimate,
    bradley_terry,
    connected,
    holm_corrected,
    student_interval,
)

PLACES = 6
# What the parts of contexts are, by name and attribute.
PARTS = {"scenario": "scenario", "phase": "phase", "register": "register"}
# A slope is of so many words more.
WORDS = 10
EXCHANGES_A_PAIR = 100
NUMBERS = ("contexts", "value", "low", "high", "p", "holm")
RECORD = ("table", "figure", "kind", "system", "other", "by", "group", *NUMBERS, "place", "told", "signature")


@dataclass(frozen=True)
class Worth:
    """What a figure is worth on this release: how often it is right at equal closeness, the shortcut line, and where it stands.

    ``place`` is "above", "at", "below" or "untested" as beside the line; ``why`` says why that is not known, or why it counts for little.
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
    """A figure of all systems; ``per_words`` is what ``WORDS`` words more go with, within contexts."""

    name: str
    kind: str
    higher_is_better: bool | None
    cells: tuple[SystemMean, ...]
    per_words: Estimate | None
    worth: Worth | None
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
    """The Bradley-Terry score of a system by a judge's comparisons; None where systems have not met, ``why`` says so."""

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
class Compared(LongForm):
    """Systems beside each other; ``diversity`` is by measure and system, ``conclusions`` say what follows and ``limits`` what does not."""

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
    faults: tuple[str, ...] = field(default=())

    @property
    def main(self) -> FigureRow | None:
        """The figure that conclusions and examples are about: what people say, else what judges prefer, rate, and what metrics say."""
        order = (PEOPLE, WINS, JUDGE, METRIC)
        known = [one for one in self.figures if one.kind in order and one.higher_is_better is not None]
        return min(known, key=lambda one: order.index(one.kind), default=None)

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return self._with_provenance(fields_json(self))

    def _records(self) -> Iterator[dict[str, Any]]:
        for row in self.figures:
            about = {"figure": row.name, "kind": row.kind, "signature": row.signature}
            for cell in row.cells:
                for table, one in (("means", cell.mean), ("at equal length", cell.at_equal_length)):
                    yield _record(table, one, system=cell.system, contexts=cell.contexts, **about)
            yield _record("per words", row.per_words, **about)
            if row.worth:
                yield _record("worth", row.worth.accuracy, place=row.worth.place, told=row.worth.why, **about)
        of: dict[str, Any]
        for gap in self.gaps:
            of = {"system": gap.system, "other": gap.other, "contexts": gap.contexts, "signature": gap.signature}
            yield _record("differences", gap.difference, figure=gap.figure, **of)
        for part in self.parts:
            of = {"system": part.system, "by": part.by, "group": part.group, "contexts": part.contexts}
            yield _record("parts", part.mean, figure=part.figure, **of)
        for each in self.strengths:
            of = {"figure": each.judge, "system": each.system, "contexts": each.comparisons}
            yield _record("strengths", each.score, **of, told=each.why, signature=each.signature)
        for name, some in self.diversity.items():
            yield from (_record("diversity", Estimate(value), figure=name, system=system) for system, value in some.items())
        for table in ("conclusions", "limits", "notes", "faults"):
            yield from (_record(table, None, told=line) for line in getattr(self, table))


def _record(table: str, estimate: Estimate | None, /, **about: Any) -> dict[str, Any]:
    values = estimate.written(*SIGNED) if estimate else {}
    return dict.fromkeys(RECORD, "") | dict.fromkeys(NUMBERS) | {"table": table} | values | about


@dataclass(frozen=True)
class Grid:
    """A column as numbers, shape (contexts, systems), NaN where there is none; and the words of the same replies."""

    values: Array
    words: Array
    clusters: Clusters

    @classmethod
    def of(cls, column: FigureColumn, field: Field) -> Grid:
        """Of all contexts of a field."""

        def numbers(values: Mapping[str, Mapping[str, float]]) -> Array:
            return np.array([[values.get(name, {}).get(one.pair_id, np.nan) for name in field.systems] for one in field.contexts])

        words = {name: {pair: float(row.checks.words) for pair, row in some.items() if row.checks} for name, some in field.replies.items()}
        ids = [one.dialogue_id for one in field.contexts]
        return cls(numbers(column.values), numbers(words), Clusters.of(ids, [one.scenario_id for one in field.contexts]))

    def take(self, rows: Any) -> Grid:
        """Some of the contexts."""
        return Grid(self.values[rows], self.words[rows], self.clusters.take(rows))

    def sums(self) -> Array:
        """By context what means and slopes are made of: by system value, one and words; then within contexts xy and xx."""
        there = ~np.isnan(self.values)
        values, words = (np.where(there, one, 0.0) for one in (self.values, np.nan_to_num(self.words)))
        many = np.maximum(there.sum(axis=1, keepdims=True), 1)
        x, y = (np.where(there, one - one.sum(axis=1, keepdims=True) / many, 0.0) for one in (words, values))
        within = np.column_stack([(x * y).sum(axis=1), (x * x).sum(axis=1)])
        return np.hstack([values, there.astype(np.float64), words, within])

    def estimates(self, chance: ResamplingSettings) -> tuple[list[Estimate | None], list[Estimate | None], Estimate | None]:
        """By system the mean and the mean at equal length, None where there is no value; and the slope of ``WORDS`` words."""
        totals = self.clusters.totals(self.sums())
        count = self.values.shape[1]
        freedom = self.clusters.degrees_of_freedom
        drawn = _figures(self.clusters.bootstrap(totals, chance.resamples, chance.seed), count) if freedom > 0 else None
        found = [_estimate(value, None if drawn is None else drawn[:, place], freedom) for place, value in enumerate(_whole(totals, count))]
        return found[:count], found[count:-1], found[-1]


def _whole(totals: Array, count: int) -> list[float]:
    return [float(one) for one in _figures(totals.sum(axis=0, keepdims=True), count)[0]]


def _figures(sums: Array, count: int) -> Array:
    """Means, means at equal length and the slope, from summed rows of :meth:`Grid.sums`; shape (m, 2 * systems + 1)."""
    value, there, words = (sums[:, place * count : (place + 1) * count] for place in range(3))
    with np.errstate(divide="ignore", invalid="ignore"):
        means, lengths = value / there, words / there
        slope = np.where(sums[:, -1] > 1e-9, sums[:, -2] / sums[:, -1], np.nan)
        overall = words.sum(axis=1) / there.sum(axis=1)
        return np.column_stack([means, means - slope[:, None] * (lengths - overall[:, None]), slope * WORDS])


def _estimate(value: float, drawn: Array | None, freedom: int) -> Estimate | None:
    if not np.isfinite(value):
        return None
    if drawn is None or not np.isfinite(drawn).all() or drawn.std() < 1e-12:  # what never varies has no interval of its own
        return Estimate(round(value, PLACES) + 0.0)
    low, high = student_interval(value, drawn, freedom, PLACES)
    return Estimate(round(value, PLACES) + 0.0, low, high)


def figure_row(column: FigureColumn, field: Field, chance: ResamplingSettings, worth: Worth | None) -> FigureRow:
    """The figure of all systems, with the settings of its intervals."""
    grid = Grid.of(column, field)
    means, equal, slope = grid.estimates(chance)
    plain = column.kind in (LENGTH, SAFETY)
    cells = tuple(
        SystemMean(name, int((~np.isnan(grid.values[:, place])).sum()), means[place], None if plain else equal[place])
        for place, name in enumerate(field.systems)
    )
    signature = f"{column.signature}|mean:contexts|length:within-context-slope|{_settings(chance, grid.clusters)}"
    return FigureRow(column.name, column.kind, column.higher_is_better, cells, None if plain else slope, worth, signature)


def _settings(chance: ResamplingSettings, clusters: Clusters, **tests: object) -> str:
    return chance.of_intervals(clusters, **tests).replace("Rao-Wu,percentile", "Rao-Wu,student")


def gaps_of(column: FigureColumn, field: Field, chance: ResamplingSettings) -> Iterator[SystemDifference]:
    """Every two systems, paired by context; p-values are of the exchange of the two within dialogues, not corrected yet."""
    grid, twos = Grid.of(column, field), list(combinations(range(len(field.systems)), 2))
    # As many exchanges that a p-value which is as small as it can be stays small when it is corrected.
    chance = replace(chance, exchanges=max(chance.exchanges, EXCHANGES_A_PAIR * len(twos)))
    for one, other in twos:
        change = grid.values[:, one] - grid.values[:, other]
        both = ~np.isnan(change)
        left_out = int((~np.isnan(grid.values[:, [one, other]])).any(axis=1).sum() - both.sum())
        clusters, difference = grid.clusters.take(both) if both.any() else grid.clusters, None
        if both.any():
            totals = clusters.totals(np.column_stack([change[both], np.ones(int(both.sum()))]))
            whole, chances = totals.sum(axis=0, keepdims=True), None
            value = float(whole[0, 0] / whole[0, 1])
            if len(clusters) > 1:
                drawn = clusters.bootstrap(totals, chance.resamples, chance.seed)
                swapped = whole + clusters.permute(totals * [-2.0, 0.0], chance.exchanges, chance.seed)
                chances = drawn[:, 0] / drawn[:, 1], swapped[:, 0] / swapped[:, 1], value
            difference = estimate_difference(value, chances, clusters.degrees_of_freedom)
        settings = _settings(chance, clusters, p="exchange-within-dialogue,two-sided", exchanges=chance.exchanges)
        line = f"{column.signature}|difference:paired-by-context|{settings}"
        yield SystemDifference(column.name, field.systems[one], field.systems[other], int(both.sum()), left_out, difference, line)


def holm_together(gaps: Sequence[SystemDifference]) -> tuple[SystemDifference, ...]:
    """The gaps of a figure with their p-values corrected over all of them."""
    known = iter(holm_corrected([one.difference for one in gaps if one.difference], PLACES))
    return tuple(replace(one, difference=next(known)) if one.difference else one for one in gaps)


def parts_of_figure(column: FigureColumn, field: Field, chance: ResamplingSettings) -> Iterator[Part]:
    """The figure by scenario, phase and register of the seeker, where there are several."""
    grid = Grid.of(column, field)
    for by, attribute in PARTS.items():
        groups = [getattr(one, attribute) for one in field.contexts]
        for group in sorted({one for one in groups if one}) if len(set(groups)) > 1 else ():
            rows = np.array([one == group for one in groups])
            some = grid.take(rows)
            means, *_ = some.estimates(chance)
            for place, name in enumerate(field.systems):
                if means[place]:
                    yield Part(column.name, name, by, group, int((~np.isnan(some.values[:, place])).sum()), means[place])


def strengths_of(folder: AnnotationFolder, field: Field, chance: ResamplingSettings) -> Iterator[Strength]:
    """Bradley-Terry scores of the systems by a judge's comparisons, with intervals by dialogue."""
    place = {name: number for number, name in enumerate(field.systems)}
    count, games = len(place), [(case.dialogue_id, one) for case in folder.cases for one in case.comparisons]
    won = np.zeros((len(games), count, count))
    for number, (_, one) in enumerate(games):
        first, second = place[one.variant_1], place[one.variant_2]
        won[number, first, second], won[number, second, first] = one.share_of_first, 1 - one.share_of_first
    dialogues = [name for name, _ in games]
    clusters = Clusters.of(dialogues, [int(name[:3]) for name in dialogues])
    totals = clusters.totals(won.reshape(len(games), -1))
    whole = totals.sum(axis=0).reshape(1, count, count)
    met = (whole[0] + whole[0].T) > 0
    there = np.flatnonzero(met.any(axis=1))
    why = "" if len(there) and connected(met[np.ix_(there, there)]) else "the systems did not all meet, directly or by way of others"
    scores: list[Estimate | None] = [None] * count
    if not why:
        values, drawn = bradley_terry(whole[:, there][:, :, there])[0], None
        if clusters.degrees_of_freedom > 0:
            sums = clusters.bootstrap(totals, chance.resamples, chance.seed).reshape(-1, count, count)
            drawn = bradley_terry(sums[:, there][:, :, there])
        for number, system in enumerate(there):
            scores[system] = _estimate(float(values[number]), None if drawn is None else drawn[:, number], clusters.degrees_of_freedom)
    line = f"score:bradley-terry,log-odds,mean-0|ties:half|added:{HALF_A_WIN}|rubric_hash:{folder.header['configuration']['rubric_hash']}"
    line += f"|{_settings(chance, clusters)}"
    for number, name in enumerate(field.systems):
        met_times = int(sum(name in (one.variant_1, one.variant_2) for _, one in games))
        yield Strength(folder.name, name, met_times, scores[number], why or ("" if met_times else "it was not compared"), line)


def examples_of(column: FigureColumn, field: Field, most: int) -> Iterator[Example]:
    """The contexts in which the replies of systems differ most in a figure, the first of equals first."""
    ranges = list[tuple[float, int, Example]]()
    for number, one in enumerate(field.contexts):
        values = {name: some[one.pair_id] for name in field.systems if one.pair_id in (some := column.values.get(name, {}))}
        if len(values) > 1:
            texts = {name: field.replies[name][one.pair_id].text or "" for name in values}
            wide = max(values.values()) - min(values.values())
            ranges.append((-wide, number, Example(one.pair_id, column.name, one.turns, texts, values)))
    yield from (one for *_, one in sorted(ranges, key=lambda row: row[:2])[:most])
