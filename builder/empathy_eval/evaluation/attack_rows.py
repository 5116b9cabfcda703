"""The rows of the table of attacks: how a scorer's scores change when the replies are attacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from empathy_eval.evaluation.resampling import Estimate
from empathy_eval.metrics.faults import MetricFault


@dataclass(frozen=True)
class StanceEffect(Estimate):
    """The mean difference of a scorer between kind and cold replies, in its better direction: the unit that changes are told in.

    ``over`` says of which texts; ``why`` is what keeps it from being a unit, None where nothing does.
    """

    over: str = ""
    why: str | None = None


@dataclass(frozen=True)
class Change:
    """What an attack did to the scores of replies, in the scorer's better direction.

    ``replies`` have a score; of these ``eligible`` have one under attack too. ``rises`` and ``falls`` are the shares of the eligible whose
    score is higher, or lower, under attack; ``change`` is the mean of the score under attack minus the score before, ``in_effects`` that in
    units of the size of the stance effect. None where there is none.
    """

    replies: int
    eligible: int
    rises: Estimate | None = None
    falls: Estimate | None = None
    change: Estimate | None = None
    in_effects: Estimate | None = None


@dataclass(frozen=True)
class AttackRow:
    """One scorer under one attack: over all replies, and by variant."""

    metric: str
    attack: str
    whole: Change
    by_variant: Mapping[str, Change]
    effect: StanceEffect
    signature: str

    def to_json(self) -> dict[str, Any]:
        """The row as JSON values."""
        named = {"metric": self.metric, "attack": self.attack, **asdict(self.whole), "effect": asdict(self.effect)}
        return {**named, "by_variant": {name: asdict(one) for name, one in self.by_variant.items()}, "signature": self.signature}


@dataclass(frozen=True)
class AttackTable:
    """All rows, over how many replies they are, and in words which scorers and attacks are left out and why.

    ``faults`` are of metrics that failed on attacked texts.
    """

    rows: Sequence[AttackRow]
    replies: int
    pairs: int
    dialogues: int
    told: Sequence[str] = ()
    faults: Sequence[MetricFault] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """The table as JSON values; faults stand elsewhere."""
        counts = {name: getattr(self, name) for name in ("replies", "pairs", "dialogues")}
        return {**counts, "rows": [one.to_json() for one in self.rows], "told": list(self.told)}
