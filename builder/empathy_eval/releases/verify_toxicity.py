"""Toxicity, scored again where the scorer is at hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem


def toxicity_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Scores that the scorer does not give."""
    yield from ()
