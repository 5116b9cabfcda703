"""The dataset card, the Croissant metadata and the changelog of a release, from templates and real numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from textwrap import shorten
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from builder.files import data_folder, write_whole
from builder.reporting import Report
from builder.rows import COLUMNS
from builder.schemas import read_yaml
from builder.signature import digest_file
from builder.splitting import SPLITS
from builder.templates import environment

GROUP = 1000
LICENSE_URL = "https://creativecommons.org/licenses/by/4.0/"


def write_card(folder: Path, facts: dict[str, Any], report: Report) -> None:
    """``README.md``: the dataset card, its YAML head naming configs and splits."""
    values = {"facts": facts, "report": report, "configs": list(COLUMNS), "splits": SPLITS}
    write_whole(folder / "README.md", _render("card.md.j2", **values, columns=_columns(), example=_example(folder)))


def _columns() -> list[dict[str, Any]]:
    """Every column once, with its type, what it holds and the configs that have it."""
    told = read_yaml(data_folder("release") / "columns.yaml", "columns")
    kinds = {column.name: _kind(column.type) for schema in COLUMNS.values() for column in schema}
    return [
        {"name": name, "type": kind, "what": told[name], "configs": [config for config in COLUMNS if name in COLUMNS[config].names]}
        for name, kind in kinds.items()
    ]


def _kind(kind: pa.DataType) -> str:
    """A type in the card's words: ``list of {role, text}``."""
    if pa.types.is_list(kind):
        return f"list of {_kind(kind.value_type)}"
    if pa.types.is_struct(kind):
        return "{" + ", ".join(one.name for one in kind) + "}"
    return {"int64": "integer", "double": "number"}.get(str(kind), "string")


def _example(folder: Path) -> str:
    """The shortest row of ``pairs`` without a flag (or with one, if all have one) as JSON, its texts cut."""
    files = [folder / "data" / "pairs" / f"{split}.parquet" for split in SPLITS]

    def batches(columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        return (batch for path in files for batch in pq.ParquetFile(path).iter_batches(GROUP, columns=columns))

    rows = (row for batch in batches(["pair_id", "turn", "flags"]) for row in batch.to_pylist())
    shortest = min(((bool(row["flags"]), row["turn"], row["pair_id"]) for row in rows), default=None)
    if shortest is None:
        return "{}"
    found = (row for batch in batches() for row in batch.filter(pc.equal(batch.column("pair_id"), shortest[2])).to_pylist())
    return json.dumps(_cut(next(found)), indent=2, ensure_ascii=False)


def _cut(value: Any) -> Any:
    """A JSON value with long texts cut at a word."""
    if isinstance(value, dict):
        return {name: _cut(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_cut(one) for one in value]
    return shorten(value, 160, placeholder=" …") if isinstance(value, str) else value


def write_changelog(folder: Path, facts: dict[str, Any]) -> None:
    """``CHANGELOG.md``: what this release holds."""
    write_whole(folder / "CHANGELOG.md", _render("changelog.md.j2", facts=facts))


def write_croissant(folder: Path, facts: dict[str, Any]) -> None:
    """``croissant.json``: Croissant 1.1 metadata, a record set for each config and split that has rows.

    Columns that hold structures (turns, contexts, messages) are left out: a Croissant reader takes texts, numbers and lists of them.
    """
    filled = [(config, split) for config in COLUMNS for split in SPLITS if facts["counts"][config][split]]
    metadata = {
        "@context": json.loads((data_folder("release") / "croissant_context.json").read_text(encoding="utf-8")),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": facts["name"],
        "description": "A contrastive benchmark of emotional-support conversations: every helper turn with an apathetic near-copy and an "
        "empathetic reply in other words.",
        "version": facts["version"],
        "license": LICENSE_URL,
        "url": "https://huggingface.co/docs/datasets",
        "creator": {"@type": "sc:Organization", "name": "The Empathy-Eval authors"},
        **({"datePublished": facts["date"]} if facts["date"] else {}),
        "distribution": [_file(folder, config, split) for config, split in filled],
        "recordSet": [_record_set(config, split) for config, split in filled],
    }
    write_whole(folder / "croissant.json", json.dumps(metadata, indent=2, ensure_ascii=False) + "\n")


def _file(folder: Path, config: str, split: str) -> dict[str, Any]:
    path = f"data/{config}/{split}.parquet"
    name = f"{config}-{split}"
    return {
        "@type": "cr:FileObject", "@id": name, "name": name, "contentUrl": path,
        "encodingFormat": "application/x-parquet", "sha256": digest_file(folder / path),
    }  # fmt: skip


def _record_set(config: str, split: str) -> dict[str, Any]:
    name = f"{config}_{split}"
    told = read_yaml(data_folder("release") / "columns.yaml", "columns")
    fields = [_field(column, told[column.name], name, f"{config}-{split}") for column in COLUMNS[config] if _plain(column.type)]
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}


def _plain(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind) or (pa.types.is_list(kind) and not pa.types.is_nested(kind.value_type))


def _field(column: pa.Field, what: str, record_set: str, file: str) -> dict[str, Any]:
    listed = pa.types.is_list(column.type)
    kind = column.type.value_type if listed else column.type
    data_type = "sc:Integer" if pa.types.is_integer(kind) else "sc:Float" if pa.types.is_floating(kind) else "sc:Text"
    return {
        "@type": "cr:Field", "@id": f"{record_set}/{column.name}", "name": column.name, "description": what, "dataType": data_type,
        **({"isArray": True, "arrayShape": "-1"} if listed else {}),
        "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
    }  # fmt: skip


def _render(template: str, **values: Any) -> str:
    return environment(data_folder("release")).get_template(template).render(**values).strip() + "\n"
