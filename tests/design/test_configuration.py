"""Configurations: what is refused, what an override does, what belongs to a build's identity."""

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from empathy_eval.base.errors import InputError
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import canonical_json
from empathy_eval.base.schemas import violations
from empathy_eval.design.configuration import CROSSED_ROLES, ROLES, Configuration, ToxicityConfig, load_configuration
from empathy_eval.design.taxonomy import PhaseRules

from tests.conftest import demo_file
from tests.doubles.telling import WORDS

ENDPOINT = {"kind": "openai", "model": "m", "endpoint": "e", "max_tokens": 100, "base_url": "http://localhost/v1"}


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_configuration(path)
    assert caught.value.exit_code == 2
    return str(caught.value)


def all_three(model: dict[str, object]) -> dict[str, object]:
    return dict.fromkeys(("self_chat", "near", "far"), model)


def test_an_unknown_key_is_named_with_the_known_ones(tmp_path: Path) -> None:
    said = refused(demo_file(tmp_path, tempereture=1))
    assert 'config.yaml: has unknown "tempereture"' in said and "use one of answers, candidates, checks" in said


def test_an_unknown_key_or_value_names_the_one_that_is_meant(tmp_path: Path) -> None:
    assert 'did you mean "samples"?' in refused(demo_file(tmp_path, smaples=1))
    assert 'did you mean "seeds"?' in refused(demo_file(tmp_path, plan="seed"))
    assert 'did you mean "bertscore"?' in refused(demo_file(tmp_path, report={"bertscor": {}, "bootstrap": 10}))


def test_what_a_plan_of_seeds_does_not_take_is_named_with_the_reason(tmp_path: Path) -> None:
    said = refused(demo_file(tmp_path, dialogues=20))
    assert 'config.yaml: dialogues: 20 is not allowed here\n  Fix: leave it out, or write "plan: drawn"' in said


DRAWN = {"plan": "drawn", "dialogues": 3, "controls": 1}


SHORT = {"seeds": {"plan": "seeds"}, "drawn": DRAWN | {"models": all_three({"kind": "openai", "model": "m"})}}


@pytest.mark.parametrize("said", SHORT.values(), ids=SHORT)
def test_a_name_a_plan_and_what_has_no_default_are_a_whole_configuration(said: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"name": "mine", **said}))
    config = load_configuration(path)
    assert not list(violations(config.published, "published_configuration"))
    path.write_text(yaml.safe_dump(config.raw))
    assert load_configuration(path).identity == config.identity, "a default that is said is no other build"


def test_the_defaults_are_those_of_the_packaged_configurations(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"name": "full", **DRAWN, "models": all_three(ENDPOINT)}))
    mine, packaged = load_configuration(path).raw, load_configuration(data_folder("release") / "full.yaml").raw
    changed = {"dialogues", "controls", "control_dialogues", "models", "checks", "report"}
    assert {name for name in packaged if mine.get(name) != packaged[name]} == changed
    assert {name for name in packaged["checks"] if mine["checks"][name] != packaged["checks"][name]} == {"toxicity"}
    assert packaged["checks"]["toxicity"]["scorer"] == "detoxify" and mine["checks"]["toxicity"]["scorer"] == "alt-profanity-check"
    assert mine["report"]["bootstrap"] == packaged["report"]["bootstrap"]


def test_a_part_that_is_given_takes_the_defaults_of_what_it_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("{name: mine, plan: seeds, checks: {overlap_at_most: 0.2, toxicity: {at_most: 0.3}}, turns: {max: 14}}")
    config = load_configuration(path)
    assert (config.checks.overlap_at_most, config.checks.edit_ratio_below) == (0.2, 0.3)
    assert config.checks.toxicity == ToxicityConfig("alt-profanity-check", 0.3) and config.rules == PhaseRules(12, 14, "anchored")


