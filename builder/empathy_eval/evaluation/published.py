"""What a release publishes of its configuration, and what the paper published beside it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import read_yaml
from empathy_eval.design.contrasts import PAIR_VARIANTS
from empathy_eval.metrics.empathy_score.model_folder import is_packaged, published_model
from empathy_eval.metrics.registry import OF_A_MODEL, names_of
from empathy_eval.metrics.weights import is_listed, published


def published_configuration(configuration: dict[str, Any], without: Collection[str] = ()) -> dict[str, Any]:
    """The configuration as a manifest shows it: a model that is not a well-known one is named by the hash of its weights.

    Of one whose metric is left out only that is said: its weights need not be here.
    """
    settings = configuration["report"]
    there = {name: settings[name]["model"] for name in names_of(settings) if "model" in settings.get(name, {}) and name in OF_A_MODEL}
    if not there:
        return configuration

    def named(name: str, model: str) -> str:
        listed, shown = (is_listed, published) if name == "bertscore" else (is_packaged, published_model)
        return shown(model) if listed(model) or name not in without else "left-out"

    return {**configuration, "report": {**settings, **{name: {**settings[name], "model": named(name, one)} for name, one in there.items()}}}


def paper_figures(configuration: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The paper's figures that stand beside ours: of the same metric and, where there is one, the same model."""
    ours = configuration["report"].get("bertscore", {})
    figures = read_yaml(data_folder("release") / "paper.yaml", "paper")
    same = [one for one in figures if "model" not in one or (one["model"], one["layer"]) == (ours.get("model"), ours.get("layer"))]
    return {one["metric"]: {name: one[name] for name in PAIR_VARIANTS} for one in same}
