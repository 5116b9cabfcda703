"""The models behind one protocol: a seed bank that needs nothing, and any OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Callable

from builder.budget import Budget
from builder.config import Configuration
from builder.errors import EmpathyEvalError
from builder.models.protocol import Model
from builder.models.seed_bank import SeedBank
from builder.scenarios import Catalogue


def make_models(
    config: Configuration, catalogue: Catalogue, budget: Budget, stopped: Callable[[], EmpathyEvalError | None] = lambda: None
) -> dict[str, Model]:
    """The models of a configuration by what they are for: ``self_chat``, ``near``, ``far``.

    Once ``stopped`` gives an error, a request that still waits for its turn raises it instead of being sent.
    """
    if all(one.kind == "seed-bank" for one in config.models.values()):
        return dict.fromkeys(config.models, SeedBank(catalogue))
    # openai takes half a second to import, which an offline build does not need.
    from builder.models.openai_endpoint import Line, OpenAIEndpoint

    lines = {one.endpoint: Line(one, stopped) for one in config.models.values()}
    return {role: OpenAIEndpoint(one, budget, lines[one.endpoint], stopped) for role, one in config.models.items()}
