"""Annotations of a release: each row is valid, is about a text of the release, and agrees with the rest of its row and the manifest."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, dropwhile, product, zip_longest
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Finding, Problem, collecting, faults_of
from empathy_eval.base.tabular import TableRow
from empathy_eval.design.contrasts import CONTROLS, REFERENCE
from empathy_eval.design.dataset import CONTRASTS, JUDGED, PROVENANCE, SPLITS, TEXT_HASH, file_of, parts_of, split_of
from empathy_eval.design.rubrics import REWARD, REWARDS, Rubric, rubric_of
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.raters.judges.annotations import dialogue_of, teacher_of
from empathy_eval.releases.assemble.annotations import PROVENANCE_NAMES, request_keys_of, row_identity
from empathy_eval.releases.assemble.read_back import numbered_rows, plan_order
from empathy_eval.releases.verify.content import invalid_cells
from empathy_eval.releases.verify.files import released_rows

# By how much probabilities may miss 1.
ROUNDING = 1e-6
VARIANT_COLUMNS = ("variant", "variant_1", "variant_2")
# A judge and the name of its rubric.
JudgeKey = tuple[str, str]
# A row of the provenance.
RequestRow = tuple[Any, ...]


def annotation_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Faults of the rows of judges, of their entries in the manifest, and of their requests in the provenance."""
    rubrics = dict[JudgeKey, Rubric]()
    yield from (*_entry_faults(manifest, rubrics), *_human_faults(manifest, rubrics))
    entries = {(entry["teacher"], entry["rubric"]): entry for entry in manifest.get("annotations", ())}
    requests = {key: dict[RequestRow, None]() for key in entries}
    counts, cases, identities = defaultdict[JudgeKey, Counter[str]](Counter), defaultdict[JudgeKey, set[str]](set), set[Any]()
    for config, split in product([config for config in JUDGED if config in manifest["counts"]], SPLITS):
        path, ids, last = file_of(folder, config, split), _judged_ids(folder, split), tuple[Any, ...]()
        for number, row in numbered_rows(path):
            if invalid := [*invalid_cells(path, config, number, row)]:
                yield from invalid
                continue
            name, key, identity = row["pair_id"] or row["dialogue_id"], (row["teacher"], row["rubric"]), (config, *row_identity(row))
            position = (*key[::-1], *plan_order(dialogue_of(name)), name)
            whats = [*_misplaced(row, split, ids), *_judgement_faults(config, row, rubrics.get(key))]
            whats += [*_not_requested(row, name, entries[key])] if key in entries else []
            whats += ["is a second row of the same judgement"] if identity in identities else []
            whats += ["is not in order"] if position < last else []
            yield from (Finding(f"{path}: row {number}", f'"{name}": {what}') for what in whats)
            requests.setdefault(key, {}).update(dict.fromkeys(_requests(config, row)))
            counts[key][config] += 1
            cases[key].add(name)
            identities.add(identity)
            last = position
    yield from _provenance_faults(folder / "provenance.parquet", dict.fromkeys(chain.from_iterable(requests.values())))
    for key, entry in entries.items():
        whats = [*_count_faults(entry, counts[key], len(cases[key]))]
        yield from (Finding(f"manifest.json: annotations: {', '.join(key)}", what) for what in whats)


def _requests(config: str, row: TableRow) -> Iterator[RequestRow]:
    """The requests behind a row, as the provenance lists them."""
    values = {**row, "dialogue_id": dialogue_of(row["pair_id"] or row["dialogue_id"]), "what": PROVENANCE_NAMES[config], "method": "judge"}
    return (_request({**values, "model": row["teacher"], "request_key": key}) for key in request_keys_of(config, row))


def _request(row: TableRow) -> RequestRow:
    return tuple(row.get(name) for name in (*PROVENANCE.names, TEXT_HASH))


