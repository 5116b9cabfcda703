"""Texts that behave like real ones, as many as are wanted: those of the seed dialogues with a part of their words replaced.

``python -m benchmarks.seeded`` serves them as the tests' loopback server does, and prints its address;
``python -m benchmarks.seeded --build DIR --dialogues 30633`` makes a build of that many dialogues without a server.
"""

from __future__ import annotations

import json
import random
import sys
from argparse import ArgumentParser
from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml
from empathy_eval.base.text import WORD
from empathy_eval.completions.requests import Completion, Request
from empathy_eval.design.configuration import load_configuration
from empathy_eval.design.language import english
from empathy_eval.design.prompts import Message, load_prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.generation.build import build
from empathy_eval.generation.checks.built_in import dialogue_flags
from empathy_eval.generation.outcomes import Turn

from benchmarks.rehearsal import configuration
from tests.doubles.judge import said
from tests.doubles.server import WORDS, Behaviour, Server, good_answer, main

# The share of words that are replaced: two texts made of one have few runs of words in common, as two of one topic have.
REPLACED = 0.4
# What only a judge is asked for.
JUDGED = ('"ratings": [', '"better": "A" or "B"')


class SeededServer(Server):
    """A server whose turns and far variants are seeds' turns of that role with words replaced, without crisis language."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(behaviour)
        self._texts: dict[str, list[str]] = defaultdict(list)
        for seed in (scenario.seed for scenario in load_catalogue().scenarios if scenario.seed):
            turns = [Turn("helper" if turn.strategy else "seeker", turn.text) for turn in seed.turns]
            for turn in turns if not dialogue_flags(turns, english()) else ():
                self._texts[turn.role].append(turn.text)

    def good(self, body: dict[str, Any], name: str) -> dict[str, Any]:
        """What the tests' server would answer, in other words; what the tests' judge says, where replies are judged."""
        if any(asked in body["messages"][0]["content"] for asked in JUDGED):
            return said(body)
        answer, rng = good_answer(body, name), random.Random(name)
        for turn in answer.get("turns", ()):
            turn["text"] = self._text(turn["role"], rng)
        if "text" in answer and "# The reply to edit" not in body["messages"][1]["content"]:
            answer["text"] = self._text("helper", rng)
        return answer

    def _text(self, role: str, rng: random.Random) -> str:
        text = rng.choice(self._texts[role])
        return WORD.sub(lambda word: rng.choice(WORDS) if rng.random() < REPLACED else word[0], text)


class Given:
    """The server's answers without a server."""

    endpoint, name = "loopback", "rehearsal"

    def __init__(self) -> None:
        self._server = SeededServer(Behaviour())

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The messages as they would be sent to a model."""
        return {"model": self.name, "messages": messages, "schema": answer_schema}

    async def complete(self, request: Request) -> Completion:
        """What the server says to the body of a request."""
        answer = self._server.good(request.body, request.key)
        return Completion(json.dumps(answer, ensure_ascii=False), "stop", self.name)

    async def close(self) -> None:
        """Nothing is open."""


def write_build(folder: Path, dialogues: int) -> None:
    """A real build of so many dialogues in this process alone, which takes a third of the time of one that asks over loopback."""
    path = configuration(folder.parent, dialogues, 1)
    raw, model = yaml.safe_load(path.read_text(encoding="utf-8")), Given()
    raw["models"] = {role: {"kind": "given", "model": model.name, "endpoint": model.endpoint} for role in raw["models"]}
    path.write_text(yaml.safe_dump(raw), encoding="utf-8")
    recipe = Recipe(load_configuration(path), load_catalogue(), load_prompts())
    build(recipe.with_custom(dict.fromkeys(raw["models"], model)), folder)


if __name__ == "__main__":
    if "--build" in sys.argv:
        parser = ArgumentParser()
        parser.add_argument("--build", type=Path)
        parser.add_argument("--dialogues", type=int)
        options = parser.parse_args()
        write_build(options.build, options.dialogues)
    else:
        main(SeededServer)
