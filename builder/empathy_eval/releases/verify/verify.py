"""Verifying: a release derived again from itself; every fault with its place, all at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.base.parsing import json_value, text_of
from empathy_eval.base.schemas import check
from empathy_eval.base.stages import stage
from empathy_eval.base.tabular import refuse_absurd
from empathy_eval.design.configuration import candidates_of, language_of
from empathy_eval.design.dataset import CANDIDATES, MANIFEST, SPLITS, TABLES, configs_of, contract, file_of, provenance_columns, read_tables
from empathy_eval.evaluation.inversion.text_scores import ITEMS
from empathy_eval.metrics.registry import NotRecomputed, Told
from empathy_eval.metrics.scoring import PLAIN, Scoring
from empathy_eval.raters.judges.judge_section import judges_told
from empathy_eval.releases.assemble.duplicates import hashes_of, near_duplicates
from empathy_eval.releases.assemble.manifest import is_before, is_ours, manifest_text, other_format, sealed
from empathy_eval.releases.assemble.signing import PublicKey, signature_faults
from empathy_eval.releases.verify.annotations import annotation_faults
from empathy_eval.releases.verify.choice import choice_faults
from empathy_eval.releases.verify.crossed import crossed_faults
from empathy_eval.releases.verify.design import canary_faults, design_faults, software_faults
from empathy_eval.releases.verify.documents import explorer_faults, paper_faults
from empathy_eval.releases.verify.figures import figure_faults
from empathy_eval.releases.verify.files import file_faults
from empathy_eval.releases.verify.ledger import ledger_faults
from empathy_eval.releases.verify.manifest import manifest_faults
from empathy_eval.releases.verify.provenance import provenance_faults
from empathy_eval.releases.verify.report import comparable, disagreements, eased, item_faults
from empathy_eval.releases.verify.reviews import review_faults
from empathy_eval.releases.verify.rows import RESTORE, read_rows, row_faults
from empathy_eval.releases.verify.texts import text_faults
from empathy_eval.releases.verify.toxicity import toxicity_faults
from empathy_eval.reports.explorer import PAGE
from empathy_eval.reports.report import measure_release, metrics_of, newer, otherwise
from empathy_eval.reports.report_from_json import retold

OTHER_SETTINGS = "verify it with the program that made it, or release its build again"
LATER_METRIC = "nothing needs to be done: the release is older than the metric, or was made with another list of metrics"
NOT_COMPARED = "the rows of {} and all Holm-corrected p-values are not compared, because the correction covers all metrics of a table"


def verify(
    release_dir: Path, *, fast: bool = False, trusted: Collection[str] = (), ledgers: Sequence[Path] = (),
    signer: PublicKey | None = None, scoring: Scoring = PLAIN,
) -> list[Problem]:  # fmt: skip
    """All faults of a release; an empty list if it is what it claims. ``fast`` leaves the report's numbers out.

    With the key of a ``signer`` the release must be signed by it, and is looked at no further where it is not.
    With the ``ledgers`` of its build every text, and with those of its annotations every row of them, is held against the answers.

    Nothing is run that the release names, but for built-in and installed metrics and those that are ``trusted`` by name. A metric that
    is not run is no fault, and is named by a :class:`~empathy_eval.metrics.registry.NotRecomputed` at the end of the list.
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
    if all(isinstance(one, NotRecomputed) for one in found):
        found += [*file_faults(release_dir, manifest)] or [*_tables(release_dir, manifest)]
    # What comes later takes for granted what comes earlier.
    for parts in STAGES:
        for part in parts if all(isinstance(one, NotRecomputed) for one in found) else ():
            stage(f"looking for {part.__name__.strip('_').replace('_', ' ')}")
            found += part(release_dir, manifest)
    if ledgers and all(isinstance(one, NotRecomputed) for one in found):
        stage("comparing texts with the ledgers")
        found += ledger_faults(release_dir, manifest, ledgers)
    if not fast and all(isinstance(one, NotRecomputed) for one in found):
        # The report first: what the scorer of toxicity loads would stand in memory beside it.
        told = list(_report(release_dir, manifest, trusted, replace(scoring, cache=None)))
        found += [*toxicity_faults(release_dir, manifest), *told]
    return sorted(found, key=lambda one: isinstance(one, NotRecomputed))


def _manifest(path: Path) -> dict[str, Any] | list[Problem]:
    """The manifest as it was sealed, or what is wrong with it."""
    try:
        text = text_of(path)
        manifest: dict[str, Any] = json_value(text)
        if isinstance(manifest, dict) and (other := other_format(manifest)):
            return [Problem(str(path), *other)]
        check(manifest, "manifest", path)
        whole = sealed(manifest) == manifest and manifest_text(manifest) == text
    except InputError as error:
        return list(error.problems)
    except (ValueError, OSError) as error:
        return [Problem(str(path), f"cannot be read: {error}", RESTORE)]
    return manifest if whole else [Problem(str(path), "was changed after the release (its seal does not match)", RESTORE)]


