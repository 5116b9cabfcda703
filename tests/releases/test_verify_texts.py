"""Texts of a release are judged again: what a build refuses is named with its place, whatever else was made consistent."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from empathy_eval.design.dataset import CANDIDATES, SPLITS, file_of, read_manifest
from empathy_eval.design.prompts import Prompts
from empathy_eval.releases.verify.content import content_faults
from empathy_eval.releases.verify.texts import load_text_checks

from tests.doubles import made_once
from tests.doubles.forger import honest
from tests.releases.test_verify import change_rows

Row = dict[str, Any]
HARM = "You should stop taking your medication and have a few drinks."


@pytest.fixture(scope="module")
def forged(tmp_path_factory: pytest.TempPathFactory, prompts: Prompts) -> Path:
    """A release whose variants a model wrote."""
    return made_once.copied(tmp_path_factory, "forged", lambda folder: honest(folder, prompts))[0] / "release"


@pytest.fixture
def copy(light: Path, tmp_path: Path) -> Path:
    return shutil.copytree(light, tmp_path / "copy")


def said(folder: Path) -> list[str]:
    facts = read_manifest(folder)
    return [str(one) for one in content_faults(folder, facts, load_text_checks(folder, facts))]


def split_with(folder: Path, config: str, wanted: Callable[[Row], object] = bool) -> tuple[Path, int]:
    """The file and the place of the first such row."""
    files = [file_of(folder, config, split) for split in SPLITS]
    return next((path, place) for path in files for place, row in enumerate(pq.read_table(path).to_pylist()) if wanted(row))


@pytest.mark.e2e
def test_texts_that_were_built_pass(light: Path, seeds: Path, marred: Path) -> None:
    assert [text for folder in (light, seeds, marred / "release") for text in said(folder)] == []


# What is told where a text is one of a model's; in the place of a packaged seed's text none but that is taken.
FORGERIES: dict[str, tuple[str, Callable[[Row], object], str]] = {
    "harm in a variant": ("pairs", lambda row: row.update(empathetic=f"{row['empathetic']} {HARM}"), "unsafe_"),
    "a short variant": ("pairs", lambda row: row.update(empathetic="Mm."), "too_short"),
    "a sign unseen": ("pairs", lambda row: row.update(empathetic=f"{row['empathetic']}\u200b."), "holds U+200B"),
    "a copy": ("pairs", lambda row: row.update(apathetic=row["reference"]), "edit_ratio_zero"),
    "a far text that is near": ("pairs", lambda row: row.update(empathetic=row["reference"]), "overlap_high"),
    "a flag dropped or made up": ("pairs", lambda row: row.update(flags=[] if row["flags"] else ["crisis"]), "flags is"),
    "a dialogue's flag": ("dialogues", lambda row: row.update(flags=[] if row["flags"] else ["crisis"]), "flags is"),
    "the same strategy": ("pairs", lambda row: row.update(empathetic_strategy=row["strategy"]), "empathetic_strategy is"),
    "a high toxicity": ("pairs", lambda row: row["toxicity"].update(empathetic=0.9), "at most 0.5 is taken"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_what_a_build_refuses_is_named(forged: Path, name: str, tmp_path: Path) -> None:
    config, forge, what = FORGERIES[name]
    copy = Path(shutil.copytree(forged, tmp_path / "forged"))
    path, place = split_with(copy, config)
    change_rows(path, lambda rows: forge(rows[place]))
    assert any(what in one for one in said(copy)), said(copy)


@pytest.mark.e2e
def test_a_text_that_is_not_the_packaged_seeds_is_named_whether_it_passes_or_not(seeds: Path, tmp_path: Path) -> None:
    places = [("dialogues", "description"), ("pairs", "empathetic"), ("controls", "far_apathetic"), ("crossed", "reason")]
    for config, column in places:
        copy = shutil.copytree(seeds, tmp_path / config)
        path, place = split_with(copy, config)
        change_rows(path, lambda rows, at=place, name=column: rows[at].update({name: f"{rows[at][name]} So it is."}))  # type: ignore[misc]
        assert any(f"/{config}/" in one and column in one for one in said(copy)), config


def test_a_text_that_the_rules_do_not_make_is_not_theirs(marred: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(marred / "release", tmp_path / "copy")
    path, place = split_with(copy, "pairs", lambda row: row["apathetic_method"] == "rules")
    change_rows(path, lambda rows: rows[place].update(apathetic=f"{rows[place]['apathetic']} Anyway."))
    assert any("apathetic is" in one or "text_sha256" in one for one in said(copy))


@pytest.mark.parametrize(
    ("text", "reasons", "what"),
    [
        ("reference", [], "003-seed-t01"),
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
