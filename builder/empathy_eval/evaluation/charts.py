"""What the figures of a report show: the same marks on the page and in the files for a paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from matplotlib.ticker import MaxNLocator

from empathy_eval.design.contrasts import RAW, STANCE, STANCE_FAR, STANCE_NEAR
from empathy_eval.evaluation.claims import line_of
from empathy_eval.evaluation.groupings import AS_RELEASED
from empathy_eval.evaluation.resampling import Estimate
from empathy_eval.evaluation.results import Measured, MetricRow

SCENARIO = "scenario"
# The words of the legend, by contrast.
EFFECTS = {RAW: "as released (stance and closeness)", STANCE: "at equal closeness"}
ACCURACY = {STANCE: "accuracy at equal closeness"}
RANKS = {RAW: "as released", STANCE_NEAR: "near against near", STANCE_FAR: "far against far"}


@dataclass(frozen=True)
class Mark:
    """One estimate of a series in a row of a chart."""

    series: str
    of: Estimate


@dataclass(frozen=True)
class Chart:
    """Rows of marks on one axis; ``middle`` is where neither side is preferred, ``legend`` has the words of each series.

    ``line`` is what shortcuts reach, where it is drawn, with the words for it.
    """

    name: str
    legend: dict[str, str]
    rows: list[tuple[str, list[Mark]]]
    ticks: list[float]
    middle: float
    label: str
    line: tuple[float, str] | None = None

    def shift(self, mark: Mark) -> float:
        """How far from the middle of its row a mark stands, so that intervals do not hide each other: series by series one apart."""
        return list(self.legend).index(mark.series) - (len(self.legend) - 1) / 2

    @property
    def span(self) -> tuple[float, float]:
        """The ends of the axis."""
        return self.ticks[0], self.ticks[-1]


def charts_of(measured: Measured) -> list[Chart]:
    """All charts that these tables have marks for."""
    return [chart for make in (accuracies, effects, ranks, scenarios) if (chart := make(measured))]


def accuracies(measured: Measured) -> Chart | None:
    """How often each metric is right at equal closeness, beside what shortcuts reach there."""
    rows = [(name, [Mark(STANCE, one.accuracy)]) for name, one in measured.equal_closeness.items() if one.accuracy]
    line = line_of(measured)
    drawn = (line.accuracy.value, line.shortcut) if line and line.contrast == STANCE else None
    return accuracy_chart("accuracies", rows, drawn)


def accuracy_chart(name: str, rows: Sequence[tuple[str, list[Mark]]], line: tuple[float, str] | None) -> Chart | None:
    """How often each row is right at equal closeness, beside what shortcuts reach there; None without a row."""
    label = "share of comparisons with the empathetic reply rated better"
    ends = [end for _, (mark,) in rows for end in (mark.of.value, mark.of.low) if end is not None] + [line[0] if line else 1.0]
    # From a little below chance on, or from 0 where something lies lower.
    ticks = [one / 10 for one in (range(4, 11) if min(ends) >= 0.4 else range(0, 11, 2))]
    chart = _chart(name, ACCURACY, rows, 0.5, label)
    return replace(chart, ticks=ticks, line=line) if chart else None


def effects(measured: Measured) -> Chart | None:
    """By how much each metric moves: as released, and at equal closeness. Metrics on another scale than 0 to 1 are left out."""
    controls = {row.metric: row for row in measured.controls}
    rows = [(row.metric, _marks((row, controls.get(row.metric)), EFFECTS)) for row in measured.inversion if on_scale(row)]
    return _chart("effects", EFFECTS, rows, 0, "difference of scores, empathetic minus apathetic")


def ranks(measured: Measured) -> Chart | None:
    """How often each metric ranks the empathetic reply higher: as released, and within closeness."""
    controls = {row.metric: row for row in measured.controls}
    rows = []
    for row in measured.inversion:
        marks = _marks((row, controls.get(row.metric)), RANKS)
        ranked = [Mark(one.series, found) for one in marks if (found := getattr(one.of, "accuracy", None)) is not None]
        if ranked and row.higher_is_better is not None:
            rows.append((row.metric, ranked))
    return _chart("ranks", RANKS, rows, 0.5, "share of turns with the empathetic reply ranked higher", (0.0, 1.0))


def scenarios(measured: Measured) -> Chart | None:
    """The accuracy of each metric in each scenario: at equal closeness, or as released where no metric has scores of controls."""
    found: dict[str, list[Mark]] = {}
    for row in (row for rows in by_scenario(measured).values() for row in rows):
        accuracy = row.only.accuracy
        if accuracy and row.higher_is_better is not None:
            found.setdefault(row.metric, []).append(Mark(SCENARIO, Estimate(accuracy.value)))
    label = "share of comparisons with the empathetic reply rated better"
    return _chart("scenarios", {SCENARIO: "one scenario"}, list(found.items()), 0.5, label, (0.0, 1.0))


def by_scenario(measured: Measured) -> dict[str, list[MetricRow]]:
    """The breakdown by scenario that is drawn."""
    return measured.groups.get(SCENARIO) or measured.groups.get(SCENARIO + AS_RELEASED, {})


def on_scale(row: MetricRow) -> bool:
    """Whether a metric has a better direction and gives scores between -1 and 1."""
    return row.higher_is_better is not None and all(abs(one) <= 1 for one in row.scores.values())


def _marks(rows: Iterable[MetricRow | None], legend: dict[str, str]) -> list[Mark]:
    return [Mark(name, row.differences[name]) for row in rows if row for name in legend if name in row.differences]


def _chart(
    name: str, legend: dict[str, str], rows: Sequence[tuple[str, list[Mark]]], middle: float, label: str,
    span: tuple[float, float] | None = None,
) -> Chart | None:  # fmt: skip
    """The chart with an axis that holds all its marks; None if it has none."""
    marks = [mark for _, some in rows for mark in some]
    if not marks:
        return None
    ends = [end for mark in marks for end in (mark.of.value, mark.of.low, mark.of.high) if end is not None]
    low, high = span or (min(*ends, middle), max(*ends, middle))
    if low == high:  # nothing to show but the middle
        low, high = low - 0.1, high + 0.1
    ticks = [round(float(tick), 6) + 0.0 for tick in MaxNLocator(5).tick_values(low, high)]
    there = {mark.series for mark in marks}
    return Chart(name, {key: words for key, words in legend.items() if key in there}, list(rows), ticks, middle, label)
