"""A release of chosen candidates: what words alone reach then, what travels with it, and which exchanges are found."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from empathy_eval.base.hashing import digest
from empathy_eval.base.text import overlap as overlap_of
from empathy_eval.commands.annotate import annotate
from empathy_eval.commands.shortcuts import shortcut_table
from empathy_eval.design.contrasts import RAW, STANCE, STANCE_FAR, STANCE_NEAR
from empathy_eval.design.dataset import CANDIDATES, PROVENANCE, TEXT_HASH, files_of, read_manifest
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.design.word_list import NOT_CHOSEN, WORD_LIST
from empathy_eval.evaluation.corpus.pairs import read_candidates, read_corpus
from empathy_eval.evaluation.inversion.results import records
from empathy_eval.evaluation.shortcuts.shortcuts import audit
from empathy_eval.generation.build import Run, build
from empathy_eval.releases.assemble.manifest import file_hashes, manifest_text, seal_manifest
from empathy_eval.releases.assemble.write import release
from empathy_eval.releases.inspect.show import InspectionInputs, rejected, show
from empathy_eval.releases.verify.verify import verify

from tests.conftest import copy_world
from tests.doubles import made_once
from tests.doubles.judges import Judge
from tests.doubles.papers_anew import papers_anew, preferences_anew
from tests.doubles.telling import PLAIN, WORDS, Telling, telling, telltale

Row = dict[str, Any]
MANY: dict[str, Any] = {"candidates": 4, "word_list": str(WORDS)}


@pytest.fixture(scope="session")
def chosen(tmp_path_factory: pytest.TempPathFactory, prompts: Prompts) -> Path:
    """A folder with the world, the build of four candidates and its release."""

    def make(folder: Path) -> None:
        catalogue = load_catalogue(copy_world(folder / "scenarios"))
        build(telling(folder, catalogue, prompts, Telling(catalogue), **MANY), folder / "b")
        release(folder / "b", folder / "release", "0.1.0")

    return made_once.copied(tmp_path_factory, "chosen", make)[0]


@pytest.fixture
def copy(chosen: Path, tmp_path: Path) -> Path:
    return shutil.copytree(chosen / "release", tmp_path / "copy")


def rows(folder: Path, config: str) -> list[Row]:
    return [row for path in files_of(folder, config) for row in pq.read_table(path).to_pylist()]


def resealed(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    manifest = json.loads(folder.with_name("manifest").read_text())
    papers_anew(folder, manifest)
    manifest["files"] = file_hashes(folder)
    (folder / "manifest.json").write_text(manifest_text(seal_manifest(manifest)))


def forged(folder: Path, paths: list[Path], change: Callable[[Row], Row]) -> None:
    """Rows changed as somebody would who wants it to go unseen."""
    folder.with_name("manifest").write_bytes((folder / "manifest.json").read_bytes())
    for path in paths:
        table = pq.read_table(path)
        made = table.to_pylist()
        pq.write_table(table.from_pylist([change(row) for row in made], table.schema), path)
    preferences_anew(folder)
    resealed(folder)


def test_words_alone_fall_from_what_first_samples_give_away_to_chance(chosen: Path) -> None:
    found = audit(chosen / "release")
    controls, pairs = rows(chosen / "release", "controls"), rows(chosen / "release", "pairs")
    # The far texts of a pair are the same but for the telltale word: where one has it words alone are right, elsewhere it is a tie.
    first = Fraction(sum(telltale(row["turn"], 0) for row in controls), len(controls))
    assert 0 < first < 1 and all(row["empathetic"] == row["far_apathetic"] == PLAIN for row in controls)
    before = {one.contrast: one for one in found.first}
    after = {one.contrast: next(row for row in one.shortcuts if row.name == "words alone") for one in found.contrasts}

    def value(shortcut: Any) -> float:
        return float(shortcut.accuracy.value)

    assert value(before[STANCE_FAR].shortcut) == pytest.approx(float((1 + first) / 2), abs=1e-6)
    assert value(after[STANCE_FAR]) == float(Fraction(1, 2))
    assert before[STANCE_FAR].others == before[STANCE].others == first * len(controls)
    assert before[RAW].others == sum(telltale(row["turn"], 0) for row in pairs)
    # Near candidates are all one text.
    assert before[STANCE_NEAR].others == 0 and value(before[STANCE_NEAR].shortcut) == value(after[STANCE_NEAR])
    near = Fraction(value(after[STANCE_NEAR]))
    assert value(before[STANCE].shortcut) == pytest.approx(float((near + (1 + first) / 2) / 2), abs=1e-6)
    assert "another text in" in shortcut_table(found)
    assert "words alone, first samples" in {one["shortcut"] for one in found.records()}
    tables = json.loads((chosen / "release" / "report" / "tables.json").read_text())
    firsts = [one for one in records(tables) if one["table"] == "shortcuts" and one["metric"] == "words alone, first samples"]
    assert {one["contrast"]: one["accuracy"] for one in firsts} == {name: value(one.shortcut) for name, one in before.items()}
    assert f"another text in {before[STANCE].others} of all pairs" in next(one["told"] for one in firsts if one["contrast"] == STANCE)


@pytest.mark.e2e
def test_what_the_choice_needs_travels_with_the_release_and_is_told(chosen: Path) -> None:
    folder = chosen / "release"
    manifest, said = read_manifest(folder), json.loads((folder / WORD_LIST).read_text())
    assert manifest["configuration"]["word_list"] == digest(said) == digest(json.loads(WORDS.read_text()))
    assert manifest["configuration"]["candidates"] == 4 and WORD_LIST in manifest["files"]
    card, page = (folder / "README.md").read_text(), (folder / "report" / "index.html").read_text()
    assert "up to 4 candidates" in card and digest(said) in card
    assert "First samples and chosen samples" in page and str(WORDS) not in (folder / "manifest.json").read_text()
    made = pq.read_table(folder / "provenance.parquet")
    assert made.schema.names == [*PROVENANCE.names, TEXT_HASH]
    known = {(row["pair_id"], row["what"]): row[TEXT_HASH] for row in made.to_pylist()}
    for row in rows(folder, "pairs"):
        assert known[row["pair_id"], "empathetic"] == hashlib.sha256(row["empathetic"].encode()).hexdigest()
    held = pq.read_table(folder / "candidates.parquet")
    assert held.schema.equals(CANDIDATES) and {tuple(one) for one in held.column("reasons").to_pylist()} == {(NOT_CHOSEN,)}
    assert verify(folder) == []


def test_one_candidate_leaves_no_trace_in_a_release(light: Path) -> None:
    assert not (light / WORD_LIST).exists() and "word list" not in (light / "README.md").read_text()
    assert pq.read_schema(light / "provenance.parquet").names == PROVENANCE.names
    assert "first_samples" not in json.loads((light / "report" / "tables.json").read_text())["shortcuts"]


def test_the_same_ledger_gives_the_same_release(chosen: Path, tmp_path: Path, prompts: Prompts) -> None:
    catalogue = load_catalogue(chosen / "scenarios")
    run = Run(ledger=chosen / "b" / "ledger.sqlite", offline=True)
    build(telling(tmp_path, catalogue, prompts, Telling(catalogue), **MANY), tmp_path / "b", run)
    release(tmp_path / "b", tmp_path / "release", "0.1.0")
    assert file_hashes(tmp_path / "release") == file_hashes(chosen / "release")


@pytest.mark.e2e
def test_what_judges_said_of_chosen_texts_is_released_beside_their_provenance(chosen: Path, tmp_path: Path) -> None:
    annotate(chosen / "release", tmp_path / "said", rubric="teacher", model=Judge(), turns=2)
    release(chosen / "b", tmp_path / "release", "0.1.0", annotations=[tmp_path / "said"])
    before, after = (pq.read_table(one / "provenance.parquet") for one in (chosen / "release", tmp_path / "release"))
    assert after.slice(0, len(before)).equals(before), "and the requests of judges are below"
    below = after.slice(len(before)).to_pylist()
    assert below and {(row["what"], row[TEXT_HASH]) for row in below} == {("annotation", None)}
    assert verify(tmp_path / "release", fast=True) == []


def test_a_text_that_was_not_chosen_in_the_place_of_one_that_was_is_found(copy: Path) -> None:
    """A far text with the telltale word goes where the one without it was, in one file after the other."""
    told = f"{PLAIN} Telltale."
    row = next(row for row in rows(copy, "pairs") if not telltale(row["turn"], 0))
    name, text = row["pair_id"], {"empathetic": told}

    def exchanged(row: Row) -> Row:
        if row.get("pair_id") != name:
            return row
        if "chosen" in row:
            return {**row, "chosen": [{"role": "assistant", "content": told}]}
        overlap = {"empathetic_overlap": overlap_of(row["reference"], told)} if "empathetic_overlap" in row else {}
        return {**row, **text, **overlap}

    forged(copy, [path for config in ("pairs", "controls", "preferences") for path in files_of(copy, config)], exchanged)
    found = [one for one in verify(copy, fast=True) if name in one.what]
    assert any('empathetic": text_sha256 is ' in one.what for one in found), found
    hashed = hashlib.sha256(told.encode()).hexdigest()
    forged(
        copy,
        [copy / "provenance.parquet"],
        lambda row: {**row, TEXT_HASH: hashed} if (row["pair_id"], row["what"]) == (name, "empathetic") else row,
    )
    # The dialogue is held whole by variant too, and the first fault of a dialogue names it.
    found = [one for one in verify(copy, fast=True) if name.rpartition("-t")[0] in one.what]
    assert any("but the rest of the release gives" in one.what or "where the rest of the release gives" in one.what for one in found), found


@pytest.mark.parametrize(
    "file, change, said",
    [
        (WORD_LIST, lambda text: text.replace('"telltale": 3000000', '"telltale": -3000000'), "is not the word list that"),
        (WORD_LIST, lambda text: text[:-9], "is not JSON"),
    ],
)
def test_a_word_list_that_is_another_or_broken_is_found(copy: Path, file: str, change: Callable[[str], str], said: str) -> None:
    path = copy / file
    path.write_text(change(path.read_text()))
    forged(copy, [], lambda row: row)
    assert [said in one.what for one in verify(copy, fast=True)] == [True]


def test_a_manifest_of_several_candidates_that_names_no_word_list_is_refused_in_words(copy: Path) -> None:
    manifest = read_manifest(copy)
    del manifest["configuration"]["word_list"]
    (copy / "manifest.json").write_text(manifest_text(seal_manifest(manifest)))
    assert any("configuration" in one.where and 'misses "word_list"' in one.what for one in verify(copy, fast=True))


def test_numbers_that_leave_no_place_for_the_released_text_are_found(copy: Path) -> None:
    forged(copy, [copy / "candidates.parquet"], lambda row: {**row, "attempt": row["attempt"] + 4})
    assert any("where the rest of the release gives" in one.what for one in verify(copy, fast=True))


def test_before_the_contrast_checks_stands_nothing_that_was_not_chosen(copy: Path) -> None:
    released = read_corpus(copy, "pairs", ("apathetic", "empathetic"))
    assert read_candidates(copy, released) is None
    name = released.pair_ids[0]

    def refused(attempt: int) -> Callable[[Row], Row]:
        def change(row: Row) -> Row:
            mine = (row["pair_id"], row["variant"], row["attempt"]) == (name, "apathetic", attempt)
            return {**row, "text": "Refused.", "reasons": ["edit_ratio_high"]} if mine else row

        return change

    # Of the apathetic variant the first is released: what was refused after it was not in its place.
    forged(copy, [copy / "candidates.parquet"], refused(2))
    assert read_candidates(copy, released) is None
    first = next(row for row in rows(copy, "pairs") if not telltale(row["turn"], 3) and telltale(row["turn"], 0))
    assert first["empathetic"] == PLAIN

    def change(row: Row) -> Row:
        mine = row["pair_id"] == first["pair_id"] and row["variant"] == "empathetic" and row["attempt"] == before
        return {**row, "text": "Refused.", "reasons": ["overlap_high"]} if mine else row

    before = [telltale(first["turn"], number) for number in range(4)].index(False)
    forged(copy, [copy / "candidates.parquet"], change)
    found = read_candidates(copy, released)
    assert found and found.corpus.pair_ids == [first["pair_id"]] and found.corpus.variants["empathetic"] == ["Refused."]


def test_show_tells_the_candidates_with_their_scores(chosen: Path) -> None:
    row = next(row for row in rows(chosen / "release", "pairs") if telltale(row["turn"], 0))
    beside = InspectionInputs(scenarios=chosen / "scenarios")
    for folder in (chosen / "b", chosen / "release"):
        shown = show(folder, row["pair_id"], beside)
        told = next(one for one in shown.texts if one.name == "empathetic")
        others = [one for one in shown.refused if one.name == "empathetic"]
        scores = [next(figure.value for figure in one.figures if figure.name == "words alone tell it") for one in (told, *others)]
        assert scores[0] == 0.0 and sorted(scores[1:]) == [0.0, 3.0, 3.0]
        assert all("which passed its checks" in one.origin and one.reasons == (NOT_CHOSEN,) for one in others)
    asked = [one for one in show(chosen / "b", row["pair_id"], beside).requests if one.kind == "far_empathetic"]
    assert sorted(one.verdict for one in asked) == ["not chosen"] * 3 + ["taken"] and not any(one.note for one in asked)
    assert len(list(rejected(chosen / "b", NOT_CHOSEN, beside))) == pq.read_metadata(chosen / "release" / "candidates.parquet").num_rows
