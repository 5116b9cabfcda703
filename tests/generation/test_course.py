"""The course of a run: requests against their total, known better with every item that is begun and ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from empathy_eval.base.errors import JobError
from empathy_eval.completions.budget import Spent
from empathy_eval.completions.requests import Completion, NoAnswer, Request
from empathy_eval.design.configuration import Configuration, load_configuration
from empathy_eval.design.kinds import FAR_EMPATHETIC
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.build import Run, build
from empathy_eval.generation.job import Dialogues
from empathy_eval.generation.summary import RunProgress, Summary

from tests.conftest import demo_file
from tests.doubles.models import Recorder


@pytest.fixture
def recipe(demo: Configuration, catalogue: Catalogue, prompts: Prompts) -> Recipe:
    return Recipe(demo, catalogue, prompts)


def followed(recipe: Recipe, out: Path, run: Run) -> list[tuple[int, int, int]]:
    """After each item: how many are begun, how many requests are answered, and how many there will be."""
    seen = list[tuple[int, int, int]]()

    def note(summary: Summary) -> None:
        counts = run.course.counts()
        seen.append((counts["begun"], counts["answered"], run.course.expected()))

    build(recipe, out, replace(run, progress=note))
    return seen


def test_the_total_of_requests_is_that_of_the_plan_and_in_the_end_what_it_took(recipe: Recipe, tmp_path: Path) -> None:
    job = Dialogues(recipe)
    least, run = [job.least(item) for item in job.items()], Run(window=1)
    seen = followed(recipe, tmp_path / "b", run)
    # One item at a time: what is not begun is taken to be as those that are. No rule is asked for, and no answer of the seeds is bad.
    assert seen == [
        (1, least[0], 3 * least[0]),
        (2, sum(least[:2]), round(1.5 * sum(least[:2]))),
        (3, sum(least), sum(least)),
    ]
    assert run.course.summary and run.course.summary.requests == sum(least) == 83
    again = Run()
    assert followed(recipe, tmp_path / "b", again)[-1] == (3, 83, 83)
    assert again.course.counts() == Counter(begun=3, expected=83, answered=83, replayed=83, accepted=3)


class Curt(Recorder):
    """Answers the first far request of each dialogue badly once, or none of them."""

    def __init__(self, catalogue: Catalogue, *, silent: bool) -> None:
        super().__init__(catalogue)
        self.silent, self.spoilt = silent, set[str]()

    async def complete(self, request: Request) -> Completion:
        if self.silent:
            raise NoAnswer("not now")
        answer = await super().complete(request)
        if request.about.kind == FAR_EMPATHETIC.name and request.about.dialogue_id not in self.spoilt:
            self.spoilt.add(request.about.dialogue_id)
            return replace(answer, text="{}")
        return answer


@pytest.mark.parametrize("silent", [False, True])
def test_repairs_add_to_the_total_and_what_is_missing_stays_in_it(
    silent: bool, recipe: Recipe, catalogue: Catalogue, tmp_path: Path
) -> None:
    run = Run()
    config = load_configuration(demo_file(tmp_path, repairs=1))
    patient = replace(recipe, config=config, models={"far": Curt(catalogue, silent=silent)})
    seen = followed(patient, tmp_path / "b", run)[-1]
    assert run.course.summary
    if silent:
        assert seen[2] == 83 > seen[1] and run.course.summary.status == {"missing": 3}
    else:
        assert seen == (3, 86, 86) and run.course.counts()["refused"] == 3


def test_a_stop_is_told_only_while_answers_are_under_way(recipe: Recipe, tmp_path: Path) -> None:
    run = Run()

    def stop(summary: Summary) -> None:
        raise OSError("full")

    with pytest.raises((OSError, JobError)):
        build(recipe, tmp_path / "b", replace(run, progress=stop))
    assert run.course.asker and run.course.asker.stopped and run.course.notices_at(0.0) == []


def test_what_other_processes_tell_stands_in_the_place_of_what_is_counted_here() -> None:
    course = RunProgress(Summary(10), remote_counts=Counter(begun=5, expected=100, answered=40, accepted=2), spent=Spent(7, 0.5))
    assert course.expected() == 200 and course.counts()["accepted"] == 2 and course.cost() == Spent(7, 0.5)
    assert RunProgress().expected() == 0
