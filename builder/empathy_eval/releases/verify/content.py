"""The tables of a release: read back to the outcomes behind them, derived again, and compared dialogue by dialogue; and their requests."""

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

from empathy_eval.base.errors import Finding
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
    File,
    Numbered,
    outcome_of,
    plan_order,
    read_back,
    table_path,
    tables_of,
)
from empathy_eval.releases.assemble.rows import derive_rows
from empathy_eval.releases.verify.texts import TextChecks, replayed

# What tells the rows of a dialogue apart; in other tables it is the pair.
IDENTITY = {
    "dialogues": ("dialogue_id",), CONTRASTS: ("dialogue_id", "variant"), "crossed": ("crossed_id",), "provenance": ("pair_id", "what"),
    "candidates": ("pair_id", "variant", "attempt"),
}  # fmt: skip
# How far a measure may be from the one that a text gives.
EXACT = 1e-9


def content_faults(folder: Path, manifest: dict[str, Any], under: TextChecks | None) -> Iterator[Finding]:
    """Rows that do not come from the outcomes that the release gives, or are missing; requests that cannot have brought its texts; and
    texts that a build would have refused, if they are to be checked ``under`` something.

    Tables are read once, side by side, and a dialogue of them is in memory at a time.
    """
    if own := ", ".join(manifest.get("checks", {})):
        what, fix = f"its own checks are code and were not run: {own}", "ask the publisher for these checks, and build the release again"
        yield Finding(str(folder), what, fix, "note", "checks")
    contents, last = ReleaseContents(folder, manifest, under, Requests(folder, manifest)), tuple[Any, ...]()
    for stored in read_back(folder, tables_of(manifest, derived=True)):
        place = plan_order(stored.dialogue_id)
        if place <= last:
            yield Finding(_first(folder, stored), f'"{stored.dialogue_id}" is not in the order of the plan, or is there twice')
        last = max(place, last)
        yield from contents.faults(stored)
        advance()
    yield from contents.requests.in_all()


@dataclass(frozen=True)
class ReleaseContents:
    """The tables of a release, what its texts are checked ``under``, and its requests as far as they are gathered."""

    folder: Path
    manifest: dict[str, Any]
    under: TextChecks | None
    requests: Requests

    @cached_property
    def gone(self) -> set[str]:
        """What is in no table."""
        return left_out(self.manifest)

    def faults(self, stored: DialogueRows) -> Iterator[Finding]:
        """All that is wrong with a dialogue."""
        if wrong := [*_invalid(self.folder, stored)]:
            yield from wrong
            return
        rows, where = stored.by_table(), _first(self.folder, stored)
        outcome = outcome_of(stored.dialogue_id, rows, self.manifest)
        if outcome is None:
            yield Finding(where, f'"{stored.dialogue_id}" has no dialogue in this place')
            return
        found = [*_unequal(self.folder, stored, outcome, self.manifest)]
        again, whats = replayed(outcome, self.under, self.gone) if self.under else (outcome, [])
        yield from found or ([] if whats or again == outcome else _unequal(self.folder, stored, again, self.manifest))
        yield from (Finding(where, f'"{stored.dialogue_id}": {what}') for what in whats)
        named = {stored.dialogue_id, *(row["pair_id"] for name in ("pairs", "candidates") for row in rows.get(name, ()))}
        for left in sorted(named & self.gone):
            yield Finding(where, f'"{left}" is in the data, but is listed as left out')
        yield from self.requests.of(outcome, rows.get("provenance", ()))


def left_out(manifest: Mapping[str, Any]) -> set[str]:
    """The dialogues and pairs that a manifest says to be in no config: withdrawn, removed by review, or near-duplicates."""
    removed, corrected = (manifest.get("reviews") or {}).get("removed", []), manifest["configuration"].get("corrected", ())
    whole = withdrawn_dialogues([*manifest["withdrawn"], *removed])
    return whole | withdrawn_pairs(manifest["withdrawn"], corrected) | set(manifest["duplicates"])


def _first(folder: Path, stored: DialogueRows) -> str:
    """Where the first row of a dialogue is: in ``dialogues``, if it has one there."""
    file = next((one for one in stored.rows if one[0] == "dialogues"), next(iter(stored.rows)))
    return f"{table_path(folder, *file)}: row {stored.rows[file][0][0]}"


