"""A judge on loopback: what it says is a function of what it reads, and a test works it out from the same texts."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from aiohttp import web
from empathy_eval.completions.models import openai_endpoint
from empathy_eval.raters.judges import annotating

from tests.doubles.batches import BatchServer

CRITERION = re.compile(r"^## (\w+)\n.*\n(A whole|Any) number from (\S+) to (\S+):$", re.MULTILINE)
STRATEGY = re.compile(r"^- (\w+) \(", re.MULTILINE)
REPLY, REPLY_A, REPLY_B = "\n# The reply to rate\n", "\n# Reply A\n", "\n# Reply B\n"


@pytest.fixture(scope="module", autouse=True)
def read_once() -> Iterator[None]:
    """What every run reads anew is read once: scenarios and templates."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("load_catalogue", "load_prompts"):
            patch.setattr(annotating, name, cache(getattr(annotating, name)))
        # Who is told to wait comes back soon.
        patch.setattr(openai_endpoint, "FIRST_WAIT", 0.02)
        yield


def drawn(*parts: str) -> int:
    """A number that only these texts decide on."""
    return int.from_bytes(hashlib.sha256("\x00".join(parts).encode()).digest()[:6], "big")


def value_of(criterion: str, text: str, low: float, high: float, whole: bool) -> float:
    """What a text is given on a scale: on one of any numbers a tenth of it."""
    steps = int(high - low) if whole else 10
    return low + drawn(criterion, text) % (steps + 1) * (high - low) / steps


def warmth(text: str) -> int:
    """Of two texts the one with more of it is preferred."""
    return drawn("better", text)


def biased(one: str, other: str, bias: float) -> bool:
    """Whether whatever stands first is preferred of these two, in either order: so it is for a share ``bias`` of all."""
    return drawn("biased", *sorted((one, other))) % 1000 < bias * 1000


def likely(conversation: str, strategies: list[str]) -> dict[str, float]:
    """How likely each strategy is after a conversation, in hundredths that add up to 1."""
    first, second = drawn("first", conversation) % len(strategies), drawn("second", conversation) % len(strategies)
    shares = dict.fromkeys(strategies, 0)
    shares[strategies[first]] += 60
    shares[strategies[second]] += 40
    return {name: share / 100 for name, share in shares.items()}


def strategy_of(text: str, strategies: list[str]) -> str:
    """The strategy that a text is said to use."""
    return strategies[drawn("named", text) % len(strategies)]


def reason_of(text: str) -> str:
    """Why."""
    return f"because of {drawn('reason', text)}"


def said(body: dict[str, Any], bias: float = 0.0) -> dict[str, Any]:
    """What the judge says, as the request asks for it."""
    system, user = (message["content"] for message in body["messages"][:2])
    if '"better"' in system:
        one, other = (part.strip() for part in user.split(REPLY_A)[1].split(REPLY_B))
        first = biased(one, other, bias) or warmth(one) > warmth(other)
        return {"analysis": reason_of(one + other), "better": "A" if first else "B"}
    if '"ratings"' in system:
        text = user.partition(REPLY)[2].strip() or user.split("\n", 1)[1].strip()
        asked = [(name, float(low), float(high), kind == "A whole") for name, kind, low, high in CRITERION.findall(system)]
        values = [{"criterion": name, "value": value_of(name, text, *scale)} for name, *scale in asked]
        return {"analysis": "" if '"analysis": ""' in system else f" {reason_of(text)}\n", "ratings": values}
    strategies = STRATEGY.findall(system.split("# The strategies")[1])
    if '"probability"' in system:
        shares = likely(user.split("\n", 1)[1].strip(), strategies)
        return {"strategies": [{"strategy": name, "probability": share} for name, share in shares.items()]}
    return {"strategy": strategy_of(user.split("\n# The reply\n")[1].strip(), strategies)}


@dataclass
class JudgeServer(BatchServer):
    """Judges by script. For a share ``bias`` of all pairs the first reply is preferred, whichever it is.

    The fault ``odd`` answers in form, and not as asked: beyond the scale, an unknown strategy, too much probability, a third reply.
    ``received`` holds all bodies that came over the socket, in whatever way they were answered. With the one of number ``stop_at`` comes
    ``stop``, a Ctrl-C to this process; with the next one if it says False.
    """

    bias: float = 0.0
    stop_at: int = 0
    stop: Callable[[], bool | None] = lambda: os.kill(os.getpid(), signal.SIGINT)
    received: list[dict[str, Any]] = field(default_factory=list)
    headers_received: list[str] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.received.append(json.loads(await request.read()))
        self.headers_received.append(str(dict(request.headers)))
        if self.stop_at and len(self.received) >= self.stop_at and self.stop() is not False:
            self.stop_at = 0
        return await super().handle(request)

    def good(self, body: dict[str, Any], name: str) -> dict[str, Any]:
        return said(body, self.bias)

    def _answer(self, body: dict[str, Any], name: str, fault: str | None) -> dict[str, Any]:
        answer = super()._answer(body, name, fault)
        if fault == "odd":
            message = answer["choices"][0]["message"]
            message["content"] = json.dumps(odd(json.loads(message["content"])))
        return answer


def odd(answer: dict[str, Any]) -> dict[str, Any]:
    """The same answer, not as asked."""
    if "ratings" in answer:
        return {**answer, "ratings": [{**one, "value": one["value"] + 100} for one in answer["ratings"]]}
    if "strategies" in answer:
        return {"strategies": [{**one, "probability": 1} for one in answer["strategies"]]}
    return {**answer, "better": "C"} if "better" in answer else {"strategy": "XYZ"}