def test_a_drawn_plan_without_models_takes_that_of_the_command_line_or_says_what_to_write(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"name": "mine", **DRAWN}))
    assert {one.model for one in load_configuration(path, model="m").models.values()} == {"m"}
    assert "name a model with --model" in refused(path)


def test_what_has_no_default_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("plan: drawn")
    said = refused(path)
    assert 'mine.yaml: misses "name"' in said and 'misses "dialogues", "controls"' in said


def test_a_negative_number_is_quoted(tmp_path: Path) -> None:
    assert "config.yaml: samples: -1 is out of range" in refused(demo_file(tmp_path, samples=-1))


def test_a_model_without_a_name_is_named(tmp_path: Path) -> None:
    nameless = {key: value for key, value in ENDPOINT.items() if key != "model"}
    said = refused(demo_file(tmp_path, models={**all_three(ENDPOINT), "near": nameless}))
    assert 'config.yaml: models: near: misses "model"' in said


def test_all_problems_come_at_once(tmp_path: Path) -> None:
    said = refused(demo_file(tmp_path, samples=-1, seed="x", tempereture=1))
    assert said.count("Fix:") == 3


def test_a_drawn_plan_needs_a_model(tmp_path: Path) -> None:
    said = refused(demo_file(tmp_path, plan="drawn", dialogues=10, surplus=0, controls=0))
    assert "the seed bank (self_chat, near, far) holds no dialogue" in said


def test_bounds_that_cross_are_refused(tmp_path: Path) -> None:
    assert "min 20 is above max 12" in refused(demo_file(tmp_path, turns={"min": 20, "max": 12}))


def test_two_prices_of_one_model_are_refused(tmp_path: Path) -> None:
    model = {"kind": "openai", "model": "m", "endpoint": "e", "max_tokens": 9}
    models = {role: {**model, "prices": {"input": price, "output": 1}} for role, price in (("self_chat", 10), ("near", 10), ("far", 0.1))}
    assert '"m" has two prices' in refused(demo_file(tmp_path, plan="drawn", dialogues=60, surplus=0, controls=1, models=models))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "nowhere.yaml: cannot be read" in refused(tmp_path / "nowhere.yaml")


def test_overrides_put_one_model_in_the_place_of_all(tmp_path: Path) -> None:
    config = load_configuration(demo_file(tmp_path), model="llama", base_url="http://localhost:8000/v1")
    assert {(one.kind, one.model, one.base_url) for one in config.models.values()} == {("openai", "llama", "http://localhost:8000/v1")}


def test_delivery_is_outside_the_identity_and_what_is_asked_is_inside(tmp_path: Path) -> None:
    def identity(**changes: object) -> str:
        return load_configuration(demo_file(tmp_path, models=all_three({**ENDPOINT, **changes}))).identity

    with_metrics = load_configuration(demo_file(tmp_path, models=all_three(ENDPOINT), report={"metrics": ["length"], "bootstrap": 9}))
    assert identity() == with_metrics.identity
    assert identity() == identity(base_url="http://elsewhere/v1", in_flight=3, unreachable_seconds=9)
    assert len({identity(), identity(model="n"), identity(endpoint="f"), identity(max_tokens=5), identity(structure="instruction")}) == 5


def test_the_reports_metrics_are_named_once_each_and_meteors_synonyms_are_known(tmp_path: Path) -> None:
    report = {"bootstrap": 10, "metrics": ["bleu", "my.module:Kindness"], "meteor": {"synonyms": "wordnet"}}
    assert load_configuration(demo_file(tmp_path, report=report)).raw["report"] == report
    said = refused(demo_file(tmp_path, report={"bootstrap": 10, "metrics": ["bleu", "bleu"], "meteor": {"synonyms": "all"}}))
    assert "report: metrics" in said and 'report: meteor: synonyms: "all" is not known' in said


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({1: 2}, "parameters: 1 is not of type string"),
        ({"x": {1: 2, "a": 1}}, "parameters: x: 1 is not of type string"),
        ({"until": datetime.date(2026, 1, 1)}, 'parameters: until: "2026-01-01" is not of type'),
        ({"stream": True}, "parameters: "),
    ],
)
def test_parameters_that_no_request_could_hold_are_refused_in_words(parameters: dict[Any, Any], said: str, tmp_path: Path) -> None:
    told = refused(demo_file(tmp_path, models=all_three({**ENDPOINT, "parameters": parameters})))
    assert f"config.yaml: models: near: {said}" in told


