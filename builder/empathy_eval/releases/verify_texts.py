"""Every check of the configuration, run again on every text of a release."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem


def text_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Texts that a check of the configuration refuses, and columns that the texts do not give."""
    yield from ()
