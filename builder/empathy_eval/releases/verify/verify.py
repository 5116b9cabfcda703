"""Verification of a release: everything is derived again from the release itself, and all differences are found at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from empathy_eval.base.errors import FIX_RESTORE, Finding, InputError, faults_of, has_faults, input_error, input_errors_as_faults
from empathy_eval.base.parsing import json_value, read_text
from empathy_eval.base.schemas import check
from empathy_eval.base.stages import stage
from empathy_eval.base.tabular import check_group_sizes, parquet_errors
from empathy_eval.design.configuration import candidates_of, language_of
from empathy_eval.design.dataset import CANDIDATES, MANIFEST, SPLITS, TABLES, configs_of, file_of, provenance_columns, read_tables
from empathy_eval.evaluation.measure import ITEMS
from empathy_eval.metrics.scoring import PLAIN, Scoring
from empathy_eval.releases.assemble.manifest import format_mismatch, manifest_text, seal_manifest
from empathy_eval.releases.assemble.selection import find_near_duplicates, hash_dialogues
from empathy_eval.releases.assemble.signing import PublicKey, signature_faults
from empathy_eval.releases.verify.annotations import annotation_faults
from empathy_eval.releases.verify.content import content_faults
from empathy_eval.releases.verify.design import canary_faults, design_faults, software_faults
from empathy_eval.releases.verify.documents import explorer_faults, figure_faults, paper_faults
from empathy_eval.releases.verify.files import file_faults, released_rows
from empathy_eval.releases.verify.ledger import ledger_faults
from empathy_eval.releases.verify.manifest import manifest_faults, review_faults
from empathy_eval.releases.verify.report import disagreements, item_faults, select_comparable
from empathy_eval.releases.verify.texts import load_text_checks, toxicity_faults
from empathy_eval.reports.report import changed_signatures, measure_release, release_metrics, report_from_json, unpinned_metrics

OTHER_SETTINGS = "verify it with the program that made it, or release its build again"
LATER_METRIC = "nothing needs to be done: the release is older than the metric, or was made with another list of metrics"
NOT_COMPARED = "the rows of {} and all Holm-corrected p-values are not compared, because the correction covers all metrics of a table"


def verify(
    release_dir: Path, *, fast: bool = False, trusted: Collection[str] = (), ledgers: Sequence[Path] = (),
    signer: PublicKey | None = None, scoring: Scoring = PLAIN,
) -> list[Finding]:  # fmt: skip
    """All findings on a release, faults first; without a fault it is what it claims. ``fast`` skips toxicity and the report's numbers.

    With the key of a ``signer`` the release must be signed by it; if it is not, nothing else is checked.
    With the ``ledgers`` of its build and of its annotations, texts and rows are compared with the answers.

    No code that the release names is run, except built-in and installed metrics and those that are ``trusted`` by name. A finding reports
    a metric that is not run as unchecked. The score cache of ``scoring`` is not used.

    Raises:
        InputError: if the folder holds no manifest, a metric cannot be loaded, or a ledger cannot be read.
        JobError: if a ledger is damaged.
    """
    path = release_dir / MANIFEST
    if not path.is_file():
        raise input_error(release_dir, f"is not a release (no {MANIFEST} in it)", "name the folder of a release")
    try:
        manifest = _read_sealed(path)
    except InputError as error:
        return list(faults_of(error.problems))
    stage("looking for faults of signature, files and tables")
    findings = [*signature_faults(release_dir, manifest, signer)]
    findings += [] if has_faults(findings) else _own_faults(release_dir, manifest)
    if ledgers and not has_faults(findings):
        stage("comparing texts with the ledgers")
        findings += ledger_faults(release_dir, manifest, ledgers)
    if not fast and not has_faults(findings):
        # The report first: the toxicity scorer would stay in memory beside it.
        report = [*_report_faults(release_dir, manifest, trusted, replace(scoring, cache=None))]
        stage("looking for toxicity faults")
        findings += [*toxicity_faults(release_dir, manifest), *report]
    return sorted(findings, key=lambda finding: finding.severity != "fault")


def _read_sealed(path: Path) -> dict[str, Any]:
    """The manifest of a release.

    Raises:
        InputError: if it cannot be read, is of another format, is not valid, or does not match its seal.
    """
    try:
        text = read_text(path)
        manifest: dict[str, Any] = json_value(text)
        if isinstance(manifest, dict) and (other := format_mismatch(manifest)):
            raise input_error(path, *other)
        check(manifest, "manifest", path)
        if seal_manifest(manifest) == manifest and manifest_text(manifest) == text:
            return manifest
    except (ValueError, OSError) as error:
        raise input_error(path, f"cannot be read: {error}", FIX_RESTORE) from error
    raise input_error(path, "was changed after the release (its seal does not match)", FIX_RESTORE)


def _own_faults(folder: Path, manifest: dict[str, Any]) -> list[Finding]:
    """All findings without ledgers and without the numbers of the report. Later checks rely on earlier ones."""
    findings = [*file_faults(folder, manifest)] or [*_table_faults(folder, manifest)]
    if has_faults(findings):
        return findings
    stage("looking for faults of definitions, annotations and manifest")
    for part in (design_faults, software_faults, canary_faults, annotation_faults, _duplicate_faults):
        findings += part(folder, manifest)
    for part in (manifest_faults, review_faults) if not has_faults(findings) else ():
        findings += part(folder, manifest)
    stage("deriving all rows and checking all texts again", sum(manifest["counts"]["dialogues"].values()), "dialogues")
    try:
        checks = None if has_faults(findings) else load_text_checks(folder, manifest)
    except InputError as error:
        return [*findings, *faults_of(error.problems)]
    findings += content_faults(folder, manifest, checks)
    return findings if has_faults(findings) else [*findings, *paper_faults(folder, manifest)]


def _table_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Parquet files with other columns than the data contract, or another number of rows than in the manifest."""
    for config, columns in configs_of(manifest["counts"]).items():
        for split in SPLITS:
            yield from _column_faults(file_of(folder, config, split), columns, manifest["counts"][config][split])
    yield from _column_faults(folder / "provenance.parquet", provenance_columns(candidates_of(manifest["configuration"])))
    yield from _column_faults(folder / "candidates.parquet", CANDIDATES)


