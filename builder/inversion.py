"""The inversion: what each metric gives each variant, whom it prefers, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from builder.clusters import CONFIDENCE, Clusters, interval
from builder.contrasts import Contrast
from builder.metrics.diversity import jackknifed
from builder.metrics.protocol import Array, Diversity, Metric
from builder.ranking import area, holm, wins
from builder.signature import signature_line

# The two-sided quantile of the normal distribution that belongs to CONFIDENCE.
NORMAL = 1.959964
PLACES = 6
Statistics = Mapping[str, Array]


@dataclass(frozen=True)
class Chance:
    """How chance is reckoned with: resamples of an interval, exchanges of a p-value, and the seed of both."""

    resamples: int
    exchanges: int
    seed: int

    def signature(self, clusters: Clusters) -> str:
        """The settings behind the intervals and p-values over these dialogues."""
        return signature_line(
            interval="bootstrap,Rao-Wu,percentile", level=CONFIDENCE, resamples=self.resamples, p="exchange-within-dialogue,two-sided",
            exchanges=self.exchanges, auc="Obuchowski,normal", unit="dialogue", strata="scenario,singles-pooled", dialogues=len(clusters),
            seed=self.seed, numpy=np.__version__,
        )  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval; None where no interval is valid."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Difference(Estimate):
    """A contrast of variants' scores.

    ``p`` is uncorrected, ``holm`` corrected for the contrasts it stands with. ``accuracy`` is how often the first variant of a
    pair scores higher, ties half; ``auc`` the same for texts drawn anywhere; both only where two variants are compared. ``forced``
    says that the checks force the sign.
    """

    p: float | None = None
    holm: float | None = None
    accuracy: Estimate | None = None
    auc: Estimate | None = None
    forced: bool = False
    higher_is_better: bool | None = True

    @property
    def decided(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high

    @property
    def prefers(self) -> str:
        """Which of the two the metric points to, ``neither`` where the interval holds 0; no interval is said so."""
        up = self.value > 0 if self.higher_is_better is not False else self.value < 0
        way = "empathetic" if up else "apathetic"
        way = f"more in {way}" if self.higher_is_better is None else way
        if self.low is None:
            return f"{way} (no interval)"
        return way if self.decided else "neither"


@dataclass(frozen=True)
class Row:
    """One metric over one set of pairs: scores by variant, contrasts by name, and the settings of both."""

    metric: str
    signature: str
    interval_signature: str | None
    scores: dict[str, float]
    differences: dict[str, Difference]
    pairs: int
    higher_is_better: bool | None = True

    def to_json(self) -> dict[str, Any]:
        """The row as JSON values."""
        return asdict(self)


def row(metric: Metric, statistics: Statistics, clusters: Clusters, contrasts: Sequence[Contrast], chance: Chance) -> Row:
    """The row of a metric from the statistics of each variant, shape (pairs, k)."""
    totals = {name: clusters.totals(one) for name, one in statistics.items()}
    scores = {name: round(float(metric.aggregate(one.sum(axis=0, keepdims=True))[0]), metric.places) for name, one in totals.items()}
    width = next(iter(totals.values())).shape[1]
    drawn = clusters.bootstrapped(np.hstack(list(totals.values())), chance.resamples, chance.seed)
    resampled = {name: metric.aggregate(drawn[:, place * width : (place + 1) * width]) for place, name in enumerate(totals)}
    found = {}
    for one in contrasts:
        value = round(sum(weight * scores[name] for name, weight in one.weights.items()), metric.places)
        low, high = interval(_weighted(one, resampled), metric.places) if len(clusters) > 1 else (None, None)
        accuracy, auc = _ranked(metric, statistics, clusters, one, chance)
        found[one.name] = Difference(
            value, low, high, p=_p_value(metric, totals, one, clusters, chance), accuracy=accuracy, auc=auc,
            forced=one.forced and "reference" in metric.reads, higher_is_better=metric.higher_is_better,
        )  # fmt: skip
    return Row(metric.name, metric.signature, chance.signature(clusters), scores, found, len(clusters.members), metric.higher_is_better)


def _weighted(contrast: Contrast, values: Mapping[str, Array]) -> Array:
    return np.asarray(sum(weight * values[name] for name, weight in contrast.weights.items()))


def _p_value(metric: Metric, totals: Statistics, contrast: Contrast, clusters: Clusters, chance: Chance) -> float:
    """How often exchanging variants within dialogues at random gives a contrast at least as far from 0 (both ends counted once)."""
    seen, exchanged = {}, {}
    for name in contrast.weights:
        sums = totals[name].sum(axis=0, keepdims=True)
        seen[name] = metric.aggregate(sums)
        change = totals[contrast.mirror[name]] - totals[name]
        exchanged[name] = metric.aggregate(sums + clusters.exchanged(change, chance.exchanges, chance.seed))
    far = np.abs(_weighted(contrast, exchanged)) >= abs(float(_weighted(contrast, seen)[0])) - 1e-12
    return round((1 + int(far.sum())) / (1 + chance.exchanges), PLACES)


def _ranked(
    metric: Metric, statistics: Statistics, clusters: Clusters, contrast: Contrast, chance: Chance
) -> tuple[Estimate | None, Estimate | None]:
    """Pairwise accuracy and area under the curve of a contrast of two variants, None for one of four.

    Scores are compared at the places that are the same in every process; where lower is better they are turned round.
    """
    if contrast.sides is None:
        return None, None
    sign = -1 if metric.higher_is_better is False else 1
    one, other = (sign * np.round(metric.scores(statistics[name]), metric.places) for name in contrast.sides)
    won = wins(one, other)
    totals = clusters.totals(np.column_stack([won, np.ones_like(won)]))
    accuracy = round(float(won.mean()), PLACES)
    value, error = area(one, other, clusters.members)
    if error is None:
        return Estimate(accuracy), Estimate(round(value, PLACES))
    drawn = clusters.bootstrapped(totals, chance.resamples, chance.seed)
    bounds = (round(max(value - NORMAL * error, 0.0), PLACES), round(min(value + NORMAL * error, 1.0), PLACES))
    return Estimate(accuracy, *interval(drawn[:, 0] / drawn[:, 1], PLACES)), Estimate(round(value, PLACES), *bounds)


def diversity_row(
    measure: Diversity, variants: Mapping[str, Sequence[str]], dialogues: Sequence[str], contrasts: Sequence[Contrast], seed: int
) -> Row:
    """The row of a measure of whole sets of texts: no pairwise figures and no p-value."""
    values, words = measure.measure(variants, dialogues, seed)
    scores = {name: round(float(one[0]), PLACES) for name, one in values.items()}
    found = {}
    for one in contrasts:
        value = round(sum(weight * scores[name] for name, weight in one.weights.items()), PLACES)
        half = NORMAL * jackknifed(_weighted(one, values)) if len(next(iter(values.values()))) > 1 else None
        found[one.name] = Difference(value, *((None, None) if half is None else (round(value - half, PLACES), round(value + half, PLACES))))
    settings = f"{measure.signature}|words:{words}|dialogues:{len(next(iter(values.values()))) - 1}|seed:{seed}"
    return Row(measure.name, settings, None, scores, found, len(dialogues))


def corrected(rows: Sequence[Row]) -> list[Row]:
    """The rows with the p-values of all their contrasts corrected for standing together."""
    places = [(number, name) for number, one in enumerate(rows) for name, found in one.differences.items() if found.p is not None]
    values = holm([rows[number].differences[name].p or 0.0 for number, name in places])
    changed = [dict(one.differences) for one in rows]
    for (number, name), value in zip(places, values, strict=True):
        changed[number][name] = replace(changed[number][name], holm=round(value, PLACES))
    return [replace(one, differences=found) for one, found in zip(rows, changed, strict=True)]
