"""The inversion: what each metric gives each variant, and whom it prefers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from builder.metrics.protocol import Array, Diversity, Metric, Segments
from builder.signature import derived_random, signature_line

CONFIDENCE = 0.95
# Numbers are rounded once, here, so that page, tables and card say the same.
PLACES = 6
# The contrasts of the 2 x 2, each (name, variant, minus variant): stance within closeness, closeness within stance.
STANCE = (("near", "near_empathetic", "apathetic"), ("far", "empathetic", "far_apathetic"))


@dataclass(frozen=True)
class Texts:
    """The texts of pairs, column by column: all sequences have the same length."""

    dialogues: Sequence[str]
    scenarios: Sequence[int]
    references: Sequence[str]
    variants: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Difference:
    """A difference of two variants' scores; the interval is None where it is not valid."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def decided(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high

    @property
    def prefers(self) -> str:
        """Which of the two the metric points to, ``neither`` where the interval holds 0; no interval is said so."""
        way = "empathetic" if self.value > 0 else "apathetic"
        if self.low is None:
            return f"{way} (no interval)"
        return way if self.decided else "neither"


@dataclass(frozen=True)
class Row:
    """One metric over one set of pairs: scores by variant, the differences asked for by name, and the settings."""

    metric: str
    signature: str
    interval_signature: str | None
    scores: dict[str, float]
    differences: dict[str, Difference]

    def to_json(self) -> dict[str, Any]:
        """The row as JSON values."""
        return asdict(self)


def measure(
    texts: Texts,
    metrics: Sequence[Metric],
    diversities: Sequence[Diversity],
    contrasts: Mapping[str, tuple[str, str]],
    resamples: int,
    seed: int,
) -> list[Row]:
    """A row a metric. ``contrasts`` maps a name to (variant, variant to subtract).

    Intervals are percentiles of a bootstrap over dialogues within scenario.
    """
    if not texts.references:
        return []
    sample = Resampling.of(texts, resamples, seed)
    rows = [_row(texts, metric, contrasts, sample) for metric in metrics]
    for diversity in diversities:
        scores = {name: round(diversity.value(variant), PLACES) for name, variant in texts.variants.items()}
        differences = {name: Difference(round(scores[one] - scores[other], PLACES)) for name, (one, other) in contrasts.items()}
        rows.append(Row(diversity.name, diversity.signature, None, scores, differences))
    return rows


def _row(texts: Texts, metric: Metric, contrasts: Mapping[str, tuple[str, str]], sample: Resampling) -> Row:
    sums = {name: sample.by_dialogue(metric.statistics(Segments(variant, texts.references))) for name, variant in texts.variants.items()}
    scores = {name: round(float(metric.aggregate(total.sum(axis=0, keepdims=True))[0]), metric.places) for name, total in sums.items()}
    resampled = {name: metric.aggregate(sample.counts @ total) for name, total in sums.items()}
    differences = {}
    for name, (one, other) in contrasts.items():
        low, high = np.quantile(resampled[one] - resampled[other], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        valid = sample.counts.shape[1] > 1
        bounds = (round(float(low), metric.places), round(float(high), metric.places)) if valid else (None, None)
        differences[name] = Difference(round(scores[one] - scores[other], metric.places), *bounds)
    return Row(metric.name, metric.signature, sample.signature, scores, differences)


@dataclass(frozen=True)
class Resampling:
    """How often each dialogue (column) is drawn in each resample (row), and which segment belongs to which dialogue."""

    counts: Array
    members: Sequence[int]
    signature: str

    @classmethod
    def of(cls, texts: Texts, resamples: int, seed: int) -> Resampling:
        """Draws dialogues with replacement within their scenario.

        A scenario with one dialogue has no spread of its own; all such scenarios together are one stratum.
        """
        place: dict[str, int] = {}
        scenario_of: list[int] = []
        for dialogue, scenario in zip(texts.dialogues, texts.scenarios, strict=True):
            if dialogue not in place:
                place[dialogue] = len(place)
                scenario_of.append(scenario)
        alone = {scenario for scenario, dialogues in Counter(scenario_of).items() if dialogues == 1}
        strata: dict[int, list[int]] = {}
        for column, scenario in enumerate(scenario_of):
            strata.setdefault(0 if scenario in alone else scenario, []).append(column)
        rng = np.random.default_rng(derived_random(seed, "bootstrap").getrandbits(64))
        counts = np.zeros((resamples, len(place)))
        for columns in strata.values():
            counts[:, columns] = rng.multinomial(len(columns), np.full(len(columns), 1 / len(columns)), size=resamples)
        line = signature_line(
            interval="percentile", level=CONFIDENCE, resamples=resamples, seed=seed, unit="dialogue", strata="scenario,singles-pooled",
            dialogues=len(place), numpy=np.__version__,
        )  # fmt: skip
        return cls(counts, [place[dialogue] for dialogue in texts.dialogues], line)

    def by_dialogue(self, statistics: Array) -> Array:
        """Sums of segment statistics by dialogue, shape (dialogues, k)."""
        sums = np.zeros((self.counts.shape[1], statistics.shape[1]))
        np.add.at(sums, np.asarray(self.members), statistics)
        return sums
