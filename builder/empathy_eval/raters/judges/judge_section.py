"""What the report of a release tells of the judges whose annotations it holds."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.tabular import WHOLE, table_batches
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import JUDGED, files_of, parts_of
from empathy_eval.design.taxonomy import Taxonomy, load_taxonomy
from empathy_eval.raters.judges.annotations import Annotated, Comparison, Folder, Judged, Rating, scored_of
from empathy_eval.raters.judges.comparisons import Shortcuts, contents_in, duels_won, with_people
from empathy_eval.raters.judges.estimator import chance_of, reckoning_of
from empathy_eval.raters.judges.judge_quality import Beside, worth_by
from empathy_eval.raters.judges.tag_audit import audit_json, audit_of, over_dialogues, turns_of
from empathy_eval.raters.review.record import read_record

# What is read of each config, beside who judged.
WANTED = {
    "annotations": ("pair_id", "dialogue_id", "turn", "variant", "criterion", "sample", "value"),
    "comparisons": ("pair_id", "variant_1", "variant_2", "sample", "winner_12", "winner_21"),
    "strategies": ("pair_id", "sample", "ideal", "variant", "named"),
}
BY = ("teacher", "rubric", "rubric_hash")
# Rows of whole dialogues have none of these.
OF_TURNS = {"pair_id", "turn", "variant"}
# What rows of each config are in a case.
OF_CASE = {"annotations": "ratings", "comparisons": "comparisons", "strategies": "strategies"}
# The dialogue, turn and pair of a case, and by it what its rows say.
Place = tuple[str, int | None, str | None]
Cases = dict[Place, dict[str, list[Any]]]


def released_annotations(release_dir: Path, manifest: Mapping[str, Any]) -> tuple[Folder, ...]:
    """The annotations that the manifest of a release names, in its order; none where it names none.

    Raises:
        InputError: if a file is not there, is damaged, or does not hold what the data contract says.
    """
    told = [(tuple(one[name] for name in BY), one) for one in manifest.get("annotations", ())]
    cases: dict[tuple[str, ...], Cases] = {by: defaultdict(lambda: defaultdict(list)) for by, _ in told}
    criteria = {by: {criterion["name"] for criterion in one["says"]["criteria"]} for by, one in told}
    taxonomy = load_taxonomy()
    for config, path in [(name, path) for name in (JUDGED if told else ()) for path in files_of(release_dir, name)]:
        for row in _rows(path, config) if path.is_file() else ():
            by = tuple(row[name] for name in BY)
            if by in cases:
                try:
                    dialogue_id, turn = parts_of(row["pair_id"]) if row["pair_id"] else (row["dialogue_id"], None)
                    made = _made(config, row, criteria[by], taxonomy)
                except (KeyError, ValueError) as error:
                    raise input_error(path, f"a row does not hold what the data contract says: {error}", WHOLE) from error
                cases[by][dialogue_id, turn, row["pair_id"]][OF_CASE[config]].append(made)
    return tuple(_folder(release_dir, one, cases[by]) for by, one in told)


def _rows(path: Path, config: str) -> Iterator[dict[str, Any]]:
    """The rows of a file, of the types of the contract and with everything that a row must have."""
    for batch in table_batches(path, [*BY, *WANTED[config]]):
        if any(batch.schema.field(name).type != JUDGED[config].field(name).type for name in (*BY, *WANTED[config])):
            raise input_error(path, "does not hold what the data contract says", WHOLE)
        for row in batch.to_pylist():
            if any(value is None and not (config == "annotations" and name in OF_TURNS) for name, value in row.items()):
                raise input_error(path, "a row does not hold what the data contract says", WHOLE)
            yield row


def _made(config: str, row: dict[str, Any], criteria: set[str], taxonomy: Taxonomy) -> Rating | Comparison | Judged:
    if config == "comparisons":
        winners = {row["winner_12"], row["winner_21"]}
        if not winners <= {row["variant_1"], row["variant_2"]}:
            raise ValueError(f"it prefers {' and '.join(sorted(winners))}")
        kept = {name: row[name] for name in WANTED["comparisons"] if name != "pair_id"}
        return Comparison(**kept, reason_12="", reason_21="", request_key_12="", request_key_21="")
    if config == "strategies":
        by_name = {one.name: one.abbreviation for one in taxonomy.strategies}
        ideal = dict(zip((one.abbreviation for one in taxonomy.strategies), row["ideal"], strict=True))
        return Judged(row["variant"], row["sample"], by_name[row["named"]], "", ideal, "")
    if criteria and row["criterion"] not in criteria:
        raise KeyError(row["criterion"])
    if not math.isfinite(row["value"]):
        raise ValueError(f"its value is {row['value']}")
    return Rating(row["variant"], row["criterion"], row["sample"], row["value"], "", "")


def _folder(release_dir: Path, said: dict[str, Any], cases: Cases) -> Folder:
    """What a manifest says of annotations as the header of their folder, and the cases that have a row."""
    configuration = {**{name: said[name] for name in ("judge", "rubric", "rubric_hash", "release")}, "samples_of_a_text": said["samples"]}
    summary = {"missing": 0, **{name: said[name] for name in ("unannotated_by_reason", "usage")}}
    header = {"configuration": configuration, "rubric": said["says"], "summary": summary}
    # By dialogue and turn; a dialogue as a whole comes first.
    ordered = sorted(cases.items(), key=lambda case: (case[0][0], -1 if case[0][1] is None else case[0][1]))
    rows: list[tuple[Place, dict[str, Any]]] = [(place, {name: tuple(one) for name, one in some.items()}) for place, some in ordered]
    return Folder(release_dir, header, tuple(Annotated(*place, "accepted", **some) for place, some in rows))


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
        worth[one.name] = {name: value for name, value in made.items() if name not in UNTOLD}
        duels = {scored.name: duels_won(scored) for scored in scored_of(one)}
        theirs = people.get("judges", {}).get(one.name, {})
        worth[one.name]["criteria"] = {
            row["name"]: row | {"pairs": len({pair for pair, _ in duels[row["name"]]}), "with_people": theirs.get(row["name"], {})}
            for row in made["criteria"]
        }
    naming = [one for one in folders if one.header["rubric"]["kind"] == "strategies"]
    told: dict[str, Any] = {"worth": worth}
    if naming:
        turns = turns_of(release_dir)
        told["course"] = {one.name: over_dialogues(one, turns, reckoning_of(one, chance)) for one in naming}
        told["tags"] = _joined(people.get("tags"), audit_json(audit_of((), naming, release_dir, chance)))
    return {"judges": json.loads(json.dumps(told))}


def people_told(release_dir: Path, manifest: Mapping[str, Any], reviews: Path) -> dict[str, Any]:
    """What a manifest says of judges and the people of a record, which the release does not hold: ``judges`` and ``tags``.

    ``judges`` is by judge, criterion and figure, ``tags`` the audit of tags.
    """
    record, chance = read_record(reviews), chance_of(manifest)
    folders = released_annotations(release_dir, manifest)
    judges = {one.name: found for one in folders if (found := with_people(one, chance, record, release_dir))}
    audit = audit_of([record], (), None, chance, contents_in(release_dir))
    told: dict[str, Any] = json.loads(json.dumps({"judges": judges, "tags": audit_json(audit)}))
    return {"judges_and_people": told}


def _beside(one: Folder, folders: Sequence[Folder]) -> tuple[Folder, ...]:
    """The other judges by the same rubric, and preferences beside ratings."""
    kind, hashed = one.header["rubric"]["kind"], one.header["configuration"]["rubric_hash"]
    return tuple(other for other in folders if other is not one and other.goes_beside(kind, hashed))


def _joined(people: Mapping[str, Any] | None, judges: dict[str, Any]) -> dict[str, Any]:
    """One audit of two, people first within a strategy."""
    if not people:
        return judges
    names = list(dict.fromkeys(one["strategy"] for one in [*judges["rows"], *people["rows"]]))
    order = {one.name: place for place, one in enumerate(load_taxonomy().strategies)}
    rows = sorted([*people["rows"], *judges["rows"]], key=lambda one: order.get(one["strategy"], len(order) + names.index(one["strategy"])))
    return {"rows": rows, "right": {**people["right"], **judges["right"]}}
