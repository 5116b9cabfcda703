"""The items of a build: each planned dialogue to its outcome, all of them in plan order through a bounded window."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass

from empathy_eval.base.errors import job_error
from empathy_eval.completions.asker import Asker
from empathy_eval.completions.models.protocol import NoAnswer
from empathy_eval.design.planning import Plan
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.checks.own import Check
from empathy_eval.generation.outcomes import ItemTrail, Outcome
from empathy_eval.generation.rewriting import Rewriter
from empathy_eval.generation.self_chat import generate

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
            pairs = await Rewriter(self.asker, self.recipe, self.checks, trail).pairs(dialogue, plan.turns)
        except NoAnswer as error:
            return Outcome(*identity, "missing", (str(error),))
        return Outcome(
            *identity, "accepted", (), dialogue, pairs, trail.sorted_failures(), trail.candidates_beside(pairs), trail.plain_usage()
        )


async def outcomes(workshop: Workshop, items: Iterable[Plan], window: int = WINDOW) -> AsyncGenerator[Outcome, None]:
    """The outcomes in plan order, at most ``window`` items at work. After an error nothing more is sent, and what is under way ends."""
    running: deque[asyncio.Task[Outcome]] = deque()
    try:
        for plan in items:
            if workshop.asker.stopped:  # what is in the ledger is heard of at once, so a replay would not notice
                raise workshop.asker.stopped
            running.append(asyncio.create_task(workshop.item(plan)))
            if len(running) >= window:
                yield await running.popleft()
        while running:
            yield await running.popleft()
    finally:
        if running:
            workshop.asker.stopped = workshop.asker.stopped or job_error("build", "stopped by an error", "run the same command to go on")
        await asyncio.gather(*running, return_exceptions=True)
