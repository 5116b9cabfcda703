"""What a model is to the rest: something that answers a request, or does not."""

from __future__ import annotations

from typing import Any, Protocol

from empathy_eval.completions.requests import Completion, Request
from empathy_eval.design.prompts import Message


class NoAnswer(Exception):
    """The request was not answered; nothing is stored, and the next run asks again. The text says why."""


class Model(Protocol):
    """A model. ``name`` and ``endpoint`` are part of every key; :meth:`body` turns messages into what is sent."""

    name: str
    endpoint: str

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The canonical body of a request for an answer that is valid under the schema of that name."""
        ...

    async def complete(self, request: Request) -> Completion:
        """Answers a request.

        Raises:
            NoAnswer: if no answer came and patience has ended.
            EmpathyEvalError: if going on makes no sense (a refused key, an exhausted quota).
        """
        ...

    async def close(self) -> None:
        """Gives back connections, at the end of a build or a round of it; the model may be asked again, in another event loop."""
        ...
