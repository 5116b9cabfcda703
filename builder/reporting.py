"""The report: how common metrics rate the variants, as tables, figures and one self-contained page."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.contrasts import PAIR_VARIANTS
from builder.corpus import column
from builder.errors import input_error
from builder.figures import draw_inversion
from builder.files import data_folder, whole_folder, write_whole
from builder.inversion import Chance
from builder.measuring import LENGTH_WITHIN, Measured, Stand
from builder.metrics.kept import ScoreCache
from builder.metrics.registry import default_names, find
from builder.metrics.scoring import Spread
from builder.schemas import read_yaml
from builder.templates import environment

MANIFEST, TABLES = "manifest.json", "tables.json"
# Exchanges behind each p-value: the smallest that can come out is 1 / 2,000.
EXCHANGES = 1999
Progress = Callable[[int], None]


@dataclass(frozen=True)
class Report:
    """The tables of a report, and what they are over."""

    measured: Measured
    about: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {"about": self.about, **self.measured.to_json()}


def report(
    release_dir: Path, out: Path, *, cache: ScoreCache | None = None, spread: Spread | None = None,
    progress: Progress = lambda texts: None,
) -> Report:  # fmt: skip
    """Measures a release anew, with the metrics its manifest names, into a folder of its own. The cache changes no number.

    Raises:
        InputError: if the folder is no release, a named metric is not installed, or ``out`` holds something else.
    """
    configuration = read_manifest(release_dir)["configuration"]
    with whole_folder(out, made_by=TABLES) as folder:
        return write_report(release_dir, folder, configuration, cache=cache, spread=spread, progress=progress)


def read_manifest(release_dir: Path) -> dict[str, Any]:
    """The manifest of a release.

    Raises:
        InputError: if the folder holds none.
    """
    path = release_dir / MANIFEST
    if not path.is_file():
        raise input_error(release_dir, f"is no release (no {MANIFEST} in it)", "name the folder of a release")
    manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return manifest


def write_report(
    release_dir: Path, out: Path, configuration: dict[str, Any], *, cache: ScoreCache | None = None, spread: Spread | None = None,
    progress: Progress = lambda texts: None,
) -> Report:  # fmt: skip
    """Measures a release and writes ``index.html``, the tables as JSON and ``figures/`` into ``out``.

    Raises:
        InputError: if a named metric is not installed, or the folder holds no pairs.
    """
    report = measure_release(release_dir, configuration, cache=cache, spread=spread, progress=progress)
    write_whole(out / TABLES, json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n")
    draw_inversion(report.measured.inversion, out / "figures")
    write_whole(out / "index.html", _page(report, out / "figures" / "inversion.svg"))
    return report


def measure_release(
    release_dir: Path, configuration: dict[str, Any], *, cache: ScoreCache | None = None, spread: Spread | None = None,
    progress: Progress = lambda texts: None,
) -> Report:  # fmt: skip
    """The tables of a release, with the metrics that the configuration names."""
    settings = configuration["report"]
    found = find(settings.get("metrics") or default_names(settings), settings)
    chance = Chance(settings["bootstrap"], EXCHANGES, configuration["seed"])
    stand = Stand(release_dir, found, chance, cache=cache, spread=spread, progress=progress)
    if not len(stand.pairs):
        raise input_error(release_dir, "holds no pairs", "release a build with accepted pairs")
    about = {
        "pairs": len(stand.pairs),
        "dialogues": len(set(stand.pairs.dialogues)),
        "controls": len(stand.controls),
        "sources": sorted(set(column(release_dir, "pairs", "source"))),
        "edit_ratio_below": configuration["checks"]["edit_ratio_below"],
        "overlap_at_most": configuration["checks"]["overlap_at_most"],
        "length_within": LENGTH_WITHIN,
        "paper": _paper(configuration),
    }
    return Report(stand.measured(), about)


def _paper(configuration: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The paper's figures that stand beside ours: of the same metric and, where there is one, the same model."""
    ours = configuration["report"].get("bertscore", {})
    figures = read_yaml(data_folder("release") / "paper.yaml", "paper")
    same = [one for one in figures if "model" not in one or (one["model"], one["layer"]) == (ours.get("model"), ours.get("layer"))]
    return {one["metric"]: {name: one[name] for name in PAIR_VARIANTS} for one in same}


def _page(report: Report, figure: Path) -> str:
    svg = figure.read_text(encoding="utf-8")
    return environment(data_folder("release")).get_template("report.html.j2").render(report=report, figure=svg[svg.index("<svg") :]) + "\n"


def inversion_table(report: Report) -> str:
    """The inversion as lines of text, for a terminal."""
    lines = [f"{'metric':<14}{'apathetic':>11}{'empathetic':>12}{'difference':>12}  {'95 % interval':<22}prefers"]
    for row in report.measured.inversion:
        difference = row.differences["empathetic - apathetic"]
        interval = "" if difference.low is None else f"[{difference.low:+.4f}, {difference.high:+.4f}]"
        numbers = f"{row.scores['apathetic']:>11.4f}{row.scores['empathetic']:>12.4f}{difference.value:>+12.4f}"
        lines.append(f"{row.metric:<14}{numbers}  {interval:<22}{difference.prefers}")
    about = report.about
    lines.append(f"over {about['pairs']} pairs of {about['dialogues']} dialogues, {about['controls']} of them with controls")
    return "\n".join(lines)
