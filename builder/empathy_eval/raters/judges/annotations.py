"""What judges said: the annotations of one case, with what could not be had and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from empathy_eval.completions.requests import Failure


@dataclass(frozen=True)
class Rating:
    """The value of one criterion for one text, or for a whole dialogue (then without a variant), and the reason that came before it."""

    variant: str | None
    criterion: str
    sample: int
    value: float
    reason: str
    request_key: str


@dataclass(frozen=True)
class Comparison:
    """Which of two texts a judge prefers, asked in both orders: ``winner_12`` with the first by name as A, ``winner_21`` with it as B."""

    variant_1: str
    variant_2: str
    sample: int
    winner_12: str
    winner_21: str
    reason_12: str
    reason_21: str
    request_key_12: str
    request_key_21: str

    @property
    def consistent(self) -> bool:
        """Whether the same text won twice."""
        return self.winner_12 == self.winner_21

    @property
    def winner(self) -> str | None:
        """The text that won twice; None for a tie, which is never asked for."""
        return self.winner_12 if self.consistent else None


@dataclass(frozen=True)
class Judged:
    """The strategy that a judge says a text uses, and how likely it thought each to be right, by abbreviation, before it saw one."""

    variant: str
    sample: int
    named: str
    request_key: str
    ideal: dict[str, float]
    ideal_request_key: str


@dataclass(frozen=True)
class Annotated:
    """What became of a case. ``failures`` hold the reasons for what is unannotated; ``missing`` is what no answer came to yet."""

    dialogue_id: str
    turn: int | None
    pair_id: str | None
    status: str
    reasons: tuple[str, ...] = ()
    ratings: tuple[Rating, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    strategies: tuple[Judged, ...] = ()
    failures: tuple[Failure, ...] = ()
    usage: dict[str, dict[str, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Annotated:
        """From what :meth:`to_json` gave; the value must be valid under ``annotated.schema.json``."""
        kinds: dict[str, Any] = {"ratings": Rating, "comparisons": Comparison, "strategies": Judged}
        rows: dict[str, Any] = {name: tuple(kind(**one) for one in value[name]) for name, kind in kinds.items()}
        failures = tuple(Failure(**{**one, "reasons": tuple(one["reasons"])}) for one in value["failures"])
        return cls(**{**value, **rows, "reasons": tuple(value["reasons"]), "failures": failures})
