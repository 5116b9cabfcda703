"""What ``preview`` and ``build`` are given."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from empathy_eval.design.recipe import Recipe


def add_inputs(verb: argparse.ArgumentParser) -> None:
    """Adds the configuration, and what may stand in for parts of it."""
    verb.add_argument("config", metavar="CONFIG", help="a build configuration: a file, or the name of a packaged one (demo, full)")
    verb.add_argument("--model", metavar="NAME", help="use this model for everything, instead of the configured ones")
    verb.add_argument("--base-url", metavar="URL", help="the OpenAI-compatible endpoint of the model, such as http://localhost:8000/v1")
    verb.add_argument("--scenarios", type=Path, metavar="DIR", help="a folder of scenarios of your own")
    verb.add_argument("--templates", type=Path, metavar="DIR", help="a folder of prompt templates of your own")


def recipe_of(options: argparse.Namespace) -> Recipe:
    """The recipe that these arguments name."""
    from empathy_eval.design.recipe import load_recipe

    return load_recipe(
        options.config, model=options.model, base_url=options.base_url, scenarios=options.scenarios, templates=options.templates
    )
