"""The preview of annotations: what would be asked, to the request, and nothing of it is sent."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.completions.ledger import Ledger
from empathy_eval.design.prompts import Message
from empathy_eval.design.rubrics import load_rubric
from empathy_eval.generation.build import Run, build
from empathy_eval.raters.judges.annotating import AnnotationJob, AnnotationPlan, annotations_of
from empathy_eval.raters.judges.replay import preview

from tests.doubles.judges import Judge

GIVEN = {"kind": "given", "model": "judge", "endpoint": "own"}


class Noted(Judge):
    """A judge whose answers are good, and who keeps what it was asked."""

    def __init__(self, bad: float = 0.0) -> None:
        super().__init__(bad=bad)
        self.asked = list[str]()

    def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
        self.asked.append(json.dumps(messages))
        # Every scale has a 1.
        return super().answer(messages, answer_schema).replace('"value": 0', '"value": 1')


def job(light: Path, rubric: str, judge: Judge, turns: int | None = 4, samples: int = 1) -> AnnotationJob:
    return annotations_of(light, load_rubric(rubric), GIVEN, AnnotationPlan(turns, samples=samples), custom=judge)


def keys(ledger: Path) -> set[Any]:
    with Ledger(ledger, create=False) as opened:
        return {row[0] for row in opened.query("SELECT key FROM completions")}


@pytest.mark.e2e
@pytest.mark.parametrize(("rubric", "samples"), [("teacher", 2), ("epitome", 1), ("warmer", 1), ("strategies", 2), ("lend-an-ear", 1)])
def test_all_first_requests_are_shown_and_counted_and_none_is_sent(rubric: str, samples: int, light: Path, tmp_path: Path) -> None:
    judge = Noted()
    asked = job(light, rubric, judge, None, samples)
    first, some = preview(asked, None, len(asked.cases)), preview(asked, None, 1)
    assert not judge.asked and some.estimates == first.estimates and 0 < len(some.requests) < len(first.requests)
    assert some.requests == first.requests[: len(some.requests)] and not (first.answered or any(one.observed for one in first.estimates))
    build(asked, tmp_path / "a", Run())
    assert {one.key for one in first.requests} == keys(tmp_path / "a" / "ledger.sqlite")
    assert sum(one.requests for one in first.estimates) == len(first.requests) == len(judge.asked)
    assert sum(asked.least(case) for case in asked.cases) == len(judge.asked), "what is shown as the total while it runs"
    done = preview(asked, tmp_path / "a" / "ledger.sqlite", 0)
    assert (done.answered, done.requests, done.estimates) == (len(judge.asked), (), ())


def test_what_the_ledger_has_is_not_counted_again_and_its_averages_are_used(light: Path, tmp_path: Path) -> None:
    judge = Noted(bad=0.5)
    build(job(light, "teacher", judge, 3), tmp_path / "a")
    asked = job(light, "teacher", judge, 9)
    made = preview(asked, tmp_path / "a" / "ledger.sqlite", 0)
    answered, left = len(judge.asked), sum(len(case.texts) for case in asked.cases[3:])
    (estimate,) = made.estimates
    assert made.answered == answered > 15 and estimate.observed
    # Half of all first answers were bad and repaired: the same is expected of the rest.
    assert estimate.requests == round(left * answered / 15)


def test_equal_texts_of_a_turn_are_asked_about_once_and_counted_once(light: Path, tmp_path: Path) -> None:
    judge = Noted()
    asked = job(light, "teacher", judge, None)
    same = [replace(case, texts={**case.texts, "apathetic": case.texts["reference"]}) for case in asked.cases]
    twins = replace(asked, cases=tuple(same))
    assert [one.requests for one in preview(twins, None, 1).estimates] == [len(asked.cases) * 4]
    build(twins, tmp_path / "a")
    assert len(judge.asked) == len(set(judge.asked)) == len(asked.cases) * 4
    before = (tmp_path / "a" / "outcomes.jsonl").read_bytes()
    build(twins, tmp_path / "a", Run(offline=True))
    assert (tmp_path / "a" / "outcomes.jsonl").read_bytes() == before
