"""Explorer of a release: one page with an embedded sample that reads the rest from the files of the release, by ranges.

``release/explore`` has its template, style, scripts and parquet reader. ``verify`` compares its metadata and rows with the release.
"""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.files import data_folder, write_whole
from empathy_eval.base.hashing import digest_bytes
from empathy_eval.base.json_text import csp, embedded_json
from empathy_eval.base.schemas import read_json
from empathy_eval.base.tabular import WHOLE, parquet_errors, schema_of, table_batches
from empathy_eval.base.templates import environment
from empathy_eval.design.canary import canary_entry
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import SPLITS, TEXT, column, configs_of, file_of, read_manifest, read_tables
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.evaluation.measure import BESIDE as UNSCORED
from empathy_eval.evaluation.measure import ITEMS
from empathy_eval.reports.page import glossary_terms

# The page inside a release, and the address of the release from there.
PAGE, HOME = "explore/index.html", "../"
SAMPLED = 200
# Version of the metadata and the embedded rows; it changes with their keys or meaning.
FORMAT = 2
FOLDER = "explore"
SCRIPTS = (
    "source.js", "table.js", "shelf.js", "diff.js", "filters.js", "parts.js", "list.js", "item.js", "judged.js", "around.js", "page.js",
    "loading.js",
)  # fmt: skip
# Without preferences, which repeat the pairs.
SHOWN = ("pairs", "dialogues", "controls", "annotations", "comparisons", "strategies")
BESIDE = {"candidates": "candidates.parquet", "items": f"report/{ITEMS}"}
EMBEDDED = re.compile(r'<script type="application/json" id="(about|sample)">([^<]*)</script>')
IDS = ("pair_id", "dialogue_id")


@dataclass(frozen=True)
class EmbeddedSample:
    """Embedded pairs of a split, and their rows by file."""

    split: str
    pairs: int
    of: int
    tables: dict[str, pa.Table]


def read_failures(path: Path, folder: Path) -> dict[str, Any]:
    """Returns the failure cases that ``score --failures N --json`` printed of a release.

    Raises:
        InputError: if the file is not such output, or holds a pair that is not of the release.
    """
    fix = "write it with empathy-eval score RELEASE … --failures N --json"
    failures: dict[str, Any] = read_json(path, "failures", fix)["failures"]
    known = set(column(folder, "pairs", "pair_id"))
    stray = (case["pair_id"] for case in failures["cases"] if case["pair_id"] not in known)
    refuse(Problem(str(path), f'"{name}" is not a pair of this release', fix) for name in dict.fromkeys(stray))
    return failures


def explore_page(folder: Path, facts: dict[str, Any], base: str = HOME, failures: dict[str, Any] | None = None) -> str:
    """Returns the page of a release; equal releases give equal pages.

    Its policy lets only its own scripts and style run, so that a text of the release stays a text.

    Args:
        folder: a release whose data, report and scores of texts are written.
        facts: its manifest, or as much of it as is known while the release is written: all but ``files`` and ``seal``.
        base: the address of the release as seen from the page, with a ``/`` at its end.
        failures: what :func:`read_failures` gave, to be listed above the pairs.

    Raises:
        InputError: if a file of the release is missing or damaged.
    """
    sample = draw_sample(folder, facts)
    about = page_metadata(folder, facts, sample, base)
    source = data_folder("release") / FOLDER
    templates = environment(source)
    templates.filters["csp"] = csp
    files = {name: base64.b64encode(_parquet(table)).decode() for name, table in sample.tables.items()}
    return templates.get_template("page.html.j2").render(
        about=about,
        about_json=embedded_json(about),
        sample_json=embedded_json({"files": files}),
        style=(source / "page.css").read_text(encoding="utf-8"),
        reader=(source / "reader.min.js").read_text(encoding="utf-8"),
        terms=glossary_terms(),
        failures=failures,
        script="\n".join((source / name).read_text(encoding="utf-8") for name in SCRIPTS),
    ) + "\n"  # fmt: skip


def hub_address(name: str) -> str:
    """Returns the address of the files of ``owner/name@revision`` on the Hub."""
    repo, _, revision = name.rpartition("@")
    return f"https://huggingface.co/datasets/{repo}/resolve/{revision}/"


def write_page(folder: Path, out: Path, base: str | None = None, failures: dict[str, Any] | None = None) -> None:
    """Writes the page of a release into a file beside it; ``base`` is the release's address, by default its folder as seen from there.

    Raises:
        InputError: if the folder is no release, or ``out`` lies in it, is a folder, or holds something else than such a page.
    """
    facts, target = read_manifest(folder), out.resolve()
    if target.is_relative_to(folder.resolve()):
        raise input_error(
            out, "lies in the release folder, and the manifest lists every file of that folder", "name another file with --out"
        )
    if out.exists() and not (out.is_file() and EMBEDDED.search(out.read_text(encoding="utf-8", errors="replace"))):
        raise input_error(out, "exists, but is not an explorer page", "name another file with --out")
    here = Path(os.path.relpath(folder.resolve(), target.parent)).as_posix()
    # A file name need not be UTF-8, so its bytes are quoted.
    write_whole(out, explore_page(folder, facts, base or f"{quote(os.fsencode(here))}/", failures))


