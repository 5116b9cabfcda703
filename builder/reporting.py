"""The report: how common metrics rate the variants, as tables, figures and one self-contained page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from builder.errors import input_error
from builder.figures import draw_inversion
from builder.files import data_folder, whole_folder, write_whole
from builder.inversion import STANCE, Row, Texts, measure
from builder.metrics.bleu import Bleu
from builder.metrics.diversity import Dist
from builder.metrics.protocol import Metric
from builder.metrics.rouge import RougeL
from builder.schemas import read_yaml
from builder.splitting import SPLITS
from builder.templates import environment

MANIFEST, TABLES = "manifest.json", "tables.json"
PAIR_VARIANTS = ("apathetic", "empathetic")
CELLS = ("near_empathetic", "apathetic", "empathetic", "far_apathetic")
INVERSION = {"empathetic - apathetic": ("empathetic", "apathetic")}
CONTROLS = {f"{name}: empathetic - apathetic": (one, other) for name, one, other in STANCE}


@dataclass(frozen=True)
class Report:
    """The tables of a report, and what they are over."""

    inversion: list[Row]
    controls: list[Row]
    about: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "about": self.about,
            "inversion": [row.to_json() for row in self.inversion],
            "controls": [row.to_json() for row in self.controls],
        }


def report(release_dir: Path, out: Path) -> Report:
    """Measures a release anew, with the scorers its manifest names, into a folder of its own.

    Raises:
        InputError: if the folder is no release, a named scorer is not installed, or ``out`` holds something else.
    """
    path = release_dir / MANIFEST
    if not path.is_file():
        raise input_error(release_dir, f"is no release (no {MANIFEST} in it)", "name the folder of a release")
    configuration = json.loads(path.read_text(encoding="utf-8"))["configuration"]
    with whole_folder(out, made_by=TABLES) as folder:
        return write_report(release_dir, folder, configuration)


def write_report(release_dir: Path, out: Path, configuration: dict[str, Any]) -> Report:
    """Measures a release and writes ``index.html``, the tables as JSON and ``figures/`` into ``out``.

    Raises:
        InputError: if a named scorer is not installed, or the folder holds no pairs.
    """
    report = measure_release(release_dir, configuration)
    write_whole(out / TABLES, json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n")
    draw_inversion(report.inversion, out / "figures")
    write_whole(out / "index.html", _page(report, out / "figures" / "inversion.svg"))
    return report


def measure_release(release_dir: Path, configuration: dict[str, Any]) -> Report:
    """The tables of a release, with the scorers that the configuration names."""
    pairs, controls = (_texts(release_dir, config, names) for config, names in (("pairs", PAIR_VARIANTS), ("controls", CELLS)))
    if not pairs.references:
        raise input_error(release_dir, "holds no pairs", "release a build with accepted pairs")
    metrics, diversities = _metrics(configuration), [Dist(order) for order in (1, 2, 4)]
    resamples, seed = configuration["report"]["bootstrap"], configuration["seed"]
    about = {
        "pairs": len(pairs.references),
        "dialogues": len(set(pairs.dialogues)),
        "controls": len(controls.references),
        "sources": sorted(set(_column(release_dir, "pairs", "source"))),
        "edit_ratio_below": configuration["checks"]["edit_ratio_below"],
        "overlap_at_most": configuration["checks"]["overlap_at_most"],
    }
    return Report(
        measure(pairs, metrics, diversities, INVERSION, resamples, seed),
        measure(controls, metrics, diversities, CONTROLS, resamples, seed),
        about | {"paper": _paper(configuration)},
    )


def _metrics(configuration: dict[str, Any]) -> list[Metric]:
    metrics: list[Metric] = [Bleu(), RougeL()]
    if named := configuration["report"].get("bertscore"):
        # torch is an extra and slow to import: only where it is named.
        from builder.metrics.bertscore import BertScore

        metrics.append(BertScore(**named))
    return metrics


def _paper(configuration: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The paper's figures that stand beside ours: of the same metric and, where there is one, the same model."""
    ours = configuration["report"].get("bertscore", {})
    figures = read_yaml(data_folder("release") / "paper.yaml", "paper")
    same = [one for one in figures if "model" not in one or (one["model"], one["layer"]) == (ours.get("model"), ours.get("layer"))]
    return {one["metric"]: {name: one[name] for name in PAIR_VARIANTS} for one in same}


def _texts(release_dir: Path, config: str, variants: Sequence[str]) -> Texts:
    columns = {name: _column(release_dir, config, name) for name in ("dialogue_id", "scenario_id", "reference", *variants)}
    return Texts(columns["dialogue_id"], columns["scenario_id"], columns["reference"], {name: columns[name] for name in variants})


def _column(release_dir: Path, config: str, name: str) -> list[Any]:
    """A column over all splits."""
    files = [release_dir / "data" / config / f"{split}.parquet" for split in SPLITS]
    missing = [path for path in files if not path.is_file()]
    if missing:
        raise input_error(missing[0], "is not there", "name the folder of a release")
    return [value for path in files for value in pq.read_table(path, columns=[name]).column(name).to_pylist()]


def _page(report: Report, figure: Path) -> str:
    svg = figure.read_text(encoding="utf-8")
    return environment(data_folder("release")).get_template("report.html.j2").render(report=report, figure=svg[svg.index("<svg") :]) + "\n"


def inversion_table(report: Report) -> str:
    """The inversion as lines of text, for a terminal."""
    lines = [f"{'metric':<14}{'apathetic':>11}{'empathetic':>12}{'difference':>12}  {'95 % interval':<22}prefers"]
    for row in report.inversion:
        difference = row.differences["empathetic - apathetic"]
        interval = "" if difference.low is None else f"[{difference.low:+.4f}, {difference.high:+.4f}]"
        numbers = f"{row.scores['apathetic']:>11.4f}{row.scores['empathetic']:>12.4f}{difference.value:>+12.4f}"
        lines.append(f"{row.metric:<14}{numbers}  {interval:<22}{difference.prefers}")
    about = report.about
    lines.append(f"over {about['pairs']} pairs of {about['dialogues']} dialogues, {about['controls']} of them with controls")
    return "\n".join(lines)
