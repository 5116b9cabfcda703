"""Documents of a release: card, changelog, Croissant metadata, ``eval.yaml`` and licence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from textwrap import shorten
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest_file
from empathy_eval.base.json_text import json_text
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.templates import environment
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.canary import notice_of
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import SPLITS, cells, configs_of, files_of
from empathy_eval.design.errata import predecessor_of
from empathy_eval.design.scenarios import load_crossed
from empathy_eval.reports.claims import claims, shortcut_line
from empathy_eval.reports.page import glossary_terms
from empathy_eval.reports.report import Report

ROWS_AT_ONCE = 1000


def release_documents(folder: Path, facts: dict[str, Any], report: Report) -> dict[str, str]:
    """Returns the text of each document by its file name; all follows from the data, the report and the manifest.

    Args:
        folder: a release whose data is written.
        facts: its manifest, or as much of it as is known while the release is written: all but ``files`` and ``seal``.
        report: its report, or one from its tables.
    """
    return {
        "README.md": card_text(folder, facts, report),
        "CHANGELOG.md": _render("changelog.md.j2", facts=facts),
        "croissant.json": croissant_text(folder, facts),
        # The tasks that the Hub lists for a benchmark.
        **({"eval.yaml": _render("eval.yaml.j2", facts=facts)} if has_choices(facts) else {}),
        "LICENSE": (data_folder("release") / "DATA_LICENSE").read_text(encoding="utf-8"),
    }


def has_choices(facts: dict[str, Any]) -> bool:
    """Whether a release has configs that ask a model to choose a reply, which are the tasks of ``eval.yaml``."""
    return bool({"preferences_near", "preferences_far", "crossed"} & facts["counts"].keys())


def card_text(folder: Path, facts: dict[str, Any], report: Report) -> str:
    """Returns the text of ``README.md``: the dataset card with its YAML head of configs and splits."""
    configs = configs_of(facts["counts"])
    context = {
        "facts": facts, "report": report, "claims": claims(report.measured), "line": shortcut_line(report.measured),
        "canary": notice_of(facts), "configs": list(configs), "splits": SPLITS, "terms": glossary_terms(),
        "papers": read_yaml(data_folder("release") / "papers.yaml", "papers"),
        "crossed": _crossed(folder) if "crossed" in configs else None,
    }  # fmt: skip
    return _render("card.md.j2", **context, columns=_columns(configs), example=_example(folder))


def _crossed(folder: Path) -> dict[str, Any]:
    """Counts crossed items that are curated, curated by others, and written by models, with their writers and judges."""
    source, writers, judges = (list(cells(folder, "crossed", name)) for name in ("source", "writer", "judge"))
    named = {what: sorted({name for name in names if name}) for what, names in (("writers", writers), ("judges", judges))}
    items = (item for some in load_crossed(data_folder("scenarios"), {})[0].values() for item in some)
    own = {(item.twin, item.reply_1, item.reply_2, item.reason) for item in items}
    texts = (cells(folder, "crossed", name) for name in ("source", "context_2", "reply_1", "reply_2", "reason"))
    brought = sum(of == "seed" and (turns[-1]["text"], *rest) not in own for of, turns, *rest in zip(*texts, strict=True))
    return {"curated": source.count("seed"), "brought": brought, "modelled": source.count("model"), **named}


def _columns(configs: dict[str, pa.Schema]) -> list[dict[str, Any]]:
    """Returns every column once, with its type, description and configs."""
    texts = read_yaml(data_folder("release") / "columns.yaml", "columns")
    kinds = {column.name: _kind(column.type) for schema in configs.values() for column in schema}
    holders = {name: [config for config, schema in configs.items() if name in schema.names] for name in kinds}
    return [{"name": name, "type": kind, "what": texts[name], "configs": holders[name]} for name, kind in kinds.items()]


def _kind(kind: pa.DataType) -> str:
    """Names a type as in ``list of {role, text}``."""
    if pa.types.is_list(kind):
        return f"list of {_kind(kind.value_type)}"
    if pa.types.is_struct(kind):
        return "{" + ", ".join(field.name for field in kind) + "}"
    return {"int64": "integer", "double": "number", "bool": "true or false"}.get(str(kind), "string")


def _example(folder: Path) -> str:
    """Returns the first row of ``pairs`` by turn, without flags if possible, as JSON with shortened texts."""
    files = files_of(folder, "pairs")

    def batches(columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        return (batch for path in files for batch in pq.ParquetFile(path).iter_batches(ROWS_AT_ONCE, columns=columns))

    rows = (row for batch in batches(["pair_id", "turn", "flags"]) for row in batch.to_pylist())
    shortest = min(((bool(row["flags"]), row["turn"], row["pair_id"]) for row in rows), default=None)
    if shortest is None:
        return "{}"
    matching = (row for batch in batches() for row in batch.filter(pc.equal(batch.column("pair_id"), shortest[2])).to_pylist())
    return json_text(_cut(next(matching)))


def _cut(value: Any) -> Any:
    """Shortens long texts of a JSON value at a word."""
    if isinstance(value, dict):
        return {name: _cut(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_cut(item) for item in value]
    return shorten(value, 160, placeholder=" …") if isinstance(value, str) else value


def _render(template: str, **values: Any) -> str:
    templates = environment(data_folder("release") / "card")
    templates.filters["before"] = predecessor_of
    return templates.get_template(template).render(**values).strip() + "\n"


LICENSE_URL = "https://creativecommons.org/licenses/by/4.0/"


def croissant_text(folder: Path, facts: dict[str, Any]) -> str:
    """Returns the text of ``croissant.json``: Croissant 1.1 metadata, with a record set for each config and split that has rows.

    Columns of structures (turns, contexts, messages) are left out: a Croissant reader takes texts, numbers and lists of them.
    """
    configs = configs_of(facts["counts"])
    filled = [(config, split) for config in configs for split in SPLITS if facts["counts"][config][split]]
    metadata = {
        "@context": json.loads((data_folder("release") / "card" / "croissant_context.json").read_text(encoding="utf-8")),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": facts["name"],
        "description": "A contrastive benchmark of emotional-support conversations: every helper turn with an apathetic near-copy and an "
        "empathetic reply in other words.",
        "version": facts["version"],
        "license": LICENSE_URL,
        **({"inLanguage": language} if (language := language_of(facts["configuration"])) != ENGLISH else {}),
        "url": "https://huggingface.co/docs/datasets",
        "creator": {"@type": "sc:Organization", "name": "The Empathy-Eval authors"},
        **({"datePublished": facts["date"]} if facts["date"] else {}),
        "distribution": [_file(folder, config, split) for config, split in filled],
        "recordSet": [_record_set(config, split, configs[config]) for config, split in filled],
    }
    return json_text(metadata) + "\n"


def _file(folder: Path, config: str, split: str) -> dict[str, Any]:
    path = f"data/{config}/{split}.parquet"
    name = f"{config}-{split}"
    return {
        "@type": "cr:FileObject", "@id": name, "name": name, "contentUrl": path,
        "encodingFormat": "application/x-parquet", "sha256": digest_file(folder / path),
    }  # fmt: skip


def _record_set(config: str, split: str, columns: pa.Schema) -> dict[str, Any]:
    name = f"{config}_{split}"
    descriptions = read_yaml(data_folder("release") / "columns.yaml", "columns")
    fields = [_field(column, descriptions[column.name], name, f"{config}-{split}") for column in columns if _plain(column.type)]
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}


def _plain(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind) or (pa.types.is_list(kind) and not pa.types.is_nested(kind.value_type))


def _field(column: pa.Field, what: str, record_set: str, file: str) -> dict[str, Any]:
    listed = pa.types.is_list(column.type)
    kind = column.type.value_type if listed else column.type
    data_type = {"int64": "sc:Integer", "double": "sc:Float", "bool": "sc:Boolean"}.get(str(kind), "sc:Text")
    return {
        "@type": "cr:Field", "@id": f"{record_set}/{column.name}", "name": column.name, "description": what, "dataType": data_type,
        **({"isArray": True, "arrayShape": "-1"} if listed else {}),
        "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
    }  # fmt: skip
