"""Verifying: a release derived again from itself; every fault with its place, all at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from builder.checks.duplicates import hashes_of, near_duplicates
from builder.corpus import table_batches
from builder.errors import InputError, Problem, input_error
from builder.releasing import manifest_text, sealed
from builder.reporting import MANIFEST, TABLES, Progress, measure_release, read_tables
from builder.rows import COLUMNS, preference_prompt
from builder.schemas import check, violations
from builder.signature import digest_file
from builder.splitting import SPLITS, split_of
from builder.tables import disagreements, unseen
from builder.text import edit_ratio, overlap

RESTORE = "restore the file from where the release was published, or release the build again"
# What every release holds beside its data.
ALWAYS = {"README.md", "LICENSE", "CHANGELOG.md", "croissant.json", "provenance.parquet", f"report/{TABLES}", "report/index.html"}
CARD_ROW = re.compile(r"^\| `(\w+)` \| .* \| (\d+) \| (\d+) \| (\d+) \|$", re.MULTILINE)
Row = dict[str, Any]


def verify(release_dir: Path, *, fast: bool = False, progress: Progress = lambda texts: None) -> list[Problem]:
    """All faults of a release; an empty list if it is what it claims. ``fast`` leaves the report's numbers out.

    ``progress`` is told of texts as they are scored.

    Raises:
        InputError: if the folder holds no manifest at all.
    """
    path = release_dir / MANIFEST
    if not path.is_file():
        raise input_error(release_dir, f"is no release (no {MANIFEST} in it)", "name the folder of a release")
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        check(manifest, "manifest", path)
        whole = sealed(manifest) == manifest and manifest_text(manifest) == path.read_text(encoding="utf-8")
    except (ValueError, InputError) as error:
        return list(error.problems) if isinstance(error, InputError) else [Problem(str(path), f"is not JSON: {error}", RESTORE)]
    if not whole:
        return [Problem(str(path), "was changed after the release (its seal does not fit)", RESTORE)]
    found = [*_files(release_dir, manifest), *_tables(release_dir, manifest)]
    if not found:
        found = [*_rows(release_dir, manifest), *_duplicates(release_dir), *_card(release_dir, manifest)]
    if not found and not fast:
        found = [*_report(release_dir, manifest, progress)]
    return found


def _files(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Every file is the one the manifest names, and none is there that it does not name."""
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {MANIFEST}
    for name in sorted(there - set(manifest["files"])):
        # A clone of a Hub repository has .gitattributes and a .git of its own.
        if not name.startswith("."):
            yield Problem(str(folder / name), "is not in the manifest", "take it out of the release")
    for name in sorted(ALWAYS - manifest["files"].keys()):
        yield Problem(str(folder / name), "is not named by the manifest", RESTORE)
    for name, value in sorted(manifest["files"].items()):
        if name not in there:
            yield Problem(str(folder / name), "is missing", RESTORE)
        elif digest_file(folder / name) != value:
            yield Problem(str(folder / name), "is not the file that was released (its SHA-256 differs from the manifest)", RESTORE)


