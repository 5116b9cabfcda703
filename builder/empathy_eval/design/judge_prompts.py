"""Judge prompts: the rubric, the conversation so far, then the reply, without any hint where a reply comes from."""

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
from empathy_eval.design.rubrics import Criterion, Rubric, RubricExample
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
class JudgeExample:
    """An example with its texts: the turns before, the reply, the values by criterion and the reason."""

    context: Turns
    reply: str
    values: Mapping[str, float]
    reason: str


@dataclass(frozen=True)
class JudgePrompts:
    """The messages of a rubric. They show the role and text of a turn, whatever else it has."""

    prompts: Prompts
    rubric: Rubric
    taxonomy: Taxonomy
    shown: tuple[JudgeExample, ...] = ()
    # By the names of criteria what a request for them says of them: the same objects each time, so that its first message is rendered once.
    _asked: dict[tuple[str, ...], dict[str, Any]] = field(default_factory=dict, compare=False, repr=False)

    def rating(self, criteria: Iterable[Criterion], context: Turns, reply: str | None) -> list[Message]:
        """Asks for a number for each criterion; without a reply the whole conversation is rated."""
        asked = tuple(criteria)
        names = tuple(criterion.name for criterion in asked)
        if names not in self._asked:
            examples = [
                {"context": example.context, "reply": example.reply, "reason": example.reason, "answer": self._answer(example, asked)}
                for example in self.shown
            ]
            self._asked[names] = {"criteria": asked, "examples": examples}
        more = {"steps": self.rubric.steps, "style": self.rubric.style, "whole": reply is None, **self._asked[names]}
        return self._messages("rating", context, reply=reply, **more)

    def preference(self, context: Turns, reply_a: str, reply_b: str) -> list[Message]:
        """Asks which of two replies is preferred, A or B."""
        return self._messages("preference", context, criterion=self.rubric.criteria[0], reply_a=reply_a, reply_b=reply_b)

    def ideal(self, context: Turns) -> list[Message]:
        """Asks, without a reply, how likely each strategy would be right."""
        return self._messages("ideal", context, strategies=self.taxonomy.strategies)

    def named(self, context: Turns, reply: str) -> list[Message]:
        """Asks which strategy a reply uses."""
        return self._messages("named", context, strategies=self.taxonomy.strategies, reply=reply)

    def reward(self, context: Turns, reply: str) -> list[Message]:
        """The input of a reward model: the conversation in chat roles, the reply last."""
        turns = [*((turn["role"], turn["text"]) for turn in context), ("helper", reply)]
        return [{"role": SPEAKERS[role], "content": text} for role, text in turns]

    def _messages(self, kind: str, context: Turns, **values: Any) -> list[Message]:
        turns = [{"role": turn["role"], "text": turn["text"]} for turn in context]
        return self.prompts.render(kind, persona=self.rubric.persona, lessons=self.rubric.lessons, context=turns, **values)

    def _answer(self, example: JudgeExample, criteria: tuple[Criterion, ...]) -> str:
        """An example's values in the requested form."""
        values = [(criterion.name, example.values[criterion.name]) for criterion in criteria]
        ratings = [{"criterion": name, "value": int(value) if value.is_integer() else value} for name, value in values]
        return json.dumps({"analysis": example.reason if self.rubric.style == "reasoned" else "", "ratings": ratings}, ensure_ascii=False)


def judge_prompts(rubric: Rubric, catalogue: Catalogue, folder: Path | None = None) -> JudgePrompts:
    """The messages of a rubric, by the templates of a folder (by default the packaged one); examples come from the catalogue's seeds.

    Raises:
        InputError: for an invalid template, and for examples that no seed has.
    """
    prompts = load_prompts(folder or data_folder("prompt_templates") / "judges", VARIABLES_OF_JUDGES)
    return JudgePrompts(prompts, rubric, catalogue.taxonomy, _shown(rubric, catalogue))


def _shown(rubric: Rubric, catalogue: Catalogue) -> tuple[JudgeExample, ...]:
    shown = [_of_seed(example, catalogue) for example in rubric.examples]
    fix = "name a helper turn of a seed, and a variant that it has"
    missing = [(number, example) for number, example in enumerate(rubric.examples) if shown[number] is None]
    where, what = f'rubric "{rubric.name}": examples', "no seed of the scenarios has"
    refuse(Problem(f"{where}[{number}]", f'{what} "{example.variant}" at "{example.pair_id}"', fix) for number, example in missing)
    return tuple(filter(None, shown))


def _of_seed(example: RubricExample, catalogue: Catalogue) -> JudgeExample | None:
    dialogue_id, index = parts_of(example.pair_id)
    seed = next((scenario.seed for scenario in catalogue.scenarios if f"{scenario.number:03d}-seed" == dialogue_id), None)
    if seed is None or index >= len(seed.turns) or seed.turns[index].role != "helper":
        return None
    turn = seed.turns[index]
    text: str | None = turn.text if example.variant == "reference" else getattr(turn, example.variant)
    before = [{"role": earlier.role, "text": earlier.text} for earlier in seed.turns[:index]]
    return JudgeExample(before, text, example.values, example.reason) if text else None
