"""HTTP for endpoints: keys and headers from the environment, bounded responses without secrets, and the meaning of errors."""

from __future__ import annotations

import email.utils
import json
import math
import os
import re
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote, quote_plus

import aiohttp
import httpx2
import openai

from empathy_eval.base.errors import EmpathyEvalError, Problem, job_error, refuse
from empathy_eval.base.schemas import without_violations
from empathy_eval.completions.requests import Completion, NoAnswer, Usage, utf8_safe
from empathy_eval.design.endpoints import ModelConfig, url_faults

# The largest answer that is read, in bytes, unpacked: a chat completion of the longest dialogue with its log-probabilities has a quarter.
LARGEST = 16 * 2**20
# Bytes of it that are unpacked at once.
CHUNK = 2**14
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
ADDRESS = "OPENAI_BASE_URL"
# Shorter ones would be taken out of words that have nothing to do with them.
SHORTEST_SECRET = 8
# Ends that the provider or the limit made: an answer without a text that says so was worked on all the same.
EARLY_ENDS = {"content_filter", "length"}
# Where a provider puts its words, in the order in which they are looked for.
ERROR_KEYS = ("error", "detail", "code", "message", "msg", "errors", "data")
MAX_ERROR_TEXT, DEPTH = 200, 4
QUOTA = re.compile(
    r"insufficient_quota|billing_hard_limit_reached|insufficient_balance|budget.{0,40}exceed|exceed.{0,40}budget", re.IGNORECASE
)
NO_MODEL = re.compile(
    r"model_not_found|(?:invalid|unknown) model|model .{0,200}(?:not found|not exist|not supported|unknown)", re.IGNORECASE
)
LATER, CONGESTED = (408, 409, 425, 429), (408, 429, 504)
# Bytes of a refusal that are looked at for its words.
MOST_WORDS = 8192
# What a longer wait is taken as, in seconds: about four months.
LONGEST_ASKED = 1e7
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(ms|[smhd])", re.ASCII)


@dataclass(frozen=True)
class Received:
    """A successful response: its headers as bytes, and its body, unpacked and without secrets."""

    headers: Sequence[tuple[bytes, bytes]]
    content: bytes


class TooLarge(httpx2.HTTPError):
    """A response larger than any chat completion."""


class BoundedClient(openai.DefaultAioHttpClient):
    """The ``openai`` client over aiohttp; bodies are bounded and secrets removed. ``reached`` is called for every connection."""

    def __init__(self, config: ModelConfig, reached: Callable[[], None], limit: httpx2.Timeout) -> None:
        pool = httpx2.Limits(max_connections=config.in_flight, max_keepalive_connections=config.in_flight)
        super().__init__(follow_redirects=False, verify=tls_context(), timeout=limit, limits=pool)
        self._secrets, self._reached = secrets_of(config), reached

    def _init_transport(self, *given: Any, **settings: Any) -> Any:
        """The transport, whose session reports connections, if it creates one."""
        transport: Any = super()._init_transport(*given, **settings)
        if make := getattr(transport, "get_client", None):
            transport.get_client = lambda: self._listening(make())
        return transport

    def _listening(self, session: aiohttp.ClientSession) -> aiohttp.ClientSession:
        async def on_connection(*about: Any) -> None:
            self._reached()

        listening = aiohttp.TraceConfig()
        listening.on_connection_create_end.append(on_connection)
        listening.freeze()
        session.trace_configs.append(listening)
        return session

    async def send(self, request: httpx2.Request, **settings: Any) -> httpx2.Response:
        """Sends a request and reads the whole response.

        Raises:
            TooLarge: if the unpacked response is larger than any chat completion.
        """
        response = await super().send(request, **{**settings, "stream": True})
        body = bytearray()
        async with aclosing(response):
            async for chunk in response.aiter_bytes():
                _add(body, chunk)
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
        settings: Any = {"headers": headers, "allow_redirects": False, "auto_decompress": False, "timeout": limit}
        async with session.post(str(first.url), data=content, **settings) as response:
            body, parts = bytearray(), response.content.iter_chunked(CHUNK)
            plain = response.ok and "content-encoding" not in response.headers
            packed = None if plain else httpx2.Response(response.status, headers=response.raw_headers, content=parts)
            async for chunk in packed.aiter_bytes() if packed else parts:
                _add(body, chunk)
        if response.ok or not packed:
            return Received(response.raw_headers, _masked_bytes(bytes(body), self._secrets))
        return _whole(packed, first, bytes(body), self._secrets)


class BoundedSyncClient(openai.DefaultHttpxClient):
    """The same for calls of batches, each with a time limit; a downloaded file is streamed."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(follow_redirects=False, verify=tls_context(), timeout=config.timeout_seconds)
        self._secrets, self._seconds = secrets_of(config), config.timeout_seconds

    def send(self, request: httpx2.Request, **settings: Any) -> httpx2.Response:
        """Sends a request and reads the whole response, unless it is streamed.

        Raises:
            TooLarge, ReadTimeout: if the response is too large, or takes too long.
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
    """A complete response, unpacked and without secrets."""
    headers = [(name, value) for name, value in response.headers.raw if name.lower() not in (b"content-encoding", b"content-length")]
    return httpx2.Response(response.status_code, headers=headers, content=_masked_bytes(content, secrets), request=request)


