"""Texts that behave like real ones, as many as are wanted: those of the seed dialogues with a part of their words replaced.

``python -m benchmarks.seeded`` serves them as the tests' loopback server does, and prints its address;
``python -m benchmarks.seeded --build DIR --dialogues 30633`` writes a finished build of that many dialogues without asking anybody.
"""

from __future__ import annotations

import json
import random
import sys
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from empathy_eval.base.files import data_folder, whole_file, write_whole
from empathy_eval.base.hashing import canonical_json, digest_file
from empathy_eval.base.text import WORD, edit_ratio, overlap
from empathy_eval.design.configuration import identity_of, load_configuration
from empathy_eval.design.contrasts import CONTROLS, PAIR_VARIANTS
from empathy_eval.design.language import english
from empathy_eval.design.prompts import load_prompts
from empathy_eval.design.quotas import apportion
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import load_catalogue
from empathy_eval.generation.build import build
from empathy_eval.generation.build_folder import BUILD, OUTCOMES
from empathy_eval.generation.checks.safety import dialogue_flags
from empathy_eval.generation.outcomes import Turn

from tests.doubles.judge import said
from tests.doubles.server import WORDS, Behaviour, Server, good_answer, main

# The share of words that are replaced: two texts made of one have few runs of words in common, as two of one topic have.
REPLACED = 0.4
# What only a judge is asked for.
JUDGED = ('"ratings": [', '"better": "A" or "B"')
VARIANTS = (*PAIR_VARIANTS, *CONTROLS)
# The share of pairs with a refused candidate, and of pairs with controls in a full-size plan.
REFUSED, WITH_CONTROLS = 0.1, 2000 / 261_000


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


def write_build(folder: Path, dialogues: int) -> None:
    """A finished build of so many dialogues: the seeds' outcomes over and over, each time with other words replaced."""
    catalogue = load_catalogue()
    build(Recipe(load_configuration(data_folder("release") / "demo.yaml"), catalogue, load_prompts()), folder / "demo")
    seeds = {value["scenario_id"]: value for value in map(json.loads, (folder / "demo" / OUTCOMES).open(encoding="utf-8"))}
    quotas = dict(zip(seeds, apportion(dialogues, [catalogue[number].share for number in seeds]), strict=True))
    pairs = 0
    with whole_file(folder / OUTCOMES) as partial, partial.open("wb") as stream:
        for number, quota in quotas.items():
            for index in range(quota):
                outcome = _other_words(seeds[number], f"{number:03d}-{index:05d}")
                stream.write(canonical_json(outcome) + b"\n")
                pairs += len(outcome["pairs"])
    header = json.loads((folder / "demo" / BUILD).read_text(encoding="utf-8"))
    configuration = {**header["configuration"], "name": "rehearsal", "report": {"bootstrap": 1000}}
    scenarios = {name: {**one, "quota": quotas[int(name)]} for name, one in header["scenarios"].items()}
    summary = {**header["summary"], "planned": dialogues, "accepted": dialogues, "pairs": pairs}
    changes = {"configuration": configuration, "identity": identity_of(configuration), "scenarios": scenarios, "summary": summary}
    write_whole(folder / BUILD, json.dumps({**header, **changes, "outcomes": digest_file(folder / OUTCOMES)}, indent=2) + "\n")


def _other_words(outcome: dict[str, Any], dialogue_id: str) -> dict[str, Any]:
    """A seed's outcome under another id; a word is replaced by one other in all texts, so that variants stay as near as they are."""
    rng, known = random.Random(dialogue_id), dict[str, str]()

    def new(text: str) -> str:
        for word in WORD.findall(text):
            if word not in known:
                known[word] = rng.choice(WORDS) if rng.random() < REPLACED else word
        return WORD.sub(lambda word: known[word[0]], text)

    dialogue = {**outcome["dialogue"], "dialogue_id": dialogue_id, "description": new(outcome["dialogue"]["description"])}
    dialogue["turns"] = [{**turn, "text": new(turn["text"])} for turn in dialogue["turns"]]
    pairs = [_pair(pair, dialogue["turns"][pair["turn"]]["text"], new, rng.random() < WITH_CONTROLS) for pair in outcome["pairs"]]
    refused = [pair for pair in pairs if rng.random() < REFUSED]
    candidates = [
        {"kind": "far_empathetic", "turn": pair["turn"], "text": pair["apathetic"]["text"], "reasons": ["overlap_high"]} for pair in refused
    ]
    return {**outcome, "dialogue_id": dialogue_id, "dialogue": dialogue, "pairs": pairs, "candidates": candidates}


def _pair(pair: dict[str, Any], reference: str, new: Callable[[str], str], controls: bool) -> dict[str, Any]:
    made = {}
    for name in VARIANTS:
        if pair[name] and (controls or name in PAIR_VARIANTS):
            text = new(pair[name]["text"])
            made[name] = {**pair[name], "text": text, "edit_ratio": edit_ratio(reference, text), "overlap": overlap(reference, text)}
    return {**pair, **dict.fromkeys(VARIANTS), **made}


if __name__ == "__main__":
    if "--build" in sys.argv:
        parser = ArgumentParser()
        parser.add_argument("--build", type=Path)
        parser.add_argument("--dialogues", type=int)
        options = parser.parse_args()
        write_build(options.build, options.dialogues)
    else:
        main(SeededServer)
