"""Custom models: passed in as objects, named by ``module:name``, or offered by an installed package."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any

from empathy_eval.base import plugins
from empathy_eval.base.errors import EmpathyEvalError, JobError, input_error, job_error
from empathy_eval.base.hashing import canonical_json
from empathy_eval.base.schemas import schema, violations
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.ledger_rows import LARGEST
from empathy_eval.completions.requests import SURROGATE, Completion, Model, NoAnswer, Request, Usage, utf8_safe
from empathy_eval.design.endpoints import ModelConfig
from empathy_eval.design.prompts import Message

GROUP = "empathy_eval.models"
# Models that come with the package, by the kind that a configuration names.
BUILT_IN = {"transformers": "empathy_eval.completions.models.local:LocalModel"}
# The texts and the methods of a model.
PARTS = ("name", "endpoint"), ("body", "complete", "close")
# Requests that a model of one's own has at once, unless its ``in_flight`` says otherwise; fewer where each takes a thread.
IN_FLIGHT, THREADS = 64, 8
# What is asked for where an answer has no schema.
PLAIN = {"type": "string"}
FIX = "fix it, then run the same command to continue; every answer is in the ledger"


class TextModel:
    """Base of a custom model: a subclass has a ``name`` and an :meth:`answer`.

    Name, endpoint and parameters are part of every request's key: a model that would answer otherwise needs another name. ``in_flight``
    answers are computed at once, each in a thread: 1 for code that must not run twice at once.
    """

    name: str
    endpoint = "own"
    parameters: dict[str, Any] = {}
    in_flight = THREADS

    def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
        """The answer to messages (each with ``role`` and ``content``): JSON that is valid under a JSON Schema. Runs in a thread.

        A system that is asked for a reply answers in plain words; the schema then says only that.

        Raises:
            NoAnswer: if there is none now; the next run asks again.
        """
        raise NotImplementedError

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The body that the answer is stored under; ``answer_schema`` is the name of a schema, empty for plain text."""
        return {"model": self.name, "messages": messages, "schema": answer_schema, **self.parameters}

    async def complete(self, request: Request) -> Completion:
        """The answer as a completion."""
        name = request.body["schema"]
        work = partial(self.answer, request.body["messages"], schema(name) if name else PLAIN)
        return Completion(await run_in_thread(work), "stop", self.name)

    async def close(self) -> None:
        """Releases resources at the end of a build or a round of it; the model may be asked again. Does nothing by default."""


def placeholder_model(config: ModelConfig, name: str = "") -> TextModel:
    """Stands in for a custom model that is not available: it assumes that the model adds nothing to its messages.

    A model that was passed in is named by the configuration, another by its answers.
    """
    attributes = {"name": config.model, "endpoint": config.endpoint} if config.kind == "given" else {"name": name or config.kind}
    model: TextModel = type("Given", (TextModel,), attributes)()
    return model


async def run_in_thread(work: Callable[[], Any]) -> Any:
    """The result of work in a daemon thread, which does not keep a stopped process alive."""
    future = Future[tuple[Any, BaseException | None]]()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result((work(), None))
        except BaseException as error:  # as a value, for a future takes no StopIteration
            future.set_result((None, error))

    threading.Thread(target=run, daemon=True).start()
    result, error = await asyncio.wrap_future(future)
    if error:
        raise error
    return result


