"""The range of a model's training texts: a text outside of it is told by reasons of a kind, and one inside is not told of."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from empathy_eval.cli import main
from empathy_eval.design.dataset import file_of
from empathy_eval.metrics.empathy_score.model import EmpathyScore, TrainingRange, read_model
from empathy_eval.metrics.protocol import RangeAware, Segments

INSIDE = "You loved her for many years, and I think that the house is quiet now, even in the morning. Would you tell me more?"
SCRIPT, LANGUAGE = "most letters are not Latin", "hardly any common English words: another language, or no sentences"
SHORT, LONG = "shorter than all training texts (14 words)", "longer than all training texts (67 words)"
FEATURES = "features outside of the range of the training texts"


def reasons(*texts: str, metric: EmpathyScore | None = None) -> list[list[str]]:
    found = (metric or EmpathyScore()).outside(Segments(texts, [""] * len(texts), [[]] * len(texts)))
    return [[reason for row, reason in found if row == place] for place in range(len(texts))]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (INSIDE, []),
        (INSIDE.replace("her", "Ζωή"), []),
        ("You can get one.", [SHORT]),
        (" ".join([INSIDE] * 4), [LONG]),
        ("Das tut mir so leid. Ich kann mir vorstellen, wie schwer das gerade für Sie ist.", [LANGUAGE]),
        ("Je suis vraiment désolé. On comprend que ce soit difficile, tu as dû te sentir seul.", [LANGUAGE]),
        ("Мне очень жаль. Представляю, как вам сейчас очень тяжело, и понимаю, что вы устали.", [SCRIPT]),
        ("我很难过，你一定很辛苦。", [SCRIPT, SHORT]),
        ("", [SHORT]),
    ],
)
def test_language_and_length_are_reported_by_kind(text: str, said: list[str]) -> None:
    assert [reason for reason in reasons(text)[0] if not reason.startswith(FEATURES)] == said


def test_features_beyond_all_training_texts_are_reported_with_how_many_are_cut() -> None:
    minimising = "At least it is only a job, it is just a job, and at least you still have all that you had before."
    cut = f"{FEATURES}, 1 of them cut by the model"
    assert reasons(INSIDE, minimising) == [[], [cut]]


def test_what_is_within_the_clip_is_outside_and_not_cut_and_without_ranges_nothing_is() -> None:
    folder = read_model("plain")
    told = TrainingRange.of(folder)
    place = folder.config["features"]["names"].index("you")
    # Two of 23 words speak to the seeker; had no training text more than one of twenty, that would be outside.
    high = np.where(np.arange(len(told.high)) == place, 0.05, told.high)
    assert replace(told, high=high).outside(Segments([INSIDE], [""])) == [(0, FEATURES)]
    bare = replace(folder, config={**folder.config, "training_range": {**folder.config["training_range"], "features": {}}}, arrays={})
    assert TrainingRange.of(bare).outside(Segments([INSIDE.replace(".", "!")], [""])) == []
    other = replace(told, languages=["de"])
    assert other.outside(Segments(["Das tut mir so leid. Ich kann mir vorstellen, wie schwer das gerade für Sie ist."], [""])) == []


def test_no_text_that_it_was_trained_on_is_outside(seeds: Path) -> None:
    rows = pq.read_table(file_of(seeds, "pairs", "train")).to_pylist()
    texts = [row[name] for row in rows for name in ("reference", "apathetic")]
    contexts = [row["context"] for row in rows for _ in range(2)]
    metric = pickle.loads(pickle.dumps(EmpathyScore()))  # noqa: S301 (our own)
    assert isinstance(metric, RangeAware) and metric.outside(Segments(texts, [""] * len(texts), contexts)) == []


def test_score_counts_what_is_outside_by_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, texts = tmp_path / "replies.jsonl", [INSIDE, "You can get one.", "Get one."]
    path.write_text("".join(json.dumps({"context": "My cat died.", "reply": text}) + "\n" for text in texts))
    assert main(["score", str(path), "--metric", "empathyscore"]) == 0
    said = capsys.readouterr().out
    assert f"2 of 3 texts are outside of what it was made for: {SHORT}; first line 2, line 3" in said
