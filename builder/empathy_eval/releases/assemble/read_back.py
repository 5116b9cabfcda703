"""Inverse of ``rows``: reads the dialogues of a release with their rows, and restores their outcomes."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import groupby
from operator import itemgetter
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
# Kind of request by the variant that it makes.
KIND_OF = {kind.variant: kind for kind in KINDS.values() if kind.variant}
# Columns of ``pairs`` and ``controls`` with the manner or device of a variant.
WAY_COLUMNS = {"apathetic": "apathetic_manner", "empathetic": "empathetic_device", "far_apathetic": "far_apathetic_manner"}
# Tables that have no splits, each in one file.
UNSPLIT = ("provenance", "candidates")
# Rows of each file in memory.
BATCH_ROWS = 25
# A table and its split; None for a table without splits.
File = tuple[str, str | None]
# A row with its number in its file.
Numbered = tuple[int, TableRow]


@dataclass(frozen=True)
class DialogueRows:
    """Rows of a dialogue in a release, by file, in their order there."""

    dialogue_id: str
    rows: Mapping[File, Sequence[Numbered]]

    def by_table(self) -> dict[str, list[TableRow]]:
        """Returns the rows by table; of a config only those in the split of the dialogue."""
        own_split = split_of(self.dialogue_id)
        return {table: [row for _, row in rows] for (table, split), rows in self.rows.items() if split in (None, own_split)}


def tables_of(manifest: Mapping[str, Any], *, derived: bool = False) -> list[str]:
    """Returns the tables that outcomes are restored from; with ``derived`` all tables whose rows come from outcomes."""
    names = [name for name in configs_of(manifest["counts"]) if name not in JUDGED and (derived or name not in DERIVED)]
    return [*names, *UNSPLIT]


def table_path(folder: Path, table: str, split: str | None) -> Path:
    """Returns the file of a table."""
    return folder / f"{table}.parquet" if split is None else file_of(folder, table, split)


def read_back(folder: Path, tables: Sequence[str]) -> Iterator[DialogueRows]:
    """Yields the dialogues of a release in the order of the plan, each with all of its rows in these tables.

    Rows out of that order come on their own, under an id that was yielded before or at a wrong place. Only one dialogue, and the next rows
    of each file, are in memory.
    """
    files: list[File] = [(table, split) for table in tables for split in ((None,) if table in UNSPLIT else SPLITS)]
    merged = heapq.merge(*(_by_dialogue(folder, file) for file in files), key=itemgetter(0))
    for dialogue_id, groups in groupby(merged, key=itemgetter(1)):
        yield DialogueRows(dialogue_id, {file: rows for _, _, file, rows in groups})


def _by_dialogue(folder: Path, file: File) -> Iterator[tuple[tuple[Any, ...], str, File, list[Numbered]]]:
    """Yields successive rows of one dialogue in a file, with its sort key; without the requests of judges in the provenance."""
    judges = set(PROVENANCE_NAMES.values())
    rows = ((number, row) for number, row in numbered_rows(table_path(folder, *file)) if row.get("what") not in judges)
    for dialogue_id, group in groupby(rows, key=lambda numbered: _dialogue_of(numbered[1])):
        yield plan_order(dialogue_id), dialogue_id, file, list(group)


def numbered_rows(path: Path, columns: list[str] | None = None) -> Iterator[Numbered]:
    """Yields the rows of a file with their numbers, with all columns or the named ones."""
    return enumerate(row for batch in table_batches(path, columns, BATCH_ROWS) for row in batch.to_pylist())


def _dialogue_of(row: TableRow) -> str:
    return str(row.get("dialogue_id") or str(row.get("pair_id")).rpartition("-t")[0])


def plan_order(dialogue_id: str) -> tuple[Any, ...]:
    """Returns the sort key of a dialogue: scenario, then index; text that is no id comes first."""
    if not DIALOGUE.fullmatch(dialogue_id):
        return (-1,)
    number, _, index = original_id(dialogue_id).partition("-")
    return int(number), len(index), index, revision_of(dialogue_id)


def outcome_of(dialogue_id: str, rows: Mapping[str, Sequence[TableRow]], manifest: Mapping[str, Any]) -> Outcome | None:
    """Restores the outcome behind the rows of a dialogue, each of which is valid; None without a row of ``dialogues``.

    A value that several tables hold is read from one of them: texts from the config that they were made for, keys and models from the
    provenance. A value that follows from the id or the configuration is taken from there. Rows that no outcome has, such as a pair of a
    seeker's turn, are left out. So rows that are derived from the outcome differ from stored rows wherever these contradict each other.
    """
    dialogues = rows.get("dialogues")
    return _Reader(dialogue_id, rows, manifest["configuration"]).outcome(dialogues[0]) if dialogues else None


def read_outcomes(folder: Path, manifest: Mapping[str, Any]) -> Iterator[Outcome]:
    """Yields the outcomes behind the tables of a release, in the order of the plan."""
    dialogues = read_back(folder, tables_of(manifest))
    return filter(None, (outcome_of(dialogue.dialogue_id, dialogue.by_table(), manifest) for dialogue in dialogues))


@cache
def _abbreviations() -> dict[str, str]:
    return {strategy.name: strategy.abbreviation for strategy in load_taxonomy().strategies}


def _strategy(name: str | None) -> str | None:
    return None if name is None else _abbreviations().get(name, name)


@dataclass(frozen=True)
class _Reader:
    """Rows of a dialogue, and the configuration of its build."""

    dialogue_id: str
    rows: Mapping[str, Sequence[TableRow]]
    configuration: Mapping[str, Any]

    def _of(self, table: str) -> Sequence[TableRow]:
        return self.rows.get(table, ())

    def outcome(self, row: TableRow) -> Outcome:
        """Returns the outcome, given the row of the dialogue."""
        requests = {(request["pair_id"], request["what"]): request for request in self._of("provenance")}
        controls = {control["pair_id"]: control for control in self._of("controls")}
        request, scenario = requests.get((None, "dialogue"), {**row, "request_key": None}), int(self.dialogue_id[:3])
        turns = tuple(Turn(turn["role"], turn["text"], _strategy(turn["strategy"])) for turn in row["turns"])
        dialogue = Dialogue(
            self.dialogue_id, scenario, row["description"], turns, tuple(row["flags"]), row["source"],
            request["model"], request["request_key"] or "", *map(row.get, VOICES),
        )  # fmt: skip
        rows = ({**controls.get(pair["pair_id"], {}), **pair} for pair in self._of("pairs") if _is_helper(turns, pair["turn"]))
        pairs = {pair["turn"]: self._pair(turns, pair, requests) for pair in rows}
        crossed = {_number(item): self._crossed(dialogue, item) for item in self._of("crossed") if _is_helper(turns, item["turn"])}
        requested = {place for place, request in requests.items() if request["request_key"]}
        return Outcome(
            self.dialogue_id, scenario, "accepted", (), dialogue, tuple(pairs[turn] for turn in sorted(pairs)), (),
            tuple(self._candidates(turns, requested)), crossed=tuple(crossed[number] for number in sorted(crossed)),
        )  # fmt: skip

    def _pair(self, turns: Sequence[Turn], row: TableRow, requests: Mapping[tuple[str | None, str], TableRow]) -> Pair:
        """Returns a pair; method, model and key of its variants are those of the provenance."""
        own, far = turns[row["turn"]].strategy or "", _strategy(row["empathetic_strategy"]) or ""
        scores = {**row["toxicity"], **{name: row.get(f"{name}_toxicity") for name in CONTROLS}}
        variants: dict[str, Any] = {}
        for name, kind in KIND_OF.items():
            if name and (text := row.get(name)):
                unknown: TableRow = {"method": "unknown", "model": row[f"{kind.role}_model"], "request_key": None}
                request, closeness = requests.get((row["pair_id"], name), unknown), self._measures(turns[row["turn"]].text, text)
                writer, way = (request["method"], request["model"], *closeness), row.get(WAY_COLUMNS.get(name, ""))
                strategy = own if kind.near else far
                variants[name] = Variant(text, strategy, *writer, self._score(scores[name]), request["request_key"], way)
        return Pair(row["turn"], tuple(row["flags"]), self._score(row["toxicity"]["reference"]), **variants)

    def _score(self, score: float | None) -> float | None:
        """Returns a toxicity as it is released."""
        return None if score is None or self.configuration["checks"]["toxicity"] == "none" else round(score, 4)

    def _measures(self, reference: str, text: str) -> tuple[float, float]:
        """Returns edit ratio and overlap of a variant and its reference; zeros for a text over the length limit."""
        if max(len(reference), len(text)) > LONGEST:
            return 0.0, 0.0
        language = language_of(self.configuration)
        return edit_ratio(reference, text, language), overlap(reference, text, language)

    def _crossed(self, dialogue: Dialogue, row: TableRow) -> CrossedOutcome:
        """Returns a crossed item; a model crosses a turn of the dialogue."""
        values = {field.name: row[field.name] for field in fields(CrossedOutcome) if field.name in row}
        values |= {"crossed_id": f"{dialogue.dialogue_id}-x{_number(row)}", "source": dialogue.source}
        values |= {"reply_1": dialogue.turns[row["turn"]].text} if dialogue.source == "model" else {}
        return CrossedOutcome(**{**values, "twin": row["context_2"][-1]["text"], "request_keys": tuple(row["request_keys"])})

    def _candidates(self, turns: Sequence[Turn], requested: set[tuple[str | None, str]]) -> Iterator[Candidate]:
        """Yields the texts that are not released, by turn and kind, numbered from 1.

        If one of several candidates of a ``requested`` variant was released, it has the number that is left out.
        """
        several = self.configuration.get("candidates", 1) > 1
        rows = [row for row in self._of("candidates") if _is_helper(turns, parts_of(row["pair_id"])[1], first=0)]
        rows.sort(key=lambda row: (parts_of(row["pair_id"])[1], KIND_OF[row["variant"]].name))
        for place, group in groupby(rows, key=itemgetter("pair_id", "variant")):
            texts = list(group)
            numbers = range(1, len(texts) + 2)
            released = min(set(numbers) - {row["attempt"] for row in texts}) if several and place in requested else numbers[-1]
            yield from map(candidate_of, texts, (number for number in numbers if number != released))


def candidate_of(row: TableRow, number: int) -> Candidate:
    """Returns a text that is not released, under a number."""
    return Candidate(KIND_OF[row["variant"]].name, parts_of(row["pair_id"])[1], row["text"], tuple(row["reasons"]), number)


def _is_helper(turns: Sequence[Turn], turn: int, first: int = 1) -> bool:
    """Whether a turn is a helper's, with at least ``first`` turns before it."""
    return first <= turn < len(turns) and turns[turn].role == "helper"


def _number(row: TableRow) -> int:
    return int(row["crossed_id"].rpartition("-x")[2])
