"""OpenAI-compatible chat endpoints and reward models, through the ``openai`` package: one answer for each request, or none."""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import uuid
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, TypeVar

import aiohttp
import httpx2
import openai
from openai._types import RequestOptions

from empathy_eval.base.errors import EmpathyEvalError
from empathy_eval.base.hashing import canonical_json
from empathy_eval.base.schemas import schema_for_models, without_violations
from empathy_eval.base.stages import now
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.models.endpoint_health import EndpointHealth, RateLimiter
from empathy_eval.completions.models.transport import (
    BoundedClient,
    NoCompletion,
    Received,
    RetryableError,
    bounded_usage,
    classify_status,
    client_settings,
    completion_of,
    error_text,
    masked,
)
from empathy_eval.completions.requests import Completion, NoAnswer, Request, Usage
from empathy_eval.design.endpoints import ModelConfig
from empathy_eval.design.prompts import Message

# The longest and the first wait before a request is sent again, in seconds, where the endpoint does not say.
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
# The longest wait where the endpoint asks for less: one that grew further would keep the last few requests from an idle endpoint.
LONGEST_SHORT = 0.5
# Where a request of a batch goes, in the words of providers.
BATCH_URL: Final = "/v1/chat/completions"
# The parts in which the time of an answer is counted.
SLICES = 16
T = TypeVar("T")
PATHS = {"chat": "/chat/completions", "classify": "/classify", "score": "/score", "predict": "/predict"}
# How a chat endpoint says numbers: ``reward:-3.5``, ``helpfulness:1.6,coherence:3.3``, or a bare one.
REWARD_TEXT = re.compile(
    r"(?:(?P<label>[^:,\n]{1,100}):)?\s*(?P<value>[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|[-+]?(?:nan|inf(?:inity)?))", re.IGNORECASE
)
# A number and the class that it is of: its name, or its place.
LabelledReward = tuple[str | int | None, Any]


class EndpointConnection:
    """What models on one endpoint share: the client with its connections, the rate limits, and the endpoint's health."""

    def __init__(self, config: ModelConfig, stopped: Callable[[], EmpathyEvalError | None]) -> None:
        self._config = config
        self.pace = RateLimiter(
            config.in_flight, config.requests_per_minute, config.tokens_per_minute, stopped=stopped, name=f"endpoint {config.endpoint}"
        )
        self.reception = EndpointHealth(config)
        self._answered = dict[str, httpx2.Request]()

    async def post(self, path: str, content: bytes) -> Received:
        """The response to a body, sent as the client sends it.

        Address and headers are those of the first answered request: building them takes a quarter of the client's time.

        Raises:
            openai.APIStatusError: for an error status.
            openai.APIConnectionError: if there is no response.
        """
        if path not in self._answered:
            options: RequestOptions = {"headers": {"Content-Type": "application/json"}, "timeout": self._limit}
            response = await self.client.post(path, cast_to=httpx2.Response, content=content, options=options)
            self._answered[path] = response.request
            return Received(response.headers.raw, response.content)
        first = self._answered[path]
        first.extensions["timeout"] = self._limit.as_dict()
        try:
            received = await self._http.send_like(first, content)
        except (httpx2.RequestError, aiohttp.ClientError) as error:
            raise openai.APIConnectionError(request=first) from error
        if isinstance(received, Received):
            return received
        if not received.is_success:
            raise openai.APIStatusError(str(received.status_code), response=received, body=None)
        return Received(received.headers.raw, received.content)

    @property
    def _limit(self) -> httpx2.Timeout:
        """The time limit for a connection (name, TCP, TLS); the whole answer has its own limit."""
        return httpx2.Timeout(None, pool=self.reception.connecting)

    @cached_property
    def _http(self) -> BoundedClient:
        return BoundedClient(self._config, self.reception.connection_made, self._limit)

    @cached_property
    def client(self) -> openai.AsyncOpenAI:
        """The client, created at the first request: a replay needs none.

        Raises:
            InputError: if the key or a header cannot be sent.
        """
        return openai.AsyncOpenAI(**client_settings(self._config), http_client=self._http)


