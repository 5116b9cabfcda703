"""Releasing: from the outcomes of a build to a folder that is a Hub dataset repository as it stands."""

from __future__ import annotations

import contextlib
import json
import platform
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from builder.cards import write_card, write_changelog, write_croissant
from builder.checks.duplicates import hashes_of, near_duplicates
from builder.errors import input_error
from builder.files import data_folder, whole_folder, write_whole
from builder.pipeline import BUILD, OUTCOMES
from builder.records import Outcome
from builder.reporting import MANIFEST, Progress, Report, own_metrics, published_configuration, write_report
from builder.reviews import content_hash, review_facts
from builder.rows import CANDIDATES, COLUMNS, PROVENANCE, Row, candidate_rows, provenance_rows, rows
from builder.schemas import check, read_json
from builder.signature import digest, digest_file
from builder.splitting import SPLITS, split_of
from builder.taxonomy import load_taxonomy

VERSION = re.compile(r"\d+\.\d+\.\d+")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
# Rows are written in groups of this many, so that memory does not grow with the release.
GROUP = 1000
SOFTWARE = ("datasets", "pyarrow", "sacrebleu", "rapidfuzz", "spacy", "alt-profanity-check", "bert-score", "torch", "transformers", "numpy")


@dataclass(frozen=True)
class Selection:
    """Which dialogues of a build are released: accepted, no duplicates, the first of each scenario up to its quota."""

    dialogue_ids: frozenset[str]
    duplicates: dict[str, str]
    spares: int


@dataclass(frozen=True)
class Released:
    """A release that was written: its manifest and its report."""

    manifest: dict[str, Any]
    report: Report


def release(
    build_dir: Path, out: Path, version: str, *, date: str | None = None, partial: bool = False, reviews: Path | None = None,
    progress: Progress = lambda texts: None,
) -> Released:  # fmt: skip
    """Writes a release folder, whole or not at all, without the dialogues that the record ``reviews`` removes.

    ``progress`` is told of texts as they are scored.

    Raises:
        InputError: if the version or the date is none, or the build is not finished, was changed by hand, has missing items (unless
            ``partial``) or nothing to release, or the record is not valid.
    """
    if not VERSION.fullmatch(version):
        raise input_error("--version", f'"{version}" is not a version', "write it as X.Y.Z, such as 1.0.0")
    if date is not None and not DATE.fullmatch(date):
        raise input_error("--date", f'"{date}" is not a date', "write it as YYYY-MM-DD")
    header = read_build(build_dir)
    summary = header["summary"]
    if summary["missing"] and not partial:
        fix = "run the same build again to ask for them, or give --partial to release without them"
        raise input_error(build_dir, f"{summary['missing']} of {summary['planned']} items are missing", fix)
    found = own_metrics(header["configuration"]["report"])
    reviewed = _reviewed(build_dir, header, reviews) if reviews else None
    selection = _select(build_dir, header, {one["dialogue_id"] for one in reviewed["removed"]} if reviewed else set())
    if not selection.dialogue_ids:
        raise input_error(build_dir, "holds no accepted dialogue", "look at rejected_by_reason in build.json")
    with whole_folder(out, made_by=MANIFEST) as folder:
        counts = _write_data(build_dir, folder, header, selection)
        facts = {**_facts(header, version, date, selection, counts), "partial": bool(summary["missing"]), "reviews": reviewed}
        report = write_report(folder, folder / "report", facts, found, progress=progress)
        write_card(folder, facts, report)
        write_changelog(folder, facts)
        write_croissant(folder, facts)
        shutil.copyfile(data_folder("release") / "DATA_LICENSE", folder / "LICENSE")
        manifest = sealed({**facts, "files": _hashes(folder)})
        write_whole(folder / MANIFEST, manifest_text(manifest))
    return Released(manifest, report)


