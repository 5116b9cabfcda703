"""A release that was made to harm: whatever it holds is told in words, and nothing is read, sent or run beyond it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.base import tabular
from empathy_eval.base.errors import InputError, Problem
from empathy_eval.cli import main
from empathy_eval.releases.assemble.manifest import manifest_text, seal_manifest
from empathy_eval.releases.hub.publish import publish
from empathy_eval.releases.verify.verify import verify
from empathy_eval.reports.report import report

from tests.releases.test_verify import change_rows, copy, rehash, said

__all__ = ["copy"]


def change_manifest(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "manifest.json"
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


@pytest.mark.parametrize("name", ["README.md", "data/pairs/test.parquet", "report/extra.txt"])
def test_a_link_that_leads_out_is_neither_read_nor_sent(name: str, copy: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (copy / name).unlink(missing_ok=True)
    (copy / name).symlink_to(tmp_path / "secret")
    rehash(copy)
    assert f"{copy / name}: is a link that leads out of the release" in said(copy, fast=True)
    with pytest.raises(InputError, match="leads out of the release"):
        publish(copy, "my-lab/x", dry_run=True, faults=lambda _: [])


def test_a_link_within_a_release_and_one_that_leads_to_itself_are_no_way_out(copy: Path) -> None:
    (copy / "README.md").rename(copy / "report" / "card.md")
    (copy / "README.md").symlink_to("report/card.md")
    (copy / "report" / "loop").symlink_to("loop")
    found = [Problem(str(copy / "report" / name), "is not in the manifest", "remove it from the release") for name in ("card.md", "loop")]
    assert said(copy, fast=True) == "\n".join(map(str, found))


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "data/../../secret"])
def test_a_file_that_the_manifest_names_elsewhere_is_missing(name: str, copy: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    change_manifest(copy, lambda value: value["files"].update({name: "0" * 64}))
    path = copy / "manifest.json"
    path.write_text(manifest_text(seal_manifest(json.loads(path.read_text()))))
    assert "is missing" in said(copy, fast=True)


@pytest.mark.e2e
def test_names_of_files_do_nothing_to_a_terminal(copy: Path) -> None:
    (copy / "data" / "\x1b[2J\u202eevil").touch()
    os.close(os.open(os.fsencode(copy / "data") + b"/\xff", os.O_CREAT))
    run = "import sys; from empathy_eval.cli import main; sys.exit(main([*sys.argv[1:], '--json']) * 3 + main(sys.argv[1:]))"
    told = subprocess.run(
        [sys.executable, "-c", run, "verify", "--fast", str(copy)], capture_output=True, cwd=Path(__file__).parent.parent.parent
    )
    assert told.returncode == 2 * 3 + 2 and b"Traceback" not in told.stderr and b"\x1b" not in told.stdout
    found, end = json.JSONDecoder().raw_decode(told.stdout.decode())
    assert len(found) == 2 and told.stdout.decode()[end:].strip()


@pytest.mark.parametrize(
    "change",
    [
        lambda one: [],
        lambda one: {},
        lambda one: "tables",
        lambda one: {**one, "inversion": {}},
        lambda one: {**one, "inversion": [None]},
        lambda one: {**one, "inversion": [{"metric": 7}]},
        lambda one: {**one, "matched": []},
        lambda one: {**one, "groups": {"phase": []}},
        lambda one: {**one, "balance": [{**one["inversion"][0], "differences": {"x": None}}]},
        lambda one: {**one, "inversion": [{**one["inversion"][0], "scores": {"x": 10**400}}]},
        lambda one: {**one, "inversion": [{**one["inversion"][0], "scores": {"x": float("nan")}}]},
        lambda one: {**one, "lengths": {"deep": json.loads("[" * 500 + "]" * 500)}},
        lambda one: {**one, "about": "\ud800"},
        lambda one: {**one, "about": "x" * 10**6},
    ],
)
def test_tables_of_any_shape_are_told(change: Callable[[Any], Any], copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copy / "report" / "tables.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    rehash(copy)
    found = verify(copy)
    assert found and all("tables.json" in one.where and len(one.what) < 500 for one in found)
    assert main(["diff", str(copy), str(copy)]) in (0, 2)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{",
        "[" * 100_000,
        '{"a": NaN}',
        '{"a": ' + "1" * 5000 + "}",
        '{"a": "\\ud800"}',
        "\x00",
        '{"version": 1}',
        "\udcff",
    ],
)
def test_a_manifest_of_any_shape_is_told(text: str, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copy / "manifest.json").write_bytes(text.encode(errors="surrogateescape"))
    assert "manifest.json" in said(copy, fast=True)
    arguments = ["report", "--out", str(tmp_path / "r"), "--no-cache"], ["score", "--metric", "bleu", "--no-cache"]
    for verb, *more in (*arguments, ["review", "export", "--out", str(tmp_path / "x")], ["publish", "--repo", "a/b", "--dry-run"]):
        words = [verb, more.pop(0)] if verb == "review" else [verb]
        assert main([*words, str(copy), *more]) == 2
    assert "manifest.json" in capsys.readouterr().err


def test_files_that_are_no_text_are_told(copy: Path) -> None:
    for name in ("README.md", "report/index.html"):
        before = (copy / name).read_bytes()
        (copy / name).write_bytes(b"\xff\xfe")
        rehash(copy)
        assert f"{name}: cannot be read" in said(copy)
        (copy / name).write_bytes(before)


def test_a_group_of_rows_that_memory_cannot_hold_is_told(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tabular, "MOST_ROWS", 3)
    assert "data/pairs/train.parquet: group 0 has" in said(copy, fast=True)
    assert main(["report", str(copy), "--out", str(tmp_path / "r"), "--no-cache"]) == 2
    assert "a group has at most 3 rows" in capsys.readouterr().err


def test_rows_without_values_and_texts_that_are_no_texts_are_told(copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change_rows(copy / "data" / "dialogues" / "test.parquet", lambda rows: rows[0].update(turns=[None, None]))
    change_rows(copy / "data" / "controls" / "test.parquet", lambda rows: rows[0].update(pair_id="999-seed-t03"))
    path = copy / "data" / "pairs" / "train.parquet"
    table = pq.read_table(path)
    raw = pa.array([b"\xff\xfe"] * len(table), pa.binary()).view(pa.string())
    pq.write_table(table.set_column(table.schema.get_field_index("empathetic"), table.schema.field("empathetic"), raw), path)
    rehash(copy)
    for arguments in (["verify"], ["verify", "--fast"], ["score", "--metric", "bleu"], ["report", "--out", str(tmp_path / "r")]):
        assert main([arguments[0], str(copy), *arguments[1:]]) == 2
    assert "Invalid UTF8" in capsys.readouterr().err


@pytest.mark.e2e
@pytest.mark.parametrize(
    "row",
    [
        {"pair_id": "x", "variant": "apathetic", "attempt": 0, "text": "a", "reasons": []},
        {"pair_id": "017-seed-t9999", "variant": "apathetic", "attempt": 0, "text": "a", "reasons": ["edit_ratio"]},
        {"pair_id": "017-seed-t03", "variant": "apathetic", "attempt": 0, "text": None, "reasons": ["edit_ratio"]},
    ],
)
def test_candidates_of_any_shape_are_told(row: dict[str, Any], copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copy / "candidates.parquet"
    pq.write_table(pa.Table.from_pylist([row], schema=pq.read_schema(path)), path)
    rehash(copy)
    for arguments in (["verify"], ["score", "--metric", "bleu", "--no-cache"]):
        assert main([arguments[0], str(copy), *arguments[1:]]) in (0, 2)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.e2e
def test_markup_in_a_release_stays_text_on_the_page(copy: Path, tmp_path: Path) -> None:
    evil = '<script>alert("x")</script>'
    for config in ("pairs", "dialogues", "controls"):
        for path in (copy / "data" / config).glob("*.parquet"):
            change_rows(path, lambda rows: [row.update(scenario=evil) for row in rows])
    change_manifest(copy, lambda value: value.update(name=evil, software={evil: evil}))
    report(copy, tmp_path / "r")
    page = (tmp_path / "r" / "index.html").read_text()
    assert "<script" not in page and "&lt;script&gt;" in page