@input_errors_as_faults
def _column_faults(path: Path, columns: pa.Schema, count: int | None = None) -> Iterator[Finding]:
    with parquet_errors(path), pq.ParquetFile(path) as table:
        check_group_sizes(path, table.metadata)
        names, rows = table.schema_arrow.names, table.metadata.num_rows
        if not table.schema_arrow.equals(columns):
            different = ", ".join(f'"{name}"' for name in sorted({*names} ^ {*columns.names})) or "their types or order"
            what = f"has other columns than the data contract: {different}"
            yield Finding(str(path), what, "restore the columns, which are never renamed")
        if count not in (None, rows):
            yield Finding(str(path), f"has {rows} rows, but the manifest says {count}")


def _duplicate_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Near-duplicates among the dialogues of the release."""
    rows = released_rows(folder, "dialogues", ["dialogue_id", "turns"])
    dialogues = ((row["dialogue_id"], [turn and turn["text"] for turn in row["turns"] or ()]) for row in rows)
    # Missing values are found elsewhere.
    complete = ((dialogue_id, texts) for dialogue_id, texts in dialogues if None not in (dialogue_id, *texts))
    for excluded, retained in find_near_duplicates(hash_dialogues(complete, language_of(manifest["configuration"]))).items():
        yield Finding(f"{folder}: {excluded}", f"is a near-duplicate of {retained}", "release the build again: duplicates are left out")


def _report_faults(folder: Path, manifest: dict[str, Any], trusted: Collection[str], scoring: Scoring) -> Iterator[Finding]:
    """Numbers of the tables, word margins and scores of texts that are not those of their recomputation; figures and an explorer that are
    not those of the tables; and what is unchecked.
    """
    stage("measuring again")
    path, stored = folder / "report" / TABLES, read_tables(folder)
    metrics, skipped = release_metrics(manifest, trusted)
    where = f"{folder / MANIFEST}: metrics"
    if faults := [Finding(f"{where}: {name}", what, OTHER_SETTINGS) for name, what in changed_signatures(metrics, manifest)]:
        yield from faults
        return
    report = measure_release(folder, manifest, metrics, scoring)
    measured = {metric.name for metric in metrics.metrics} | {metric.name for metric in metrics.diversities}
    # The weights of metrics would stay in memory beside the figures.
    del metrics
    tables, derived, unmeasured = select_comparable(stored, report.to_json(), measured) if skipped else (stored, report.to_json(), [])
    faults = [Finding(f"{path}: {key}", what) for key, what in disagreements(tables, derived)]
    faults += item_faults(path.with_name(ITEMS), report.scores, unmeasured) if report.scores else ()
    names = ", ".join(f'"{name}"' for name in unmeasured)
    if len(unmeasured) > len(skipped):
        what = f"has rows of {names}; besides the measured metrics, the manifest names {len(skipped)}"
        faults.append(Finding(str(path), what))
    yield from faults
    if not faults:
        stage("drawing figures and the explorer again")
        yield from figure_faults(folder, manifest, report_from_json(stored))
        yield from explorer_faults(folder, manifest)
    for name in unpinned_metrics(manifest):
        yield Finding(where, f'"{name}" is built into this version, but the report has no row of it', LATER_METRIC, "note", name)
    for finding in skipped:
        yield replace(finding, what=f"{finding.what}; {NOT_COMPARED.format(names or 'such metrics')}")