def _masked_bytes(content: bytes, secrets: tuple[str, ...]) -> bytes:
    for secret in secrets:
        content = content.replace(secret.encode(), b"***")
    return content


def tls_context() -> ssl.SSLContext:
    """The trusted certificates, cached by the paths that the environment names."""
    return _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _certificates(*places: str | None) -> ssl.SSLContext:
    # To read them takes 30 ms, for every client anew.
    return httpx2.create_ssl_context()


def address_of(config: ModelConfig) -> str:
    """The address that the client sends requests to."""
    return config.base_url or os.environ.get(ADDRESS) or "https://api.openai.com/v1"


def with_environment(values: Mapping[str, str]) -> dict[str, str]:
    """Values with their environment variables filled in; unset ones stay as written."""
    return {name: VARIABLE.sub(lambda match: os.environ.get(match[1], match[0]), value) for name, value in values.items()}


def client_settings(config: ModelConfig) -> dict[str, Any]:
    """Arguments of an ``openai`` client, which never retries by itself.

    Raises:
        InputError: if the key or a header cannot be sent.
    """
    check_access(config)
    filled = {"default_headers": with_environment(config.headers), "default_query": with_environment(config.query)}
    return {"api_key": key_of(config), "base_url": config.base_url, "max_retries": 0, **filled}


def key_of(config: ModelConfig) -> str:
    """The key of an endpoint; local servers need none, but the client does."""
    return os.environ.get(config.api_key_env) or "none"


def secrets_of(config: ModelConfig) -> tuple[str, ...]:
    """What must never be shown or stored: the key, and values from the environment in headers and parameters."""
    values = (*config.headers.values(), *config.query.values())
    names = [config.api_key_env, *(name for value in values for name in VARIABLE.findall(value))]
    return tuple(sorted({value for name in names if len(value := os.environ.get(name, "")) >= SHORTEST_SECRET}, key=len, reverse=True))


def masked(text: str, config: ModelConfig) -> str:
    """A text without the secrets of an endpoint, in plain, JSON and URL form."""
    for secret in secrets_of(config):
        for form in (secret, json.dumps(secret)[1:-1], secret.replace("/", "\\/"), quote(secret, safe=""), quote_plus(secret)):
            text = text.replace(form, "***")
    return text


def masked_value(value: Any, config: ModelConfig) -> Any:
    """A JSON value whose texts are without secrets, however their characters were written."""
    if isinstance(value, str):
        return masked(value, config)
    if isinstance(value, list):
        return [masked_value(item, config) for item in value]
    return {name: masked_value(item, config) for name, item in value.items()} if isinstance(value, dict) else value


def check_access(config: ModelConfig) -> None:
    """Checks that the environment has valid credentials for an endpoint.

    Raises:
        InputError: for a key or value that a header cannot hold, or a variable that is not set; no value is shown.
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
    written = [(place, *item) for place, values in (("headers", config.headers), ("query", config.query)) for item in values.items()]
    for place, name, value in written:
        for variable in VARIABLE.findall(value):
            if not re.fullmatch("[ -~]*", os.environ.get(variable, "\n")):
                what = f"the environment variable {variable} is not set, or holds a character that a header cannot contain"
                problems.append(Problem(f"{where}: {place}: {name}", what, f"set {variable}"))
    refuse(problems)


class NoCompletion(Exception):
    """A response body without an answer; the text says why."""


def completion_of(body: Any, model: str, worst: Usage) -> Completion:
    """The completion in the body of a chat completion, whatever its finish reason. Fields that break the schema are ignored.

    Missing or impossible token counts are replaced by the worst case, so that a budget stays hard.

    Raises:
        NoCompletion: if it is an error, or has neither a text, output tokens, a refusal nor a finish reason of :data:`EARLY_ENDS`.
    """
    if not isinstance(body, dict):
        raise NoCompletion(f"the answer is no chat completion: {error_text(body) or type(body).__name__}")
    if body.get("error"):
        raise NoCompletion(f"an error in the place of an answer: {error_text(body)}")
    if isinstance(body.get("choices"), list):  # one was asked for
        body = {**body, "choices": body["choices"][:1]}
    body, odd = without_violations(body, "chat_completion")
    choice = next(iter(body.get("choices") or ()), None) or {}
    message, usage = choice.get("message") or {}, body.get("usage") or {}
    text, refusal, finish = _text(message.get("content")), message.get("refusal") or "", choice.get("finish_reason")
    if any("finish_reason" in place for place, _ in odd):
        finish = "unknown"
    if not (text or refusal or usage.get("completion_tokens") or (finish or "").casefold() in EARLY_ENDS):
        why = next((f"; {error_text(f'{place}: {what}')}" for place, what in odd), "") or f": {error_text(body)}".removesuffix(": ")
        raise NoCompletion(f"the answer has no usable content{why}")
    ends = "refusal" if refusal else finish or ("stop" if text else "empty")
    return Completion(utf8_safe(refusal or text), ends, model, bounded_usage(usage, worst, empty=not (refusal or text)))


def _text(content: Any) -> str:
    """The text parts of a content, joined; empty if there is only white space."""
    parts = content if isinstance(content, list) else [{"text": content}]
    text = "".join(part.get("text") or "" for part in parts if part and part.get("type", "text") in ("text", "output_text", None))
    return text if text.strip() else ""


def bounded_usage(usage: dict[str, Any], worst: Usage, *, empty: bool) -> Usage:
    """The counted tokens, each within its worst case, or the worst case."""
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    if not read or not cached <= read <= worst.input_tokens:
        read, cached = worst.input_tokens, 0
    if written is None or (not written and not empty) or written > worst.output_tokens:
        written = worst.output_tokens
    return Usage(int(read), int(cached), int(written))


def error_text(value: Any, depth: int = DEPTH) -> str:
    """A provider's error in one short line: code and message of an object, entries of a list, or plain text."""
    text = ""
    if isinstance(value, str):
        text = value
    elif isinstance(value, dict) and depth:
        text = next(filter(None, (error_text(value.get(name), depth - 1) for name in ERROR_KEYS[:2])), "")
        text = text or " ".join(filter(None, (error_text(value.get(name), depth - 1) for name in ERROR_KEYS[2:])))
    elif isinstance(value, list) and depth:
        text = "; ".join(filter(None, (error_text(item, depth - 1) for item in value[:3])))
    elif isinstance(value, int) and not isinstance(value, bool) and depth < DEPTH and abs(value) < 10**9:  # a code
        text = str(value)
    # Control and formatting signs could move a terminal's cursor.
    plain = "".join(character if character.isprintable() else " " for character in text[: 10 * MAX_ERROR_TEXT])
    line = " ".join(plain.split())
    return line if len(line) <= MAX_ERROR_TEXT else f"{line[: MAX_ERROR_TEXT - 1]}…"


