"""Rewriting: what each request may see, and that no item hangs on another."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from empathy_eval.completions.requests import Completion, Request
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue, Seed
from empathy_eval.generation.build import build

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
