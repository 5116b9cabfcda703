"""The models behind one protocol: a seed bank that needs nothing, and any OpenAI-compatible endpoint."""

from __future__ import annotations

from builder.budget import Budget
from builder.config import Configuration, ModelConfig
from builder.models.protocol import Model
from builder.models.seed_bank import SeedBank
from builder.scenarios import Catalogue


def make_models(config: Configuration, catalogue: Catalogue, budget: Budget) -> dict[str, Model]:
    """The models of a configuration by what they are for: ``self_chat``, ``near``, ``far``."""
    bank = SeedBank(catalogue)
    return {role: bank if one.kind == "seed-bank" else _endpoint(one, budget) for role, one in config.models.items()}


def _endpoint(config: ModelConfig, budget: Budget) -> Model:
    # openai takes half a second to import, which an offline build does not need.
    from builder.models.openai_endpoint import OpenAIEndpoint

    return OpenAIEndpoint(config, budget)
