"""The rows of a report's tables: scores, differences with their intervals, and all tables of a release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from empathy_eval.base.data_frames import data_frame
from empathy_eval.design.contrasts import APATHETIC, EMPATHETIC
from empathy_eval.metrics.faults import MetricFault

if TYPE_CHECKING:
    import pandas as pd

PLACES = 6
# The long form of what was measured: a row a contrast.
CONTRAST_COLUMNS = (
    "table", "group", "metric", "contrast", "pairs", "value", "low", "high", "p", "holm", "accuracy", "auc", "forced", "signature",
    "of", "left_out",
)  # fmt: skip
NUMBERS = ("value", "low", "high", "p", "holm", "accuracy", "auc")


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
        way = EMPATHETIC if up else APATHETIC
        way = f"more in {way}" if self.higher_is_better is None else way
        if self.low is None:
            return f"{way} (no interval)"
        return way if self.decided else "neither"


@dataclass(frozen=True)
class MetricRow:
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
class StandRow(MetricRow):
    """A row beside the number of pairs it could have been measured over; ``strict`` if its accuracy is over all of them."""

    of: int = 0
    strict: bool = False

    @classmethod
    def of_all(cls, row: MetricRow) -> StandRow:
        """The row as it is if it has these numbers; else one that is measured over all of its pairs."""
        return row if isinstance(row, StandRow) else cls(**vars(row), of=row.pairs)

    @property
    def left_out(self) -> int:
        """The pairs without a score."""
        return self.of - self.pairs

    @property
    def coverage(self) -> str:
        """How many pairs it is measured over, in words."""
        if not self.left_out:
            return f"{self.pairs} pairs"
        return f"{self.pairs} of {self.of} pairs; {self.left_out} left out{', wrong in accuracy' if self.strict else ''}"

    def to_json(self) -> dict[str, Any]:
        """The row as JSON values."""
        plain = {name: value for name, value in super().to_json().items() if name not in ("of", "strict")}
        return plain | {"coverage": {"pairs": self.pairs, "of": self.of, "left_out": self.left_out}}


@dataclass(frozen=True)
class Measured:
    """All tables of a release; ``matched`` and ``groups`` hold rows of pairs of equal length, and by scenario, phase, strategy."""

    inversion: list[MetricRow]
    controls: list[MetricRow] = field(default_factory=list)
    matched: dict[str, list[MetricRow]] = field(default_factory=dict)
    groups: dict[str, dict[str, list[MetricRow]]] = field(default_factory=dict)
    candidates: list[MetricRow] = field(default_factory=list)
    balance: list[MetricRow] = field(default_factory=list)
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

    def rows(self) -> Iterator[tuple[str, str, StandRow]]:
        """(table, group, row) of everything that was measured, ``balance`` left out."""
        whole = {"pairs": self.inversion, "2x2": self.controls}
        matched = [("equal length", name, rows) for name, rows in self.matched.items()]
        groups = [(name, group, rows) for name, found in self.groups.items() for group, rows in found.items()]
        found = [*((name, "", rows) for name, rows in whole.items()), *matched, ("before contrast checks", "", self.candidates), *groups]
        yield from ((table, group, StandRow.of_all(row)) for table, group, rows in found for row in rows)

    def records(self) -> Iterator[dict[str, Any]]:
        """The same in the long form, a record a contrast with the columns ``CONTRAST_COLUMNS``; what there is not is None."""
        for table, group, row in self.rows():
            for name, one in row.differences.items():
                ranked = [found.value if found else None for found in (one.accuracy, one.auc)]
                numbers = [row.pairs, one.value, one.low, one.high, one.p, one.holm, *ranked, one.forced]
                signature = f"{row.signature}|{row.interval_signature or ''}"
                values = [table, group, row.metric, name, *numbers, signature, row.of, row.left_out]
                yield dict(zip(CONTRAST_COLUMNS, values, strict=True))

    def to_pandas(self) -> pd.DataFrame:
        """The long form as a data frame: a row a contrast with the columns ``CONTRAST_COLUMNS``; a number that there is not is NaN.

        Raises:
            InputError: if pandas is not installed.
        """
        return data_frame(self.records(), CONTRAST_COLUMNS, NUMBERS)
