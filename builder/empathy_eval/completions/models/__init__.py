"""The models behind one protocol: a seed bank that needs nothing, and any OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Callable

from empathy_eval.base.errors import EmpathyEvalError
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.models.protocol import Model
from empathy_eval.completions.models.seed_bank import SeedBank
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.scenarios import Catalogue


def make_models(
    config: Configuration, catalogue: Catalogue, budget: Budget, stopped: Callable[[], EmpathyEvalError | None] = lambda: None
) -> dict[str, Model]:
    """The models of a configuration by what they are for: ``self_chat``, ``near``, ``far``.

    Once ``stopped`` gives an error, a request that still waits for its turn raises it instead of being sent.
    """
    if all(one.kind == "seed-bank" for one in config.models.values()):
        return dict.fromkeys(config.models, SeedBank(catalogue))
    # openai takes half a second to import, which an offline build does not need.
    from empathy_eval.completions.models.openai_endpoint import Line, OpenAIEndpoint

    lines = {one.endpoint: Line(one, stopped) for one in config.models.values()}
    return {role: OpenAIEndpoint(one, budget, lines[one.endpoint], stopped) for role, one in config.models.items()}
