"""The seed bank: a model that answers from seed dialogues. The offline default."""

from __future__ import annotations

import json
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.completions.requests import About, Completion, Request
from empathy_eval.design.errata import original_id
from empathy_eval.design.kinds import KINDS, SELF_CHAT
from empathy_eval.design.prompts import Message
from empathy_eval.design.scenarios import Catalogue, Seed


class SeedBank:
    """A model that answers from the curated seeds. Its name has their hash, so that edited seeds are requested again."""

    endpoint = "seed-bank"

    def __init__(self, catalogue: Catalogue) -> None:
        self.name = bank_of(catalogue.seed_hash)
        self._seeds = {f"{scenario.number:03d}-seed": scenario.seed for scenario in catalogue.scenarios if scenario.seed}

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The messages, under the name of this bank."""
        return {"model": self.name, "messages": messages, "schema": answer_schema}

    async def complete(self, request: Request) -> Completion:
        """The answer in the seed file.

        Raises:
            InputError: for anything it does not hold.
        """
        return Completion(json.dumps(self._answer(request.about), ensure_ascii=False), "stop", self.name)

    async def close(self) -> None:
        """Nothing to close."""

    def _answer(self, about: About) -> dict[str, Any]:
        seed = self._seeds.get(original_id(about.dialogue_id))
        if seed is None:
            raise self._not_held(about)
        if about.kind == SELF_CHAT.name:
            return answer_of(seed)
        turn = seed.turns[about.turn] if about.turn is not None and about.turn < len(seed.turns) else None
        text: str | None = getattr(turn, KINDS[about.kind].variant or "", None)
        if text is None:
            raise self._not_held(about)
        return {"text": text}

    def _not_held(self, about: About) -> Exception:
        held = f"{len(self._seeds)} seed dialogues with their variants ({', '.join(sorted(self._seeds)[:3])} …)"
        fix = "build with a model: --model NAME --base-url URL, or a configuration that names one under models"
        return input_error(about, f"the seed bank does not hold this; it holds {held}", fix)


def answer_of(seed: Seed) -> dict[str, Any]:
    """A seed dialogue as the answer to a self-chat request."""
    turns = [{"role": turn.role, "strategy": turn.strategy, "text": turn.text} for turn in seed.turns]
    return {"description": seed.description, "turns": turns}


def bank_of(seed_hash: str) -> str:
    """The name of the bank with seed dialogues of this hash."""
    return f"seed-bank@{seed_hash[-12:]}"
