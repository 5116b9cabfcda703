"""Models of one's own: handed in as objects, named by ``module:name``, or offered by an installed package."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from empathy_eval.base import plugins
from empathy_eval.base.errors import EmpathyEvalError, JobError, input_error, job_error
from empathy_eval.base.hashing import canonical_json
from empathy_eval.base.schemas import schema, violations
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.ledger_rows import LARGEST
from empathy_eval.completions.requests import SURROGATE, Completion, Model, NoAnswer, Request, Usage, storable
from empathy_eval.design.endpoints import ModelConfig
from empathy_eval.design.prompts import Message

GROUP = "empathy_eval.models"
# Models that come with the package, by the kind that a configuration names.
BUILT_IN = {"transformers": "empathy_eval.completions.models.local:LocalModel"}
# The texts and the methods of a model.
PARTS = ("name", "endpoint"), ("body", "complete", "close")
# Requests that a model of one's own has at once, unless its ``in_flight`` says otherwise; fewer where each takes a thread.
IN_FLIGHT, THREADS = 64, 8
FIX = "fix it, then run the same command to continue; every answer is in the ledger"


class TextModel:
    """The base of a model of one's own: a subclass has a ``name`` and an :meth:`answer`.

    The name, the endpoint and the parameters are part of every request's key: a model that would answer otherwise has another name.
    ``in_flight`` is how many answers are worked on at once, each in a thread: 1 for what must not be called twice at once.
    """

    name: str
    endpoint = "own"
    parameters: dict[str, Any] = {}
    in_flight = THREADS

    def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
        """The answer to messages (each with ``role`` and ``content``): JSON that is valid under a JSON Schema. Runs in a thread.

        Raises:
            NoAnswer: if there is none now; the next run asks again.
        """
        raise NotImplementedError

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """What the request is kept under; ``answer_schema`` is the name of a schema."""
        return {"model": self.name, "messages": messages, "schema": answer_schema, **self.parameters}

    async def complete(self, request: Request) -> Completion:
        """The answer as a completion."""
        return Completion(await beside(lambda: self.answer(request.body["messages"], schema(request.body["schema"]))), "stop", self.name)

    async def close(self) -> None:
        """Gives back what it holds, at the end of a build or a round of it; it may be asked again. Nothing, unless a subclass says so."""


def messages_alone(config: ModelConfig, name: str = "") -> TextModel:
    """What stands in for a model of one's own that is not here: of one that adds nothing to its messages the bodies are known.

    One that was handed in is named by the configuration, another by its answers.
    """
    said = {"name": config.model, "endpoint": config.endpoint} if config.kind == "given" else {"name": name or config.kind}
    made: TextModel = type("Given", (TextModel,), said)()
    return made


async def beside(work: Callable[[], Any]) -> Any:
    """The result of work in a thread that nothing waits for once the run has ended: a second Ctrl-C does not."""
    future = Future[tuple[Any, BaseException | None]]()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result((work(), None))
        except BaseException as error:  # as a value, for a future takes no StopIteration
            future.set_result((None, error))

    threading.Thread(target=run, daemon=True).start()
    found, error = await asyncio.wrap_future(future)
    if error:
        raise error
    return found


class OwnModel:
    """A stranger's model: what it raises or gives beside a completion ends the run with an error that names it."""

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
        """The body that the model itself makes.

        Raises:
            JobError: if it cannot, or makes what is no JSON.
        """
        try:
            found: Any = self._model.body(messages, answer_schema)
            canonical_json(found)
        except Exception as error:
            raise self._failed(error) from error
        if not isinstance(found, dict):
            raise job_error(f'model "{self.name}"', f"returned a body that is not an object: {str(found)[:80]!r}", FIX)
        return found

    async def complete(self, request: Request) -> Completion:
        """The completion of the model itself, once it is this request's turn.

        Raises:
            NoAnswer: if it does.
            JobError: if it raises anything else, or gives something else.
        """
        async with self._turns:
            if error := self._stopped():
                raise error
            self.sending += 1
            token, worst, used = uuid.uuid4().hex, Usage(request.size, 0, self._longest or 0), Usage()
            if self._budget:
                await self._budget.reserve(token, self.name, worst)
            try:
                found: Any = await self._model.complete(request)
                used = getattr(found, "usage", used)
            except (NoAnswer, EmpathyEvalError):
                raise
            except Exception as error:
                raise self._failed(error) from error
            finally:
                self.sending -= 1
                if self._budget:
                    self._budget.settle(token, self.name, worst, used)
        if not _storable(found):
            gave = f"returned no completion with a text: {str(found)[:80]!r}"
            if isinstance(self._model, TextModel) and not isinstance(found.text, str):
                gave = f"answer returned {repr(found.text)[:80]}; return the answer as a text"
            raise job_error(f'model "{self.name}"', gave, FIX)
        completion: Completion = found
        return replace(completion, text=storable(completion.text))

    async def close(self) -> None:
        """Closes the model itself.

        Raises:
            JobError: if that fails.
        """
        try:
            await self._model.close()
        except Exception as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> JobError:
        return job_error(f'model "{self.name}"', f"failed: {type(error).__name__}: {str(error)[:200]}", FIX, error)


def _storable(found: Any) -> bool:
    """Whether it is a completion that can be read again from a ledger."""
    if not isinstance(found, Completion) or not isinstance(found.usage, Usage) or not isinstance(found.text, str):
        return False
    row = {"finish": found.finish, "model": found.model, **vars(found.usage)}
    # No sign takes more than four bytes.
    return not any(violations(row, "ledger_row")) and not SURROGATE.search(found.finish + found.model) and len(found.text) <= LARGEST // 4


def own_models(configured: Mapping[str, ModelConfig], given: Mapping[str, Any]) -> dict[str, Any]:
    """By what they are for, the models of one's own that were given or are named by a configuration; what is named alike is made once.

    Raises:
        InputError: if one was not handed in, cannot be made, or is no model.
    """
    made, found = dict[bytes, Any](), dict[str, Any]()
    for role, one in configured.items():
        if role in given or not (one.remote or one.kind == "seed-bank"):
            named = canonical_json([one.kind, one.parameters])
            found[role] = _found(role, one, given.get(role, made.get(named)))
            if role not in given:
                made[named] = found[role]
    return found


def _found(role: str, config: ModelConfig, given: Any) -> Any:
    """The model that was handed in for a role, or the one that a configuration names.

    Raises:
        InputError: if it was not handed in, cannot be made, or is no model.
    """
    if given is None and config.kind == "given":
        what = f'"{config.model}" was passed in from Python and is not available here'
        raise input_error(f"models: {role}", what, f"pass it in again: build(…, models={{'{role}': …}})")
    model = plugins.made(GROUP, config.kind, config.parameters, BUILT_IN) if given is None else given
    where = f"models: {role}"
    plugins.refuse_unlike(model, where, "model", PARTS, f"{type(model).__name__} ")
    many = getattr(model, "in_flight", IN_FLIGHT)
    if not isinstance(many, int) or many < 1:
        raise input_error(where, f'"in_flight" of {type(model).__name__} is {many!r}', "use a whole number from 1")
    return model
