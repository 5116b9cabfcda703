"""The nouns of a build: dialogues, pairs with their variants, and what becomes of an item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from empathy_eval.base.text import ENGLISH, words
from empathy_eval.completions.asker import Trail
from empathy_eval.completions.requests import About, Failure, Flaw
from empathy_eval.design.kinds import KINDS, Kind
from empathy_eval.design.planning import PlannedTurn
from empathy_eval.design.scenarios import CrossedItem
from empathy_eval.design.taxonomy import Role

Status = Literal["accepted", "rejected", "missing"]


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
    helper_voice: str | None = None
    far_voice: str | None = None


@dataclass(frozen=True)
class Scene:
    """One helper turn in its place: the turns before, the turn itself, what is planned, the flags, the language, the voices."""

    dialogue_id: str
    scenario_id: int
    context: tuple[Turn, ...]
    reference: Turn
    planned: PlannedTurn
    flags: tuple[str, ...]
    language: str = ENGLISH
    voices: tuple[str | None, str | None] = (None, None)

    @property
    def place(self) -> int:
        """The place of the turn in its dialogue, from 0."""
        return len(self.context)

    def strategy(self, kind: Kind) -> str:
        """The strategy of a variant: near ones keep the reference's, far ones have the planned other one."""
        return (self.reference.strategy if kind.near else self.planned.empathetic_strategy) or ""

    def way(self, kind: Kind) -> str | None:
        """The manner or the device of a variant; None for one without."""
        return self.planned.ways.get(kind.variant or "")

    def voice(self, kind: Kind) -> str | None:
        """How a variant is written: a near one as its dialogue, a far one as somebody else; None where no voice is planned."""
        return self.voices[not kind.near]

    def length(self, kind: Kind) -> int | None:
        """The planned number of words of a variant, None for one without; a near one's is reckoned from the reference."""
        planned = self.planned.lengths.get(kind.variant or "")
        return planned + len(words(self.reference.text, self.language)) if kind.near and planned is not None else planned

    def about(self, kind: Kind) -> About:
        """What a request of that kind is about."""
        return About(self.dialogue_id, kind.name, self.place)


@dataclass(frozen=True)
class Variant:
    """A rewritten helper turn: how it was made, its closeness to the reference, its toxicity (None: not scored), its request."""

    text: str
    strategy: str
    method: str
    model: str
    edit_ratio: float
    overlap: float
    toxicity: float | None
    request_key: str | None
    way: str | None = None


@dataclass(frozen=True)
class Pair:
    """One helper turn of a dialogue with its variants; the controls are None where none were planned or one failed."""

    turn: int
    flags: tuple[str, ...]
    reference_toxicity: float | None
    apathetic: Variant
    empathetic: Variant
    near_empathetic: Variant | None = None
    far_apathetic: Variant | None = None


@dataclass(frozen=True)
class Candidate:
    """A variant's text that reached the checks and is not released: refused for its reasons, or of a pair that is left out.

    ``attempt`` is its number, from 1, among all such texts of the variant, the released one too: that has the number which none of these
    has. It is None where no other was asked for after one had passed: then the order says it.
    """

    kind: str
    turn: int
    text: str
    reasons: tuple[str, ...]
    attempt: int | None = None


@dataclass(frozen=True)
class Crossed(CrossedItem):
    """A crossed item of a dialogue: ``reply_1`` is for the turns before ``turn``, ``reply_2`` for them with ``twin`` as the last one.

    A curated one (``source`` is ``seed``) has no writer, judge or requests; else these are the writer's request, then the checks'.
    """

    source: str
    writer: str | None = None
    judge: str | None = None
    request_keys: tuple[str, ...] = ()


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
    crossed: tuple[Crossed, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The outcome as plain JSON values; crossed items only where there are any."""
        value: dict[str, Any] = _plain(self)
        if not self.crossed:
            del value["crossed"]
        for one in value["candidates"]:
            if one["attempt"] is None:
                del one["attempt"]
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
                "crossed": tuple(Crossed(**{**one, "request_keys": tuple(one["request_keys"])}) for one in value.get("crossed", ())),
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


VARIANTS = tuple(one.name for one in fields(Pair) if "Variant" in str(one.type))


@dataclass
class ItemTrail(Trail):
    """What an item leaves behind while it is worked on: its trail, and the texts of variants that were judged."""

    candidates: list[Candidate] = field(default_factory=list)

    def judged(self, kind: str, turn: int, text: str, flaws: Sequence[Flaw]) -> None:
        """Notes a variant's text with the reasons against it, if any."""
        self.candidates.append(Candidate(kind, turn, text, tuple(sorted({flaw.reason for flaw in flaws}))))

    def candidates_beside(self, pairs: Sequence[Pair]) -> tuple[Candidate, ...]:
        """The judged texts that are not in these pairs, by turn and kind, those of one kind in the order they were judged."""
        taken = {(pair.turn, kind) for pair in pairs for kind, row in KINDS.items() if row.variant and getattr(pair, row.variant)}
        left = [one for one in self.candidates if one.reasons or (one.turn, one.kind) not in taken]
        return tuple(sorted(left, key=lambda one: (one.turn, one.kind)))
