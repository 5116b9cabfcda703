"""All tables of a release beside each other: first those that are made of scores, then those that read the texts again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from empathy_eval.evaluation.attacks.attacked import MOST, attack_table
from empathy_eval.evaluation.attacks.registry import Attacks
from empathy_eval.evaluation.crossed.scores import PrecomputedCrossedScores
from empathy_eval.evaluation.crossed.shortcuts import crossed_tables
from empathy_eval.evaluation.fairness.fairness import FairnessTest
from empathy_eval.evaluation.inversion.evaluation import AllScores, Evaluation
from empathy_eval.evaluation.inversion.results import with_new
from empathy_eval.evaluation.shortcuts.embedding import Embedding
from empathy_eval.evaluation.shortcuts.shortcuts import audit_of


@dataclass(frozen=True)
class ExtraMeasurements:
    """What is measured beside the inversion: attacks on at most so many pairs, fairness, and shortcuts, with or without an embedding.

    ``given`` are scores of crossed items from elsewhere.
    """

    attacks: Attacks | None = None
    most: int = MOST
    fairness: FairnessTest | None = None
    shortcuts: bool = True
    embedding: Embedding | None = None
    given: Sequence[PrecomputedCrossedScores] = ()

    def told(self, what: str) -> list[str]:
        """What is told of scores of crossed items in tables that are of pairs."""
        return [f"{one.path.stem}: {what}, as its scores are of crossed items" for one in self.given]


def of_scores(stand: Evaluation, scores: AllScores, beside: ExtraMeasurements) -> dict[str, Any]:
    """The tables that are made of scores, by their names in ``ReleaseTables``: who holds the scores can forget them then."""
    attacks, fairness = beside.attacks, beside.fairness
    return {
        "attacks": attack_table(stand, scores.rated, attacks, beside.most, beside.told("not attacked")) if attacks else None,
        "fairness": fairness.tables(scores.rated, beside.told("is not asked")) if fairness else None,
        **stand.tables(scores),
    }


def of_texts(stand: Evaluation, tables: dict[str, Any], beside: ExtraMeasurements) -> dict[str, Any]:
    """The tables with those that read the texts again, and with all faults; a first look at some pairs has none of them."""
    whole = stand.chance.limit is None
    audit = audit_of(stand, beside.embedding) if whole and beside.shortcuts else None
    crossed, faults = None, tables["faults"]
    if whole:
        crossed, new = crossed_tables(stand, faults, beside.given, shortcuts=beside.shortcuts, embedding=beside.embedding)
        faults = with_new(faults, new)
    late = [one.faults for one in (tables["fairness"], tables["attacks"]) if one]
    return {**tables, "audit": audit, "crossed": crossed, "faults": with_new(faults, *late)}
