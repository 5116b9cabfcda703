"""Errata: what was withdrawn from all releases of a name, and what came in its place under an id of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from empathy_eval.base.errors import Problem, nearest

# The id of a corrected dialogue is that of the one it stands for, with a number: ``017-00042-r1``, then ``-r2``.
REVISION = re.compile(r"-r([1-9][0-9]{0,3})$")
# How many ids an error names.
NEAREST = 5


@dataclass(frozen=True)
class Planned:
    """The dialogues of a plan: ``ids`` gives all of their ids, ``roles`` the roles of the turns of one.

    ``roles`` is None for a dialogue that is not planned, and empty where its turns are not known.
    """

    ids: Callable[[], Iterable[str]]
    roles: Callable[[str], Sequence[str] | None]


def first_of(dialogue_id: str) -> str:
    """The id that a dialogue had before any correction."""
    return REVISION.sub("", dialogue_id)


def before(dialogue_id: str) -> str:
    """The id of the dialogue that a corrected one stands for."""
    number = revision_of(dialogue_id)
    return first_of(dialogue_id) + (f"-r{number - 1}" if number > 1 else "")


def revision_of(dialogue_id: str) -> int:
    """How often a dialogue was corrected: 0 for one that never was."""
    return int(found[1]) if (found := REVISION.search(dialogue_id)) else 0


def latest_of(corrected: Sequence[str]) -> dict[str, str]:
    """The ids of corrected dialogues by those that they had before any correction, the last correction of each."""
    return {first_of(one): one for one in sorted(corrected, key=revision_of)}


def withdrawn_dialogues(withdrawn: Sequence[Mapping[str, Any]]) -> set[str]:
    """The dialogues that a list of withdrawals names as a whole."""
    return {one["dialogue_id"] for one in withdrawn if "dialogue_id" in one}


def withdrawn_pairs(withdrawn: Sequence[Mapping[str, Any]], corrected: Sequence[str] = ()) -> set[str]:
    """The pairs that it names: their variants go, their dialogues stay.

    Those of a seed go from its ``corrected`` forms too, but for an error: that may have been mended, other texts may still be in the file.
    """
    found, latest = {one["pair_id"] for one in withdrawn if "pair_id" in one}, latest_of(corrected)
    for one in withdrawn:
        dialogue_id, _, turn = one.get("pair_id", "").rpartition("-")
        if (first := first_of(dialogue_id)) in latest and first.endswith("-seed") and one.get("kind") != "error":
            found.add(f"{latest[first]}-{turn}")
    return found


def errata_faults(where: str, configuration: Mapping[str, Any]) -> Iterator[Problem]:
    """Withdrawals of no kind or named twice, and corrections of what is not withdrawn."""
    said, seen = configuration.get("withdrawn", []), set[str]()
    for number, one in enumerate(said):
        name, place = one.get("dialogue_id") or one["pair_id"], f"{where}: withdrawn[{number}]"
        if "kind" not in one:
            yield Problem(place, f"does not give the kind of the withdrawal of {name}", "add kind: harm, error, contamination or request")
        if name in seen:
            yield Problem(place, f"withdraws {name} again", "name it once")
        seen.add(name)
    for one in configuration.get("corrected", []):
        if before(one) not in seen:
            what = f'"{one}" replaces {before(one)}, which is not withdrawn'
            yield Problem(f"{where}: corrected", what, "withdraw it too: what was published is never changed in place")


def errata_named(configuration: Mapping[str, Any]) -> set[str]:
    """The dialogues that withdrawals and corrections are about, each under the id of its last correction."""
    corrected = configuration.get("corrected", ())
    latest = latest_of(corrected)
    named = [*corrected, *(_dialogue_of(one) for one in configuration.get("withdrawn", ()))]
    return {latest.get(first_of(one), first_of(one)) for one in named}


def unknown_errata(where: str, configuration: Mapping[str, Any], plan: Planned) -> Iterator[Problem]:
    """Withdrawals and corrections of what a plan does not have; each with what is there.

    Of a dialogue that was corrected since, nothing says any more which turns it had: any pair of it is taken.
    """
    latest = latest_of(configuration.get("corrected", ()))
    for number, one in enumerate(configuration.get("withdrawn", ())):
        place, name = f"{where}: withdrawn[{number}]", _dialogue_of(one)
        current = latest.get(first_of(name), first_of(name))
        roles = plan.roles(current)
        if roles is None or revision_of(name) > revision_of(current):
            yield Problem(place, f'"{name}" is not planned', f"name one that is: {near_ids(name, plan.ids())}")
        elif "pair_id" in one and name == current and roles:
            yield from _no_pair(place, one["pair_id"], name, roles)
    for name in latest.values():
        if plan.roles(name) is None:
            what = f'"{name}" replaces a dialogue that is not planned'
            yield Problem(f"{where}: corrected", what, f"name one that is: {near_ids(name, plan.ids())}")


def _dialogue_of(one: Mapping[str, Any]) -> str:
    """The dialogue that a withdrawal is about."""
    return str(one["dialogue_id"] if "dialogue_id" in one else one["pair_id"].rpartition("-t")[0])


def _no_pair(place: str, name: str, dialogue_id: str, roles: Sequence[str]) -> Iterator[Problem]:
    """What is wrong with the id of a pair of a dialogue whose turns have these roles."""
    pairs = [f"{dialogue_id}-t{turn:02d}" for turn, role in enumerate(roles) if role == "helper"]
    if name not in pairs:
        turn = int(name.rpartition("-t")[2])
        speaks = turn < len(roles) and name == f"{dialogue_id}-t{turn:02d}"
        why = "the seeker speaks there" if speaks else f"{dialogue_id} has {len(roles)} turns"
        yield Problem(place, f'"{name}" is not a pair: {why}', f"name one of its pairs: {', '.join(pairs)}{nearest(name, pairs)}")


def near_ids(name: str, there: Iterable[str]) -> str:
    """Which ids there are, in words: those of the same scenario that are nearest to ``name``, else the first ones; empty without any."""
    names = sorted(there)
    same = [one for one in names if one[:3] == name[:3]]
    index = _index(name)
    near = sorted(sorted(same, key=lambda one: abs(_index(one) - index))[:NEAREST])
    if not names:
        return ""
    return f"of this scenario there are {_some(near, len(same))}" if same else f"there are {_some(names[:NEAREST], len(names))}"


def _index(name: str) -> int:
    # Names of a stranger's release are no more than text.
    digits = re.match(r"[0-9]{1,12}(?=-|$)", name[4:])
    return int(digits[0]) if digits else -1


def _some(shown: Sequence[str], of: int) -> str:
    return ", ".join(shown) + (f" and {of - len(shown):,} more" if of > len(shown) else "")
