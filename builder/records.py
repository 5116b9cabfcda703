"""The nouns of a build: requests and completions, plans, dialogues, pairs and what becomes of an item."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

from builder.signature import SCHEME, canonical_json, digest_bytes

Role = Literal["seeker", "helper"]
Kind = Literal["self_chat", "near_apathetic", "far_empathetic", "near_empathetic", "far_apathetic", "score"]
Status = Literal["accepted", "rejected", "missing"]


@dataclass(frozen=True)
class About:
    """What a request is about. It travels beside the request: unsent, and outside its key."""

    dialogue_id: str
    kind: Kind
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

    @cached_property
    def content(self) -> bytes:
        """The body as canonical JSON: what is sent, and what the key is made of."""
        return canonical_json(self.body)

    @cached_property
    def key(self) -> str:
        """The hash that names the answer in a ledger: body, endpoint label and sample, and nothing else."""
        # The canonical JSON of {"body": …, "endpoint": …, "sample": …}, put together so that the body is written out once.
        whole = b'{"body":%b,"endpoint":%b,"sample":%d}' % (self.content, canonical_json(self.endpoint), self.sample)
        return f"{SCHEME}-{digest_bytes(whole)}"


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
class PlannedTurn:
    """The role of one turn; for a helper its strategy, that of the empathetic variant, and whether controls are made."""

    role: Role
    strategy: str | None = None
    empathetic_strategy: str | None = None
    controls: bool = False


@dataclass(frozen=True)
class Plan:
    """One planned dialogue: all that is decided before any model is asked."""

    dialogue_id: str
    scenario_id: int
    index: int | None
    turns: tuple[PlannedTurn, ...]


@dataclass(frozen=True)
class Turn:
    """One utterance; the strategy is None for the seeker."""

    role: Role
    text: str
    strategy: str | None = None


@dataclass(frozen=True)
class Dialogue:
    """An accepted dialogue with the request that made it."""

    dialogue_id: str
    scenario_id: int
    description: str
    turns: tuple[Turn, ...]
    flags: tuple[str, ...]
    source: str
    model: str
    request_key: str


@dataclass(frozen=True)
class Variant:
    """A rewritten helper turn: how it was made, its closeness to the reference, its toxicity, its request."""

    text: str
    strategy: str
    method: str
    model: str
    edit_ratio: float
    overlap: float
    toxicity: float
    request_key: str | None


@dataclass(frozen=True)
class Pair:
    """One helper turn of a dialogue with its variants; the controls are None where none were planned or one failed."""

    turn: int
    flags: tuple[str, ...]
    reference_toxicity: float
    apathetic: Variant
    empathetic: Variant
    near_empathetic: Variant | None = None
    far_apathetic: Variant | None = None


@dataclass(frozen=True)
class Flaw:
    """Why a sample is not taken: a reason that is counted, and the detail that a repair request shows."""

    reason: str
    detail: str


@dataclass(frozen=True)
class Failure:
    """A sample that was asked for and not taken, with the reasons; ``final`` if it was the last."""

    kind: Kind
    turn: int | None
    reasons: tuple[str, ...]
    request_key: str | None = None
    final: bool = False


@dataclass(frozen=True)
class Candidate:
    """A variant's text that reached the checks and is not released: refused for its reasons, or of a pair that is left out."""

    kind: Kind
    turn: int
    text: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What became of one item. ``usage`` sums the ledger rows that the replay of this item used."""

    dialogue_id: str
    scenario_id: int
    status: Status
    reasons: tuple[str, ...] = ()
    dialogue: Dialogue | None = None
    pairs: tuple[Pair, ...] = ()
    failures: tuple[Failure, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    usage: dict[str, dict[str, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The outcome as plain JSON values."""
        value: dict[str, Any] = _plain(self)
        return value

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Outcome:
        """An outcome from what :meth:`to_json` gave; the value must be valid under ``outcome.schema.json``."""
        return cls(
            **{
                **value,
                "reasons": tuple(value["reasons"]),
                "dialogue": value["dialogue"] and _dialogue(value["dialogue"]),
                "pairs": tuple(_pair(pair) for pair in value["pairs"]),
                "failures": tuple(Failure(**{**one, "reasons": tuple(one["reasons"])}) for one in value["failures"]),
                "candidates": tuple(Candidate(**{**one, "reasons": tuple(one["reasons"])}) for one in value["candidates"]),
            }
        )


def _plain(value: Any) -> Any:
    """Dataclasses as dicts and tuples as lists; unlike ``dataclasses.asdict`` it copies no leaf, which is most of its cost."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _dialogue(value: dict[str, Any]) -> Dialogue:
    turns = tuple(Turn(**turn) for turn in value["turns"])
    return Dialogue(**{**value, "turns": turns, "flags": tuple(value["flags"])})


def _pair(value: dict[str, Any]) -> Pair:
    variants = {name: Variant(**value[name]) for name in VARIANTS if value[name] is not None}
    return Pair(value["turn"], tuple(value["flags"]), value["reference_toxicity"], **variants)


# The kind of request that makes each variant.
MADE_BY: dict[str, Kind] = {
    "apathetic": "near_apathetic",
    "empathetic": "far_empathetic",
    "near_empathetic": "near_empathetic",
    "far_apathetic": "far_apathetic",
}
VARIANTS = tuple(one.name for one in fields(Pair) if "Variant" in str(one.type))
