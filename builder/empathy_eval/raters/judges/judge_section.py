"""The section on judges in the report of a release with annotations."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.tabular import WHOLE, table_batches
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import JUDGED, files_of, parts_of
from empathy_eval.design.taxonomy import Taxonomy, load_taxonomy
from empathy_eval.raters.judges.annotations import Annotated, AnnotationFolder, JudgeComparison, NamedStrategy, Rating, criterion_scores
from empathy_eval.raters.judges.comparisons import Shortcuts, contents_in, empathetic_wins, with_people
from empathy_eval.raters.judges.estimator import chance_of, estimator_of
from empathy_eval.raters.judges.judge_quality import ComparedWith, quality_with
from empathy_eval.raters.judges.tag_audit import UNDERSTANDING, PlannedTurns, audit_json, audit_of, over_dialogues, turns_of, understood
from empathy_eval.raters.review.record import read_record

# Columns read of each config, besides the judge's.
WANTED = {
    "annotations": ("pair_id", "dialogue_id", "turn", "variant", "criterion", "sample", "value"),
    "comparisons": ("pair_id", "variant_1", "variant_2", "sample", "winner_12", "winner_21"),
    "strategies": ("pair_id", "sample", "ideal", "variant", "named"),
}
BY = ("teacher", "rubric", "rubric_hash")
# Null in rows on whole dialogues.
OF_TURNS = {"pair_id", "turn", "variant"}
# Field of a case for the rows of each config.
OF_CASE = {"annotations": "ratings", "comparisons": "comparisons", "strategies": "strategies"}
# (dialogue, turn, pair) of a case, and its rows by field.
CaseKey = tuple[str, int | None, str | None]
Cases = dict[CaseKey, dict[str, list[Any]]]


def released_annotations(release_dir: Path, manifest: Mapping[str, Any]) -> tuple[AnnotationFolder, ...]:
    """Annotations listed in the manifest of a release, in its order.

    Raises:
        InputError: if a file is missing, damaged, or does not hold what the data contract says.
    """
    entries = [(tuple(entry[name] for name in BY), entry) for entry in manifest.get("annotations", ())]
    cases: dict[tuple[str, ...], Cases] = {by: defaultdict(lambda: defaultdict(list)) for by, _ in entries}
    criteria = {by: {criterion["name"] for criterion in entry["says"]["criteria"]} for by, entry in entries}
    taxonomy = load_taxonomy()
    for config, path in [(name, path) for name in (JUDGED if entries else ()) for path in files_of(release_dir, name)]:
        for row in _rows(path, config) if path.is_file() else ():
            by = tuple(row[name] for name in BY)
            if by in cases:
                try:
                    dialogue_id, turn = parts_of(row["pair_id"]) if row["pair_id"] else (row["dialogue_id"], None)
                    annotation = _annotation(config, row, criteria[by], taxonomy)
                except (KeyError, ValueError) as error:
                    raise input_error(path, f"a row does not hold what the data contract says: {error}", WHOLE) from error
                cases[by][dialogue_id, turn, row["pair_id"]][OF_CASE[config]].append(annotation)
    return tuple(_folder(release_dir, entry, cases[by]) for by, entry in entries)


def _rows(path: Path, config: str) -> Iterator[dict[str, Any]]:
    """Rows of a file, checked for the types of the contract and for missing values."""
    for batch in table_batches(path, [*BY, *WANTED[config]]):
        if any(batch.schema.field(name).type != JUDGED[config].field(name).type for name in (*BY, *WANTED[config])):
            raise input_error(path, "does not hold what the data contract says", WHOLE)
        for row in batch.to_pylist():
            if any(value is None and not (config == "annotations" and name in OF_TURNS) for name, value in row.items()):
                raise input_error(path, "a row does not hold what the data contract says", WHOLE)
            yield row


def _annotation(config: str, row: dict[str, Any], criteria: set[str], taxonomy: Taxonomy) -> Rating | JudgeComparison | NamedStrategy:
    if config == "comparisons":
        winners = {row["winner_12"], row["winner_21"]}
        if not winners <= {row["variant_1"], row["variant_2"]}:
            raise ValueError(f"it prefers {' and '.join(sorted(winners))}")
        columns = {name: row[name] for name in WANTED["comparisons"] if name != "pair_id"}
        return JudgeComparison(**columns, reason_12="", reason_21="", request_key_12="", request_key_21="")
    if config == "strategies":
        by_name = {strategy.name: strategy.abbreviation for strategy in taxonomy.strategies}
        ideal = dict(zip((strategy.abbreviation for strategy in taxonomy.strategies), row["ideal"], strict=True))
        return NamedStrategy(row["variant"], row["sample"], by_name[row["named"]], "", ideal, "")
    if criteria and row["criterion"] not in criteria:
        raise KeyError(row["criterion"])
    if not math.isfinite(row["value"]):
        raise ValueError(f"its value is {row['value']}")
    return Rating(row["variant"], row["criterion"], row["sample"], row["value"], "", "")


def _folder(release_dir: Path, entry: dict[str, Any], cases: Cases) -> AnnotationFolder:
    """Annotations in a manifest as a folder: their header, and the cases that have a row."""
    configuration = {**{name: entry[name] for name in ("judge", "rubric", "rubric_hash", "release")}, "samples_of_a_text": entry["samples"]}
    summary = {"missing": 0, **{name: entry[name] for name in ("unannotated_by_reason", "usage")}}
    header = {"configuration": configuration, "rubric": entry["says"], "summary": summary}
    # By dialogue and turn; a dialogue as a whole comes first.
    ordered = sorted(cases.items(), key=lambda case: (case[0][0], -1 if case[0][1] is None else case[0][1]))

    def case(place: CaseKey, rows: Mapping[str, Sequence[Any]]) -> Annotated:
        fields: dict[str, Any] = {name: tuple(values) for name, values in rows.items()}
        return Annotated(*place, "accepted", **fields)

    return AnnotationFolder(release_dir, header, tuple(starmap(case, ordered)))


# Omitted from the report: usage is in the manifest, and the other judges are on the page itself.
UNTOLD = {"usage", "beside", "missing"}
# What is said of a judge by a rubric on whole dialogues, where its pairs are dialogues.
WHOLE_DIALOGUE = "dialogue"


def judge_section(release_dir: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Part ``judges`` of a report's tables: ``worth`` and ``course`` by judge, ``teacher/rubric``, and ``tags``; empty without judges.

    Args:
        manifest: of the release, or as much of it as is known while it is written.

    Raises:
        InputError: if a file of the release is missing, or does not hold what the data contract says.
    """
    folders = released_annotations(release_dir, manifest)
    if not folders:
        return {}
    chance, people = chance_of(manifest), manifest.get("judges_and_people", {})
    shortcuts = Shortcuts(release_dir, chance.seed, language_of(manifest["configuration"]))
    quality_by_judge = {}
    for folder in folders:
        quality = quality_with(folder, chance, ComparedWith(_other_folders(folder, folders)), shortcuts).to_json()
        quality_by_judge[folder.name] = {name: value for name, value in quality.items() if name not in UNTOLD}
        quality_by_judge[folder.name] |= {"unit": WHOLE_DIALOGUE} if folder.header["rubric"]["unit"] == WHOLE_DIALOGUE else {}
        duels = {scored.name: empathetic_wins(scored) for scored in criterion_scores(folder)}
        with_people = people.get("judges", {}).get(folder.name, {})
        quality_by_judge[folder.name]["criteria"] = {
            row["name"]: row | {"pairs": len({pair for pair, _ in duels[row["name"]]}), "with_people": with_people.get(row["name"], {})}
            for row in quality["criteria"]
        }
    naming = [folder for folder in folders if folder.kind == "strategies"]
    section: dict[str, Any] = {"worth": quality_by_judge}
    rating = [folder for folder in folders if UNDERSTANDING in {criterion["name"] for criterion in folder.header["rubric"]["criteria"]}]
    turns = turns_of(release_dir) if naming or rating else PlannedTurns({}, {})
    if depths := {folder.name: depth for folder in rating if (depth := understood(folder, turns))}:
        section["depth"] = depths
    if naming:
        section["course"] = {folder.name: over_dialogues(folder, turns, estimator_of(folder, chance)) for folder in naming}
        section["tags"] = _joined(people.get("tags"), audit_json(audit_of((), naming, release_dir, chance)))
    return {"judges": json.loads(json.dumps(section))}


