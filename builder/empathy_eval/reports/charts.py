"""Charts of a report, for the page and as figure files."""

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
from empathy_eval.evaluation.corpus.descriptives import AS_RELEASED
from empathy_eval.evaluation.inversion.results import MetricRow, ReleaseTables
from empathy_eval.reports.claims import shortcut_line
from empathy_eval.statistics.estimate import Estimate

SCENARIO = "scenario"
# Legends by contrast.
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
    """Rows of marks on one axis; ``middle`` marks no preference, ``legend`` names the series, ``line`` is the labelled shortcut line."""

    name: str
    legend: dict[str, str]
    rows: list[tuple[str, list[Mark]]]
    ticks: list[float]
    middle: float
    label: str
    line: tuple[float, str] | None = None

    def shift(self, mark: Mark) -> float:
        """Returns the offset of a mark from the middle of its row, one unit per series, so that intervals do not overlap."""
        return list(self.legend).index(mark.series) - (len(self.legend) - 1) / 2

    @property
    def span(self) -> tuple[float, float]:
        """The ends of the axis."""
        return self.ticks[0], self.ticks[-1]


def charts_of(measured: ReleaseTables) -> list[Chart]:
    """Returns all charts for which these tables have marks."""
    return [chart for make in (accuracies, effects, ranks, scenarios) if (chart := make(measured))]


def accuracies(measured: ReleaseTables) -> Chart | None:
    """Returns the accuracy of each metric at equal closeness, with the shortcut line."""
    rows = [(name, [Mark(STANCE, difference.accuracy)]) for name, difference in measured.equal_closeness.items() if difference.accuracy]
    line = shortcut_line(measured)
    drawn = (line.accuracy.number, line.shortcut) if line and line.contrast == STANCE else None
    return accuracy_chart("accuracies", rows, drawn)


def accuracy_chart(name: str, rows: Sequence[tuple[str, list[Mark]]], line: tuple[float, str] | None) -> Chart | None:
    """Returns a chart of accuracies at equal closeness with the shortcut line; None without rows."""
    label = "share of comparisons with the empathetic reply rated better"
    ends = [end for _, (mark,) in rows for end in (mark.of.value, mark.of.low) if end is not None] + [line[0] if line else 1.0]
    # From 0.4, or from 0 if a value is lower.
    ticks = [tenth / 10 for tenth in (range(4, 11) if min(ends) >= 0.4 else range(0, 11, 2))]
    chart = _chart(name, ACCURACY, rows, 0.5, label)
    return replace(chart, ticks=ticks, line=line) if chart else None


def effects(measured: ReleaseTables) -> Chart | None:
    """Returns the difference of each metric, as released and at equal closeness, without metrics on other scales."""
    rows = [(row.metric, marks) for row, marks in _marks(measured, EFFECTS) if on_scale(row)]
    return _chart("effects", EFFECTS, rows, 0, "difference of scores, empathetic minus apathetic")


def ranks(measured: ReleaseTables) -> Chart | None:
    """Returns how often each metric ranks the empathetic reply higher, as released and at each closeness."""
    rows = []
    for row, marks in _marks(measured, RANKS):
        ranked = [Mark(mark.series, accuracy) for mark in marks if (accuracy := getattr(mark.of, "accuracy", None)) is not None]
        if ranked and row.higher_is_better is not None:
            rows.append((row.metric, ranked))
    return _chart("ranks", RANKS, rows, 0.5, "share of turns with the empathetic reply ranked higher", (0.0, 1.0))


def scenarios(measured: ReleaseTables) -> Chart | None:
    """Returns the accuracy of each metric by scenario, at equal closeness or, without controls, as released."""
    marks: dict[str, list[Mark]] = {}
    for row in (row for rows in by_scenario(measured).values() for row in rows):
        accuracy = row.only.accuracy
        if accuracy and row.higher_is_better is not None:
            marks.setdefault(row.metric, []).append(Mark(SCENARIO, Estimate(accuracy.value)))
    label = "share of comparisons with the empathetic reply rated better"
    return _chart("scenarios", {SCENARIO: "one scenario"}, list(marks.items()), 0.5, label, (0.0, 1.0))


