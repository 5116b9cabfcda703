"""Self-chat: one request for each dialogue, judged by all checks of dialogues."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from empathy_eval.completions.asker import Asker, Trail, gather_all
from empathy_eval.completions.models.seed_bank import answer_of
from empathy_eval.completions.requests import About, Flaw
from empathy_eval.design.kinds import SELF_CHAT
from empathy_eval.design.planning import Plan, PlannedTurn
from empathy_eval.design.prompts import Message
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.checks import built_in
from empathy_eval.generation.checks.built_in import too_toxic
from empathy_eval.generation.checks.custom import Check, flaws_by
from empathy_eval.generation.outcomes import Dialogue, Turn


def messages(recipe: Recipe, plan: Plan) -> list[Message]:
    """The self-chat request of a plan: the rules, an exemplar of another scenario, then the plan."""
    catalogue, config = recipe.catalogue, recipe.config
    exemplar = catalogue.exemplar(config.seed, plan.scenario_id)
    return recipe.prompts.render(
        SELF_CHAT.name,
        taxonomy=catalogue.taxonomy,
        scenario=catalogue[plan.scenario_id],
        plan=[_as_line(turn, config.checks.helper_words_at_least) for turn in plan.turns],
        persona=plan.persona,
        voice=catalogue.voice(plan.voices[0]),
        index=0 if plan.index is None else plan.index,
        exemplar=json.dumps(answer_of(exemplar), ensure_ascii=False, indent=1) if exemplar else "",
        rules=config.rules,
        limits=config.checks,
    )


def _as_line(turn: PlannedTurn, least: int) -> dict[str, str | int | None]:
    """A planned turn as the model sees it; a helper's has at least the words that checks require."""
    length = turn.lengths.get("reference")
    return {"role": turn.role, "strategy": turn.strategy, "words": max(length, least if turn.role == "helper" else 1) if length else None}


def parse_answer(value: Any) -> tuple[str, tuple[Turn, ...]]:
    """The description and the turns in a valid answer."""
    return value["description"].strip(), tuple(Turn(turn["role"], turn["text"].strip(), turn["strategy"]) for turn in value["turns"])


async def generate(asker: Asker, recipe: Recipe, checks: Sequence[Check], plan: Plan, trail: Trail) -> Dialogue | None:
    """The dialogue of a plan, or None if all samples were refused. Raises NoAnswer if the model did not answer."""

    async def judge(value: Any) -> tuple[str, tuple[Turn, ...]] | list[Flaw]:
        description, turns = parse_answer(value)
        flaws = await _flaws(asker, recipe, plan, description, turns)
        return flaws + flaws_by(checks, lambda check: check.dialogue(description, turns)) or (description, turns)

    answer = await asker.ask(About(plan.dialogue_id, SELF_CHAT.name), messages(recipe, plan), judge, trail)
    if answer is None:
        return None
    description, turns = answer.value
    source = "seed" if recipe.config.models[SELF_CHAT.role].kind == "seed-bank" else "model"
    flags = built_in.dialogue_flags(turns, recipe.language)
    return Dialogue(plan.dialogue_id, plan.scenario_id, description, turns, flags, source, answer.model, answer.request_key, *plan.voices)


async def _flaws(asker: Asker, recipe: Recipe, plan: Plan, description: str, turns: tuple[Turn, ...]) -> list[Flaw]:
    config, language = recipe.config, recipe.language
    flaws = [
        *built_in.description(description, language),
        *built_in.follows_plan(turns, plan),
        *built_in.keeps_phases(turns, recipe.catalogue.taxonomy, config.rules),
        *built_in.says_enough(turns, config.checks, language.code),
        *built_in.answers_crisis(turns, language),
    ]
    helper = {index: turn.text for index, turn in enumerate(turns) if turn.role == "helper"}
    about, limit = {index: About(plan.dialogue_id, SELF_CHAT.name, index) for index in helper}, config.checks.toxicity
    scored = await gather_all(*(too_toxic(asker, text, about[index], limit) for index, text in helper.items()))
    for text, (_, toxic) in zip(helper.values(), scored, strict=True):
        flaws += [*built_in.harmless(text, language), *toxic]
    return flaws
