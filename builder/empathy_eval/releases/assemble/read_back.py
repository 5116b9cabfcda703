"""The inverse of ``rows``: the dialogues of a release with their rows, and the outcomes that these come from."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from empathy_eval.base.tabular import TableRow, table_batches
from empathy_eval.base.text import edit_ratio, overlap
from empathy_eval.completions.requests import LONGEST
from empathy_eval.design.configuration import language_of
from empathy_eval.design.contrasts import CONTROLS
from empathy_eval.design.dataset import DERIVED, JUDGED, SPLITS, configs_of, file_of, parts_of, split_of
from empathy_eval.design.errata import original_id, revision_of
from empathy_eval.design.kinds import KINDS
from empathy_eval.design.personas import VOICES
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.generation.outcomes import Candidate, CrossedOutcome, Dialogue, Outcome, Pair, Turn, Variant
from empathy_eval.releases.assemble.annotations import PROVENANCE_NAMES

DIALOGUE = re.compile(r"[0-9]{3}-(?:seed|[0-9]{5,9})(?:-r[1-9][0-9]{0,3})?")
SEEDS, RULES = "seed-bank", "rules"
# The kinds of request by the variant that they make.
KIND_OF = {one.variant: one for one in KINDS.values() if one.variant}
# The tables that lie beside the configs, in a file each.
UNSPLIT = ("provenance", "candidates")
# Rows that are held at once of each file.
BATCH_ROWS = 25
# A table and its split, None of one beside the configs.
File = tuple[str, str | None]
# A row with its number in its file.
Numbered = tuple[int, TableRow]


@dataclass(frozen=True)
class DialogueRows:
    """The rows that a release holds of a dialogue, by file, in their order there."""

    dialogue_id: str
    rows: Mapping[File, Sequence[Numbered]]

    def by_table(self) -> dict[str, list[TableRow]]:
        """The rows by table, of configs those that are in the split of the dialogue."""
        split = split_of(self.dialogue_id)
        return {table: [row for _, row in rows] for (table, of), rows in self.rows.items() if of in (None, split)}


def tables_of(manifest: Mapping[str, Any], *, derived: bool = False) -> list[str]:
    """The tables that outcomes are read from; with ``derived`` ones all whose rows come from outcomes."""
    names = [name for name in configs_of(manifest["counts"]) if name not in JUDGED and (derived or name not in DERIVED)]
    return [*names, *UNSPLIT]


def table_path(folder: Path, table: str, split: str | None) -> Path:
    """Where the rows of a table lie."""
    return folder / f"{table}.parquet" if split is None else file_of(folder, table, split)


def read_back(folder: Path, tables: Sequence[str]) -> Iterator[DialogueRows]:
    """The dialogues of a release in the order of the plan, each with all of its rows in these tables.

    What a file holds out of that order comes on its own, under an id that was there before or in a wrong place. A dialogue is in memory
    at a time, and the next few rows of each file.
    """
    files: list[File] = [(table, split) for table in tables for split in ((None,) if table in UNSPLIT else SPLITS)]
    merged = heapq.merge(*(_by_dialogue(folder, file) for file in files), key=lambda one: one[0])
    for dialogue_id, groups in groupby(merged, key=lambda one: one[1]):
        yield DialogueRows(dialogue_id, {file: rows for _, _, file, rows in groups})


def _by_dialogue(folder: Path, file: File) -> Iterator[tuple[tuple[Any, ...], str, File, list[Numbered]]]:
    """The rows of a file that follow each other and are of one dialogue, with its place in the plan; of the provenance no judge's."""
    judges = set(PROVENANCE_NAMES.values())
    rows = ((number, row) for number, row in numbered_rows(table_path(folder, *file)) if row.get("what") not in judges)
    for dialogue_id, some in groupby(rows, key=lambda one: _dialogue_of(one[1])):
        yield plan_order(dialogue_id), dialogue_id, file, list(some)


