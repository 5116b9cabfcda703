"""Which dialogues of a build a release takes: none twice, none withdrawn or removed, as many of each scenario as planned."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import refuse
from empathy_eval.base.schemas import check
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import pair_id
from empathy_eval.design.errata import (
    PlanIndex,
    errata_dialogues,
    errata_faults,
    revision_of,
    unknown_errata,
    withdrawn_dialogues,
    withdrawn_pairs,
)
from empathy_eval.generation.build_folder import OUTCOMES, accepted_outcomes
from empathy_eval.releases.assemble.duplicates import hashes_of, near_duplicates


@dataclass(frozen=True)
class Selection:
    """Which dialogues of a build are released: accepted, no duplicates, the first of each scenario up to its quota.

    A scenario is filled from its own spares alone; ``below_quota`` says of each that had too few how many dialogues it lacks.
    """

    dialogue_ids: frozenset[str]
    duplicates: dict[str, str]
    spares: int
    below_quota: dict[str, int]


def select(build_dir: Path, header: dict[str, Any], removed: set[str]) -> Selection:
    """The selection from a build with this header, without the dialogues that reviews removed."""
    texts = (
        (one.dialogue_id, [turn.text for turn in one.dialogue.turns])
        for one in accepted_outcomes(build_dir)
        if one.dialogue and one.dialogue_id not in removed
    )
    hashes = hashes_of(texts, language_of(header["configuration"]))
    duplicates = near_duplicates(hashes)
    room = {int(number): scenario["quota"] for number, scenario in header["scenarios"].items()}
    chosen: list[str] = []
    left = [dialogue_id for dialogue_id in hashes if dialogue_id not in duplicates]
    for dialogue_id in left:
        scenario = int(dialogue_id[:3])
        # A corrected dialogue comes beside the others: none of them makes room for it.
        if room[scenario] > 0 or revision_of(dialogue_id):
            room[scenario] -= not revision_of(dialogue_id)
            chosen.append(dialogue_id)
    corrected = Counter(int(one[:3]) for one in chosen if revision_of(one))
    below_quota = {f"{number:03d}": lacking for number, left_over in room.items() if (lacking := left_over - corrected[number]) > 0}
    return Selection(frozenset(chosen), duplicates, len(left) - len(chosen), below_quota)


def withdrawn_counts(build_dir: Path, configuration: dict[str, Any]) -> dict[str, int]:
    """How many accepted ``dialogues`` of a build its withdrawals take out, and how many ``pairs``: those of these dialogues and others.
    Empty where nothing is withdrawn.

    Raises:
        InputError: for withdrawals without a kind, and for errata that name what the build did not plan; all at once.
    """
    about, said = errata_dialogues(configuration), configuration.get("withdrawn", ())
    whole, some = withdrawn_dialogues(said), withdrawn_pairs(said, configuration.get("corrected", ()))
    roles, counts = dict[str, list[str]](), Counter(dialogues=0, pairs=0)
    for value in _outcomes(build_dir) if about else ():
        name = value["dialogue_id"]
        roles[name] = [turn["role"] for turn in value["dialogue"]["turns"]] if name in about and value["dialogue"] else []
        if value["status"] == "accepted":
            counts["dialogues"] += name in whole
            counts["pairs"] += sum(name in whole or pair_id(name, pair["turn"]) in some for pair in value["pairs"])
    wrong = [
        *errata_faults(str(build_dir), configuration),
        *unknown_errata(str(build_dir), configuration, PlanIndex(lambda: roles, roles.get)),
    ]
    refuse(wrong)
    return dict(counts) if said else {}


def _outcomes(build_dir: Path) -> Iterator[dict[str, Any]]:
    """All outcomes of a build, each valid."""
    with (build_dir / OUTCOMES).open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            value: dict[str, Any] = json.loads(line)
            check(value, "outcome", f"{build_dir / OUTCOMES}: line {number}")
            yield value
