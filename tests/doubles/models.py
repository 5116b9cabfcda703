"""Models for tests, behind the same protocol as the real ones."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from empathy_eval.completions.asker import Asker
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models.seed_bank import SeedBank
from empathy_eval.completions.models.toxicity_scorer import ToxicityScorer
from empathy_eval.completions.requests import Completion, Request
from empathy_eval.design.configuration import ToxicityConfig
from empathy_eval.design.prompts import Message, load_prompts
from empathy_eval.design.scenarios import Catalogue


class Recorder(SeedBank):
    """A seed bank that keeps every request it is asked, and may answer otherwise."""

    def __init__(self, catalogue: Catalogue, alter: Callable[[Request, Completion], Completion] = lambda request, answer: answer) -> None:
        super().__init__(catalogue)
        self.requests: list[Request] = []
        self._alter = alter

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        return self._alter(request, await super().complete(request))


class Slow(SeedBank):
    """A seed bank that takes its time, a few at once, and writes down the keys it is asked for and the process that asked."""

    in_flight = 4

    def __init__(self, catalogue: Catalogue, log: Path, seconds: float) -> None:
        super().__init__(catalogue)
        self._log, self._seconds = log, seconds

    async def complete(self, request: Request) -> Completion:
        line = f"{os.getpid()} {request.key}\n".encode()
        with self._log.open("ab") as stream:
            stream.write(line)
        await asyncio.sleep(self._seconds)
        return await super().complete(request)


class Scripted:
    """A model that gives its answers in turn."""

    name = "scripted"
    endpoint = "test"

    def __init__(self, *answers: Completion) -> None:
        self.answers = list(answers)
        self.bodies: list[dict[str, Any]] = []

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        return {"model": self.name, "messages": messages}

    async def complete(self, request: Request) -> Completion:
        self.bodies.append(request.body)
        return self.answers.pop(0)

    async def close(self) -> None:
        pass


def said(value: Any, finish: str = "stop") -> Completion:
    """A completion that holds a value as JSON, or a text as it is."""
    return Completion(value if isinstance(value, str) else json.dumps(value), finish, "scripted")


def scoring(config: ToxicityConfig, ledger: Ledger, *, offline: bool = False) -> Asker:
    """An asker that has nothing but the toxicity scorer of a configuration."""
    return Asker(ledger, {"toxicity": ToxicityScorer(config)}, load_prompts(), offline=offline)


def asked_twice(log: Path) -> int:
    """How often a key was asked for again."""
    return sum(count - 1 for count in Counter(line.split()[1] for line in log.read_text().splitlines()).values())
