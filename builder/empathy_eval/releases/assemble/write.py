"""Release of a build: from its outcomes to a folder that can be uploaded to the Hub as a dataset repository."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import whole_folder, write_whole
from empathy_eval.base.stages import advance, stage
from empathy_eval.base.tabular import TableWriter
from empathy_eval.design.canary import canary_entry, release_identity
from empathy_eval.design.configuration import candidates_of
from empathy_eval.design.dataset import CANDIDATES, COLUMNS, MANIFEST, provenance_columns, split_of
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.design.word_list import WORD_LIST, read_word_list
from empathy_eval.generation.outcomes import FIX_REBUILD, accepted_outcomes, read_build, read_definitions, write_definitions
from empathy_eval.metrics.scoring import PLAIN, Scoring
from empathy_eval.raters.judges.judge_section import human_section
from empathy_eval.raters.review.human_evaluation import review_facts
from empathy_eval.raters.review.record import content_hash
from empathy_eval.releases.assemble.annotations import add_annotations, read_annotation_folders
from empathy_eval.releases.assemble.manifest import (
    VERSION,
    file_hashes,
    manifest_facts,
    manifest_text,
    read_predecessors,
    refuse_other_release,
    seal_manifest,
)
from empathy_eval.releases.assemble.rows import ConfigWriter, derive_rows
from empathy_eval.releases.assemble.selection import Selection, select_dialogues, withdrawn_counts
from empathy_eval.releases.assemble.signing import SecretKey, read_signing_key, sign
from empathy_eval.reports.documents import release_documents
from empathy_eval.reports.explorer import PAGE, explore_page
from empathy_eval.reports.report import Report, configured_metrics, measure_release, pinned_metrics, published_configuration, write_report

DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Released:
    """A release that was written: its manifest and its report."""

    manifest: dict[str, Any]
    report: Report


def release(
    build_dir: Path, out: Path, version: str, *, date: str | None = None, partial: bool = False, reviews: Path | None = None,
    without: Collection[str] = (), annotations: Sequence[Path] = (), trusted: Collection[str] = (),
    scoring: Scoring = PLAIN, key: Path | None = None, previous: Path | None = None, replace: bool = False,
) -> Released:  # fmt: skip
    """Writes a release folder, completely or not at all, without the dialogues that the record ``reviews`` removes.

    The annotations of judges in the folders ``annotations`` become configs; ``trusted`` names judges whose code may be run. With ``key``,
    a secret key of minisign outside the build and ``out``, the manifest is signed. The report leaves out the metrics ``without``, and the
    embedding of its audit if it is among them. Manifest and changelog list the ``previous`` release and its predecessors.

    Raises:
        InputError: if an argument is not valid, the build is not finished (unless ``partial``), was changed, withdraws what it did not
            plan or has nothing to release, or ``out`` holds another release (unless ``replace``).
    """
    _check_names(version, date)
    signing = read_signing_key(key, build_dir, out) if key else None
    header, incomplete = _read_finished_build(build_dir, partial)
    configuration = header["configuration"]
    name = release_identity(configuration)["name"]
    before = read_predecessors(previous, name, version) if previous else []
    refuse_other_release(out, name, version, replace=replace)
    withdrawn = withdrawn_counts(build_dir, configuration)
    metrics = configured_metrics(configuration, without)
    record = _read_reviews(build_dir, configuration, reviews) if reviews else None
    selection = _select(build_dir, header, record)
    judges = read_annotation_folders(annotations, trusted) if annotations else []
    header = {**header, "configuration": published_configuration(configuration, without)}
    with whole_folder(out, made_by=MANIFEST) as folder:
        refuse_other_release(out, name, version, replace=replace)  # again, now that no other process writes there
        counts = _write_data(build_dir, folder, header, selection)
        facts = {**manifest_facts(header, version, date, selection, counts), "partial": incomplete, "reviews": record}
        optional = {"metrics": pinned_metrics(metrics), "without": sorted(set(without)), "withdrawn_counts": withdrawn, "previous": before}
        facts |= {key: value for key, value in optional.items() if value}
        facts |= add_annotations(folder, judges, facts) if judges else {}
        facts |= human_section(folder, facts, reviews) if judges and reviews else {}
        stage("measuring")
        report = measure_release(folder, facts, metrics, scoring)
        del metrics  # frees weights before the figures are drawn
        return Released(_write_documents(folder, facts, report, signing), report)


def _check_names(version: str, date: str | None) -> None:
    if not VERSION.fullmatch(version):
        raise input_error("--version", f'"{version}" is not a version', "write it as X.Y.Z, such as 1.0.0")
    if date is not None and not DATE.fullmatch(date):
        raise input_error("--date", f'"{date}" is not a date', "write it as YYYY-MM-DD")


def _read_finished_build(build_dir: Path, partial: bool) -> tuple[dict[str, Any], bool]:
    """Returns the header of a build, and whether items of it are missing."""
    stage("reading the build")
    header = read_build(build_dir)
    summary = header["summary"]
    if summary["missing"] and not partial:
        fix = "run the same build again to ask for them, or give --partial to release without them"
        raise input_error(build_dir, f"{summary['missing']} of {summary['planned']} items are missing", fix)
    return header, bool(summary["missing"])


def _read_reviews(build_dir: Path, configuration: dict[str, Any], reviews: Path) -> dict[str, Any]:
    """Returns what a record of reviews says of the dialogues of this build."""
    contents = {
        outcome.dialogue_id: content_hash({"role": turn.role, "text": turn.text} for turn in outcome.dialogue.turns)
        for outcome in accepted_outcomes(build_dir)
        if outcome.dialogue
    }
    return review_facts(reviews, contents, configuration["report"]["bootstrap"], configuration["seed"])


def _select(build_dir: Path, header: dict[str, Any], record: dict[str, Any] | None) -> Selection:
    """Selects at least one dialogue, none that a review removes."""
    removed = {removal["dialogue_id"] for removal in record["removed"]} if record else set[str]()
    selection = select_dialogues(build_dir, header, removed)
    if not selection.dialogue_ids:
        raise input_error(build_dir, "holds no accepted dialogue", "see rejected_by_reason in build.json")
    return selection


def _write_data(build_dir: Path, folder: Path, header: dict[str, Any], selection: Selection) -> dict[str, dict[str, int]]:
    """Writes all parquet files, the word list and the definitions; returns the number of rows by config and split."""
    taxonomy, canary = load_taxonomy(), canary_entry(release_identity(header["configuration"]))
    _write_word_list(build_dir, folder, header["configuration"])
    write_definitions(folder, read_definitions(build_dir, header))
    stage("writing rows", len(selection.dialogue_ids), "dialogues")
    unsplit = {"provenance": provenance_columns(candidates_of(header["configuration"])), "candidates": CANDIDATES}
    with contextlib.ExitStack() as stack:
        writers = {name: stack.enter_context(TableWriter(folder / f"{name}.parquet", unsplit[name], canary)) for name in unsplit}
        configs = stack.enter_context(ConfigWriter(folder, canary, COLUMNS))
        for outcome in accepted_outcomes(build_dir, checked=True):
            if outcome.dialogue_id not in selection.dialogue_ids:
                continue
            split, scenario = split_of(outcome.dialogue_id), header["scenarios"][outcome.dialogue_id[:3]]["name"]
            for table, row in derive_rows(outcome, scenario, taxonomy):
                if table in writers:
                    writers[table].add(row)
                else:
                    configs.add(table, split, row)
            advance()
    return configs.counts


def _write_word_list(build_dir: Path, folder: Path, configuration: dict[str, Any]) -> None:
    """Writes the word list that chose candidates, if there is one."""
    if candidates_of(configuration) > 1:
        words = read_word_list(build_dir / WORD_LIST)
        if words.digest != configuration["word_list"]:
            raise input_error(build_dir / WORD_LIST, "was changed after the build", FIX_REBUILD)
        write_whole(folder / WORD_LIST, words.text)


def _write_documents(folder: Path, facts: dict[str, Any], report: Report, key: SecretKey | None) -> dict[str, Any]:
    """Writes report, explorer, documents, manifest and, with a key, signature; returns the manifest."""
    stage("drawing the report")
    write_report(report, folder / "report", facts)
    stage("writing the explorer and the card")
    write_whole(folder / PAGE, explore_page(folder, facts))
    for name, text in release_documents(folder, facts, report).items():
        write_whole(folder / name, text)
    stage("hashing files")
    manifest = seal_manifest({**facts, "files": file_hashes(folder)})
    write_whole(folder / MANIFEST, manifest_text(manifest))
    if key:
        sign(folder, manifest, key)
    return manifest
