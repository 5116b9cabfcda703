"""What judges said, as a release holds it: each row valid, of a text that is there, and following from what it holds itself."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Finding, InputError, faults_of
from empathy_eval.base.schemas import violations
from empathy_eval.base.tabular import TableRow
from empathy_eval.design.contrasts import CONTROLS, REFERENCE
from empathy_eval.design.dataset import CONTRASTS, JUDGED, OPTIONAL, PROVENANCE, SPLITS, TEXT_HASH, file_of, parts_of, split_of
from empathy_eval.design.rubrics import REWARD, REWARDS, Rubric, rubric_of
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.raters.judges.annotations import dialogue_of, teacher_of
from empathy_eval.releases.assemble.annotations import PROVENANCE_NAMES, request_keys_of, row_identity
from empathy_eval.releases.assemble.read_back import numbered_rows, plan_order

# By how much probabilities may miss 1.
ROUNDED = 1e-6
# A judge and the name of a rubric.
Judged = tuple[str, str]
# What a row of the provenance says of a request.
Asked = tuple[Any, ...]


def annotation_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Rows of what judges said are valid, once there, of texts of the release, by those whom the manifest names, and as many as it says;
    and the provenance has their requests."""
    judged = dict[Judged, Rubric]()
    yield from (*_judges(manifest, judged), *_unnamed(folder, manifest), *_people(manifest, judged))
    entries = {(said["teacher"], said["rubric"]): said for said in manifest.get("annotations", ())}
    asked = {by: dict[Asked, None]() for by in entries}
    found, cases, seen = defaultdict[Judged, Counter[str]](Counter), defaultdict[Judged, set[str]](set), set[Any]()
    for config, split in [(config, split) for config in JUDGED if config in manifest["counts"] for split in SPLITS]:
        path, texts, before = file_of(folder, config, split), _there(folder, split), tuple[Any, ...]()
        for number, row in numbered_rows(path):
            place = f"{path}: row {number}"
            if wrong := [Finding(f"{place}: {where}", what, fix) for where, what, fix in violations(row, f"{config}_row")]:
                yield from wrong
                continue
            about, name, by = (config, *row_identity(row)), row["pair_id"] or row["dialogue_id"], (row["teacher"], row["rubric"])
            before, last = (by[1], by[0], *plan_order(dialogue_of(name)), name), before
            whats = [*_placed(row, split, texts), *_judged(config, row, judged.get(by)), *_asked_for(row, name, entries.get(by))]
            whats += ["is a second row of the same judgement"] if about in seen else []
            whats += ["is not in order"] if last > before else []
            yield from (Finding(place, f'"{name}": {what}') for what in whats)
            asked.setdefault(by, {}).update(dict.fromkeys(_requests(config, row)))
            seen.add(about)
            found[by][config] += 1
            cases[by].add(name)
    yield from _unasked(folder / "provenance.parquet", dict.fromkeys(chain.from_iterable(asked.values())))
    for by, said in entries.items():
        yield from (Finding(f"manifest.json: annotations: {', '.join(by)}", what) for what in _summed(said, found[by], len(cases[by])))


def _requests(config: str, row: TableRow) -> Iterator[Asked]:
    """The requests behind a row, as the provenance has them."""
    values = {**row, "dialogue_id": dialogue_of(row["pair_id"] or row["dialogue_id"]), "what": PROVENANCE_NAMES[config], "method": "judge"}
    return (_about({**values, "model": row["teacher"], "request_key": key}) for key in request_keys_of(config, row))


def _about(row: TableRow) -> Asked:
    return tuple(row.get(name) for name in (*PROVENANCE.names, TEXT_HASH))