def _tables(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Every parquet file has its columns and as many rows as the manifest says."""
    for config, columns in COLUMNS.items():
        for split in SPLITS:
            path = folder / "data" / config / f"{split}.parquet"
            try:
                table = pq.ParquetFile(path)
            except (OSError, pa.ArrowInvalid) as error:
                yield Problem(str(path), f"is not parquet: {error}", RESTORE)
                continue
            if not table.schema_arrow.equals(columns):
                names, wanted = set(table.schema_arrow.names), set(columns.names)
                differ = ", ".join(f'"{name}"' for name in sorted(names ^ wanted)) or "their types or order"
                yield Problem(str(path), f"has other columns than the contract: {differ}", "columns are never renamed")
            if table.metadata.num_rows != manifest["counts"][config][split]:
                what = f"has {table.metadata.num_rows} rows, the manifest says {manifest['counts'][config][split]}"
                yield Problem(str(path), what, RESTORE)


def _rows(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Rows are valid, ids unique, splits as the ids say, and what the configs say of one turn is the same in all of them."""
    removed = (manifest.get("reviews") or {}).get("removed", [])
    withdrawn = {one["dialogue_id"] for one in [*manifest["withdrawn"], *removed]} | set(manifest["duplicates"])
    for config in ("dialogues", "pairs", "preferences", "controls"):
        seen: dict[str, str] = {}
        for split in SPLITS:
            dialogues, pairs = (Rows(folder / "data" / name / f"{split}.parquet") for name in ("dialogues", "pairs"))
            for place, row in _read(folder, config, split):
                if wrong := [Problem(f"{place}: {where}", what, fix) for where, what, fix in violations(row, f"{config}_row")]:
                    yield from wrong
                    continue
                name = row["dialogue_id"] if config == "dialogues" else row["pair_id"]
                dialogue_id = name.split("-t")[0]
                if before := seen.get(name):
                    yield Problem(place, f'"{name}" is also in {before}', "an id stands for one row")
                seen[name] = place
                if split_of(dialogue_id) != split:
                    yield Problem(place, f'"{name}" belongs to {split_of(dialogue_id)} by its id', "never move a row to another split")
                if dialogue_id in withdrawn:
                    yield Problem(place, f'"{dialogue_id}" is said to be left out', RESTORE)
                for what in _disagreements(config, row, dialogues, pairs):
                    yield Problem(place, f'"{name}": {what}', RESTORE)


def _read(folder: Path, config: str, split: str) -> Iterator[tuple[str, Row]]:
    """(place, row) of a file, in groups of rows."""
    path = folder / "data" / config / f"{split}.parquet"
    number = 0
    for batch in table_batches(path):
        for row in batch.to_pylist():
            yield f"{path}: row {number}", row
            number += 1


class Rows:
    """The rows of a file by their first column, an id: the places of all are kept, and the rows of the group that was asked for last."""

    def __init__(self, path: Path) -> None:
        self._file = pq.ParquetFile(path)
        self._name = self._file.schema_arrow.names[0]
        self._group_of: dict[str, int] = {}
        for group in range(self._file.num_row_groups):
            names = self._file.read_row_group(group, columns=[self._name]).column(0).to_pylist()
            self._group_of.update(dict.fromkeys(names, group))
        self._group, self._rows = -1, dict[str, Row]()

    def get(self, name: str) -> Row | None:
        """The row of that id. Ids that come in the order of the file read each group once."""
        group = self._group_of.get(name)
        if group is None:
            return None
        if group != self._group:
            self._group, self._rows = group, {row[self._name]: row for row in self._file.read_row_group(group).to_pylist()}
        return self._rows[name]


def _disagreements(config: str, row: Row, dialogues: Rows, pairs: Rows) -> Iterator[str]:
    """What a row says otherwise than the rows it comes from, or than its own texts."""
    if config == "dialogues":
        return
    if config == "preferences":
        pair = pairs.get(row["pair_id"])
        if pair is None:
            yield "has no pair"
        elif (row["prompt"], row["chosen"][0]["content"], row["rejected"][0]["content"]) != (
            preference_prompt(pair["context"]), pair["empathetic"], pair["apathetic"],
        ):  # fmt: skip
            yield "is not the preference of its pair"
        return
    if config == "controls" and {name: row[name] for name in COLUMNS["pairs"].names} != pairs.get(row["pair_id"]):
        yield "is not the pair of that id"
    yield from _against_dialogue(row, dialogues.get(row["dialogue_id"]))
    measures = {
        "apathetic_edit_ratio": edit_ratio(row["reference"], row["apathetic"]),
        "empathetic_overlap": overlap(row["reference"], row["empathetic"]),
    }
    for name, value in measures.items():
        if abs(row[name] - value) > 1e-9:
            yield f"{name} is {row[name]}, its texts give {value}"


def _against_dialogue(row: Row, dialogue: Row | None) -> Iterator[str]:
    if dialogue is None:
        yield "has no dialogue in this split"
        return
    if row["pair_id"] != f"{row['dialogue_id']}-t{row['turn']:02d}" or row["turn"] >= len(dialogue["turns"]):
        yield f"its id does not fit dialogue and turn {row['turn']}"
        return
    turn = dialogue["turns"][row["turn"]]
    if (row["reference"], row["strategy"], row["phase"]) != (turn["text"], turn["strategy"], turn["phase"]):
        yield "its reference, strategy or phase is not that of the dialogue's turn"
    if row["context"] != [{"role": one["role"], "text": one["text"]} for one in dialogue["turns"][: row["turn"]]]:
        yield "its context is not the dialogue's earlier turns"
    for name in ("scenario_id", "scenario", "description", "source", "model"):
        if row[name] != dialogue[name]:
            yield f"its {name} is not that of the dialogue"


def _duplicates(folder: Path) -> Iterator[Problem]:
    """No two dialogues of the release are near-duplicates."""
    rows = (
        (row["dialogue_id"], [turn["text"] for turn in row["turns"] or ()])
        for split in SPLITS
        for _, row in _read(folder, "dialogues", split)
    )
    # What has no value is told already.
    hashes = hashes_of((dialogue_id, texts) for dialogue_id, texts in rows if None not in (dialogue_id, *texts))
    for goes, stays in near_duplicates(hashes).items():
        yield Problem(f"{folder}: {goes}", f"is a near-duplicate of {stays}", "release the build again: duplicates are left out")


def _card(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """The counts of the card are those of the data."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    said = {config: dict(zip(SPLITS, map(int, counts), strict=True)) for config, *counts in CARD_ROW.findall(text)}
    for config, counts in manifest["counts"].items():
        if said.get(config) != counts:
            yield Problem(f"{folder / 'README.md'}: {config}", f"the card says {said.get(config)}, the data holds {counts}", RESTORE)


def _report(folder: Path, manifest: dict[str, Any], progress: Progress) -> Iterator[Problem]:
    """Every number of the report's tables equals its recomputation, and stands on its page."""
    path, page = folder / "report" / TABLES, folder / "report" / "index.html"
    told = read_tables(folder)
    anew = measure_release(folder, manifest, progress=progress).to_json()
    wrong = [Problem(f"{path}: {where}", what, RESTORE) for where, what in disagreements(told, anew)]
    yield from wrong
    if not wrong:
        for where, number in unseen(told, page.read_text(encoding="utf-8")):
            yield Problem(f"{page}: {where}", f"does not show {number}", RESTORE)
