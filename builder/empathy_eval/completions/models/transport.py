"""What carries requests to an endpoint: its key and headers out of the environment, and a client whose answers are bounded and masked."""

from __future__ import annotations

import json
import os
import re
import ssl
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from urllib.parse import quote, quote_plus

import aiohttp
import httpx2
import openai

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.design.endpoints import ModelConfig, url_faults

# The largest answer that is read, in bytes, unpacked: a chat completion of the longest dialogue with its log-probabilities has a quarter.
LARGEST = 16 * 2**20
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
ADDRESS = "OPENAI_BASE_URL"
# Where the client looks without either.
OPENAI = "https://api.openai.com/v1"
# Shorter ones would be taken out of words that have nothing to do with them.
SHORTEST_SECRET = 8


class TooLarge(httpx2.HTTPError):
    """An answer that is larger than any chat completion."""


class BoundedClient(openai.DefaultAioHttpClient):
    """The client of the ``openai`` package over aiohttp; a body is read to a bound, and the secrets are taken out of it.

    ``reached`` is called for every connection that is made.
    """

    def __init__(self, secrets: tuple[bytes, ...], reached: Callable[[], None] = lambda: None, **settings: Any) -> None:
        super().__init__(follow_redirects=False, verify=trusted(), **settings)
        self._secrets, self._reached = secrets, reached

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


class BoundedSyncClient(openai.DefaultHttpxClient):
    """The same for the calls of batches, each within so many seconds; a file that is fetched goes through as it comes."""

    def __init__(self, secrets: tuple[bytes, ...], seconds: float) -> None:
        super().__init__(follow_redirects=False, verify=trusted(), timeout=seconds)
        self._secrets, self._seconds = secrets, seconds

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


def _whole(response: httpx2.Response, request: httpx2.Request, content: bytes, secrets: tuple[bytes, ...]) -> httpx2.Response:
    """A response that was read, unpacked and without secrets."""
    headers = [(name, value) for name, value in response.headers.raw if name.lower() not in (b"content-encoding", b"content-length")]
    for secret in secrets:
        content = content.replace(secret, b"***")
    return httpx2.Response(response.status_code, headers=headers, content=content, request=request)


def trusted() -> ssl.SSLContext:
    """The certificates that are trusted, read once for every place that the environment names."""
    return _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _certificates(*places: str | None) -> ssl.SSLContext:
    # To read them takes 30 ms, for every client anew.
    return httpx2.create_ssl_context()


def address_of(config: ModelConfig) -> str:
    """Where the client sends requests to."""
    return config.base_url or os.environ.get(ADDRESS) or OPENAI


def filled(values: Mapping[str, str]) -> dict[str, str]:
    """Headers or parameters with the environment variables that they name; one that is not set stays as it is written."""
    return {name: VARIABLE.sub(lambda found: os.environ.get(found[1], found[0]), value) for name, value in values.items()}


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
    if problems:
        raise InputError(problems)
