"""An OpenAI-compatible server on loopback: reads the plan from the request, answers with varied text that conforms to it, and
fails as it is told. Whether a request fails is a function of its body and of how often it came, never of the clock or the order.

``python -m tests.doubles.server --latency 0.2`` runs it alone and prints its address.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import email.utils
import hashlib
import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

NO_ANSWER = ("429", "429-date", "500", "503", "reset", "silence")
BAD_ANSWER = ("cut", "schema", "fence", "phases", "turns", "length", "refusal", "content_filter", "empty")
WORDS = """about above after again along among answer arrive autumn baker basket bench between bicycle birch blanket bread breathe
bridge bucket button candle carry castle chair cherry chimney cloud coffee corner cotton cousin crumb cupboard curtain daily dinner
door drawer dusk early edge evening fence ferry field finish floor flour folder forest fountain garden garage gather ginger glove grain
grass hallway hammer harbour hedge honey island jacket jar kettle key kitchen ladder lamp late leaf letter lift listen little lunch
maple market meadow message middle minute morning music napkin needle neighbour notice oak office onion orange oven paint paper
parcel path pebble pencil pillow platform pocket porch potato quarter quiet quilt radio rain reach remember ribbon river road
roof rope saddle salt saucer scarf school season shelf shoe shore sister slow small snow soup spoon spring stairs station
stone story street sugar summer sunday supper sweater table teapot thread ticket timber tomorrow towel train tree tuesday tunnel
umbrella uncle valley village violin visit wagon wait walk wall water wednesday week wheel whistle window winter wool work yard year
yellow yesterday zebra""".split()
COLD = ("anyway", "merely", "presumably", "technically", "whatever", "simply")
PLAN_LINE = re.compile(r"^\d+\. (seeker|helper)(?:: (\w+))?(?:, (\d+) words?)?$", re.MULTILINE)


@dataclass
class Behaviour:
    """What the server does: shares of requests by fault, seconds of latency, requests a second it lets through."""

    faults: dict[str, float] = field(default_factory=dict)
    latency: float = 0.0
    cap: float | None = None
    retry_after: float = 0.1
    prefix_cache: bool = False
    key: str | None = None


@dataclass
class Server:
    """A running server; ``answered`` counts complete answers by body, ``tokens`` what it would charge for."""

    behaviour: Behaviour
    url: str = ""
    seen: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    peak: int = 0
    _running: int = 0
    _prefixes: set[bytes] = field(default_factory=set)
    _window: float = 0.0
    _room: float = 0.0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One chat completion."""
        raw = await request.read()
        name = hashlib.sha256(raw).hexdigest()
        attempt = self.seen[name]
        self.seen[name] += 1
        self._running += 1
        self.peak = max(self.peak, self._running)
        try:
            if self.behaviour.cap and not self._admitted():
                return self._error(429, "slow down", {"Retry-After": str(self.behaviour.retry_after)})
            if self.behaviour.latency:
                await asyncio.sleep(self.behaviour.latency)
            if self.behaviour.key and request.headers.get("Authorization") != f"Bearer {self.behaviour.key}":
                return self._error(401, "bad key")
            return await self._respond(request, raw, name, self._fault(name, attempt))
        finally:
            self._running -= 1

    def routes(self) -> list[web.RouteDef]:
        """What a server of more than chat completions serves beside them."""
        return []

    def _fault(self, name: str, attempt: int) -> str | None:
        point = int.from_bytes(hashlib.sha256(f"{name}{attempt}".encode()).digest()[:8], "big") / 2**64
        for fault, share in self.behaviour.faults.items():
            if point < share:
                return fault
            point -= share
        return None

    def _admitted(self) -> bool:
        now, cap = time.monotonic(), self.behaviour.cap or 1
        self._room = min(max(1.0, cap / 10), self._room + (now - self._window) * cap)
        self._window = now
        if self._room < 1:
            return False
        self._room -= 1
        return True

    async def _respond(self, request: web.Request, raw: bytes, name: str, fault: str | None) -> web.StreamResponse:
        if fault in ("429", "429-date"):
            wait = self.behaviour.retry_after
            after = str(wait) if fault == "429" else email.utils.formatdate(time.time() + wait, usegmt=True)
            return self._error(429, "too many requests", {"Retry-After": after})
        if fault == "quota":
            return self._error(429, "no credit is left", code="insufficient_quota")
        if fault in ("400", "401", "403", "404", "500", "503"):
            return self._error(int(fault), f"fault {fault}")
        if fault == "silence":
            await asyncio.sleep(3600)
        body = json.loads(raw)
        payload = json.dumps(self._answer(body, name, fault)).encode()
        if fault == "reset":
            response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(payload))})
            await response.prepare(request)
            await response.write(payload[: len(payload) // 2])
            if request.transport:
                request.transport.abort()
            return response
        self.answered[name] += 1
        self.statuses["200"] += 1
        return web.Response(body=payload, content_type="application/json")

    def _error(self, status: int, message: str, headers: dict[str, str] | None = None, code: str | None = None) -> web.Response:
        self.statuses[str(status)] += 1
        return web.json_response({"error": {"message": message, "code": code}}, status=status, headers=headers)

    def _answer(self, body: dict[str, Any], name: str, fault: str | None) -> dict[str, Any]:
        content, finish = json.dumps(self.good(body, name)), "stop"
        message: dict[str, Any] = {"role": "assistant"}
        if fault == "cut":
            content = content[: len(content) * 2 // 3]
        elif fault == "length":
            content, finish = content[: len(content) // 2], "length"
        elif fault == "content_filter":
            content, finish = "", "content_filter"
        elif fault == "schema":
            content = json.dumps({"answer": json.loads(content)})
        elif fault == "fence":
            content = f"```json\n{content}\n```"
        elif fault in ("phases", "turns"):
            content = json.dumps(spoilt(json.loads(content), fault))
        elif fault == "refusal":
            message["refusal"] = "I cannot help with that."
        message["content"] = None if fault == "refusal" else content
        prompt, cached, written = len(json.dumps(body["messages"])) // 4, self._cached(body), len(content) // 4 + 1
        self.tokens.update(input=prompt, cached=cached, output=written)
        usage = {"prompt_tokens": prompt, "completion_tokens": written, "prompt_tokens_details": {"cached_tokens": cached}}
        choices = [] if fault == "empty" else [{"index": 0, "message": message, "finish_reason": finish}]
        return {"id": name[:12], "object": "chat.completion", "choices": choices, "usage": usage}

    def good(self, body: dict[str, Any], name: str) -> dict[str, Any]:
        """The answer where nothing goes wrong; other servers write other texts."""
        return good_answer(body, name)

    async def counts(self, _: web.Request) -> web.Response:
        """How many requests came, how many were answered whole, and how many were under way at once."""
        return web.json_response({"received": self.seen.total(), "answered": self.answered.total(), "peak": self.peak})

    def _cached(self, body: dict[str, Any]) -> int:
        """Tokens of the prompt that a prefix cache would have: whole blocks of 128 tokens, from 1,024 on."""
        if not self.behaviour.prefix_cache:
            return 0
        text = "\x00".join(message["content"] for message in body["messages"]).encode()
        rolling, hit, blocks = hashlib.sha256(), 0, []
        for place in range(0, len(text) - 511, 512):
            rolling.update(text[place : place + 512])
            blocks.append(rolling.digest())
            if blocks[-1] in self._prefixes and hit == len(blocks) - 1:
                hit += 1
        self._prefixes.update(blocks)
        return hit * 128 if hit >= 8 else 0


def sentence(rng: random.Random, least: int, most: int) -> str:
    """Words without harm."""
    return " ".join(rng.choices(WORDS, k=rng.randint(least, most))).capitalize() + "."


def good_answer(body: dict[str, Any], name: str) -> dict[str, Any]:
    """An answer that conforms to the plan, or to the closeness, that the request asks for; the same for the same body."""
    rng = random.Random(name)
    asked = body["messages"][1]["content"]
    if "# The conversation to write" in asked:
        plan = PLAN_LINE.findall(asked[asked.index("# The conversation to write") :])
        lengths = [(int(length), int(length)) if length else (20, 36) for _, _, length in plan]
        turns = [
            {"role": role, "strategy": tag or None, "text": sentence(rng, *length)}
            for (role, tag, _), length in zip(plan, lengths, strict=True)
        ]
        return {"description": f"The user lost a {' and a '.join(rng.sample(WORDS, 3))}.", "turns": turns}
    if "# The reply to edit" in asked:
        words = asked[asked.index("# The reply to edit") :].split("\n", 1)[1].split()
        for place in rng.sample(range(len(words)), max(1, len(words) // 5)):
            words[place] = rng.choice(COLD)
        return {"text": " ".join(words)}
    if "# The given reply" in asked:
        return crossed(asked, rng)
    if "# Reply A" in asked:
        return {"analysis": "It is an answer to what was said last.", "choice": fitting(asked)}
    return {"text": sentence(rng, 25, 40)}


def crossed(asked: str, rng: random.Random) -> dict[str, Any]:
    """A twin and a reply that a careful reader knows as its own by the first word, which nobody finds by counting words."""
    before, given = asked[asked.index("# The conversation so far") :].split("\n\n# The given reply", 1)
    new = rng.sample(WORDS, 2)
    twin = " ".join([before.splitlines()[-1].removeprefix("seeker: "), *new])
    count = len(given.split("\n")[1].split())
    return {"reason": "One needs this, the other that.", "reply": " ".join([sign(twin), *others(rng, count - 1, new)]) + ".", "twin": twin}


def others(rng: random.Random, count: int, but: list[str]) -> list[str]:
    """So many words without some."""
    return rng.choices([word for word in WORDS if word not in but], k=count)


def sign(said: str) -> str:
    """A word that stands for what was said."""
    return "".join(chr(ord("a") + digit % 26) for digit in hashlib.sha256(said.encode()).digest()[:8]).capitalize()


def fitting(asked: str) -> str:
    """The letter of the reply that was written for what was said last; of two that were not, that of the one without such a sign."""
    said, _, replies = asked[asked.index("# The conversation so far") :].partition("\n\n# Reply A\n")
    first = {letter: text.split()[0] for letter, text in zip("AB", replies.split("\n\n# Reply B\n"), strict=True)}
    own = sign(said.splitlines()[-1].removeprefix("seeker: "))
    return next((letter for letter, word in first.items() if word == own), "A" if first["A"].lower() in WORDS else "B")


def spoilt(answer: dict[str, Any], fault: str) -> dict[str, Any]:
    """A dialogue with a wrong phase or a turn too few; a variant is only emptied."""
    if "turns" not in answer:
        return {"text": ""}
    if fault == "turns":
        return {**answer, "turns": answer["turns"][:-1]}
    return {**answer, "turns": [{**turn, "strategy": turn["strategy"] and "SO"} for turn in answer["turns"]]}


@contextlib.contextmanager
def running(behaviour: Behaviour | None = None, server: Server | None = None) -> Iterator[Server]:
    """A server in a thread of this process, on a free port of the loopback address."""
    server, loop = server or Server(behaviour or Behaviour()), asyncio.new_event_loop()
    started = threading.Event()

    async def serving() -> None:
        runner, ended = await serve(server), asyncio.Event()
        stop.append(ended)
        started.set()
        await ended.wait()
        # Who is gone refuses connections; a socket that waits for the garbage collector would still take them.
        for site in list(runner.sites):
            await site.stop()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(serving())

    stop = list[asyncio.Event]()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(60), "the server has not started"
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop[0].set)
        thread.join(10)


async def serve(server: Server) -> web.AppRunner:
    """Listens on a free port and writes its address into the server."""
    app = web.Application(client_max_size=2**28)
    app.add_routes([web.post("/v1/chat/completions", server.handle), web.get("/v1/counts", server.counts), *server.routes()])
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    return runner


async def _alone(server: Server) -> None:
    await serve(server)
    print(server.url, flush=True)
    await asyncio.Event().wait()


def main(make: Callable[[Behaviour], Server] = Server) -> None:
    """Serves until killed; prints the address."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--faults", type=float, default=0.0, help="share of requests that fail, evenly over all faults that do not hang")
    options = parser.parse_args()
    faults = [*(fault for fault in NO_ANSWER if fault != "silence"), *BAD_ANSWER] if options.faults else []
    asyncio.run(_alone(make(Behaviour({fault: options.faults / len(faults) for fault in faults}, options.latency))))


if __name__ == "__main__":
    main()
