"""An item gone through again: the very requests, answers and verdicts of its build, with nobody asked."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from empathy_eval.completions.asker import REFUSED_BY_CUSTOM_CHECK, Step
from empathy_eval.completions.ledger import Ledger
from empathy_eval.design.configuration import load_configuration, parse_configuration
from empathy_eval.design.planning import Plan, plan_of, plans
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.generation.outcomes import Outcome
from empathy_eval.generation.preview import preview
from empathy_eval.generation.replay_item import ItemReplayer, KnownItem

from tests.conftest import demo_file
from tests.doubles.marred import ODD, REFUSED, REJECTED, REPAIRED


@pytest.fixture(scope="module")
def recipe(marred: Path, prompts: Prompts) -> Recipe:
    config = parse_configuration(json.loads((marred / "build" / "configuration.json").read_text()), "configuration")
    return Recipe(config, load_catalogue(marred / "scenarios"), prompts)


@pytest.fixture(scope="module")
def outcomes(marred: Path) -> dict[str, Outcome]:
    lines = map(json.loads, (marred / "build" / "outcomes.jsonl").read_text().splitlines())
    return {one["dialogue_id"]: Outcome.from_json(one) for one in lines}


@pytest.fixture
def ledger(marred: Path) -> Iterator[Ledger]:
    with Ledger(marred / "build" / "ledger.sqlite", create=False, write=False) as ledger:
        yield ledger


@pytest.fixture
def empty() -> Iterator[Ledger]:
    with Ledger(Path(":memory:")) as ledger:
        yield ledger


def steps_at(steps: tuple[Step, ...], kind: str, place: tuple[str, int]) -> list[Step]:
    return [one for one in steps if (one.request.about.kind, one.request.about.dialogue_id, one.request.about.turn) == (kind, *place)]


def test_each_item_becomes_what_its_build_made_of_it_and_every_answer_is_told(
    recipe: Recipe, ledger: Ledger, outcomes: dict[str, Outcome]
) -> None:
    retracer, told = ItemReplayer(recipe, ledger), set[str]()
    for plan in plans(recipe.config, recipe.catalogue):
        trace = retracer.trace(plan)
        assert trace.outcome == outcomes[plan.dialogue_id]
        assert all(step.completion == ledger.get(step.request.key) for step in trace.steps)
        told |= {step.request.key for step in trace.steps}
        for pair in trace.outcome.pairs:
            assert trace.scores[pair.empathetic.text] == pair.empathetic.toxicity
    assert len(outcomes) == 3 and told == {row[0] for row, _ in ledger.rows()}


def test_a_refused_answer_is_told_with_its_words_and_a_repair_as_one(recipe: Recipe, ledger: Ledger) -> None:
    trace = ItemReplayer(recipe, ledger).trace(plan(recipe, "017-seed"))
    bad, good = steps_at(trace.steps, "far_empathetic", REPAIRED)
    assert (bad.verdict, bad.repair, good.verdict, good.repair) == ("refused", False, "taken", True)
    assert [flaw.reason for flaw in bad.flaws] == ["overlap_high"] and "other words" in bad.flaws[0].detail
    assert bad.flaws[0].detail in good.request.body["messages"][-1]["content"]
    lost = steps_at(trace.steps, "far_empathetic", REFUSED)
    assert [(one.request.sample, one.repair, one.flaws[0].reason) for one in lost] == [
        (sample, repair, "finish_refusal") for sample in (0, 1) for repair in (False, True)
    ]  # fmt: skip
    odd = steps_at(trace.steps, "far_empathetic", ODD)
    assert [(one.verdict, sorted({flaw.reason for flaw in one.flaws})) for one in odd] == [
        ("refused", ["not_json"]), ("refused", ["schema"]), ("taken", []),
    ]  # fmt: skip
    assert {one.verdict for one in ItemReplayer(recipe, ledger).trace(plan(recipe, REJECTED)).steps} == {"refused", "scored"}


def plan(recipe: Recipe, dialogue_id: str) -> Plan:
    found = plan_of(recipe.config, recipe.catalogue, dialogue_id)
    assert found
    return found


def test_without_a_ledger_the_dialogue_at_hand_renders_the_requests_of_its_variants(
    recipe: Recipe, empty: Ledger, outcomes: dict[str, Outcome]
) -> None:
    there = outcomes["017-seed"]
    bare = ItemReplayer(recipe, empty).trace(plan(recipe, "017-seed"))
    assert [one.verdict for one in bare.steps] == ["unanswered"] and bare.outcome.status == "missing" and bare.dialogue is None
    trace = ItemReplayer(recipe, empty).trace(plan(recipe, "017-seed"), KnownItem(there.dialogue))
    for pair in there.pairs:
        (step,) = steps_at(trace.steps, "far_empathetic", ("017-seed", pair.turn))
        # That of a repair holds the bad answer, and that of a second sample has another number.
        found = step.with_key(pair.empathetic.request_key or "", 2)
        assert (found is None) == (("017-seed", pair.turn) == REPAIRED)
        assert found is None or found.sample == int(("017-seed", pair.turn) == ODD)
    assert trace.dialogue == there.dialogue


def test_a_ledger_that_tells_another_dialogue_does_not_take_the_place_of_the_one_at_hand(
    recipe: Recipe, ledger: Ledger, outcomes: dict[str, Outcome]
) -> None:
    there = outcomes["017-seed"].dialogue
    assert there
    other = replace(there, turns=(replace(there.turns[0], text="Something else."), *there.turns[1:]))
    trace = ItemReplayer(recipe, ledger).trace(plan(recipe, "017-seed"), KnownItem(other))
    assert trace.dialogue == other and trace.outcome.dialogue == there
    far = [one for one in trace.steps if one.request.about.kind == "far_empathetic"]
    assert far and all("Something else." in one.request.body["messages"][-1]["content"] for one in far)


def test_what_a_check_of_ones_own_refused_is_refused_as_it_was_noted(recipe: Recipe, ledger: Ledger, outcomes: dict[str, Outcome]) -> None:
    key = outcomes["017-seed"].pairs[-1].empathetic.request_key or ""
    trace = ItemReplayer(recipe, ledger).trace(plan(recipe, "017-seed"), KnownItem(refused={key: ("too_many_questions",)}))
    step = next(one for one in trace.steps if one.request.key == key)
    assert [(flaw.reason, flaw.detail) for flaw in step.flaws] == [("too_many_questions", REFUSED_BY_CUSTOM_CHECK)]


def test_a_model_named_as_code_is_not_imported_and_one_that_adds_nothing_is_known_by_its_key(
    recipe: Recipe, ledger: Ledger, outcomes: dict[str, Outcome]
) -> None:
    raw = {**recipe.config.raw, "models": {**recipe.config.raw["models"], "far": {"kind": "no_such_module:Model"}}}
    retracer = ItemReplayer(replace(recipe, config=parse_configuration(raw, "")), ledger, names={"far": "its-name"})
    trace = retracer.trace(plan(recipe, "017-seed"))
    step = steps_at(trace.steps, "far_empathetic", REPAIRED)[0]
    assert step.verdict == "unanswered" and step.request.body["model"] == "its-name" and "no_such_module" not in sys.modules


def test_the_request_of_an_endpoint_is_the_one_that_a_build_sends(
    tmp_path: Path, catalogue: Catalogue, prompts: Prompts, empty: Ledger
) -> None:
    model = {"kind": "openai", "model": "m", "endpoint": "e", "max_tokens": 512, "parameters": {"temperature": 0.7}}
    models = dict.fromkeys(("self_chat", "near", "far"), model)
    raw = demo_file(tmp_path, plan="drawn", dialogues=4, surplus=0.1, controls=2, models=models)
    recipe = Recipe(load_configuration(raw), catalogue, prompts)
    (sent,) = [one for one in preview(recipe, None, 1).requests if one.about.kind == "self_chat"]
    for drawn in plans(recipe.config, catalogue):
        assert plan_of(recipe.config, catalogue, drawn.dialogue_id) == drawn
    (step,) = ItemReplayer(recipe, empty).trace(next(plans(recipe.config, catalogue))).steps
    assert (step.request.key, step.request.body) == (sent.key, sent.body)
    assert not any(plan_of(recipe.config, catalogue, name) for name in ("003-00099", "003-seed", "999-00000", "003-0000x", ""))