def page_metadata(folder: Path, facts: dict[str, Any], sample: EmbeddedSample, base: str) -> dict[str, Any]:
    """Returns what a page knows of its release before it reads its files."""
    summary, taxonomy = facts["summary"], load_taxonomy()
    return {
        "format": FORMAT,
        "language": language_of(facts["configuration"]),
        "name": facts["name"],
        "version": facts["version"],
        "date": facts["date"],
        **canary_entry(facts),
        "base": base,
        "files": list(_files(folder, facts)),
        "metrics": _metrics(folder),
        "strategies": [{"phase": phase, "names": [taxonomy[name].name for name in taxonomy.in_phase(phase)]} for phase in taxonomy.phases],
        "scenarios": [{"id": int(number), "name": scenario["name"]} for number, scenario in sorted(facts["scenarios"].items())],
        "left_out": {
            **{name: summary[name] for name in ("planned", "accepted", "rejected", "missing", "rejected_by_reason", "samples_refused")},
            "withdrawn": facts["withdrawn"],
            "removed": (facts.get("reviews") or {}).get("removed", []),
            "duplicates": facts["duplicates"],
            "spares_left_out": facts["spares_left_out"],
            "below_quota": facts.get("below_quota", {}),
        },
        "sampled": {"pairs": sample.pairs, "of": sample.of, "seed": facts["configuration"]["seed"], "split": sample.split},
    }  # fmt: skip


def _files(folder: Path, facts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the parquet files that the page may read."""
    data = [(file_of(folder, config, split), config, split) for config in configs_of(facts["counts"]) for split in SPLITS]
    for path, config, split in [*data, *((folder / name, config, None) for config, name in BESIDE.items() if (folder / name).is_file())]:
        place = {"path": path.relative_to(folder).as_posix(), "config": config, "split": split}
        with parquet_errors(path):
            yield {**place, "rows": pq.read_metadata(path).num_rows, "bytes": path.stat().st_size}


def _metrics(folder: Path) -> list[dict[str, Any]]:
    """Returns the metrics with a column of scores, with their signature and direction."""
    path = folder / BESIDE["items"]
    names = [name for name in schema_of(path).names if name not in UNSCORED] if path.is_file() else []
    rows = {row["metric"]: row for row in (read_tables(folder)["inversion"] if names else ())}
    known = [(name, rows.get(name, {})) for name in names]
    return [{"name": name, "signature": row.get("signature"), "higher is better": row.get("higher_is_better")} for name, row in known]


def draw_sample(folder: Path, facts: dict[str, Any]) -> EmbeddedSample:
    """Draws at most ``SAMPLED`` pairs of the test split, or of another split if it is empty, by the seed of the build."""
    counts, seed = facts["counts"], facts["configuration"]["seed"]
    split = next((name for name in reversed(SPLITS) if counts["pairs"][name]), SPLITS[-1])
    ids = column(folder, "pairs", "pair_id", [split])
    pairs = set(sorted(ids, key=lambda pair_id: digest_bytes(f"{seed}:{pair_id}".encode()))[:SAMPLED])
    dialogue_of = dict(zip(ids, column(folder, "pairs", "dialogue_id", [split]), strict=True))
    dialogues = {dialogue_of[pair] for pair in pairs}
    paths = [file_of(folder, config, split) for config in SHOWN if config in counts]
    paths += [folder / name for name in BESIDE.values() if (folder / name).is_file()]
    tables = {path.relative_to(folder).as_posix(): _chosen(path, pairs, dialogues) for path in paths}
    return EmbeddedSample(split, len(pairs), len(ids), tables)


def _chosen(path: Path, pairs: Collection[str], dialogues: Collection[str]) -> pa.Table:
    """Returns the rows of a file that belong to these pairs, or to their dialogues as a whole."""
    schema = schema_of(path)
    ids = [field for field in schema if field.name in IDS]
    if not ids or len({field.name for field in ids}) < len(ids) or any(field.type != TEXT for field in ids):
        raise input_error(path, f'has no text column "{IDS[0]}" or "{IDS[1]}", or has one of them twice', WHOLE)
    chosen, whole = (pa.array(sorted(some), pa.string()) for some in (pairs, dialogues))

    def of_them(batch: pa.RecordBatch) -> Any:
        if "pair_id" not in schema.names:
            return pc.is_in(batch.column("dialogue_id"), whole)
        mine = pc.is_in(batch.column("pair_id"), chosen)
        if "dialogue_id" not in schema.names:
            return mine
        alone = pc.is_null(batch.column("pair_id"))
        return pc.or_(mine, pc.and_(alone, pc.is_in(batch.column("dialogue_id"), whole)))

    with parquet_errors(path):
        return pa.Table.from_batches((batch.filter(of_them(batch)) for batch in table_batches(path)), schema)


def _parquet(table: pa.Table) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, compression="zstd")
    return stream.getvalue()
