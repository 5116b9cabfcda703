"""The provenance and the candidates of a release, row for row against its tables, and what the manifest counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.base.tabular import TableRow, table_batches
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.dataset import PREFERRED, TEXT_HASH
from empathy_eval.releases.annotations import WHAT
from empathy_eval.releases.verify_candidates import candidate_faults
from empathy_eval.releases.verify_complete import Item, incomplete
from empathy_eval.releases.verify_counts import count_faults
from empathy_eval.releases.verify_order import Groups, Place, in_order, order_faults, place_of
from empathy_eval.releases.verify_requests import Requests, wanted_rows, wrong_rows
from empathy_eval.releases.verify_reviews import review_faults
from empathy_eval.releases.verify_rows import RESTORE
from empathy_eval.releases.verify_tally import Tally

JUDGES = frozenset(WHAT.values())
COLUMNS = {
    "pairs": ["dialogue_id", "pair_id", "turn", *PAIR_VARIANTS, "apathetic_method", "near_model", "far_model"],
    "controls": ["dialogue_id", "pair_id", *CONTROLS],
    "crossed": ["dialogue_id", "turn", "context_2", "reply_2", "reason", "source", "writer", "judge", "request_keys"],
    **{config: ["pair_id"] for config in PREFERRED},
}


def provenance_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Rows of the provenance and the candidates that the tables do not give, and those that are missing; counts that do not add up."""
    found, tally = list(order_faults(folder, manifest)), Tally()
    try:
        found = found or [*_walk(folder, manifest, tally)]
        found += [*review_faults(folder, manifest)]
    except InputError as error:
        found += error.problems
    yield from found or count_faults(folder, manifest, tally)


def _walk(folder: Path, manifest: dict[str, Any], tally: Tally) -> Iterator[Problem]:
    """All files side by side, dialogue by dialogue; what comes by is counted."""
    path, rejected, requests = folder / "provenance.parquet", folder / "candidates.parquet", Requests()
    unplaced = list[Problem]()
    asked, candidates = Groups(_asked(path, unplaced)), Groups(_numbered(rejected, unplaced))
    beside = {config: Groups(in_order(folder, config, names)) for config, names in COLUMNS.items() if config in manifest["counts"]}
    for place, dialogue in in_order(folder, "dialogues", ["dialogue_id", "source", "model", "description", "turns"]):
        item = Item(dialogue, {config: groups.at(place) for config, groups in beside.items()})
        yield from (*_strays(path, asked.before(place)), *_strays(rejected, candidates.before(place)))
        mine = asked.at(place)
        yield from wrong_rows(path, mine, list(wanted_rows(item, manifest)), requests)
        others = candidates.at(place)
        yield from candidate_faults(rejected, item, others, manifest)
        yield from incomplete(folder, item, manifest)
        tally.add(item, mine, others)
    yield from (*_strays(path, asked.before(None)), *_strays(rejected, candidates.before(None)), *unplaced)
    if torn := requests.torn():
        yield Problem(str(path), f"names {torn} requests for texts that differ: one answer has one text", RESTORE)


def _asked(path: Path, unplaced: list[Problem]) -> Iterator[tuple[Place, TableRow]]:
    """The rows of what was made; those of judges come after all of them, and have no text."""
    judged, hashed = False, False
    for place, row in _numbered(path, unplaced, {"what": JUDGES}):
        if row["what"] not in JUDGES and not judged:
            yield place, row
            continue
        if row["what"] not in JUDGES:
            unplaced.append(Problem(f"{path}: row {row['row']}", "stands behind those of judges", RESTORE))
            return
        if row.get(TEXT_HASH) is not None and not hashed:
            unplaced.append(Problem(f"{path}: row {row['row']}", "is of a judge, and has the hash of a text", RESTORE))
            hashed = True
        judged = True


def _numbered(path: Path, unplaced: list[Problem], free: dict[str, frozenset[str]] | None = None) -> Iterator[tuple[Place, TableRow]]:
    """Rows with their numbers, as far as they are in the order of the plan; some rows are ``free`` of it."""
    before, number = (-1, -1), 0
    for batch in table_batches(path):
        for row in batch.to_pylist():
            place = place_of(row["dialogue_id"] if "dialogue_id" in row else (row["pair_id"] or "").rpartition("-t")[0])
            of_judge = any(row[name] in values for name, values in (free or {}).items())
            if not of_judge and (place is None or place < before):
                name = row.get("dialogue_id") or row["pair_id"]
                unplaced.append(Problem(f"{path}: row {number}", f'"{str(name)[:80]}" does not stand where the plan has it', RESTORE))
                return
            before = before if of_judge or place is None else place
            yield before, row | {"row": number}
            number += 1


def _strays(path: Path, rows: Sequence[TableRow]) -> Iterator[Problem]:
    for row in rows:
        name = row.get("dialogue_id") or row["pair_id"]
        yield Problem(f"{path}: row {row['row']}", f'"{str(name)[:80]}" is of no dialogue of the release', RESTORE)
