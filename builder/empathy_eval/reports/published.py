"""What a release publishes of its configuration, and what the paper published beside it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from empathy_eval.base.causal_lm import weights_of
from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import read_yaml
from empathy_eval.design.configuration import ROLES
from empathy_eval.design.contrasts import PAIR_VARIANTS
from empathy_eval.design.kinds import CROSSED
from empathy_eval.metrics.bertscore import is_listed, published
from empathy_eval.metrics.empathy_score.model_folder import is_packaged, published_model
from empathy_eval.metrics.registry import NEEDS_MODEL, names_of


def published_configuration(configuration: dict[str, Any], without: Collection[str] = ()) -> dict[str, Any]:
    """The configuration as a manifest shows it: a model that is not a well-known one is named by the hash of its weights.

    Of one whose metric is left out only that is said: its weights need not be here.
    """
    settings = configuration["report"]
    there = {name: settings[name]["model"] for name in names_of(settings) if "model" in settings.get(name, {}) and name in NEEDS_MODEL}
    if not there:
        return configuration

    def named(name: str, model: str) -> str:
        if name == "nll":
            return weights_of(model, settings[name].get("revision"), "report: nll: model").name if name not in without else "left-out"
        listed, shown = (is_listed, published) if name == "bertscore" else (is_packaged, published_model)
        return shown(model) if listed(model) or name not in without else "left-out"

    return {**configuration, "report": {**settings, **{name: {**settings[name], "model": named(name, one)} for name, one in there.items()}}}


def paper_figures(configuration: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The paper's figures that stand beside ours: of the same metric and, where there is one, the same model."""
    ours = configuration["report"].get("bertscore", {})
    figures = read_yaml(data_folder("release") / "paper.yaml", "paper")
    same = [one for one in figures if "model" not in one or (one["model"], one["layer"]) == (ours.get("model"), ours.get("layer"))]
    return {one["metric"]: {name: one[name] for name in PAIR_VARIANTS} for one in same}


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