def human_section(release_dir: Path, manifest: Mapping[str, Any], reviews: Path) -> dict[str, Any]:
    """Part of a manifest about judges and the people of a record, which the release does not hold: ``judges`` and ``tags``.

    ``judges`` is by judge, criterion and figure, ``tags`` the audit of tags.
    """
    record, chance = read_record(reviews), chance_of(manifest)
    folders = released_annotations(release_dir, manifest)
    judges = {folder.name: figures for folder in folders if (figures := with_people(folder, chance, record, release_dir))}
    audit = audit_of([record], (), None, chance, contents_in(release_dir))
    section: dict[str, Any] = json.loads(json.dumps({"judges": judges, "tags": audit_json(audit)}))
    return {"judges_and_people": section}


def _other_folders(folder: AnnotationFolder, folders: Sequence[AnnotationFolder]) -> tuple[AnnotationFolder, ...]:
    """The other judges by the same rubric, and preferences beside ratings."""
    return tuple(other for other in folders if other is not folder and other.comparable_with(folder.kind, folder.rubric_hash))


def _joined(people: Mapping[str, Any] | None, judges: dict[str, Any]) -> dict[str, Any]:
    """One audit of two, people first within a strategy."""
    if not people:
        return judges
    names = list(dict.fromkeys(row["strategy"] for row in [*judges["rows"], *people["rows"]]))
    order = {strategy.name: index for index, strategy in enumerate(load_taxonomy().strategies)}
    rows = sorted([*people["rows"], *judges["rows"]], key=lambda row: order.get(row["strategy"], len(order) + names.index(row["strategy"])))
    return {"rows": rows, "right": {**people["right"], **judges["right"]}}
