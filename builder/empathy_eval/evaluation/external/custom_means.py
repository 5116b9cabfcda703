"""Results of custom texts: the mean of each metric and system, and comparisons of systems over shared contexts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from empathy_eval.base.json_text import fields_json
from empathy_eval.design.provenance import KEYS, LongForm
from empathy_eval.evaluation.external.custom_texts import CustomScores, CustomTexts, DomainWarning, MetricColumn
from empathy_eval.evaluation.inversion.inversion import EXCHANGES, ResamplingSettings, estimate_difference
from empathy_eval.evaluation.inversion.results import correct_p_values
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.protocol import Array
from empathy_eval.statistics.estimate import TESTED, Clusters, Estimate, student_interval

# No configuration says how chance is reckoned with: as one without words of its own does.
CHANCE = ResamplingSettings(1000, EXCHANGES, 0)
NUMBERS = ("texts", "contexts", "left_out", "value", "low", "high", "p", "holm")
RECORD = ("table", "metric", "system", "other", *NUMBERS, "signature", "told")


@dataclass(frozen=True)
class CorpusMean:
    """The corpus score of a metric over the texts of a system ("" where texts have none); ``left_out`` texts have no score.

    ``score`` is None where none has.
    """

    metric: str
    system: str
    texts: int
    contexts: int
    left_out: int
    score: Estimate | None
    higher_is_better: bool | None
    signature: str


@dataclass(frozen=True)
class SystemGap:
    """The first system minus the second over the contexts that both answer; ``left_out`` contexts have one answer only.

    ``difference`` is None where there is no such context.
    """

    metric: str
    system: str
    other: str
    contexts: int
    left_out: int
    difference: Estimate | None = field(metadata=TESTED)
    signature: str


@dataclass(frozen=True, repr=False)
class CustomTextResults(LongForm):
    """Means, comparisons, warnings and faults of metrics over custom texts."""

    columns: ClassVar[tuple[str, ...]] = (*KEYS, *RECORD)
    numbers: ClassVar[tuple[str, ...]] = NUMBERS
    means: tuple[CorpusMean, ...]
    comparisons: tuple[SystemGap, ...]
    outside: tuple[DomainWarning, ...]
    faults: tuple[MetricFault, ...]

    @property
    def headline(self) -> dict[tuple[str, str], Estimate]:
        """By metric and system ("" where texts have none) the mean score, with its interval."""
        return {(mean.metric, mean.system): mean.score for mean in self.means if mean.score}

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return self._with_provenance(fields_json(self) | {"faults": [str(fault) for fault in self.faults]})

    def _records(self) -> Iterator[dict[str, Any]]:
        for table, rows in (("means", self.means), ("comparisons", self.comparisons)):
            for row in rows:
                plain = fields_json(row)
                yield {"table": table, **plain, **(plain.pop("score" if table == "means" else "difference") or {})}
        yield from ({"table": "outside", "metric": row.metric, "texts": row.texts, "told": str(row)} for row in self.outside)
        yield from ({"table": "faults", "told": str(fault)} for fault in self.faults)


def compare_systems(scores: CustomScores, chance: ResamplingSettings = CHANCE) -> CustomTextResults:
    """Means and comparisons of systems, with intervals of resampled contexts and Student's distribution.

    A p-value is of the exchange of the two systems within contexts (ties half), corrected over all comparisons of all metrics.
    """
    systems = list(dict.fromkeys(scores.texts.systems))
    places = {name: np.array([system == name for system in scores.texts.systems]) for name in systems}
    means, gaps = list[CorpusMean](), list[SystemGap]()
    for column in scores.columns:
        parts = {name: _SystemTexts.of(scores.texts, column, np.flatnonzero(own & column.scored).tolist()) for name, own in places.items()}
        means += [_mean(column, name, part, int(places[name].sum()), chance) for name, part in parts.items()]
        gaps += [_gap(column, (first, second), (parts[first], parts[second]), chance) for first, second in combinations(systems, 2)]
    return CustomTextResults(tuple(means), tuple(correct_p_values(gaps)), scores.outside, scores.faults)


@dataclass(frozen=True)
class _SystemTexts:
    """The scored texts of a system: their contexts, and the sums of statistics of each context."""

    texts: int
    contexts: tuple[str, ...]
    totals: Array

    @classmethod
    def of(cls, texts: CustomTexts, column: MetricColumn, rows: Sequence[int]) -> _SystemTexts:
        names = [texts.contexts_of[row] for row in rows]
        clusters = Clusters.of(names, [0] * len(rows))
        return cls(len(rows), tuple(dict.fromkeys(names)), clusters.totals(column.statistics[rows]))

    def at(self, contexts: Sequence[str]) -> Array:
        """Returns the sums of these contexts, in this order."""
        place = {name: row for row, name in enumerate(self.contexts)}
        return self.totals[[place[name] for name in contexts]]


def _alone(count: int) -> Clusters:
    """Returns clusters of one context each, in one stratum."""
    return Clusters(np.arange(count), np.zeros(count, dtype=np.int64))


def _settings(chance: ResamplingSettings, contexts: int, exchanged: bool) -> str:
    p = f"p:exchange-within-context,two-sided,ties:half|exchanges:{chance.exchanges}|" if exchanged else ""
    interval = f"interval:bootstrap,Rao-Wu,student|level:0.95|resamples:{chance.resamples}|unit:context|contexts:{contexts}"
    return f"{p}{interval}|seed:{chance.seed}|numpy:{np.__version__}"


def _mean(column: MetricColumn, system: str, part: _SystemTexts, texts: int, chance: ResamplingSettings) -> CorpusMean:
    metric, count = column.metric, len(part.contexts)
    score = None
    if count:
        value, low, high = round(float(metric.aggregate(part.totals.sum(axis=0, keepdims=True))[0]), metric.places), None, None
        if (freedom := _alone(count).degrees_of_freedom) > 0:
            drawn = metric.aggregate(_alone(count).bootstrap(part.totals, chance.resamples, chance.seed))
            low, high = student_interval(value, drawn, freedom, metric.places) if np.isfinite(drawn).all() else (None, None)
        score = Estimate(value, low, high)
    signature = f"{metric.signature}|{_settings(chance, count, exchanged=False)}"
    return CorpusMean(metric.name, system, part.texts, count, texts - part.texts, score, metric.higher_is_better, signature)


def _gap(column: MetricColumn, systems: tuple[str, str], parts: tuple[_SystemTexts, _SystemTexts], chance: ResamplingSettings) -> SystemGap:
    metric, (first, second) = column.metric, parts
    answered = set(second.contexts)
    common = [name for name in first.contexts if name in answered]
    left_out = len(first.contexts) + len(second.contexts) - 2 * len(common)
    difference = None
    if common:
        first_sums, second_sums = first.at(common), second.at(common)
        clusters, width = _alone(len(common)), first_sums.shape[1]

        def gaps(sums: Array) -> Array:
            return np.asarray(metric.aggregate(sums[:, :width]) - metric.aggregate(sums[:, width:]))

        both, mirrored = np.hstack([first_sums, second_sums]), np.hstack([second_sums, first_sums])
        whole = both.sum(axis=0, keepdims=True)
        value, chances = float(gaps(whole)[0]), None
        if len(common) > 1:
            swapped = whole + clusters.permute(mirrored - both, chance.exchanges, chance.seed)
            chances = gaps(clusters.bootstrap(both, chance.resamples, chance.seed)), gaps(swapped), value
        difference = estimate_difference(value, chances, clusters.degrees_of_freedom)
    signature = f"{metric.signature}|{_settings(chance, len(common), exchanged=True)}"
    return SystemGap(metric.name, *systems, len(common), left_out, difference, signature)
