"""What a rater is told and trained with: the data files ``guidance.yaml`` and ``training.yaml`` of ``review/``."""

from __future__ import annotations

from functools import cache
from typing import Any

from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import read_yaml

FOLDER = "review"


def told() -> dict[str, Any]:
    """Both files, by name."""
    return {name: read_yaml(data_folder(FOLDER) / f"{name}.yaml", name) for name in ("guidance", "training")}


def warning(item: dict[str, Any]) -> str:
    """What stands beside an item that touches on suicide, self-harm or danger, as its flags say; else nothing."""
    return _sensitive() if "crisis" in item.get("flags", []) else ""


@cache
def _sensitive() -> str:
    return str(read_yaml(data_folder(FOLDER) / "guidance.yaml", "guidance")["sensitive"])
