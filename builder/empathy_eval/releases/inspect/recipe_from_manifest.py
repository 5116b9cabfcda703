"""The recipe of a folder, made again from what is here: what of it is another now, and what of it is never run here."""

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

# A plan of strangers beyond this is not drawn again.
MOST_DIALOGUES, MOST_TURNS = 5_000_000, 1000
ROLES = {kind.name: kind.role for kind in KINDS.values()}


@dataclass(frozen=True)
class RebuiltRecipe:
    """A recipe as it is here, if there can be one; ``changed`` says what of it is another, ``notes`` what is not run or not had."""

    recipe: Recipe | None
    changed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def has_custom_checks(self) -> bool:
        """Whether checks of one's own looked at answers, which may have refused what passes here."""
        return self.recipe is not None and bool(self.recipe.config.custom_checks)

    @cached_property
    def _places(self) -> dict[int, list[int]] | None:
        """The places of all drawn dialogues, which are reckoned together."""
        drawn = self.recipe is not None and self.recipe.config.plan == "drawn"
        return sequence_positions(self.recipe.config, self.recipe.catalogue) if self.recipe and drawn else None

    def plan(self, dialogue_id: str) -> Plan | None:
        """The plan of a dialogue, if there is one here."""
        try:
            return plan_of(self.recipe.config, self.recipe.catalogue, dialogue_id, self._places) if self.recipe else None
        except EmpathyEvalError:  # no course of turns was found: the plan is none that was built
            return None

    def replayer(self, ledger: Ledger, weights: str | None, names: Mapping[str, str]) -> ItemReplayer | None:
        """What goes through items of the recipe; ``names`` are what models of one's own call themselves, where texts tell it."""
        if self.recipe is None:
            return None
        models, query = self.recipe.config.models, "SELECT model FROM sound_completions WHERE kind = ? AND typeof(model) = 'text' LIMIT 1"
        own = [(kind, role) for kind, role in ROLES.items() if role in models and ":" in models[role].kind]
        known = {role: model for kind, role in own for (model,) in ledger.query(query, (kind,))}
        return ItemReplayer(self.recipe, ledger, weights, {**known, **names})


def rebuild_recipe(
    header: Mapping[str, Any], scenarios: Path | None, templates: Path | None, rules: Path | None, folder: Path | None = None
) -> RebuiltRecipe:
    """The recipe of a manifest, or of what a build wrote. ``scenarios``, ``templates`` and ``rules`` are folders of one's own;
    ``folder`` is the one with the header, which carries what it was built under, and the word list if the header names one.

    Raises:
        InputError: if one of the folders of one's own is not valid.
    """
    under = BuildDefinitions(header, folder, scenarios, templates, rules)
    catalogue, prompts = under.catalogue, under.prompts
    try:
        config = parse_configuration(dict(header["configuration"]), "configuration", _words(header, folder))
    except EmpathyEvalError as error:
        return RebuiltRecipe(
            None, notes=(f"this version cannot read the configuration, so nothing is rendered again: {error.problems[0].what}",)
        )
    if config.dialogues > MOST_DIALOGUES or config.rules.max_turns > MOST_TURNS or config.surplus > 1:
        return RebuiltRecipe(None, notes=("the plan is too large to be drawn again",))
    try:
        recipe = Recipe(config, catalogue, prompts, language=under.language or load_language(config.language))
    except EmpathyEvalError as error:
        return RebuiltRecipe(None, notes=("nothing is checked or rendered again: " + _without(config, rules, error),))
    return RebuiltRecipe(recipe, tuple(_changed(header, recipe)), (*under.notes, *_not_run(config)))


def _words(header: Mapping[str, Any], folder: Path | None) -> WordList | None:
    """The word list of a folder whose configuration names one by its hash.

    Raises:
        InputError: if it is not there, or not the one.
    """
    named = header["configuration"].get("word_list")
    if named is None or folder is None:
        return None
    words = read_word_list(folder / WORD_LIST)
    if words.digest != named:
        raise input_error(folder / WORD_LIST, f'is not the word list "{named}" of the build', "restore the word list of the build")
    return words


def _changed(header: Mapping[str, Any], recipe: Recipe) -> Iterator[str]:
    """What hashes tell to be another here."""
    schemas = {name: digest(schema(name)) for name in dict.fromkeys(kind.answer for kind in recipe.kinds)}
    here = {
        "templates": recipe.templates,
        "schemas": schemas,
        "rules": recipe.language.hashes,
        "scenario_files": recipe.scenario_files,
    }
    for name, hashes in here.items():
        there = header.get(name)
        if there is None:
            continue
        others = sorted(one for one in hashes.keys() | there.keys() if hashes.get(one) != there.get(one))
        if others:
            yield f"{name.replace('_', ' ')}: {', '.join(others)}"
    if header.get("seeds", recipe.catalogue.seed_hash) != recipe.catalogue.seed_hash:
        yield "the seed dialogues of the scenarios"
    named = {f"{scenario.number:03d}": scenario.name for scenario in recipe.catalogue.scenarios}
    there = {number: one["name"] for number, one in header.get("scenarios", {}).items()}
    if others := sorted(number for number, name in there.items() if named.get(number) != name):
        yield f"scenarios: {some_of(others)}"
    if header.get("builder", __version__) != __version__:
        yield f"the version: {header['builder']} built it, this is {__version__}"


def _without(config: Configuration, rules: Path | None, error: EmpathyEvalError) -> str:
    """Why there is no recipe, and what would give one."""
    if rules is None and config.language != ENGLISH:
        return f'its language is "{config.language}", whose rules are not here: give the folder of these rules with --rules'
    said = [f"{problem.where}: {problem.what}; {problem.fix}" for problem in error.problems[:3]]
    return "; ".join(said) + (f"; and {len(error.problems) - 3} more" if len(error.problems) > 3 else "")


def _not_run(config: Configuration) -> Iterator[str]:
    """What of a configuration is code, which is never run to show something."""
    for role, model in config.models.items():
        if not model.remote and model.kind not in ("seed-bank", "given"):
            yield f'the model "{model.kind}" ({role}) is code and is not run: its requests are shown only if they consist of messages alone'
    if config.custom_checks:
        yield f"its own checks are code and are not run: {', '.join(config.custom_checks)}; their refusals are shown as recorded"