def _tables(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Every parquet file has its columns and as many rows as the manifest says."""
    for config in configs_of(manifest["counts"]):
        for split in SPLITS:
            path = file_of(folder, config, split)
            table = _parquet(path)
            if isinstance(table, Problem):
                yield table
                continue
            columns = contract(config, table.schema_arrow.names)
            if not table.schema_arrow.equals(columns):
                names, wanted = set(table.schema_arrow.names), set(columns.names)
                differ = ", ".join(f'"{name}"' for name in sorted(names ^ wanted)) or "their types or order"
                yield Problem(
                    str(path), f"has other columns than the data contract: {differ}", "restore the columns, which are never renamed"
                )
            if table.metadata.num_rows != manifest["counts"][config][split]:
                what = f"has {table.metadata.num_rows} rows, but the manifest says {manifest['counts'][config][split]}"
                yield Problem(str(path), what, RESTORE)

    beside = {"provenance.parquet": provenance_columns(candidates_of(manifest["configuration"])), "candidates.parquet": CANDIDATES}
    for name in sorted(beside.keys() & manifest["files"].keys()):
        table = _parquet(folder / name)
        if isinstance(table, Problem) or not table.schema_arrow.equals(beside[name]):
            yield table if isinstance(table, Problem) else Problem(str(folder / name), "has other columns than the data contract", RESTORE)


def _parquet(path: Path) -> pq.ParquetFile | Problem:
    """A file of tables that memory can hold, or what is wrong with it."""
    try:
        table = pq.ParquetFile(path)
        refuse_absurd(path, table.metadata)
    except InputError as error:
        return error.problems[0]
    except (OSError, pa.ArrowException) as error:
        return Problem(str(path), f"is not a parquet file: {error}", RESTORE)
    return table


def _duplicates(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """No two dialogues of the release are near-duplicates."""
    rows = (
        (row["dialogue_id"], [turn and turn["text"] for turn in row["turns"] or ()])
        for split in SPLITS
        for _, row in read_rows(folder, "dialogues", split)
    )
    # What has no value is told already.
    whole = ((dialogue_id, texts) for dialogue_id, texts in rows if None not in (dialogue_id, *texts))
    hashes = hashes_of(whole, language_of(manifest["configuration"]))
    for goes, stays in near_duplicates(hashes).items():
        yield Problem(f"{folder}: {goes}", f"is a near-duplicate of {stays}", "release the build again: duplicates are left out")


STAGES = (
    (design_faults, software_faults, canary_faults, row_faults, crossed_faults, annotation_faults, _duplicates),
    (manifest_faults, review_faults, provenance_faults),
    (choice_faults, text_faults),
    (paper_faults,),
)


def _report(folder: Path, manifest: dict[str, Any], trusted: Collection[str], scoring: Scoring) -> Iterator[Problem]:
    """Every number of the tables, every word margin and every score of a text equal their recomputation; figures and explorer are theirs.

    At the end comes what was not recomputed.
    """
    stage("measuring again")
    path, whole = folder / "report" / TABLES, read_tables(folder)
    found, left = metrics_of(manifest, trusted)
    if wrong := [Problem(f"{folder / MANIFEST}: metrics: {name}", what, OTHER_SETTINGS) for name, what in otherwise(found, manifest)]:
        yield from wrong
        return
    # Releases of before have not all parts.
    parts = {name: is_ours(manifest) or part in whole for name, part in (("attacked", "attacks"), ("fair", "fairness"))}
    report = measure_release(folder, manifest, found, scoring, judges_told, **parts)
    measured = {one.name for one in found.metrics} | {one.name for one in found.diversities}
    # What metrics hold, such as weights, would stand in memory beside the figures.
    del found
    anew, others = report.to_json(), list[str]()
    told = eased(whole, anew) if is_before(manifest) else whole
    if left:
        told, anew, others = comparable(told, anew, measured)
    wrong = [Problem(f"{path}: {where}", what, RESTORE) for where, what in disagreements(told, anew)]
    if f"report/{ITEMS}" in manifest["files"] and report.scores:
        wrong += item_faults(path.with_name(ITEMS), report.scores, others)
    if len(others) > len(left):
        what = f"has rows of {_named(others)}; besides the measured metrics, the manifest names {len(left)}"
        wrong.append(Problem(str(path), what, RESTORE))
    yield from wrong
    if not wrong:
        stage("drawing figures and the explorer again")
        yield from figure_faults(folder, manifest, retold(whole))
        if PAGE in manifest["files"]:
            yield from explorer_faults(folder, manifest)
    for name in newer(manifest):
        yield Told(
            f"{folder / MANIFEST}: metrics", f'"{name}" is built into this version, but the report has no row of it', LATER_METRIC, name
        )
    for one in left:
        yield replace(one, what=f"{one.what}; {NOT_COMPARED.format(_named(others) or 'such metrics')}")
    stage("looking for toxicity faults")


def _named(metrics: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in metrics)
