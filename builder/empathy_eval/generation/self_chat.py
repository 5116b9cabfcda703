"""Self-chat: one request a dialogue, judged by every check a dialogue must pass."""

from __future__ import annotations

import json
from typing import Any

from empathy_eval.completions.asker import Asker, Trail, settled
from empathy_eval.completions.requests import About, Flaw
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.planning import Plan
from empathy_eval.design.prompts import Message, Prompts
from empathy_eval.design.scenarios import Catalogue, Seed
from empathy_eval.generation.checks import dialogue as dialogue_checks
from empathy_eval.generation.checks import safety
from empathy_eval.generation.checks.toxicity import Toxicity
from empathy_eval.generation.outcomes import Dialogue, Turn


def messages(prompts: Prompts, catalogue: Catalogue, config: Configuration, plan: Plan) -> list[Message]:
    """The self-chat request of a plan: the rules first, an exemplar of another scenario, then the plan."""
    return prompts.render(
        "self_chat",
        taxonomy=catalogue.taxonomy,
        scenario=catalogue[plan.scenario_id],
        plan=plan.turns,
        index=0 if plan.index is None else plan.index,
        exemplar=_as_answer(catalogue.exemplar(config.seed, plan.scenario_id)),
        rules=config.rules,
        limits=config.checks,
    )


def _as_answer(seed: Seed | None) -> str:
    if seed is None:
        return ""
    turns = [{"role": turn.role, "strategy": turn.strategy, "text": turn.text} for turn in seed.turns]
    return json.dumps({"description": seed.description, "turns": turns}, ensure_ascii=False, indent=1)


async def generate(
    asker: Asker, catalogue: Catalogue, config: Configuration, toxicity: Toxicity, plan: Plan, trail: Trail
) -> Dialogue | None:
    """The dialogue of a plan, or None when all samples were refused.

    Raises:
        NoAnswer: if the model did not answer.
    """

    async def judge(value: Any) -> tuple[str, tuple[Turn, ...]] | list[Flaw]:
        turns = tuple(Turn(turn["role"], turn["text"].strip(), turn["strategy"]) for turn in value["turns"])
        told = value["description"].strip()
        return await _flaws(turns, told, plan, catalogue, config, toxicity) or (told, turns)

    about = About(plan.dialogue_id, "self_chat")
    answer = await asker.ask("self_chat", about, messages(asker.prompts, catalogue, config, plan), "dialogue_answer", judge, trail)
    if answer is None:
        return None
    description, turns = answer.value
    source = "seed" if config.models["self_chat"].kind == "seed-bank" else "model"
    flags = safety.dialogue_flags(turns)
    return Dialogue(plan.dialogue_id, plan.scenario_id, description, turns, flags, source, answer.model, answer.request_key)


async def _flaws(
    turns: tuple[Turn, ...], told: str, plan: Plan, catalogue: Catalogue, config: Configuration, toxicity: Toxicity
) -> list[Flaw]:
    found = [
        *dialogue_checks.description(told),
        *dialogue_checks.follows_plan(turns, plan),
        *dialogue_checks.keeps_phases(turns, catalogue.taxonomy, config.rules),
        *dialogue_checks.says_enough(turns, config.checks),
        *safety.answers_crisis(turns),
    ]
    helper = {place: turn.text for place, turn in enumerate(turns) if turn.role == "helper"}
    scores = await settled(*(toxicity.score(text, About(plan.dialogue_id, "score", place)) for place, text in helper.items()))
    for text, score in zip(helper.values(), scores, strict=True):
        found += [*safety.harmless(text), *toxicity.flaws(score)]
    return found
