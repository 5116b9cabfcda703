"""Models of one's own: handed in as objects, named by ``module:name``, or offered by an installed package."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from empathy_eval.base import plugins
from empathy_eval.base.errors import EmpathyEvalError, JobError, input_error, job_error
from empathy_eval.base.schemas import schema
from empathy_eval.completions.models.protocol import Model, NoAnswer
from empathy_eval.completions.requests import Completion, Request
from empathy_eval.design.configuration import ModelConfig
from empathy_eval.design.prompts import Message

GROUP = "empathy_eval.models"
# Answers that a model that does not say otherwise is asked for at once.
IN_FLIGHT = 64
NEEDED = ("name", "endpoint", "body", "complete", "close")
FIX = "mend it, then run the same command to go on; every answer is in the ledger"


class TextModel:
    """The base of a model of one's own: a subclass has a ``name`` and an :meth:`answer`.

    The name, the endpoint and the parameters are part of every request's key: a model that would answer otherwise has another name.
    """

    name: str
    endpoint = "own"
    parameters: dict[str, Any] = {}
    # How many answers may be asked for at once.
    in_flight = 8

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
        text = await asyncio.to_thread(self.answer, request.body["messages"], schema(request.body["schema"]))
        return Completion(text, "stop", self.name)

    async def close(self) -> None:
        """Gives back what it holds; nothing, unless a subclass says so."""


class OwnModel:
    """A stranger's model: what it raises or gives beside a completion ends the run with an error that names it.

    It is asked for as many answers at once as its ``in_flight`` says, and for none once ``stopped`` gives an error.
    """

    def __init__(self, model: Model, stopped: Callable[[], EmpathyEvalError | None] = lambda: None) -> None:
        self.name, self.endpoint, self._model, self._stopped = model.name, model.endpoint, model, stopped
        self._room = asyncio.Semaphore(getattr(model, "in_flight", IN_FLIGHT))

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The body that the model itself makes."""
        try:
            return self._model.body(messages, answer_schema)
        except Exception as error:
            raise self._failed(error) from error

    async def complete(self, request: Request) -> Completion:
        """The completion of the model itself.

        Raises:
            NoAnswer: if it does.
            JobError: if it raises anything else, or gives something else.
            EmpathyEvalError: if nothing is to be asked any more.
        """
        try:
            async with self._room:
                if stopped := self._stopped():  # while it waited for its turn
                    raise stopped
                found: Any = await self._model.complete(request)
        except (NoAnswer, EmpathyEvalError):
            raise
        except Exception as error:
            raise self._failed(error) from error
        if not isinstance(found, Completion) or not isinstance(found.text, str):
            raise job_error(f'model "{self.name}"', f"gave no completion with a text but {str(found)[:80]!r}", FIX)
        return found

    async def close(self) -> None:
        """Closes the model itself."""
        await self._model.close()

    def _failed(self, error: Exception) -> JobError:
        return job_error(f'model "{self.name}"', f"failed: {type(error).__name__}: {str(error)[:200]}", FIX)


def own_model(role: str, config: ModelConfig, given: Any, stopped: Callable[[], EmpathyEvalError | None]) -> OwnModel:
    """The model that was handed in for a role, or the one that a configuration names.

    Raises:
        InputError: if it was not handed in, cannot be made, or is no model.
    """
    if given is None and config.kind == "given":
        what = f'"{config.model}" was handed in from Python, and is not here'
        raise input_error(f"models: {role}", what, f"hand it in again: build(…, models={{'{role}': …}})")
    model = plugins.made(GROUP, config.kind, config.parameters) if given is None else given
    if missing := [name for name in NEEDED if not hasattr(model, name)]:
        raise input_error(
            f"models: {role}", f"{type(model).__name__} has no {', '.join(missing)}", "see docs/models.md for what a model has"
        )
    return OwnModel(model, stopped)
