"""Releasing: from the outcomes of a build to a folder that is a Hub dataset repository as it stands."""

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
from empathy_eval.design.dataset import CANDIDATES, COLUMNS, MANIFEST, SPLITS, configs_of, file_of, provenance_columns, split_of
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.design.word_list import WORD_LIST, read_word_list
from empathy_eval.generation.outcomes import accepted_outcomes, read_build, read_definitions, write_definitions
from empathy_eval.metrics.scoring import PLAIN, Scoring
from empathy_eval.raters.judges.annotations import AnnotationFolder
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
from empathy_eval.releases.assemble.rows import derive_rows
from empathy_eval.releases.assemble.selection import Selection, select_dialogues, withdrawn_counts
from empathy_eval.releases.assemble.signing import read_signing_key, sign
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
    """Writes a release folder, whole or not at all, without the dialogues that the record ``reviews`` removes.

    What judges said of its texts, in the folders ``annotations``, becomes configs of their own; ``trusted`` are those of them that are
    code which may be run. With a secret ``key`` of minisign, a file that lies neither in the build nor in ``out``, it is signed.
    The report leaves out the metrics ``without``, and the embedding of its audit if it is among them; manifest, page and card say so.
    Manifest and changelog name the ``previous`` release and those before it.

    Raises:
        InputError: if something that is given does not fit, the build is not finished (unless ``partial``), was changed by hand, withdraws
            what it did not plan or has nothing to release, or ``out`` holds another release (unless it is to ``replace`` that).
    """
    _check_names(version, date)
    signing = read_signing_key(key, build_dir, out) if key else None
    header, partly = _read_finished_build(build_dir, partial)
    name = release_identity(header["configuration"])["name"]
    before = read_predecessors(previous, name, version) if previous else []
    refuse_other_release(out, name, version, replace=replace)
    gone = withdrawn_counts(build_dir, header["configuration"])
    found = configured_metrics(header["configuration"], without)
    reviewed = _read_reviews(build_dir, header, reviews) if reviews else None
    selection = _select(build_dir, header, reviewed)
    judged = read_annotation_folders(annotations, trusted)
    header = {**header, "configuration": published_configuration(header["configuration"], without)}
    with whole_folder(out, made_by=MANIFEST) as folder:
        refuse_other_release(out, name, version, replace=replace)  # again, now that nobody else writes there
        counts = _write_data(build_dir, folder, header, selection)
        facts = {**manifest_facts(header, version, date, selection, counts), "partial": partly, "reviews": reviewed}
        facts |= _without_empty(
            {"metrics": pinned_metrics(found), "without": sorted(set(without)), "withdrawn_counts": gone, "previous": before}
        )
        facts |= _add_annotations(folder, judged, facts, reviews) if judged else {}
        stage("measuring")
        report = measure_release(folder, facts, found, scoring)
        del found  # what metrics hold, such as weights, would stand in memory beside the figures
        manifest = _write_documents(folder, facts, report)
        sign(folder, manifest, signing)
    return Released(manifest, report)


def _write_documents(folder: Path, facts: dict[str, Any], report: Report) -> dict[str, Any]:
    """What is read beside the data: report, explorer, papers and manifest; returns that."""
    stage("drawing the report")
    write_report(report, folder / "report", facts)
    stage("writing the explorer and the card")
    write_whole(folder / PAGE, explore_page(folder, facts))
    for name, text in release_documents(folder, facts, report).items():
        write_whole(folder / name, text)
    stage("hashing files")
    manifest = seal_manifest({**facts, "files": file_hashes(folder)})
    write_whole(folder / MANIFEST, manifest_text(manifest))
    return manifest


def _without_empty(facts: dict[str, Any]) -> dict[str, Any]:
    """What a manifest has only where there is something to say."""
    return {name: value for name, value in facts.items() if value}


def _read_finished_build(build_dir: Path, partial: bool) -> tuple[dict[str, Any], bool]:
    """What a build says of itself, and whether items of it are missing."""
    stage("reading the build")
    header = read_build(build_dir)
    summary = header["summary"]
    if summary["missing"] and not partial:
        fix = "run the same build again to ask for them, or give --partial to release without them"
        raise input_error(build_dir, f"{summary['missing']} of {summary['planned']} items are missing", fix)
    return header, bool(summary["missing"])


