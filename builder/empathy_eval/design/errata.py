"""Errata: what was withdrawn from all releases of a name, and what came in its place under an id of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from empathy_eval.base.errors import Problem

# The id of a corrected dialogue is that of the one it stands for, with a number: ``017-00042-r1``, then ``-r2``.
REVISION = re.compile(r"-r([1-9][0-9]{0,3})$")


def first_of(dialogue_id: str) -> str:
    """The id that a dialogue had before any correction."""
    return REVISION.sub("", dialogue_id)


def before(dialogue_id: str) -> str:
    """The id of the dialogue that a corrected one stands for."""
    number = int(found[1]) if (found := REVISION.search(dialogue_id)) else 1
    return first_of(dialogue_id) + (f"-r{number - 1}" if number > 1 else "")


def revision_of(dialogue_id: str) -> int:
    """How often a dialogue was corrected: 0 for one that never was."""
    return int(found[1]) if (found := REVISION.search(dialogue_id)) else 0


def withdrawn_dialogues(withdrawn: Sequence[Mapping[str, Any]]) -> set[str]:
    """The dialogues that a list of withdrawals names as a whole."""
    return {one["dialogue_id"] for one in withdrawn if "dialogue_id" in one}


def withdrawn_pairs(withdrawn: Sequence[Mapping[str, Any]]) -> set[str]:
    """The pairs that it names: their variants go, their dialogues stay."""
    return {one["pair_id"] for one in withdrawn if "pair_id" in one}


def errata_faults(where: str, configuration: Mapping[str, Any]) -> Iterator[Problem]:
    """Withdrawals of no kind or named twice, and corrections of what is not withdrawn."""
    said, seen = configuration.get("withdrawn", []), set[str]()
    for number, one in enumerate(said):
        name, place = one.get("dialogue_id") or one["pair_id"], f"{where}: withdrawn[{number}]"
        if "kind" not in one:
            yield Problem(
                place, f"does not say of what kind the withdrawal of {name} is", "add kind: harm, error, contamination or request"
            )
        if name in seen:
            yield Problem(place, f"withdraws {name} again", "name it once")
        seen.add(name)
    for one in configuration.get("corrected", []):
        if before(one) not in seen:
            what = f'"{one}" stands for {before(one)}, which is not withdrawn'
            yield Problem(f"{where}: corrected", what, "withdraw it too: what was published is never changed in place")
