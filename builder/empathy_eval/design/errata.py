"""Errata: withdrawals from all releases of a name, and corrections under new ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from empathy_eval.base.errors import Problem, nearest, some_of

# The id of a corrected dialogue is that of the one it stands for, with a number: ``017-00042-r1``, then ``-r2``.
REVISION = re.compile(r"-r([1-9][0-9]{0,3})$")
# How many ids an error names.
NEAREST = 5


@dataclass(frozen=True)
class PlanIndex:
    """The dialogues of a plan: ``ids`` returns all ids, ``roles`` the roles of the turns of one.

    ``roles`` is None for a dialogue that is not planned, and empty if its turns are unknown.
    """

    ids: Callable[[], Iterable[str]]
    roles: Callable[[str], Sequence[str] | None]


def original_id(dialogue_id: str) -> str:
    """The id of a dialogue before any correction."""
    return REVISION.sub("", dialogue_id)


def predecessor_of(dialogue_id: str) -> str:
    """The id of the dialogue that a correction replaces."""
    number = revision_of(dialogue_id)
    return original_id(dialogue_id) + (f"-r{number - 1}" if number > 1 else "")


def revision_of(dialogue_id: str) -> int:
    """How often a dialogue was corrected; 0 for none."""
    return int(match[1]) if (match := REVISION.search(dialogue_id)) else 0


def latest_corrections(corrected: Sequence[str]) -> dict[str, str]:
    """The last correction of each corrected dialogue, by its original id."""
    return {original_id(dialogue_id): dialogue_id for dialogue_id in sorted(corrected, key=revision_of)}


def withdrawn_dialogues(withdrawn: Sequence[Mapping[str, Any]]) -> set[str]:
    """The dialogues that are withdrawn as a whole."""
    return {withdrawal["dialogue_id"] for withdrawal in withdrawn if "dialogue_id" in withdrawal}


def withdrawn_pairs(withdrawn: Sequence[Mapping[str, Any]], corrected: Sequence[str] = ()) -> set[str]:
    """The withdrawn pairs: their variants go, their dialogues stay.

    A withdrawal from a seed applies to its ``corrected`` versions too, except for errors, which may have been fixed: other texts may still
    be in the file.
    """
    pairs, latest = {withdrawal["pair_id"] for withdrawal in withdrawn if "pair_id" in withdrawal}, latest_corrections(corrected)
    for withdrawal in withdrawn:
        dialogue_id, _, turn = withdrawal.get("pair_id", "").rpartition("-")
        if (first := original_id(dialogue_id)) in latest and first.endswith("-seed") and withdrawal.get("kind") != "error":
            pairs.add(f"{latest[first]}-{turn}")
    return pairs


def errata_faults(where: str, configuration: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of withdrawals without a kind or named twice, and of corrections of what is not withdrawn."""
    withdrawals, seen = configuration.get("withdrawn", []), set[str]()
    for number, withdrawal in enumerate(withdrawals):
        name, place = withdrawal.get("dialogue_id") or withdrawal["pair_id"], f"{where}: withdrawn[{number}]"
        if "kind" not in withdrawal:
            yield Problem(place, f"does not give the kind of the withdrawal of {name}", "add kind: harm, error, contamination or request")
        if name in seen:
            yield Problem(place, f"withdraws {name} again", "name it once")
        seen.add(name)
    for corrected in configuration.get("corrected", []):
        if predecessor_of(corrected) not in seen:
            what = f'"{corrected}" replaces {predecessor_of(corrected)}, which is not withdrawn'
            yield Problem(f"{where}: corrected", what, "withdraw it too: what was published is never changed in place")


def errata_dialogues(configuration: Mapping[str, Any]) -> set[str]:
    """The dialogues in withdrawals and corrections, each under the id of its last correction."""
    corrected = configuration.get("corrected", ())
    latest = latest_corrections(corrected)
    named = [*corrected, *(_dialogue_of(withdrawal) for withdrawal in configuration.get("withdrawn", ()))]
    return {latest.get(original_id(dialogue_id), original_id(dialogue_id)) for dialogue_id in named}


def unknown_errata(where: str, configuration: Mapping[str, Any], plan: PlanIndex) -> Iterator[Problem]:
    """Problems for withdrawals and corrections that a plan does not contain, with the nearest ids.

    The turns of a dialogue that was corrected since are unknown, so any pair of it is accepted.
    """
    latest = latest_corrections(configuration.get("corrected", ()))
    for number, withdrawal in enumerate(configuration.get("withdrawn", ())):
        place, name = f"{where}: withdrawn[{number}]", _dialogue_of(withdrawal)
        current = latest.get(original_id(name), original_id(name))
        roles = plan.roles(current)
        if roles is None or revision_of(name) > revision_of(current):
            yield Problem(place, f'"{name}" is not planned', f"name one that is: {nearest_ids(name, plan.ids())}")
        elif "pair_id" in withdrawal and name == current and roles:
            yield from _no_pair(place, withdrawal["pair_id"], name, roles)
    for name in latest.values():
        if plan.roles(name) is None:
            what = f'"{name}" replaces a dialogue that is not planned'
            yield Problem(f"{where}: corrected", what, f"name one that is: {nearest_ids(name, plan.ids())}")


def _dialogue_of(withdrawal: Mapping[str, Any]) -> str:
    """The dialogue of a withdrawal."""
    return str(withdrawal["dialogue_id"] if "dialogue_id" in withdrawal else withdrawal["pair_id"].rpartition("-t")[0])


def _no_pair(place: str, name: str, dialogue_id: str, roles: Sequence[str]) -> Iterator[Problem]:
    """A problem if a pair id does not name a helper turn of its dialogue."""
    pairs = [f"{dialogue_id}-t{turn:02d}" for turn, role in enumerate(roles) if role == "helper"]
    if name not in pairs:
        turn = int(name.rpartition("-t")[2])
        speaks = turn < len(roles) and name == f"{dialogue_id}-t{turn:02d}"
        why = "the seeker speaks there" if speaks else f"{dialogue_id} has {len(roles)} turns"
        yield Problem(place, f'"{name}" is not a pair: {why}', f"name one of its pairs: {', '.join(pairs)}{nearest(name, pairs)}")


def nearest_ids(name: str, ids: Iterable[str]) -> str:
    """The ids of the same scenario nearest to ``name``, in words, else the first ones; empty without any."""
    names = sorted(ids)
    same = [known for known in names if known[:3] == name[:3]]
    index = _index(name)
    near = sorted(sorted(same, key=lambda known: abs(_index(known) - index))[:NEAREST])
    if not names:
        return ""
    return f"of this scenario there are {some_of(near, NEAREST, len(same))}" if same else f"there are {some_of(names, NEAREST)}"


def _index(name: str) -> int:
    # Names of a stranger's release are no more than text.
    digits = re.match(r"[0-9]{1,12}(?=-|$)", name[4:])
    return int(digits[0]) if digits else -1
