"""The provenance and the candidates of a release, row for row against its tables, in the order of the plan."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem
from empathy_eval.base.tabular import TableRow, table_batches
from empathy_eval.design.configuration import candidates_of
from empathy_eval.design.contrasts import CELLS, CONTROLS
from empathy_eval.design.dataset import PREFERRED, PROVENANCE, SPLITS, pair_id, parts_of, split_of
from empathy_eval.design.errata import first_of, revision_of
from empathy_eval.design.kinds import KINDS, NEAR_APATHETIC
from empathy_eval.design.word_list import NOT_CHOSEN
from empathy_eval.generation.outcomes import VARIANTS
from empathy_eval.releases.annotations import WHAT
from empathy_eval.releases.made_by import is_before
from empathy_eval.releases.rows import crossed_requests, preference_rows
from empathy_eval.releases.verify_rows import RESTORE, Cursor, read_rows

KEY = re.compile(r"s[0-9]+-[0-9a-f]{64}")
SEEDS, RULES = "seed-bank", "rules"
# The kinds of request by the variant that they make.
KIND_OF = {one.variant: one for one in KINDS.values() if one.variant}
# Reasons of answers whose text reached no check of a variant.
UNREAD = re.compile(r"(finish_\w+|not_json|schema|too_long|too_deep|duplicate_key|surrogate|control_sign|bidirectional_sign|run_of_signs)")


@dataclass
class _Found:
    """What was found on the way: the keys of all requests, and by pair and variant what candidates there must be."""

    keys: set[str] = field(default_factory=set)
    made: set[tuple[str, str]] = field(default_factory=set)
    dialogues: dict[str, int] = field(default_factory=dict)


def provenance_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Rows of the provenance, the preferences, the controls and the candidates that the tables do not give, and those that are missing.

    Everything lies in the order of the plan, so that all of it is read once, side by side.
    """
    path, found = folder / "provenance.parquet", _Found()
    configs = [name for name in ("dialogues", "pairs", "controls", "crossed", *PREFERRED) if name in manifest["counts"]]
    cursors = {
        (config, split): Cursor(read_rows(folder, config, split), "pair_id" if config in PREFERRED else "dialogue_id")
        for config in configs
        for split in SPLITS
    }
    last: tuple[Any, ...] = ()
    for dialogue_id, group in groupby(made_rows(path), lambda row: row["dialogue_id"]):
        rows = list(group)
        there = {config: cursors[config, split_of(dialogue_id)].take(dialogue_id) for config in configs}
        if (place := place_of(dialogue_id)) <= last:
            yield Problem(str(path), f'"{dialogue_id}" is not in the order of the plan', RESTORE)
        last = max(place, last)
        for what in (*_against(rows, there, manifest), *_complete(there, manifest), *_keys(rows, found)):
            yield Problem(str(path), f'"{dialogue_id}": {what}', RESTORE)
        found.dialogues[dialogue_id] = max((len(one["turns"]) for one in there["dialogues"]), default=0)
        found.made |= {(row["pair_id"], row["what"]) for row in rows if row["pair_id"] and row["what"] in CELLS and row["request_key"]}
    for cursor in cursors.values():
        if where := cursor.left():
            yield Problem(where, "is in no place of the plan, or of a dialogue that the provenance does not name there", RESTORE)
    asked = sum(one.get("requests", 0) for one in manifest["summary"]["usage"].values())
    if len(found.keys) > asked:
        yield Problem(str(path), f"names {len(found.keys)} requests, the manifest says that {asked} were used", RESTORE)
    yield from _candidates(folder, manifest, found)


def place_of(dialogue_id: str) -> tuple[Any, ...]:
    """What dialogues are in order by: scenario, then index."""
    number, _, index = first_of(dialogue_id).partition("-")
    return int(number), len(index), index, revision_of(dialogue_id)


def made_rows(path: Path) -> Iterator[TableRow]:
    """The provenance without the requests of judges, which stand at its end."""
    judged = set(WHAT.values())
    for batch in table_batches(path, PROVENANCE.names):
        yield from (row for row in batch.to_pylist() if row["what"] not in judged)


def _against(rows: list[TableRow], there: dict[str, list[TableRow]], manifest: dict[str, Any]) -> Iterator[str]:
    """What the provenance of a dialogue says otherwise than its rows."""
    wanted = list(_wanted(there, manifest["configuration"]))
    named = [(row["pair_id"], row["what"]) for row in rows]
    if named != (names := [(one["pair_id"], one["what"]) for one in wanted]):
        strange = next((pair for pair in zip(named, names, strict=False) if pair[0] != pair[1]), None)
        told = f"{strange[0]} where the tables give {strange[1]}" if strange else f"{len(named)} rows where the tables give {len(names)}"
        yield f"the provenance has {told}"
        return
    for row, one in zip(rows, wanted, strict=True):
        for name, value in one.items():
            if row[name] != value:
                yield f"{row['what']} of {row['pair_id'] or 'the dialogue'} has the {name} {row[name]!r}, the tables give {value!r}"
        if row["model"] not in manifest["summary"]["usage"] and row["model"] != RULES:
            yield f"{row['what']} of {row['pair_id'] or 'the dialogue'} is by {row['model']!r}, of which the manifest knows no request"


