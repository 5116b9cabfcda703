"""The rows of a report's tables: scores, differences with their intervals, and all tables of a release."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from empathy_eval.metrics.faults import MetricFault

PLACES = 6


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
    pair is rated better, ties half; ``auc`` the same for texts drawn anywhere; both only where two variants are compared. ``forced``
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


@dataclass(frozen=True)
class Measured:
    """All tables of a release; ``matched`` and ``groups`` hold rows of pairs of equal length, and by scenario, phase, strategy."""

    inversion: list[Row]
    controls: list[Row] = field(default_factory=list)
    matched: dict[str, list[Row]] = field(default_factory=dict)
    groups: dict[str, dict[str, list[Row]]] = field(default_factory=dict)
    candidates: list[Row] = field(default_factory=list)
    balance: list[Row] = field(default_factory=list)
    faults: list[MetricFault] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The tables as JSON values."""
        plain = {name: [one.to_json() for one in getattr(self, name)] for name in ("inversion", "controls", "candidates", "balance")}
        return plain | {
            "matched": {name: [one.to_json() for one in rows] for name, rows in self.matched.items()},
            "groups": {
                name: {group: [one.to_json() for one in rows] for group, rows in found.items()} for name, found in self.groups.items()
            },
            "faults": [str(one) for one in self.faults],
        }
