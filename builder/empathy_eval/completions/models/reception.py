"""How an endpoint receives what is sent to it: whether there is a connection, whether anything comes back, and since when not."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx2
import openai

from empathy_eval.base.errors import EmpathyEvalError, job_error
from empathy_eval.base.stages import now, span
from empathy_eval.completions.models.chat_completion import said
from empathy_eval.completions.models.protocol import NoAnswer
from empathy_eval.completions.models.rate_limit import seconds
from empathy_eval.completions.models.transport import address_of, masked, masked_value
from empathy_eval.design.endpoints import ModelConfig

QUOTA = re.compile(
    r"insufficient_quota|billing_hard_limit_reached|insufficient_balance|budget.{0,40}exceed|exceed.{0,40}budget", re.IGNORECASE
)
NO_MODEL = re.compile(
    r"model_not_found|(?:invalid|unknown) model|model .{0,200}(?:not found|not exist|not supported|unknown)", re.IGNORECASE
)
LATER, CONGESTED = (408, 409, 425, 429), (408, 429, 504)
# Bytes of a refusal that are looked at for its words.
MOST_WORDS = 8192


class Refused(Exception):
    """The endpoint gave no answer this time; ``wait`` seconds if it said how long, ``known`` if it surely did not work on it.

    ``pace`` if it is asked too much at once, ``failing`` if it answered and what it said was an error of its own.
    """

    def __init__(
        self, reason: str, wait: float | None = None, *, pace: bool = False, known: bool = True, failing: bool = False
    ) -> None:  # fmt: skip
        super().__init__(reason)
        self.wait, self.pace, self.known, self.failing = wait, pace, known, failing


def meaning(error: openai.APIStatusError, config: ModelConfig) -> Refused | NoAnswer | EmpathyEvalError:
    """What a status means: come back later, not this request, or not at all."""
    status, key = error.status_code, config.api_key_env
    words = words_of(error.response, config)
    shown = f"{status}: {words}" if words else str(status)
    if status == 402 or (400 <= status < 500 and QUOTA.search(words)):
        return giving_up(config, f"the quota is used up ({shown})", "add to the account's balance")
    if status == 401:
        return giving_up(config, f"the endpoint refuses the key in {key} ({shown})", f"set {key}")
    if status == 403:
        return giving_up(config, f"the key in {key} may not do this ({shown})", "give it access, or use another key")
    if status == 404 or (status in (400, 422) and NO_MODEL.search(words)):
        return giving_up(
            config, f'the endpoint does not have this ({shown}), model "{config.model}"', "correct the model's name or base_url"
        )
    if status < 400:
        where = said(masked(error.response.headers.get("location", "").partition("?")[0], config))
        return Refused(f'{shown}: sends requests on to "{where}", which base_url could name', failing=True)
    if status in LATER or status >= 500:
        wait = seconds(error.response.headers.get("retry-after"))
        return Refused(shown, wait, pace=status in CONGESTED, failing=status >= 500)
    return NoAnswer(f"refused with {shown}")


def giving_up(config: ModelConfig, what: str, how: str) -> EmpathyEvalError:
    """The error that ends a run whose endpoint takes nothing."""
    return job_error(f"models: {config.model}", what, f"{how}, then run the same command to continue; every answer is in the ledger")


def words_of(response: Any, config: ModelConfig) -> str:
    """The server's own words in the body of a response, in one short line without secrets; never a header, so never a key."""
    text = masked(response.content[:MOST_WORDS].decode("utf-8", "replace"), config)
    try:
        return said(masked_value(json.loads(text), config))
    except (ValueError, RecursionError):
        return said(re.sub(r"<[^<>]{0,200}>", " ", text))


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


def _causes(error: BaseException) -> list[BaseException]:
    """An error and what caused it, or what it was raised in the place of, one after the other."""
    found = [error]
    while (cause := found[-1].__cause__ or found[-1].__context__) and len(found) < 10:
        found.append(cause)
    return found


def _unconnected(causes: list[BaseException]) -> str | None:
    """Why there was no connection, in a few words; None where there was one, whatever came over it."""
    # What aiohttp raises where a connection breaks is passed on as httpx2's error for one that was never made: aiohttp's own is asked.
    own = any(isinstance(one, aiohttp.ClientError) for one in causes)
    unmade = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) if own else (httpx2.ConnectError, httpx2.ConnectTimeout)
    if not any(isinstance(one, unmade) for one in causes):
        return None
    proxied = any(isinstance(one, aiohttp.ClientProxyConnectionError | httpx2.ProxyError) for one in causes)
    return "the proxy: " * proxied + next((words for one in reversed(causes) if (words := _in_words(one))), _said_by(causes[-1]))


def _in_words(cause: BaseException) -> str:
    """What kept a connection from being made, if that is what an error says."""
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused"
    if isinstance(cause, socket.gaierror):
        return "unknown host"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({getattr(cause, 'verify_message', '') or cause})"
    if isinstance(cause, ssl.SSLError):
        return f"no TLS ({(getattr(cause, 'reason', '') or str(cause)).replace('_', ' ').lower()})"
    return "no connection in time" if isinstance(cause, aiohttp.ConnectionTimeoutError | httpx2.ConnectTimeout) else ""


