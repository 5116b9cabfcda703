"""Texts of a release are judged again: what a build refuses is named with its place, whatever else was made consistent."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from empathy_eval.design.dataset import CANDIDATES, SPLITS, file_of, read_manifest
from empathy_eval.releases.verify.content import content_faults
from empathy_eval.releases.verify.texts import checked_under

from tests.releases.test_verify import change_rows

Row = dict[str, Any]
HARM = "You should stop taking your medication and have a few drinks."


@pytest.fixture
def copy(light: Path, tmp_path: Path) -> Path:
    return shutil.copytree(light, tmp_path / "copy")


def said(folder: Path) -> list[str]:
    facts = read_manifest(folder)
    return [str(one) for one in content_faults(folder, facts, checked_under(folder, facts))]


def split_with(folder: Path, config: str, wanted: Callable[[Row], object] = bool) -> tuple[Path, int]:
    """The file and the place of the first such row."""
    files = [file_of(folder, config, split) for split in SPLITS]
    return next((path, place) for path in files for place, row in enumerate(pq.read_table(path).to_pylist()) if wanted(row))


def helper_of(row: Row) -> Row:
    return next(turn for turn in row["turns"] if turn["role"] == "helper")


@pytest.mark.e2e
def test_texts_that_were_built_pass(light: Path, seeds: Path, marred: Path) -> None:
    assert [text for folder in (light, seeds, marred / "release") for text in said(folder)] == []


FORGERIES: dict[str, tuple[str, Callable[[Row], object], str]] = {
    "harm in a variant": ("pairs", lambda row: row.update(empathetic=f"{row['empathetic']} {HARM}"), "unsafe_"),
    "harm in a helper turn": ("dialogues", lambda row: helper_of(row).update(text=f"{helper_of(row)['text']} {HARM}"), "unsafe_"),
    "a short helper turn": ("dialogues", lambda row: helper_of(row).update(text="I see."), "too_short"),
    "a short variant": ("pairs", lambda row: row.update(empathetic="Mm."), "too_short"),
    "white space": ("pairs", lambda row: row.update(empathetic=f"{row['empathetic']}\n"), "white space"),
    "a control sign": ("pairs", lambda row: row.update(empathetic=f"{row['empathetic']}\x07."), "holds U+0007, which nobody sees"),
    "a sign unseen": ("pairs", lambda row: row.update(empathetic=f"{row['empathetic']}\u200b."), "holds U+200B"),
    "a copy": ("pairs", lambda row: row.update(apathetic=row["reference"]), "edit_ratio_zero"),
    "a far text that is near": ("pairs", lambda row: row.update(empathetic=row["reference"]), "overlap_high"),
    "a near text that is far": ("pairs", lambda row: row.update(apathetic=row["empathetic"]), "edit_ratio_high"),
    "a flag dropped or made up": ("pairs", lambda row: row.update(flags=[] if row["flags"] else ["crisis"]), "is flagged"),
    "a dialogue's flag": ("dialogues", lambda row: row.update(flags=[] if row["flags"] else ["crisis"]), "is flagged"),
    "a first person": ("dialogues", lambda row: row.update(description=f"{row['description']} I know."), "description_person"),
    "another opening": ("dialogues", lambda row: row.update(description="A person is sad."), "description_opening"),
    "phases out of order": ("dialogues", lambda row: row.update(turns=row["turns"][::-1]), "phase"),
    "another phase": (
        "dialogues",
        lambda row: helper_of(row).update(phase="action"),
        "[phase] is 'action', but the rest of",
    ),
    "the same strategy": (
        "pairs",
        lambda row: row.update(empathetic_strategy=row["strategy"]),
        "another strategy of the same phase is required",
    ),
    "an unknown manner": ("pairs", lambda row: row.update(apathetic_manner="rude"), "which the taxonomy does not have"),
    "a ratio of a control": ("controls", lambda row: row.update(near_empathetic_edit_ratio=0.01), "near_empathetic_edit_ratio is '0.01'"),
    "an overlap of a control": ("controls", lambda row: row.update(far_apathetic_overlap=0.01), "far_apathetic_overlap is '0.01'"),
    "harm in a control": ("controls", lambda row: row.update(far_apathetic=HARM), "far_apathetic: unsafe_"),
    "a high toxicity": ("pairs", lambda row: row["toxicity"].update(empathetic=0.9), "at most 0.5 is allowed"),
    "harm in a crossed reply": ("crossed", lambda row: row.update(reply_2=HARM), "unsafe_"),
    "a crossed reply of twice the length": ("crossed", lambda row: row.update(reply_2=f"{row['reply_2']} " * 2), "curated"),
    "a crossed reply without end": ("crossed", lambda row: row.update(reply_2="word " * 20_000), "too_long"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_what_a_build_refuses_is_named(copy: Path, name: str) -> None:
    config, forge, what = FORGERIES[name]
    path, place = split_with(copy, config)
    change_rows(path, lambda rows: forge(rows[place]))
    assert any(what in one for one in said(copy)), said(copy)


def test_a_pointer_to_help_that_a_variant_lost_is_named(seeds: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(seeds, tmp_path / "copy")

    def lose(rows: list[Row]) -> None:
        for row in rows:
            if "crisis" in row["flags"]:
                row["empathetic"] = "All of that is heavy to carry, and it is good to put it into words."

    for split in SPLITS:
        change_rows(file_of(copy, "pairs", split), lose)
    assert any("pointer_lost" in one for one in said(copy))


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("config", "column", "what"),
    [
        ("dialogues", "description", "its texts are not those of the seed dialogue"),
        ("pairs", "empathetic", "is not that of the seed dialogue"),
        ("controls", "far_apathetic", "is not that of the seed dialogue"),
        ("crossed", "reason", "is not the crossed item of the seed dialogue"),
    ],
)
def test_a_text_that_passes_and_is_not_the_packaged_seeds_is_named(
    seeds: Path, tmp_path: Path, config: str, column: str, what: str
) -> None:
    copy = shutil.copytree(seeds, tmp_path / "copy")
    path, place = split_with(copy, config)
    change_rows(path, lambda rows: rows[place].update({column: f"{rows[place][column]} So it is."}))
    assert any(what in one for one in said(copy))


def test_a_text_that_the_rules_do_not_make_is_not_theirs(marred: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(marred / "release", tmp_path / "copy")
    path, place = split_with(copy, "pairs", lambda row: row["apathetic_method"] == "rules")
    change_rows(path, lambda rows: rows[place].update(apathetic=f"{rows[place]['apathetic']} Anyway."))
    assert any("is not what the rules make of its reference" in one for one in said(copy))


@pytest.mark.parametrize(
    ("text", "reasons", "what"),
    [
        ("reference", [], "nothing, but the checks give overlap_high"),
        ("empathetic", ["overlap_high"], "overlap_high, but the checks give nothing"),
        ("empathetic", ["unsafe_medication"], "unsafe_medication, but the checks give nothing"),
    ],
)
def test_a_text_that_was_not_released_is_refused_for_what_it_says(copy: Path, text: str, reasons: list[str], what: str) -> None:
    path, place = split_with(copy, "pairs")
    pair = pq.read_table(path).to_pylist()[place]
    row = {"pair_id": pair["pair_id"], "variant": "empathetic", "attempt": 1, "text": pair[text], "reasons": reasons}
    pq.write_table(CANDIDATES.empty_table().from_pylist([row], schema=CANDIDATES), copy / "candidates.parquet")
    assert any(pair["pair_id"] in one and what in one for one in said(copy)), said(copy)


def test_checks_of_ones_own_are_named_and_not_run(light: Path) -> None:
    manifest = read_manifest(light) | {"checks": {"no.such:thing": "version:1"}}
    assert ["no.such:thing" in str(one) for one in content_faults(light, manifest, None)] == [True]
