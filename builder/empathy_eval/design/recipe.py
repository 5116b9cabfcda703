"""A recipe: what a build is made of, beside the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.files import packaged_file
from empathy_eval.base.paths import takes_paths
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.configuration import Configuration, checked, load_configuration
from empathy_eval.design.kinds import KINDS, Kind, kinds_of_build
from empathy_eval.design.language import Language, english, lacking, load_language
from empathy_eval.design.prompts import Prompts, load_prompts
from empathy_eval.design.scenarios import CROSSED, Catalogue, load_catalogue

# The configurations of the project, which go by their names.
PACKAGED = ("demo", "full", "seeds", "pilot")


@dataclass(frozen=True)
class Recipe:
    """A configuration, the scenarios with their taxonomy and seeds, the prompts, and the language with its rules.

    ``models`` (by what they are for) and ``checks`` (by the name in the configuration) are objects of one's own.

    Raises:
        InputError: if the language of the configuration lacks something; all that it lacks at once.
    """

    config: Configuration
    catalogue: Catalogue
    prompts: Prompts
    models: Mapping[str, Any] = field(default_factory=dict)
    checks: Mapping[str, Any] = field(default_factory=dict)
    language: Language = field(default_factory=english)

    def __post_init__(self) -> None:
        refuse([*lacking(self.config, self.language), *self._untold(), *self._unknown()])

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of request that a build of it may ask."""
        return kinds_of_build(self.config.crossed > 0)

    @property
    def templates(self) -> dict[str, str]:
        """The hashes of the templates that a build of it uses, by name."""
        used = {one.name for one in self.kinds} | (self.prompts.hashes.keys() - KINDS.keys())
        return {name: self.prompts.hashes[name] for name in sorted(self.prompts.hashes) if name in used}

    @property
    def scenario_files(self) -> dict[str, str]:
        """The digests of what files of the scenario folder say that is no scenario, of those that a build of it uses."""
        used = self.config.crossed or self.config.plan == "seeds"
        return {name: value for name, value in self.catalogue.files.items() if name != CROSSED or used}

    def _untold(self) -> Iterator[Problem]:
        """The templates that are not there."""
        for one in self.kinds:
            if one.reads and one.name not in self.prompts.templates:
                fix = "write it into the folder of templates, after the packaged one in prompt_templates, or leave crossed out"
                yield Problem(f"{one.name}.md.j2", f"is not there, and {self.config.crossed} crossed items are requested", fix)

    def _unknown(self) -> Iterator[Problem]:
        """The scenarios that dialogues are to be drawn from and that there are not."""
        known = {one.number for one in self.catalogue.scenarios}
        for number in self.config.scenarios:
            if number not in known:
                fix = f"use numbers from {min(known)} to {max(known)}" if known else "use the packaged scenarios"
                yield Problem(f"configuration {self.config.name}: scenarios", f"there is no scenario {number}", fix)

    def with_own(self, models: Mapping[str, Any], checks: Sequence[Any] = ()) -> Recipe:
        """This recipe with objects of one's own: models by what they are for, checks beside the others. The configuration names them.

        Raises:
            InputError: if one is without what it goes by, two checks have one name, or the configuration is not valid with them, such as
                for a model that is for nothing.
        """
        if not isinstance(models, Mapping) or not isinstance(checks, Sequence):
            raise input_error("build", "models or checks have the wrong type", "give models={'far': …} and checks=[…]")
        if not models and not checks:
            return self
        names = [getattr(one, "name", None) for one in (*self.checks.values(), *checks)]
        twice = sorted({name for name in names if isinstance(name, str) and names.count(name) > 1})
        repeated = (Problem(f'check "{name}"', "is the name of two checks", "give each check its own name") for name in twice)
        refuse([*_nameless(models, checks), *repeated])
        named = {role: {"kind": "given", "model": one.name, "endpoint": one.endpoint} for role, one in models.items()}
        own = {**self.config.own_checks, **{one.name: {"given": one.signature} for one in checks}}
        raw = {**self.config.raw, "models": {**self.config.raw["models"], **named}}
        raw["checks"] = {**raw["checks"], **({"own": own} if own else {})}
        found = {**self.checks, **{one.name: one for one in checks}}
        return replace(self, config=checked(raw, self.config.name, self.config.words), models={**self.models, **models}, checks=found)


def _nameless(models: Mapping[str, Any], checks: Sequence[Any]) -> Iterator[Problem]:
    """What objects of one's own lack of the texts that they go by."""
    places = [(f"models: {role}", one, ("name", "endpoint"), "models") for role, one in models.items()]
    places += [(f"checks[{number}]", one, ("name", "signature"), "checks") for number, one in enumerate(checks)]
    for where, one, texts, document in places:
        # A text that can be written down: half a surrogate pair cannot.
        said = {name: getattr(one, name, None) for name in texts}
        if missing := [name for name, text in said.items() if not isinstance(text, str) or text != text.encode(errors="ignore").decode()]:
            yield Problem(where, f"{type(one).__name__} has no {', '.join(missing)}", f"see docs/{document}.md for what it has: texts")


@takes_paths
def load_recipe(
    config: str | Path, *, model: str | None = None, base_url: str | None = None, scenarios: str | Path | None = None,
    templates: str | Path | None = None, rules: str | Path | None = None,
) -> Recipe:  # fmt: skip
    """Reads a recipe: a configuration, by the path of its file or by the name of a packaged one, such as ``demo``.

    ``model`` puts that model in the place of all configured ones, ``base_url`` moves their endpoint; ``scenarios``, ``templates`` and
    ``rules`` are folders of one's own in the place of the project's, which are English.

    Raises
    ------
    InputError
        For files that are missing or not valid, with all problems of a file at once; for a language that lacks something, all
            that it lacks at once.
    """
    configuration = load_configuration(configuration_file(config), model=model, base_url=base_url)
    language = load_language(configuration.language, Path(rules) if rules else None)
    brought = {"scenarios": scenarios, "templates": templates}
    refuse([*lacking(configuration, language), *_english_texts(language, [name for name, one in brought.items() if not one])])
    folders = {name: Path(one) if one else None for name, one in brought.items()}
    return Recipe(configuration, load_catalogue(folders["scenarios"], language.code), load_prompts(folders["templates"]), language=language)


def _english_texts(language: Language, packaged: Sequence[str]) -> Iterator[Problem]:
    """The packaged texts that another language cannot be built with."""
    said = {"scenarios": "the packaged scenarios and their seed dialogues", "templates": "the packaged prompts"}
    for name in packaged if language.code != ENGLISH else ():
        yield Problem(f"language: {language.code}", f"{said[name]} are English", f"name your own folder with --{name} DIR")


@takes_paths
def configuration_file(config: str | Path) -> Path:
    """The file of a configuration: a path stays what it is, a bare name that is no file stands for a packaged one.

    Raises:
        InputError: for a name that is neither.
    """
    return packaged_file(config, "configuration", "release", PACKAGED, f"name a file, or one of {', '.join(PACKAGED)}")