def _said_by(cause: BaseException) -> str:
    return f"{type(cause).__name__} {' '.join(str(cause).split())}".strip()


@dataclass(frozen=True)
class Trouble:
    """An endpoint that nothing comes back from: why, and all of it in words."""

    endpoint: str
    reason: str
    words: str


@dataclass
class Reception:
    """How an endpoint receives what is sent to it, until its first answer; after that it is waited for.

    ``sending`` counts the requests that it has and has not answered. Another thread may read how it stands.
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

    def sends(self) -> None:
        """Notes a request that is sent now; :meth:`came_back` ends it, with an answer or without."""
        if not self.sending and not self.again:
            self._since = self.clock()
        self.sending += 1

    def came_back(self) -> None:
        """Notes that a request is no longer at the endpoint."""
        self.sending -= 1

    def reached(self) -> None:
        """Notes a connection."""
        self.connected = True

    def heard(self) -> None:
        """Notes an answer."""
        self.answered = self.connected = True
        self._since, self._silent = self.clock(), False

    @contextlib.contextmanager
    def called(self, give_up: float) -> Iterator[None]:
        """A call of one who makes them one after the other, and each again until then; what comes out of it is an answer."""
        self.sends()
        self.again[0] = give_up
        try:
            yield
            self.heard()
            self.again.pop(0, None)
        finally:
            self.came_back()

    def silent(self, reason: str) -> None:
        """Notes that none came, over a connection."""
        self.reason, self._silent, self.connected = reason, True, True

    @property
    def _tried_until(self) -> float:
        """When it is given up, if there is no connection until then."""
        since = None if self.connected else self._unreached_since
        return float("inf") if since is None else since + self.config.unreachable_seconds

    @property
    def connecting(self) -> float:
        """The longest that a connection may take, in seconds: the first one no longer than an unreachable endpoint is given."""
        longest = min(CONNECTING, CONNECTING_SHARE * self.config.timeout_seconds)
        return longest if self.connected else min(longest, max(self.config.unreachable_seconds, SHORTEST_CONNECTING))

    def patience(self, wait: float) -> float:
        """The wait before a request is sent again: at the end of what an unreachable endpoint is given it is tried once more."""
        return min(wait, max(0.0, self._tried_until - self.clock()))

    def broken(self, error: BaseException) -> Refused | EmpathyEvalError:
        """What it means that the libraries beneath raised something in the place of an answer: come back later, or not at all."""
        causes = _causes(error)
        if (unsent := _unconnected(causes)) is not None:  # nothing was asked
            reason = masked(unsent, self.config)[:MOST_SAID]
            return self._unreached(reason) or Refused(reason)
        self.silent(reason := f"no answer: {masked(_said_by(causes[:2][-1]), self.config)[:MOST_SAID]}")
        return Refused(reason, known=False)

    def _unreached(self, reason: str) -> EmpathyEvalError | None:
        """Notes that there was no connection; gives the error once there was none since the start for as long as is configured."""
        self.reason, self._silent = reason, True
        if self._unreached_since is None:
            self._unreached_since = self._since
        # A clock may be read a little before a wait has ended in full.
        if self.connected or self.clock() + 0.001 < self._tried_until:
            return None
        where = f'endpoint "{self.config.endpoint}" ({urlsplit(address_of(self.config)).netloc})'
        what = f"no connection to {where} for {span(self.config.unreachable_seconds)}, since the start: {reason}"
        how = "check that the server runs and that base_url and any proxy lead to it; for a slow start, set a larger unreachable_seconds"
        return giving_up(self.config, what, how)

    def trouble(self, at: float) -> Trouble | None:
        """What is to be told at a time of the clock, if nothing comes back and requests wait to be sent again."""
        waiting, quiet = list(self.again.values()), at - self._since
        if not waiting or not self._silent or (self.answered and quiet < QUIET):
            return None
        left = min(*waiting, self._tried_until) - at
        lasts, more = (f" for {span(quiet)}", " more") if quiet >= 1 else ("", "")
        words = f"{self.reason}{lasts}, trying " + (f"for {span(left)}{more}" if left >= 1 else "once more")
        return Trouble(self.config.endpoint, self.reason, words)

    def refused(self, refusal: Refused | NoAnswer) -> EmpathyEvalError | None:
        """Notes that a request was refused; gives the error once it is clear that nothing will be answered."""
        reason, failing, at = str(refusal), isinstance(refusal, Refused) and refusal.failing, self.clock()
        self.silent(reason)
        if self.answered:
            return None
        # The status alone: gateways put numbers of requests and times into their words.
        status = reason.partition(":")[0]
        self._alike = self._alike + 1 if status == self._last and isinstance(refusal, NoAnswer) else 1
        self._last = status
        self._failing_since = (self._failing_since or at) if failing else None
        if isinstance(refusal, NoAnswer) and self._alike >= ALIKE:
            return giving_up(
                self.config, f"the endpoint has refused the first {ALIKE} requests for the same reason: {reason}", "fix what it names"
            )
        if self._failing_since is not None and at - self._failing_since >= FAILING_SECONDS:
            what = f"the endpoint has answered only with server errors for {at - self._failing_since:.0f} s: {reason}"
            return giving_up(self.config, what, "check the server")
        return None
