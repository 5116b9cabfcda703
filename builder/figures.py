"""Figures fit for a paper, as SVG and PNG with the same bytes on every run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

from builder.files import room_for
from builder.inversion import Row

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (after the choice of a backend that needs no screen)

# Blue and orange of the Okabe-Ito palette, told apart by all common kinds of colour vision; markers differ too.
COLOURS = {"apathetic": "#0072B2", "empathetic": "#D55E00"}
MARKERS = {"apathetic": "s", "empathetic": "o"}
SETTINGS: dict[Any, Any] = {"svg.hashsalt": "empathy-eval", "svg.fonttype": "path", "font.size": 10, "font.family": "DejaVu Sans"}


def draw_inversion(rows: Sequence[Row], folder: Path) -> None:
    """``inversion.svg`` and ``inversion.png``: each metric a line from its apathetic to its empathetic score, both 0 to 1."""
    with room_for(folder), matplotlib.rc_context(SETTINGS):
        folder.mkdir(parents=True, exist_ok=True)
        figure, axes = plt.subplots(figsize=(7.2, 0.42 * len(rows) + 1.3), layout="constrained")
        for place, row in enumerate(rows):
            ends = [row.scores[name] for name in COLOURS]
            axes.plot(ends, [place, place], color="#767676", linewidth=2, zorder=1)
        for name, colour in COLOURS.items():
            scores = [row.scores[name] for row in rows]
            axes.scatter(scores, range(len(rows)), color=colour, marker=MARKERS[name], s=60, zorder=2, label=f"{name} variant")
        axes.set_yticks(range(len(rows)), [row.metric for row in rows])
        axes.invert_yaxis()
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel("score (0 to 1; BLEU, ROUGE-L and BERTScore against the reference)")
        axes.grid(axis="x", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        figure.legend(loc="outside upper right", ncols=2, frameon=False)
        figure.savefig(folder / "inversion.svg", metadata={"Date": None, "Creator": None})
        figure.savefig(folder / "inversion.png", dpi=200, metadata={"Software": None})
        plt.close(figure)
