"""Any OpenAI-compatible chat endpoint, through the ``openai`` package: one answer a request, or none."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
import uuid
from collections.abc import Callable
from typing import Any, Final

import httpx2
import openai

from builder.budget import Budget
from builder.config import ModelConfig
from builder.errors import EmpathyEvalError, job_error
from builder.models.pace import Pace, seconds
from builder.models.protocol import NoAnswer
from builder.prompts import Message
from builder.records import Completion, Request, Usage
from builder.schemas import schema

# The longest and the first wait before a request is sent again, in seconds, where the endpoint does not say.
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "insufficient_balance")
# Where a request of a batch goes, in the words of providers.
BATCH_URL: Final = "/v1/chat/completions"
JSON_HEADERS = {"Content-Type": "application/json"}


class Refused(Exception):
    """The endpoint gave no answer this time; ``wait`` seconds if it said how long, ``known`` if it surely did not work on it."""

    def __init__(self, reason: str, wait: float | None = None, *, pace: bool = False, known: bool = True) -> None:
        super().__init__(reason)
        self.wait, self.pace, self.known = wait, pace, known


class Line:
    """What models on one endpoint share: the client with its connections, and the pace."""

    def __init__(self, config: ModelConfig) -> None:
        self.pace = Pace(config.in_flight, config.requests_per_minute, config.tokens_per_minute)
        # A local server needs no key, and the client insists on one.
        self.client = openai.AsyncOpenAI(
            api_key=os.environ.get(config.api_key_env) or "none",
            base_url=config.base_url,
            max_retries=0,
            http_client=openai.DefaultAioHttpClient(
                timeout=config.timeout_seconds,
                limits=httpx2.Limits(max_connections=config.in_flight, max_keepalive_connections=config.in_flight),
            ),
        )


class OpenAIEndpoint:
    """A model behind a chat-completions endpoint. The key is read from the environment and kept nowhere else."""

    def __init__(self, config: ModelConfig, budget: Budget, line: Line, stopped: Callable[[], EmpathyEvalError | None]) -> None:
        self.name, self.endpoint, self._stopped = config.model, config.endpoint, stopped
        self._config, self._budget = config, budget
        self._pace, self._client = line.pace, line.client

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The body of a chat completion; structure is asked for as configured, never detected."""
        config = self._config
        body = {"model": self.name, "messages": messages, config.max_tokens_field: config.max_tokens, **config.parameters}
        if config.structure == "schema":
            shape = {name: value for name, value in schema(answer_schema).items() if name not in ("$schema", "title")}
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": answer_schema, "strict": True, "schema": shape}}
        return body

    async def complete(self, request: Request) -> Completion:
        """Sends a request until it is answered or patience ends.

        Raises:
            NoAnswer: if the endpoint refused this request, or did not answer it in time.
            JobError: if it refuses all of them (key, permission, model, quota), or the budget is used up.
            EmpathyEvalError: if nothing is to be sent any more.
        """
        give_up, attempt = time.monotonic() + self._config.patience_seconds, 0
        while True:
            try:
                return await self._once(request.content)
            except Refused as refusal:
                # Waits grow and are spread, so that those refused together do not come back together.
                wait = refusal.wait if refusal.wait is not None else min(LONGEST_WAIT, FIRST_WAIT * 2**attempt)
                wait *= random.uniform(1.0, 1.25) if refusal.wait is not None else random.uniform(0.5, 1.0)
                if time.monotonic() + wait > give_up:
                    raise NoAnswer(str(refusal)) from refusal
                attempt += 1
            await asyncio.sleep(wait)

    async def _once(self, content: bytes) -> Completion:
        """One attempt, within pace and budget."""
        token, worst = uuid.uuid4().hex, Usage(len(content), 0, self._config.max_tokens)
        expected = len(content) // 4 + self._config.max_tokens
        await self._pace.start(expected)
        used, slower = Usage(), False
        try:
            await self._budget.reserve(token, self.name, worst)
            # Until something else is known (a cancelled task never learns it), the request may have been answered and charged.
            known = False
            try:
                if stopped := self._stopped():  # while it waited for its turn
                    raise stopped
                completion = await self._send(content, worst)
                used, known = completion.usage, True
                return completion
            except Refused as refusal:
                slower, known = refusal.pace, refusal.known
                raise
            except (NoAnswer, EmpathyEvalError):
                known = True
                raise
            finally:
                self._budget.settle(token, self.name, worst, used, known=known)
        finally:
            self._pace.end(expected, used.input_tokens + used.output_tokens, refused=slower)

    async def _send(self, content: bytes, worst: Usage) -> Completion:
        try:
            response = await self._client.post(
                "/chat/completions", cast_to=httpx2.Response, content=content, options={"headers": JSON_HEADERS}
            )
            self._pace.heed(response.headers.raw)
            answer = json.loads(response.content)
        except openai.APIStatusError as error:
            self._pace.heed(error.response.headers.raw)
            raise meaning(error, self._config) from error
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            raise Refused(f"no answer: {_cause(error)}", known=False) from error
        except ValueError as error:
            raise Refused(f"the endpoint's answer is not JSON: {error}", known=False) from error
        return completion_of(answer, self.name, worst)

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()


