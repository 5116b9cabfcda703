"""What judges of every rubric are sent of turns with controls: one frame, the conversation, the text; nothing that tells texts apart."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from empathy_eval.design.judge_prompts import SPEAKERS, judge_prompts
from empathy_eval.design.prompts import Message
from empathy_eval.design.rubrics import load_rubric, packaged_rubrics
from empathy_eval.design.scenarios import Catalogue, load_catalogue
from empathy_eval.raters.judges.cases import TEXTS, Case, Conversation, cases_of, dialogues_of
from empathy_eval.raters.judges.judge import Judge, compared

Asked = tuple[str, list[Message]]
REPLY, TALK = "<the reply>", "<the conversation>"
# Columns that hold words of which a judge may know none, beside the conversation and the texts.
TELLING = (
    "pair_id", "dialogue_id", "scenario", "description", "phase", "strategy", "empathetic_strategy", "source", "model", "near_model",
    "far_model", "apathetic_method", "apathetic_manner", "empathetic_device",
)  # fmt: skip


@dataclass
class Notes:
    """Asks nobody, and notes (kind, messages) of what would be asked."""

    asked: list[Asked] = field(default_factory=list)
    samples: int = 1

    async def ask(self, about: Any, messages: list[Message], *_: Any) -> Any:
        self.asked.append((about.kind, messages))
        # What comes after it is asked for too.
        return SimpleNamespace(value=None, request_key="") if about.kind == "ideal" else None


@pytest.fixture(scope="module")
def everything() -> Catalogue:
    """All scenarios: examples may be of any of them."""
    return load_catalogue()


@pytest.fixture(scope="module")
def rows(light: Path) -> dict[str, dict[str, Any]]:
    """What a release says of its pairs."""
    return {row["pair_id"]: row for path in (light / "data" / "pairs").iterdir() for row in pq.read_table(path).to_pylist()}


def asked_of(name: str, catalogue: Catalogue, release: Path) -> Iterator[tuple[Case, list[Asked]]]:
    """By case all requests of a rubric, of three turns that have all five texts."""
    rubric = load_rubric(name)
    prompts = judge_prompts(rubric, catalogue)
    for case in dialogues_of(release, 3) if rubric.unit == "dialogue" else cases_of(release, 3):
        assert rubric.unit == "dialogue" or list(case.texts) == list(TEXTS)
        notes: Any = Notes()
        asyncio.run(Judge(notes, prompts).case(case))
        assert notes.asked
        yield case, notes.asked


def told(turns: Conversation) -> str:
    return "\n".join(f"{role}: {text}" for role, text in turns)


def frame(case: Case, user: str) -> str:
    """What is around the conversation and the texts; a text is taken out where it stands for itself alone."""
    whole = [said for turns in (case.conversation, *case.conversations.values()) if (said := told(turns)) in user]
    before, _, after = user.partition(*whole)
    for text in case.texts.values():
        after = re.sub(rf"(?<=\n){re.escape(text)}(?=\n\n# |\Z)", REPLY, after)
    return f"{before}{TALK}{after}"


@pytest.mark.parametrize("name", [name for name in packaged_rubrics() if load_rubric(name).kind != "reward"])
def test_of_every_text_of_every_turn_a_judge_is_sent_the_same_but_for_conversation_and_reply(
    name: str, everything: Catalogue, light: Path, rows: dict[str, dict[str, Any]]
) -> None:
    found = list(asked_of(name, everything, light))
    heads = {messages[0]["content"] for _, some in found for _, messages in some}
    # A request of some criteria begins with one text, whatever it is about.
    assert len(heads) == len({*(messages[0]["content"] for _, messages in found[0][1])})
    frames = {(kind, frame(case, messages[1]["content"])) for case, some in found for kind, messages in some}
    assert len(frames) == len({kind for kind, _ in frames}) and all(len(messages) == 2 for _, some in found for _, messages in some)
    around = re.sub(f"{TALK}|{REPLY}|so far", "", " ".join(text for _, text in frames)).casefold()
    words = {str(row[one]).casefold() for row in rows.values() for one in TELLING if row[one]} | {*TEXTS, "near", "far", "seed", "rules"}
    assert not [word for word in words if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", around)]


def test_a_preference_is_asked_of_each_two_texts_in_both_orders_and_a_place_tells_nothing(everything: Catalogue, light: Path) -> None:
    for case, some in asked_of("warmer", everything, light):
        orders = [(text for text in messages[1]["content"].split("\n# Reply A\n")[1].split("\n\n# Reply B\n")) for _, messages in some]
        texts = [tuple(one) for one in orders]
        wanted = [tuple(case.texts[name] for name in order) for pair in compared(case) for order in permutations(pair)]
        assert sorted(texts) == sorted(wanted) and len({messages[0]["content"] for _, messages in some}) == 1
        assert {(second, first) for first, second in texts} == set(texts)


def test_a_reward_model_is_sent_the_turns_that_were_said_and_the_reply_and_nothing_else(everything: Catalogue, light: Path) -> None:
    for case, some in asked_of("reward", everything, light):
        said = [{"role": SPEAKERS[role], "content": text} for role, text in case.conversation]
        assert [messages for _, messages in some] == [[*said, {"role": "assistant", "content": text}] for text in case.texts.values()]