def _unasked(path: Path, asked: Iterable[Asked]) -> Iterator[Finding]:
    """The first row of the provenance that is not the one that the rows of judges give; theirs are at its end."""
    wanted, begun = iter(asked), False
    for number, row in numbered_rows(path):
        if row["what"] not in PROVENANCE_NAMES.values():
            if begun:
                yield Finding(f"{path}: row {number}", "comes after the rows of judges")
                return
            continue
        begun, given = True, next(wanted, None)
        if _about(row) != given:
            what = f"is a request of a judge for {row['pair_id'] or row['dialogue_id']}, where the rows of judges give {_request(given)}"
            yield Finding(f"{path}: row {number}", what)
            return
    if given := next(wanted, None):
        yield Finding(str(path), f"has nothing more where the rows of judges give {_request(given)}")


def _request(asked: Asked | None) -> str:
    return f"that for {asked[1] or asked[0]}" if asked else "nothing more"


def _asked_for(row: TableRow, name: str, said: dict[str, Any] | None) -> Iterator[str]:
    """What a row is of, and its judge was not asked for."""
    if said is None:
        return
    if not 0 <= row["sample"] < said["samples"]:
        yield f"is of sample {row['sample']}, but there are only {said['samples']} samples"
    if strange := [one for one in _variants(row) or [REFERENCE] * (row["pair_id"] is None) if one not in said["variants"]]:
        yield f"is of {', '.join(strange)}, which the manifest does not name"
    if name in said["left_out"]:
        yield "is in the data, but is listed as left out"


def _variants(row: TableRow) -> list[str]:
    """The variants that a row is of."""
    return [row[column] for column in ("variant", "variant_1", "variant_2") if row.get(column) is not None]


def _summed(said: dict[str, Any], rows: Counter[str], there: int) -> Iterator[str]:
    """What the manifest says of a judge otherwise than the rows do: how many, and of how many turns or dialogues."""
    if said["counts"] != rows:
        yield f"says {said['counts']} rows, but the data holds {dict(rows)}"
    # Of one that is not among the rows something must say what came of it.
    if there > said["cases"] or (there < said["cases"] and not said["unannotated_by_reason"]):
        yield f"says {said['cases']} turns or dialogues, but the rows cover {there}"
    if said["turns"] is not None and (turns := said["cases"] + len(said["left_out"])) > said["turns"]:
        yield f"says {said['turns']} turns or dialogues, but lists {turns}"


def _judges(manifest: dict[str, Any], judged: dict[Judged, Rubric]) -> Iterator[Finding]:
    """Gathers the rubrics of the manifest by judge and name; each is there once, and is the one of its hash."""
    entries = manifest.get("annotations", ())
    if [*entries] != sorted(entries, key=lambda one: (one["rubric"], one["teacher"])):
        yield Finding("manifest.json: annotations", "are not in order")
    for number, said in enumerate(entries):
        by, place = (said["teacher"], said["rubric"]), f"manifest.json: annotations[{number}]"
        if by in judged:
            yield Finding(place, f'the judge "{by[0]}" with the rubric "{by[1]}" is listed twice')
        if said["teacher"] != (asked := teacher_of(said["judge"])):
            yield Finding(place, f'names the judge "{said["teacher"]}", but the judge that was asked is "{asked}"')
        try:
            judged[by] = rubric_of(said["says"])
        except InputError as error:
            yield from faults_of(error.problems)
            continue
        if (judged[by].name, judged[by].hash) != (said["rubric"], said["rubric_hash"]):
            yield Finding(place, f'the content of the rubric "{said["rubric"]}" does not match its hash')