class GuardedModel:
    """Wraps a custom model: any other exception or return value ends the run with an error that names it."""

    def __init__(self, model: Model, stopped: Callable[[], EmpathyEvalError | None] = lambda: None, budget: Budget | None = None) -> None:
        self.name, self.endpoint, self._model, self._stopped = model.name, model.endpoint, model, stopped
        # Only of a model that says how many tokens it writes at most can the tokens be bounded.
        self._longest: int | None = getattr(model, "max_tokens", None)
        self._budget = budget if budget is not None and self._longest is not None else None
        if self._budget:
            self._budget.count(self.name)
        self._turns = asyncio.Semaphore(getattr(model, "in_flight", IN_FLIGHT))
        # The requests that it has and has not answered.
        self.sending = 0

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The body that the model builds.

        Raises:
            JobError: if it fails, or is not JSON.
        """
        try:
            body: Any = self._model.body(messages, answer_schema)
            canonical_json(body)
        except Exception as error:
            raise self._failed(error) from error
        if not isinstance(body, dict):
            raise job_error(f'model "{self.name}"', f"returned a body that is not an object: {str(body)[:80]!r}", FIX)
        return body

    async def complete(self, request: Request) -> Completion:
        """The model's completion, once it is this request's turn.

        Raises:
            NoAnswer: if the model raises it.
            JobError: if the model raises anything else, or returns something else.
        """
        async with self._turns:
            if error := self._stopped():
                raise error
            self.sending += 1
            token, worst, used = uuid.uuid4().hex, Usage(request.size, 0, self._longest or 0), Usage()
            if self._budget:
                await self._budget.reserve(token, self.name, worst)
            try:
                answer: Any = await self._model.complete(request)
                used = getattr(answer, "usage", used)
            except (NoAnswer, EmpathyEvalError):
                raise
            except Exception as error:
                raise self._failed(error) from error
            finally:
                self.sending -= 1
                if self._budget:
                    self._budget.settle(token, self.name, worst, used)
        if not _storable(answer):
            gave = f"returned no completion with a text: {str(answer)[:80]!r}"
            if isinstance(self._model, TextModel) and not isinstance(answer.text, str):
                gave = f"answer returned {repr(answer.text)[:80]}; return the answer as a text"
            raise job_error(f'model "{self.name}"', gave, FIX)
        completion: Completion = answer
        return replace(completion, text=utf8_safe(completion.text))

    async def close(self) -> None:
        """Closes the model.

        Raises:
            JobError: if that fails.
        """
        try:
            await self._model.close()
        except Exception as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> JobError:
        return job_error(f'model "{self.name}"', f"failed: {type(error).__name__}: {str(error)[:200]}", FIX, error)


def _storable(completion: Any) -> bool:
    """Whether the value is a completion that a ledger can store and read again."""
    if not isinstance(completion, Completion) or not isinstance(completion.usage, Usage) or not isinstance(completion.text, str):
        return False
    row = {"finish": completion.finish, "model": completion.model, **vars(completion.usage)}
    # No character takes more than four bytes.
    names = f"{completion.finish}{completion.model}"
    return not any(violations(row, "ledger_row")) and not SURROGATE.search(names) and len(completion.text) <= LARGEST // 4


def custom_models(configured: Mapping[str, ModelConfig], given: Mapping[str, Any]) -> dict[str, Any]:
    """Custom models by role, passed in or named by a configuration; equal names share one object.

    Raises:
        InputError: if one was not passed in, cannot be created, or is not a model.
    """
    by_settings, models = dict[bytes, Any](), dict[str, Any]()
    for role, settings in configured.items():
        if role in given or not (settings.remote or settings.kind == "seed-bank"):
            named = canonical_json([settings.kind, settings.parameters])
            models[role] = _custom_model(role, settings, given.get(role, by_settings.get(named)))
            if role not in given:
                by_settings[named] = models[role]
    return models


def _custom_model(role: str, config: ModelConfig, given: Any) -> Any:
    """The model that was passed in for a role, or named by a configuration.

    Raises:
        InputError: if it was not passed in, cannot be created, or is not a model.
    """
    if given is None and config.kind == "given":
        what = f'"{config.model}" was passed in from Python and is not available here'
        raise input_error(f"models: {role}", what, f"pass it in again: build(…, models={{'{role}': …}})")
    model = plugins.load(GROUP, config.kind, config.parameters, BUILT_IN) if given is None else given
    where = f"models: {role}"
    plugins.check_interface(model, where, "model", PARTS, f"{type(model).__name__} ")
    many = getattr(model, "in_flight", IN_FLIGHT)
    if not isinstance(many, int) or many < 1:
        raise input_error(where, f'"in_flight" of {type(model).__name__} is {many!r}', "use a whole number from 1")
    return model