def _select(build_dir: Path, header: dict[str, Any], reviewed: dict[str, Any] | None) -> Selection:
    """What is released: at least one dialogue, none that a review removes."""
    selection = select_dialogues(build_dir, header, {one["dialogue_id"] for one in reviewed["removed"]} if reviewed else set())
    if not selection.dialogue_ids:
        raise input_error(build_dir, "holds no accepted dialogue", "see rejected_by_reason in build.json")
    return selection


def _write_word_list(build_dir: Path, folder: Path, configuration: dict[str, Any]) -> None:
    """The word list by which candidates were chosen, if any were."""
    if candidates_of(configuration) > 1:
        words = read_word_list(build_dir / WORD_LIST)
        if words.digest != configuration["word_list"]:
            raise input_error(build_dir / WORD_LIST, "was changed after the build", "run the same build again: it replays from the ledger")
        write_whole(folder / WORD_LIST, words.text)


def _check_names(version: str, date: str | None) -> None:
    if not VERSION.fullmatch(version):
        raise input_error("--version", f'"{version}" is not a version', "write it as X.Y.Z, such as 1.0.0")
    if date is not None and not DATE.fullmatch(date):
        raise input_error("--date", f'"{date}" is not a date', "write it as YYYY-MM-DD")


def _add_annotations(folder: Path, judged: Sequence[AnnotationFolder], facts: dict[str, Any], reviews: Path | None) -> dict[str, Any]:
    """Adds annotations; returns what the manifest says of them, and of how they go with what people said."""
    told = add_annotations(folder, judged, facts)
    return told | (human_section(folder, facts | told, reviews) if reviews else {})


def _read_reviews(build_dir: Path, header: dict[str, Any], reviews: Path) -> dict[str, Any]:
    """What the record of reviews says of the dialogues of this build."""
    contents = {
        outcome.dialogue_id: content_hash({"role": turn.role, "text": turn.text} for turn in outcome.dialogue.turns)
        for outcome in accepted_outcomes(build_dir)
        if outcome.dialogue
    }
    return review_facts(reviews, contents, header["configuration"]["report"]["bootstrap"], header["configuration"]["seed"])


def _write_data(build_dir: Path, folder: Path, header: dict[str, Any], selection: Selection) -> dict[str, dict[str, int]]:
    """All parquet files, and what the build was made under; returns the number of rows by config and split, empty splits too."""
    taxonomy, about = load_taxonomy(), canary_entry(release_identity(header["configuration"]))
    _write_word_list(build_dir, folder, header["configuration"])
    write_definitions(folder, read_definitions(build_dir, header))
    writers = dict[tuple[str, str], TableWriter]()
    counts = dict[str, dict[str, int]]()
    stage("writing rows", len(selection.dialogue_ids), "dialogues")
    with contextlib.ExitStack() as stack:
        beside = {"provenance": provenance_columns(candidates_of(header["configuration"])), "candidates": CANDIDATES}
        for table, columns in beside.items():
            writers[table, ""] = stack.enter_context(TableWriter(folder / f"{table}.parquet", columns, about))

        def begin(config: str) -> None:
            counts[config] = dict.fromkeys(SPLITS, 0)
            for split in SPLITS:
                writers[config, split] = stack.enter_context(
                    TableWriter(file_of(folder, config, split), configs_of([config])[config], about)
                )

        for config in COLUMNS:
            begin(config)
        for outcome in accepted_outcomes(build_dir, checked=True):
            if outcome.dialogue_id not in selection.dialogue_ids:
                continue
            split, scenario = split_of(outcome.dialogue_id), header["scenarios"][outcome.dialogue_id[:3]]["name"]
            for table, row in derive_rows(outcome, scenario, taxonomy):
                if table in beside:
                    writers[table, ""].add(row)
                    continue
                if table not in counts:  # a config that not every release has
                    begin(table)
                writers[table, split].add(row)
                counts[table][split] += 1
            advance()
    return counts
