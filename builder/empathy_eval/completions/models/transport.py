"""What carries requests to an endpoint: its key and headers out of the environment, and a client whose answers are bounded and masked."""

from __future__ import annotations

import email.utils
import json
import math
import os
import re
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote, quote_plus

import aiohttp
import httpx2
import openai

from empathy_eval.base.errors import EmpathyEvalError, Problem, job_error, refuse
from empathy_eval.base.schemas import sound
from empathy_eval.completions.requests import Completion, NoAnswer, Usage, storable
from empathy_eval.design.endpoints import ModelConfig, url_faults

# The largest answer that is read, in bytes, unpacked: a chat completion of the longest dialogue with its log-probabilities has a quarter.
LARGEST = 16 * 2**20
# Bytes of it that are unpacked at once.
CHUNK = 2**14
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
ADDRESS = "OPENAI_BASE_URL"
# Shorter ones would be taken out of words that have nothing to do with them.
SHORTEST_SECRET = 8


@dataclass(frozen=True)
class Received:
    """A successful response: its headers as bytes, and its body, unpacked and without secrets."""

    headers: Sequence[tuple[bytes, bytes]]
    content: bytes


class TooLarge(httpx2.HTTPError):
    """An answer that is larger than any chat completion."""


class BoundedClient(openai.DefaultAioHttpClient):
    """The client of the ``openai`` package over aiohttp; a body is read to a bound, and the secrets are taken out of it.

    ``reached`` is called for every connection that is made.
    """

    def __init__(self, config: ModelConfig, reached: Callable[[], None], limit: httpx2.Timeout) -> None:
        pool = httpx2.Limits(max_connections=config.in_flight, max_keepalive_connections=config.in_flight)
        super().__init__(follow_redirects=False, verify=trusted(), timeout=limit, limits=pool)
        self._secrets, self._reached = secrets_of(config), reached

    def _init_transport(self, *given: Any, **settings: Any) -> Any:
        """The transport, whose session says when there is a connection; one that makes no session of its own says nothing."""
        transport: Any = super()._init_transport(*given, **settings)
        if make := getattr(transport, "get_client", None):
            transport.get_client = lambda: self._listening(make())
        return transport

    def _listening(self, session: aiohttp.ClientSession) -> aiohttp.ClientSession:
        async def made(*about: Any) -> None:
            self._reached()

        listening = aiohttp.TraceConfig()
        listening.on_connection_create_end.append(made)
        listening.freeze()
        session.trace_configs.append(listening)
        return session

    async def send(self, request: httpx2.Request, **settings: Any) -> httpx2.Response:
        """Sends a request and reads its answer whole.

        Raises:
            TooLarge: if the answer, unpacked, is larger than any chat completion.
        """
        response = await super().send(request, **{**settings, "stream": True})
        body = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                _add(body, chunk)
        finally:
            await response.aclose()
        return _whole(response, request, bytes(body), self._secrets)

    async def send_like(self, first: httpx2.Request, content: bytes) -> Received | httpx2.Response:
        """Sends a body with the address and the headers of a request that was answered; a response that is no success comes as it is.

        It goes to the session of aiohttp itself where there is one without a proxy: the layers above it take longer than the session.
        """
        headers = first.headers.copy()
        headers["content-length"] = str(len(content))
        transport: Any = self._transport_for_url(first.url)
        if not isinstance(session := getattr(transport, "client", None), aiohttp.ClientSession) or transport.proxy:
            return await self.send(httpx2.Request("POST", first.url, headers=headers, content=content, extensions=first.extensions))
        limit = aiohttp.ClientTimeout(connect=first.extensions["timeout"]["pool"])
        async with session.post(
            str(first.url), data=content, headers=headers, allow_redirects=False, auto_decompress=False, timeout=limit
        ) as response:
            body, parts = bytearray(), response.content.iter_chunked(CHUNK)
            plain = response.ok and "content-encoding" not in response.headers
            packed = None if plain else httpx2.Response(response.status, headers=response.raw_headers, content=parts)
            async for chunk in packed.aiter_bytes() if packed else parts:
                _add(body, chunk)
        if response.ok or not packed:
            return Received(response.raw_headers, _masked_bytes(bytes(body), self._secrets))
        return _whole(packed, first, bytes(body), self._secrets)


