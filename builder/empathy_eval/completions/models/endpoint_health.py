"""Rate limits and health of an endpoint: whether it can be reached, whether it answers, and since when it does not."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import aiohttp
import httpx2

from empathy_eval.base.errors import EmpathyEvalError
from empathy_eval.base.stages import duration_text, now
from empathy_eval.completions.models.transport import RetryableError, address_of, fatal_error, masked, retry_seconds
from empathy_eval.completions.requests import NoAnswer, Notice
from empathy_eval.design.endpoints import ModelConfig

# When more than this share of a round of answers are refusals, the pace is too fast for the endpoint; below it a refusal is sporadic.
PERSISTENT = 0.5
# The fewest answers that a round is judged by.
ROUND = 16
# The longest that a header keeps new requests back, in seconds; an endpoint that still has no room then says so again.
LONGEST_PAUSE = 60.0
# Seconds between two looks at whether to go on at all: a stop is heard within them.
GLANCE = 0.25
# An endpoint that has never answered is given up after so many refusals of one kind in a row, or so many seconds of nothing but 5xx.
ALIKE, FAILING_SECONDS = 20, 60.0
# An endpoint that has answered and gives nothing but refusals for so many seconds is one that nothing comes back from.
QUIET = 5.0
# The longest that a connection may take, in seconds and as a share of what an answer may: what takes longer had a connection.
CONNECTING, CONNECTING_SHARE = 20.0, 0.75
# The least that a first one is given, however soon an endpoint that cannot be reached ends the run.
SHORTEST_CONNECTING = 1.0
# What is shown of the words of an error, in characters.
MOST_SAID = 200
LOG = logging.getLogger(__name__)


class Sleeper:
    """Waits that all end early once ``stopped`` returns something; it is polled a few times a second for all of them."""

    def __init__(self, stopped: Callable[[], object] = lambda: None) -> None:
        self._stopped, self._turns = stopped, set[asyncio.Future[None]]()
        self._looked_in: asyncio.AbstractEventLoop | None = None

    async def rest(self, length: float) -> None:
        """Waits some seconds, or until stopped."""
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
    """A rate limit of units per minute, with bursts of up to one second (generic cell rate algorithm)."""

    per_minute: float
    due: float = 0.0

    def delay(self, units: float, now: float) -> float:
        """Takes units; returns the seconds until they may be used."""
        seconds = units * 60 / self.per_minute
        self.due = max(self.due, now) + seconds
        return max(0.0, self.due - seconds - now - 1.0)

    def give_back(self, units: float) -> None:
        """Returns unused units."""
        self.due -= units * 60 / self.per_minute


@dataclass
class RateLimiter:
    """Limits requests in flight, requests per minute and tokens per minute; slows down under persistent refusals and recovers.

    Once ``stopped`` returns something, nothing waits any longer. ``name`` is the endpoint in messages.
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
        self.rest = Sleeper(self.stopped).rest
        self._requests = Bucket(self.requests_per_minute) if self.requests_per_minute else None
        self._tokens = Bucket(self.tokens_per_minute) if self.tokens_per_minute else None

    @property
    def limit(self) -> int:
        """The number of requests that may be in flight now."""
        return max(1, int(self._limit))

    async def start(self, tokens: int) -> None:
        """Waits for the turn of a request of at most so many tokens. The caller must call :meth:`end`."""
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
        """Ends a turn; ``used`` tokens were needed, ``refused`` if the endpoint asked for a slower pace."""
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
        """Halves the requests in flight if most of a round was refused, else lets them grow by a tenth."""
        persistent = self._refusals > PERSISTENT * self._answers
        before = self.limit
        self._limit = max(1.0, self._limit / 2) if persistent else min(float(self.in_flight), self._limit * 1.1 + 1)
        if persistent and self.limit < before:
            what = f"{self._refusals} of {self._answers} requests were refused or timed out: from now on {self.limit} in flight"
            LOG.warning("%s: %s (docs/models.md has in_flight for local servers)", self.name, what)
        self._answers = self._refusals = 0

    def apply_headers(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        """Pauses until the endpoint's window resets, if its headers say that nothing is left of it."""
        headers = {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in raw if name[:11].lower() == b"x-ratelimit"}
        for what in ("requests", "tokens"):
            if headers.get(f"x-ratelimit-remaining-{what}") == "0":
                reset = retry_seconds(headers.get(f"x-ratelimit-reset-{what}"))
                if (reset or 0.0) > LONGEST_PAUSE:
                    LOG.warning("%s: asks to wait %.0f s for its %s; asked again after %.0f s", self.name, reset, what, LONGEST_PAUSE)
                self._paused_until = max(self._paused_until, self.clock() + min(reset or 0.0, LONGEST_PAUSE))


def _causes(error: BaseException) -> list[BaseException]:
    """An error and its chain of causes."""
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) and len(causes) < 10:
        causes.append(cause)
    return causes


