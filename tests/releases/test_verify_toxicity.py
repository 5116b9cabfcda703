"""Toxicity: every released score is the scorer's own, and what is not scored again is told."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from empathy_eval.completions.models.toxicity_scorer import load_scorer
from empathy_eval.design.configuration import ToxicityConfig
from empathy_eval.design.dataset import CANDIDATES, file_of, read_manifest
from empathy_eval.releases.verify import texts as verify_toxicity
from empathy_eval.releases.verify.texts import toxicity_faults

from tests.releases.test_verify import change_rows

Rows = list[dict[str, Any]]
INSULT = "You are a stupid worthless piece of shit, and everybody laughs at you."
SCORER = ToxicityConfig("alt-profanity-check", 0.5)


@pytest.fixture
def copy(light: Path, tmp_path: Path) -> Path:
    return shutil.copytree(light, tmp_path / "copy")


def of(folder: Path, **changes: Any) -> dict[str, Any]:
    """A manifest, of another scorer where there are changes."""
    manifest = read_manifest(folder)
    if changes:
        manifest["configuration"]["checks"]["toxicity"] = changes
    return manifest


def insult_and_its_score(rows: Rows) -> None:
    rows[0]["empathetic"] = INSULT
    rows[0]["toxicity"]["empathetic"] = round(float(load_scorer(SCORER)([INSULT])[0]), 4)


def turn_without_a_pair(rows: Rows) -> None:
    rows[0]["turns"] += [{**rows[0]["turns"][1], "role": "helper", "text": INSULT}]


@pytest.mark.parametrize(
    ("config", "forge", "said"),
    [
        ("pairs", lambda rows: rows[0]["toxicity"].update(apathetic=0.1234), "apathetic has the toxicity"),
        ("pairs", lambda rows: rows[0].update(empathetic=INSULT), "empathetic has the toxicity"),
        ("pairs", insult_and_its_score, "at most 0.5 is allowed"),
        ("controls", lambda rows: rows[0].update(far_apathetic_toxicity=0.4999), "far_apathetic has the toxicity 0.4999"),
        ("dialogues", turn_without_a_pair, "at most 0.5 is allowed"),
        ("crossed", lambda rows: rows[0].update(reply_2=INSULT), "reply_2 has a text whose toxicity"),
    ],
)
def test_a_score_that_is_not_of_its_text_is_named_with_its_place_and_both_numbers(
    copy: Path, config: str, forge: Callable[[Rows], object], said: str
) -> None:
    path = next(one for split in ("train", "test") if pq.read_metadata(one := file_of(copy, config, split)).num_rows)
    change_rows(path, forge)
    (found,) = toxicity_faults(copy, of(copy))
    assert found.where.startswith(f"{copy}: ") and said in found.what, found


@pytest.mark.parametrize(
    ("text", "reasons", "said"),
    [
        (INSULT, ["toxic"], ""),
        (INSULT, ["overlap_high"], "at most 0.5 is allowed"),
        ("I hear you.", ["toxic"], 'refused as "toxic"'),
    ],
)
def test_a_candidate_is_refused_as_toxic_where_it_is(copy: Path, text: str, reasons: list[str], said: str) -> None:
    row = {"pair_id": "017-seed-t03", "variant": "empathetic", "attempt": 1, "text": text, "reasons": reasons}
    pq.write_table(CANDIDATES.empty_table().from_pylist([row], schema=CANDIDATES), copy / "candidates.parquet")
    found = [*toxicity_faults(copy, of(copy))]
    assert len(found) == bool(said) and all(said in one.what for one in found), found


def test_a_text_has_the_same_score_in_a_batch_and_alone(light: Path) -> None:
    texts = pq.read_table(file_of(light, "pairs", "train"))["apathetic"].to_pylist() + [INSULT]
    score = load_scorer(SCORER)
    assert [*score(texts)] == [score([text])[0] for text in texts]


def test_what_is_scored_in_several_batches_is_found_in_each(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_toxicity, "BATCH", 5)
    change_rows(file_of(copy, "pairs", "train"), lambda rows: [rows[place]["toxicity"].update(reference=0.4567) for place in (0, -1)])
    assert len([*toxicity_faults(copy, of(copy))]) == 2


def test_other_weights_are_told_and_nothing_is_scored(light: Path) -> None:
    (told,) = toxicity_faults(light, {**of(light), "toxicity_weights": "0" * 64})
    assert told.severity != "fault" and "000000000000" in told.what


def test_where_nothing_was_scored_nothing_is_told(light: Path) -> None:
    manifest = of(light)
    manifest["configuration"]["checks"]["toxicity"] = "none"
    assert [*toxicity_faults(light, manifest)] == []


def test_no_weights_are_loaded_by_a_path_that_a_manifest_names(light: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_toxicity, "load_scorer", lambda config: pytest.fail("weights are loaded"))
    for path in ({}, {"checkpoint": "theirs.ckpt"}, {"config": "theirs"}, {"checkpoint": "theirs.ckpt", "config": "theirs"}):
        (told,) = toxicity_faults(light, of(light, scorer="detoxify", at_most=0.5, **path))
        assert told.severity != "fault" and "at a path" in told.what
