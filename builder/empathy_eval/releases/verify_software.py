"""What software made a release, as its manifest says: held against its files, and told where other versions are here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from empathy_eval.base.errors import Problem
from empathy_eval.metrics.trust import Told
from empathy_eval.releases.made_by import is_ours
from empathy_eval.releases.manifest import SOFTWARE, software
from empathy_eval.releases.verify_rows import RESTORE

WRITER = re.compile(r"parquet-cpp-arrow version (\d+\.\d+\.\d+)")
PLAIN = re.compile(r"\d+\.\d+\.\d+")


def software_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Files that other software wrote than the manifest says; that other versions are here is told and no fault."""
    said = manifest["software"]
    where = f"{folder / 'manifest.json'}: software"
    if is_ours(manifest):
        for name in sorted(said.keys() ^ {"python", *SOFTWARE}):
            if name in said:
                yield Problem(where, f'"{name[:80]}" is not software that a manifest names', RESTORE)
            elif name in ("python", "pyarrow", "numpy"):
                yield Problem(where, f'does not name "{name}", which every release needs', RESTORE)
    yield from _writers(folder, manifest)
    yield from _unread(folder, manifest)
    here = software()
    others = [
        f"{name} {said[name][:40]}, here {here.get(name, 'none')}"
        for name in ("python", *SOFTWARE)
        if said.get(name, here.get(name)) != here.get(name)
    ]
    if others:
        what = f"was made with {'; '.join(others)}"
        yield Told(where, what, "nothing needs to be done: numbers are compared within their tolerances", "software")


def _writers(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Parquet files that another version wrote than the one that is named."""
    named = manifest["software"].get("pyarrow", "")
    if not PLAIN.fullmatch(named):
        return
    for name in sorted(one for one in manifest["files"] if one.endswith(".parquet")):
        created = pq.read_metadata(folder / name).created_by
        wrote = WRITER.fullmatch(created or "")
        if not wrote or wrote[1] != named:
            what = f'was written by "{str(created)[:80]}", but the manifest says pyarrow {named}'
            yield Problem(str(folder / name), what, RESTORE)


def _unread(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Parquet files with bytes that are in no column: nobody reads them, and everybody downloads them."""
    for name in sorted(one for one in manifest["files"] if one.endswith(".parquet")):
        path = folder / name
        table = pq.read_metadata(path)
        groups = [table.row_group(number) for number in range(table.num_row_groups)]
        held = sum(group.column(number).total_compressed_size for group in groups for number in range(group.num_columns))
        # Four letters before the columns; after them the description, its length, and four letters again.
        if more := path.stat().st_size - (4 + held + table.serialized_size + 8):
            yield Problem(str(path), f"has {more:,} bytes that are in no column", RESTORE)
