"""The dataset card and the changelog of a release, from templates and real numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from builder.files import data_folder, write_whole
from builder.reporting import Report
from builder.rows import COLUMNS
from builder.splitting import SPLITS
from builder.templates import environment


def write_card(folder: Path, facts: dict[str, Any], report: Report) -> None:
    """``README.md``: the dataset card, its YAML head naming configs and splits."""
    write_whole(folder / "README.md", _render("card.md.j2", facts=facts, report=report, configs=list(COLUMNS), splits=SPLITS))


def write_changelog(folder: Path, facts: dict[str, Any]) -> None:
    """``CHANGELOG.md``: what this release holds."""
    write_whole(folder / "CHANGELOG.md", _render("changelog.md.j2", facts=facts))


def _render(template: str, **values: Any) -> str:
    return environment(data_folder("release")).get_template(template).render(**values).strip() + "\n"
