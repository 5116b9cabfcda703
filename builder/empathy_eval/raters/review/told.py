"""What a rater is told and trained with: the data files ``guidance.yaml`` and ``training.yaml`` of ``review/``."""

from __future__ import annotations

from functools import cache
from typing import Any

from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import read_yaml

FOLDER = "review"


def told(*, deciding: bool = True) -> dict[str, Any]:
    """Both files, by name; ``deciding`` says whether judgements decide what stays in the collection, else nobody is told that they do."""
    texts = {name: read_yaml(data_folder(FOLDER) / f"{name}.yaml", name) for name in ("guidance", "training")}
    if not deciding:
        texts["guidance"]["welcome"][0]["paragraphs"][0] = texts["guidance"]["not_deciding"]
    return texts


def warning(item: dict[str, Any]) -> str:
    """What stands beside an item that touches on suicide, self-harm or danger, as its flags say; else nothing."""
    return _sensitive() if "crisis" in item.get("flags", []) else ""


@cache
def _sensitive() -> str:
    return str(read_yaml(data_folder(FOLDER) / "guidance.yaml", "guidance")["sensitive"])