def by_scenario(measured: ReleaseTables) -> dict[str, list[MetricRow]]:
    """Returns the breakdown by scenario that is drawn."""
    return measured.groups.get(SCENARIO) or measured.groups.get(SCENARIO + AS_RELEASED, {})


def on_scale(row: MetricRow) -> bool:
    """Returns whether a metric has a direction and scores between -1 and 1."""
    return row.higher_is_better is not None and all(abs(score) <= 1 for score in row.scores.values())


def _marks(measured: ReleaseTables, legend: dict[str, str]) -> Iterator[tuple[MetricRow, list[Mark]]]:
    """Yields each metric with its marks, of all pairs and of pairs with controls."""
    controls = {row.metric: row for row in measured.controls}
    for row in measured.inversion:
        both = [present for present in (row, controls.get(row.metric)) if present]
        yield row, [Mark(name, present.differences[name]) for present in both for name in legend if name in present.differences]


def _chart(
    name: str, legend: dict[str, str], rows: Sequence[tuple[str, list[Mark]]], middle: float, label: str,
    span: tuple[float, float] | None = None,
) -> Chart | None:  # fmt: skip
    """Returns a chart whose axis spans all marks; None without marks."""
    marks = [mark for _, some in rows for mark in some]
    if not marks:
        return None
    ends = [end for mark in marks for end in (mark.of.value, mark.of.low, mark.of.high) if end is not None]
    low, high = span or (min(*ends, middle), max(*ends, middle))
    if low == high:  # nothing to show but the middle
        low, high = low - 0.1, high + 0.1
    ticks = [round(float(tick), 6) + 0.0 for tick in MaxNLocator(5).tick_values(low, high)]
    present = {mark.series for mark in marks}
    return Chart(name, {key: words for key, words in legend.items() if key in present}, list(rows), ticks, middle, label)


# What strategies are used by: in each series a text minus another one of the same turn.
DELTAS = {
    STANCE_NEAR: "near-empathetic minus apathetic", STANCE_FAR: "empathetic minus far-apathetic",
    RAW: "as released: empathetic minus apathetic",
}  # fmt: skip


def delta_charts(sections: Mapping[str, Any]) -> list[Chart]:
    """Returns charts of how much more often each strategy is used in one variant than in another, as planned and as named by each judge."""
    planned = (sections.get("depth") or {}).get("planned", ())
    totals = {side: sum(sum(row[side]) for row in planned) for side in ("near", "far")}
    shares = [(row["name"], sum(row["far"]) / totals["far"] - sum(row["near"]) / totals["near"]) for row in planned if all(totals.values())]
    rows = [(name, [Mark(RAW, Estimate(share))]) for name, share in sorted(shares, key=lambda named: -named[1])]
    judges = (sections.get("judges") or {}).get("course") or {}
    named = [(judge, course["deltas"]) for judge, course in judges.items() if course["deltas"]]
    marks = []
    for judge, deltas in named:
        for strategy in dict.fromkeys(name for some in deltas.values() for name in some):
            marks.append((strategy if len(named) == 1 else f"{judge}: {strategy}", _delta_marks(deltas, strategy)))
    label = "difference of the shares of turns"
    charts = (_chart("deltas_planned", DELTAS, rows, 0, label), _chart("deltas", DELTAS, marks, 0, label))
    return [chart for chart in charts if chart]


def _delta_marks(deltas: Mapping[str, Mapping[str, Any]], strategy: str) -> list[Mark]:
    figures = [(series, deltas[series][strategy]) for series in DELTAS if strategy in deltas.get(series, ())]
    return [Mark(series, Estimate(row["value"], row["low"], row["high"])) for series, row in figures if row["value"] is not None]


@dataclass(frozen=True)
class DepthPanel:
    """A figure of each variant by part of a dialogue, None where there is none, on an axis from 0 to ``top``."""

    title: str
    lines: Mapping[str, Sequence[float | None]]
    top: float