class OpenAIEndpoint:
    """A model behind a chat-completions endpoint. Its key is read from the environment and kept nowhere else."""

    path = "/chat/completions"

    def __init__(
        self, config: ModelConfig, budget: Budget, line: EndpointConnection, stopped: Callable[[], EmpathyEvalError | None]
    ) -> None:
        self.name, self.endpoint, self._stopped = config.model, config.endpoint, stopped
        self._config, self._budget = config, budget
        self._line, self._pace, self.reception = line, line.pace, line.reception

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The body of a chat completion; structured output is requested as configured, never detected."""
        config = self._config
        body = {"model": self.name, "messages": messages, config.max_tokens_field: config.max_tokens, **config.parameters}
        if config.structure == "schema" and answer_schema:
            asked = {"name": answer_schema, "strict": True, "schema": schema_for_models(answer_schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": asked}
        elif config.structure == "json_object" and answer_schema:
            body["response_format"] = {"type": "json_object"}
        return body

    def request_bytes(self, request: Request) -> bytes:
        """The bytes that are sent."""
        return request.content

    def completion(self, body: Any, worst: Usage) -> Completion:
        """The completion in a response body.

        Raises:
            NoCompletion: if there is none.
        """
        return completion_of(body, self.name, worst)

    async def complete(self, request: Request) -> Completion:
        """Sends a request until it is answered or patience ends.

        Raises:
            NoAnswer: if the endpoint refused this request, or did not answer it in time.
            JobError: if it refuses all requests (key, permission, model, quota), cannot be reached, or the budget is used up.
            EmpathyEvalError: if the run was stopped.
        """
        give_up, attempt, size = now() + self._config.patience_seconds, 0, request.size
        try:
            while True:
                try:
                    return await self._once(request, size)
                except RetryableError as refusal:
                    wait = self.reception.bounded_wait(_wait(refusal, attempt))
                    if now() + wait > give_up:
                        asked = f"; it asks to wait {refusal.wait:,.0f} s" if refusal.wait else ""
                        raise NoAnswer(f"{refusal}{asked}") from refusal
                    attempt += 1
                self.reception.again[id(request)] = give_up
                await self._pace.rest(wait)
        finally:
            self.reception.again.pop(id(request), None)

    async def _once(self, request: Request, size: int) -> Completion:
        """One attempt, within rate limits and budget, at a request of that many bytes."""
        token, worst = uuid.uuid4().hex, Usage(size, 0, self._config.max_tokens)
        expected = size // 4 + self._config.max_tokens
        await self._pace.start(expected)
        used, slower = Usage(), False
        try:
            await self._budget.reserve(token, self.name, worst)
            # Until something else is known (a cancelled task never learns it), the request may have been answered and charged.
            known = False
            try:
                if stopped := self._stopped():  # while it waited for its turn
                    raise stopped
                completion = await self._send(self.request_bytes(request), worst)
                used, known = completion.usage, True
                return completion
            except RetryableError as refusal:
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
        """Sends a request once; anything but a whole answer in time is no answer."""
        self.reception.request_sent()
        try:
            response = await with_timeout(self._config.timeout_seconds, self._line.post(self.path, content), self._lost)
            self._pace.apply_headers(response.headers)
            completion = self.completion(_parsed(response.content), worst)
        except openai.APIStatusError as error:
            self._pace.apply_headers(error.response.headers.raw)
            raise self._received(classify_status(error, self._config)) from error
        except TimeoutError as error:
            if self._lost() and (stopped := self._stopped()):
                raise stopped from error
            self.reception.no_answer_received(reason := f"no answer within {self._config.timeout_seconds:g} s")
            raise RetryableError(reason, pace=True, known=False) from error
        except NoCompletion as error:
            raise self._received(RetryableError(masked(str(error), self._config), known=False, failing=True)) from error
        except EmpathyEvalError:
            raise
        except Exception as error:  # the libraries beneath raise anything on what is no HTTP
            raise self.reception.classify_error(error) from error
        finally:
            self.reception.request_ended()
        self.reception.answer_received()
        return replace(completion, text=masked(completion.text, self._config))

    def _lost(self) -> bool:
        """Whether the run is stopped and nothing can be at the endpoint: no connection was ever made."""
        return not self.reception.connected and self._stopped() is not None

    def _received(self, failure: RetryableError | NoAnswer | EmpathyEvalError) -> Exception:
        """The failure of a status; or the error that gives the endpoint up."""
        return (None if isinstance(failure, EmpathyEvalError) else self.reception.record_refusal(failure)) or failure

    async def close(self) -> None:
        """Closes the connections."""
        if "client" in vars(self._line):
            await self._line.client.close()


def _wait(refusal: RetryableError, attempt: int) -> float:
    """Seconds before the next attempt: growing and randomised, so that requests refused together do not return together."""
    own: float = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(attempt, 10))
    if refusal.wait is None:
        return own * random.uniform(0.5, 1.0)
    # Who asks for no wait at all gets a tenth of ours.
    return max(refusal.wait, min(own / 10, LONGEST_SHORT)) * random.uniform(1.0, 1.25)


async def with_timeout(length: float, work: Coroutine[Any, Any, T], lost: Callable[[], bool] = lambda: False) -> T:
    """The result of some work within a time limit in seconds, not counting time in which this process was busy.

    Raises:
        TimeoutError: if there is none, or it is ``lost``; the work is cancelled.
    """
    task, left, part = asyncio.ensure_future(work), length, min(1.0, length / SLICES)
    try:
        while not task.done() and left > 0 and not lost():
            await asyncio.wait({task}, timeout=part)
            left -= part
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        if task.cancel():
            await asyncio.gather(task, return_exceptions=True)


def _parsed(content: bytes) -> Any:
    """The JSON value of a body.

    Raises:
        NoCompletion: if it is not JSON.
    """
    try:
        return json.loads(content)
    except RecursionError:
        raise NoCompletion("the endpoint's answer is nested without end") from None
    except ValueError as error:
        raise NoCompletion(f"the endpoint's answer is no JSON: {error}") from error


def reward_body(form: str, model: str, messages: list[Message], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The canonical body for a conversation whose last message is the reply.

    Raw scores are requested, because a sigmoid brings good replies together; ``parameters`` may override this.
    """
    *before, reply = messages
    conversation = "\n".join(f"{message['role']}: {message['content']}" for message in before)
    asked: dict[str, Callable[[], dict[str, Any]]] = {
        "chat": lambda: {"messages": messages},
        "classify": lambda: {"messages": messages, "use_activation": False},
        "score": lambda: {"text_1": conversation, "text_2": reply["content"], "use_activation": False},
        "predict": lambda: {"inputs": [conversation, reply["content"]], "raw_scores": True},
    }
    return {"form": form, "model": model, **asked[form](), **parameters}


