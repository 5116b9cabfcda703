"""The canary: in every file that holds texts, in no request, nothing else of a release is another for it; and where models say it."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest_file
from empathy_eval.cli import main
from empathy_eval.design.canary import canary_of, holds_canary, notice_of, release_identity
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.contrasts import PAIR_VARIANTS
from empathy_eval.design.dataset import column, read_manifest
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.build import build
from empathy_eval.raters.review.export import export_review
from empathy_eval.raters.review.sample import BETWEEN, ReviewDesign
from empathy_eval.releases.assemble.manifest import manifest_text, seal_manifest
from empathy_eval.releases.verify.verify import verify
from empathy_eval.reports.explorer import write_page

from tests.doubles.judge import JudgeServer
from tests.doubles.models import Recorder
from tests.doubles.replies import rows_for, written
from tests.doubles.server import Behaviour, running

# So much of the beginning of a text tells it.
BEGINNING = 50
DESIGNS = {
    "within": ReviewDesign(pairs=4, dialogues=2, crossed=2, raters=18),
    "cells": ReviewDesign(pairs=0, dialogues=0, cells=2, raters=12),
    "between": ReviewDesign(pairs=3, dialogues=0, raters=4, per_rater=2, design=BETWEEN),
}


def beginnings(folder: Path) -> set[str]:
    """How the texts of a release begin, as far as they are long."""
    turns = [turn["text"] for turns in column(folder, "dialogues", "turns") for turn in turns]
    texts = [text for name in ("reference", *PAIR_VARIANTS) for text in column(folder, "pairs", name)] + turns
    return {text[:BEGINNING] for text in texts if len(text) >= BEGINNING}


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(one)


def decoded(path: Path) -> str:
    """What a file says, whatever its form: its texts as they are."""
    data = path.read_bytes()
    match path.suffix:
        case ".parquet":
            return "\n".join(strings(pq.read_table(path).to_pylist()))
        case ".json" | ".jsonl":
            return "\n".join(one for line in ([data] if path.suffix == ".json" else data.splitlines()) for one in strings(json.loads(line)))
        case ".csv":
            return "\n".join(cell for row in csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")) for cell in row)
        case ".xlsx":
            with zipfile.ZipFile(path) as book:
                return html.unescape("\n".join(book.read(name).decode() for name in book.namelist()))
        case ".html":
            page = data.decode()
            held = [json.loads(one) for one in re.findall(r'<script type="application/json" id="(?:data|sample)">([^<]*)<', page)]
            files = [pq.read_table(pa.BufferReader(base64.b64decode(one))) for some in held for one in some.get("files", {}).values()]
            return "\n".join([html.unescape(page), *strings(held), *strings([table.to_pylist() for table in files])])
    return data.decode(errors="replace")


def with_texts(folder: Path, known: set[str]) -> set[str]:
    """The files below a folder that hold a text, each of which holds the canary too."""
    found = set()
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        said = decoded(path)
        if any(text in said for text in known):
            found.add(path.relative_to(folder).as_posix())
            notice = canary_of("empathy-eval-demo").encode()
            assert notice in path.read_bytes() or notice.decode() in said, f"{path} holds texts and no canary"
    return found


def test_every_file_of_a_release_that_holds_a_text_holds_the_canary(light: Path, tmp_path: Path) -> None:
    found = with_texts(light, beginnings(light))
    pages = {"README.md", "report/index.html", "report/tables.json", "explore/index.html"}
    assert (
        pages
        | {"data/pairs/train.parquet", "data/controls/train.parquet", "data/preferences_far/train.parquet", "data/crossed/train.parquet"}
        <= found
    )
    write_page(light, tmp_path / "page.html")
    assert with_texts(tmp_path, beginnings(light)) == {"page.html"}
    assert pq.read_schema(light / "data/dialogues/test.parquet").metadata == {b"canary": str(notice_of(read_manifest(light))).encode()}


@pytest.mark.parametrize("kind", [*DESIGNS, "replies"])
def test_every_file_of_a_review_that_holds_a_text_holds_the_canary(kind: str, light: Path, tmp_path: Path) -> None:
    replies = written(tmp_path / "replies.csv", rows_for(light)) if kind == "replies" else None
    export_review(light, tmp_path / "review", DESIGNS.get(kind, ReviewDesign(pairs=4, dialogues=1, raters=18)), replies_file=replies)
    found = with_texts(tmp_path / "review", beginnings(light))
    forms = {"review.html", "rater-01.csv", "rater-01.xlsx", "label-studio/replies/tasks.json"}
    assert {f"raters/rater-01/{form}" for form in forms} <= found
    assert any(name.endswith("dialogues/tasks.json") for name in found) == (kind in ("within", "replies"))


def test_no_request_of_a_build_or_of_a_judge_and_no_template_holds_it(
    light: Path, demo: Configuration, catalogue: Catalogue, prompts: Prompts, tmp_path: Path
) -> None:
    model = Recorder(catalogue)
    build(Recipe(demo, catalogue, prompts, dict.fromkeys(("self_chat", "near", "far"), model)), tmp_path / "build")
    asked = [json.dumps(one.body) for one in model.requests]
    with running(server=JudgeServer(Behaviour())) as server:
        for source, rubric in ((light, "teacher"), (tmp_path / "build", "warmer")):
            given = ["--rubric", rubric, "--model", "judge-1", "--turns", "2", "--base-url", server.url]
            assert main(["annotate", str(source), "--out", str(tmp_path / rubric), *given]) == 0
        assert isinstance(server, JudgeServer)
        judged = [json.dumps(one) for one in server.received]
    assert len(asked) > 20 < len(judged)
    templates = [one.read_text() for one in data_folder("prompt_templates").rglob("*") if one.is_file()]
    canary = canary_of("empathy-eval-demo")
    assert len(templates) > 5 and not [one for one in (*asked, *judged, *templates) if holds_canary(one, canary)]
    assert all(canary in (tmp_path / name / "build.json").read_text() for name in ("teacher", "warmer"))


def test_what_is_loaded_is_the_same_as_without_it(light: Path, tmp_path: Path) -> None:
    bare = Path(shutil.copytree(light, tmp_path / "bare"))
    for path in bare.rglob("*.parquet"):
        pq.write_table(pq.read_table(path).replace_schema_metadata(), path)
    for config in ("pairs", "preferences_near"):
        ours, theirs = (datasets.load_dataset(str(one), config, cache_dir=str(tmp_path / one.name)) for one in (light, bare))
        assert ours.keys() == theirs.keys() and ours
        for split in ours:
            assert ours[split].features == theirs[split].features and list(ours[split]) == list(theirs[split])


def test_the_canary_hangs_on_the_name_alone(light: Path, demo: Configuration) -> None:
    assert release_identity(demo.published) == {"name": "empathy-eval-demo", "canary": read_manifest(light)["canary"]}
    again = seal_manifest(read_manifest(light) | {"version": "9.0.0", "date": "2030-01-01", "counts": {}})
    assert notice_of(again) == notice_of(read_manifest(light)) and canary_of("empathy-eval-demo") != canary_of("empathy-eval-full")


@pytest.mark.e2e
def test_verify_names_each_file_that_lacks_it_and_another_canary_than_that_of_the_name(light: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(light, tmp_path / "release"))

    def said(**manifest: Any) -> str:
        value = {**read_manifest(light), **manifest}
        value["files"] = {name: digest_file(folder / name) for name in value["files"]}
        (folder / "manifest.json").write_text(manifest_text(seal_manifest(value)))
        return "\n".join(map(str, verify(folder, fast=True)))

    assert said() == ""
    assert 'canary: "6f06064a' not in said() and "is not the canary of" in said(canary=canary_of("another"))
    for name in ("data/pairs/test.parquet", "provenance.parquet", "report/items.parquet"):
        pq.write_table(pq.read_table(folder / name).replace_schema_metadata(), folder / name)
        assert f"{folder / name}: does not hold the line with the canary" in said()
    for name in ("README.md", "report/index.html", "report/tables.json"):
        (folder / name).write_text((folder / name).read_text().replace(canary_of("empathy-eval-demo"), "0"))
        assert f"{folder / name}: does not hold the line with the canary" in said()


def scored(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[list[str], str]:
    """The field of what is printed, and what is told beside."""
    assert main(["score", *map(str, arguments), "--no-cache", "--no-shortcuts", "--json"]) == 0
    out, err = capsys.readouterr()
    found: list[str] = json.loads(out)["canary"]
    assert [f"warning: {one}" for one in found] == [line for line in err.splitlines() if line.startswith("warning: ")]
    return found, err


def test_score_warns_where_an_output_holds_it_and_not_of_contexts(light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notice = str(notice_of(read_manifest(light)))
    rows = [{"item": "a", "context": notice, "reply": "Yes."}, {"item": "b", "context": "So?", "reply": "That hurts."}]
    own = written(tmp_path / "own.jsonl", rows)
    assert scored(capsys, own, "--metric", "length")[0] == []
    written(own, [*rows, {"item": "c", "context": "So?", "reply": f"I know: {notice.upper()}"}])
    (found,) = scored(capsys, own, "--metric", "length")[0]
    assert f"1 outputs, first in {own}: line 3" in found and "training data" in found
    pairs = column(light, "pairs", "pair_id")
    table = [{"pair_id": pair, "variant": name, "score": at, notice: ""} for pair in pairs for at, name in enumerate(PAIR_VARIANTS)]
    judge = written(tmp_path / "judge.csv", table)
    assert scored(capsys, light, "--scores", judge)[0] == [], "the head of a table is no output"
    table[4] = {**table[4], notice: canary_of("empathy-eval-demo")}
    written(judge, table)
    assert f"first in {judge}: line 6" in scored(capsys, light, "--scores", judge)[0][0]


def test_annotate_and_score_warn_of_a_judge_that_says_it(light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Trained(JudgeServer):
        """One that has read it."""

        def good(self, body: dict[str, Any], name: str) -> dict[str, Any]:
            return super().good(body, name) | {"analysis": f"as in {canary_of('empathy-eval-demo')}"}

    with running(server=Trained(Behaviour())) as server:
        given = ["--rubric", "teacher", "--model", "judge-1", "--turns", "2", "--base-url", server.url]
        assert main(["annotate", str(light), "--out", str(tmp_path / "judged"), *given]) == 0
    assert "warning: the canary occurs in 2 outputs" in capsys.readouterr().err
    found, _ = scored(capsys, light, "--annotations", tmp_path / "judged", "--metric", "length")
    assert len(found) == 1 and f"first in {tmp_path / 'judged' / 'outcomes.jsonl'}: line 1" in found[0]


def test_an_export_says_which_replies_hold_it(light: Path, tmp_path: Path) -> None:
    rows = rows_for(light)
    rows[1]["text"] += canary_of("empathy-eval-demo")
    made = export_review(light, tmp_path / "r", DESIGNS["within"], replies_file=written(tmp_path / "replies.jsonl", rows))
    assert any(note.startswith("1 replies contain the canary") for note in made.sample.notes)
