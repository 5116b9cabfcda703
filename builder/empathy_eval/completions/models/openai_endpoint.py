"""Any OpenAI-compatible chat endpoint, through the ``openai`` package: one answer a request, or none."""

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
from empathy_eval.base.schemas import shape, sound
from empathy_eval.base.stages import now
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.models.endpoint_health import EndpointHealth, RateLimiter
from empathy_eval.completions.models.transport import (
    BoundedClient,
    NoCompletion,
    Received,
    Refused,
    client_settings,
    completion_of,
    counted,
    masked,
    meaning,
    said,
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


class EndpointConnection:
    """What models on one endpoint share: the client with its connections, the pace, and how they are received."""

    def __init__(self, config: ModelConfig, stopped: Callable[[], EmpathyEvalError | None]) -> None:
        self._config = config
        self.pace = RateLimiter(
            config.in_flight, config.requests_per_minute, config.tokens_per_minute, stopped=stopped, name=f"endpoint {config.endpoint}"
        )
        self.reception = EndpointHealth(config)
        self._answered = dict[str, httpx2.Request]()

    async def post(self, path: str, content: bytes) -> Received:
        """The response to a body, sent as the client sends it.

        Address and headers are those of the first request that was answered: to put them together takes the client a quarter of its time.

        Raises:
            openai.APIStatusError: for a status that is no success.
            openai.APIConnectionError: where there is no response.
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
        """How long it may take to get a connection (name, TCP, TLS); the whole answer has a limit of its own."""
        return httpx2.Timeout(None, pool=self.reception.connecting)

    @cached_property
    def _http(self) -> BoundedClient:
        return BoundedClient(self._config, self.reception.reached, self._limit)

    @cached_property
    def client(self) -> openai.AsyncOpenAI:
        """The client, made when something is sent for the first time: a replay needs none.

        Raises:
            InputError: if the key or a header cannot be sent.
        """
        return openai.AsyncOpenAI(**client_settings(self._config), http_client=self._http)


class OpenAIEndpoint:
    """A model behind a chat-completions endpoint. The key is read from the environment and kept nowhere else."""

    path = "/chat/completions"

    def __init__(
        self, config: ModelConfig, budget: Budget, line: EndpointConnection, stopped: Callable[[], EmpathyEvalError | None]
    ) -> None:
        self.name, self.endpoint, self._stopped = config.model, config.endpoint, stopped
        self._config, self._budget = config, budget
        self._line, self._pace, self.reception = line, line.pace, line.reception

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The body of a chat completion; structure is asked for as configured, never detected."""
        config = self._config
        body = {"model": self.name, "messages": messages, config.max_tokens_field: config.max_tokens, **config.parameters}
        if config.structure == "schema":
            asked = {"name": answer_schema, "strict": True, "schema": shape(answer_schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": asked}
        elif config.structure == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    def sent(self, request: Request) -> bytes:
        """The bytes that are sent."""
        return request.content

    def answer(self, body: Any, worst: Usage) -> Completion:
        """The completion in the body of an answer. Raises :class:`NoCompletion` where there is none."""
        return completion_of(body, self.name, worst)

    async def complete(self, request: Request) -> Completion:
        """Sends a request until it is answered or patience ends.

        Raises:
            NoAnswer: if the endpoint refused this request, or did not answer it in time.
            JobError: if it refuses all of them (key, permission, model, quota), cannot be reached, or the budget is used up.
            EmpathyEvalError: if nothing is to be sent any more.
        """
        give_up, attempt, size = now() + self._config.patience_seconds, 0, request.size
        try:
            while True:
                try:
                    return await self._once(request, size)
                except Refused as refusal:
                    wait = self.reception.patience(_wait(refusal, attempt))
                    if now() + wait > give_up:
                        asked = f"; it asks to wait {refusal.wait:,.0f} s" if refusal.wait else ""
                        raise NoAnswer(f"{refusal}{asked}") from refusal
                    attempt += 1
                self.reception.again[id(request)] = give_up
                await self._pace.rest(wait)
        finally:
            self.reception.again.pop(id(request), None)

    async def _once(self, request: Request, size: int) -> Completion:
        """One attempt, within pace and budget, at a request of that many bytes."""
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
                completion = await self._send(self.sent(request), worst)
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
        """Sends a request once; what does not come whole and in time is no answer, whatever was raised by what came instead."""
        self.reception.sends()
        try:
            response = await within(self._config.timeout_seconds, self._line.post(self.path, content), self._lost)
            self._pace.heed(response.headers)
            completion = self.answer(_parsed(response.content), worst)
        except openai.APIStatusError as error:
            self._pace.heed(error.response.headers.raw)
            raise self._received(meaning(error, self._config)) from error
        except TimeoutError as error:
            if self._lost() and (stopped := self._stopped()):
                raise stopped from error
            self.reception.silent(reason := f"no answer within {self._config.timeout_seconds:g} s")
            raise Refused(reason, pace=True, known=False) from error
        except NoCompletion as error:
            raise self._received(Refused(masked(str(error), self._config), known=False, failing=True)) from error
        except EmpathyEvalError:
            raise
        except Exception as error:  # the libraries beneath raise anything on what is no HTTP
            raise self.reception.broken(error) from error
        finally:
            self.reception.came_back()
        self.reception.heard()
        return replace(completion, text=masked(completion.text, self._config))

    def _lost(self) -> bool:
        """Whether the run is stopped while nothing can be at the endpoint: not one connection was made."""
        return not self.reception.connected and self._stopped() is not None

    def _received(self, found: Refused | NoAnswer | EmpathyEvalError) -> Exception:
        """What was found in a status; or the error that gives the endpoint up."""
        return (None if isinstance(found, EmpathyEvalError) else self.reception.refused(found)) or found

    async def close(self) -> None:
        """Closes the connections."""
        if "client" in vars(self._line):
            await self._line.client.close()


def _wait(refusal: Refused, attempt: int) -> float:
    """Seconds before a request is sent again: they grow and are spread, so that those refused together do not come back together."""
    own: float = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(attempt, 10))
    if refusal.wait is None:
        return own * random.uniform(0.5, 1.0)
    # Who asks for no wait at all gets a tenth of ours.
    return max(refusal.wait, min(own / 10, LONGEST_SHORT)) * random.uniform(1.0, 1.25)


async def within(length: float, work: Coroutine[Any, Any, T], lost: Callable[[], bool] = lambda: False) -> T:
    """The result of some work within so many seconds; not counted are those in which this process was busy with something else.

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
    """The value of a body.

    Raises:
        NoCompletion: if it is no JSON.
    """
    try:
        return json.loads(content)
    except RecursionError:
        raise NoCompletion("the endpoint's answer is nested without end") from None
    except ValueError as error:
        raise NoCompletion(f"the endpoint's answer is no JSON: {error}") from error


PATHS = {"chat": "/chat/completions", "classify": "/classify", "score": "/score", "predict": "/predict"}
# How a chat endpoint says numbers: ``reward:-3.5``, ``helpfulness:1.6,coherence:3.3``, or a bare one.
SAID = re.compile(
    r"(?:(?P<label>[^:,\n]{1,100}):)?\s*(?P<value>[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|[-+]?(?:nan|inf(?:inity)?))", re.IGNORECASE
)
# A number and the class that it is of: its name, or its place.
Found = tuple[str | int | None, Any]


def body_of(form: str, model: str, messages: list[Message], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The canonical body for a conversation whose last message is the reply.

    Numbers are asked for as the model makes them, before a sigmoid brings good replies together; ``parameters`` may say otherwise.
    """
    *before, reply = messages
    conversation = "\n".join(f"{one['role']}: {one['content']}" for one in before)
    asked: dict[str, Callable[[], dict[str, Any]]] = {
        "chat": lambda: {"messages": messages},
        "classify": lambda: {"messages": messages, "use_activation": False},
        "score": lambda: {"text_1": conversation, "text_2": reply["content"], "use_activation": False},
        "predict": lambda: {"inputs": [conversation, reply["content"]], "raw_scores": True},
    }
    return {"form": form, "model": model, **asked[form](), **parameters}


def sent_of(body: Mapping[str, Any]) -> bytes:
    """What is sent of a canonical body; the server of ``predict`` has one model, and takes no name."""
    unsent = ("form", "model") if body["form"] == "predict" else ("form",)
    return canonical_json({name: value for name, value in body.items() if name not in unsent})


def rewards_of(body: Any, model: str, worst: Usage) -> Completion:
    """The numbers in the body of an answer, whatever its form; where there are none, or an error stands in their place, it says so.

    Where tokens are not counted, the worst case stands in.
    """
    told: dict[str, Any] = body if isinstance(body, dict) else {}
    usage = counted(sound({"usage": told.get("usage")}, "chat_completion")[0]["usage"] or {}, worst, empty=True)
    if told.get("error") or told.get("object") == "error":
        return Completion(said(told), "error", model, usage)
    if "choices" not in told:
        return Completion(_text(_classes(told.get("data") if told else body)), "stop", model, usage)
    try:
        completion = completion_of(told, model, worst)
    except NoCompletion:
        return Completion(_text([]), "stop", model, usage)
    return replace(completion, text=_text(_said(completion.text)))


def _classes(entries: Any) -> Iterator[Found]:
    """Of ``classify`` all classes by their place, of ``predict`` by their names, of ``score`` the one there is."""
    for one in entries if isinstance(entries, list) else ():
        if isinstance(one, list):
            yield from _classes(one)
        elif isinstance(one, dict) and isinstance(one.get("probs"), list):
            yield from enumerate(one["probs"])
        elif isinstance(one, dict) and "score" in one:
            yield one["label"] if isinstance(one.get("label"), str) else None, one["score"]


def _said(text: str) -> Iterable[Found]:
    """The numbers that a chat endpoint writes down; none where it writes anything else."""
    found = [SAID.fullmatch(part.strip()) for part in re.split("[,\n]", text.strip())]
    return [] if None in found else [(one["label"] and one["label"].strip(), float(one["value"])) for one in found if one]


def _text(found: Iterable[Found]) -> str:
    return json.dumps({"rewards": [{"label": label, "value": _number(value)} for label, value in found]})


def _number(value: Any) -> float | str | None:
    """A finite number as it is; what is none by its name, for JSON has none for it; None for what is no number at all."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    return number if math.isfinite(number) else str(number)


class RewardEndpoint(OpenAIEndpoint):
    """A reward model: sent, paced and paid for as a chat model is, read as its form is."""

    def __init__(
        self, config: ModelConfig, budget: Budget, line: EndpointConnection, stopped: Callable[[], EmpathyEvalError | None]
    ) -> None:
        super().__init__(config, budget, line, stopped)
        self._form = config.form or ""
        self.path = PATHS[self._form]

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The canonical body, with the form in it: another form is another request, another address is not."""
        return body_of(self._form, self.name, messages, self._config.parameters)

    def sent(self, request: Request) -> bytes:
        """The bytes that are sent: what the server of that form reads."""
        return sent_of(request.body)

    def answer(self, body: Any, worst: Usage) -> Completion:
        """What was answered, with the numbers in it; without any it is an answer too, which is not taken later."""
        return rewards_of(body, self.name, worst)
