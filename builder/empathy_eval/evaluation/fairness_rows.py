"""The rows of the tables of fairness: the stance effect of a scorer in one place and in another, and the difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from empathy_eval.evaluation.resampling import Estimate, Tested
from empathy_eval.metrics.faults import MetricFault


@dataclass(frozen=True)
class Gap:
    """A figure here and there, and the first minus the second."""

    here: Estimate
    there: Estimate
    difference: Tested


@dataclass(frozen=True)
class FairnessRow:
    """How often a scorer rates the kind reply of a contrast better (``accuracy``), and by how many standard deviations (``effect``).

    Of a group of scenarios ``here`` is the group and ``there`` are all other scenarios; ``pairs`` and ``dialogues`` are those of the group,
    ``of`` are all pairs. Of an exchange of names ``here`` are the texts with other names and ``there`` the same texts as released; ``of``
    are the pairs that were looked at. A figure is None where it is not defined; ``why`` says what keeps an interval from being there.
    """

    metric: str
    name: str
    contrast: str
    pairs: int
    of: int
    dialogues: int
    accuracy: Gap | None
    effect: Gap | None
    signature: str
    why: str | None = None


@dataclass(frozen=True)
class FairnessTable:
    """The rows by group of scenarios and by exchange of names, what each group holds, and in words what is left out and why.

    ``faults`` are of metrics that failed on texts with other names.
    """

    groups: list[FairnessRow]
    names: list[FairnessRow]
    told: Sequence[str] = ()
    definitions: Sequence[tuple[str, str]] = ()
    faults: Sequence[MetricFault] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """The tables as JSON values; faults stand elsewhere."""
        return {
            "groups": [asdict(one) for one in self.groups],
            "names": [asdict(one) for one in self.names],
            "told": list(self.told),
            "definitions": dict(self.definitions),
        }
