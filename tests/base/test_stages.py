"""Stages of a job: told to whoever follows it, and to nobody else."""

from empathy_eval.base.stages import Stages, advance, count, stage, track_stages


def test_a_job_that_is_followed_tells_its_stage_and_its_count() -> None:
    with track_stages() as stages:
        assert stages == Stages(None)
        stage("writing rows", 3, "dialogues")
        advance()
        advance(2)
        assert stages == Stages("writing rows", "dialogues", 3, 3, 1)
        stage("scoring")
        count(10, "scores")
        assert stages == Stages("scoring", "scores", 10, 0, 3)
    stage("later")
    advance()
    assert stages.name == "scoring" and stages.done == 0


def test_a_job_that_nobody_follows_goes_on() -> None:
    stage("writing rows", 3)
    count(1, "rows")
    advance()
