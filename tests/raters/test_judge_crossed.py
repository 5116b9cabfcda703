"""Judges on crossed items: each reply is read in each context, and the scores go where those of metrics are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import empathy_eval as ee
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.completions.models.custom import TextModel
from empathy_eval.design.prompts import Message
from empathy_eval.evaluation.crossed_items import read_items
from empathy_eval.raters.judges.annotations import read_annotations
from empathy_eval.raters.judges.cases import ReleaseTexts
from empathy_eval.raters.judges.judge_quality import crossed_quality

pytestmark = pytest.mark.unit


class Fitting(TextModel):
    """Gives 5 to a reply in its own context and 1 in the other; of every item in ``fooled`` the other way about in the second context."""

    in_flight = 1
    parameters: dict[str, Any] = {}

    def __init__(self, release: Path, fooled: set[str]) -> None:
        self.name, self.asked = "fitting", list[str]()
        self._values: dict[tuple[str, str], int] = {}
        for case in ReleaseTexts(release).crossed(None):
            for (name, text), fits in zip(case.texts.items(), (True, False, False, True), strict=True):
                wrong = case.pair_id in fooled and name.endswith("context_2")
                self._values[case.before(name)[-1][1], text] = 5 if fits != wrong else 1

    def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
        read = messages[1]["content"]
        self.asked.append("\n".join(message["content"] for message in messages))
        (value,) = {value for (turn, reply), value in self._values.items() if turn in read and read.rstrip().endswith(reply)}
        names = dict.fromkeys(re.findall(r'"criterion": "([^"]+)"', messages[0]["content"]))
        return json.dumps({"analysis": "", "ratings": [{"criterion": name, "value": value} for name in names]})


def test_the_figures_of_a_judge_on_crossed_items_follow_from_its_rule(light: Path, tmp_path: Path) -> None:
    items = read_items(light)
    assert items and len(items) > 2
    judge = Fitting(light, {items.ids[0]})
    ee.annotate(light, tmp_path / "a", rubric="overall", model=judge, turns=None, crossed=True)
    table = crossed_quality(tmp_path / "a", light)
    (row,) = table.metrics
    # One item is right in its first context alone, and each of its replies ties between its contexts.
    count = len(items)
    assert row.items == count and row.fitting and row.fitting.value == pytest.approx((count - 0.5) / count, abs=1e-6)
    assert row.both_right and row.both_right.value == pytest.approx((count - 1) / count, abs=1e-6)
    assert row.own_context and row.own_context.value == pytest.approx((count - 0.5) / count, abs=1e-6)
    assert "rubric_hash:s1-" in row.signature and "judge:fitting/overall" in row.signature and "samples:1" in row.signature
    (scores,) = (tmp_path / "a" / "scores").iterdir()
    measured = ee.score(light, ["length"], [scores], cache=False)
    assert [one.fitting for one in measured.crossed.metrics if one.metric == scores.stem] == [row.fitting]  # type: ignore[union-attr]
    assert not [one for one in judge.asked if "reply_1" in one or "context_2" in one]


def test_more_items_only_append_and_an_answered_item_is_not_asked_about_again(light: Path, tmp_path: Path) -> None:
    judge = Fitting(light, set())
    ee.annotate(light, tmp_path / "a", rubric="overall", model=judge, turns=1, crossed=True)
    assert len(judge.asked) == 4
    ee.annotate(light, tmp_path / "a", rubric="overall", model=judge, turns=2, crossed=True)
    cases = read_annotations(tmp_path / "a", crossed=True).cases
    assert len(judge.asked) == 8 and len(cases) == 2
    (row,) = crossed_quality(tmp_path / "a", light).metrics
    assert row.items == 2


def test_what_crossed_items_are_not_for_is_refused_at_once(light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["annotate", str(light), "--out", str(tmp_path / "a"), "--model", "m", "--base-url", "http://localhost:9/v1", "--crossed"]
    for rubric, more, words in (
        ("warmer", [], "rates replies of crossed items one by one"),
        ("lend-an-ear", [], "rates replies of crossed items one by one"),
        ("overall", ["--attacks", "echo"], "cannot be combined with --attacks"),
        ("overall", ["--variants", "reference"], "cannot be combined with --variants"),
        ("overall", ["--beside", str(tmp_path)], "not on crossed items"),
    ):
        assert main([*ask, "--rubric", rubric, *more]) == 2
        assert words in capsys.readouterr().err
    assert main([*ask[:1], str(light.parent / "build"), *ask[2:], "--rubric", "overall"]) == 2
    assert "this is a build" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_annotations_of_crossed_items_are_none_of_pairs(light: Path, tmp_path: Path) -> None:
    ee.annotate(light, tmp_path / "a", rubric="overall", model=Fitting(light, set()), turns=1, crossed=True)
    with pytest.raises(InputError, match="annotations of crossed items"):
        ee.score(light, annotations=[tmp_path / "a"], cache=False)
    with pytest.raises(InputError, match="holds annotations of crossed items"):
        ee.annotate(light, tmp_path / "a", rubric="overall", model=Fitting(light, set()), turns=1)


def test_items_of_turns_that_a_rubric_shows_are_left_out(light: Path) -> None:
    source = ReleaseTexts(light)
    every = source.crossed(None)
    shown = f"{every[0].dialogue_id}-t{every[0].turn:02d}"
    kept = source.crossed(None, frozenset({shown}))
    assert 0 < len(kept) < len(every) and not [
        case for case in kept if (case.dialogue_id, case.turn) == (every[0].dialogue_id, every[0].turn)
    ]