def _unconnected(causes: list[BaseException]) -> str | None:
    """Why there was no connection, in a few words; None if there was one."""
    # What aiohttp raises where a connection breaks is passed on as httpx2's error for one that was never made: aiohttp's own is asked.
    own = any(isinstance(cause, aiohttp.ClientError) for cause in causes)
    unmade = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) if own else (httpx2.ConnectError, httpx2.ConnectTimeout)
    if not any(isinstance(cause, unmade) for cause in causes):
        return None
    proxied = any(isinstance(cause, aiohttp.ClientProxyConnectionError | httpx2.ProxyError) for cause in causes)
    return "the proxy: " * proxied + next((words for cause in reversed(causes) if (words := _in_words(cause))), _error_words(causes[-1]))


def _in_words(cause: BaseException) -> str:
    """The reason in an error for a missing connection; empty for another error."""
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused"
    if isinstance(cause, socket.gaierror):
        return "unknown host"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({getattr(cause, 'verify_message', '') or cause})"
    if isinstance(cause, ssl.SSLError):
        return f"no TLS ({(getattr(cause, 'reason', '') or str(cause)).replace('_', ' ').lower()})"
    return "no connection in time" if isinstance(cause, aiohttp.ConnectionTimeoutError | httpx2.ConnectTimeout) else ""


def _error_words(cause: BaseException) -> str:
    return f"{type(cause).__name__} {' '.join(str(cause).split())}".strip()