def panels_of(sections: Mapping[str, Any]) -> list[DepthPanel]:
    """Returns words and questions per helper turn over a dialogue, by variant, and the understanding rated by each judge."""
    if not (depth := sections.get("depth")):
        return []
    panels = [(f"{what} per turn", {row["variant"]: row[what] for row in depth["variants"]}) for what in ("words", "questions")]
    judges = (sections.get("judges") or {}).get("depth") or {}
    panels += [
        (f"understanding, rated by {judge}", {row["variant"]: row["means"] for row in by["variants"]}) for judge, by in judges.items()
    ]
    return [DepthPanel(title, lines, _top(lines)) for title, lines in panels]


def _top(lines: Mapping[str, Sequence[float | None]]) -> float:
    most = max((value for some in lines.values() for value in some if value is not None), default=0.0)
    return float(MaxNLocator(2).tick_values(0, most or 1.0)[-1])


def phases_named(sections: Mapping[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Returns (judge, variant, phases by part) of all texts whose strategies judges named, in the form of the course of a dialogue."""
    named = []
    for judge, course in ((sections.get("judges") or {}).get("course") or {}).items():
        for variant, rows in course["variants"].items():
            parts = sections["course"]["parts"]
            counts = {phase: [0] * parts for phase in PHASES}
            for row in rows:
                counts[row["phase"]] = [count + more for count, more in zip(counts[row["phase"]], row["named"], strict=True)]
            phases = [{"name": phase, "counts": some} for phase, some in counts.items()]
            named.append((judge, variant, {"parts": parts, "phases": phases}))
    return named


# File formats for a report and for a paper, and metadata that is omitted so that every run writes the same bytes.
PAGE, PAPER = ("svg", "png"), ("svg", "pdf")
OMITTED_METADATA = {"svg": ("Date", "Creator"), "png": ("Software",), "pdf": ("CreationDate", "Creator", "Producer")}
# Okabe-Ito palette, distinct for all common kinds of colour vision; markers and positions differ too.
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
    """Draws the accuracies at equal closeness and the shortcut line as ``path.svg`` and ``path.pdf``.

    Raises:
        InputError: if no metric has such an accuracy, as without controls.
    """
    chart = accuracies(measured)
    if chart is None:
        raise input_error("score: figure", "no metric has an accuracy at equal closeness", "score a release with controls, or leave it out")
    draw_chart(replace(chart, name=path.name), path.parent, PAPER)


def draw_chart(chart: Chart, folder: Path, forms: Sequence[str] = PAGE) -> None:
    """Draws a chart: one row of marks per metric, with intervals."""
    with _figure(folder, chart.name, (7.2, 0.42 * len(chart.rows) + 1.4), forms=forms) as (figure, axes):
        axes.axvline(chart.middle, color=GREY, linewidth=1, zorder=1)
        for place, (_, marks) in enumerate(chart.rows):
            for mark in marks:
                _draw(axes, mark, place + 0.2 * chart.shift(mark))
        if chart.line:
            reach, words = chart.line
            axes.axvline(reach, color=BLUE, linewidth=1.6, linestyle=(0, (5, 3)), clip_on=False, label=f"shortcut line ({words})")
        for name, words in chart.legend.items():
            axes.scatter([], [], color=STYLES[name][0], marker=STYLES[name][1], s=36, label=words)
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
    """Draws one histogram of text lengths per variant, on one axis."""
    rows = lengths["variants"]
    with _figure(folder, "lengths", (7.2, 0.85 * len(rows) + 0.9), len(rows)) as (_, axes):
        for row, axis in zip(rows, np.atleast_1d(axes), strict=True):
            shares = np.array(row["counts"]) / row["texts"]
            axis.bar(np.arange(len(shares)) * lengths["bin"], shares, lengths["bin"] * 0.92, align="edge", color=BLUE)
            axis.axvline(row["median"], color=ORANGE, linewidth=1.6)
            axis.set_title(f"{row['variant'].replace('_', '-')}: median {row['median']:g}, mean {row['mean']:.1f}", loc="left", fontsize=9)
            axis.yaxis.set_visible(False)
            _bare(axis, "x")
        axis.set_xlabel(f"words (bins of {lengths['bin']})")


def draw_course(course: dict[str, Any], folder: Path) -> None:
    """Draws the share of each phase in each part of a dialogue."""
    with _figure(folder, "course", (7.2, 3.2)) as (figure, axes):
        _stacked(axes, course)
        axes.set_xticks(range(course["parts"] + 1), [f"{100 * part // course['parts']} %" for part in range(course["parts"] + 1)])
        axes.set_xlabel(PLACE)
        axes.set_ylabel("share of turns, as planned (%)")
        _bare(axes, "y")
        figure.legend(loc="outside upper left", ncols=3, frameon=False)


def draw_named(named: Sequence[tuple[str, str, dict[str, Any]]], folder: Path) -> None:
    """Draws the share of each phase in each part of a dialogue as judges named it, one row per judge and variant; none without judges."""
    if not named:
        return
    with _figure(folder, "course_named", (7.2, 1.25 * len(named) + 1.1), len(named)) as (figure, axes):
        for (judge, variant, course), axis in zip(named, np.atleast_1d(axes), strict=True):
            _stacked(axis, course)
            axis.set_title(f"{variant.replace('_', '-')}, named by {judge} (%)".replace("$", r"\$"), loc="left", fontsize=9)
            axis.set_xticks(range(course["parts"] + 1), [f"{100 * part // course['parts']} %" for part in range(course["parts"] + 1)])
            _bare(axis, "y")
        axis.set_xlabel(PLACE)
        figure.legend(*axis.get_legend_handles_labels(), loc="outside upper left", ncols=3, frameon=False)


def draw_depth(panels: Sequence[DepthPanel], folder: Path) -> None:
    """Draws panels, one below the other; nothing without a panel."""
    if not panels:
        return
    with _figure(folder, "depth", (7.2, 1.7 * len(panels) + 1.1), len(panels)) as (figure, axes):
        for panel, axis in zip(panels, np.atleast_1d(axes), strict=True):
            for variant, line in panel.lines.items():
                colour, marker, style = VARIANTS[variant]
                values = [np.nan if value is None else value for value in line]
                name = variant.replace("_", "-")
                axis.plot(np.arange(len(values)) + 0.5, values, color=colour, marker=marker, linestyle=style, markersize=4, label=name)
            axis.set_title(panel.title.replace("$", r"\$"), loc="left", fontsize=9)
            axis.set_ylim(0, panel.top)
            axis.set_xticks(range(len(line) + 1), [f"{100 * part // len(line)} %" for part in range(len(line) + 1)])
            _bare(axis, "y")
        axis.set_xlabel(PLACE)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=3, frameon=False)


def _stacked(axes: Any, course: dict[str, Any]) -> None:
    counts = np.array([phase["counts"] for phase in course["phases"]], dtype=float)
    shares, under = 100 * counts / np.maximum(counts.sum(axis=0), 1), np.zeros(course["parts"])
    for phase, share in zip(course["phases"], shares, strict=True):
        axes.bar(np.arange(course["parts"]) + 0.5, share, 0.94, bottom=under, color=PHASES.get(phase["name"], GREY), label=phase["name"])
        under = under + share


@contextmanager
def _figure(folder: Path, name: str, size: tuple[float, float], rows: int = 1, forms: Sequence[str] = PAGE) -> Iterator[tuple[Any, Any]]:
    """Yields a figure and its axes; writes the figure in each form afterwards."""
    with room_for(folder), matplotlib.rc_context(SETTINGS):
        folder.mkdir(parents=True, exist_ok=True)
        # Without pyplot there is no backend to choose, which would be the caller's too.
        figure = Figure(figsize=size, layout="constrained")
        yield figure, figure.subplots(rows, sharex=True)
        for form in forms:
            figure.savefig(folder / f"{name}.{form}", dpi=200, metadata=dict.fromkeys(OMITTED_METADATA[form]))


def _bare(axes: Any, grid: str) -> None:
    axes.grid(axis=grid, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
