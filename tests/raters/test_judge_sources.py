"""Texts that are judged: of a build the very ones that its release holds, so that nothing is asked for again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.hashing import digest_file
from empathy_eval.commands.annotate import annotate
from empathy_eval.design.prompts import Message
from empathy_eval.raters.judges.annotations import read_annotations
from empathy_eval.raters.judges.cases import TEXTS, cases_of, describe_source, dialogues_of, source_of

from tests.doubles.judges import Judge


class Noted(Judge):
    """A judge that keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = list[str]()

    def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
        self.asked.append(json.dumps(messages))
        return super().answer(messages, answer_schema)


@pytest.fixture(scope="module")
def built(light: Path) -> Path:
    """The build of the light release, which takes all its dialogues."""
    return light.parent / "build"


@pytest.mark.parametrize("variants", [TEXTS, ("reference", "far_apathetic"), ("apathetic",)])
def test_a_build_has_the_cases_of_its_release_in_their_order(variants: tuple[str, ...], light: Path, built: Path) -> None:
    assert cases_of(source_of(built), None, variants) == cases_of(source_of(light), None, variants)
    assert cases_of(source_of(built), 7, variants) == cases_of(light, 7, variants)
    assert dialogues_of(source_of(built), None) == dialogues_of(source_of(light), None)
    assert sorted(source_of(built).turns()) == sorted(source_of(light).turns())


def test_controls_of_which_one_failed_are_none(built: Path, tmp_path: Path) -> None:
    def one_control_less(pair: dict[str, Any]) -> None:
        pair["near_empathetic"] = None

    other = changed(built, tmp_path / "b", lambda outcome: one_control_less(outcome["pairs"][0]))
    first = next(iter(source_of(other).turns()))
    assert not first.controls and set(next(source_of(other).texts({first.name}, TEXTS))[2]) == {"reference", "apathetic", "empathetic"}


def test_a_turn_without_the_texts_that_are_asked_for_is_not_judged_as_a_dialogue(built: Path, tmp_path: Path) -> None:
    def no_controls(outcome: dict[str, Any]) -> None:
        outcome["pairs"][0].update(near_empathetic=None, far_apathetic=None)

    other, out = changed(built, tmp_path / "b", no_controls), tmp_path / "a"
    left = cases_of(source_of(other), None, ("near_empathetic",))
    assert any(not one.texts for one in left), "the sample has all turns, those without controls last"
    annotate(other, out, rubric="three-point", model=Noted(), variants=["near_empathetic"], turns=None)
    cases = read_annotations(out).cases
    assert len(cases) == sum(bool(one.texts) for one in left)
    assert {one.variant for case in cases for one in case.ratings} == {"near_empathetic"}


def test_a_release_whose_train_split_is_empty_is_judged(light: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(light, tmp_path / "r"))
    path = copy / "data" / "pairs" / "train.parquet"
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    left = sum(pq.read_metadata(path.parent / f"{split}.parquet").num_rows for split in ("validation", "test"))
    assert len(list(source_of(copy).turns())) == left


def test_what_is_no_build_at_all_is_refused(tmp_path: Path) -> None:
    (tmp_path / "build.json").write_text("5")
    with pytest.raises(InputError):
        annotate(tmp_path, tmp_path / "a", rubric="teacher", model=Judge())


def test_a_judge_that_is_none_is_refused(light: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--model"):
        annotate(light, tmp_path / "a", rubric="teacher", model=None)


def test_of_a_partial_build_what_was_accepted_and_not_withdrawn_is_judged(built: Path, tmp_path: Path) -> None:
    def missing(outcome: dict[str, Any]) -> None:
        outcome.update(status="missing", reasons=["down"], dialogue=None, pairs=[], failures=[], candidates=[], usage={})

    whole = dialogues_of(source_of(built), None)
    other = changed(built, tmp_path / "b", missing)
    header = json.loads((other / "build.json").read_text())
    gone = {"dialogue_id": whole[0].dialogue_id, "kind": "error", "reason": "a test", "date": "2026-02-01"}
    header["configuration"]["withdrawn"] = [gone]
    (other / "build.json").write_text(json.dumps(header))
    left = {one.dialogue_id for one in dialogues_of(source_of(other), None)}
    assert left < {one.dialogue_id for one in whole} and whole[0].dialogue_id not in left
    assert {one.dialogue_id for one in cases_of(source_of(other), None)} == left


def changed(build: Path, folder: Path, change: Any) -> Path:
    """A build whose first outcome came out otherwise."""
    shutil.copytree(build, folder)
    first, *others = (json.loads(line) for line in (folder / "outcomes.jsonl").read_text().splitlines())
    change(first)
    (folder / "outcomes.jsonl").write_text("".join(json.dumps(one) + "\n" for one in (first, *others)))
    header = json.loads((folder / "build.json").read_text())
    (folder / "build.json").write_text(json.dumps({**header, "outcomes": digest_file(folder / "outcomes.jsonl")}))
    return folder


@pytest.mark.parametrize("rubric", ["teacher", "warmer", "strategies", "lend-an-ear"])
def test_what_was_said_of_a_build_is_reported_of_its_release_without_asking_again(
    rubric: str, light: Path, built: Path, tmp_path: Path
) -> None:
    judge = Noted()
    annotate(built, tmp_path / "b", rubric=rubric, model=judge, turns=3)
    asked = len(judge.asked)
    annotate(light, tmp_path / "r", rubric=rubric, model=judge, turns=3, ways={"ledger": tmp_path / "b" / "ledger.sqlite"})
    assert len(judge.asked) == asked > 0
    assert (tmp_path / "b" / "outcomes.jsonl").read_bytes() == (tmp_path / "r" / "outcomes.jsonl").read_bytes()
    of_build, of_release = (read_annotations(tmp_path / name).header["configuration"].pop("release") for name in ("b", "r"))
    header = json.loads((built / "build.json").read_text())
    assert of_build == {"name": header["configuration"]["name"], "outcomes": header["outcomes"]}
    assert (
        set(of_release) == {"name", "version", "seal"}
        and header["outcomes"] in describe_source(of_build)
        and of_release["seal"] in describe_source(of_release)
    )


def test_what_is_neither_a_release_nor_a_finished_build_is_reported(built: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither a release \(no manifest.json in it\) nor a finished build \(no build.json in it\)"):
        source_of(tmp_path)
    shutil.copy(built / "configuration.json", tmp_path)
    with pytest.raises(InputError, match="holds no finished build"):
        _ = source_of(tmp_path).named
    annotate(built, tmp_path / "a", rubric="warmer", model=Judge(), turns=1)
    with pytest.raises(InputError, match="holds annotations, not texts"):
        source_of(tmp_path / "a")
    other = Path(shutil.copytree(built, tmp_path / "b"))
    (other / "outcomes.jsonl").write_text("")
    with pytest.raises(InputError, match="was changed after the build"):
        _ = source_of(other).named
