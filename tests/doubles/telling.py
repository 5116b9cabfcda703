"""Models whose samples differ in a telltale word alone, and a build of several candidates by them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from empathy_eval.completions.models.seed_bank import SeedBank
from empathy_eval.completions.requests import Completion, Request
from empathy_eval.design.configuration import SAMPLES_PER_CANDIDATE, load_configuration
from empathy_eval.design.kinds import FAR_EMPATHETIC
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue

from tests.conftest import demo_file

WORDS = Path(__file__).parent / "word_list.json"
# Nothing in it that a check refuses, a reply shares with another, or a stance has.
PLAIN = "River stone and kitchen window, garden bench and paper lantern."


def telltale(turn: int, candidate: int) -> bool:
    """Whether that candidate of a turn's empathetic text has the telltale word: half of them have."""
    return (turn + candidate) % 4 < 2


class Telling(SeedBank):
    """Far texts are all the same but for a telltale word in half of the empathetic samples; near ones are those of the seeds."""

    endpoint = "loopback"

    def __init__(self, catalogue: Catalogue, alter: Callable[[Request, str], str] = lambda request, text: text) -> None:
        super().__init__(catalogue)
        self.name = "telling"
        self.requests: list[Request] = []
        self._alter = alter

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        about, answer = request.about, await super().complete(request)
        text = json.loads(answer.text)["text"]
        if about.kind.startswith("far"):
            said = about.kind == FAR_EMPATHETIC.name and telltale(about.turn or 0, request.sample // SAMPLES_PER_CANDIDATE)
            text = f"{PLAIN} Telltale." if said else PLAIN
        return replace(answer, text=json.dumps({"text": self._alter(request, text)}, ensure_ascii=False))


def telling(folder: Path, catalogue: Catalogue, prompts: Prompts, model: Telling, **changes: Any) -> Recipe:
    """The demo's recipe with that model for near and far texts, and a report that is quickly made."""
    folder.mkdir(parents=True, exist_ok=True)
    changes = {"report": {"metrics": ["length"], "bootstrap": 10}, **changes}
    given = {"kind": "given", "model": model.name, "endpoint": "loopback"}
    models = {"self_chat": {"kind": "seed-bank"}, "near": given, "far": given}
    config = load_configuration(demo_file(folder, models=models, **changes))
    return Recipe(config, catalogue, prompts).with_custom({"near": model, "far": model})
