"""Verifying: a release derived again from itself; every fault with its place, all at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from empathy_eval.base.errors import Finding, InputError, faults_of, has_faults, input_error
from empathy_eval.base.parsing import json_value, read_text
from empathy_eval.base.schemas import check
from empathy_eval.base.stages import stage
from empathy_eval.base.tabular import check_group_sizes
from empathy_eval.design.configuration import candidates_of, language_of
from empathy_eval.design.dataset import CANDIDATES, MANIFEST, SPLITS, TABLES, configs_of, file_of, provenance_columns, read_tables
from empathy_eval.evaluation.measure import ITEMS
from empathy_eval.metrics.scoring import PLAIN, Scoring
from empathy_eval.releases.assemble.manifest import format_mismatch, manifest_text, seal_manifest
from empathy_eval.releases.assemble.read_back import numbered_rows
from empathy_eval.releases.assemble.selection import find_near_duplicates, hash_dialogues
from empathy_eval.releases.assemble.signing import PublicKey, signature_faults
from empathy_eval.releases.verify.annotations import annotation_faults
from empathy_eval.releases.verify.content import content_faults
from empathy_eval.releases.verify.design import canary_faults, design_faults, software_faults
from empathy_eval.releases.verify.documents import explorer_faults, figure_faults, paper_faults
from empathy_eval.releases.verify.files import file_faults
from empathy_eval.releases.verify.ledger import ledger_faults
from empathy_eval.releases.verify.manifest import manifest_faults, review_faults
from empathy_eval.releases.verify.report import comparable, disagreements, item_faults
from empathy_eval.releases.verify.texts import checked_under, toxicity_faults
from empathy_eval.reports.report import changed_signatures, measure_release, release_metrics, report_from_json, unpinned_metrics

OTHER_SETTINGS = "verify it with the program that made it, or release its build again"
LATER_METRIC = "nothing needs to be done: the release is older than the metric, or was made with another list of metrics"
NOT_COMPARED = "the rows of {} and all Holm-corrected p-values are not compared, because the correction covers all metrics of a table"


def verify(
    release_dir: Path, *, fast: bool = False, trusted: Collection[str] = (), ledgers: Sequence[Path] = (),
    signer: PublicKey | None = None, scoring: Scoring = PLAIN,
) -> list[Finding]:  # fmt: skip
    """All that is found of a release, faults first; no fault if it is what it claims. ``fast`` leaves the report's numbers out.

    With the key of a ``signer`` the release must be signed by it, and is looked at no further where it is not.
    With the ``ledgers`` of its build every text, and with those of its annotations every row of them, is held against the answers.

    Nothing is run that the release names, but for built-in and installed metrics and those that are ``trusted`` by name. A metric that
    is not run is no fault: a finding says that it is unchecked.
    No kept score is believed: the cache of ``scoring`` is left alone.

    Raises:
        InputError: if the folder holds no manifest at all, a metric that may be run cannot be made, or a ledger cannot be read.
        JobError: if a ledger is damaged.
    """
    path = release_dir / MANIFEST
    if not path.is_file():
        raise input_error(release_dir, f"is not a release (no {MANIFEST} in it)", "name the folder of a release")
    manifest = _manifest(path)
    if isinstance(manifest, list):
        return manifest
    stage("looking for faults of signature, files and tables")
    found = [*signature_faults(release_dir, manifest, signer)]
    found += [] if has_faults(found) else _by_itself(release_dir, manifest)
    if ledgers and not has_faults(found):
        stage("comparing texts with the ledgers")
        found += ledger_faults(release_dir, manifest, ledgers)
    if not fast and not has_faults(found):
        # The report first: what the scorer of toxicity loads would stand in memory beside it.
        told = list(_report(release_dir, manifest, trusted, replace(scoring, cache=None)))
        found += [*toxicity_faults(release_dir, manifest), *told]
    return sorted(found, key=lambda one: one.severity != "fault")


def _by_itself(folder: Path, manifest: dict[str, Any]) -> list[Finding]:
    """All but the numbers of the report. What comes later takes for granted what comes earlier."""
    found = [*file_faults(folder, manifest)] or [*_tables(folder, manifest)]
    if has_faults(found):
        return found
    stage("looking for faults of definitions, annotations and manifest")
    for part in (design_faults, software_faults, canary_faults, annotation_faults, _duplicates):
        found += part(folder, manifest)
    for part in (manifest_faults, review_faults) if not has_faults(found) else ():
        found += part(folder, manifest)
    stage("deriving all rows and checking all texts again", sum(manifest["counts"]["dialogues"].values()), "dialogues")
    try:
        under = None if has_faults(found) else checked_under(folder, manifest)
    except InputError as error:
        return [*found, *faults_of(error.problems)]
    found += content_faults(folder, manifest, under)
    return found if has_faults(found) else [*found, *paper_faults(folder, manifest)]


def _manifest(path: Path) -> dict[str, Any] | list[Finding]:
    """The manifest as it was sealed, or what is wrong with it."""
    try:
        text = read_text(path)
        manifest: dict[str, Any] = json_value(text)
        if isinstance(manifest, dict) and (other := format_mismatch(manifest)):
            return [Finding(str(path), *other)]
        check(manifest, "manifest", path)
        whole = seal_manifest(manifest) == manifest and manifest_text(manifest) == text
    except InputError as error:
        return list(faults_of(error.problems))
    except (ValueError, OSError) as error:
        return [Finding(str(path), f"cannot be read: {error}")]
    return manifest if whole else [Finding(str(path), "was changed after the release (its seal does not match)")]


def _tables(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Every parquet file has its columns and as many rows as the manifest says."""
    counts, candidates = manifest["counts"], candidates_of(manifest["configuration"])
    files = [
        (file_of(folder, config, split), columns, counts[config][split])
        for config, columns in configs_of(counts).items()
        for split in SPLITS
    ]
    files += [(folder / "provenance.parquet", provenance_columns(candidates), None), (folder / "candidates.parquet", CANDIDATES, None)]
    for path, columns, count in files:
        try:
            table = pq.ParquetFile(path)
            check_group_sizes(path, table.metadata)
        except InputError as error:
            yield from faults_of(error.problems)
            continue
        except (OSError, pa.ArrowException) as error:
            yield Finding(str(path), f"is not a parquet file: {error}")
            continue
        if not table.schema_arrow.equals(columns):
            names, wanted = set(table.schema_arrow.names), set(columns.names)
            differ = ", ".join(f'"{name}"' for name in sorted(names ^ wanted)) or "their types or order"
            what = f"has other columns than the data contract: {differ}"
            yield Finding(str(path), what, "restore the columns, which are never renamed")
        if count not in (None, table.metadata.num_rows):
            yield Finding(str(path), f"has {table.metadata.num_rows} rows, but the manifest says {count}")


