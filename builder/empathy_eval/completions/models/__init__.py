"""The models behind one protocol: a seed bank, any OpenAI-compatible endpoint, reward models, one's own, the toxicity scorer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from empathy_eval.base.errors import EmpathyEvalError
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.models.own import OwnModel, own_models
from empathy_eval.completions.models.seed_bank import SeedBank
from empathy_eval.completions.models.toxicity_scorer import ToxicityScorer
from empathy_eval.completions.requests import Model
from empathy_eval.design.endpoints import ModelConfig
from empathy_eval.design.kinds import SCORE
from empathy_eval.design.recipe import Recipe

Stopped = Callable[[], EmpathyEvalError | None]


def make_models(recipe: Recipe, budget: Budget, stopped: Stopped = lambda: None) -> dict[str, Model]:
    """The models of a recipe by what they are for: those of its configuration, and ``toxicity``, which scores texts, if it is to.

    Raises:
        InputError: if a model of one's own cannot be had.
    """
    config, bank = recipe.config, SeedBank(recipe.catalogue)
    made: dict[str, Model] = {role: bank for role, one in config.asked.items() if one.kind == "seed-bank" and role not in recipe.models}
    if config.checks.toxicity:
        made[SCORE.role] = ToxicityScorer(config.checks.toxicity)
    others = {role: one for role, one in config.asked.items() if role not in made}
    return made | asked_models(others, recipe.models, budget, stopped)


def asked_models(
    configured: Mapping[str, ModelConfig], given: Mapping[str, Any], budget: Budget, stopped: Stopped = lambda: None
) -> dict[str, Model]:
    """Endpoints and models of one's own by what they are for.

    Once ``stopped`` gives an error, a request that still waits for its turn raises it instead of being sent.

    Raises:
        InputError: if a model of one's own cannot be had.
    """
    own = own_models(configured, given)
    # A model that is there for several things has one bound of what it is asked at once.
    guarded = {id(model): OwnModel(model, stopped, budget) for model in own.values()}
    made: dict[str, Model] = {role: guarded[id(model)] for role, model in own.items()}
    if sent := {role: one for role, one in configured.items() if role not in made}:
        # openai takes half a second to import, which an offline build does not need.
        from empathy_eval.completions.models.openai_endpoint import EndpointConnection, OpenAIEndpoint, RewardEndpoint

        lines = {one.endpoint: EndpointConnection(one, stopped) for one in sent.values()}
        for role, one in sent.items():
            made[role] = (RewardEndpoint if one.form else OpenAIEndpoint)(one, budget, lines[one.endpoint], stopped)
    return made