def _provenance_faults(path: Path, requests: Iterable[RequestRow]) -> Iterator[Finding]:
    """The first row at the end of the provenance, where the requests of judges are, that is not the next request of their rows."""
    rows = dropwhile(lambda numbered_row: numbered_row[1]["what"] not in PROVENANCE_NAMES.values(), numbered_rows(path))
    for numbered_row, derived in zip_longest(rows, requests):
        stored = _request(numbered_row[1]) if numbered_row else None
        if stored != derived:
            where = f"{path}: row {numbered_row[0]}" if numbered_row else str(path)
            first, second = (f"a request for {request[1] or request[0]}" if request else "nothing more" for request in (stored, derived))
            yield Finding(where, f"has {first} where the rows of judges give {second}")
            return


def _not_requested(row: TableRow, name: str, entry: dict[str, Any]) -> Iterator[str]:
    """Samples, variants and cases that the judge was not asked about."""
    if not 0 <= row["sample"] < entry["samples"]:
        yield f"is of sample {row['sample']}, but there are only {entry['samples']} samples"
    if unknown := [name for name in _variants(row) or [REFERENCE] * (row["pair_id"] is None) if name not in entry["variants"]]:
        yield f"is of {', '.join(unknown)}, which the manifest does not name"
    if name in entry["left_out"]:
        yield "is in the data, but is listed as left out"


def _variants(row: TableRow) -> list[str]:
    """The variants that a row is about."""
    return [row[column] for column in VARIANT_COLUMNS if row.get(column) is not None]


def _count_faults(entry: dict[str, Any], rows: Counter[str], cases: int) -> Iterator[str]:
    """Counts in the entry of a judge that its rows do not give."""
    if entry["counts"] != rows:
        yield f"says {entry['counts']} rows, but the data holds {dict(rows)}"
    # A case without rows needs a reason.
    if cases > entry["cases"] or (cases < entry["cases"] and not entry["unannotated_by_reason"]):
        yield f"says {entry['cases']} turns or dialogues, but the rows cover {cases}"
    if entry["turns"] is not None and (turns := entry["cases"] + len(entry["left_out"])) > entry["turns"]:
        yield f"says {entry['turns']} turns or dialogues, but lists {turns}"


def _entry_faults(manifest: dict[str, Any], rubrics: dict[JudgeKey, Rubric]) -> Iterator[Finding]:
    """Faults of the entries of judges; their rubrics are added to ``rubrics``."""
    entries, problems = manifest.get("annotations", ()), list[Problem]()
    if [*entries] != sorted(entries, key=lambda entry: (entry["rubric"], entry["teacher"])):
        yield Finding("manifest.json: annotations", "are not in order")
    for number, entry in enumerate(entries):
        key, place = (entry["teacher"], entry["rubric"]), f"manifest.json: annotations[{number}]"
        if key in rubrics:
            yield Finding(place, f'the judge "{key[0]}" with the rubric "{key[1]}" is listed twice')
        if entry["teacher"] != (teacher := teacher_of(entry["judge"])):
            yield Finding(place, f'names the judge "{entry["teacher"]}", but the judge that was asked is "{teacher}"')
        with collecting(problems):
            rubrics[key] = rubric = rubric_of(entry["says"])
            if (rubric.name, rubric.hash) != (entry["rubric"], entry["rubric_hash"]):
                yield Finding(place, f'the content of the rubric "{entry["rubric"]}" does not match its hash')
    yield from faults_of(problems)


def _human_faults(manifest: dict[str, Any], rubrics: dict[JudgeKey, Rubric]) -> Iterator[Finding]:
    """Figures on judges and people without a review, or of a judge that is not in the release."""
    if (figures := manifest.get("judges_and_people")) is None:
        return
    place = "manifest.json: judges_and_people"
    if not manifest.get("reviews") or not rubrics:
        yield Finding(place, "needs both reviews and annotations, but one of them is missing")
    known = {f"{teacher}/{name}": {criterion.name for criterion in rubric.criteria} for (teacher, name), rubric in rubrics.items()}
    for judge, criteria in figures["judges"].items():
        if unknown := sorted(criteria.keys() - known.get(judge, set())):
            yield Finding(f"{place}: {judge}", f"names {', '.join(unknown)}, which no judge of the release has rated")
    for row in figures["tags"]["rows"]:
        if row["right"] + sum(row["instead"].values()) != row["judged"]:
            yield Finding(f"{place}: tags: {row['strategy']}", "has counts of right and other tags that do not add up to the judged tags")