def _duplicates(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """No two dialogues of the release are near-duplicates."""
    rows = (
        (row["dialogue_id"], [turn and turn["text"] for turn in row["turns"] or ()])
        for split in SPLITS
        for _, row in numbered_rows(file_of(folder, "dialogues", split), ["dialogue_id", "turns"])
    )
    # What has no value is told already.
    whole = ((dialogue_id, texts) for dialogue_id, texts in rows if None not in (dialogue_id, *texts))
    hashes = hash_dialogues(whole, language_of(manifest["configuration"]))
    for goes, stays in find_near_duplicates(hashes).items():
        yield Finding(f"{folder}: {goes}", f"is a near-duplicate of {stays}", "release the build again: duplicates are left out")


def _report(folder: Path, manifest: dict[str, Any], trusted: Collection[str], scoring: Scoring) -> Iterator[Finding]:
    """Every number of the tables, every word margin and every score of a text equal their recomputation; figures and explorer are theirs.

    At the end comes what was not recomputed.
    """
    stage("measuring again")
    path, whole = folder / "report" / TABLES, read_tables(folder)
    found, left = release_metrics(manifest, trusted)
    if wrong := [
        Finding(f"{folder / MANIFEST}: metrics: {name}", what, OTHER_SETTINGS) for name, what in changed_signatures(found, manifest)
    ]:
        yield from wrong
        return
    report = measure_release(folder, manifest, found, scoring)
    measured = {one.name for one in found.metrics} | {one.name for one in found.diversities}
    # What metrics hold, such as weights, would stand in memory beside the figures.
    del found
    told, anew, others = whole, report.to_json(), list[str]()
    if left:
        told, anew, others = comparable(told, anew, measured)
    wrong = [Finding(f"{path}: {where}", what) for where, what in disagreements(told, anew)]
    if report.scores:
        wrong += item_faults(path.with_name(ITEMS), report.scores, others)
    if len(others) > len(left):
        what = f"has rows of {_named(others)}; besides the measured metrics, the manifest names {len(left)}"
        wrong.append(Finding(str(path), what))
    yield from wrong
    if not wrong:
        stage("drawing figures and the explorer again")
        yield from figure_faults(folder, manifest, report_from_json(whole))
        yield from explorer_faults(folder, manifest)
    for name in unpinned_metrics(manifest):
        what = f'"{name}" is built into this version, but the report has no row of it'
        yield Finding(f"{folder / MANIFEST}: metrics", what, LATER_METRIC, "note", name)
    for one in left:
        yield replace(one, what=f"{one.what}; {NOT_COMPARED.format(_named(others) or 'such metrics')}")
    stage("looking for toxicity faults")


def _named(metrics: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in metrics)