class RetryableError(Exception):
    """The endpoint gave no answer this time.

    ``wait`` are seconds if it said how long, ``known`` means that it surely did not work on the request, ``pace`` that it is asked too much
    at once, ``failing`` that it reported an error of its own.
    """

    def __init__(
        self, reason: str, wait: float | None = None, *, pace: bool = False, known: bool = True, failing: bool = False
    ) -> None:  # fmt: skip
        super().__init__(reason)
        self.wait, self.pace, self.known, self.failing = wait, pace, known, failing


def classify_status(error: openai.APIStatusError, config: ModelConfig) -> RetryableError | NoAnswer | EmpathyEvalError:
    """The meaning of an error status: retry later, refuse this request, or give up."""
    status, key = error.status_code, config.api_key_env
    words = response_words(error.response, config)
    shown = f"{status}: {words}" if words else str(status)
    if status == 402 or (400 <= status < 500 and QUOTA.search(words)):
        return fatal_error(config, f"the quota is used up ({shown})", "add to the account's balance")
    if status == 401:
        return fatal_error(config, f"the endpoint refuses the key in {key} ({shown})", f"set {key}")
    if status == 403:
        return fatal_error(config, f"the key in {key} may not do this ({shown})", "give it access, or use another key")
    if status == 404 or (status in (400, 422) and NO_MODEL.search(words)):
        what = f'the endpoint does not have this ({shown}), model "{config.model}"'
        return fatal_error(config, what, "correct the model's name or base_url")
    if status < 400:
        where = error_text(masked(error.response.headers.get("location", "").partition("?")[0], config))
        return RetryableError(f'{shown}: sends requests on to "{where}", which base_url could name', failing=True)
    if status in LATER or status >= 500:
        wait = retry_seconds(error.response.headers.get("retry-after"))
        return RetryableError(shown, wait, pace=status in CONGESTED, failing=status >= 500)
    return NoAnswer(f"refused with {shown}")


def fatal_error(config: ModelConfig, what: str, how: str) -> EmpathyEvalError:
    """The error that ends a run whose endpoint accepts nothing."""
    return job_error(f"models: {config.model}", what, f"{how}, then run the same command to continue; every answer is in the ledger")


def response_words(response: Any, config: ModelConfig) -> str:
    """The server's words in a response body, in one short line without secrets; never headers, which may hold a key."""
    text = masked(response.content[:MOST_WORDS].decode("utf-8", "replace"), config)
    try:
        return error_text(masked_value(json.loads(text), config))
    except (ValueError, RecursionError):
        return error_text(re.sub(r"<[^<>]{0,200}>", " ", text))


def retry_seconds(text: str | None) -> float | None:
    """Seconds in a rate-limit header: ``1.5``, ``6m0s``, ``20ms``, or an HTTP date; None for anything else."""
    text = (text or "")[:100].strip()
    if not text:
        return None
    try:
        if DURATION.sub("", text) == "":
            return min(LONGEST_ASKED, sum(float(number) * UNITS[unit] for number, unit in DURATION.findall(text)))
        number = float(text)
        return min(LONGEST_ASKED, max(0.0, number)) if math.isfinite(number) else None
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        return None
