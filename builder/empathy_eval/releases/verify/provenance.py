"""The provenance and the candidates of a release, row for row against its tables, in the order of the plan."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import Problem
from empathy_eval.base.hashing import SCHEME
from empathy_eval.base.tabular import TableRow, table_batches
from empathy_eval.completions.models.seed_bank import bank_of
from empathy_eval.design.configuration import candidates_of
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import MANIFEST, PREFERRED, PROVENANCE, SPLITS, TEXT_HASH, split_of
from empathy_eval.design.errata import first_of, revision_of
from empathy_eval.design.kinds import KINDS, NEAR_APATHETIC
from empathy_eval.design.word_list import NOT_CHOSEN
from empathy_eval.generation.outcomes import VARIANTS
from empathy_eval.releases.assemble.annotations import WHAT
from empathy_eval.releases.assemble.manifest import is_before
from empathy_eval.releases.assemble.rows import crossed_requests
from empathy_eval.releases.verify.rows import ORIGINS, RESTORE, Cursor, left_out, read_rows

DIALOGUE = re.compile(r"[0-9]{3}-(?:seed|[0-9]{5,9})(?:-r[1-9][0-9]{0,3})?")
PAIR = re.compile(rf"({DIALOGUE.pattern})-t([0-9]{{2,6}})")
SEEDS, RULES = "seed-bank", "rules"
# What of each config is looked at here.
COLUMNS: dict[str, list[str]] = {
    "dialogues": ["dialogue_id", "description", "turns", "source", "model"],
    "pairs": ["dialogue_id", "pair_id", "turn", *PAIR_VARIANTS, "apathetic_method", "near_model", "far_model"],
    "controls": ["dialogue_id", "pair_id", "turn", *CONTROLS],
    "crossed": ["dialogue_id", "turn", "context_2", "reply_2", "reason", "writer", "judge", "request_keys"],
    **{config: ["pair_id"] for config in PREFERRED},
}
# The kinds of request by the variant that they make.
KIND_OF = {one.variant: one for one in KINDS.values() if one.variant}
# Reasons of answers whose text reached no check of a variant.
UNREAD = re.compile(
    r"(finish_\w+|not_json|schema|too_long|too_deep|duplicate_key|surrogate|control_sign|bidirectional_sign|hidden_sign|run_of_signs)"
)


def provenance_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Rows of the provenance, the preferences, the controls and the candidates that the tables do not give, and those that are missing.

    Everything lies in the order of the plan, so that all of it is read once, side by side.
    """
    path, rejected = folder / "provenance.parquet", folder / "candidates.parquet"
    if unread := list(_unread(folder)):
        yield from unread
        return
    requests, refused, gone = Requests(), Counter[str](), left_out(manifest)
    candidates = Cursor(_numbered(rejected), "pair_id")
    configs = [name for name in ("dialogues", "pairs", "controls", "crossed", *PREFERRED) if name in manifest["counts"]]
    cursors = {
        (config, split): Cursor(read_rows(folder, config, split, COLUMNS[config]), "pair_id" if config in PREFERRED else "dialogue_id")
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
        for what in (*_against(rows, there, manifest), *_complete(there, manifest), *_keys(rows)):
            yield Problem(str(path), f'"{dialogue_id}": {what}', RESTORE)
        beside = candidates.take(dialogue_id)
        yield from (Problem(f"{rejected}: {where}", what, RESTORE) for where, what in _candidates(beside, rows, there, manifest, gone))
        refused.update(f"{KIND_OF[row['variant']].name}: {one}" for row in beside if row["variant"] in KIND_OF for one in row["reasons"])
        requests.add(rows, there)
    for cursor in (*cursors.values(), candidates):
        if where := cursor.left():
            yield Problem(where, "is out of the order of the plan, or its dialogue is not in the provenance at that place", RESTORE)
    if torn := requests.torn():
        yield Problem(str(path), f"names {torn} requests for different texts: one answer has one text", RESTORE)
    for where, what in (*requests.untold(manifest["summary"]["usage"]), *_refused(refused, manifest)):
        yield Problem(f"{folder / MANIFEST}: summary: {where}", what, RESTORE)


def _unread(folder: Path) -> Iterator[Problem]:
    """The first row of either file that is of no dialogue or lacks a value; of the provenance, the first that stands behind those of
    judges, or is of a judge or a dialogue and has the hash of a text."""
    judged, judges, without = False, set(WHAT.values()), ("dialogue", "crossed", *WHAT.values())
    for where, row in _numbered(folder / "provenance.parquet"):
        if not DIALOGUE.fullmatch(row["dialogue_id"] or "") or None in (row["what"], row["method"], row["model"]):
            yield Problem(where, f'"{str(row["dialogue_id"])[:80]}" is not a dialogue, or a value is missing', RESTORE)
            break
        if judged and row["what"] not in judges:
            yield Problem(where, "comes after the rows of judges", RESTORE)
            break
        if row["what"] in without and row.get(TEXT_HASH) is not None:
            yield Problem(where, "has the hash of a text, but is not about a text of a variant", RESTORE)
            break
        judged = row["what"] in judges
    for where, row in _numbered(folder / "candidates.parquet"):
        if None in (*row.values(), *(row["reasons"] or ())) or not PAIR.fullmatch(row["pair_id"]):
            yield Problem(where, f'"{str(row["pair_id"])[:80]}" is not a pair, or a value is missing', RESTORE)
            break


def _numbered(path: Path) -> Iterator[tuple[str, TableRow]]:
    """(place, row) of a file of its own."""
    number = 0
    for batch in table_batches(path):
        for row in batch.to_pylist():
            yield f"{path}: row {number}", row
            number += 1


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
                yield f"{row['what']} of {row['pair_id'] or 'the dialogue'} has the {name} {row[name]!r}, but the tables give {value!r}"
        if row["model"] not in manifest["summary"]["usage"] and row["model"] != RULES:
            yield f"{row['what']} of {row['pair_id'] or 'the dialogue'} is by {row['model']!r}, for which the manifest counts no request"
        if row["method"] == "seed" and row["model"] != bank_of(manifest["seeds"]):
            about = f"{row['what']} of {row['pair_id'] or 'the dialogue'}"
            yield f"{about} is by {row['model']!r}, but the seeds are {manifest['seeds'][:80]!r}"


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
            yield f'has the source "{row["source"]}", but the configuration gives "{source}"'
    for row in there["pairs"]:
        if row["apathetic_method"] not in methods:
            yield f'{row["pair_id"]} has an apathetic text by "{row["apathetic_method"]}", which the configuration does not ask for'
        if (row["near_model"] == RULES) != (row["apathetic_method"] == RULES):
            yield f'{row["pair_id"]} has an apathetic text by the method "{row["apathetic_method"]}" with the model "{row["near_model"]}"'
    roles = [one["role"] for row in there["dialogues"] for one in row["turns"]]
    for config in PREFERRED:
        # None is where the turn before is a helper's too.
        behind = [row for row in there[ORIGINS[config][0]] if 0 < row["turn"] <= len(roles) and roles[row["turn"] - 1] == "seeker"]
        ids = [row["pair_id"] for row in behind]
        if config not in there and (not ids or is_before(manifest)):
            continue
        if (told := [row["pair_id"] for row in there.get(config, ())]) != ids:
            yield f"has {len(told)} rows in {config}, but its texts give {len(ids)}, or another order"


def _keys(rows: list[TableRow]) -> Iterator[str]:
    """Keys of requests that are none, or are there where none was asked for."""
    for row in rows:
        key, about = row["request_key"], f"{row['what']} of {row['pair_id'] or 'the dialogue'}"
        if key is None:
            if row["method"] != RULES:
                yield f"{about} was asked of a model, but has no request"
        elif not KEY.fullmatch(key):
            yield f'{about} has the request key "{key[:80]}", which is not valid'


def _candidates(
    rows: list[TableRow], made: list[TableRow], there: dict[str, list[TableRow]], manifest: dict[str, Any], gone: Collection[str]
) -> Iterator[tuple[str, str]]:
    """(which, what) of a dialogue's candidates that are of no turn of it, stand or are numbered otherwise than they are made, or are fewer
    or more than were asked for."""
    configuration, released = manifest["configuration"], {(row["pair_id"], row["what"]) for row in made if row["request_key"]}
    turns = [one["role"] for row in there["dialogues"] for one in row["turns"]]
    count, tries = candidates_of(configuration), configuration["samples"] * (1 + configuration["repairs"])
    before, beside = (-1, ""), Counter[tuple[str, str]]()
    for (name, variant), group in groupby(rows, lambda row: (row["pair_id"], row["variant"])):
        where, kind, found = f"{name}, {variant}", KIND_OF.get(variant), PAIR.fullmatch(name)
        place = int(found[2]) if found else len(turns)
        own = name == f"{name.rpartition('-t')[0]}-t{place:02d}" and name not in gone
        if kind is None or not own or not place < len(turns) or turns[place] != "helper":
            yield where, "does not belong to a helper turn of the release"
            continue
        if (place, kind.name) <= before:
            yield where, "is split into two parts, or is not in order"
        before, numbers, chosen = (place, kind.name), [row["attempt"] for row in group], (name, variant) in released
        beside[name, variant] = len(numbers)
        holes = set(range(1, len(numbers) + 2)) - set(numbers)
        # Of several the one that was chosen has the number that none of these has; else they come before it.
        right = numbers == sorted(set(numbers)) and numbers[0] > 0 and len(holes) == 1
        if not right or ((not chosen or count == 1) and numbers[-1] != len(numbers)):
            yield where, f"are numbered {numbers[:9]}: exactly one number must be left for the released text"
        by_rules = variant == "apathetic" and configuration["near_apathetic"] != "model"
        if len(numbers) + chosen > count * tries + by_rules:
            yield where, f"has {len(numbers) + chosen} texts, but at most {count * tries + by_rules} could be made"
    told = manifest["summary"]["samples_refused"]
    unread = {name.partition(": ")[0] for name in told if UNREAD.fullmatch(name.partition(": ")[2])}
    for name, variant in sorted(one for one in released if one[0] and one[1] in KIND_OF) if count > 1 else ():
        if KIND_OF[variant].name not in unread and beside[name, variant] < count - 1:
            yield f"{name}, {variant}", f"has {beside[name, variant]} texts, but {count} candidates were asked for"


def _refused(refused: Counter[str], manifest: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Reasons that more candidates have than samples were refused for them."""
    told = manifest["summary"]["samples_refused"]
    # What rules made and a model then was asked for is no sample.
    uncounted = NEAR_APATHETIC.name if manifest["configuration"]["near_apathetic"] == "rules-then-model" else None
    for name, count in sorted(refused.items()):
        kind, _, reason = name.partition(": ")
        if count > told.get(name, 0) and reason != NOT_CHOSEN and kind != uncounted:
            yield f"samples_refused: {name[:80]}", f"says {told.get(name, 0)}, but {count} candidates are refused for it"


KEY = re.compile(rf"{SCHEME}-[0-9a-f]{{64}}")


# Between the parts of an answer: no text has it.
SEPARATOR = "\0"


def texts_of(there: Mapping[str, Sequence[TableRow]]) -> dict[Any, str]:
    """What was answered for a dialogue, given its rows by config, by pair and variant; what is of crossed items by their requests."""
    found: dict[Any, str] = {}
    for row in there["dialogues"]:
        turns = (f"{one['role']}: {one['text']}: {one['strategy']}" for one in row["turns"])
        found[None, "dialogue"] = SEPARATOR.join([row["description"], *turns])
    for row in (*there["pairs"], *there["controls"]):
        found |= {(row["pair_id"], name): row[name] for name in CELLS if name in row}
    for row in there.get("crossed", ()):
        writer, *judges = row["request_keys"] or [None]
        found[writer] = SEPARATOR.join([row["context_2"][-1]["text"], row["reply_2"], row["reason"]])
        # Each context with its own reply first, then with it last.
        found |= dict(zip(judges, "ABAB", strict=False))
    return found


@dataclass
class Requests:
    """The requests of a release in a few bytes each, and how many each model had, equal ones of a dialogue once.

    Dialogues of one scenario that begin alike may share a request, and then its answer.
    """

    keys: array[int] = field(default_factory=lambda: array("Q"))
    answers: array[int] = field(default_factory=lambda: array("Q"))
    asked: Counter[str] = field(default_factory=Counter)

    def add(self, rows: Sequence[TableRow], there: Mapping[str, Sequence[TableRow]]) -> None:
        """Takes in the provenance of a dialogue, whose rows in the tables are there by config."""
        texts = texts_of(there)
        for row in rows:
            if (key := row["request_key"]) and KEY.fullmatch(key):
                self.keys.append(int(key[-16:], 16))
                self.answers.append(_short(f"{row['model']}{SEPARATOR}{texts.get((row['pair_id'], row['what']), texts.get(key))}"))
        self.asked.update({row["request_key"]: row["model"] for row in rows if row["request_key"]}.values())

    def torn(self) -> int:
        """How many requests stand behind texts, or models, that differ."""
        keys, answers = (np.array(one, dtype=np.uint64) for one in (self.keys, self.answers))
        order = np.argsort(keys, kind="stable")
        keys, answers = keys[order], answers[order]
        both: NDArray[np.uint64] = keys[1:][(keys[1:] == keys[:-1]) & (answers[1:] != answers[:-1])]
        return len(np.unique(both))

    def untold(self, usage: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[str, str]]:
        """(model, what is wrong) of each of which a manifest tells fewer requests than there are."""
        for model, count in sorted(self.asked.items()):
            if (told := usage.get(model, {}).get("requests", 0)) < count:
                yield model, f"says {told} requests, but the provenance has {count}"


def _short(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "big")
