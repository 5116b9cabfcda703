"""Templates that were rendered for a build are not tried again, before anything is asked, for another with the very same recipe."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation import job
from empathy_eval.generation import job as stand_ins

# Recipes that are kept: each holds its catalogue and templates, so that no other takes their place in memory.
MOST = 20


def share(patch: pytest.MonkeyPatch) -> None:
    """Builds try only what no build of this process has tried."""
    try_all, tried = stand_ins.try_templates, OrderedDict[tuple[Any, ...], Recipe]()

    def try_templates(recipe: Recipe) -> None:
        key = recipe.config.identity, *map(id, (recipe.catalogue, recipe.prompts, recipe.language))
        if key not in tried:
            try_all(recipe)
            tried[key] = recipe
            if len(tried) > MOST:
                tried.popitem(last=False)

    patch.setattr(job, "try_templates", try_templates)
