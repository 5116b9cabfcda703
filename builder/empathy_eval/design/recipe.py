"""Recipes: everything that a build depends on besides the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.files import packaged_file
from empathy_eval.base.paths import takes_paths
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.configuration import Configuration, load_configuration, parse_configuration
from empathy_eval.design.kinds import KINDS, Kind, kinds_of_build
from empathy_eval.design.language import Language, english, language_problems, load_language
from empathy_eval.design.prompts import Prompts, load_prompts
from empathy_eval.design.scenarios import CROSSED, Catalogue, load_catalogue

# The configurations of the project, which go by their names.
PACKAGED = ("demo", "full", "seeds", "pilot")


@dataclass(frozen=True)
class Recipe:
    """A configuration, the scenarios with taxonomy and seeds, the prompts, and the language with its rules.

    ``models`` (by role) and ``checks`` (by name in the configuration) are custom objects.

    Raises:
        InputError: if the language of the configuration lacks something; all problems at once.
    """

    config: Configuration
    catalogue: Catalogue
    prompts: Prompts
    models: Mapping[str, Any] = field(default_factory=dict)
    checks: Mapping[str, Any] = field(default_factory=dict)
    language: Language = field(default_factory=english)

    def __post_init__(self) -> None:
        refuse([*language_problems(self.config, self.language), *self._untold(), *self._unknown()])

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of request that its build may send."""
        return kinds_of_build(self.config.crossed > 0)

    @property
    def templates(self) -> dict[str, str]:
        """The hashes of the templates that its build uses, by name."""
        used = {kind.name for kind in self.kinds} | (self.prompts.hashes.keys() - KINDS.keys())
        return {name: self.prompts.hashes[name] for name in sorted(self.prompts.hashes) if name in used}

    @property
    def scenario_files(self) -> dict[str, str]:
        """The digests of the files that its build uses in the scenario folder, except scenarios."""
        used = self.config.crossed or self.config.plan == "seeds"
        return {name: value for name, value in self.catalogue.files.items() if name != CROSSED or used}

    def _untold(self) -> Iterator[Problem]:
        """Problems for templates that are missing."""
        for kind in self.kinds:
            if kind.reads and kind.name not in self.prompts.templates:
                fix = "write it into the folder of templates, after the packaged one in prompt_templates, or leave crossed out"
                yield Problem(f"{kind.name}.md.j2", f"is not there, and {self.config.crossed} crossed items are requested", fix)

    def _unknown(self) -> Iterator[Problem]:
        """Problems for scenarios of the configuration that do not exist."""
        known = {scenario.number for scenario in self.catalogue.scenarios}
        for number in self.config.scenarios:
            if number not in known:
                fix = f"use numbers from {min(known)} to {max(known)}" if known else "use the packaged scenarios"
                yield Problem(f"configuration {self.config.name}: scenarios", f"there is no scenario {number}", fix)

    def with_custom(self, models: Mapping[str, Any], checks: Sequence[Any] = ()) -> Recipe:
        """This recipe with custom models by role, and more custom checks; the configuration names them.

        Raises:
            InputError: if an object has no name, two checks have one name, or the configuration is invalid with them, such as for an
                unknown role.
        """
        if not isinstance(models, Mapping) or not isinstance(checks, Sequence):
            raise input_error("build", "models or checks have the wrong type", "give models={'far': …} and checks=[…]")
        if not models and not checks:
            return self
        names = [getattr(check, "name", None) for check in (*self.checks.values(), *checks)]
        twice = sorted({name for name in names if isinstance(name, str) and names.count(name) > 1})
        repeated = (Problem(f'check "{name}"', "is the name of two checks", "give each check its own name") for name in twice)
        refuse([*_unnamed(models, checks), *repeated])
        named = {role: {"kind": "given", "model": model.name, "endpoint": model.endpoint} for role, model in models.items()}
        own = {**self.config.custom_checks, **{check.name: {"given": check.signature} for check in checks}}
        raw = {**self.config.raw, "models": {**self.config.raw["models"], **named}}
        raw["checks"] = {**raw["checks"], **({"own": own} if own else {})}
        all_checks = {**self.checks, **{check.name: check for check in checks}}
        return replace(
            self, config=parse_configuration(raw, self.config.name, self.config.words), models={**self.models, **models}, checks=all_checks
        )


def _unnamed(models: Mapping[str, Any], checks: Sequence[Any]) -> Iterator[Problem]:
    """Problems for custom objects without the text attributes that identify them."""
    places = [(f"models: {role}", model, ("name", "endpoint"), "models") for role, model in models.items()]
    places += [(f"checks[{number}]", check, ("name", "signature"), "checks") for number, check in enumerate(checks)]
    for where, given, texts, document in places:
        # A text that can be written down: half a surrogate pair cannot.
        values = {name: getattr(given, name, None) for name in texts}
        if missing := [name for name, text in values.items() if not isinstance(text, str) or text != text.encode(errors="ignore").decode()]:
            yield Problem(where, f"{type(given).__name__} has no {', '.join(missing)}", f"see docs/{document}.md for what it has: texts")


@takes_paths
def load_recipe(
    config: str | Path, *, model: str | None = None, base_url: str | None = None, scenarios: str | Path | None = None,
    templates: str | Path | None = None, rules: str | Path | None = None,
) -> Recipe:  # fmt: skip
    """Reads a recipe: a configuration by path, or a packaged one by name, such as ``demo``.

    ``model`` replaces all configured models, and ``base_url`` their endpoint. ``scenarios``, ``templates`` and ``rules`` are folders that
    replace the packaged ones, which are English.

    Raises
    ------
    InputError
        For missing or invalid files, with all problems of a file at once; for a language that lacks something, with all that it
        lacks.
    """
    configuration = load_configuration(configuration_file(config), model=model, base_url=base_url)
    language = load_language(configuration.language, Path(rules) if rules else None)
    brought = {"scenarios": scenarios, "templates": templates}
    packaged = [name for name, folder in brought.items() if not folder]
    refuse([*language_problems(configuration, language), *_english_texts(language, packaged)])
    folders = {name: Path(folder) if folder else None for name, folder in brought.items()}
    return Recipe(configuration, load_catalogue(folders["scenarios"], language.code), load_prompts(folders["templates"]), language=language)


def _english_texts(language: Language, packaged: Sequence[str]) -> Iterator[Problem]:
    """Problems for packaged texts in another language than English."""
    texts = {"scenarios": "the packaged scenarios and their seed dialogues", "templates": "the packaged prompts"}
    for name in packaged if language.code != ENGLISH else ():
        yield Problem(f"language: {language.code}", f"{texts[name]} are English", f"name your own folder with --{name} DIR")


@takes_paths
def configuration_file(config: str | Path) -> Path:
    """The file of a configuration: a path, or the name of a packaged one. Raises InputError for a name that is neither."""
    return packaged_file(config, "configuration", "release", PACKAGED, f"name a file, or one of {', '.join(PACKAGED)}")
