"""The models behind one protocol: a seed bank that needs nothing, any OpenAI-compatible endpoint, one's own, the toxicity scorer."""

from __future__ import annotations

from collections.abc import Callable

from empathy_eval.base.errors import EmpathyEvalError
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.models.own import OwnModel, own_models
from empathy_eval.completions.models.protocol import Model
from empathy_eval.completions.models.seed_bank import SeedBank
from empathy_eval.completions.models.toxicity_scorer import ToxicityScorer
from empathy_eval.design.kinds import SCORE
from empathy_eval.design.recipe import Recipe


def make_models(recipe: Recipe, budget: Budget, stopped: Callable[[], EmpathyEvalError | None] = lambda: None) -> dict[str, Model]:
    """The models of a recipe by what they are for: ``self_chat``, ``near``, ``far``, and ``toxicity``, which scores texts.

    Once ``stopped`` gives an error, a request that still waits for its turn raises it instead of being sent.

    Raises:
        InputError: if a model of one's own or the scorer cannot be had.
    """
    config, bank = recipe.config, SeedBank(recipe.catalogue)
    own = own_models(recipe)
    # A model that is there for several things has one bound of what it is asked at once.
    guarded = {id(model): OwnModel(model, stopped) for model in own.values()}
    made: dict[str, Model] = {role: guarded[id(model)] for role, model in own.items()}
    made |= {role: bank for role, one in config.models.items() if role not in made and one.kind == "seed-bank"}
    made[SCORE.role] = ToxicityScorer(config.checks.toxicity)
    if sent := {role: one for role, one in config.models.items() if role not in made}:
        # openai takes half a second to import, which an offline build does not need.
        from empathy_eval.completions.models.openai_endpoint import Line, OpenAIEndpoint

        lines = {one.endpoint: Line(one, stopped) for one in sent.values()}
        made.update((role, OpenAIEndpoint(one, budget, lines[one.endpoint], stopped)) for role, one in sent.items())
    return made
