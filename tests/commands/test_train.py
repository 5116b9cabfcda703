"""The verb train: what it prints and writes, and what it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path

import empathy_eval as ee
import pytest
from empathy_eval.cli import main
from empathy_eval.training.train import TrainedModel

from tests.doubles.encoders import made_encoder


def test_a_model_is_trained_reported_and_scored_with(light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "model"
    assert main(["train", str(light), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert f"model: {out}, plain, from " in said and "(reference>apathetic) of empathy-eval-demo 0.1.0, train" in said
    first = {path.name: path.read_bytes() for path in out.iterdir()}
    assert main(["train", str(light), "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["config"]["kind"] == "plain" and {path.name: path.read_bytes() for path in out.iterdir()} == first
    assert told["metrics"] == json.loads(first["metrics.json"])
    assert main(["score", str(light), "--metric", f"empathyscore:model={out}", "--no-shortcuts", "--no-cache"]) == 0
    assert "EmpathyScore (model)" in capsys.readouterr().out


def test_a_model_of_all_splits_knows_nothing_of_its_worth(light: Path, tmp_path: Path) -> None:
    seen: list[int] = []
    splits = ["train", "validation", "test"]
    made = ee.train(light, tmp_path / "model", contrasts="equal-closeness", split=splits, progress=seen.append)
    assert isinstance(made, TrainedModel) and made.metrics["splits"] == {} and made.config["splits"] == splits
    assert sum(seen) == made.metrics["trained_on"]["pairs"] > 0
    assert "nothing is known of texts that it has not seen" in " ".join((tmp_path / "model" / "README.md").read_text().split())


@pytest.mark.parametrize("out, said", [("plain", "the name of a packaged model"), (".", "no name of its own"), ("file", "something other")])
def test_a_place_that_no_model_can_have_is_refused_before_anything_is_learned(
    out: str, said: str, light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    monkeypatch.setattr("empathy_eval.training.plain.train", None)
    assert main(["train", str(light), "--out", out]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_of_something_else_is_left_alone(light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text("{}")
    (other / "checksums.txt").write_text("mine")
    assert main(["train", str(light), "--out", str(other)]) == 2
    assert "holds something other than a model of EmpathyScore" in capsys.readouterr().err
    assert sorted(path.name for path in other.iterdir()) == ["checksums.txt", "config.json"]


def test_bad_input_exits_with_2_and_writes_nothing(light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "model"
    for arguments in ([str(tmp_path)], [str(light), "--contrasts", "kind>cold"]):
        assert main(["train", *arguments, "--out", str(out)]) == 2
        assert "Fix:" in capsys.readouterr().err and not out.exists()


def test_a_kind_that_there_is_not_is_reported_alone_with_the_nearest(light: Path, tmp_path: Path) -> None:
    for more in ({}, {"teacher": "NAME"}):
        with pytest.raises(ee.InputError) as caught:
            ee.train(light, tmp_path / "model", kind="student", **more)  # type: ignore[arg-type]
        (problem,) = caught.value.problems
        assert problem.what == '"student" is not known' and problem.fix.endswith('plain, encoder, students; did you mean "students"?')


def test_what_a_kind_does_not_take_is_reported_at_once(light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--teacher", "NAME", "--encoder", "x", "--shared", "--max-tokens", "64", "--objective", "ranking", "--also", "a.csv", "b.csv"]
    assert main(["train", str(light), "--out", str(tmp_path / "model"), *given]) == 2
    said = capsys.readouterr().err
    for name in ("teacher", "encoder", "shared", "max-tokens", "objective", "also"):
        assert f"--{name}: does not apply to the kind plain" in said
    assert "use --kind students or encoder" in said and not (tmp_path / "model").exists()


@pytest.mark.e2e
def test_students_without_a_teacher_are_trained_and_their_accuracy_reported(light: Path, tmp_path: Path) -> None:
    encoder, out = made_encoder(tmp_path / "tiny"), tmp_path / "model"
    made = ee.train(light, out, kind="students", encoder=encoder, max_tokens=32)
    assert isinstance(made, TrainedModel) and made.config["parts"] == ["content"] and made.config["contrasts"] == ["reference>apathetic"]
    assert made.config["settings"]["objective"] == "ranking" and set(made.metrics["training"]["losses"]) == {"loss", "content ranking"}
    card = (out / "README.md").read_text()
    assert "Learned from pairs of texts" in card and "| encoder | tiny, SHA-256" in card
    rated = ee.score(light, [f"empathyscore:model={out}"], shortcuts=False)
    assert "EmpathyScore (model)" in str(rated)
