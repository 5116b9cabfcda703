"""The items of a build: each planned dialogue to its outcome, all of them in plan order through a bounded window."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

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

T = TypeVar("T")
R = TypeVar("R")
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
    asker: Asker, work: Callable[[T], Coroutine[Any, Any, R]], items: Iterable[T], window: int = WINDOW
) -> AsyncGenerator[R, None]:
    """The results of items in their order, at most ``window`` at work. After an error nothing more is sent, and what is under way ends."""
    running: deque[asyncio.Task[R]] = deque()
    try:
        for item in items:
            if asker.stopped:  # what is in the ledger is heard of at once, so a replay would not notice
                raise asker.stopped
            running.append(asyncio.create_task(work(item)))
            if len(running) >= window:
                yield await running.popleft()
        while running:
            yield await running.popleft()
    finally:
        if running:
            asker.stopped = asker.stopped or job_error("build", "stopped by an error", "run the same command to go on")
        await asyncio.gather(*running, return_exceptions=True)
