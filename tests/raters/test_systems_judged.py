"""Replies of systems before judges: what they see, what is compared, what grows and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import empathy_eval as ee
import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.design.rubrics import load_rubric
from empathy_eval.generation.on_ray import lane_config
from empathy_eval.raters.judges.annotating import AnnotationPlan, annotations_of
from empathy_eval.raters.judges.annotations import read_annotations
from empathy_eval.raters.systems.contexts import ContextSample
from empathy_eval.raters.systems.replies import read_replied, read_reply_annotations, tournament
from empathy_eval.raters.systems.responding import RespondOptions, load_systems, reply_job

from tests.doubles.systems import BOTH, COLD, KIND, Actor, Knowing

QUICK: dict[str, Any] = {"split": "all", "toxicity": False}


@pytest.fixture
def replied(light: Path, tmp_path: Path) -> Path:
    systems = {f"system-{name}": Actor(name, light) for name in (KIND, COLD, BOTH)}
    ee.respond(light, tmp_path / "r", systems=systems, contexts=6, **QUICK)
    return tmp_path / "r"


def test_a_judge_rates_every_system_and_never_reads_a_name(light: Path, replied: Path, tmp_path: Path) -> None:
    judge = Knowing(light)
    ee.annotate(replied, tmp_path / "j", rubric="heart", model=judge, turns=None)
    found = read_annotations(tmp_path / "j")
    means = {
        name: [one.value for case in found.cases for one in case.ratings if one.variant == name and one.criterion == "resonance"]
        for name in read_replied(replied).systems
    }
    assert means["system-kind"] == [5.0] * 6 and means["system-cold"] == [1.0] * 6 and set(means["system-both"]) == {1.0, 5.0}
    assert not any(name in text for text in judge.seen for name in ("system-", str(tmp_path)))


def test_a_tournament_asks_both_orders_of_every_two_systems_over_as_many_contexts_as_asked(
    light: Path, replied: Path, tmp_path: Path
) -> None:
    judge = Knowing(light)
    ee.annotate(replied, tmp_path / "j", rubric="warmer", model=judge, turns=None, comparisons=4)
    games = [one for case in read_annotations(tmp_path / "j").cases for one in case.comparisons]
    assert set(Counter((one.variant_1, one.variant_2) for one in games).values()) == {4} and len(games) == 12
    assert {one.winner for one in games if {one.variant_1, one.variant_2} == {"system-kind", "system-cold"}} == {"system-kind"}
    few = len(judge.seen)
    ee.annotate(replied, tmp_path / "j", rubric="warmer", model=judge, turns=None, comparisons=6)
    assert len(judge.seen) - few <= 2 * 2 * 3


def test_more_comparisons_contexts_and_systems_only_append() -> None:
    contexts = [f"{place:03d}-seed-t01" for place in range(20)]
    texts = {name: dict.fromkeys(contexts, name) for name in "abc"}

    def games(names: str, most: int, number: int) -> set[tuple[str, tuple[str, str]]]:
        made = tournament(contexts[:number], {name: texts[name] for name in names}, most, 0)
        return {(name, two) for name, some in made.items() for two in some}

    assert games("ab", 4, 20) < games("ab", 9, 20) < games("abc", 9, 20)
    assert len(games("abc", 9, 20)) == 27 and tournament(contexts, texts, 4, 0) != tournament(contexts, texts, 4, 1)


def test_another_system_is_judged_alone_and_the_folder_stays_the_same_one(light: Path, replied: Path, tmp_path: Path) -> None:
    judge = Knowing(light)
    ee.annotate(replied, tmp_path / "j", rubric="heart", model=judge, turns=None)
    asked = len(judge.seen)
    systems = {f"system-{name}": Actor(name, light) for name in (KIND, COLD, BOTH)}
    ee.respond(light, replied, systems={**systems, "new": lambda messages: "I am here, and I have time."}, contexts=6, **QUICK)
    ee.annotate(replied, tmp_path / "j", rubric="heart", model=judge, turns=None)
    # One text for all contexts, but after other turns each time.
    assert len(judge.seen) - asked == 6
    assert read_reply_annotations([tmp_path / "j"], [read_replied(replied)])[0].header["texts"].keys() == {
        *(f"system-{one}" for one in (KIND, COLD, BOTH)),
        "new",
    }


def test_annotations_of_other_replies_are_refused(light: Path, replied: Path, tmp_path: Path) -> None:
    ee.annotate(replied, tmp_path / "j", rubric="heart", model=Knowing(light), turns=None)
    found = read_replied(replied)
    texts = {**found.texts, "system-kind": {**found.texts["system-kind"], found.contexts[0].pair_id: "Another one."}}
    object.__setattr__(found, "__dict__", {**found.__dict__, "texts": texts})
    with pytest.raises(InputError, match='judged other replies of "system-kind" than there are now'):
        read_reply_annotations([tmp_path / "j"], [found])
    ee.annotate(light, tmp_path / "of-release", rubric="heart", model=Knowing(light), turns=2)
    with pytest.raises(InputError, match="holds annotations of something else than these replies"):
        read_reply_annotations([tmp_path / "of-release"], [found])
    with pytest.raises(InputError, match="holds annotations of another release than"):
        ee.score(light, annotations=[tmp_path / "j"], shortcuts=False)


def test_what_does_not_go_with_replies_is_refused(light: Path, replied: Path, tmp_path: Path) -> None:
    for more, problem in (
        ({"rubric": "lend-an-ear"}, "rates whole dialogues"),
        ({"attacks": []}, "attacks texts of a release, not replies of systems"),
        ({"variants": ["system-kinds"]}, 'did you mean "system-kind"'),
    ):
        given: dict[str, Any] = {"rubric": "heart", "model": Knowing(light), **more}
        with pytest.raises(InputError) as refused:
            ee.annotate(replied, tmp_path / "no", **given)
        assert problem in str(refused.value)
    with pytest.raises(InputError, match="is for replies of systems"):
        ee.annotate(light, tmp_path / "no", rubric="warmer", model=Knowing(light), comparisons=3)


def test_the_parts_of_a_cluster_share_the_limits_of_judges_and_systems(light: Path, replied: Path) -> None:
    raw = {"kind": "openai", "model": "m", "endpoint": "e", "base_url": "http://localhost:9/v1", "max_tokens": 9, "in_flight": 8}
    judge = annotations_of(light, load_rubric("heart"), raw, AnnotationPlan(turns=2))
    systems, _ = load_systems({"a": {"model": raw}})
    for job in (judge, reply_job(light, RespondOptions(systems, sample=ContextSample("all", 2), toxicity=False))):
        shared = job.configured(lane_config(job.config, 2)).config
        assert [model.in_flight for model in shared.models.values()] == [4] and shared.identity == job.config.identity


def test_a_header_of_annotated_replies_names_no_path(light: Path, replied: Path, tmp_path: Path) -> None:
    ee.annotate(replied, tmp_path / "j", rubric="heart", model=Knowing(light), turns=2)
    text = (tmp_path / "j" / "build.json").read_text()
    assert str(tmp_path) not in text and json.loads(text)["configuration"]["release"]["replies_to"].startswith("s1-")
