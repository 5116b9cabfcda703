"""Choosing: of several candidates of a variant the accepted one that a frozen word list tells worst.

Candidate ``k``, from 0, has the samples ``1000 k``, ``1000 k + 1`` and so on: one candidate asks for what was always asked for, and neither
more candidates nor more samples ask again for what was answered.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from empathy_eval.completions.asker import Answer, settled
from empathy_eval.design.configuration import APART, Configuration
from empathy_eval.design.kinds import Kind
from empathy_eval.design.word_list import NOT_CHOSEN
from empathy_eval.generation.outcomes import Candidate, ItemTrail

# A text and its toxicity.
Judged = tuple[str, float | None]
# Asks for a candidate, whose first sample has that number; what is left behind goes into a trail of its own.
Ask = Callable[[int, ItemTrail], Coroutine[Any, Any, Answer[Judged] | None]]


async def hardest(ask: Ask, config: Configuration, kind: Kind, trail: ItemTrail) -> Answer[Judged] | None:
    """The candidate that words alone tell worst, the first of equals; None where no candidate passed.

    Each uses up its own samples and repairs, and none sees another. Those that passed and were not chosen are in the trail.

    Raises:
        NoAnswer: if one of them was not answered; all others have been by then.
    """
    if config.words is None:
        return await ask(0, trail)
    # What is counted once is counted once over all of them.
    trails = [ItemTrail(usage=trail.usage, keys=trail.keys) for _ in range(config.candidates)]
    found = await settled(*(ask(number * APART, own) for number, own in enumerate(trails)))
    passed = {number: answer for number, answer in enumerate(found) if answer is not None}
    chosen = None
    if passed:
        chosen = list(passed)[config.words.hardest(kind.variant or "", [answer.value[0] for answer in passed.values()])]
    for number, own in enumerate(trails):
        if number in passed and number != chosen:
            own.candidates[-1] = replace(own.candidates[-1], reasons=(NOT_CHOSEN,))
    _follow(trail, trails, config.samples * (1 + config.repairs), failed=not passed)
    return None if chosen is None else passed[chosen]


def _follow(trail: ItemTrail, trails: Sequence[ItemTrail], attempts: int, *, failed: bool) -> None:
    """Takes over what candidates left behind, one after the other, their texts numbered on; only where all failed a failure is final."""
    for number, own in enumerate(trails):
        last = failed and number == len(trails) - 1
        trail.failures += [(number * attempts + at, replace(one, final=one.final and last)) for at, one in own.failures]
        for one in own.candidates:
            trail.candidates.append(replace(one, attempt=1 + sum(_place(before) == _place(one) for before in trail.candidates)))


def _place(one: Candidate) -> tuple[str, int]:
    return one.kind, one.turn