def numbered_rows(path: Path, columns: list[str] | None = None) -> Iterator[Numbered]:
    """The rows of a file with their numbers, with all columns or the named ones."""
    number = 0
    for batch in table_batches(path, columns, BATCH_ROWS):
        for row in batch.to_pylist():
            yield number, row
            number += 1


def _dialogue_of(row: TableRow) -> str:
    return str(row.get("dialogue_id") or str(row.get("pair_id")).rpartition("-t")[0])


def plan_order(dialogue_id: str) -> tuple[Any, ...]:
    """What dialogues are in order by: scenario, then index; what is no id comes first."""
    if not DIALOGUE.fullmatch(dialogue_id):
        return (-1,)
    number, _, index = original_id(dialogue_id).partition("-")
    return int(number), len(index), index, revision_of(dialogue_id)


def outcome_of(dialogue_id: str, rows: Mapping[str, Sequence[TableRow]], manifest: Mapping[str, Any]) -> Outcome | None:
    """The outcome behind the rows of a dialogue, which are valid each for itself; None without a row of ``dialogues``.

    What several tables say is taken from one of them: texts from the config that they were made for, keys and models from the provenance.
    What follows from the id or the configuration is taken from there. A row that no outcome has, such as a pair of a seeker's turn, is
    left out. So rows that are derived from the outcome differ from those that are there wherever these do not fit together.
    """
    dialogues = rows.get("dialogues")
    if not dialogues:
        return None
    return _Reader(dialogue_id, rows, manifest["configuration"]).outcome(dialogues[0])


def read_outcomes(folder: Path, manifest: Mapping[str, Any]) -> Iterator[Outcome]:
    """The outcomes that the tables of a release come from, in the order of the plan."""
    stored = read_back(folder, tables_of(manifest))
    return (found for one in stored if (found := outcome_of(one.dialogue_id, one.by_table(), manifest)))


@cache
def _abbreviations() -> dict[str, str]:
    return {strategy.name: strategy.abbreviation for strategy in load_taxonomy().strategies}


def _strategy(name: str | None) -> str | None:
    return None if name is None else _abbreviations().get(name, name)


