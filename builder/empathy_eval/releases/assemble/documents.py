"""What is read beside the data of a release, by the name of its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest_file
from empathy_eval.base.json_text import json_text
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import SPLITS, configs_of
from empathy_eval.reports.card import card_text, changelog_text, eval_text
from empathy_eval.reports.report import Report

LICENSE_URL = "https://creativecommons.org/licenses/by/4.0/"


def croissant_text(folder: Path, facts: dict[str, Any]) -> str:
    """What ``croissant.json`` says: Croissant 1.1 metadata, a record set for each config and split that has rows.

    Columns that hold structures (turns, contexts, messages) are left out: a Croissant reader takes texts, numbers and lists of them.
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
    told = read_yaml(data_folder("release") / "columns.yaml", "columns")
    fields = [_field(column, told[column.name], name, f"{config}-{split}") for column in columns if _plain(column.type)]
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


def papers(folder: Path, facts: dict[str, Any], report: Report) -> dict[str, str]:
    """Card, changelog, description for machines, licence; all follows from the data, the report and the manifest.

    Args:
        folder: a release whose data is written.
        facts: its manifest, or as much of it as is known while the release is written: all but ``files`` and ``seal``.
        report: its report, or what its tables tell of it.
    """
    return {
        "README.md": card_text(folder, facts, report),
        "CHANGELOG.md": changelog_text(facts),
        "croissant.json": croissant_text(folder, facts),
        **({"eval.yaml": eval_text(facts)} if asks_to_choose(facts) else {}),
        "LICENSE": (data_folder("release") / "DATA_LICENSE").read_text(encoding="utf-8"),
    }


def asks_to_choose(facts: dict[str, Any]) -> bool:
    """Whether a release has what a model is asked to choose from: a list of no tasks is no benchmark's."""
    return bool({"preferences_near", "preferences_far", "crossed"} & facts["counts"].keys())
