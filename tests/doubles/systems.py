"""Systems of known quality, and a judge that knows it: texts of a release by the conversation before them."""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from empathy_eval.completions.models.custom import TextModel
from empathy_eval.design.contrasts import PAIR_VARIANTS
from empathy_eval.design.prompts import Message
from empathy_eval.evaluation.corpus.pairs import read_corpus

from tests.doubles.server import Behaviour, Server

KIND, COLD, BOTH = "kind", "cold", "both"


def said(messages: Sequence[Mapping[str, str]]) -> str:
    """What a conversation is known by: all its texts but those of the system message."""
    return "\n\n".join(one["content"] for one in messages if one["role"] != "system")


class Actor(TextModel):
    """Gives the kind text of a release, the cold one, or one of both by chance; it counts what it is asked."""

    def __init__(self, name: str, release: Path, log: Path | None = None, seconds: float = 0.0) -> None:
        self.name, self.asked, self._log, self._seconds = name, 0, log, seconds
        corpus = read_corpus(release, "pairs", PAIR_VARIANTS, contexts=True)
        self._texts = {
            said([{"role": "", "content": turn["text"]} for turn in context]): {
                KIND: corpus.variants["empathetic"][row], COLD: corpus.variants["apathetic"][row],
            }
            for row, context in enumerate(corpus.contexts)
        }  # fmt: skip

    def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
        self.asked += 1
        texts = self._texts[said(messages)]
        if self._log:
            with self._log.open("ab") as stream:
                stream.write(f"{os.getpid()} {self.name}-{abs(hash(said(messages)))}\n".encode())
        time.sleep(self._seconds)
        drawn = random.Random(said(messages)).choice((KIND, COLD))
        return texts[drawn if self.name == BOTH else self.name]


class Empty(TextModel):
    """Answers with nothing but blanks."""

    name = "empty"

    def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
        return "  "


REPLY = re.compile(r"# (?:The reply|Reply)[^\n]*\n(.*?)(?=\n# |\Z)", re.DOTALL)


class Knowing(TextModel):
    """A judge that gives kind texts 5 and all others 1, and prefers the kind one of two; of two alike it takes the first."""

    name = "knowing"

    def __init__(self, release: Path) -> None:
        corpus = read_corpus(release, "pairs", PAIR_VARIANTS)
        self._kind = {*corpus.variants["empathetic"]}
        self.seen = list[str]()

    def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
        self.seen.append("\n".join(one["content"] for one in messages))
        system, user = messages[0]["content"], messages[-1]["content"]
        replies = [found.strip() in self._kind for found in REPLY.findall(user)]
        if '"better"' in system:
            return json.dumps({"analysis": "", "better": "B" if replies[1] and not replies[0] else "A"})
        names = dict.fromkeys(re.findall(r'"criterion": "([^"]+)"', system))
        ratings = [{"criterion": name, "value": 5 if replies[-1] else 1} for name in names]
        return json.dumps({"analysis": "", "ratings": ratings})


class Plain(Server):
    """A server whose model replies in plain words; asked for JSON it judges: 3 for all, and the first of two."""

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        super().__init__(behaviour or Behaviour())
        self.bodies = list[dict[str, Any]]()

    def good(self, body: dict[str, Any], name: str) -> dict[str, Any]:
        system = body["messages"][0]["content"]
        if '"better"' in system:
            return {"analysis": "", "better": "A"}
        names = dict.fromkeys(re.findall(r'"criterion": "([^"]+)"', system))
        return {"analysis": "", "ratings": [{"criterion": name, "value": 3} for name in names]}

    def _answer(self, body: dict[str, Any], name: str, fault: str | None) -> dict[str, Any]:
        self.bodies.append(body)
        found = super()._answer(body, name, fault)
        if "response_format" not in body:
            found["choices"][0]["message"]["content"] = "I hear how hard that is for you tonight."
        return found
