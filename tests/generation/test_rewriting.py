"""Rewriting: what each request may see, and that no item hangs on another."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.text import words
from empathy_eval.completions.requests import Completion, Request
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.kinds import Kind, rewritings
from empathy_eval.design.planning import drawn_plan, seed_plan
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue, Seed, SeedTurn, load_catalogue
from empathy_eval.generation.build import build
from empathy_eval.generation.outcomes import Dialogue, Scene, Turn
from empathy_eval.generation.rewriting import EditBounds, messages, scenes
from empathy_eval.generation.self_chat import messages as self_chat_messages
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.models import Recorder

Alter = Callable[[Request, Completion], Completion]


def requests(config: Configuration, out: Path, catalogue: Catalogue, prompts: Prompts, alter: Alter | None = None) -> list[Request]:
    model = Recorder(catalogue, alter) if alter else Recorder(catalogue)
    build(Recipe(config, catalogue, prompts, dict.fromkeys(("self_chat", "near", "far"), model)), out)
    return model.requests


def text_of(request: Request) -> str:
    return "\n".join(message["content"] for message in request.body["messages"])


def conversation(shown: str) -> list[str]:
    """The lines of the conversation so far."""
    return shown.partition("# The conversation so far\n")[2].partition("\n\n")[0].splitlines()


def seed_of(catalogue: Catalogue, request: Request) -> Seed:
    seed = catalogue[int(request.about.dialogue_id[:3])].seed
    assert seed is not None
    return seed


def test_a_far_request_sees_the_turns_before_and_nothing_else(
    demo: Configuration, tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    far = [one for one in requests(demo, tmp_path / "b", catalogue, prompts) if one.about.kind.startswith("far")]
    assert len(far) > 20
    for request in far:
        seed, place, shown = seed_of(catalogue, request), request.about.turn or 0, text_of(request)
        assert conversation(shown) == [f"{turn.role}: {turn.text}" for turn in seed.turns[:place]]
        assert seed.turns[place].text not in shown
        assert not any(turn.text in shown for turn in seed.turns[place + 1 :] if len(turn.text) > 40)
        assert seed.description not in shown
        turn = seed.turns[place]
        for hidden in (turn.apathetic, turn.empathetic, turn.near_empathetic, turn.far_apathetic):
            assert hidden is None or hidden not in shown


def test_a_near_request_sees_the_turns_before_and_the_reference_and_nothing_else(
    demo: Configuration, tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    near = [one for one in requests(demo, tmp_path / "b", catalogue, prompts) if one.about.kind.startswith("near")]
    assert len(near) > 20
    for request in near:
        seed, place, shown = seed_of(catalogue, request), request.about.turn or 0, text_of(request)
        assert conversation(shown) == [f"{turn.role}: {turn.text}" for turn in seed.turns[:place]]
        assert seed.turns[place].text in shown
        assert not any(turn.text in shown for turn in seed.turns[place + 1 :] if len(turn.text) > 40)
        assert seed.description not in shown
        turn = seed.turns[place]
        for hidden in (turn.apathetic, turn.empathetic, turn.near_empathetic, turn.far_apathetic):
            assert hidden is None or hidden not in shown


def test_a_request_names_one_manner_or_device_and_shows_more_examples_of_it_alone(recipe: Recipe) -> None:
    taxonomy = recipe.catalogue.taxonomy
    for kind, scene, shown in rendered(recipe, "017"):
        ways = taxonomy.ways(kind.variant or "")
        named = [way.name for way in ways if f"{way.name}: {way.definition}" in shown]
        assert named == ([scene.way(kind)] if ways else [])
        more = shown.partition("# More examples of this very")[2].partition("\n# ")[0]
        variant = kind.variant or ""
        made_so = {getattr(turn, variant) for turn in seed_turns(recipe, but="017") if turn.ways.get(variant) == scene.way(kind)}
        texts = [line.partition(": ")[2] for line in more.splitlines() if line.startswith(("Edited: ", "Reply ("))]
        assert set(texts) <= made_so and (len(texts) == 2 if ways else not texts)


def test_a_request_tells_the_length_and_of_an_edit_how_many_words_to_change(recipe: Recipe) -> None:
    for kind, scene, shown in rendered(recipe, "017"):
        own, planned = len(words(scene.reference.text)), scene.planned.lengths[kind.variant or ""]
        assert f"bout {own + planned if kind.near else planned} words" in shown
        if kind.near:
            # Fewer than 30 % of the words; an eighth of them or so at least.
            assert f"has {own} words: change at least {math.ceil(0.12 * own)} and at most {math.ceil(0.3 * own) - 1} of them" in shown


def test_the_second_of_two_helper_turns_is_told_that_nobody_has_answered(recipe: Recipe) -> None:
    for kind, scene, shown in rendered(recipe, "017"):
        after_another = replace(scene, context=(*scene.context, Turn("helper", "I am still here.", "RS")))
        told = "The seeker has not answered the helper's last message"
        assert told not in shown and told in "".join(message["content"] for message in messages(recipe, kind, after_another))


def test_rewriters_are_told_the_words_to_do_without(recipe: Recipe) -> None:
    assert all(", ".join(recipe.catalogue.telltale) in shown for _, _, shown in rendered(recipe, "017"))
    without = replace(recipe, catalogue=replace(recipe.catalogue, telltale=()))
    assert not any("Do without these words" in shown for _, _, shown in rendered(without, "017"))


@given(st.integers(1, 120), st.floats(0.01, 1))
def test_what_is_asked_to_be_changed_is_something_and_below_the_limit(count: int, below: float) -> None:
    edit = EditBounds.of(count, below)
    assert 1 <= edit.least <= edit.most
    assert edit.most / count < below or edit.most == 1


def test_a_folder_without_manners_and_personas_is_asked_about_nothing_that_is_not_there(recipe: Recipe) -> None:
    taxonomy = replace(recipe.catalogue.taxonomy, manners=(), devices=())
    seeds = tuple(replace(one, seed=one.seed and replace(one.seed, register=None)) for one in recipe.catalogue.scenarios)
    bare = replace(recipe, catalogue=Catalogue(taxonomy, seeds, recipe.catalogue.seed_hash))
    shown = [text for _, _, text in rendered(bare, "017")]
    plan = drawn_plan(1, 17, 0, bare.catalogue, bare.config.rules)
    shown.append("\n".join(message["content"] for message in self_chat_messages(bare, plan)))
    for text in shown:
        assert not [odd for odd in ("None", "the device named", "the one named", "named there") if odd in text]
    assert all("# Examples, from conversations about something else" in text for text in shown[:-1])


@pytest.fixture(scope="module")
def recipe(demo: Configuration, prompts: Prompts) -> Recipe:
    return Recipe(demo, load_catalogue(), prompts)


def rendered(recipe: Recipe, number: str) -> Iterator[tuple[Kind, Scene, str]]:
    """All rewriting requests of a seed dialogue, with kind and scene."""
    seed = recipe.catalogue[int(number)].seed
    assert seed
    plan = seed_plan(int(number), seed, recipe.catalogue)
    turns = tuple(Turn("helper" if turn.role == "helper" else "seeker", turn.text, turn.strategy) for turn in seed.turns)
    for scene in scenes(Dialogue(plan.dialogue_id, plan.scenario_id, "", turns, (), "seed", "", ""), plan.turns, recipe.language):
        for kind in rewritings(scene.planned.controls):
            yield kind, scene, "\n".join(message["content"] for message in messages(recipe, kind, scene))


def seed_turns(recipe: Recipe, but: str) -> Iterator[SeedTurn]:
    for scenario in recipe.catalogue.scenarios:
        yield from scenario.seed.turns if scenario.seed and scenario.number != int(but) else ()


def test_the_requests_of_an_item_do_not_change_when_anothers_answers_do(
    demo: Configuration, tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    def other_answer(request: Request, answer: Completion) -> Completion:
        if request.about.dialogue_id == "003-seed":
            return Completion(answer.text.replace("the", "that"), answer.finish, answer.model)
        return answer

    def keys(name: str, alter: Alter | None = None) -> list[tuple[str, str]]:
        found = requests(demo, tmp_path / name, catalogue, prompts, alter)
        return sorted((one.about.dialogue_id, one.key) for one in found)

    plain, altered = keys("a"), keys("b", other_answer)
    assert plain != altered
    assert [one for one in plain if one[0] != "003-seed"] == [one for one in altered if one[0] != "003-seed"]


def test_the_exemplar_is_of_another_scenario(demo: Configuration, tmp_path: Path, catalogue: Catalogue, prompts: Prompts) -> None:
    chats = [one for one in requests(demo, tmp_path / "b", catalogue, prompts) if one.about.kind == "self_chat"]
    for request in chats:
        own = seed_of(catalogue, request).turns[0].text
        shown = text_of(request)
        assert own not in shown
        assert sum(one.seed.turns[0].text in shown for one in catalogue.scenarios if one.seed) == 1


def test_a_pair_one_of_whose_variants_fails_is_left_out_and_its_dialogue_stays(
    demo: Configuration, tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    def spoil(request: Request, answer: Completion) -> Completion:
        spoiled = request.about.kind == "near_apathetic" and request.about.dialogue_id == "017-seed" and request.about.turn == 1
        return Completion(json.dumps({"text": "Nothing of it is left in this reply at all, sorry."}), "stop", "m") if spoiled else answer

    requests(demo, tmp_path / "b", catalogue, prompts, spoil)
    outcome = next(one for one in build_outcomes(tmp_path / "b") if one["dialogue_id"] == "017-seed")
    assert outcome["status"] == "accepted" and outcome["dialogue"]["turns"]
    assert 1 not in [pair["turn"] for pair in outcome["pairs"]]
    assert [(one["kind"], one["turn"], one["reasons"]) for one in outcome["failures"]] == [("near_apathetic", 1, ["edit_ratio_high"])]


def test_a_control_that_fails_leaves_the_pair_out_of_the_controls_only(
    demo: Configuration, tmp_path: Path, catalogue: Catalogue, prompts: Prompts
) -> None:
    def spoil(request: Request, answer: Completion) -> Completion:
        return Completion("{}", "stop", "m") if request.about.kind == "far_apathetic" else answer

    requests(demo, tmp_path / "b", catalogue, prompts, spoil)
    pairs = [pair for one in build_outcomes(tmp_path / "b") for pair in one["pairs"]]
    assert pairs and all(pair["near_empathetic"] is None and pair["far_apathetic"] is None for pair in pairs)


def build_outcomes(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "outcomes.jsonl").read_text().splitlines()]
