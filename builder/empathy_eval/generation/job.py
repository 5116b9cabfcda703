"""A job: what is worked through item by item over a ledger, to a line each in its folder. A build of dialogues is one."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, replace
from operator import methodcaller
from typing import Any, Generic, Protocol, TypeVar

from empathy_eval.base.errors import EmpathyEvalError, JobError, Problem, collecting, job_error, refuse
from empathy_eval.completions.asker import Asker, settled
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.models import make_models
from empathy_eval.completions.models.own import own_models
from empathy_eval.completions.models.toxicity_scorer import weights_of
from empathy_eval.completions.requests import Flaw, Model, NoAnswer
from empathy_eval.design.bundled_definitions import carried
from empathy_eval.design.endpoints import Asks
from empathy_eval.design.kinds import rewritings
from empathy_eval.design.planning import Plan, PlannedTurn, ends, kinds_of_plan, plans, refuse_unknown_errata, seed_plan, some_plans
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.quotas import planned
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.taxonomy import crossable
from empathy_eval.generation import crossed_by_models, rewriting, self_chat
from empathy_eval.generation.build_folder import provenance
from empathy_eval.generation.checks.own import Check, flaws_by, own_checks
from empathy_eval.generation.crossed_by_models import CrossedItemWriter
from empathy_eval.generation.outcomes import Dialogue, ItemTrail, Outcome, Turn
from empathy_eval.generation.patterns import load_patterns
from empathy_eval.generation.rewriting import Rewriter
from empathy_eval.generation.self_chat import generate
from empathy_eval.generation.summary import Summary

# Words of a turn of which nothing is planned: the paper's turns have 28.7.
WORDS_A_TURN = 29


def stand_in(plan: Plan, recipe: Recipe) -> tuple[Dialogue, tuple[PlannedTurn, ...]]:
    """What rewriting requests are shown with before there is a dialogue: a seed, of the same scenario if it has one; else mere words."""
    seeds = [(one.number, one.seed) for one in recipe.catalogue.scenarios if one.seed]
    if not seeds:
        said = (" ".join(["word"] * (turn.lengths.get("reference") or WORDS_A_TURN)) for turn in plan.turns)
        turns = tuple(Turn(turn.role, text, turn.strategy) for turn, text in zip(plan.turns, said, strict=True))
        return Dialogue(plan.dialogue_id, plan.scenario_id, "", turns, (), "seed", "", "", *plan.voices), plan.turns
    number, seed = next((one for one in seeds if one[0] == plan.scenario_id), seeds[0])
    turns = tuple(Turn("helper" if turn.role == "helper" else "seeker", turn.text, turn.strategy) for turn in seed.turns)
    dialogue = Dialogue(plan.dialogue_id, plan.scenario_id, seed.description, turns, (), "seed", "", "", *plan.voices)
    return dialogue, seed_plan(number, seed, recipe.catalogue, recipe.config.language).turns


def try_templates(recipe: Recipe) -> None:
    """Renders requests of each kind, so that a template that cannot be rendered is known before anything is paid for.

    They are of the first, the middle and the last dialogue, and in each of the first, the middle and the last scene, with controls and
    without: what a template says only of others is not tried.

    Raises:
        InputError: for such a template, and for a plan that cannot be drawn.
    """
    for plan in some_plans(recipe.config, recipe.catalogue):
        self_chat.messages(recipe, plan)
        dialogue, turns = stand_in(plan, recipe)
        found = rewriting.scenes(dialogue, turns, recipe.language)
        controlled = [scene for scene in found if scene.planned.controls] or found
        for scene in {one.place: one for one in (*ends(found), *ends(controlled))}.values():
            for kind in rewritings(controls=scene in controlled):
                rewriting.messages(recipe, kind, scene)
        for scene in ends([one for one in found if one.place in crossable([turn.role for turn in turns])]) if recipe.config.crossed else ():
            crossed_by_models.messages(recipe, scene)
            for trial in crossed_by_models.trials(scene, "what the seeker says", "what the helper says"):
                trial.messages(recipe)
    recipe.prompts.render("repair", violations=["what is wrong"])


def try_checks(recipe: Recipe) -> None:
    """Lets checks of one's own look at dialogues and variants, so that one that fails is known before anything is paid for.

    They see the first, the middle and the last dialogue, each variant of three of its helper turns, and as a text the reference. What
    they find wrong with these texts is not told.

    Raises:
        InputError: for checks that cannot be made or that fail, with the first fault of each; and for a plan that cannot be drawn.
    """
    checks, problems = own_checks(recipe), dict[str, Problem]()
    for look in _looks(recipe) if checks else ():
        for one in checks:
            try:
                flaws_by([one], look)
            except JobError as error:
                (fault,) = error.problems
                problems.setdefault(one.name, Problem(fault.where, fault.what, "fix it, or leave it out"))
    refuse(problems.values())


def _looks(recipe: Recipe) -> Iterator[Callable[[Check], Iterable[Flaw]]]:
    """What a check is asked about dialogues and variants that stand in."""
    for plan in some_plans(recipe.config, recipe.catalogue):
        dialogue, turns = stand_in(plan, recipe)
        yield methodcaller("dialogue", dialogue.description, dialogue.turns)
        for scene in ends(rewriting.scenes(dialogue, turns, recipe.language)):
            for kind in rewritings(controls=True):
                yield methodcaller("variant", kind.variant or "", scene.reference.text, scene)


class ProgressListener(Protocol):
    """A result that says what became of its item."""

    @property
    def status(self) -> str: ...  # noqa: D102


T = TypeVar("T")
R = TypeVar("R", bound=ProgressListener)
# Items that are worked on at once. An item rewrites all its turns at once, so this many keep any endpoint busy.
WINDOW = 256


@dataclass(frozen=True)
class ItemPipeline:
    """Everything an item needs to be worked on."""

    recipe: Recipe
    asker: Asker
    checks: tuple[Check, ...] = ()

    async def item(self, plan: Plan) -> Outcome:
        """One planned dialogue with all its rewrites, ask by ask, to its outcome."""
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
            pairs, crossed = await settled(*asked)
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
    """The results of items in their order, at most ``window`` at work. After an error nothing more is sent, and what is under way ends.

    ``ahead`` are items with their places that must ask. They are begun while those before them are replayed, so that a run which is
    killed during a long replay has made progress.
    """
    running, early = deque[asyncio.Task[R]](), _Ahead(work, ahead, window)
    try:
        for place, item in enumerate(items):
            if asker.stopped:  # what is in the ledger is heard of at once, so a replay would not notice
                raise asker.stopped
            early.begin(place, running)
            running.append(early.tasks.pop(place) if place in early.tasks else asyncio.create_task(work(item)))
            # Replays wait for nothing: without this, answers that come would wait for a whole window of them.
            await asyncio.sleep(0)
            if len(running) >= window:
                yield await running.popleft()
        while running:
            yield await running.popleft()
    finally:
        if running or early.tasks:
            asker.stopped = asker.stopped or job_error("build", "stopped by an error", "run the same command to continue")
        await asyncio.gather(*running, *early.tasks.values(), return_exceptions=True)


class _Ahead(Generic[T, R]):
    """Items that are begun before their turn: ``tasks`` by their place, at most ``most``."""

    def __init__(self, work: Callable[[T], Coroutine[Any, Any, R]], items: Iterable[tuple[int, T]], most: int) -> None:
        self._work, self._items, self._most = work, iter(items), most
        self._left = True
        self.tasks = dict[int, asyncio.Task[R]]()

    def begin(self, place: int, running: Iterable[asyncio.Task[R]]) -> None:
        """Begins items of this place or later while fewer than the most are at work, those ``running`` in their turn among them."""
        while self._left and sum(not one.done() for one in (*running, *self.tasks.values())) < self._most:
            if len(self.tasks) >= self._most and not self._let_go():
                return
            found = next((one for one in self._items if one[0] >= place), None)
            self._left = found is not None
            if found:
                self.tasks[found[0]] = asyncio.create_task(self._work(found[1]))

    def _let_go(self) -> bool:
        """Lets go of the last item that has ended, if there is one: in its turn it is replayed. What is missing would be asked again."""
        ended = [place for place, one in self.tasks.items() if one.done() and not one.exception() and one.result().status != "missing"]
        return bool(ended and self.tasks.pop(max(ended)))


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

    def found(self) -> Job:
        """The job with all that it names beside files. Raises an :class:`InputError` for what cannot be had, all at once."""

    def models(self, budget: Budget, stopped: Callable[[], EmpathyEvalError | None]) -> dict[str, Model]:
        """The models by what they are for."""

    def items(self) -> Iterator[Any]:
        """All items, in an order that is always the same."""

    def planned(self) -> int:
        """How many items there are."""

    def least(self, item: Any) -> int:
        """The requests that an item takes where each is answered well at once."""

    def work(self, asker: Asker) -> Callable[[Any], Coroutine[Any, Any, Any]]:
        """How an item is worked on, to its result."""

    def summary(self, total: int, budget: Budget | None) -> Summary:
        """An empty summary."""

    def header(self) -> dict[str, Any]:
        """All that the results are a function of, beside the ledger."""

    def carried(self) -> dict[str, str]:
        """What the results are made under, as texts by the path of their file; empty where the header has all of it."""


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
        config, made, problems = self.recipe.config, list[Any](), list[Problem]()
        for find in (
            lambda: own_models(config.asked, self.recipe.models),
            lambda: own_checks(self.recipe),
            lambda: weights_of(config.checks.toxicity),
            lambda: _try_patterns(self.recipe),
            lambda: try_templates(self.recipe),
            lambda: refuse_unknown_errata(config, self.recipe.catalogue),
        ):
            with collecting(problems):
                made.append(find())
        refuse(problems)
        models, checks, *_ = made
        return Dialogues(replace(self.recipe, models=models, checks=dict(zip(config.own_checks, checks, strict=True))))

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
        return ItemPipeline(self.recipe, asker, own_checks(self.recipe)).item

    def summary(self, total: int, budget: Budget | None) -> Summary:
        """Counts of dialogues, pairs and reasons."""
        return Summary(total, budget)

    def header(self) -> dict[str, Any]:
        """Configuration, templates, rules, schemas, seeds and weights."""
        return provenance(self.recipe, own_checks(self.recipe))

    def carried(self) -> dict[str, str]:
        """Definitions, rules and templates."""
        return carried(self.header(), self.recipe.catalogue, self.recipe.language, self.recipe.prompts)


def _try_patterns(recipe: Recipe) -> None:
    """Raises an :class:`InputError` for rules that find nothing, with all such at once."""
    problems = list[Problem]()
    for name in recipe.language.rules:
        with collecting(problems):
            load_patterns(name, recipe.language)
    refuse(dict.fromkeys(problems))


def job_of(what: Recipe | Job) -> Job:
    """A recipe as the job of building it; a job as it is."""
    return Dialogues(what) if isinstance(what, Recipe) else what


def part_of(items: Iterable[T], number: int, parts: int) -> Iterator[T]:
    """Every ``parts``-th item from the ``number``-th on, counted from 1: the parts of a plan are disjoint and even."""
    return itertools.islice(items, number - 1, None, parts)