class BoundedSyncClient(openai.DefaultHttpxClient):
    """The same for the calls of batches, each within so many seconds; a file that is fetched goes through as it comes."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(follow_redirects=False, verify=trusted(), timeout=config.timeout_seconds)
        self._secrets, self._seconds = secrets_of(config), config.timeout_seconds

    def send(self, request: httpx2.Request, **settings: Any) -> httpx2.Response:
        """Sends a request and reads its answer whole, unless it is to be streamed.

        Raises:
            TooLarge, ReadTimeout: if the answer is too large, or takes too long.
        """
        if settings.get("stream"):
            return super().send(request, **settings)
        give_up = time.monotonic() + self._seconds
        response = super().send(request, **{**settings, "stream": True})
        body = bytearray()
        try:
            for chunk in response.iter_bytes():
                _add(body, chunk)
                if time.monotonic() > give_up:
                    raise httpx2.ReadTimeout(f"no whole answer within {self._seconds:g} s", request=request)
        finally:
            response.close()
        return _whole(response, request, bytes(body), self._secrets)


def _add(body: bytearray, chunk: bytes) -> None:
    body += chunk
    if len(body) > LARGEST:
        raise TooLarge(f"an answer of more than {LARGEST:,} bytes")


def _whole(response: httpx2.Response, request: httpx2.Request, content: bytes, secrets: tuple[str, ...]) -> httpx2.Response:
    """A response that was read, unpacked and without secrets."""
    headers = [(name, value) for name, value in response.headers.raw if name.lower() not in (b"content-encoding", b"content-length")]
    return httpx2.Response(response.status_code, headers=headers, content=_masked_bytes(content, secrets), request=request)


def _masked_bytes(content: bytes, secrets: tuple[str, ...]) -> bytes:
    for secret in secrets:
        content = content.replace(secret.encode(), b"***")
    return content


def trusted() -> ssl.SSLContext:
    """The certificates that are trusted, read once for every place that the environment names."""
    return _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _certificates(*places: str | None) -> ssl.SSLContext:
    # To read them takes 30 ms, for every client anew.
    return httpx2.create_ssl_context()


def address_of(config: ModelConfig) -> str:
    """Where the client sends requests to."""
    return config.base_url or os.environ.get(ADDRESS) or "https://api.openai.com/v1"


def filled(values: Mapping[str, str]) -> dict[str, str]:
    """Headers or parameters with the environment variables that they name; one that is not set stays as it is written."""
    return {name: VARIABLE.sub(lambda found: os.environ.get(found[1], found[0]), value) for name, value in values.items()}


def client_settings(config: ModelConfig) -> dict[str, Any]:
    """What a client of the ``openai`` package is made with; it sends nothing again by itself.

    Raises:
        InputError: if the key or a header cannot be sent.
    """
    check_access(config)
    return {
        "api_key": key_of(config),
        "base_url": config.base_url,
        "default_headers": filled(config.headers),
        "default_query": filled(config.query),
        "max_retries": 0,
    }


def key_of(config: ModelConfig) -> str:
    """The key of an endpoint; a local server needs none, and the client insists on one."""
    return os.environ.get(config.api_key_env) or "none"


def secrets_of(config: ModelConfig) -> tuple[str, ...]:
    """What must be in nothing that is shown or kept: the key, and what headers and parameters take from the environment."""
    names = [
        config.api_key_env,
        *(name for value in (*config.headers.values(), *config.query.values()) for name in VARIABLE.findall(value)),
    ]
    return tuple(sorted({value for name in names if len(value := os.environ.get(name, "")) >= SHORTEST_SECRET}, key=len, reverse=True))


def masked(text: str, config: ModelConfig) -> str:
    """A text without the secrets of an endpoint, also as JSON and addresses write them."""
    for secret in secrets_of(config):
        for form in (secret, json.dumps(secret)[1:-1], secret.replace("/", "\\/"), quote(secret, safe=""), quote_plus(secret)):
            text = text.replace(form, "***")
    return text


def masked_value(value: Any, config: ModelConfig) -> Any:
    """A JSON value whose texts are without secrets, however their signs were written."""
    if isinstance(value, str):
        return masked(value, config)
    if isinstance(value, list):
        return [masked_value(one, config) for one in value]
    return {name: masked_value(one, config) for name, one in value.items()} if isinstance(value, dict) else value


def check_access(config: ModelConfig) -> None:
    """What the environment holds for an endpoint can be sent to it.

    Raises:
        InputError: for a key or a value that cannot stand in a header, or a variable that is not set; no value is shown.
    """
    if not config.remote:
        return
    where, problems = f"models: {config.model}", list[Problem]()
    place, address = ("base_url", config.base_url) if config.base_url else (f"the environment variable {ADDRESS}", os.environ.get(ADDRESS))
    if config.form and not address:
        fix = "name the address before the path of its form, such as http://localhost:8000"
        problems.append(Problem(f"{where}: base_url", "is missing, and reward models have no default provider", fix))
    if address:  # without base_url the client looks there
        problems += [Problem(f"{where}: {place}", what, fix) for what, fix in url_faults(address)]
        try:
            httpx2.URL(address)
        except httpx2.InvalidURL:
            problems = problems or [Problem(f"{where}: {place}", "is not an address", "write http://HOST:PORT/v1 or https://HOST/v1")]
    if not re.fullmatch("[!-~]+", key_of(config)):
        what = f"the key in {config.api_key_env} holds a character that a header cannot contain, such as a blank or a curly quote"
        problems.append(Problem(where, what, f"set {config.api_key_env} again"))
    written = [(place, *one) for place, values in (("headers", config.headers), ("query", config.query)) for one in values.items()]
    for place, name, value in written:
        for variable in VARIABLE.findall(value):
            if not re.fullmatch("[ -~]*", os.environ.get(variable, "\n")):
                what = f"the environment variable {variable} is not set, or holds a character that a header cannot contain"
                problems.append(Problem(f"{where}: {place}: {name}", what, f"set {variable}"))
    refuse(problems)


# Ends that the provider or the limit made: an answer without a text that says so was worked on all the same.
EARLY_ENDS = {"content_filter", "length"}
# Where a provider puts its words, in the order in which they are looked for.
SAID_IN = ("error", "detail", "code", "message", "msg", "errors", "data")
LONGEST_SAID, DEPTH = 200, 4


class NoCompletion(Exception):
    """A body that holds no answer; the text says why."""


def completion_of(body: Any, model: str, worst: Usage) -> Completion:
    """A completion from the body of a chat completion, whatever its finish. What breaks the schema counts as not said.

    Where tokens are not counted, or in a way that cannot be, the worst case stands in, so that a budget stays hard.

    Raises:
        NoCompletion: if it is an error, or has neither a text, output tokens, a refusal nor a finish reason of :data:`EARLY_ENDS`.
    """
    if not isinstance(body, dict):
        raise NoCompletion(f"the answer is no chat completion: {said(body) or type(body).__name__}")
    if body.get("error"):
        raise NoCompletion(f"an error in the place of an answer: {said(body)}")
    if isinstance(body.get("choices"), list):  # one was asked for
        body = {**body, "choices": body["choices"][:1]}
    body, odd = sound(body, "chat_completion")
    choice = next(iter(body.get("choices") or ()), None) or {}
    message, usage = choice.get("message") or {}, body.get("usage") or {}
    text, refusal, finish = _text(message.get("content")), message.get("refusal") or "", choice.get("finish_reason")
    if any("finish_reason" in place for place, _ in odd):
        finish = "unknown"
    if not (text or refusal or usage.get("completion_tokens") or (finish or "").casefold() in EARLY_ENDS):
        why = next((f"; {said(f'{place}: {what}')}" for place, what in odd), "") or f": {said(body)}".removesuffix(": ")
        raise NoCompletion(f"the answer has no usable content{why}")
    ends = "refusal" if refusal else finish or ("stop" if text else "empty")
    return Completion(storable(refusal or text), ends, model, counted(usage, worst, empty=not (refusal or text)))


def _text(content: Any) -> str:
    """A content as one text: its text parts joined; empty where nothing but white space is in it."""
    parts = content if isinstance(content, list) else [{"text": content}]
    text = "".join(part.get("text") or "" for part in parts if part and part.get("type", "text") in ("text", "output_text", None))
    return text if text.strip() else ""


def counted(usage: dict[str, Any], worst: Usage, *, empty: bool) -> Usage:
    """The tokens as they were counted, each within its worst case, or the worst case."""
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    if not read or not cached <= read <= worst.input_tokens:
        read, cached = worst.input_tokens, 0
    if written is None or (not written and not empty) or written > worst.output_tokens:
        written = worst.output_tokens
    return Usage(int(read), int(cached), int(written))


def said(value: Any, depth: int = DEPTH) -> str:
    """What a provider says of an error, in one short line: of an object its code and message, of a list what is in it, or plain text."""
    found = ""
    if isinstance(value, str):
        found = value
    elif isinstance(value, dict) and depth:
        found = next(filter(None, (said(value.get(name), depth - 1) for name in SAID_IN[:2])), "")
        found = found or " ".join(filter(None, (said(value.get(name), depth - 1) for name in SAID_IN[2:])))
    elif isinstance(value, list) and depth:
        found = "; ".join(filter(None, (said(one, depth - 1) for one in value[:3])))
    elif isinstance(value, int) and not isinstance(value, bool) and depth < DEPTH and abs(value) < 10**9:  # a code
        found = str(value)
    # Control and formatting signs could move a terminal's cursor.
    plain = "".join(sign if sign.isprintable() else " " for sign in found[: 10 * LONGEST_SAID])
    line = " ".join(plain.split())
    return line if len(line) <= LONGEST_SAID else f"{line[: LONGEST_SAID - 1]}…"


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


# What a longer wait is taken as, in seconds: about four months.
LONGEST_ASKED = 1e7
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(ms|[smhd])", re.ASCII)


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