def sealed(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest with the hash of everything else in it, so that a change of the manifest itself is seen."""
    rest = {name: value for name, value in manifest.items() if name != "seal"}
    return {**rest, "seal": digest(rest)}


def manifest_text(manifest: dict[str, Any]) -> str:
    """The one text form of a manifest."""
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


def read_build(build_dir: Path) -> dict[str, Any]:
    """The header of a finished build, after its outcomes were found unchanged.

    Raises:
        InputError: if there is none, or the outcomes are not the ones it was written for.
    """
    path = build_dir / BUILD
    if not path.is_file():
        raise input_error(build_dir, "holds no finished build", f"run empathy-eval build CONFIG --out {build_dir} to its end")
    header = read_json(path, "build", "run the same build again: it replays from the ledger")
    if digest_file(build_dir / OUTCOMES) != header["outcomes"]:
        raise input_error(build_dir / OUTCOMES, "was changed after the build", "run the same build again: it replays from the ledger")
    return header


def accepted(build_dir: Path, *, checked: bool = False) -> Iterator[Outcome]:
    """The accepted outcomes of a build, in plan order, without the withdrawn ones; ``checked`` if they are known to be valid."""
    configuration = json.loads((build_dir / BUILD).read_text(encoding="utf-8"))["configuration"]
    withdrawn = {one["dialogue_id"] for one in configuration.get("withdrawn", [])}
    with (build_dir / OUTCOMES).open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            value = json.loads(line)
            if value["status"] == "accepted" and value["dialogue_id"] not in withdrawn:
                if not checked:
                    check(value, "outcome", f"{build_dir / OUTCOMES}: line {number}")
                yield Outcome.from_json(value)


def _reviewed(build_dir: Path, header: dict[str, Any], reviews: Path) -> dict[str, Any]:
    """What the record of reviews says of the dialogues of this build."""
    contents = {
        one.dialogue_id: content_hash({"role": turn.role, "text": turn.text} for turn in one.dialogue.turns)
        for one in accepted(build_dir)
        if one.dialogue
    }
    return review_facts(reviews, contents, header["configuration"]["report"]["bootstrap"], header["configuration"]["seed"])


def _select(build_dir: Path, header: dict[str, Any], removed: set[str]) -> Selection:
    hashes = hashes_of(
        (one.dialogue_id, [turn.text for turn in one.dialogue.turns])
        for one in accepted(build_dir)
        if one.dialogue and one.dialogue_id not in removed
    )
    duplicates = near_duplicates(hashes)
    room = {int(number): scenario["quota"] for number, scenario in header["scenarios"].items()}
    chosen: list[str] = []
    left = [dialogue_id for dialogue_id in hashes if dialogue_id not in duplicates]
    for dialogue_id in left:
        scenario = int(dialogue_id[:3])
        if room[scenario] > 0:
            room[scenario] -= 1
            chosen.append(dialogue_id)
    return Selection(frozenset(chosen), duplicates, len(left) - len(chosen))


def _write_data(build_dir: Path, folder: Path, header: dict[str, Any], selection: Selection) -> dict[str, dict[str, int]]:
    """All parquet files; returns the number of rows by config and split, empty splits too."""
    taxonomy = load_taxonomy()
    counts: dict[str, Counter[str]] = {config: Counter(dict.fromkeys(SPLITS, 0)) for config in COLUMNS}
    with contextlib.ExitStack() as stack:
        data = {
            (config, split): stack.enter_context(Writer(folder / "data" / config / f"{split}.parquet", schema))
            for config, schema in COLUMNS.items()
            for split in SPLITS
        }
        provenance = stack.enter_context(Writer(folder / "provenance.parquet", PROVENANCE))
        candidates = stack.enter_context(Writer(folder / "candidates.parquet", CANDIDATES))
        for outcome in accepted(build_dir, checked=True):
            if outcome.dialogue_id not in selection.dialogue_ids:
                continue
            split, scenario = split_of(outcome.dialogue_id), header["scenarios"][outcome.dialogue_id[:3]]["name"]
            for config, row in rows(outcome, scenario, taxonomy):
                data[config, split].add(row)
                counts[config][split] += 1
            for row in provenance_rows(outcome):
                provenance.add(row)
            for row in candidate_rows(outcome):
                candidates.add(row)
    return {config: {split: count[split] for split in SPLITS} for config, count in counts.items()}


class Writer:
    """A parquet file of one schema, written in groups of rows; with no row it is a valid empty file."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._schema = schema
        self._rows: list[Row] = []
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")

    def add(self, row: Row) -> None:
        """Adds a row."""
        self._rows.append(row)
        if len(self._rows) >= GROUP:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
        self._rows = []

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        if self._rows:
            self._flush()
        self._writer.close()


def _facts(
    header: dict[str, Any], version: str, date: str | None, selection: Selection, counts: dict[str, dict[str, int]]
) -> dict[str, Any]:
    """The manifest without the hashes of files."""
    return {
        "name": f"empathy-eval-{header['configuration']['name']}",
        "version": version,
        "date": date,
        "counts": counts,
        "duplicates": selection.duplicates,
        "withdrawn": header["configuration"].get("withdrawn", []),
        "spares_left_out": selection.spares,
        **{name: value for name, value in header.items() if name != "outcomes"},
        "configuration": published_configuration(header["configuration"]),
        "software": {"python": platform.python_version(), **_versions()},
    }


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in SOFTWARE:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _hashes(folder: Path) -> dict[str, str]:
    """SHA-256 by relative path of every file of the release but the manifest itself."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): digest_file(path) for path in files}