def _invalid(folder: Path, stored: DialogueRows) -> Iterator[Finding]:
    """Rows that are not valid each for itself, or are in another split than that of the dialogue."""
    for (table, split), rows in stored.rows.items():
        form, own = f"{'preferences' if table in PREFERRED else table}_row", split_of(stored.dialogue_id)
        for number, row in rows:
            place = f"{table_path(folder, table, split)}: row {number}"
            for where, what, fix in violations(row, form):
                yield Finding(f"{place}: {where}", what, fix, config=table, row=number, column=where)
            if split not in (None, own):
                what = f'"{stored.dialogue_id}" belongs to the split {own} by its id'
                yield Finding(place, what, "never move a row to another split", config=table, row=number)


def _unequal(folder: Path, stored: DialogueRows, outcome: Outcome, manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """Where the rows of a dialogue are not those that its outcome gives."""
    derived = dict[File, list[TableRow]]()
    scenario = manifest["scenarios"].get(stored.dialogue_id[:3], {}).get("name", "")
    for table, row in derive_rows(outcome, scenario, load_taxonomy()):
        derived.setdefault((table, None if table in UNSPLIT else split_of(stored.dialogue_id)), []).append(row)
    for file in dict.fromkeys([*stored.rows, *derived]):
        path = table_path(folder, *file)
        yield from _differing(path, file[0], stored.rows.get(file, ()), derived.get(file, ()), stored.dialogue_id)


def _differing(path: Path, table: str, found: Sequence[Numbered], derived: Sequence[TableRow], about: str) -> Iterator[Finding]:
    """Rows of one file that are missing, that nothing gives, or that say something else."""
    names = IDENTITY.get(table, ("pair_id",))
    both = [[tuple(row[name] for name in names) for row in rows] for rows in ([row for _, row in found], derived)]
    at = next((at for at, (one, other) in enumerate(zip_longest(*both)) if one != other), None)
    if at is not None:
        one, other = (_named(some[at]) if at < len(some) else "nothing more" for some in both)
        number = found[at][0] if at < len(found) else None
        where = str(path) if number is None else f"{path}: row {number}"
        yield Finding(where, f'"{about}" has {one} where the rest of the release gives {other}', config=table, row=number)
        return
    for (number, row), given in zip(found, derived, strict=True):
        for column, value in row.items():
            if not _same(value, wanted := given.get(column)):
                place, its, other = _inside(column, value, wanted)
                about = _named(tuple(row[name] for name in names))
                what = f'"{about}": {place} is {_shown(its)}, but the rest of the release gives {_shown(other)}'
                where = f"{path}: row {number}"
                yield Finding(where, what, config=table, row=number, column=column, found=its, derived=other)


def _same(found: Any, derived: Any) -> bool:
    return bool(found == derived or (isinstance(found, float) and isinstance(derived, float) and abs(found - derived) <= EXACT))


def _inside(place: str, found: Any, derived: Any) -> tuple[str, Any, Any]:
    """The first part of a value that differs, with its place."""
    if isinstance(found, list) and isinstance(derived, list) and len(found) == len(derived):
        parts: list[tuple[object, Any, Any]] = [*zip(range(len(found)), found, derived, strict=True)]
    elif isinstance(found, dict) and isinstance(derived, dict) and found.keys() == derived.keys():
        parts = [(name, value, derived[name]) for name, value in found.items()]
    else:
        return place, found, derived
    return next((_inside(f"{place}[{part}]", one, other) for part, one, other in parts if not _same(one, other)), (place, found, derived))


def _named(identity: tuple[Any, ...]) -> str:
    return ", ".join(str(one) for one in identity if one is not None)


def _shown(value: Any) -> str:
    text = str(value)
    return repr(text if len(text) <= 100 else f"{text[:97]}...")


# Reasons of answers whose text reached no check of a variant.
UNREAD = re.compile(
    r"(finish_\w+|not_json|schema|too_long|too_deep|duplicate_key|surrogate|control_sign|bidirectional_sign|hidden_sign|run_of_signs)"
)
# Between the parts of an answer: no text has it.
SEPARATOR = "\0"


def texts_of(outcome: Outcome) -> dict[Any, str]:
    """What was answered for a dialogue, by pair and variant; what is of crossed items by their requests."""
    found: dict[Any, str] = {}
    if dialogue := outcome.dialogue:
        turns = (f"{one.role}: {one.text}: {one.strategy or ''}" for one in dialogue.turns)
        found[None, "dialogue"] = SEPARATOR.join([dialogue.description, *turns])
    for pair in outcome.pairs:
        name = pair_id(outcome.dialogue_id, pair.turn)
        found |= {(name, variant): made.text for variant in VARIANTS if (made := getattr(pair, variant))}
    for item in outcome.crossed:
        writer, *judges = item.request_keys or (None,)
        found[writer] = SEPARATOR.join([item.twin, item.reply_2, item.reason])
        # Each context with its own reply first, then with it last.
        found |= dict(zip(judges, "ABAB", strict=False))
    return found


class Requests:
    """The requests of a release in a few bytes each, how many each model had, and for what its texts were refused.

    Dialogues of one scenario that begin alike may share a request, and then its answer.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        self._provenance, self._candidates = folder / "provenance.parquet", folder / "candidates.parquet"
        self._where, self._summary = f"{folder / MANIFEST}: summary", manifest["summary"]
        self._configuration = manifest["configuration"]
        self._keys, self._answers = array("Q"), array("Q")
        self._asked, self._refused = Counter[str](), Counter[str]()
        unread = (name.partition(": ") for name in self._summary["samples_refused"])
        self._unread = {kind for kind, _, reason in unread if UNREAD.fullmatch(reason)}

    def of(self, outcome: Outcome, provenance: Sequence[TableRow]) -> Iterator[Finding]:
        """Gathers the requests and the refused texts of a dialogue, whose rows fit together; and candidates that are fewer than were asked
        for."""
        texts, models = texts_of(outcome), dict[str, str]()
        for row in provenance:
            if key := row["request_key"]:
                models[key] = row["model"]
                self._keys.append(int(key[-16:], 16))
                self._answers.append(_short(f"{row['model']}{SEPARATOR}{texts.get((row['pair_id'], row['what']), texts.get(key))}"))
        self._asked.update(models.values())
        self._refused.update(f"{one.kind}: {reason}" for one in outcome.candidates for reason in one.reasons)
        there = Counter((pair_id(outcome.dialogue_id, one.turn), one.kind) for one in outcome.candidates)
        count = candidates_of(self._configuration)
        for row in provenance if count > 1 else ():
            kind = KIND_OF.get(row["what"])
            if kind and row["request_key"] and kind.name not in self._unread and there[row["pair_id"], kind.name] < count - 1:
                what = f"has {there[row['pair_id'], kind.name]} texts beside it, but {count} candidates were asked for"
                yield Finding(f"{self._candidates}: {row['pair_id']}, {row['what']}", what)

    def in_all(self) -> Iterator[Finding]:
        """Requests that stand behind texts, or models, that differ; of models and reasons that are told less often than they are there."""
        if torn := self._torn():
            yield Finding(str(self._provenance), f"names {torn} requests for different texts: one answer has one text")
        for model, count in sorted(self._asked.items()):
            if (told := self._summary["usage"].get(model, {}).get("requests", 0)) < count:
                yield Finding(f"{self._where}: usage: {model}", f"says {told} requests, but the provenance has {count}")
        # What rules made and a model then was asked for is no sample.
        uncounted = NEAR_APATHETIC.name if self._configuration["near_apathetic"] == "rules-then-model" else None
        for name, count in sorted(self._refused.items()):
            kind, _, reason = name.partition(": ")
            if count > (told := self._summary["samples_refused"].get(name, 0)) and reason != NOT_CHOSEN and kind != uncounted:
                yield Finding(f"{self._where}: samples_refused: {name[:80]}", f"says {told}, but {count} candidates are refused for it")

    def _torn(self) -> int:
        keys, answers = (np.array(one, dtype=np.uint64) for one in (self._keys, self._answers))
        order = np.argsort(keys, kind="stable")
        keys, answers = keys[order], answers[order]
        both: NDArray[np.uint64] = keys[1:][(keys[1:] == keys[:-1]) & (answers[1:] != answers[:-1])]
        return len(np.unique(both))


def _short(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "big")
