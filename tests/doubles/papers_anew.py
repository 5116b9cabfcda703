"""Card, changelog and descriptions of a changed release, written again by the program's own functions."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from empathy_eval.base.errors import Finding, InputError
from empathy_eval.base.hashing import digest_file
from empathy_eval.design.dataset import SPLITS, file_of, read_manifest, read_tables
from empathy_eval.metrics.scoring import PLAIN
from empathy_eval.releases.assemble.manifest import manifest_text, seal_manifest
from empathy_eval.releases.assemble.rows import preference_rows
from empathy_eval.releases.verify import verify
from empathy_eval.reports.documents import release_documents
from empathy_eval.reports.report import page_text, report_from_json, tables_text


def papers_anew(folder: Path, manifest: dict[str, Any]) -> None:
    """Writes what follows from the data, the tables and this manifest; nothing where these are damaged."""
    with contextlib.suppress(InputError):
        for name, text in release_documents(folder, manifest, report_from_json(read_tables(folder))).items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")


def preferences_anew(folder: Path) -> None:
    """Writes every preference as the texts of its pair give it."""
    for config, origin in (("preferences", "pairs"), ("preferences_near", "controls"), ("preferences_far", "controls")):
        for split in SPLITS:
            path, rows = file_of(folder, config, split), pq.read_table(file_of(folder, origin, split)).to_pylist()
            schema, found = pq.read_schema(path), (dict(preference_rows(row)).get(config) for row in rows)
            pq.write_table(pa.Table.from_pylist([row for row in found if row], schema=schema), path)


def told_anew(folder: Path, tables: dict[str, Any], **more: Any) -> None:
    """Other tables, with the page and the papers that they give, under a manifest that says more, sealed."""
    (folder / "report" / "tables.json").write_text(tables_text(tables), encoding="utf-8")
    (folder / "report" / "index.html").write_text(page_text(report_from_json(tables)), encoding="utf-8")
    manifest = {**read_manifest(folder), **more}
    papers_anew(folder, manifest)
    manifest["files"] = {name: digest_file(folder / name) for name in manifest["files"] if (folder / name).is_file()}
    (folder / "manifest.json").write_text(manifest_text(seal_manifest(manifest)), encoding="utf-8")


def report_faults(folder: Path) -> list[Finding]:
    """What ``verify`` finds of the numbers of a report alone."""
    return list(verify._report_faults(folder, read_manifest(folder), (), PLAIN))
