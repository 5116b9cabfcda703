"""The items of a build: each planned dialogue to its outcome, all of them in plan order through a bounded window."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from empathy_eval.base.errors import job_error
from empathy_eval.completions.asker import Asker, settled
from empathy_eval.completions.models.protocol import NoAnswer
from empathy_eval.design.planning import Plan
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.checks.own import Check
from empathy_eval.generation.crossed_by_models import Crosser
from empathy_eval.generation.outcomes import ItemTrail, Outcome
from empathy_eval.generation.rewriting import Rewriter
from empathy_eval.generation.self_chat import generate


class Told(Protocol):
    """A result that says what became of its item."""

    @property
    def status(self) -> str: ...  # noqa: D102


T = TypeVar("T")
R = TypeVar("R", bound=Told)
# Items that are worked on at once. An item rewrites all its turns at once, so this many keep any endpoint busy.
WINDOW = 256


@dataclass(frozen=True)
class Workshop:
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
            asked: list[Coroutine[Any, Any, Any]] = [Rewriter(*makers).pairs(dialogue, plan.turns), Crosser(*makers).items(dialogue, plan)]
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