def _judged_ids(folder: Path, split: str) -> set[str]:
    """The ids of the pairs and dialogues of a split, and of their parts: ``PAIR:controls``, and ``DIALOGUE:VARIANT`` of whole variants."""
    pairs, dialogues, controls = (
        {row[column] for row in released_rows(folder, config, [column], [split])}
        for config, column in (("pairs", "pair_id"), ("dialogues", "dialogue_id"), ("controls", "pair_id"))
    )
    contrasts = released_rows(folder, CONTRASTS, ["dialogue_id", "variant"], [split])
    return pairs | dialogues | {f"{name}:controls" for name in controls} | {f"{row['dialogue_id']}:{row['variant']}" for row in contrasts}


def _misplaced(row: TableRow, split: str, ids: set[str]) -> Iterator[str]:
    """Why no text of this split is what a row is about."""
    name, variants = row["pair_id"], _variants(row)
    dialogue_id, turn = parts_of(name) if name else (row["dialogue_id"], None)
    if split_of(dialogue_id) != split:
        yield f"belongs to the split {split_of(dialogue_id)} by its id"
    elif (row.get("dialogue_id", dialogue_id), row.get("turn", turn)) != (dialogue_id, turn):
        yield "its dialogue or turn is not that of its id"
    elif name and (name not in ids or not variants):
        yield "is not a pair of the release" if variants else "is a pair without a variant"
    elif name and {*variants} & {*CONTROLS} and f"{name}:controls" not in ids:
        yield f"has no text {' or '.join(variants)}"
    elif not name and REFERENCE in variants:
        yield "is a whole dialogue, but names its reference as a variant"
    elif not name and ":".join([dialogue_id, *variants]) not in ids:
        yield f"is a whole dialogue, but the release has it not all {' or '.join(variants) or REFERENCE}"


def _judgement_faults(config: str, row: TableRow, rubric: Rubric | None) -> Iterator[str]:
    """Values that do not fit the rubric, or do not follow from the rest of the row."""
    if rubric is None or rubric.hash != row["rubric_hash"]:
        yield f'the manifest names no annotations by "{row["teacher"]}" and the rubric "{row["rubric"]}" with that hash'
    elif config == "annotations":
        rewards = {REWARD: REWARDS} if rubric.kind == "reward" else {}
        scale = {**{criterion.name: criterion.scale for criterion in rubric.criteria}, **rewards}.get(row["criterion"])
        if scale is None:
            yield f'"{row["criterion"]}" is not a criterion of the rubric'
        elif fault := scale.fault(row["value"]):
            yield f"its {row['criterion']} of {row['value']:g} {fault}"
    if config == "comparisons":
        first, second, *winners = (row[name] for name in ("variant_1", "variant_2", "winner_12", "winner_21"))
        if first >= second or not {*winners} <= {first, second}:
            yield f"compares {first} with {second}, but prefers {winners[0]} and {winners[1]}"
        consistent = winners[0] == winners[1]
        if (row["consistent"], row["winner"]) != (consistent, winners[0] if consistent else None):
            yield f"its winner is {row['winner']}, but the two orders prefer {winners[0]} and {winners[1]}"
    if config == "strategies":
        if not abs(math.fsum(row["ideal"]) - 1) <= ROUNDING:  # NaN is not either
            yield f"its ideal distribution adds up to {math.fsum(row['ideal']):g}, not to 1"
        if row["named"] not in {strategy.name for strategy in load_taxonomy().strategies}:
            yield f'"{row["named"]}" is not a strategy'
