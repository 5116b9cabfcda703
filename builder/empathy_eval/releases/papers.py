"""What is read beside the data of a release, by the name of its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from empathy_eval.base.files import data_folder
from empathy_eval.evaluation.report import Report
from empathy_eval.releases.card import card_text, changelog_text, eval_text
from empathy_eval.releases.croissant import croissant_text
from empathy_eval.releases.made_by import is_before


def papers(folder: Path, facts: dict[str, Any], report: Report) -> dict[str, str]:
    """Card, changelog, description for machines, licence; all follows from the data, the report and the manifest.

    Args:
        folder: a release whose data is written.
        facts: its manifest, or as much of it as is known while the release is written: all but ``files`` and ``seal``.
        report: its report, or what its tables tell of it.
    """
    return {
        "README.md": card_text(folder, facts, report),
        "CHANGELOG.md": changelog_text(facts),
        "croissant.json": croissant_text(folder, facts),
        **({"eval.yaml": eval_text(facts)} if asks_to_choose(facts) else {}),
        "LICENSE": (data_folder("release") / "DATA_LICENSE").read_text(encoding="utf-8"),
    }


def asks_to_choose(facts: dict[str, Any]) -> bool:
    """Whether a release has what a model is asked to choose from: a list of no tasks is no benchmark's."""
    return not is_before(facts) and bool({"preferences_near", "preferences_far", "crossed"} & facts["counts"].keys())
