"""A judge for tests: its answer is a function of the request alone, and now and then it is a bad one, which a repair mends."""

from __future__ import annotations

import json
import random
import re
from typing import Any

from empathy_eval.base.hashing import digest
from empathy_eval.completions.models.custom import TextModel
from empathy_eval.design.prompts import Message


class Judge(TextModel):
    """Answers whatever a rubric asks."""

    in_flight = 1

    def __init__(self, name: str = "judge", bad: float = 0.1, parameters: dict[str, Any] | None = None) -> None:
        self.name, self._bad, self.parameters = name, bad, parameters or {}

    def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
        draw, system = random.Random(digest([self.name, messages])), messages[0]["content"]
        if len(messages) < 3 and draw.random() < self._bad:
            return "I would rather not say."
        return json.dumps(self._said(system, draw))

    def _said(self, system: str, draw: random.Random) -> dict[str, Any]:
        if '"better"' in system:
            return {"analysis": f"reason {draw.random()}", "better": draw.choice("AB")}
        if '"ratings"' in system:
            names = dict.fromkeys(re.findall(r'"criterion": "([^"]+)"', system))
            ratings = [{"criterion": name, "value": draw.choice((0, 1))} for name in names]
            return {"analysis": f"reason {draw.random()}", "ratings": ratings}
        names = dict.fromkeys(re.findall(r"^- (\w+) \(", system, re.MULTILINE))
        if '"probability"' in system:
            return {"strategies": [{"strategy": name, "probability": 1 / len(names)} for name in names]}
        return {"strategy": draw.choice(list(names))}
