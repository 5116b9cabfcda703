"""Jobs: items worked through over a ledger, each to a line in a folder. A build of dialogues is one."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, replace
from operator import methodcaller
from typing import Any, Generic, Protocol, TypeVar

from empathy_eval.base.errors import EmpathyEvalError, JobError, Problem, collecting, job_error, refuse
from empathy_eval.base.hashing import digest
from empathy_eval.base.schemas import schema
from empathy_eval.base.version import __version__
from empathy_eval.completions.asker import Asker, gather_all
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.models import make_models
from empathy_eval.completions.models.custom import custom_models
from empathy_eval.completions.models.toxicity_scorer import weights_of
from empathy_eval.completions.requests import Flaw, Model, NoAnswer
from empathy_eval.design.bundled_definitions import definition_files, definitions_of
from empathy_eval.design.endpoints import JobConfig
from empathy_eval.design.kinds import rewritings
from empathy_eval.design.planning import Plan, PlannedTurn, kinds_of_plan, plans, probes, refuse_unknown_errata, seed_plan, some_plans
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.quotas import planned_count, quotas
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.taxonomy import crossable
from empathy_eval.generation import crossed_by_models, rewriting, self_chat
from empathy_eval.generation.checks.custom import Check, custom_checks, flaws_by
from empathy_eval.generation.crossed_by_models import CrossedItemWriter
from empathy_eval.generation.outcomes import Dialogue, ItemTrail, Outcome, Turn
from empathy_eval.generation.patterns import load_patterns
from empathy_eval.generation.rewriting import Rewriter
from empathy_eval.generation.self_chat import generate
from empathy_eval.generation.summary import Summary

# Words of a turn of which nothing is planned: the paper's turns have 28.7.
WORDS_A_TURN = 29
T = TypeVar("T")
# Items that are worked on at once. An item rewrites all its turns at once, so this many keep any endpoint busy.
WINDOW = 256


def placeholder_dialogue(plan: Plan, recipe: Recipe) -> tuple[Dialogue, tuple[PlannedTurn, ...]]:
    """A dialogue for rewriting requests before there is one: a seed, of the same scenario if possible; else filler words."""
    seeds = [(scenario.number, scenario.seed) for scenario in recipe.catalogue.scenarios if scenario.seed]
    if not seeds:
        texts = (" ".join(["word"] * (turn.lengths.get("reference") or WORDS_A_TURN)) for turn in plan.turns)
        turns = tuple(Turn(turn.role, text, turn.strategy) for turn, text in zip(plan.turns, texts, strict=True))
        return Dialogue(plan.dialogue_id, plan.scenario_id, "", turns, (), "seed", "", "", *plan.voices), plan.turns
    number, seed = next((entry for entry in seeds if entry[0] == plan.scenario_id), seeds[0])
    turns = tuple(Turn("helper" if turn.role == "helper" else "seeker", turn.text, turn.strategy) for turn in seed.turns)
    dialogue = Dialogue(plan.dialogue_id, plan.scenario_id, seed.description, turns, (), "seed", "", "", *plan.voices)
    return dialogue, seed_plan(number, seed, recipe.catalogue, recipe.config.language).turns


def try_templates(recipe: Recipe) -> None:
    """Renders requests of each kind, so that a failing template is known before anything is paid for.

    They come from the first, middle and last dialogue, and in each from the first, middle and last scene, with and without controls.
    Branches for other cases are not tried.

    Raises:
        InputError: for such a template, and for a plan that cannot be drawn.
    """
    for plan in some_plans(recipe.config, recipe.catalogue):
        self_chat.messages(recipe, plan)
        dialogue, turns = placeholder_dialogue(plan, recipe)
        scenes = rewriting.scenes(dialogue, turns, recipe.language)
        controlled = [scene for scene in scenes if scene.planned.controls] or scenes
        for scene in {scene.place: scene for scene in (*probes(scenes), *probes(controlled))}.values():
            for kind in rewritings(controls=scene in controlled):
                rewriting.messages(recipe, kind, scene)
        for scene in (
            probes([scene for scene in scenes if scene.place in crossable([turn.role for turn in turns])]) if recipe.config.crossed else ()
        ):
            crossed_by_models.messages(recipe, scene)
            for trial in crossed_by_models.trials(scene, "what the seeker says", "what the helper says"):
                trial.messages(recipe)
    recipe.prompts.render("repair", violations=["what is wrong"])


def try_checks(recipe: Recipe) -> None:
    """Runs custom checks on dialogues and variants, so that a failing one is known before anything is paid for.

    They see the first, middle and last dialogue, and the reference as each variant of three helper turns. Their findings about these texts
    are ignored.

    Raises:
        InputError: for checks that cannot be created or that fail, with the first fault of each; and for a plan that cannot be drawn.
    """
    checks, problems = custom_checks(recipe), dict[str, Problem]()
    for look in _check_calls(recipe) if checks else ():
        for check in checks:
            try:
                flaws_by([check], look)
            except JobError as error:
                (fault,) = error.problems
                problems.setdefault(check.name, Problem(fault.where, fault.what, "fix it, or leave it out"))
    refuse(problems.values())


def _check_calls(recipe: Recipe) -> Iterator[Callable[[Check], Iterable[Flaw]]]:
    """The calls of a check for placeholder dialogues and variants."""
    for plan in some_plans(recipe.config, recipe.catalogue):
        dialogue, turns = placeholder_dialogue(plan, recipe)
        yield methodcaller("dialogue", dialogue.description, dialogue.turns)
        for scene in probes(rewriting.scenes(dialogue, turns, recipe.language)):
            for kind in rewritings(controls=True):
                yield methodcaller("variant", kind.variant or "", scene.reference.text, scene)


class ProgressListener(Protocol):
    """A result with a status."""

    @property
    def status(self) -> str: ...  # noqa: D102


R = TypeVar("R", bound=ProgressListener)


@dataclass(frozen=True)
class ItemPipeline:
    """Everything that an item needs to be worked on."""

    recipe: Recipe
    asker: Asker
    checks: tuple[Check, ...] = ()

    async def item(self, plan: Plan) -> Outcome:
        """Works on one planned dialogue with all its rewrites, to its outcome."""
        trail = ItemTrail()
        identity = (plan.dialogue_id, plan.scenario_id)
        try:
            dialogue = await generate(self.asker, self.recipe, self.checks, plan, trail)
            if dialogue is None:
                reasons = tuple(sorted({reason for _, failure in trail.failures for reason in failure.reasons}))
                return Outcome(*identity, "rejected", reasons, failures=trail.sorted_failures(), usage=trail.plain_usage())
            makers = self.asker, self.recipe, self.checks, trail
            # What is asked of a dialogue is asked at once, so that a round of a batch has all of it.
            asked: list[Coroutine[Any, Any, Any]] = [
                Rewriter(*makers).pairs(dialogue, plan.turns),
                CrossedItemWriter(*makers).items(dialogue, plan),
            ]
            pairs, crossed = await gather_all(*asked)
        except NoAnswer as error:
            return Outcome(*identity, "missing", (str(error),))
        return Outcome(
            *identity, "accepted", (), dialogue, pairs, trail.sorted_failures(), trail.candidates_beside(pairs), trail.plain_usage(),
            crossed,
        )  # fmt: skip


async def outcomes(
    asker: Asker, work: Callable[[T], Coroutine[Any, Any, R]], items: Iterable[T], window: int = WINDOW,
    ahead: Iterable[tuple[int, T]] = (),
) -> AsyncGenerator[R, None]:  # fmt: skip
    """The results of items in order, at most ``window`` at work. After an error nothing more is sent, and pending requests end.

    ``ahead`` are items with their indices that must send requests. They are begun while earlier items are replayed, so that a run killed
    during a long replay has made progress.
    """
    running, early = deque[asyncio.Task[R]](), _Ahead(work, ahead, window)
    try:
        for index, item in enumerate(items):
            if asker.stopped:  # what is in the ledger is heard of at once, so a replay would not notice
                raise asker.stopped
            early.begin(index, running)
            running.append(early.tasks.pop(index) if index in early.tasks else asyncio.create_task(work(item)))
            # Replays wait for nothing: without this, answers that come would wait for a whole window of them.
            await asyncio.sleep(0)
            if len(running) >= window:
                yield await running.popleft()
        while running:
            yield await running.popleft()
    finally:
        if running or early.tasks:
            asker.stop(job_error("build", "stopped by an error", "run the same command to continue"))
        await asyncio.gather(*running, *early.tasks.values(), return_exceptions=True)


class _Ahead(Generic[T, R]):
    """Items begun before their turn: ``tasks`` by index, at most ``most``."""

    def __init__(self, work: Callable[[T], Coroutine[Any, Any, R]], items: Iterable[tuple[int, T]], most: int) -> None:
        self._work, self._items, self._most = work, iter(items), most
        self._left = True
        self.tasks = dict[int, asyncio.Task[R]]()

    def begin(self, index: int, running: Iterable[asyncio.Task[R]]) -> None:
        """Begins items at this index or later while fewer than the maximum are at work, counting those ``running`` in turn."""
        while self._left and sum(not task.done() for task in (*running, *self.tasks.values())) < self._most:
            if len(self.tasks) >= self._most and not self._let_go():
                return
            next_item = next((entry for entry in self._items if entry[0] >= index), None)
            self._left = next_item is not None
            if next_item:
                self.tasks[next_item[0]] = asyncio.create_task(self._work(next_item[1]))

    def _let_go(self) -> bool:
        """Drops the last finished item, if any: it is replayed in its turn. A missing one is kept, as it would be requested again."""
        ended = [index for index, task in self.tasks.items() if task.done() and not task.exception() and task.result().status != "missing"]
        return bool(ended and self.tasks.pop(max(ended)))


class Job(Protocol):
    """The items of a job, how one is worked on, and what is written besides results.

    ``objects`` are custom objects by purpose, which other processes need too.
    """

    @property
    def config(self) -> JobConfig: ...  # noqa: D102
    @property
    def prompts(self) -> Prompts: ...  # noqa: D102
    @property
    def objects(self) -> dict[str, Any]: ...  # noqa: D102

    def configured(self, config: Any) -> Job:
        """The same job with another share of the rate limits."""

    def resolved(self) -> Job:
        """The job with all custom objects loaded. Raises an :class:`InputError` for those that are not available, all at once."""

    def models(self, budget: Budget, stopped: Callable[[], EmpathyEvalError | None]) -> dict[str, Model]:
        """The models by role."""

    def items(self) -> Iterator[Any]:
        """All items, always in the same order."""

    def planned(self) -> int:
        """The number of items."""

    def least(self, item: Any) -> int:
        """The minimum number of requests of an item."""

    def work(self, asker: Asker) -> Callable[[Any], Coroutine[Any, Any, Any]]:
        """The coroutine function that works on an item."""

    def summary(self, total: int, budget: Budget | None) -> Summary:
        """An empty summary."""

    def header(self) -> dict[str, Any]:
        """Everything that the results depend on, besides the ledger."""

    def carried(self) -> dict[str, str]:
        """Definition files as texts by path; empty if the header holds everything."""


@dataclass(frozen=True)
class Dialogues:
    """The job that writes dialogues and their variants by a recipe."""

    recipe: Recipe

    @property
    def config(self) -> JobConfig:
        """The configuration of the build."""
        return self.recipe.config

    @property
    def prompts(self) -> Prompts:
        """The prompts of the build."""
        return self.recipe.prompts

    @property
    def objects(self) -> dict[str, Any]:
        """Custom models and checks."""
        return {**{f"models: {role}": model for role, model in self.recipe.models.items()}, **self.recipe.checks}

    def configured(self, config: Any) -> Dialogues:
        """The same recipe with another configuration."""
        return Dialogues(replace(self.recipe, config=config))

    def resolved(self) -> Dialogues:
        """Loads scorer, models, checks and patterns, and tries templates, so that a mistake claims no folder; errata are looked up in the
        plan.
        """
        config, results, problems = self.recipe.config, list[Any](), list[Problem]()
        for find in (
            lambda: custom_models(config.active_models, self.recipe.models),
            lambda: custom_checks(self.recipe),
            lambda: weights_of(config.checks.toxicity),
            lambda: _try_patterns(self.recipe),
            lambda: try_templates(self.recipe),
            lambda: refuse_unknown_errata(config, self.recipe.catalogue),
        ):
            with collecting(problems):
                results.append(find())
        refuse(problems)
        models, checks, *_ = results
        return Dialogues(replace(self.recipe, models=models, checks=dict(zip(config.custom_checks, checks, strict=True))))

    def models(self, budget: Budget, stopped: Callable[[], EmpathyEvalError | None]) -> dict[str, Model]:
        """The configured and custom models, and the toxicity scorer."""
        return make_models(self.recipe, budget, stopped)

    def items(self) -> Iterator[Any]:
        """The plans of all dialogues."""
        return plans(self.recipe.config, self.recipe.catalogue)

    def planned(self) -> int:
        """The number of plans."""
        return planned_count(self.recipe.config, self.recipe.catalogue)

    def least(self, item: Any) -> int:
        """The dialogue, all candidates of its variants, and its crossed items with their checks."""
        config = self.recipe.config
        return sum(kind.times * (config.candidates if kind.variant else 1) for kind in kinds_of_plan(item, config))

    def work(self, asker: Asker) -> Callable[[Any], Coroutine[Any, Any, Any]]:
        """Works on one planned dialogue with all its rewrites."""
        return ItemPipeline(self.recipe, asker, custom_checks(self.recipe)).item

    def summary(self, total: int, budget: Budget | None) -> Summary:
        """Counts of dialogues, pairs and reasons."""
        return Summary(total, budget)

    def header(self) -> dict[str, Any]:
        """Configuration, templates, rules, schemas, seeds and weights."""
        recipe, config, catalogue = self.recipe, self.recipe.config, self.recipe.catalogue
        checks = custom_checks(recipe)
        by_number = quotas(config, catalogue).items()
        scenarios = {f"{number:03d}": {"name": catalogue[number].name, "quota": quota} for number, quota in by_number}
        return {
            "configuration": config.published,
            "identity": config.identity,
            "templates": recipe.templates,
            "rules": recipe.language.hashes,
            "schemas": {name: digest(schema(name)) for name in dict.fromkeys(kind.answer for kind in recipe.kinds)},
            "seeds": catalogue.seed_hash,
            "scenario_files": recipe.scenario_files,
            "definitions": definitions_of({"scenarios": scenarios}, catalogue),
            "scenarios": scenarios,
            "toxicity_weights": weights_of(config.checks.toxicity),
            **({"checks": {check.name: check.signature for check in checks}} if checks else {}),
            "builder": __version__,
        }

    def carried(self) -> dict[str, str]:
        """Definitions, rules and templates."""
        return definition_files(self.header(), self.recipe.catalogue, self.recipe.language, self.recipe.prompts)


def _try_patterns(recipe: Recipe) -> None:
    """Raises an :class:`InputError` for rules that can never match, all at once."""
    problems = list[Problem]()
    for name in recipe.language.rules:
        with collecting(problems):
            load_patterns(name, recipe.language)
    refuse(dict.fromkeys(problems))


def job_of(what: Recipe | Job) -> Job:
    """A recipe as a build job; a job unchanged."""
    return Dialogues(what) if isinstance(what, Recipe) else what


def shard(items: Iterable[T], number: int, parts: int) -> Iterator[T]:
    """Every ``parts``-th item from the ``number``-th on, counted from 1: shards are disjoint and even."""
    return itertools.islice(items, number - 1, None, parts)
