"""What the report of a release tells of the judges whose annotations it holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from empathy_eval.design.configuration import language_of
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.raters.judges.folder import Folder
from empathy_eval.raters.judges.over_dialogues import over_dialogues, turns_of
from empathy_eval.raters.judges.people import contents_in, with_people
from empathy_eval.raters.judges.reckoning import chance_of, reckoning_of
from empathy_eval.raters.judges.released import released_annotations
from empathy_eval.raters.judges.stance import Shortcuts, duels_won
from empathy_eval.raters.judges.tag_audit import (
    PEOPLE,
    audit_json,
    planned_in,
    signed_by,
    signed_by_people,
    tag_audit,
    tags_of_judge,
    tags_of_people,
)
from empathy_eval.raters.judges.values import scored_of
from empathy_eval.raters.judges.worth import Beside, worth_by
from empathy_eval.raters.review.record import read_record

# What the page of a release does not say of a judge: its usage is in the manifest, and whom it is beside on the page itself.
UNTOLD = {"usage", "beside", "missing"}


def judges_told(release_dir: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The part ``judges`` of a report's tables: ``worth`` and ``course`` by judge, ``teacher/rubric``, and ``tags``; empty without any.

    Args:
        manifest: of the release, or as much of it as is known while it is written.

    Raises:
        InputError: if a file of the release is not there, or does not hold what the data contract says.
    """
    folders = released_annotations(release_dir, manifest)
    if not folders:
        return {}
    chance, people = chance_of(manifest), manifest.get("judges_and_people", {})
    shortcuts = Shortcuts(release_dir, chance.seed, language_of(manifest["configuration"]))
    worth = {}
    for one in folders:
        made = worth_by(one, chance, Beside(_beside(one, folders)), shortcuts).to_json()
        worth[name_of(one)] = {name: value for name, value in made.items() if name not in UNTOLD}
        duels = {scored.name: duels_won(scored) for scored in scored_of(one)}
        theirs = people.get("judges", {}).get(name_of(one), {})
        worth[name_of(one)]["criteria"] = {
            row["name"]: row | {"pairs": len({pair for pair, _ in duels[row["name"]]}), "with_people": theirs.get(row["name"], {})}
            for row in made["criteria"]
        }
    naming = [one for one in folders if one.header["rubric"]["kind"] == "strategies"]
    told: dict[str, Any] = {"worth": worth}
    if naming:
        turns = turns_of(release_dir)
        told["course"] = {name_of(one): over_dialogues(one, turns, reckoning_of(one, chance)) for one in naming}
        planned = planned_in(release_dir)
        audit = audit_json(tag_audit({name_of(one): (signed_by(one), list(tags_of_judge(one, planned))) for one in naming}, chance))
        told["tags"] = _joined(people.get("tags"), audit)
    return {"judges": json.loads(json.dumps(told))}


def people_told(release_dir: Path, manifest: Mapping[str, Any], reviews: Path) -> dict[str, Any]:
    """What a manifest says of judges and the people of a record, which the release does not hold: ``judges`` and ``tags``.

    ``judges`` is by judge, criterion and figure, ``tags`` the audit of tags.
    """
    record, chance = read_record(reviews), chance_of(manifest)
    folders = released_annotations(release_dir, manifest)
    judges = {name_of(one): found for one in folders if (found := with_people(one, chance, record, release_dir))}
    tags = list(tags_of_people(record, contents_in(release_dir)))
    audit = tag_audit({PEOPLE: (signed_by_people([record]), tags)}, chance)
    told: dict[str, Any] = json.loads(json.dumps({"judges": judges, "tags": audit_json(audit)}))
    return {"judges_and_people": told}


def name_of(folder: Folder) -> str:
    """``teacher/rubric``, as on the stand."""
    return f"{folder.teacher}/{folder.rubric}"


def _beside(one: Folder, folders: Sequence[Folder]) -> tuple[Folder, ...]:
    """The other judges by the same rubric, and preferences beside ratings."""
    kind, hashed = one.header["rubric"]["kind"], one.header["configuration"]["rubric_hash"]
    return tuple(
        other
        for other in folders
        if other is not one
        and (
            # Reward models share no scale.
            (kind in ("rating", "preference") and other.header["configuration"]["rubric_hash"] == hashed)
            or (kind in ("rating", "reward") and other.header["rubric"]["kind"] == "preference")
        )
    )


def _joined(people: Mapping[str, Any] | None, judges: dict[str, Any]) -> dict[str, Any]:
    """One audit of two, people first within a strategy."""
    if not people:
        return judges
    names = list(dict.fromkeys(one["strategy"] for one in [*judges["rows"], *people["rows"]]))
    order = {one.name: place for place, one in enumerate(load_taxonomy().strategies)}
    rows = sorted([*people["rows"], *judges["rows"]], key=lambda one: order.get(one["strategy"], len(order) + names.index(one["strategy"])))
    return {"rows": rows, "right": {**people["right"], **judges["right"]}}
