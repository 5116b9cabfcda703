"""Models behind one protocol: a seed bank, OpenAI-compatible endpoints, reward models, custom models, the toxicity scorer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from empathy_eval.base.errors import EmpathyEvalError
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.models.custom import GuardedModel, custom_models
from empathy_eval.completions.models.seed_bank import SeedBank
from empathy_eval.completions.models.toxicity_scorer import ToxicityScorer
from empathy_eval.completions.requests import Model
from empathy_eval.design.endpoints import ModelConfig
from empathy_eval.design.kinds import SCORE
from empathy_eval.design.recipe import Recipe

Stopped = Callable[[], EmpathyEvalError | None]


def make_models(recipe: Recipe, budget: Budget, stopped: Stopped = lambda: None) -> dict[str, Model]:
    """The models of a recipe by role: those of its configuration, and ``toxicity`` if texts are scored.

    Raises:
        InputError: if a custom model is not available.
    """
    config, bank = recipe.config, SeedBank(recipe.catalogue)
    models: dict[str, Model] = {
        role: bank for role, settings in config.active_models.items() if settings.kind == "seed-bank" and role not in recipe.models
    }
    if config.checks.toxicity:
        models[SCORE.role] = ToxicityScorer(config.checks.toxicity)
    others = {role: settings for role, settings in config.active_models.items() if role not in models}
    return models | asked_models(others, recipe.models, budget, stopped)


def asked_models(
    configured: Mapping[str, ModelConfig], given: Mapping[str, Any], budget: Budget, stopped: Stopped = lambda: None
) -> dict[str, Model]:
    """Endpoints and custom models by role.

    Once ``stopped`` returns an error, requests that still wait raise it instead of being sent.

    Raises:
        InputError: if a custom model is not available.
    """
    own = custom_models(configured, given)
    # A model that is there for several things has one bound of what it is asked at once.
    guarded = {id(model): GuardedModel(model, stopped, budget) for model in own.values()}
    models: dict[str, Model] = {role: guarded[id(model)] for role, model in own.items()}
    if sent := {role: settings for role, settings in configured.items() if role not in models}:
        # openai takes half a second to import, which an offline build does not need.
        from empathy_eval.completions.models.openai_endpoint import EndpointConnection, OpenAIEndpoint, RewardEndpoint

        lines = {settings.endpoint: EndpointConnection(settings, stopped) for settings in sent.values()}
        for role, settings in sent.items():
            models[role] = (RewardEndpoint if settings.form else OpenAIEndpoint)(settings, budget, lines[settings.endpoint], stopped)
    return models
