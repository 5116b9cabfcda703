"""Figures fit for a paper, as SVG and PNG with the same bytes on every run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from empathy_eval.base.files import room_for
from empathy_eval.design.contrasts import RAW, STANCE, STANCE_FAR, STANCE_NEAR
from empathy_eval.evaluation.charts import SCENARIO, Chart, Mark

# Of the Okabe-Ito palette, told apart by all common kinds of colour vision; markers and places differ too.
BLUE, ORANGE, GREEN, YELLOW, GREY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#767676"
STYLES = {RAW: (BLUE, "s"), STANCE: (ORANGE, "o"), STANCE_NEAR: (ORANGE, "^"), STANCE_FAR: (GREEN, "o"), SCENARIO: (BLUE, "|")}
PHASES = {"exploration": BLUE, "comforting": YELLOW, "action": GREEN}
SETTINGS: dict[Any, Any] = {"svg.hashsalt": "empathy-eval", "svg.fonttype": "path", "font.size": 10, "font.family": "DejaVu Sans"}


def draw_chart(chart: Chart, folder: Path) -> None:
    """A row of marks for each metric on one axis, with intervals where there are any."""
    with _figure(folder, chart.name, (7.2, 0.42 * len(chart.rows) + 1.4)) as (figure, axes):
        axes.axvline(chart.middle, color=GREY, linewidth=1, zorder=1)
        for place, (_, marks) in enumerate(chart.rows):
            for mark in marks:
                _draw(axes, mark, place + 0.2 * chart.shift(mark))
        if chart.line:
            reach, told = chart.line
            axes.axvline(reach, color=BLUE, linewidth=1.6, linestyle=(0, (5, 3)), clip_on=False, label=f"shortcut line ({told})")
        for name, told in chart.legend.items():
            axes.scatter([], [], color=STYLES[name][0], marker=STYLES[name][1], s=36, label=told)
        axes.set_yticks(range(len(chart.rows)), [_plain(name) for name, _ in chart.rows])
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
    counts = np.array([one["counts"] for one in course["phases"]], dtype=float)
    shares = 100 * counts / np.maximum(counts.sum(axis=0), 1)
    with _figure(folder, "course", (7.2, 3.2)) as (figure, axes):
        under = np.zeros(course["parts"])
        for one, share in zip(course["phases"], shares, strict=True):
            axes.bar(np.arange(course["parts"]) + 0.5, share, 0.94, bottom=under, color=PHASES.get(one["name"], GREY), label=one["name"])
            under = under + share
        axes.set_xticks(range(course["parts"] + 1), [f"{100 * part // course['parts']} %" for part in range(course["parts"] + 1)])
        axes.set_xlabel("place among the helper turns of a dialogue")
        axes.set_ylabel("share of turns, as planned (%)")
        _bare(axes, "y")
        figure.legend(loc="outside upper left", ncols=3, frameon=False)


@contextmanager
def _figure(folder: Path, name: str, size: tuple[float, float], rows: int = 1) -> Iterator[tuple[Any, Any]]:
    """A figure to draw in, that is then written as ``name.svg`` and ``name.png``."""
    with room_for(folder), matplotlib.rc_context(SETTINGS):
        folder.mkdir(parents=True, exist_ok=True)
        # Without pyplot there is no backend to choose, which would be the caller's too.
        figure = Figure(figsize=size, layout="constrained")
        yield figure, figure.subplots(rows, sharex=True)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
        figure.savefig(folder / f"{name}.png", dpi=200, metadata={"Software": None})


def _plain(text: str) -> str:
    """A name as it is: a dollar sign begins no formula."""
    return text.replace("$", r"\$")


def _bare(axes: Any, grid: str) -> None:
    axes.grid(axis=grid, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
