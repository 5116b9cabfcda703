"""What is asked and what comes back: requests and completions, what they are about, and what is wrong with an answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from empathy_eval.base.hashing import SCHEME, canonical_json, digest_bytes


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
