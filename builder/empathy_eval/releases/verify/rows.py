"""The rows of a release: each valid, in its split, and saying what the rows it comes from say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem
from empathy_eval.base.schemas import violations
from empathy_eval.base.tabular import Rows, TableRow, table_batches
from empathy_eval.base.text import ENGLISH, edit_ratio, overlap
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import COLUMNS, PREFERRED, SPLITS, file_of, parts_of, split_of
from empathy_eval.design.errata import withdrawn_dialogues, withdrawn_pairs
from empathy_eval.releases.assemble.rows import preference_rows

# The configs whose rows those of a config come from.
ORIGINS = {
    "dialogues": (),
    "pairs": ("dialogues",),
    "controls": ("dialogues", "pairs"),
    "preferences": ("pairs",),
    "preferences_near": ("controls",),
    "preferences_far": ("controls",),
}
RESTORE = "restore the file from the published release, or release the build again"


def row_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Rows are valid, ids unique, splits as the ids say, and what the configs say of one turn is the same in all of them."""
    gone, language = left_out(manifest), language_of(manifest["configuration"])
    for config in [name for name in ("dialogues", "pairs", "controls", *PREFERRED) if name in manifest["counts"]]:
        form, seen = f"{'preferences' if config in PREFERRED else config}_row", dict[str, str]()
        for split in SPLITS:
            origins = [Rows(file_of(folder, name, split)) for name in ORIGINS[config]]
            for place, row in read_rows(folder, config, split):
                if wrong := [Problem(f"{place}: {where}", what, fix) for where, what, fix in violations(row, form)]:
                    yield from wrong
                    continue
                name = row["dialogue_id"] if config == "dialogues" else row["pair_id"]
                dialogue_id = name if config == "dialogues" else parts_of(name)[0]
                if before := seen.get(name):
                    yield Problem(place, f'"{name}" is also in {before}', "use each id for one row only")
                seen[name] = place
                if split_of(dialogue_id) != split:
                    yield Problem(
                        place, f'"{name}" belongs to the split {split_of(dialogue_id)} by its id', "never move a row to another split"
                    )
                named = (
                    (f"{row['scenario_id']:03d}", manifest["scenarios"].get(name[:3], {}).get("name")) if config == "dialogues" else None
                )
                if named and named != (name[:3], row["scenario"]):
                    what = f'"{name}": its scenario {row["scenario_id"]}, "{row["scenario"][:80]}", is not that of the manifest'
                    yield Problem(place, what, RESTORE)
                if left := {dialogue_id, name} & gone:
                    yield Problem(place, f'"{min(left)}" is in the data, but is listed as left out', RESTORE)
                for what in (*_unfit(row, manifest["configuration"]), *_disagreements(config, row, origins, language)):
                    yield Problem(place, f'"{name}": {what}', RESTORE)


def left_out(manifest: dict[str, Any]) -> set[str]:
    """The dialogues and pairs that a manifest says to be in no config: withdrawn, removed by review, or near-duplicates."""
    removed, corrected = (manifest.get("reviews") or {}).get("removed", []), manifest["configuration"].get("corrected", ())
    whole = withdrawn_dialogues([*manifest["withdrawn"], *removed])
    return whole | withdrawn_pairs(manifest["withdrawn"], corrected) | set(manifest["duplicates"])


def read_rows(folder: Path, config: str, split: str, columns: list[str] | None = None) -> Iterator[tuple[str, TableRow]]:
    """(place, row) of a file, in groups of rows, with all columns or the named ones."""
    path = file_of(folder, config, split)
    number = 0
    for batch in table_batches(path, columns):
        for row in batch.to_pylist():
            yield f"{path}: row {number}", row
            number += 1


def _unfit(row: TableRow, configuration: dict[str, Any]) -> Iterator[str]:
    """What a row says that no build of that configuration says."""
    if language_of(configuration) == ENGLISH and not row.get("description", "The user").startswith("The user"):
        yield 'its description does not begin with "The user"'
    scores = [*row.get("toxicity", {}).values(), *(value for name, value in row.items() if name.endswith("_toxicity"))]
    if scores and {score is None for score in scores} != {configuration["checks"]["toxicity"] == "none"}:
        yield "it must have a toxicity score if toxicity is scored, and only then"
    if any(score is not None and round(score, 4) != score for score in scores):
        yield "its toxicity has more than four decimal places"


def _disagreements(config: str, row: TableRow, origins: Sequence[Rows], language: str) -> Iterator[str]:
    """What a row says otherwise than the rows it comes from, or than its own texts."""
    if config == "dialogues":
        return
    if config in PREFERRED:
        pair = origins[0].get(row["pair_id"])
        if pair is None or any(violations(pair, f"{ORIGINS[config][0]}_row")):
            yield "has no pair, or one that is not valid"
        elif dict(preference_rows(pair)).get(config) != row:
            yield "is not the preference of its pair"
        return
    dialogues, *pairs = origins
    for one in pairs:
        if {name: row[name] for name in COLUMNS["pairs"].names if name in row} != one.get(row["pair_id"]):
            yield "differs from the pair with that id"
    yield from _against_dialogue(row, dialogues.get(row["dialogue_id"]))
    measures = {
        "apathetic_edit_ratio": edit_ratio(row["reference"], row["apathetic"], language),
        "empathetic_overlap": overlap(row["reference"], row["empathetic"], language),
    }
    for name, value in measures.items():
        if abs(row[name] - value) > 1e-9:
            yield f"{name} is {row[name]}, but its texts give {value}"


def _against_dialogue(row: TableRow, dialogue: TableRow | None) -> Iterator[str]:
    if dialogue is None or any(violations(dialogue, "dialogues_row")):
        yield "has no dialogue in this split" if dialogue is None else "its dialogue is not valid"
        return
    if row["pair_id"] != f"{row['dialogue_id']}-t{row['turn']:02d}" or row["turn"] >= len(dialogue["turns"]):
        yield f"its id does not match dialogue and turn {row['turn']}"
        return
    turn = dialogue["turns"][row["turn"]]
    if (row["reference"], row["strategy"], row["phase"]) != (turn["text"], turn["strategy"], turn["phase"]):
        yield "its reference, strategy or phase is not that of the dialogue's turn"
    if row["context"] != [{"role": one["role"], "text": one["text"]} for one in dialogue["turns"][: row["turn"]]]:
        yield "its context is not the dialogue's earlier turns"
    for name in ("scenario_id", "scenario", "description", "source", "model"):
        if row[name] != dialogue[name]:
            yield f"its {name} is not that of the dialogue"


@dataclass
class Cursor:
    """The rows of a config in a split, as far as they are read: each is of the dialogue that is asked for next."""

    rows: Iterator[tuple[str, TableRow]]
    of: str = "dialogue_id"
    ahead: tuple[str, TableRow] | None = None

    def take(self, dialogue_id: str) -> list[TableRow]:
        """The next rows, as long as they are of this dialogue."""
        found = []
        while (self.ahead or self._read()) and self.ahead and self._dialogue(self.ahead[1]) == dialogue_id:
            found.append(self.ahead[1])
            self.ahead = None
        return found

    def left(self) -> str | None:
        """Where the next row is that nobody asked for."""
        if self.ahead is None:
            self._read()
        return self.ahead and self.ahead[0]

    def _read(self) -> bool:
        self.ahead = next(self.rows, None)
        return self.ahead is not None

    def _dialogue(self, row: TableRow) -> str:
        return str(row[self.of]) if self.of == "dialogue_id" else parts_of(row[self.of])[0]