@dataclass
class EndpointHealth:
    """The health of an endpoint until its first answer; after that it is waited for.

    ``sending`` counts unanswered requests at the endpoint. Another thread may read the state.
    """

    config: ModelConfig
    clock: Callable[[], float] = now
    answered: bool = False
    connected: bool = False
    sending: int = 0
    # By request that is to be sent again, until when; and why the last one is.
    again: dict[int, float] = field(default_factory=dict)
    reason: str = ""
    _last: str = ""
    _alike: int = 0
    _failing_since: float | None = None
    _unreached_since: float | None = None
    # The last answer, or the first request after a time without any; and whether there were refusals alone since.
    _since: float = 0.0
    _silent: bool = False

    def request_sent(self) -> None:
        """Records a request; :meth:`request_ended` ends it."""
        if not self.sending and not self.again:
            self._since = self.clock()
        self.sending += 1

    def request_ended(self) -> None:
        """Records that a request is no longer at the endpoint."""
        self.sending -= 1

    def connection_made(self) -> None:
        """Records a connection."""
        self.connected = True

    def answer_received(self) -> None:
        """Records an answer."""
        self.answered = self.connected = True
        self._since, self._silent = self.clock(), False

    @contextlib.contextmanager
    def call(self, give_up: float) -> Iterator[None]:
        """Context manager for one of several sequential calls, each repeated until ``give_up``; leaving it normally is an answer."""
        self.request_sent()
        self.again[0] = give_up
        try:
            yield
            self.answer_received()
            self.again.pop(0, None)
        finally:
            self.request_ended()

    def no_answer_received(self, reason: str) -> None:
        """Records a connection without an answer."""
        self.reason, self._silent, self.connected = reason, True, True

    @property
    def _tried_until(self) -> float:
        """When the endpoint is given up, unless there is a connection before."""
        since = None if self.connected else self._unreached_since
        return float("inf") if since is None else since + self.config.unreachable_seconds

    @property
    def connecting(self) -> float:
        """The time limit for a connection in seconds; the first one has no more than an unreachable endpoint is given."""
        longest = min(CONNECTING, CONNECTING_SHARE * self.config.timeout_seconds)
        return longest if self.connected else min(longest, max(self.config.unreachable_seconds, SHORTEST_CONNECTING))

    def bounded_wait(self, wait: float) -> float:
        """The wait before the next attempt, cut so that an unreachable endpoint is tried once more at the end of its time."""
        return min(wait, max(0.0, self._tried_until - self.clock()))

    def classify_error(self, error: BaseException) -> RetryableError | EmpathyEvalError:
        """The meaning of an exception of the HTTP libraries: retry later, or give up."""
        causes = _causes(error)
        if (unsent := _unconnected(causes)) is not None:  # nothing was asked
            reason = masked(unsent, self.config)[:MOST_SAID]
            return self._unreached(reason) or RetryableError(reason)
        self.no_answer_received(reason := f"no answer: {masked(_error_words(causes[:2][-1]), self.config)[:MOST_SAID]}")
        return RetryableError(reason, known=False)

    def _unreached(self, reason: str) -> EmpathyEvalError | None:
        """Records a missing connection; returns the error once there was none since the start for the configured time."""
        self.reason, self._silent = reason, True
        if self._unreached_since is None:
            self._unreached_since = self._since
        # A clock may be read a little before a wait has ended in full.
        if self.connected or self.clock() + 0.001 < self._tried_until:
            return None
        where = f'endpoint "{self.config.endpoint}" ({urlsplit(address_of(self.config)).netloc})'
        what = f"no connection to {where} for {duration_text(self.config.unreachable_seconds)}, since the start: {reason}"
        how = "check that the server runs and that base_url and any proxy lead to it; for a slow start, set a larger unreachable_seconds"
        return fatal_error(self.config, what, how)

    def notice(self, at: float) -> Notice | None:
        """The notice at a time of the clock if nothing comes back and requests wait to be retried; else None."""
        waiting, quiet = list(self.again.values()), at - self._since
        if not waiting or not self._silent or (self.answered and quiet < QUIET):
            return None
        left = min(*waiting, self._tried_until) - at
        lasts, more = (f" for {duration_text(quiet)}", " more") if quiet >= 1 else ("", "")
        words = f"{self.reason}{lasts}, trying " + (f"for {duration_text(left)}{more}" if left >= 1 else "once more")
        # Not all the words of a reason: servers put numbers of requests and times into them.
        return Notice(f"{self.config.endpoint}: {self.reason.partition(':')[0]}", f"{self.config.endpoint}: {words}")

    def record_refusal(self, refusal: RetryableError | NoAnswer) -> EmpathyEvalError | None:
        """Records a refused request; returns the error once it is clear that nothing will be answered."""
        reason, failing, at = str(refusal), isinstance(refusal, RetryableError) and refusal.failing, self.clock()
        self.no_answer_received(reason)
        if self.answered:
            return None
        # The status alone: gateways put numbers of requests and times into their words.
        status = reason.partition(":")[0]
        self._alike = self._alike + 1 if status == self._last and isinstance(refusal, NoAnswer) else 1
        self._last = status
        self._failing_since = (self._failing_since or at) if failing else None
        if isinstance(refusal, NoAnswer) and self._alike >= ALIKE:
            return fatal_error(
                self.config, f"the endpoint has refused the first {ALIKE} requests for the same reason: {reason}", "fix what it names"
            )
        if self._failing_since is not None and at - self._failing_since >= FAILING_SECONDS:
            what = f"the endpoint has answered only with server errors for {at - self._failing_since:.0f} s: {reason}"
            return fatal_error(self.config, what, "check the server")
        return None
