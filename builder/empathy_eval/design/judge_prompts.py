"""What a judge is sent: the rubric before, then the conversation so far, the reply last, and nothing that tells where a reply is from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, refuse
from empathy_eval.base.files import data_folder
from empathy_eval.design.dataset import parts_of
from empathy_eval.design.prompts import Message, Prompts, load_prompts
from empathy_eval.design.rubrics import Criterion, Example, Rubric
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.design.taxonomy import Taxonomy

# By template what it may use; ``<name>_answer`` is the schema of what is answered to it.
_ALL = frozenset({"persona", "lessons"})
VARIABLES_OF_JUDGES = {
    "rating": _ALL | {"steps", "style", "criteria", "examples", "whole", "context", "reply"},
    "preference": _ALL | {"criterion", "context", "reply_a", "reply_b"},
    "ideal": _ALL | {"strategies", "context"},
    "named": _ALL | {"strategies", "context", "reply"},
}
# How chat models call who speaks.
SPEAKERS = {"seeker": "user", "helper": "assistant"}
Turns = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Shown:
    """An example with its texts: the turns before, the reply, the values by criterion and the reason for them."""

    context: Turns
    reply: str
    values: Mapping[str, float]
    reason: str


@dataclass(frozen=True)
class JudgePrompts:
    """The messages of a rubric. Of a turn they hold its role and its text, whatever else the turn has."""

    prompts: Prompts
    rubric: Rubric
    taxonomy: Taxonomy
    shown: tuple[Shown, ...] = ()
    # By the names of criteria what a request for them says of them: the same objects each time, so that its first message is rendered once.
    _asked: dict[tuple[str, ...], dict[str, Any]] = field(default_factory=dict, compare=False, repr=False)

    def rating(self, criteria: Iterable[Criterion], context: Turns, reply: str | None) -> list[Message]:
        """Asks for a number a criterion; without a reply it is the whole conversation that is rated."""
        asked = tuple(criteria)
        names = tuple(criterion.name for criterion in asked)
        if names not in self._asked:
            examples = [
                {"context": one.context, "reply": one.reply, "reason": one.reason, "answer": self._answer(one, asked)} for one in self.shown
            ]
            self._asked[names] = {"criteria": asked, "examples": examples}
        more = {"steps": self.rubric.steps, "style": self.rubric.style, "whole": reply is None, **self._asked[names]}
        return self._messages("rating", context, reply=reply, **more)

    def preference(self, context: Turns, reply_a: str, reply_b: str) -> list[Message]:
        """Asks which of two replies it is, A or B."""
        return self._messages("preference", context, criterion=self.rubric.criteria[0], reply_a=reply_a, reply_b=reply_b)

    def ideal(self, context: Turns) -> list[Message]:
        """Asks, before there is a reply, how likely each strategy would be right for it."""
        return self._messages("ideal", context, strategies=self.taxonomy.strategies)

    def named(self, context: Turns, reply: str) -> list[Message]:
        """Asks which strategy a reply uses."""
        return self._messages("named", context, strategies=self.taxonomy.strategies, reply=reply)

    def reward(self, context: Turns, reply: str) -> list[Message]:
        """What a reward model is given: the conversation as it would be told to the one who replies, and the reply last."""
        said = [*((turn["role"], turn["text"]) for turn in context), ("helper", reply)]
        return [{"role": SPEAKERS[role], "content": text} for role, text in said]

    def _messages(self, kind: str, context: Turns, **values: Any) -> list[Message]:
        turns = [{"role": turn["role"], "text": turn["text"]} for turn in context]
        return self.prompts.render(kind, persona=self.rubric.persona, lessons=self.rubric.lessons, context=turns, **values)

    def _answer(self, example: Shown, criteria: tuple[Criterion, ...]) -> str:
        """An example's values in the form that is asked for."""
        values = [(one.name, example.values[one.name]) for one in criteria]
        ratings = [{"criterion": name, "value": int(value) if value.is_integer() else value} for name, value in values]
        return json.dumps({"analysis": example.reason if self.rubric.style == "reasoned" else "", "ratings": ratings}, ensure_ascii=False)


def judge_prompts(rubric: Rubric, catalogue: Catalogue, folder: Path | None = None) -> JudgePrompts:
    """The messages of a rubric, by the templates of a folder (by default the project's own), its examples from the seeds of a catalogue.

    Raises:
        InputError: for a template that is not valid, and for examples that are in no seed.
    """
    prompts = load_prompts(folder or data_folder("prompt_templates") / "judges", VARIABLES_OF_JUDGES)
    return JudgePrompts(prompts, rubric, catalogue.taxonomy, _shown(rubric, catalogue))


def _shown(rubric: Rubric, catalogue: Catalogue) -> tuple[Shown, ...]:
    shown = [_of_seed(example, catalogue) for example in rubric.examples]
    fix = "name a helper turn of a seed, and a variant that it has"
    refuse(
        Problem(
            f'rubric "{rubric.name}": examples[{number}]', f'no seed of the scenarios has "{example.variant}" at "{example.pair_id}"', fix
        )
        for number, example in enumerate(rubric.examples)
        if shown[number] is None
    )
    return tuple(filter(None, shown))


def _of_seed(example: Example, catalogue: Catalogue) -> Shown | None:
    dialogue_id, place = parts_of(example.pair_id)
    seed = next((one.seed for one in catalogue.scenarios if f"{one.number:03d}-seed" == dialogue_id), None)
    if seed is None or place >= len(seed.turns) or seed.turns[place].role != "helper":
        return None
    turn = seed.turns[place]
    text: str | None = turn.text if example.variant == "reference" else getattr(turn, example.variant)
    before = [{"role": one.role, "text": one.text} for one in seed.turns[:place]]
    return Shown(before, text, example.values, example.reason) if text else None