def test_a_limit_that_no_ledger_could_hold_and_a_wrong_kind_of_value_are_told_with_how_to_mend_them(tmp_path: Path) -> None:
    told = refused(demo_file(tmp_path, turns=5, checks=None, models=all_three({**ENDPOINT, "max_tokens": 10**30})))
    assert "max_tokens: 1000000000000000000000000000000 is out of range (maximum 1000000000)" in told
    assert "Fix: use a whole number from 1 to 1,000,000,000" in told
    assert "turns: 5 is not of type object\n  Fix: write its settings under it, as name: value" in told


def test_crossed_items_need_who_writes_and_who_checks_them_and_none_are_written_for_seeds(tmp_path: Path) -> None:
    drawn = {"plan": "drawn", "dialogues": 10, "surplus": 0, "controls": 0, "crossed": 4}
    models = all_three(ENDPOINT)
    assert "config.yaml: models: has no crossed and no crossed_judge, and 4 crossed items" in refused(
        demo_file(tmp_path, **drawn, models=models)
    )
    said = refused(demo_file(tmp_path, **drawn, models={**models, "crossed": ENDPOINT}))
    assert "has no crossed_judge, and 4" in said and "or leave crossed out" in said
    assert 'crossed: 4 are requested for "plan: seeds"' in refused(demo_file(tmp_path, crossed=4))
    assert "the seed bank (crossed_judge) holds no dialogue" in refused(
        demo_file(tmp_path, **drawn, models={**models, "crossed": ENDPOINT, "crossed_judge": {"kind": "seed-bank"}})
    )
    whole = load_configuration(
        demo_file(tmp_path, **drawn, models={**models, "crossed": ENDPOINT, "crossed_judge": ENDPOINT}), model="other"
    )
    assert (whole.crossed, {one.model for one in whole.models.values()}) == (4, {"other"})


def test_to_want_no_crossed_items_is_to_leave_them_out(tmp_path: Path) -> None:
    assert load_configuration(demo_file(tmp_path, crossed=0)).identity == load_configuration(demo_file(tmp_path)).identity


def test_a_whole_number_with_a_point_is_the_number_wherever_one_is_wanted(tmp_path: Path) -> None:
    def made(number: Callable[[int], float]) -> Configuration:
        model = {**ENDPOINT, "max_tokens": number(100), "in_flight": number(2), "parameters": {"temperature": 1.0}}
        whole = {name: number(value) for name, value in {"seed": 3, "dialogues": 3, "controls": 1, "samples": 2, "repairs": 1}.items()}
        crossed = {"crossed": number(2), "models": dict.fromkeys((*ROLES, *CROSSED_ROLES), model)}
        many = {"candidates": number(4), "word_list": str(WORDS), "turns": {"min": number(8), "max": number(20)}}
        report = {"bootstrap": number(10), "bertscore": {"model": "all-MiniLM-L6-v2", "layer": number(1)}}
        return load_configuration(demo_file(tmp_path, plan="drawn", surplus=0.0, report=report, **whole, **crossed, **many))

    plain, pointed = made(int), made(float)
    assert pointed == plain and canonical_json(pointed.published) == canonical_json(plain.published)
    assert pointed.identity == plain.identity and list(range(pointed.candidates)) == [0, 1, 2, 3]
    assert b'"temperature":1.0' in canonical_json(pointed.published) and b'"surplus":0.0' in canonical_json(pointed.published)
