"""The provenance and the candidates of a release, row for row against its tables, and what the manifest counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem


def provenance_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Rows of the provenance and the candidates that the tables do not give, and those that are missing; counts that do not add up."""
    yield from ()
