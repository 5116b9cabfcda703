"""What is asked and what comes back: requests and completions, what they are about, and what is wrong with an answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from empathy_eval.base.hashing import SCHEME, canonical_json, digest_bytes
from empathy_eval.design.prompts import Message


@dataclass(frozen=True)
class About:
    """What a request is about; ``kind`` names a row of :data:`empathy_eval.design.kinds.ALL_KINDS`. Unsent, and outside the key."""

    dialogue_id: str
    kind: str
    turn: int | None = None

    def __str__(self) -> str:
        return f"{self.dialogue_id} {self.kind}" + ("" if self.turn is None else f" turn {self.turn}")


@dataclass(frozen=True)
class Request:
    """A body for a model, the label of the endpoint that answers it, and the number of the sample."""

    body: dict[str, Any]
    endpoint: str
    about: About
    sample: int = 0

    @property
    def content(self) -> bytes:
        """The body as canonical JSON: what is sent, and what the key is made of. Not kept: thousands of requests wait at once."""
        return canonical_json(self.body)

    @property
    def key(self) -> str:
        """The hash that names the answer in a ledger: body, endpoint label and sample, and nothing else."""
        return self._key_and_size[0]

    @property
    def size(self) -> int:
        """The number of bytes of the body."""
        return self._key_and_size[1]

    @cached_property
    def _key_and_size(self) -> tuple[str, int]:
        # The canonical JSON of {"body": …, "endpoint": …, "sample": …}, put together so that the body is written out once.
        content = self.content
        whole = b'{"body":%b,"endpoint":%b,"sample":%d}' % (content, canonical_json(self.endpoint), self.sample)
        return f"{SCHEME}-{digest_bytes(whole)}", len(content)


@dataclass(frozen=True)
class Usage:
    """Tokens as the provider counted them; ``cached_tokens`` is the part of the input it had in its cache."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True)
class Completion:
    """What a model answered, a bad answer too. ``finish`` is the provider's word: ``stop``, ``length``, ``refusal`` …"""

    text: str
    finish: str
    model: str
    usage: Usage = Usage()


@dataclass(frozen=True)
class Flaw:
    """Why a sample is not taken: a reason that is counted, and the detail that a repair request shows."""

    reason: str
    detail: str


@dataclass(frozen=True)
class Failure:
    """A sample that was asked for and not taken, with the reasons; ``final`` if it was the last."""

    kind: str
    turn: int | None
    reasons: tuple[str, ...]
    request_key: str | None = None
    final: bool = False


class NoAnswer(Exception):
    """The request was not answered; nothing is stored, and the next run asks again. The text says why."""


class Model(Protocol):
    """A model. ``name`` and ``endpoint`` are part of every key; :meth:`body` turns messages into what is sent."""

    name: str
    endpoint: str

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The canonical body of a request for an answer that is valid under the schema of that name."""

    async def complete(self, request: Request) -> Completion:
        """Answers a request.

        Raises:
            NoAnswer: if no answer came and patience has ended.
            EmpathyEvalError: if going on makes no sense (a refused key, an exhausted quota).
        """

    async def close(self) -> None:
        """Gives back connections, at the end of a build or a round of it; the model may be asked again, in another event loop."""
