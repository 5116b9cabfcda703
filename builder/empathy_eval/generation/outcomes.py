"""Outcomes of a build: dialogues, pairs with their variants, and the fate of each item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from empathy_eval.base.text import ENGLISH, words
from empathy_eval.completions.asker import Trail
from empathy_eval.completions.requests import About, Failure, Flaw
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS, REFERENCE
from empathy_eval.design.kinds import KINDS, Kind
from empathy_eval.design.planning import PlannedTurn
from empathy_eval.design.scenarios import CrossedItem
from empathy_eval.design.taxonomy import Role

Status = Literal["accepted", "rejected", "missing"]


@dataclass(frozen=True)
class Turn:
    """An utterance; a seeker's has no strategy."""

    role: Role
    text: str
    strategy: str | None = None


@dataclass(frozen=True)
class Dialogue:
    """An accepted dialogue, with the request that wrote it."""

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
    """A helper turn in its context: the turns before, the turn itself, its plan, flags, language and voices."""

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
        """The index of the turn in its dialogue."""
        return len(self.context)

    def strategy(self, kind: Kind) -> str:
        """The strategy of a variant: near ones keep the reference's, far ones have the planned other one."""
        return (self.reference.strategy if kind.near else self.planned.empathetic_strategy) or ""

    def way(self, kind: Kind) -> str | None:
        """The manner or device of a variant; None if it has none."""
        return self.planned.ways.get(kind.variant or "")

    def voice(self, kind: Kind) -> str | None:
        """The voice of a variant: the dialogue's for near ones, another for far ones; None without voices."""
        return self.voices[not kind.near]

    def length(self, kind: Kind) -> int | None:
        """The planned words of a variant, for a near one relative to the reference; None if not planned."""
        planned = self.planned.lengths.get(kind.variant or "")
        return planned + len(words(self.reference.text, self.language)) if kind.near and planned is not None else planned

    def about(self, kind: Kind) -> About:
        """What a request of that kind is about."""
        return About(self.dialogue_id, kind.name, self.place)


@dataclass(frozen=True)
class Variant:
    """A rewritten helper turn: its method, its closeness to the reference, its toxicity (None: not scored), its request."""

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
    """A helper turn with its variants; controls are None if none were planned or one failed."""

    turn: int
    flags: tuple[str, ...]
    reference_toxicity: float | None
    apathetic: Variant
    empathetic: Variant
    near_empathetic: Variant | None = None
    far_apathetic: Variant | None = None


def contrasted(dialogue: Dialogue, pairs: Sequence[Pair]) -> dict[str, tuple[tuple[Role, str], ...]]:
    """The (role, text) of all turns of a dialogue by variant, with all helper turns of that variant and the seeker's turns as they are.

    A variant is there if every helper turn has it, the reference only beside another one, and the controls together.
    """
    texts = {place: turn.text for place, turn in enumerate(dialogue.turns) if turn.role == "helper"}
    if not texts or texts.keys() != {pair.turn for pair in pairs}:
        return {}
    whole = [*PAIR_VARIANTS, *(CONTROLS if all(getattr(pair, name) for pair in pairs for name in CONTROLS) else ())]
    said = {REFERENCE: texts} | {name: {pair.turn: getattr(pair, name).text for pair in pairs} for name in whole}
    return {
        name: tuple((turn.role, some.get(place, turn.text)) for place, turn in enumerate(dialogue.turns)) for name, some in said.items()
    }


@dataclass(frozen=True)
class Candidate:
    """A variant's text that was checked and is not released: refused for its reasons, or of a pair that is left out.

    ``attempt`` numbers all such texts of a variant from 1, including the released one, which has the missing number. It is None if no more
    was requested after one had passed: then the order tells.
    """

    kind: str
    turn: int
    text: str
    reasons: tuple[str, ...]
    attempt: int | None = None


@dataclass(frozen=True)
class CrossedOutcome(CrossedItem):
    """A crossed item of a dialogue: ``reply_1`` is for the turns before ``turn``, ``reply_2`` for them with ``twin`` as the last one.

    A curated one (``source`` is ``seed``) has no writer, judge or requests; otherwise they are the writer's request, then the checks'.
    """

    source: str
    writer: str | None = None
    judge: str | None = None
    request_keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """The fate of one item. ``usage`` sums the ledger rows that its replay used."""

    dialogue_id: str
    scenario_id: int
    status: Status
    reasons: tuple[str, ...] = ()
    dialogue: Dialogue | None = None
    pairs: tuple[Pair, ...] = ()
    failures: tuple[Failure, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    usage: dict[str, dict[str, int]] = field(default_factory=dict)
    crossed: tuple[CrossedOutcome, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The outcome as JSON values; crossed items only if there are any."""
        value: dict[str, Any] = _plain(self)
        if not self.crossed:
            del value["crossed"]
        for candidate in value["candidates"]:
            if candidate["attempt"] is None:
                del candidate["attempt"]
        return value

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Outcome:
        """An outcome from :meth:`to_json`; the value must be valid under ``outcome.schema.json``."""
        dialogue = value["dialogue"]
        if dialogue:
            dialogue = Dialogue(
                **{**dialogue, "turns": tuple(Turn(**turn) for turn in dialogue["turns"]), "flags": tuple(dialogue["flags"])}
            )
        return cls(
            **{
                **value,
                "reasons": tuple(value["reasons"]),
                "dialogue": dialogue,
                "pairs": tuple(_pair(pair) for pair in value["pairs"]),
                "failures": tuple(Failure(**{**failure, "reasons": tuple(failure["reasons"])}) for failure in value["failures"]),
                "candidates": tuple(
                    Candidate(**{**candidate, "reasons": tuple(candidate["reasons"])}) for candidate in value["candidates"]
                ),
                "crossed": tuple(
                    CrossedOutcome(**{**item, "request_keys": tuple(item["request_keys"])}) for item in value.get("crossed", ())
                ),
            }
        )


def _plain(value: Any) -> Any:
    """Dataclasses as dicts and tuples as lists. Unlike ``dataclasses.asdict`` it copies no leaf, which is most of its cost."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _pair(value: dict[str, Any]) -> Pair:
    variants = {name: Variant(**value[name]) for name in VARIANTS if value[name] is not None}
    return Pair(value["turn"], tuple(value["flags"]), value["reference_toxicity"], **variants)


VARIANTS = tuple(attribute.name for attribute in fields(Pair) if "Variant" in str(attribute.type))


@dataclass
class ItemTrail(Trail):
    """The trail of an item, with the texts of variants that were judged."""

    candidates: list[Candidate] = field(default_factory=list)

    def record_candidate(self, kind: str, turn: int, text: str, flaws: Sequence[Flaw]) -> None:
        """Records a variant's text with the reasons against it, if any."""
        self.candidates.append(Candidate(kind, turn, text, tuple(sorted({flaw.reason for flaw in flaws}))))

    def candidates_beside(self, pairs: Sequence[Pair]) -> tuple[Candidate, ...]:
        """The judged texts that are not in these pairs, by turn and kind, in the order they were judged."""
        taken = {(pair.turn, kind) for pair in pairs for kind, row in KINDS.items() if row.variant and getattr(pair, row.variant)}
        left = [candidate for candidate in self.candidates if candidate.reasons or (candidate.turn, candidate.kind) not in taken]
        return tuple(sorted(left, key=lambda candidate: (candidate.turn, candidate.kind)))