@dataclass(frozen=True)
class _Reader:
    """The rows of a dialogue under the configuration that it was made with."""

    dialogue_id: str
    rows: Mapping[str, Sequence[TableRow]]
    configuration: Mapping[str, Any]

    def outcome(self, row: TableRow) -> Outcome:
        """The outcome, given the row of the dialogue itself."""
        made = {(one["pair_id"], one["what"]): one for one in self.rows.get("provenance", ())}
        controls = {one["pair_id"]: one for one in self.rows.get("controls", ())}
        asked, scenario = made.get((None, "dialogue"), {**row, "request_key": None}), int(self.dialogue_id[:3])
        turns = tuple(Turn(one["role"], one["text"], _strategy(one["strategy"])) for one in row["turns"])
        dialogue = Dialogue(
            self.dialogue_id, scenario, row["description"], turns, tuple(row["flags"]), row["source"],
            asked["model"], asked["request_key"] or "", *map(row.get, VOICES),
        )  # fmt: skip
        pairs = {
            one["turn"]: self._pair(turns, {**controls.get(one["pair_id"], {}), **one}, made)
            for one in self.rows.get("pairs", ())
            if _is_helper(turns, one["turn"])
        }
        crossed = {_number(one): self._crossed(dialogue, one) for one in self.rows.get("crossed", ()) if _is_helper(turns, one["turn"])}
        chosen = {place for place, one in made.items() if one["request_key"]}
        return Outcome(
            self.dialogue_id, scenario, "accepted", (), dialogue, tuple(pairs[turn] for turn in sorted(pairs)), (),
            tuple(self._candidates(turns, chosen)), crossed=tuple(crossed[number] for number in sorted(crossed)),
        )  # fmt: skip

    def _pair(self, turns: Sequence[Turn], row: TableRow, made: Mapping[tuple[str | None, str], TableRow]) -> Pair:
        """A pair, with what the provenance says of its variants."""
        own, far = turns[row["turn"]].strategy or "", _strategy(row["empathetic_strategy"]) or ""
        ways = {"apathetic": "apathetic_manner", "empathetic": "empathetic_device", "far_apathetic": "far_apathetic_manner"}
        scores = {**row["toxicity"], **{name: row.get(f"{name}_toxicity") for name in CONTROLS}}
        variants: dict[str, Any] = {}
        for name, kind in KIND_OF.items():
            if name and (text := row.get(name)):
                unknown: TableRow = {"method": "unknown", "model": row[f"{kind.role}_model"], "request_key": None}
                told, ratios = made.get((row["pair_id"], name), unknown), self._measures(turns[row["turn"]].text, text)
                how, way = (told["method"], told["model"], *ratios), row.get(ways.get(name, ""))
                strategy = own if kind.near else far
                variants[name] = Variant(text, strategy, *how, self._score(scores[name]), told["request_key"], way)
        return Pair(row["turn"], tuple(row["flags"]), self._score(row["toxicity"]["reference"]), **variants)

    def _score(self, score: float | None) -> float | None:
        """A toxicity as it is released."""
        return None if score is None or self.configuration["checks"]["toxicity"] == "none" else round(score, 4)

    def _measures(self, reference: str, text: str) -> tuple[float, float]:
        """Closeness of a variant to its reference; none of a text that is longer than any that is looked at."""
        if max(len(reference), len(text)) > LONGEST:
            return 0.0, 0.0
        language = language_of(self.configuration)
        return edit_ratio(reference, text, language), overlap(reference, text, language)

    def _crossed(self, dialogue: Dialogue, row: TableRow) -> CrossedOutcome:
        """A crossed item; what a model crosses is a turn of the dialogue."""
        told = {field.name: row[field.name] for field in fields(CrossedOutcome) if field.name in row}
        told |= {"crossed_id": f"{dialogue.dialogue_id}-x{_number(row)}", "source": dialogue.source}
        told |= {"reply_1": dialogue.turns[row["turn"]].text} if dialogue.source == "model" else {}
        return CrossedOutcome(**{**told, "twin": row["context_2"][-1]["text"], "request_keys": tuple(row["request_keys"])})

    def _candidates(self, turns: Sequence[Turn], chosen: set[tuple[str | None, str]]) -> Iterator[Candidate]:
        """The texts that are not released, by turn and kind, numbered from 1.

        Where one of several was ``chosen``, the number that none of them has is its own.
        """
        several = self.configuration.get("candidates", 1) > 1
        rows = [one for one in self.rows.get("candidates", ()) if _is_helper(turns, parts_of(one["pair_id"])[1], first=0)]
        rows.sort(key=lambda one: (parts_of(one["pair_id"])[1], KIND_OF[one["variant"]].name))
        for (name, variant), group in groupby(rows, key=lambda one: (one["pair_id"], one["variant"])):
            some = list(group)
            numbers = range(1, len(some) + 2)
            left = min(set(numbers) - {one["attempt"] for one in some}) if several and (name, variant) in chosen else numbers[-1]
            for number, one in zip((number for number in numbers if number != left), some, strict=True):
                yield candidate_of(one, number)


def candidate_of(row: TableRow, number: int) -> Candidate:
    """A text that is not released, under a number."""
    return Candidate(KIND_OF[row["variant"]].name, parts_of(row["pair_id"])[1], row["text"], tuple(row["reasons"]), number)


def _is_helper(turns: Sequence[Turn], turn: int, first: int = 1) -> bool:
    """Whether something can be of a turn: it is the helper's, and one at least comes before it."""
    return first <= turn < len(turns) and turns[turn].role == "helper"


def _number(row: TableRow) -> int:
    return int(row["crossed_id"].rpartition("-x")[2])
