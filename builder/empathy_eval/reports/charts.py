"""What the figures of a report show: the same marks on the page and in the files for a paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import room_for
from empathy_eval.design.contrasts import RAW, STANCE, STANCE_FAR, STANCE_NEAR
from empathy_eval.evaluation.corpus.groupings import AS_RELEASED
from empathy_eval.evaluation.inversion.results import MetricRow, ReleaseTables
from empathy_eval.reports.claims import line_of
from empathy_eval.statistics.estimate import Estimate

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


def charts_of(measured: ReleaseTables) -> list[Chart]:
    """All charts that these tables have marks for."""
    return [chart for make in (accuracies, effects, ranks, scenarios) if (chart := make(measured))]


def accuracies(measured: ReleaseTables) -> Chart | None:
    """How often each metric is right at equal closeness, beside what shortcuts reach there."""
    rows = [(name, [Mark(STANCE, one.accuracy)]) for name, one in measured.equal_closeness.items() if one.accuracy]
    line = line_of(measured)
    drawn = (line.accuracy.number, line.shortcut) if line and line.contrast == STANCE else None
    return accuracy_chart("accuracies", rows, drawn)


def accuracy_chart(name: str, rows: Sequence[tuple[str, list[Mark]]], line: tuple[float, str] | None) -> Chart | None:
    """How often each row is right at equal closeness, beside what shortcuts reach there; None without a row."""
    label = "share of comparisons with the empathetic reply rated better"
    ends = [end for _, (mark,) in rows for end in (mark.of.value, mark.of.low) if end is not None] + [line[0] if line else 1.0]
    # From a little below chance on, or from 0 where something lies lower.
    ticks = [one / 10 for one in (range(4, 11) if min(ends) >= 0.4 else range(0, 11, 2))]
    chart = _chart(name, ACCURACY, rows, 0.5, label)
    return replace(chart, ticks=ticks, line=line) if chart else None


def effects(measured: ReleaseTables) -> Chart | None:
    """By how much each metric moves: as released, and at equal closeness. Metrics on another scale than 0 to 1 are left out."""
    rows = [(row.metric, marks) for row, marks in _marks(measured, EFFECTS) if on_scale(row)]
    return _chart("effects", EFFECTS, rows, 0, "difference of scores, empathetic minus apathetic")


def ranks(measured: ReleaseTables) -> Chart | None:
    """How often each metric ranks the empathetic reply higher: as released, and within closeness."""
    rows = []
    for row, marks in _marks(measured, RANKS):
        ranked = [Mark(one.series, found) for one in marks if (found := getattr(one.of, "accuracy", None)) is not None]
        if ranked and row.higher_is_better is not None:
            rows.append((row.metric, ranked))
    return _chart("ranks", RANKS, rows, 0.5, "share of turns with the empathetic reply ranked higher", (0.0, 1.0))


def scenarios(measured: ReleaseTables) -> Chart | None:
    """The accuracy of each metric in each scenario: at equal closeness, or as released where no metric has scores of controls."""
    found: dict[str, list[Mark]] = {}
    for row in (row for rows in by_scenario(measured).values() for row in rows):
        accuracy = row.only.accuracy
        if accuracy and row.higher_is_better is not None:
            found.setdefault(row.metric, []).append(Mark(SCENARIO, Estimate(accuracy.value)))
    label = "share of comparisons with the empathetic reply rated better"
    return _chart("scenarios", {SCENARIO: "one scenario"}, list(found.items()), 0.5, label, (0.0, 1.0))


def by_scenario(measured: ReleaseTables) -> dict[str, list[MetricRow]]:
    """The breakdown by scenario that is drawn."""
    return measured.groups.get(SCENARIO) or measured.groups.get(SCENARIO + AS_RELEASED, {})


def on_scale(row: MetricRow) -> bool:
    """Whether a metric has a better direction and gives scores between -1 and 1."""
    return row.higher_is_better is not None and all(abs(one) <= 1 for one in row.scores.values())


def _marks(measured: ReleaseTables, legend: dict[str, str]) -> Iterator[tuple[MetricRow, list[Mark]]]:
    """Each metric with its marks, of its pairs and of those with controls."""
    controls = {row.metric: row for row in measured.controls}
    for row in measured.inversion:
        both = [one for one in (row, controls.get(row.metric)) if one]
        yield row, [Mark(name, one.differences[name]) for one in both for name in legend if name in one.differences]


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


# What strategies are used by: in each series a text minus another one of the same turn.
DELTAS = {
    STANCE_NEAR: "near-empathetic minus apathetic", STANCE_FAR: "empathetic minus far-apathetic",
    RAW: "as released: empathetic minus apathetic",
}  # fmt: skip


def delta_charts(told: Mapping[str, Any]) -> list[Chart]:
    """How much more often each strategy is used in one variant than in another: as planned, and as judges named it, judge by judge."""
    planned = (told.get("depth") or {}).get("planned", ())
    every = {side: sum(sum(one[side]) for one in planned) for side in ("near", "far")}
    shares = [(one["name"], sum(one["far"]) / every["far"] - sum(one["near"]) / every["near"]) for one in planned if all(every.values())]
    rows = [(name, [Mark(RAW, Estimate(share))]) for name, share in sorted(shares, key=lambda one: -one[1])]
    judges = (told.get("judges") or {}).get("course") or {}
    named = [(judge, one["deltas"]) for judge, one in judges.items() if one["deltas"]]
    marks = [
        (strategy if len(named) == 1 else f"{judge}: {strategy}", _delta_marks(deltas, strategy))
        for judge, deltas in named
        for strategy in dict.fromkeys(name for some in deltas.values() for name in some)
    ]
    label = "difference of the shares of turns"
    made = (_chart("deltas_planned", DELTAS, rows, 0, label), _chart("deltas", DELTAS, marks, 0, label))
    return [one for one in made if one]


def _delta_marks(deltas: Mapping[str, Mapping[str, Any]], strategy: str) -> list[Mark]:
    found = [(series, deltas[series][strategy]) for series in DELTAS if strategy in deltas.get(series, ())]
    return [Mark(series, Estimate(one["value"], one["low"], one["high"])) for series, one in found if one["value"] is not None]


@dataclass(frozen=True)
class Panel:
    """A figure of each variant by part of a dialogue, None where there is none, on an axis from 0 to ``top``."""

    title: str
    lines: Mapping[str, Sequence[float | None]]
    top: float


def panels_of(told: Mapping[str, Any]) -> list[Panel]:
    """What helpers of each variant say over a dialogue: words and questions a turn, and how much understanding each judge sees."""
    if not (depth := told.get("depth")):
        return []
    found = [(f"{what} per turn", {one["variant"]: one[what] for one in depth["variants"]}) for what in ("words", "questions")]
    judges = (told.get("judges") or {}).get("depth") or {}
    found += [
        (f"understanding, rated by {judge}", {one["variant"]: one["means"] for one in by["variants"]}) for judge, by in judges.items()
    ]
    return [Panel(title, lines, _top(lines)) for title, lines in found]


def _top(lines: Mapping[str, Sequence[float | None]]) -> float:
    most = max((value for some in lines.values() for value in some if value is not None), default=0.0)
    return float(MaxNLocator(2).tick_values(0, most or 1.0)[-1])


def phases_named(told: Mapping[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """(judge, variant, phases by part) of all texts whose strategies judges named, in the form of the course of a dialogue."""
    found = []
    for judge, course in ((told.get("judges") or {}).get("course") or {}).items():
        for variant, rows in course["variants"].items():
            counts = {phase: [0] * told["course"]["parts"] for phase in PHASES}
            for row in rows:
                counts[row["phase"]] = [one + more for one, more in zip(counts[row["phase"]], row["named"], strict=True)]
            phases = [{"name": phase, "counts": some} for phase, some in counts.items()]
            found.append((judge, variant, {"parts": told["course"]["parts"], "phases": phases}))
    return found


# The forms of figures: of a report, and for a paper; and what is left out of a file so that its bytes are the same on every run.
PAGE, PAPER = ("svg", "png"), ("svg", "pdf")
UNTOLD = {"svg": ("Date", "Creator"), "png": ("Software",), "pdf": ("CreationDate", "Creator", "Producer")}
# Of the Okabe-Ito palette, told apart by all common kinds of colour vision; markers and places differ too.
BLUE, ORANGE, GREEN, YELLOW, GREY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#767676"
STYLES = {RAW: (BLUE, "s"), STANCE: (ORANGE, "o"), STANCE_NEAR: (ORANGE, "^"), STANCE_FAR: (GREEN, "o"), SCENARIO: (BLUE, "|")}
VARIANTS = {
    "reference": (GREY, "D", "-"), "apathetic": (ORANGE, "o", "-"), "empathetic": (BLUE, "s", "-"),
    "near_empathetic": (BLUE, "^", "--"), "far_apathetic": (ORANGE, "v", "--"),
}  # fmt: skip
PLACE = "place among the helper turns of a dialogue"
PHASES = {"exploration": BLUE, "comforting": YELLOW, "action": GREEN}
SETTINGS: dict[Any, Any] = {"svg.hashsalt": "empathy-eval", "svg.fonttype": "path", "font.size": 10, "font.family": "DejaVu Sans"}


def draw_accuracies(measured: ReleaseTables, path: Path) -> None:
    """The accuracies at equal closeness beside the shortcut line, as ``path.svg`` and ``path.pdf``.

    Raises:
        InputError: if no metric has one, as where there are no controls.
    """
    chart = accuracies(measured)
    if chart is None:
        raise input_error("score: figure", "no metric has an accuracy at equal closeness", "score a release with controls, or leave it out")
    draw_chart(replace(chart, name=path.name), path.parent, PAPER)


def draw_chart(chart: Chart, folder: Path, forms: Sequence[str] = PAGE) -> None:
    """A row of marks for each metric on one axis, with intervals where there are any."""
    with _figure(folder, chart.name, (7.2, 0.42 * len(chart.rows) + 1.4), forms=forms) as (figure, axes):
        axes.axvline(chart.middle, color=GREY, linewidth=1, zorder=1)
        for place, (_, marks) in enumerate(chart.rows):
            for mark in marks:
                _draw(axes, mark, place + 0.2 * chart.shift(mark))
        if chart.line:
            reach, told = chart.line
            axes.axvline(reach, color=BLUE, linewidth=1.6, linestyle=(0, (5, 3)), clip_on=False, label=f"shortcut line ({told})")
        for name, told in chart.legend.items():
            axes.scatter([], [], color=STYLES[name][0], marker=STYLES[name][1], s=36, label=told)
        # A dollar sign begins no formula.
        axes.set_yticks(range(len(chart.rows)), [name.replace("$", r"\$") for name, _ in chart.rows])
        axes.set_ylim(len(chart.rows) - 0.5, -0.5)
        axes.set_xticks(chart.ticks)
        axes.set_xlim(*chart.span)
        axes.set_xlabel(chart.label)
        _bare(axes, "x")
        figure.legend(loc="outside upper left", ncols=3, frameon=False, handletextpad=0.2, columnspacing=1.2)


def _draw(axes: Any, mark: Mark, place: float) -> None:
    colour, marker = STYLES[mark.series]
    if mark.of.low is not None and mark.of.high is not None:
        axes.plot([mark.of.low, mark.of.high], [place, place], color=colour, linewidth=1.6, zorder=2)
    axes.scatter([mark.of.value], [place], color=colour, marker=marker, s=90 if marker == "|" else 36, zorder=3, clip_on=False)


def draw_lengths(lengths: dict[str, Any], folder: Path) -> None:
    """How long the texts of each variant are: a histogram a variant, on one axis."""
    rows = lengths["variants"]
    with _figure(folder, "lengths", (7.2, 0.85 * len(rows) + 0.9), len(rows)) as (_, axes):
        for row, one in zip(rows, np.atleast_1d(axes), strict=True):
            shares = np.array(row["counts"]) / row["texts"]
            one.bar(np.arange(len(shares)) * lengths["bin"], shares, lengths["bin"] * 0.92, align="edge", color=BLUE)
            one.axvline(row["median"], color=ORANGE, linewidth=1.6)
            one.set_title(f"{row['variant'].replace('_', '-')}: median {row['median']:g}, mean {row['mean']:.1f}", loc="left", fontsize=9)
            one.yaxis.set_visible(False)
            _bare(one, "x")
        one.set_xlabel(f"words (bins of {lengths['bin']})")


def draw_course(course: dict[str, Any], folder: Path) -> None:
    """The share of each phase in each part of a dialogue."""
    with _figure(folder, "course", (7.2, 3.2)) as (figure, axes):
        _stacked(axes, course)
        axes.set_xticks(range(course["parts"] + 1), [f"{100 * part // course['parts']} %" for part in range(course["parts"] + 1)])
        axes.set_xlabel(PLACE)
        axes.set_ylabel("share of turns, as planned (%)")
        _bare(axes, "y")
        figure.legend(loc="outside upper left", ncols=3, frameon=False)


def draw_named(named: Sequence[tuple[str, str, dict[str, Any]]], folder: Path) -> None:
    """The share of each phase in each part of a dialogue as judges named it, a row a judge and variant; nothing without a judge."""
    if not named:
        return
    with _figure(folder, "course_named", (7.2, 1.25 * len(named) + 1.1), len(named)) as (figure, axes):
        for (judge, variant, course), one in zip(named, np.atleast_1d(axes), strict=True):
            _stacked(one, course)
            one.set_title(f"{variant.replace('_', '-')}, named by {judge} (%)".replace("$", r"\$"), loc="left", fontsize=9)
            one.set_xticks(range(course["parts"] + 1), [f"{100 * part // course['parts']} %" for part in range(course["parts"] + 1)])
            _bare(one, "y")
        one.set_xlabel(PLACE)
        figure.legend(*one.get_legend_handles_labels(), loc="outside upper left", ncols=3, frameon=False)


def draw_depth(panels: Sequence[Panel], folder: Path) -> None:
    """What helpers of each variant say over a dialogue, a panel a figure; nothing without a panel."""
    if not panels:
        return
    with _figure(folder, "depth", (7.2, 1.7 * len(panels) + 1.1), len(panels)) as (figure, axes):
        for panel, one in zip(panels, np.atleast_1d(axes), strict=True):
            for variant, line in panel.lines.items():
                colour, marker, style = VARIANTS[variant]
                values = [np.nan if value is None else value for value in line]
                name = variant.replace("_", "-")
                one.plot(np.arange(len(values)) + 0.5, values, color=colour, marker=marker, linestyle=style, markersize=4, label=name)
            one.set_title(panel.title.replace("$", r"\$"), loc="left", fontsize=9)
            one.set_ylim(0, panel.top)
            one.set_xticks(range(len(line) + 1), [f"{100 * part // len(line)} %" for part in range(len(line) + 1)])
            _bare(one, "y")
        one.set_xlabel(PLACE)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=3, frameon=False)


def _stacked(axes: Any, course: dict[str, Any]) -> None:
    counts = np.array([one["counts"] for one in course["phases"]], dtype=float)
    shares, under = 100 * counts / np.maximum(counts.sum(axis=0), 1), np.zeros(course["parts"])
    for one, share in zip(course["phases"], shares, strict=True):
        axes.bar(np.arange(course["parts"]) + 0.5, share, 0.94, bottom=under, color=PHASES.get(one["name"], GREY), label=one["name"])
        under = under + share


@contextmanager
def _figure(folder: Path, name: str, size: tuple[float, float], rows: int = 1, forms: Sequence[str] = PAGE) -> Iterator[tuple[Any, Any]]:
    """A figure to draw in, that is then written in each form."""
    with room_for(folder), matplotlib.rc_context(SETTINGS):
        folder.mkdir(parents=True, exist_ok=True)
        # Without pyplot there is no backend to choose, which would be the caller's too.
        figure = Figure(figsize=size, layout="constrained")
        yield figure, figure.subplots(rows, sharex=True)
        for form in forms:
            figure.savefig(folder / f"{name}.{form}", dpi=200, metadata=dict.fromkeys(UNTOLD[form]))


def _bare(axes: Any, grid: str) -> None:
    axes.grid(axis=grid, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
