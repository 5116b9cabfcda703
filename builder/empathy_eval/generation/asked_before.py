"""What a change asks again: answers that a ledger holds for the same texts under other requests, counted before anything is sent."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import EmpathyEvalError, InputError
from empathy_eval.base.schemas import read_json
from empathy_eval.base.stopping import beside_loops
from empathy_eval.completions.asker import Asker
from empathy_eval.completions.budget import cost, make_budget
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models import make_models
from empathy_eval.completions.models.protocol import Model, NoAnswer
from empathy_eval.completions.requests import About, Completion, Request, Usage
from empathy_eval.design.configuration import RELEASE_ONLY
from empathy_eval.design.kinds import CROSSED, CROSSED_CHECK, KINDS, SCORE, SELF_CHAT
from empathy_eval.design.planning import plans
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.build_folder import BUILD, CONFIGURATION
from empathy_eval.generation.checks.own import own_checks
from empathy_eval.generation.items import Workshop
from empathy_eval.generation.job import Dialogues
from empathy_eval.generation.preview import Again

# The first and the last dialogue of each scenario: what is changed for one of its dialogues is changed for nearly all.
LOOKED_AT = "SELECT min(dialogue_id), max(dialogue_id) FROM sound_completions WHERE kind = ? GROUP BY substr(dialogue_id, 1, 3)"
# Rows that somebody answered, and not a seed bank or this machine.
PAID = f"""
FROM sound_completions WHERE kind IN ({", ".join(f"'{name}'" for name in KINDS if name != SCORE.name)}) AND model NOT LIKE 'seed-bank@%'
"""
ROWS = f"SELECT dialogue_id, kind, turn, count(*) {PAID} AND dialogue_id IN (SELECT value FROM json_each(?)) GROUP BY 1, 2, 3"  # noqa: S608
TOTALS = f"""
SELECT substr(dialogue_id, 1, 3), kind, count(*), sum(input_tokens), sum(cached_tokens), sum(output_tokens) {PAID} GROUP BY 1, 2
"""  # noqa: S608
# A score that every limit takes.
PASSED = Completion('{"score": 0}', "stop", SCORE.name)
# A scenario and a kind of request.
Group = tuple[str, str]


class _Looking(Asker):
    """Answers from the ledger alone, and notes what has an answer there and what has none."""

    answered: set[About]
    unanswered: set[About]

    async def complete(self, model: Model, request: Request) -> Completion:
        found = self.ledger.get(request.key)
        if found is None and KINDS[request.about.kind].delivery == SCORE.delivery:
            return PASSED  # it would be computed here, for every text, and kept nowhere
        (self.unanswered if found is None else self.answered).add(request.about)
        if found is None:
            raise NoAnswer(str(request.about))
        return found


def asked_again(recipe: Recipe, ledger: Path, folders: Iterable[Path] = ()) -> Again | None:
    """The answers of a ledger that a build would not use, though they are of its own texts; None if there is none.

    A few dialogues of each scenario are replayed, and what is seen there is reckoned for all. ``folders`` are those of builds that may say
    what was changed since. Nothing is sent or stored; what keeps it from being looked at, the build itself will tell.
    """
    if not ledger.is_file() or all(one.kind == "seed-bank" for one in recipe.config.asked.values()):
        return None
    try:
        return beside_loops(lambda: _asked_again(recipe, ledger, folders))
    except EmpathyEvalError:
        return None


def _asked_again(recipe: Recipe, path: Path, folders: Iterable[Path]) -> Again | None:
    with Ledger(path, create=False, write=False) as ledger:
        ids = {one for pair in ledger.query(LOOKED_AT, (SELF_CHAT.name,)) for one in pair if isinstance(one, str)}
        lacking = asyncio.run(_lacking(recipe, ledger, ids)) if ids else set()
        if not lacking:
            return None
        unused, seen = Counter[Group](), Counter[Group]()
        for dialogue_id, kind, turn, count in ledger.query(ROWS, (json.dumps(sorted(ids)),)):
            if KINDS[kind] not in recipe.kinds:  # it is not asked at all
                continue
            seen[dialogue_id[:3], kind] += count
            # What a request is made of: the dialogue, and for a reading of a crossed item that item.
            before = About(dialogue_id, CROSSED.name, turn) if kind == CROSSED_CHECK.name else About(dialogue_id, SELF_CHAT.name)
            if not lacking.isdisjoint((About(dialogue_id, SELF_CHAT.name), before, About(dialogue_id, kind, turn))):
                unused[dialogue_id[:3], kind] += count
        totals = {(scenario, kind): (count, Usage(*tokens)) for scenario, kind, count, *tokens in ledger.query(TOTALS)}
    shares = {group: count / seen[group] for group, count in unused.items()}
    exact = all(seen[group] == totals[group][0] for group in shares)
    return _reckoned(recipe, shares, totals, exact, tuple(_changed(recipe, folders))) if shares else None


def _reckoned(
    recipe: Recipe, shares: Mapping[Group, float], totals: Mapping[Group, tuple[int, Usage]], exact: bool, changed: tuple[str, ...]
) -> Again:
    """What a share of the answers of each scenario and kind comes to, and cost."""
    kinds, tokens, dollars, priced = Counter[str](), 0, 0.0, True
    for group, share in shares.items():
        (count, usage), prices = totals[group], recipe.config.models[KINDS[group[1]].role].prices
        used = Usage(*(round(share * one) for one in (usage.input_tokens, usage.cached_tokens, usage.output_tokens)))
        kinds[group[1]] += round(share * count)
        tokens += used.input_tokens + used.output_tokens
        dollars += cost(used, prices) if prices else 0.0
        priced = priced and prices is not None
    answers = sum(count for count, _ in totals.values())
    return Again(dict(sorted(kinds.items())), answers, exact, tokens, dollars if priced else None, changed)


async def _lacking(recipe: Recipe, ledger: Ledger, ids: set[str]) -> set[About]:
    """What of these dialogues is asked first, and has no answer; a further sample of what has one is no change."""
    job = Dialogues(recipe).found()
    config = job.recipe.config
    models = make_models(job.recipe, make_budget(config, ledger, None, None))
    asker = _Looking(ledger, models, job.prompts, samples=config.samples, repairs=config.repairs)
    asker.answered, asker.unanswered = set(), set()
    workshop = Workshop(job.recipe, asker, own_checks(job.recipe))
    try:
        for plan in plans(config, job.recipe.catalogue, ids):
            await workshop.item(plan)
    finally:
        # What was handed in was not asked, and is not to be closed before it is.
        for model in {models[role] for role in config.asked if role not in recipe.models}:
            await model.close()
    return asker.unanswered - asker.answered


def _changed(recipe: Recipe, folders: Iterable[Path]) -> Iterator[str]:
    """What is another than where the answers were asked for, as far as a folder of a build says so."""
    now, told = dict(_leaves(recipe.config.published)), set[str]()
    made = {
        "template": recipe.templates,
        "scenario file": recipe.scenario_files,
        "all": {"seed dialogues": recipe.catalogue.seed_hash},
    }
    for folder in dict.fromkeys(folders):
        if (folder / CONFIGURATION).is_file():
            before = dict(_leaves(read_json(folder / CONFIGURATION, None, "")))
            told |= {
                f"{name} ({_shown(now.get(name))}, was {_shown(before.get(name))})"
                for name in now.keys() | before.keys()
                if now.get(name) != before.get(name)
            }
        with contextlib.suppress(InputError):  # a folder without a finished build, or with what is none, says nothing of it
            header = read_json(folder / BUILD, "build", "")
            then = (header.get("templates", {}), header.get("scenario_files", {}), {"seed dialogues": header.get("seeds")})
            for (what, hashes), others in zip(made.items(), then, strict=True):
                told |= {f"{what} {name}" for name, value in hashes.items() if others.get(name) not in (None, value)}
    yield from sorted(told)


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by place, without what is no part of a request whatever it says."""
    for name, one in value.items() if isinstance(value, Mapping) else ():
        if place or name not in (*RELEASE_ONLY, "name"):
            inside = f"{place}: {name}" if place else name
            yield from _leaves(one, inside) if isinstance(one, Mapping) and one else ((inside, one),)


def _shown(value: Any) -> str:
    """A setting as it is told; nothing for one that is left out."""
    text = "left out" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
