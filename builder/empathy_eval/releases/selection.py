"""Which dialogues of a build a release takes: none twice, none withdrawn or removed, as many of each scenario as planned."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.design.configuration import language_of
from empathy_eval.design.errata import revision_of
from empathy_eval.generation.build_folder import accepted
from empathy_eval.releases.duplicates import hashes_of, near_duplicates


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
        for one in accepted(build_dir)
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
