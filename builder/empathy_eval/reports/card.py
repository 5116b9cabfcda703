"""Dataset card, changelog and ``eval.yaml`` of a release."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import shorten
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from empathy_eval.base.files import data_folder
from empathy_eval.base.json_text import json_text
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.templates import environment
from empathy_eval.design.canary import notice_of
from empathy_eval.design.dataset import SPLITS, cells, configs_of, files_of
from empathy_eval.design.errata import predecessor_of
from empathy_eval.design.scenarios import CrossedItem, load_crossed
from empathy_eval.reports.claims import claims, shortcut_line
from empathy_eval.reports.page import glossary_terms
from empathy_eval.reports.report import Report

ROWS_AT_ONCE = 1000


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
    own = {_item_texts(item) for some in load_crossed(data_folder("scenarios"), {})[0].values() for item in some}
    texts = (cells(folder, "crossed", name) for name in ("source", "context_2", "reply_1", "reply_2", "reason"))
    brought = sum(of == "seed" and (turns[-1]["text"], *rest) not in own for of, turns, *rest in zip(*texts, strict=True))
    return {"curated": source.count("seed"), "brought": brought, "modelled": source.count("model"), **named}


def _item_texts(item: CrossedItem) -> tuple[str, str, str, str]:
    return item.twin, item.reply_1, item.reply_2, item.reason


def _columns(configs: dict[str, pa.Schema]) -> list[dict[str, Any]]:
    """Returns every column once, with its type, description and configs."""
    texts = read_yaml(data_folder("release") / "columns.yaml", "columns")
    kinds = {column.name: _kind(column.type) for schema in configs.values() for column in schema}
    return [
        {"name": name, "type": kind, "what": texts[name], "configs": [config for config, schema in configs.items() if name in schema.names]}
        for name, kind in kinds.items()
    ]


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


def changelog_text(facts: dict[str, Any]) -> str:
    """Returns the text of ``CHANGELOG.md``."""
    return _render("changelog.md.j2", facts=facts)


def eval_text(facts: dict[str, Any]) -> str:
    """Returns the text of ``eval.yaml``: the tasks that the Hub lists for a benchmark."""
    return _render("eval.yaml.j2", facts=facts)


def _render(template: str, **values: Any) -> str:
    templates = environment(data_folder("release") / "card")
    templates.filters["before"] = predecessor_of
    return templates.get_template(template).render(**values).strip() + "\n"
