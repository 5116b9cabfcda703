"""Pace: how many requests are under way at once, and how fast new ones start."""

from __future__ import annotations

import asyncio
import email.utils
import logging
import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from empathy_eval.base.stages import now

# When more than this share of a round of answers are refusals, the pace is too fast for the endpoint; below it a refusal is sporadic.
PERSISTENT = 0.5
# The fewest answers that a round is judged by.
ROUND = 16
# The longest that a header keeps new requests back, in seconds; an endpoint that still has no room then says so again.
LONGEST_PAUSE = 60.0
# What a longer wait is taken as, in seconds: about four months.
LONGEST_ASKED = 1e7
# Seconds between two looks at whether to go on at all: a stop is heard within them.
GLANCE = 0.25
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(ms|[smhd])", re.ASCII)
LOG = logging.getLogger(__name__)


class Rests:
    """Waits that all end early once ``stopped`` gives something: it is asked a few times a second, however many wait."""

    def __init__(self, stopped: Callable[[], object] = lambda: None) -> None:
        self._stopped, self._turns = stopped, set[asyncio.Future[None]]()
        self._looked_in: asyncio.AbstractEventLoop | None = None

    async def rest(self, length: float) -> None:
        """Waits so many seconds, or until there is nothing to wait for."""
        if length <= 0 or self._stopped():
            return
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        timer = loop.call_later(length, _over, turn)
        self._turns.add(turn)
        if self._looked_in is not loop:
            self._looked_in = loop
            loop.call_later(GLANCE, self._look)
        try:
            await turn
        finally:
            timer.cancel()
            self._turns.discard(turn)

    def _look(self) -> None:
        for turn in self._turns if self._stopped() else ():
            _over(turn)
        loop, self._looked_in = self._looked_in, None
        if self._turns and loop:
            self._looked_in = loop
            loop.call_later(GLANCE, self._look)


def _over(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


@dataclass
class Bucket:
    """Lets through so many units a minute, with up to a second's worth at once (generic cell rate algorithm)."""

    per_minute: float
    due: float = 0.0

    def delay(self, units: float, now: float) -> float:
        """Takes the units, and says how many seconds from now they may be used."""
        seconds = units * 60 / self.per_minute
        self.due = max(self.due, now) + seconds
        return max(0.0, self.due - seconds - now - 1.0)

    def give_back(self, units: float) -> None:
        """Returns units that were taken and not needed."""
        self.due -= units * 60 / self.per_minute


@dataclass
class Pace:
    """Bounds requests in flight, requests a minute and tokens a minute; slows down for a persistent refusal and recovers.

    Once ``stopped`` gives something, nothing waits any longer. ``name`` is the endpoint in what is told.
    """

    in_flight: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    clock: Callable[[], float] = now
    stopped: Callable[[], object] = lambda: None
    name: str = "the endpoint"
    running: int = 0
    _limit: float = 0.0
    _paused_until: float = 0.0
    _answers: int = 0
    _refusals: int = 0
    _waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._limit = float(self.in_flight)
        self.rest = Rests(self.stopped).rest
        self._requests = Bucket(self.requests_per_minute) if self.requests_per_minute else None
        self._tokens = Bucket(self.tokens_per_minute) if self.tokens_per_minute else None

    @property
    def limit(self) -> int:
        """The number of requests that may be in flight now."""
        return max(1, int(self._limit))

    async def start(self, tokens: int) -> None:
        """Waits for a turn to send a request of at most so many tokens. Whoever started must call :meth:`end`."""
        while self.running >= self.limit:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self.running += 1
        now = self.clock()
        delays = [bucket.delay(units, now) for bucket, units in ((self._requests, 1), (self._tokens, tokens)) if bucket]
        if (delay := max(self._paused_until - now, *delays, 0.0)) > 0:
            await self.rest(delay)

    def end(self, tokens: int, used: int, *, refused: bool = False) -> None:
        """Ends a turn; ``used`` of the tokens taken were needed, ``refused`` if the endpoint asked for a slower pace."""
        self.running -= 1
        if self._tokens:
            self._tokens.give_back(tokens - used)
        self._answers += 1
        self._refusals += refused
        if self._answers >= max(ROUND, self.limit):
            self._judge_round()
        for _ in range(self.limit - self.running):
            if not self._waiting:
                break
            _over(self._waiting.popleft())

    def _judge_round(self) -> None:
        """Halves what is in flight when most of a round was refused, else lets it grow back by a tenth."""
        persistent = self._refusals > PERSISTENT * self._answers
        before = self.limit
        self._limit = max(1.0, self._limit / 2) if persistent else min(float(self.in_flight), self._limit * 1.1 + 1)
        if persistent and self.limit < before:
            what = f"{self._refusals} of {self._answers} requests were refused or timed out: from now on {self.limit} in flight"
            LOG.warning("%s: %s (docs/models.md has in_flight for local servers)", self.name, what)
        self._answers = self._refusals = 0

    def heed(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        """Starts nothing new until the endpoint's window resets, if its headers say that nothing is left of it."""
        headers = {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in raw if name[:11].lower() == b"x-ratelimit"}
        for what in ("requests", "tokens"):
            if headers.get(f"x-ratelimit-remaining-{what}") == "0":
                reset = seconds(headers.get(f"x-ratelimit-reset-{what}"))
                if (reset or 0.0) > LONGEST_PAUSE:
                    LOG.warning("%s: asks to wait %.0f s for its %s; asked again after %.0f s", self.name, reset, what, LONGEST_PAUSE)
                self._paused_until = max(self._paused_until, self.clock() + min(reset or 0.0, LONGEST_PAUSE))


def seconds(text: str | None) -> float | None:
    """Seconds from what rate-limit headers hold: ``1.5``, ``6m0s``, ``20ms``, or an HTTP date; None for anything else."""
    text = (text or "")[:100].strip()
    if not text:
        return None
    try:
        if DURATION.sub("", text) == "":
            return min(LONGEST_ASKED, sum(float(number) * UNITS[unit] for number, unit in DURATION.findall(text)))
        found = float(text)
        return min(LONGEST_ASKED, max(0.0, found)) if math.isfinite(found) else None
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        return None