def _unnamed(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Files of configs that the manifest does not count."""
    for config in OPTIONAL.keys() - manifest["counts"].keys():
        if any(name.startswith(f"data/{config}/") for name in manifest["files"]):
            yield Finding(str(folder / "data" / config), "is not counted in the manifest")


def _people(manifest: dict[str, Any], judged: dict[Judged, Rubric]) -> Iterator[Finding]:
    """Figures on judges and people that no record or no judge of this release is behind."""
    if (people := manifest.get("judges_and_people")) is None:
        return
    place = "manifest.json: judges_and_people"
    if not manifest.get("reviews") or not judged:
        yield Finding(place, "needs both reviews and annotations, but one of them is missing")
    known = {f"{teacher}/{name}": {one.name for one in rubric.criteria} for (teacher, name), rubric in judged.items()}
    for judge, criteria in people["judges"].items():
        if strange := sorted(criteria.keys() - known.get(judge, set())):
            yield Finding(f"{place}: {judge}", f"names {', '.join(strange)}, which no judge of the release has rated")
    for row in people["tags"]["rows"]:
        if row["right"] + sum(row["instead"].values()) != row["judged"]:
            yield Finding(f"{place}: tags: {row['strategy']}", "has counts of right and other tags that do not add up to the judged tags")


# What is judged: the ids of each config.
IDS = {"dialogues": "dialogue_id", "pairs": "pair_id", "controls": "pair_id"}
There = dict[str, set[str]]


def _there(folder: Path, split: str) -> There:
    """The ids of what can be judged in a split."""
    found = {config: {row[name] for _, row in numbered_rows(file_of(folder, config, split), [name])} for config, name in IDS.items()}
    path = file_of(folder, CONTRASTS, split)
    rows = (row for _, row in numbered_rows(path, ["dialogue_id", "variant"])) if path.is_file() else ()
    return found | {CONTRASTS: {f"{row['dialogue_id']}:{row['variant']}" for row in rows}}


def _placed(row: TableRow, split: str, there: There) -> Iterator[str]:
    """What a row says of a text that is not there, or not in this split."""
    name = row["pair_id"]
    dialogue_id, turn = parts_of(name) if name else (row["dialogue_id"], None)
    if split_of(dialogue_id) != split:
        yield f"belongs to the split {split_of(dialogue_id)} by its id"
        return
    if (row.get("dialogue_id", dialogue_id), row.get("turn", turn)) != (dialogue_id, turn):
        yield "its dialogue or turn is not that of its id"
    if name is None:
        if dialogue_id not in there["dialogues"]:
            yield "is not a dialogue of the release"
        if row["variant"] is not None and f"{dialogue_id}:{row['variant']}" not in there[CONTRASTS]:
            yield f"is a whole dialogue, but the release has it not all {row['variant']}"
        if row["variant"] == REFERENCE:
            yield "is a whole dialogue, but names its reference as a variant"
    elif name not in there["pairs"]:
        yield "is not a pair of the release"
    elif not (variants := _variants(row)):
        yield "is a pair without a variant"
    elif any(variant in CONTROLS for variant in variants) and name not in there["controls"]:
        yield f"has no text {' or '.join(variants)}"


def _judged(config: str, row: TableRow, rubric: Rubric | None) -> Iterator[str]:
    """What does not go with the rubric that a row is by, or does not follow from the rest of the row."""
    if rubric is None or rubric.hash != row["rubric_hash"]:
        yield f'the manifest names no annotations by "{row["teacher"]}" and the rubric "{row["rubric"]}" with that hash'
    elif config == "annotations":
        rewarded = {REWARD: REWARDS} if rubric.kind == "reward" else {}
        scale = {**{one.name: one.scale for one in rubric.criteria}, **rewarded}.get(row["criterion"])
        if scale is None:
            yield f'"{row["criterion"]}" is not a criterion of the rubric'
        elif fault := scale.fault(row["value"]):
            yield f"its {row['criterion']} of {row['value']:g} {fault}"
    if config == "comparisons":
        one, other, there, back = (row[name] for name in ("variant_1", "variant_2", "winner_12", "winner_21"))
        if one >= other or not {there, back} <= {one, other}:
            yield f"compares {one} with {other}, but prefers {there} and {back}"
        if (row["consistent"], row["winner"]) != (there == back, there if there == back else None):
            yield f"its winner is {row['winner']}, but the two orders prefer {there} and {back}"
    if config == "strategies":
        if not abs(math.fsum(row["ideal"]) - 1) <= ROUNDED:  # nor is what is no number
            yield f"its ideal distribution adds up to {math.fsum(row['ideal']):g}, not to 1"
        if row["named"] not in {one.name for one in load_taxonomy().strategies}:
            yield f'"{row["named"]}" is not a strategy'