def meaning(error: openai.APIStatusError, config: ModelConfig) -> Refused | NoAnswer | EmpathyEvalError:
    """What a status means: come back later, not this request, or not at all."""
    status, reason, key = error.status_code, _reason(error), config.api_key_env
    if any(code in reason for code in QUOTA):
        return _stop(config, f"the quota is used up ({status}: {reason})", "add to the account's balance")
    if status == 401:
        return _stop(config, f"the endpoint refuses the key in {key} (401)", f"set {key}")
    if status == 403:
        return _stop(config, f"the key in {key} may not do this (403)", "give it access, or use another key")
    if status == 404:
        return _stop(
            config, f'the endpoint does not have this (404: {reason}), model "{config.model}"', "mend the model's name or base_url"
        )
    if status in (408, 409, 429) or status >= 500:
        return Refused(f"{status}: {reason}", seconds(error.response.headers.get("retry-after")), pace=status == 429)
    return NoAnswer(f"refused with {status}: {reason}")


def _stop(config: ModelConfig, what: str, how: str) -> EmpathyEvalError:
    return job_error(f"models: {config.model}", what, f"{how}, then run the same command to go on; every answer is in the ledger")


def _reason(error: openai.APIStatusError) -> str:
    """The provider's own words, in one short line; never a header, so never a key."""
    return said(error.body) or " ".join(error.message.split())[:200]


def said(error: Any) -> str:
    """Code and message of a provider's error object, in one short line; empty for anything else."""
    values = error if isinstance(error, dict) else {}
    return " ".join(" ".join(str(values[name]) for name in ("code", "message") if values.get(name)).split())[:200]


def _cause(error: Exception) -> str:
    cause = error.__cause__ or error
    return f"{type(cause).__name__} {cause}".strip()


def completion_of(answer: Any, model: str, worst: Usage) -> Completion:
    """A completion from a chat-completions answer, whatever its finish; one without choices is ``empty``.

    Where the endpoint does not count tokens, the worst case stands in, so that a budget stays hard.
    """
    usage, choices = answer.get("usage"), answer.get("choices") or []
    tokens = worst
    if usage:
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        tokens = Usage(usage.get("prompt_tokens") or 0, cached, usage.get("completion_tokens") or 0)
    if not choices:
        return Completion("", "empty", model, tokens)
    message = choices[0].get("message") or {}
    if message.get("refusal"):
        return Completion(_text(message["refusal"]), "refusal", model, tokens)
    return Completion(_text(message.get("content") or ""), choices[0].get("finish_reason") or "stop", model, tokens)


def _text(text: str) -> str:
    """A text that UTF-8 can hold: half of a surrogate pair, which JSON can write, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()
