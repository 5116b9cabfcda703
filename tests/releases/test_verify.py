"""Tampering: whatever is changed in a release, ``verify`` names it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.hashing import digest_file
from empathy_eval.design.dataset import cells, files_of
from empathy_eval.metrics.lexical import RougeL
from empathy_eval.metrics.protocol import Array
from empathy_eval.metrics.scoring import ScoreCache, Scoring
from empathy_eval.releases.assemble.manifest import manifest_text, seal_manifest
from empathy_eval.releases.verify.verify import verify
from empathy_eval.reports.documents import croissant_text

from tests.doubles.papers_anew import told_anew


@pytest.fixture
def copy(lexical: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(lexical, tmp_path / "release"))


def said(folder: Path, *, fast: bool = False) -> str:
    return "\n".join(map(str, verify(folder, fast=fast)))


def rehash(folder: Path, **manifest: Any) -> None:
    """What somebody would do who wants a change to go unseen."""
    path = folder / "manifest.json"
    value = json.loads(path.read_text()) | manifest
    (folder / "croissant.json").write_text(croissant_text(folder, value))
    value["files"] = {name: digest_file(folder / name) for name in value["files"]}
    path.write_text(manifest_text(seal_manifest(value)))


def change_rows(path: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    table = pq.read_table(path)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)


def rewritten(folder: Path, copy: Path, change: Callable[[pa.Table], pa.Table]) -> Path:
    """A copy of a release whose pairs and controls are other tables."""
    shutil.copytree(folder, copy)
    for config in ("pairs", "controls"):
        for path in files_of(copy, config):
            pq.write_table(change(pq.read_table(path)), path)
    rehash(copy)
    return copy


@pytest.mark.parametrize("config", ["pairs", "controls"])
def test_a_null_is_refused_in_a_column_of_texts(config: str, light: Path, tmp_path: Path) -> None:
    def emptied(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index("reference")
        return table.set_column(place, table.schema.field(place), pa.array([None] * len(table), pa.string()))

    copy = rewritten(light, tmp_path / "r", emptied)
    with pytest.raises(InputError, match='the column "reference" does not hold what the data contract says'):
        list(cells(copy, config, "reference"))


@pytest.mark.e2e
def test_a_release_is_what_it_claims_and_no_kept_score_is_believed(lexical: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Poisoned(ScoreCache):
        def __init__(self) -> None: ...

        def get(self, keys: Sequence[bytes]) -> dict[bytes, Array]:
            return {key: np.ones(2) for key in keys}

    monkeypatch.setattr(RougeL, "keep", True)
    assert verify(lexical, scoring=Scoring(Poisoned())) == []


@pytest.mark.e2e
def test_one_byte_in_any_file_is_named(lexical: Path, copy: Path) -> None:
    names = [path.relative_to(lexical).as_posix() for path in lexical.rglob("*") if path.is_file()]
    assert len(names) > 15
    for name in names:
        content = bytearray((lexical / name).read_bytes())
        content[len(content) // 2] ^= 0x01
        (copy / name).write_bytes(content)
        assert name in said(copy, fast=True), name
        (copy / name).write_bytes((lexical / name).read_bytes())
    assert verify(copy, fast=True) == []


def test_all_faults_come_at_once_and_a_file_too_many_or_too_few_is_one(copy: Path) -> None:
    (copy / "LICENSE").unlink()
    (copy / "CHANGELOG.md").write_text("nothing")
    (copy / "data" / "extra.parquet").touch()
    found = said(copy)
    assert "LICENSE: is missing" in found and "CHANGELOG.md: is not the file" in found and "extra.parquet: is not in the manifest" in found


@pytest.mark.parametrize(("config", "column"), [("pairs", "apathetic"), ("pairs", "pair_id"), ("dialogues", "dialogue_id")])
def test_a_missing_value_is_seen_beside_other_faults(config: str, column: str, copy: Path) -> None:
    change_rows(copy / "data" / config / "test.parquet", lambda rows: rows[0].update({column: None}))
    change_rows(copy / "data" / "preferences" / "test.parquet", lambda rows: rows[0].update(chosen=[]))
    rehash(copy)
    found = said(copy, fast=True)
    assert f"{config}/test.parquet: row 0: {column}" in found and "preferences/test.parquet: row 0: chosen" in found


def test_a_manifest_that_cannot_be_sealed_is_seen(copy: Path) -> None:
    path = copy / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "name": "\ud800"}))
    assert "manifest.json" in said(copy, fast=True)


def test_a_moved_row_and_a_repeated_one_are_seen(copy: Path) -> None:
    moved: list[dict[str, Any]] = []
    change_rows(copy / "data" / "dialogues" / "test.parquet", lambda rows: moved.append(rows.pop()))
    change_rows(copy / "data" / "dialogues" / "train.parquet", lambda rows: rows.extend([*moved, rows[0]]))
    counts = json.loads((copy / "manifest.json").read_text())["counts"]
    counts["dialogues"]["test"] -= 1
    counts["dialogues"]["train"] += 2
    rehash(copy, counts=counts)
    found = said(copy, fast=True)
    assert "belongs to the split test by its id" in found and "or is there twice" in found and "has no dialogue in this place" in found


def test_a_renamed_column_is_seen(copy: Path) -> None:
    path = copy / "data" / "pairs" / "test.parquet"
    table = pq.read_table(path)
    pq.write_table(table.rename_columns(["empathic" if name == "empathetic" else name for name in table.column_names]), path)
    rehash(copy)
    assert 'has other columns than the data contract: "empathetic", "empathic"' in said(copy, fast=True)


@pytest.mark.e2e
def test_a_doctored_number_in_the_report_is_seen_unless_fast(copy: Path) -> None:
    path = copy / "report" / "tables.json"
    tables = json.loads(path.read_text())
    tables["inversion"][1]["scores"]["empathetic"] = 0.9
    tables["groups"]["phase"]["action"][0]["differences"]["stance"]["p"] = 0.9
    tables["groups"]["manner"]["hurrying"][0]["differences"]["stance"]["accuracy"]["value"] = 1.5
    tables["ways"]["manners"][0]["near"] = 0
    tables["lengths"]["variants"][0]["counts"][8] += 1
    told_anew(copy, tables)
    assert said(copy, fast=True) == ""
    found = said(copy)
    assert "tables.json: inversion: ROUGE-L: scores: empathetic: says 0.9, but the data gives" in found
    assert "tables.json: groups: phase: action: BLEU-4: differences: stance: p: says 0.9" in found
    assert "tables.json: groups: manner: hurrying: BLEU-4: differences: stance: accuracy: value: says 1.5" in found
    assert "tables.json: ways: manners: 0: near: says 0, but the data gives" in found
    assert "tables.json: lengths: variants: 0: counts: 8: says" in found


def test_a_folder_that_is_no_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a release"):
        verify(tmp_path)
