"""The crossed items of a dialogue: a seed's are curated."""

from __future__ import annotations

from dataclasses import asdict

from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.outcomes import Crossed, Dialogue


def curated(recipe: Recipe, dialogue: Dialogue) -> tuple[Crossed, ...]:
    """The crossed items that were written for a seed dialogue; none for one of a model."""
    items = recipe.catalogue.crossed.get(dialogue.scenario_id, ()) if dialogue.source == "seed" else ()
    return tuple(Crossed(**asdict(one), source="seed") for one in items)
