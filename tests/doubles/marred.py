"""A build of the small world in which all happens to texts that can: taken, repaired, refused, made by rules, withdrawn."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from empathy_eval.completions.requests import Completion, Request
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue, SeedTurn, load_catalogue
from empathy_eval.generation.build import build
from empathy_eval.releases.assemble.write import release

from tests.conftest import copy_world, demo_file
from tests.doubles.models import Recorder

# The pair whose empathetic text was repaired, that which was refused for good, and that whose answers were none.
REPAIRED, REFUSED, ODD = ("017-seed", 1), ("017-seed", 3), ("017-seed", 5)
REJECTED, WITHDRAWN = "003-seed", "007-seed"
REFUSAL, NO_JSON, OFF_SCHEMA = "I can't help\x1b[31m with that.", "Of course! Here it is:", '{"reply": "There."}'
REASON = "taken out to show how it is done"


def mar(catalogue: Catalogue, request: Request, answer: Completion) -> Completion:
    """The answer of a seed, or what a model says that does as it likes."""
    about, again = request.about, len(request.body["messages"]) > 2
    place = about.dialogue_id, about.turn
    if about.kind == "self_chat" and about.dialogue_id == REJECTED:
        value = json.loads(answer.text)
        return Completion(json.dumps({**value, "turns": value["turns"][:-1]}), "stop", answer.model)
    if about.kind != "far_empathetic":
        return answer
    if place == REPAIRED and not again:
        return Completion(json.dumps({"text": turn_of(catalogue, *REPAIRED).text}), "stop", answer.model)
    if place == REFUSED:
        return Completion(REFUSAL, "refusal", answer.model)
    if place == ODD and request.sample == 0:
        return Completion(OFF_SCHEMA if again else NO_JSON, "stop", answer.model)
    return answer


def turn_of(catalogue: Catalogue, dialogue_id: str, turn: int) -> SeedTurn:
    """The turn of a seed: what a far request does not see, and what is refused as an answer to it."""
    seed = catalogue[int(dialogue_id[:3])].seed
    assert seed
    return seed.turns[turn]


def marred(folder: Path, prompts: Prompts) -> Path:
    """Makes the build in ``build``, its release in ``release`` and its scenarios in ``scenarios`` of a folder."""
    catalogue = load_catalogue(copy_world(folder / "scenarios"))
    withdrawn = [{"dialogue_id": WITHDRAWN, "reason": REASON, "date": "2026-02-28", "kind": "error"}]
    report = {"metrics": ["bleu"], "bootstrap": 10}
    config = demo_file(folder, near_apathetic="rules-then-model", samples=2, repairs=1, withdrawn=withdrawn, report=report)
    model = Recorder(catalogue, partial(mar, catalogue))
    recipe = Recipe(load_configuration(config), catalogue, prompts).with_custom(dict.fromkeys(("self_chat", "near", "far"), model))
    build(recipe, folder / "build")
    release(folder / "build", folder / "release", "0.1.0")
    return folder
