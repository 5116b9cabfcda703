"""The tables of a release, read back to the outcomes behind them and derived again; and the requests behind its texts."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import Finding, shortened
from empathy_eval.base.schemas import violations
from empathy_eval.base.stages import advance
from empathy_eval.base.tabular import TableRow
from empathy_eval.design.configuration import candidates_of
from empathy_eval.design.dataset import CONTRASTS, MANIFEST, PREFERRED, pair_id, split_of
from empathy_eval.design.errata import withdrawn_dialogues, withdrawn_pairs
from empathy_eval.design.kinds import NEAR_APATHETIC
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.design.word_list import NOT_CHOSEN
from empathy_eval.generation.outcomes import VARIANTS, Outcome
from empathy_eval.releases.assemble.read_back import (
    KIND_OF,
    UNSPLIT,
    DialogueRows,
    outcome_of,
    plan_order,
    read_back,
    table_path,
    tables_of,
)
from empathy_eval.releases.assemble.rows import derive_rows
from empathy_eval.releases.verify.texts import TextChecks, replay_outcome

# The columns that identify a row of a dialogue; in other tables the pair does.
IDENTITY = {
    "dialogues": ("dialogue_id",), CONTRASTS: ("dialogue_id", "variant"), "crossed": ("crossed_id",), "provenance": ("pair_id", "what"),
    "candidates": ("pair_id", "variant", "attempt"),
}  # fmt: skip
# How far a measure may be from the one that a text gives.
EXACT = 1e-9


def content_faults(folder: Path, manifest: dict[str, Any], checks: TextChecks | None) -> Iterator[Finding]:
    """Rows that the outcomes behind the release do not give, requests that cannot have brought its texts, and texts that a build refuses.

    Tables are read once, side by side, with one dialogue in memory at a time. Without ``checks`` texts are not checked.
    """
    if own := ", ".join(manifest.get("checks", {})):
        what, fix = f"its own checks are code and were not run: {own}", "ask the publisher for these checks, and build the release again"
        yield Finding(str(folder), what, fix, "note", "checks")
    contents, last = ReleaseContents(folder, manifest, checks, Requests(folder, manifest)), tuple[Any, ...]()
    for stored in read_back(folder, tables_of(manifest, derived=True)):
        place = plan_order(stored.dialogue_id)
        if place <= last:
            yield Finding(_first_row(folder, stored), f'"{stored.dialogue_id}" is not in the order of the plan, or is there twice')
        last = max(place, last)
        yield from contents.check(stored)
        advance()
    yield from contents.requests.check_totals()


@dataclass(frozen=True)
class ReleaseContents:
    """The tables of a release, the checks of its texts, and its requests as far as they are collected."""

    folder: Path
    manifest: dict[str, Any]
    checks: TextChecks | None
    requests: Requests

    @cached_property
    def excluded(self) -> set[str]:
        """The ids that no table may hold."""
        return excluded_ids(self.manifest)

    def check(self, stored: DialogueRows) -> Iterator[Finding]:
        """All faults of a dialogue."""
        cells = ((table_path(self.folder, *file), file[0], *numbered) for file, rows in stored.rows.items() for numbered in rows)
        if invalid := [*_wrong_splits(self.folder, stored), *(fault for cell in cells for fault in invalid_cells(*cell))]:
            yield from invalid
            return
        rows, where = stored.by_table(), _first_row(self.folder, stored)
        outcome = outcome_of(stored.dialogue_id, rows, self.manifest)
        if outcome is None:
            yield Finding(where, f'"{stored.dialogue_id}" has no dialogue in this place')
            return
        differences = [*_differences(self.folder, stored, outcome, self.manifest)]
        rebuilt, whats = replay_outcome(outcome, self.checks, self.excluded) if self.checks else (outcome, [])
        yield from differences or ([] if whats or rebuilt == outcome else _differences(self.folder, stored, rebuilt, self.manifest))
        named = {stored.dialogue_id, *(row["pair_id"] for table in ("pairs", "candidates") for row in rows.get(table, ()))}
        whats = [f'"{stored.dialogue_id}": {what}' for what in whats]
        whats += [f'"{name}" is in the data, but is listed as left out' for name in sorted(named & self.excluded)]
        yield from (Finding(where, what) for what in whats)
        yield from self.requests.check_dialogue(outcome, rows.get("provenance", ()))


def excluded_ids(manifest: Mapping[str, Any]) -> set[str]:
    """The ids of dialogues and pairs that are in no config by the manifest: withdrawn, removed by review, or near-duplicates."""
    removed, corrected = (manifest.get("reviews") or {}).get("removed", []), manifest["configuration"].get("corrected", ())
    dialogues = withdrawn_dialogues([*manifest["withdrawn"], *removed])
    return dialogues | withdrawn_pairs(manifest["withdrawn"], corrected) | set(manifest["duplicates"])


def _first_row(folder: Path, stored: DialogueRows) -> str:
    """The place of the first row of a dialogue, in ``dialogues`` if it has one there."""
    file = next((file for file in stored.rows if file[0] == "dialogues"), next(iter(stored.rows)))
    return f"{table_path(folder, *file)}: row {stored.rows[file][0][0]}"


def _wrong_splits(folder: Path, stored: DialogueRows) -> Iterator[Finding]:
    """Rows in another split than that of the dialogue."""
    own = split_of(stored.dialogue_id)
    what = f'"{stored.dialogue_id}" belongs to the split {own} by its id'
    for (table, split), rows in stored.rows.items():
        for number, _ in rows if split not in (None, own) else ():
            where = f"{table_path(folder, table, split)}: row {number}"
            yield Finding(where, what, "never move a row to another split", config=table, row=number)


def invalid_cells(path: Path, table: str, number: int, row: TableRow) -> Iterator[Finding]:
    """Violations of the schema of a table in a row of it."""
    for column, what, fix in violations(row, f"{'preferences' if table in PREFERRED else table}_row"):
        yield Finding(f"{path}: row {number}: {column}", what, fix, config=table, row=number, column=column)


def _differences(folder: Path, stored: DialogueRows, outcome: Outcome, manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """Differences of the rows of a dialogue from those that its outcome gives."""
    derived = dict[tuple[str, str | None], list[TableRow]]()
    scenario = manifest["scenarios"].get(stored.dialogue_id[:3], {}).get("name", "")
    for table, row in derive_rows(outcome, scenario, load_taxonomy()):
        derived.setdefault((table, None if table in UNSPLIT else split_of(stored.dialogue_id)), []).append(row)
    for file in dict.fromkeys([*stored.rows, *derived]):
        path = table_path(folder, *file)
        yield from _row_differences(path, file[0], stored.rows.get(file, ()), derived.get(file, ()), stored.dialogue_id)


def _row_differences(
    path: Path, table: str, stored: Sequence[tuple[int, TableRow]], derived: Sequence[TableRow], about: str
) -> Iterator[Finding]:
    """All cells of a file that differ, up to the first row that is missing or is not derived."""
    columns = IDENTITY.get(table, ("pair_id",))

    def identity(row: TableRow | None) -> str:
        return ", ".join(str(row[column]) for column in columns if row[column] is not None) if row else "nothing more"

    for numbered, derived_row in zip_longest(stored, derived):
        number, row = numbered or (None, None)
        where = str(path) if row is None else f"{path}: row {number}"
        if row is None or derived_row is None or any(row[column] != derived_row[column] for column in columns):
            what = f'"{about}" has {identity(row)} where the rest of the release gives {identity(derived_row)}'
            yield Finding(where, what, config=table, row=number)
            return
        for column, value in row.items():
            if not _equal(value, derived_row.get(column)):
                place, *values = _first_difference(column, value, derived_row.get(column))
                first, second = (repr(shortened(str(value), 100)) for value in values)
                what = f'"{identity(row)}": {place} is {first}, but the rest of the release gives {second}'
                yield Finding(where, what, config=table, row=number, column=column, value=values[0], derived=values[1])


def _equal(stored: Any, derived: Any) -> bool:
    return bool(stored == derived or (isinstance(stored, float) and isinstance(derived, float) and abs(stored - derived) <= EXACT))


def _first_difference(place: str, stored: Any, derived: Any) -> tuple[str, Any, Any]:
    """The first part of a value that differs, with its place."""
    parts: Sequence[Any] = ()
    if isinstance(stored, list) and isinstance(derived, list) and len(stored) == len(derived):
        parts = range(len(stored))
    elif isinstance(stored, dict) and isinstance(derived, dict) and stored.keys() == derived.keys():
        parts = [*stored]
    part = next((part for part in parts if not _equal(stored[part], derived[part])), None)
    return (place, stored, derived) if part is None else _first_difference(f"{place}[{part}]", stored[part], derived[part])


# Reasons of answers whose text reached no check of a variant.
UNREAD = re.compile(
    r"(finish_\w+|not_json|schema|too_long|too_deep|duplicate_key|surrogate|control_sign|bidirectional_sign|hidden_sign|run_of_signs)"
)
# Between the parts of an answer: no text has it.
SEPARATOR = "\0"


def texts_of(outcome: Outcome) -> dict[Any, str]:
    """The answers about a dialogue by pair and variant, and those about crossed items by their requests."""
    texts: dict[Any, str] = {}
    if dialogue := outcome.dialogue:
        turns = (f"{turn.role}: {turn.text}: {turn.strategy or ''}" for turn in dialogue.turns)
        texts[None, "dialogue"] = SEPARATOR.join([dialogue.description, *turns])
    for pair in outcome.pairs:
        name = pair_id(outcome.dialogue_id, pair.turn)
        texts |= {(name, kind): variant.text for kind in VARIANTS if (variant := getattr(pair, kind))}
    for item in outcome.crossed:
        writer, *judges = item.request_keys or (None,)
        texts[writer] = SEPARATOR.join([item.twin, item.reply_2, item.reason])
        # Each context with its own reply first, then with it last.
        texts |= dict(zip(judges, "ABAB", strict=False))
    return texts


class Requests:
    """The requests of a release in 16 bytes each, their numbers by model, and the numbers of refused texts by reason.

    Dialogues of one scenario that begin alike may share a request, and then its answer.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        self._provenance, self._candidates = folder / "provenance.parquet", folder / "candidates.parquet"
        self._where, self._summary = f"{folder / MANIFEST}: summary", manifest["summary"]
        self._configuration = manifest["configuration"]
        self._keys, self._answers = array("Q"), array("Q")
        self._by_model, self._refused = Counter[str](), Counter[str]()
        refused = (name.partition(": ") for name in self._summary["samples_refused"])
        self._unread = {kind for kind, _, reason in refused if UNREAD.fullmatch(reason)}

    def check_dialogue(self, outcome: Outcome, provenance: Sequence[TableRow]) -> Iterator[Finding]:
        """Collects the requests and refused texts of a dialogue; yields texts with fewer candidates than were requested."""
        texts, models = texts_of(outcome), dict[str, str]()
        for row in provenance:
            if key := row["request_key"]:
                models[key] = row["model"]
                self._keys.append(int(key[-16:], 16))
                self._answers.append(_short_hash(f"{row['model']}{SEPARATOR}{texts.get((row['pair_id'], row['what']), texts.get(key))}"))
        self._by_model.update(models.values())
        self._refused.update(f"{candidate.kind}: {reason}" for candidate in outcome.candidates for reason in candidate.reasons)
        counts = Counter((pair_id(outcome.dialogue_id, candidate.turn), candidate.kind) for candidate in outcome.candidates)
        count = candidates_of(self._configuration)
        for row in provenance if count > 1 else ():
            kind = KIND_OF.get(row["what"])
            if kind and row["request_key"] and kind.name not in self._unread and counts[row["pair_id"], kind.name] < count - 1:
                what = f"has {counts[row['pair_id'], kind.name]} texts beside it, but {count} candidates were asked for"
                yield Finding(f"{self._candidates}: {row['pair_id']}, {row['what']}", what)

    def check_totals(self) -> Iterator[Finding]:
        """Requests with several answers, and summaries of the manifest that are smaller than what the release holds."""
        if count := self._count_ambiguous():
            yield Finding(str(self._provenance), f"names {count} requests for different texts: one answer has one text")
        for model, count in sorted(self._by_model.items()):
            if (stated := self._summary["usage"].get(model, {}).get("requests", 0)) < count:
                yield Finding(f"{self._where}: usage: {model}", f"says {stated} requests, but the provenance has {count}")
        # A text by rules that a model then replaced is no sample.
        uncounted = NEAR_APATHETIC.name if self._configuration["near_apathetic"] == "rules-then-model" else None
        for name, count in sorted(self._refused.items()):
            kind, _, reason = name.partition(": ")
            if count > (stated := self._summary["samples_refused"].get(name, 0)) and reason != NOT_CHOSEN and kind != uncounted:
                yield Finding(f"{self._where}: samples_refused: {name[:80]}", f"says {stated}, but {count} candidates are refused for it")

    def _count_ambiguous(self) -> int:
        """The number of requests with more than one answer."""
        keys, answers = (np.array(values, dtype=np.uint64) for values in (self._keys, self._answers))
        order = np.argsort(keys, kind="stable")
        keys, answers = keys[order], answers[order]
        ambiguous: NDArray[np.uint64] = keys[1:][(keys[1:] == keys[:-1]) & (answers[1:] != answers[:-1])]
        return len(np.unique(ambiguous))


def _short_hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "big")
