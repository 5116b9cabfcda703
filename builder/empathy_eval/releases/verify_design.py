"""What a release was built under, as it carries it: taxonomy, scenarios, rules and templates, against the hashes of its manifest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem


def design_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Definitions that are not those of the manifest; where they are not those of this program, that is told."""
    yield from ()
