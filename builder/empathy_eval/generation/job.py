"""A job: what is worked through item by item over a ledger, to a line each in its folder. A build of dialogues is one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from empathy_eval.base.errors import EmpathyEvalError, InputError, Problem
from empathy_eval.completions.asker import Asker
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.models import make_models
from empathy_eval.completions.models.own import own_models
from empathy_eval.completions.models.protocol import Model
from empathy_eval.completions.models.toxicity_scorer import weights_of
from empathy_eval.design.carried import carried
from empathy_eval.design.endpoints import Asks
from empathy_eval.design.planning import plans, refuse_unknown_errata
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.quotas import planned
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.build_folder import provenance
from empathy_eval.generation.checks.own import own_checks
from empathy_eval.generation.items import Workshop
from empathy_eval.generation.patterns import Patterns, load_patterns
from empathy_eval.generation.preview import kinds_of_plan
from empathy_eval.generation.stand_ins import try_templates
from empathy_eval.generation.summary import Summary

T = TypeVar("T")


class Item(Protocol):
    """What is worked on at a time; its requests are kept under the id of its dialogue."""

    @property
    def dialogue_id(self) -> str: ...  # noqa: D102


class Result(Protocol):
    """What became of an item: a line of the outcomes."""

    @property
    def dialogue_id(self) -> str: ...  # noqa: D102
    @property
    def status(self) -> str: ...  # noqa: D102

    def to_json(self) -> dict[str, Any]: ...  # noqa: D102


class Job(Protocol):
    """All items, how one is worked on, and what is written of them beside their results.

    ``objects`` are those of one's own by what they are for: what is worked on elsewhere must be sent there.
    """

    @property
    def config(self) -> Asks: ...  # noqa: D102
    @property
    def prompts(self) -> Prompts: ...  # noqa: D102
    @property
    def objects(self) -> dict[str, Any]: ...  # noqa: D102

    def configured(self, config: Any) -> Job:
        """The same job with another share of what its endpoints may be asked at once."""
        ...

    def found(self) -> Job:
        """The job with all that it names beside files. Raises an :class:`InputError` for what cannot be had, all at once."""
        ...

    def models(self, budget: Budget, stopped: Callable[[], EmpathyEvalError | None]) -> dict[str, Model]:
        """The models by what they are for."""
        ...

    def items(self) -> Iterator[Any]:
        """All items, in an order that is always the same."""
        ...

    def planned(self) -> int:
        """How many items there are."""
        ...

    def least(self, item: Any) -> int:
        """The requests that an item takes where each is answered well at once."""
        ...

    def work(self, asker: Asker) -> Callable[[Any], Coroutine[Any, Any, Any]]:
        """How an item is worked on, to its result."""
        ...

    def summary(self, total: int, budget: Budget | None) -> Summary:
        """An empty summary."""
        ...

    def header(self) -> dict[str, Any]:
        """All that the results are a function of, beside the ledger."""
        ...

    def carried(self) -> dict[str, str]:
        """What the results are made under, as texts by the path of their file; empty where the header has all of it."""
        ...


@dataclass(frozen=True)
class Dialogues:
    """The job of making dialogues and their variants by a recipe."""

    recipe: Recipe

    @property
    def config(self) -> Asks:
        """The configuration of the build."""
        return self.recipe.config

    @property
    def prompts(self) -> Prompts:
        """The prompts of the build."""
        return self.recipe.prompts

    @property
    def objects(self) -> dict[str, Any]:
        """Models and checks of one's own."""
        return {**{f"models: {role}": model for role, model in self.recipe.models.items()}, **self.recipe.checks}

    def configured(self, config: Any) -> Dialogues:
        """The same recipe with another configuration."""
        return Dialogues(replace(self.recipe, config=config))

    def found(self) -> Dialogues:
        """With scorer, models, checks and patterns, so that a name that is wrong claims no folder; templates are tried out, and what is
        withdrawn or corrected is looked for in the plan."""
        made, problems = list[Any](), list[Problem]()
        for find in (_own_models, own_checks, lambda recipe: weights_of(recipe.config.checks.toxicity), _patterns, try_templates, _errata):
            try:
                made.append(find(self.recipe))
            except InputError as error:
                problems += error.problems
        if problems:
            raise InputError(problems)
        models, checks, *_ = made
        return Dialogues(replace(self.recipe, models=models, checks=dict(zip(self.recipe.config.own_checks, checks, strict=True))))

    def models(self, budget: Budget, stopped: Callable[[], EmpathyEvalError | None]) -> dict[str, Model]:
        """Those of the configuration, one's own, and the toxicity scorer."""
        return make_models(self.recipe, budget, stopped)

    def items(self) -> Iterator[Any]:
        """The plans of all dialogues."""
        return plans(self.recipe.config, self.recipe.catalogue)

    def planned(self) -> int:
        """How many plans there are."""
        return planned(self.recipe.config, self.recipe.catalogue)

    def least(self, item: Any) -> int:
        """The dialogue, the variants of its helper turns as often as there are candidates, and its crossed items with their checks."""
        config = self.recipe.config
        return sum(kind.times * (config.candidates if kind.variant else 1) for kind in kinds_of_plan(item, config))

    def work(self, asker: Asker) -> Callable[[Any], Coroutine[Any, Any, Any]]:
        """One planned dialogue with all its rewrites."""
        return Workshop(self.recipe, asker, own_checks(self.recipe)).item

    def summary(self, total: int, budget: Budget | None) -> Summary:
        """Counts of dialogues, pairs and reasons."""
        return Summary(total, budget)

    def header(self) -> dict[str, Any]:
        """Configuration, templates, rules, schemas, seeds and weights."""
        return provenance(self.recipe, own_checks(self.recipe))

    def carried(self) -> dict[str, str]:
        """Definitions, rules and templates."""
        return carried(self.header(), self.recipe.catalogue, self.recipe.language, self.recipe.prompts)


def _own_models(recipe: Recipe) -> dict[str, Any]:
    return own_models(recipe.config.asked, recipe.models)


def _errata(recipe: Recipe) -> None:
    refuse_unknown_errata(recipe.config, recipe.catalogue)


def _patterns(recipe: Recipe) -> list[Patterns]:
    """The patterns of all rules, or an :class:`InputError` for those that find nothing, all at once."""
    found, problems = list[Patterns](), list[Problem]()
    for name in recipe.language.rules:
        try:
            found.append(load_patterns(name, recipe.language))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    return found


def job_of(what: Recipe | Job) -> Job:
    """A recipe as the job of building it; a job as it is."""
    return Dialogues(what) if isinstance(what, Recipe) else what


def part_of(items: Iterable[T], number: int, parts: int) -> Iterator[T]:
    """Every ``parts``-th item from the ``number``-th on, counted from 1: the parts of a plan are disjoint and even."""
    return itertools.islice(items, number - 1, None, parts)
