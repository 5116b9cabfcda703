"""Families of models: a judge may favour what a model of its own family wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import read_yaml
from empathy_eval.design.configuration import ROLES
from empathy_eval.design.kinds import CROSSED

# What stands for no model of a name of its own.
NAMELESS = {"seed-bank", "given"}


def family_of(model: str) -> str:
    """The family of a model by its name, such as ``llama`` for ``meta-llama/Llama-3.1-8B``; empty for what has no name of its own."""
    name = model.partition("@")[0].rstrip("/").rpartition("/")[2].lower()
    if name in NAMELESS:
        return ""
    known: dict[str, list[str]] = read_yaml(data_folder("release") / "model_families.yaml", "model_families")
    starts = [(start, family) for family, some in known.items() for start in some if re.match(rf"{re.escape(start)}(?![a-z])", name)]
    if starts:
        return max(starts, key=lambda one: len(one[0]))[1]
    letters = re.match("[a-z]+", name)
    return letters.group() if letters else name


def shared_families(configuration: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The families that both wrote the texts of a release and score them, by the model names of its configuration.

    Each has its ``family``, the models that are its ``writers``, and by metric the models that are its ``judges``.
    """
    wrote = [one for role, one in configuration["models"].items() if role in (*ROLES, CROSSED.role)]
    writers = sorted({one.get("model", one["kind"]) for one in wrote})
    named = {name: one.get("model") for name, one in configuration["report"].items() if isinstance(one, dict)}
    judges = {name: model for name, model in named.items() if isinstance(model, str)}
    families = {one: family_of(one) for one in (*writers, *judges.values())}
    shared = {families[one] for one in writers} & {families[one] for one in judges.values()} - {""}
    return [
        {
            "family": family,
            "writers": [one for one in writers if families[one] == family],
            "judges": {name: model for name, model in judges.items() if families[model] == family},
        }
        for family in sorted(shared)
    ]
