"""The rows of a report's tables: scores, differences with their intervals, and all tables of a release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, TypeVar

from empathy_eval.base.json_text import HIDDEN, OPTIONAL, TEXTS, fields_json
from empathy_eval.design.contrasts import APATHETIC, EMPATHETIC, STANCE
from empathy_eval.design.provenance import KEYS, LongForm
from empathy_eval.evaluation.inversion.long_form import COLUMNS, NUMBERS, records
from empathy_eval.evaluation.inversion.rows import AttackTable, CrossedTable, FairnessTable, ShortcutAudit
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.statistics.estimate import Estimate, Tested
from empathy_eval.statistics.ranking import holm

PLACES = 6
Row = TypeVar("Row")


@dataclass(frozen=True)
class Difference(Tested):
    """A contrast of variants' scores.

    ``accuracy`` is how often the kind text of a duel is rated better, ties half; ``effect`` by how many standard deviations of the
    scores in a cell; ``ties`` the share of duels with two equal scores: None where the contrast is no comparison of stances.
    ``auc`` is the accuracy for texts drawn anywhere, only where two variants are compared. ``forced`` says that the checks force
    the sign.
    """

    accuracy: Estimate | None = None
    auc: Estimate | None = None
    forced: bool = False
    higher_is_better: bool | None = True
    effect: Estimate | None = None
    ties: float | None = None

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
    """One metric over one set of pairs: scores by variant, contrasts by name, and the settings of both.

    ``pairs`` have scores, ``left_out`` have none; ``strict`` if accuracies are over all of them.
    """

    metric: str
    signature: str
    interval_signature: str | None
    scores: dict[str, float]
    differences: dict[str, Difference]
    pairs: int
    higher_is_better: bool | None = True
    left_out: int = field(default=0, metadata=HIDDEN)
    strict: bool = field(default=False, metadata=HIDDEN)

    @property
    def only(self) -> Difference:
        """The one contrast of a row of a breakdown."""
        (found,) = self.differences.values()
        return found

    @property
    def of(self) -> int:
        """The number of pairs it could have been measured over."""
        return self.pairs + self.left_out

    @property
    def coverage(self) -> str:
        """How many pairs it is measured over, in words."""
        if not self.left_out:
            return f"{self.pairs} pairs"
        return f"{self.pairs} of {self.of} pairs; {self.left_out} left out{', wrong in accuracy' if self.strict else ''}"

    def to_json(self) -> dict[str, Any]:
        """The row as JSON values."""
        return {**fields_json(self), "coverage": {"pairs": self.pairs, "of": self.of, "left_out": self.left_out}}


@dataclass(frozen=True)
class DetectableEffect:
    """The smallest accuracy and standardised effect that so many pairs could have shown, with the settings of that; see ``power``."""

    pairs: int
    accuracy: float
    effect: float
    signature: str


@dataclass(frozen=True)
class MetricComparison:
    """Two metrics over the pairs that both have scores of: the first minus the second.

    ``accuracy`` and ``effect`` are differences of these two of a contrast, with p-values and their correction over all comparisons
    of that contrast; ``effect`` is None where a metric's scores have no spread.
    """

    one: str
    other: str
    contrast: str
    pairs: int
    accuracy: Tested
    effect: Tested | None
    signature: str


@dataclass(frozen=True, repr=False)
class ReleaseTables(LongForm):
    """All tables of a release.

    ``matched`` and ``groups`` hold rows of pairs of equal length, and by scenario, phase, strategy, manner: at equal closeness, or of
    released pairs where the name ends with ``, as released``; ``smallest`` by contrast what so many pairs could have shown; ``audit`` what
    shortcuts reach; ``attacks`` how scores change when replies are attacked; ``fairness`` whether scorers do as well in each group of
    scenarios, and where names are others; ``crossed`` what is made of crossed items, where there are some; ``notes`` what is said of the
    pairs that are measured.
    """

    columns: ClassVar[tuple[str, ...]] = (*KEYS, *COLUMNS)
    numbers: ClassVar[tuple[str, ...]] = NUMBERS
    inversion: list[MetricRow]
    controls: list[MetricRow] = field(default_factory=list)
    candidates: list[MetricRow] = field(default_factory=list)
    balance: list[MetricRow] = field(default_factory=list)
    matched: dict[str, list[MetricRow]] = field(default_factory=dict)
    groups: dict[str, dict[str, list[MetricRow]]] = field(default_factory=dict)
    comparisons: list[MetricComparison] = field(default_factory=list)
    smallest: dict[str, DetectableEffect] = field(default_factory=dict)
    audit: ShortcutAudit | None = field(default=None, metadata={"name": "shortcuts"})
    faults: list[MetricFault] = field(default_factory=list, metadata=TEXTS)
    attacks: AttackTable | None = field(default=None, metadata=OPTIONAL)
    fairness: FairnessTable | None = field(default=None, metadata=OPTIONAL)
    crossed: CrossedTable | None = field(default=None, metadata=OPTIONAL)
    notes: tuple[str, ...] = field(default=(), metadata=OPTIONAL)

    @property
    def equal_closeness(self) -> dict[str, Difference]:
        """By metric with a better direction its stance contrast: the accuracy of it is the number to report."""
        rows = [row for row in self.controls if row.higher_is_better is not None]
        return {row.metric: one for row in rows if (one := row.differences[STANCE]).accuracy}

    @property
    def headline(self) -> dict[str, Estimate]:
        """By metric the number to report: the accuracy at equal closeness, with its interval."""
        return {metric: one.accuracy for metric, one in self.equal_closeness.items() if one.accuracy}

    @property
    def word_margins(self) -> Mapping[str, float]:
        """By pair the margin of words alone, as the audit says; empty without one."""
        return self.audit.word_margins if self.audit else {}

    def to_json(self) -> dict[str, Any]:
        """The tables as JSON values."""
        return self._with_provenance(fields_json(self))

    def _records(self) -> Iterator[dict[str, Any]]:
        return records(self.to_json())


def corrected(rows: Iterable[Row], families: Mapping[str, str] = {}) -> list[Row]:  # noqa: B006
    """The rows with all their p-values corrected for standing together; those of a family of scorers, by name, among themselves."""
    made = list(rows)
    family_of = [families.get(getattr(row, "metric", ""), "") for row in made]
    for family in dict.fromkeys(family_of):
        places = [place for place, one in enumerate(family_of) if one == family]
        for place, row in zip(places, _together([made[place] for place in places]), strict=True):
            made[place] = row
    return made


def _together(rows: list[Row]) -> list[Row]:
    """The rows with all their p-values corrected."""
    found = list[float]()

    def noted(one: Tested) -> Tested:
        found.append(one.p or 0.0)
        return one

    _each_tested(rows, noted)
    values = iter(holm(found))
    changed: list[Row] = _each_tested(rows, lambda one: replace(one, holm=round(next(values), PLACES)))
    return changed


def _each_tested(value: Any, change: Callable[[Tested], Tested]) -> Any:
    """A value with each estimate in it that has a p-value changed, in their order."""
    if isinstance(value, Tested):
        return value if value.p is None else change(value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _each_tested(getattr(value, one.name), change) for one in fields(value)})
    if isinstance(value, dict):
        return {name: _each_tested(one, change) for name, one in value.items()}
    return [_each_tested(one, change) for one in value] if isinstance(value, list) else value


def with_new(known: Sequence[MetricFault], *more: Iterable[MetricFault]) -> list[MetricFault]:
    """The faults, and those of metrics that none was told of before: the last of each."""
    told, new = {one.metric for one in known}, {one.metric: one for some in more for one in some}
    return [*known, *(one for metric, one in new.items() if metric not in told)]
