"""The terms that the pages of a release define."""

from __future__ import annotations

from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import read_yaml


def terms() -> dict[str, str]:
    """Terms with their meanings, in the order in which pages list them."""
    found: dict[str, str] = read_yaml(data_folder("release") / "glossary.yaml", "glossary")
    return found