def sent_body(body: Mapping[str, Any]) -> bytes:
    """The bytes to send of a canonical body; a ``predict`` server has one model, and takes no name."""
    unsent = ("form", "model") if body["form"] == "predict" else ("form",)
    return canonical_json({name: value for name, value in body.items() if name not in unsent})


def rewards_of(body: Any, model: str, worst: Usage) -> Completion:
    """The scores in a response body of any form; an answer without scores, or with an error, is recorded as such.

    Uncounted tokens are replaced by the worst case.
    """
    answer: dict[str, Any] = body if isinstance(body, dict) else {}
    usage = bounded_usage(without_violations({"usage": answer.get("usage")}, "chat_completion")[0]["usage"] or {}, worst, empty=True)
    if answer.get("error") or answer.get("object") == "error":
        return Completion(error_text(answer), "error", model, usage)
    if "choices" not in answer:
        return Completion(_rewards_text(_classes(answer.get("data") if answer else body)), "stop", model, usage)
    try:
        completion = completion_of(answer, model, worst)
    except NoCompletion:
        return Completion(_rewards_text([]), "stop", model, usage)
    return replace(completion, text=_rewards_text(_rewards_in_text(completion.text)))


def _classes(entries: Any) -> Iterator[LabelledReward]:
    """Scores by class: indices for ``classify``, names for ``predict``, a single one for ``score``."""
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, list):
            yield from _classes(entry)
        elif isinstance(entry, dict) and isinstance(entry.get("probs"), list):
            yield from enumerate(entry["probs"])
        elif isinstance(entry, dict) and "score" in entry:
            yield entry["label"] if isinstance(entry.get("label"), str) else None, entry["score"]


def _rewards_in_text(text: str) -> Iterable[LabelledReward]:
    """The scores that a chat endpoint writes as text; empty for any other text."""
    matches = [REWARD_TEXT.fullmatch(part.strip()) for part in re.split("[,\n]", text.strip())]
    return [] if None in matches else [(match["label"] and match["label"].strip(), float(match["value"])) for match in matches if match]


def _rewards_text(rewards: Iterable[LabelledReward]) -> str:
    return json.dumps({"rewards": [{"label": label, "value": _number(value)} for label, value in rewards]})


def _number(value: Any) -> float | str | None:
    """A finite number unchanged, NaN and infinity by name (JSON has neither), None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    return number if math.isfinite(number) else str(number)


class RewardEndpoint(OpenAIEndpoint):
    """A reward model: sent, limited and paid for as a chat model, with its own response forms."""

    def __init__(
        self, config: ModelConfig, budget: Budget, line: EndpointConnection, stopped: Callable[[], EmpathyEvalError | None]
    ) -> None:
        super().__init__(config, budget, line, stopped)
        self._form = config.form or ""
        self.path = PATHS[self._form]

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The canonical body including the form: another form is another request, another address is not."""
        return reward_body(self._form, self.name, messages, self._config.parameters)

    def request_bytes(self, request: Request) -> bytes:
        """The bytes that the server of that form reads."""
        return sent_body(request.body)

    def completion(self, body: Any, worst: Usage) -> Completion:
        """The scores as a completion; one without scores is refused later."""
        return rewards_of(body, self.name, worst)
