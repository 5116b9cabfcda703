"""Recipes rebuilt from the header of a folder, with the parts that have changed and those that are not run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import EmpathyEvalError, input_error, some_of
from empathy_eval.base.hashing import digest
from empathy_eval.base.schemas import schema
from empathy_eval.base.text import ENGLISH
from empathy_eval.base.version import __version__
from empathy_eval.completions.ledger import Ledger
from empathy_eval.design.configuration import Configuration, parse_configuration
from empathy_eval.design.kinds import KINDS
from empathy_eval.design.language import load_language
from empathy_eval.design.planning import Plan, plan_of
from empathy_eval.design.quotas import sequence_positions
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.word_list import WORD_LIST, WordList, read_word_list
from empathy_eval.generation.replay_item import ItemReplayer
from empathy_eval.releases.assemble.build_definitions import BuildDefinitions

# Larger plans of an untrusted manifest are not drawn again.
MOST_DIALOGUES, MOST_TURNS = 5_000_000, 1000
ROLES = {kind.name: kind.role for kind in KINDS.values()}


@dataclass(frozen=True)
class RebuiltRecipe:
    """A recipe, if one can be rebuilt; ``changed`` lists changed parts, ``notes`` say what is missing or not run."""

    recipe: Recipe | None
    changed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def has_custom_checks(self) -> bool:
        """Whether custom checks read the answers, which may have refused texts that pass here."""
        return self.recipe is not None and bool(self.recipe.config.custom_checks)

    @cached_property
    def _positions(self) -> dict[int, list[int]] | None:
        """Positions of all drawn dialogues, which are computed together."""
        drawn = self.recipe is not None and self.recipe.config.plan == "drawn"
        return sequence_positions(self.recipe.config, self.recipe.catalogue) if self.recipe and drawn else None

    def plan(self, dialogue_id: str) -> Plan | None:
        """Returns the plan of a dialogue; None without one."""
        try:
            return plan_of(self.recipe.config, self.recipe.catalogue, dialogue_id, self._positions) if self.recipe else None
        except EmpathyEvalError:  # no sequence of turns was found, so this plan was not built
            return None

    def replayer(self, ledger: Ledger, weights: str | None, names: Mapping[str, str]) -> ItemReplayer | None:
        """Returns the replayer of items; ``names`` are those of custom models by role, if texts of the release name them."""
        if self.recipe is None:
            return None
        models, query = self.recipe.config.models, "SELECT model FROM sound_completions WHERE kind = ? AND typeof(model) = 'text' LIMIT 1"
        own = [(kind, role) for kind, role in ROLES.items() if role in models and ":" in models[role].kind]
        known = {role: model for kind, role in own for (model,) in ledger.query(query, (kind,))}
        return ItemReplayer(self.recipe, ledger, weights, {**known, **names})


def rebuild_recipe(
    header: Mapping[str, Any], scenarios: Path | None, templates: Path | None, rules: Path | None, folder: Path | None = None
) -> RebuiltRecipe:
    """Returns the recipe of the manifest of a release, or of the header of a build.

    ``scenarios``, ``templates`` and ``rules`` are the user's own folders. ``folder`` has the header, the definitions of the build, and the
    word list if the header names one.

    Raises:
        InputError: if one of the user's own folders is not valid.
    """
    definitions = BuildDefinitions(header, folder, scenarios, templates, rules)
    catalogue, prompts = definitions.catalogue, definitions.prompts
    try:
        config = parse_configuration(dict(header["configuration"]), "configuration", _words(header, folder))
    except EmpathyEvalError as error:
        return RebuiltRecipe(
            None, notes=(f"this version cannot read the configuration, so nothing is rendered again: {error.problems[0].what}",)
        )
    if config.dialogues > MOST_DIALOGUES or config.rules.max_turns > MOST_TURNS or config.surplus > 1:
        return RebuiltRecipe(None, notes=("the plan is too large to be drawn again",))
    try:
        recipe = Recipe(config, catalogue, prompts, language=definitions.language or load_language(config.language))
    except EmpathyEvalError as error:
        return RebuiltRecipe(None, notes=("nothing is checked or rendered again: " + _without(config, rules, error),))
    return RebuiltRecipe(recipe, tuple(_changed(header, recipe)), (*definitions.notes, *_not_run(config)))


def _words(header: Mapping[str, Any], folder: Path | None) -> WordList | None:
    """Returns the word list of a folder whose configuration names one by its hash.

    Raises:
        InputError: if it is missing, or has another hash.
    """
    named = header["configuration"].get("word_list")
    if named is None or folder is None:
        return None
    words = read_word_list(folder / WORD_LIST)
    if words.digest != named:
        raise input_error(folder / WORD_LIST, f'is not the word list "{named}" of the build', "restore the word list of the build")
    return words


def _changed(header: Mapping[str, Any], recipe: Recipe) -> Iterator[str]:
    """Yields the parts of a recipe whose hash differs from the header."""
    schemas = {name: digest(schema(name)) for name in dict.fromkeys(kind.answer for kind in recipe.kinds)}
    parts = {
        "templates": recipe.templates, "schemas": schemas, "rules": recipe.language.hashes, "scenario_files": recipe.scenario_files,
    }  # fmt: skip
    for part, hashes in parts.items():
        built = header.get(part, hashes)
        if changed := sorted(name for name in hashes.keys() | built.keys() if hashes.get(name) != built.get(name)):
            yield f"{part.replace('_', ' ')}: {', '.join(changed)}"
    if header.get("seeds", recipe.catalogue.seed_hash) != recipe.catalogue.seed_hash:
        yield "the seed dialogues of the scenarios"
    names = {f"{scenario.number:03d}": scenario.name for scenario in recipe.catalogue.scenarios}
    if changed := sorted(number for number, scenario in header.get("scenarios", {}).items() if names.get(number) != scenario["name"]):
        yield f"scenarios: {some_of(changed)}"
    if header.get("builder", __version__) != __version__:
        yield f"the version: {header['builder']} built it, this is {__version__}"


def _without(config: Configuration, rules: Path | None, error: EmpathyEvalError) -> str:
    """Returns why there is no recipe, and a fix."""
    if rules is None and config.language != ENGLISH:
        return f'its language is "{config.language}", whose rules are not here: give the folder of these rules with --rules'
    problems = [f"{problem.where}: {problem.what}; {problem.fix}" for problem in error.problems[:3]]
    return "; ".join(problems) + (f"; and {len(error.problems) - 3} more" if len(error.problems) > 3 else "")


def _not_run(config: Configuration) -> Iterator[str]:
    """Yields notes on code in a configuration, which is never run to show something."""
    for role, model in config.models.items():
        if not model.remote and model.kind not in ("seed-bank", "given"):
            yield f'the model "{model.kind}" ({role}) is code and is not run: its requests are shown only if they consist of messages alone'
    if config.custom_checks:
        yield f"its own checks are code and are not run: {', '.join(config.custom_checks)}; their refusals are shown as recorded"
