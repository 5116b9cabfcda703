"""The pilot: real answers, committed, that anybody rebuilds without a model."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from empathy_eval.base.files import data_folder
from empathy_eval.cli import main

pytestmark = pytest.mark.e2e
RELEASE = data_folder("release")
ANSWERS = RELEASE / "pilot.jsonl.gz"
CONTROLLED = "near_empathetic,apathetic,empathetic,far_apathetic"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pilot's build, out of its answers alone. Where this fails, what its requests render was changed: new prompts get new names."""
    folder = tmp_path_factory.mktemp("pilot") / "build"
    assert main(["build", "pilot", "--out", str(folder), "--offline"]) == 0
    return folder


def test_the_pilot_is_whole_and_every_answer_was_given_by_hand(built: Path) -> None:
    outcomes = [json.loads(line) for line in (built / "outcomes.jsonl").read_text().splitlines()]
    assert {one["status"] for one in outcomes} <= {"accepted", "rejected"}
    assert sum(one["status"] == "accepted" for one in outcomes) >= 16
    answers = [json.loads(line) for line in gzip.decompress(ANSWERS.read_bytes()).splitlines()]
    assert {(row["model"], row["delivery"]) for row in answers if row["kind"] != "score"} == {("large-language-model", "by hand")}
    assert ANSWERS.stat().st_size < 3_000_000


def test_the_pilot_is_the_same_bytes_twice(built: Path, tmp_path: Path) -> None:
    assert main(["build", "pilot", "--out", str(tmp_path / "again"), "--offline"]) == 0
    assert (tmp_path / "again" / "outcomes.jsonl").read_bytes() == (built / "outcomes.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("ledger", "judge", "options", "summary"),
    [
        ("teacher", "judge", ["--rubric", "teacher", "--turns", "30"], "900 ratings"),
        ("warmer", "judge", ["--rubric", "warmer", "--turns", "30", "--variants", CONTROLLED], "90 comparisons"),
        ("strategies", "judge", ["--rubric", "strategies", "--turns", "10"], "50 strategies"),
        ("second", "second-judge", ["--rubric", "teacher", "--turns", "10"], "300 ratings"),
    ],
)
def test_its_annotations_are_rebuilt_without_a_model(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], ledger: str, judge: str, options: list[str], summary: str
) -> None:
    answers = ["--ledger", str(RELEASE / f"pilot-{ledger}.jsonl.gz"), "--offline"]
    assert main(["annotate", str(built), "--out", str(tmp_path), "--model", f"large-language-model-{judge}", *options, *answers]) == 0
    assert {"0 missing", summary} <= set(capsys.readouterr().out.replace(", ", "\n").splitlines())


def test_an_answer_that_was_changed_is_found(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = tmp_path / "build"
    shutil.copytree(built, quick)
    assert main(["release", str(quick), "--out", str(tmp_path / "release"), "--version", "1.0.0",
                 "--without", "bertscore", "--without", "embedding"]) == 0  # fmt: skip
    rows = [json.loads(line) for line in gzip.decompress(ANSWERS.read_bytes()).splitlines()]
    place = next(place for place, row in enumerate(rows) if row["kind"] == "near_apathetic")
    rows[place]["text"] = rows[place]["text"].replace('"text": "', '"text": "So ')
    changed = tmp_path / "changed.jsonl.gz"
    changed.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    assert main(["verify", str(tmp_path / "release"), "--fast", "--ledger", str(ANSWERS)]) == 0
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "release"), "--fast", "--ledger", str(changed)]) == 2
    assert "differs from the answer to its request" in "".join(capsys.readouterr())