def _wanted(there: dict[str, list[TableRow]], configuration: dict[str, Any]) -> Iterator[TableRow]:
    """The rows of the provenance that a dialogue and its rows give, as far as these say it."""
    kinds = {role: one["kind"] for role, one in configuration["models"].items()}
    controlled = {row["pair_id"] for row in there["controls"]}
    for row in there["dialogues"]:
        yield {"pair_id": None, "what": "dialogue", "method": "seed" if kinds["self_chat"] == SEEDS else "model", "model": row["model"]}
    for row in there["pairs"]:
        for variant in VARIANTS:
            if variant in CONTROLS and row["pair_id"] not in controlled:
                continue
            role = KIND_OF[variant].role
            made: TableRow = {"pair_id": row["pair_id"], "what": variant, "method": "seed" if kinds[role] == SEEDS else "model"}
            if variant == "apathetic":
                made |= {"method": row["apathetic_method"], "model": row["near_model"]}
            elif variant == "empathetic":
                made["model"] = row["far_model"]
            yield made | ({"request_key": None} if made["method"] == RULES else {})
    for row in there.get("crossed", ()):
        yield from crossed_requests(row)


def _complete(there: dict[str, list[TableRow]], manifest: dict[str, Any]) -> Iterator[str]:
    """What the rows of a dialogue say that no build of that configuration does; preferences that they do not give, or that are missing."""
    kinds, ways = (
        {role: one["kind"] for role, one in manifest["configuration"]["models"].items()},
        manifest["configuration"]["near_apathetic"],
    )
    source = "seed" if kinds["self_chat"] == SEEDS else "model"
    methods = {"rules"} if ways == "rules" else {"seed" if kinds["near"] == SEEDS else "model"} | ({"rules"} if ways != "model" else set())
    for row in there["dialogues"]:
        if row["source"] != source:
            yield f"is said to be of a {row['source']}, and a {source} was asked"
    for row in there["pairs"]:
        if row["apathetic_method"] not in methods:
            yield f'{row["pair_id"]} has an apathetic text by "{row["apathetic_method"]}", which the configuration does not ask for'
        if (row["near_model"] == RULES) != (row["apathetic_method"] == RULES):
            yield f'{row["pair_id"]} has an apathetic text by "{row["apathetic_method"]}" of "{row["near_model"]}"'
    wanted: dict[str, list[str]] = {config: [] for config in PREFERRED}
    for config, own in (("pairs", ("preferences",)), ("controls", ("preferences_near", "preferences_far"))):
        for row in there[config]:
            for name in own:
                wanted[name] += [row["pair_id"]] * (name in dict(preference_rows(row)))
    for config, ids in wanted.items():
        if config not in there and (not ids or is_before(manifest)):
            continue
        if (told := [row["pair_id"] for row in there.get(config, ())]) != ids:
            yield f"has {len(told)} rows in {config}, its texts give {len(ids)}, or in another order"


def _keys(rows: list[TableRow], found: _Found) -> Iterator[str]:
    """Keys of requests that are none, or stand behind two texts."""
    for row in rows:
        key, about = row["request_key"], f"{row['what']} of {row['pair_id'] or 'the dialogue'}"
        if key is None:
            if row["method"] != RULES:
                yield f"{about} was asked of a model, and has no request"
        elif not KEY.fullmatch(key):
            yield f'{about} has the request "{key[:80]}", which is none'
        elif key in found.keys:
            yield f"{about} has the request of another text"
        found.keys |= {key} if key else set()


def _candidates(folder: Path, manifest: dict[str, Any], found: _Found) -> Iterator[Problem]:
    """Candidates that are of no turn of the release, numbered otherwise than they are made, or more or fewer than were judged."""
    path, refused, most = folder / "candidates.parquet", Counter[str](), candidates_of(manifest["configuration"])
    rows = (row for batch in table_batches(path) for row in batch.to_pylist())
    beside = Counter[tuple[str, str]]()
    for (name, variant), group in groupby(rows, lambda row: (row["pair_id"], row["variant"])):
        each = list(group)
        where, kind = f"{path}: {name}, {variant}", KIND_OF.get(variant)
        dialogue_id, turn = parts_of(name) if re.fullmatch(r"[0-9]{3}-[^\s]+-t[0-9]+", name or "") else ("", 0)
        if (
            kind is None
            or dialogue_id not in found.dialogues
            or not turn < found.dialogues[dialogue_id]
            or pair_id(dialogue_id, turn) != name
        ):
            yield Problem(where, "is of no turn of the release", RESTORE)
            continue
        if (name, variant) in beside:
            yield Problem(where, "comes in two parts", RESTORE)
        beside[name, variant] += len(each)
        numbers = sorted(row["attempt"] for row in each)
        holes = set(range(1, len(each) + 2)) - set(numbers)
        if (
            len(set(numbers)) < len(numbers)
            or len(holes) != 1
            or ((name, variant) not in found.made and numbers != list(range(1, len(each) + 1)))
        ):
            yield Problem(
                where, f"are numbered {numbers}, which leaves no one number for the text that was released, or none too many", RESTORE
            )
        for row in each:
            refused.update(f"{kind.name}: {reason}" for reason in row["reasons"] if reason != NOT_CHOSEN)
    told = manifest["summary"]["samples_refused"]
    # What rules made and a model then was asked for is no sample.
    uncounted = NEAR_APATHETIC.name if manifest["configuration"]["near_apathetic"] == "rules-then-model" else None
    for name, count in refused.items():
        if count > told.get(name, 0) and name.partition(": ")[0] != uncounted:
            yield Problem(str(path), f"has {count} texts refused for {name}, the manifest says {told.get(name, 0)}", RESTORE)
    unread = {name.partition(": ")[0] for name in told if UNREAD.fullmatch(name.partition(": ")[2])}
    for name, variant in sorted(found.made) if most > 1 else ():
        if KIND_OF[variant].name not in unread and beside[name, variant] < most - 1:
            yield Problem(str(path), f"has {beside[name, variant]} texts of {name}, {variant}: {most} candidates were asked for", RESTORE)
