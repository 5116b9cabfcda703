"""Preview of a build: the requests it would send and their estimated cost, without sending anything."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import EmpathyEvalError, InputError, shortened
from empathy_eval.base.schemas import read_json
from empathy_eval.base.stopping import run_beside_loops
from empathy_eval.completions.asker import DryRun, samples_of
from empathy_eval.completions.budget import Budget, cost
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models import make_models
from empathy_eval.completions.requests import About, Completion, Request, Usage, read_answer
from empathy_eval.design.configuration import RELEASE_ONLY, SAMPLES_PER_CANDIDATE
from empathy_eval.design.endpoints import ModelConfig
from empathy_eval.design.kinds import CROSSED, CROSSED_CHECK, CROSSING, KINDS, SCORE, SELF_CHAT, Kind
from empathy_eval.design.planning import Plan, PlannedTurn, kinds_of, kinds_of_plan, plans, refuse_unknown_errata
from empathy_eval.design.prompts import Message
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.taxonomy import crossable
from empathy_eval.generation import crossed_by_models, rewriting, self_chat
from empathy_eval.generation.checks.custom import custom_checks
from empathy_eval.generation.job import Dialogues, ItemPipeline, placeholder_dialogue
from empathy_eval.generation.outcomes import BUILD, CONFIGURATION, Dialogue
from empathy_eval.generation.replay_item import matches_plan

# Assumed of a kind of request that the ledger has no answer of yet: a token of English is about four bytes; the paper's turns
# have 28.7 words, about 40 tokens, and JSON adds to them.
BYTES_A_TOKEN, TOKENS_A_TURN, TOKENS_A_VARIANT = 4, 55, 50
SECONDS_A_REQUEST, SECONDS_A_TOKEN = 0.5, 0.02
# Items whose requests are rendered to learn the size of a request.
RENDERED = 5
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


@dataclass(frozen=True)
class RequestEstimate:
    """The cost of one kind of request over a whole build; ``observed`` if averages of the ledger were used, else assumed."""

    kind: str
    model: str
    requests: int
    usage: Usage
    dollars: float | None
    hours: float
    observed: bool


@dataclass(frozen=True)
class UnusedAnswers:
    """Answers in a ledger that a build would not use and would request again, by kind; ``exact`` if counted, else extrapolated.

    ``answers`` counts all requested answers; ``tokens`` and ``dollars`` (None without prices) are the cost of the unused ones; ``changed``
    lists known changes since they were requested.
    """

    kinds: Mapping[str, int]
    answers: int
    exact: bool
    tokens: int
    dollars: float | None
    changed: tuple[str, ...]

    def __str__(self) -> str:
        about = "" if self.exact else "about "
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in self.kinds.items())
        dollars = "" if self.dollars is None else f", ${self.dollars:,.2f}"
        changed = "; ".join(self.changed) or "templates, scenarios or settings; no build folder records the old ones"
        cost = f"about {self.tokens:,} tokens{dollars}"
        return (
            f"asks again for {about}{sum(self.kinds.values()):,} of {self.answers:,} answers in the ledger, {cost} ({kinds})\n"
            f"  changed since: {changed}\n"
            "  to use them, undo the change; to go on, do nothing: no answer is deleted from the ledger"
        )


@dataclass(frozen=True)
class Preview:
    """The first requests of a build, and the estimates for all of it.

    ``placeholders`` names dialogues for which a seed or filler words stand in; ``again`` are answers that a change makes useless.
    """

    requests: tuple[Request, ...]
    placeholders: tuple[str, ...]
    estimates: tuple[RequestEstimate, ...]
    again: UnusedAnswers | None = None


def preview(recipe: Recipe, ledger_path: Path | None, count: int) -> Preview:
    """Renders the requests of the first ``count`` items, and estimates the build.

    Self-chat requests are exactly those of a build. So are rewriting requests if the ledger has the dialogue; otherwise a seed dialogue
    stands in for it, or filler words without a seed. If the ledger lacks a crossed item, the dialogue's own words stand in for it.

    Raises:
        InputError: if the ledger cannot be opened, or what is withdrawn or corrected is not planned.
    """
    refuse_unknown_errata(recipe.config, recipe.catalogue)
    with Ledger(ledger_path, create=False, write=False) if ledger_path else Ledger(Path(":memory:")) as ledger:
        items = RequestRenderer(recipe, ledger)
        shown = [(plan, items.requests(plan)) for plan in itertools.islice(plans(recipe.config, recipe.catalogue), max(count, RENDERED))]
        estimates = tuple(items.estimates([request for _, requests in shown for request in requests]))
        first = [request for _, requests in shown[:count] for request in requests]
        plans_shown = [plan for plan, _ in shown[:count]]
        stand_ins = tuple(plan.dialogue_id for plan in plans_shown if items.dialogue(plan) is None or plan.dialogue_id in items.unwritten)
    return Preview(tuple(first), stand_ins, estimates)


class RequestRenderer:
    """Renders the requests of items without sending them."""

    def __init__(self, recipe: Recipe, ledger: Ledger) -> None:
        self.recipe, self.ledger = recipe, ledger
        self.config, self.catalogue = recipe.config, recipe.catalogue
        # The dialogues with a crossed item that the ledger does not hold, as far as requests of them were rendered.
        self.unwritten = set[str]()
        self.models = make_models(recipe, Budget())

    def requests(self, plan: Plan) -> list[Request]:
        """All first-sample requests of an item."""
        dialogue, turns = self.dialogue(plan), plan.turns
        if dialogue is None:
            dialogue, turns = placeholder_dialogue(plan, self.recipe)
        requests = [self._self_chat(plan)]
        for scene in rewriting.scenes(dialogue, turns, self.recipe.language):
            for kind in kinds_of(scene.planned, self.config):
                requests.append(self._request(kind, rewriting.messages(self.recipe, kind, scene), scene.about(kind)))
        return [*requests, *self._crossed(plan, dialogue, turns)]

    def _crossed(self, plan: Plan, dialogue: Dialogue, turns: tuple[PlannedTurn, ...]) -> Iterator[Request]:
        """The requests of an item's crossed items. Until an item is written, the reference stands in for its reply."""
        # A dialogue that stands in has places of its own.
        at = plan if dialogue.source == "model" else replace(plan, turns=turns, crossed=tuple(crossable([turn.role for turn in turns])))
        for scene in crossed_by_models.crossable_scenes(dialogue, at, self.recipe.language)[0][: plan.crosses]:
            asked = self._request(CROSSED, crossed_by_models.messages(self.recipe, scene), scene.about(CROSSED))
            yield asked
            if (value := self._answer(asked)) is None:
                self.unwritten.add(plan.dialogue_id)
            written = crossed_by_models.parse_answer(value) if value else {"twin": scene.context[-1].text, "reply": scene.reference.text}
            for trial in crossed_by_models.trials(scene, written["twin"], written["reply"]):
                yield self._request(CROSSED_CHECK, trial.messages(self.recipe), scene.about(CROSSED_CHECK))

    def dialogue(self, plan: Plan) -> Dialogue | None:
        """The dialogue in the ledger for a plan, if its first sample has the planned turns; else None."""
        value = self._answer(self._self_chat(plan))
        if value is None:
            return None
        dialogue = Dialogue(plan.dialogue_id, plan.scenario_id, *self_chat.parse_answer(value), (), "model", "", "", *plan.voices)
        return dialogue if matches_plan(dialogue, plan, self.recipe) else None

    def _answer(self, request: Request) -> Any:
        """The value of the ledger's answer to a request, if it is valid."""
        completion = self.ledger.get(request.key)
        return read_answer(completion, KINDS[request.about.kind].answer)[0] if completion else None

    def _self_chat(self, plan: Plan) -> Request:
        return self._request(SELF_CHAT, self_chat.messages(self.recipe, plan), About(plan.dialogue_id, SELF_CHAT.name))

    def _request(self, kind: Kind, messages: list[Message], about: About) -> Request:
        model = self.models[kind.role]
        return Request(model.body(messages, kind.answer), model.endpoint, about)

    def estimates(self, rendered: list[Request]) -> Iterator[RequestEstimate]:
        """By kind: requests counted over the plan, tokens and time from the ledger's averages or from rendered requests."""
        counts, crossed = Counter[Kind](), list[Plan]()
        for plan in plans(self.config, self.catalogue):
            for kind in kinds_of_plan(plan, self.config):
                counts[kind] += self.config.candidates if kind.variant else 1
            crossed += [plan] if plan.crosses and len(crossed) < RENDERED else []
        shown = [*rendered, *(request for plan in crossed for request in self.requests(plan) if KINDS[request.about.kind] in CROSSING)]
        for kind, count in counts.items():
            settings = self.config.models[kind.role]
            sizes = [request.size for request in shown if request.about.kind == kind.name]
            average, seconds, each, observed = self._observed(kind.name, settings.model) or self._assumed(kind, sizes)
            many = self._candidates([request for request in rendered if request.about.kind == kind.name]) if kind.variant else 1
            yield estimated(kind.name, settings, round(count * each / many), average, seconds, observed=observed)

    def _candidates(self, rendered: list[Request]) -> float:
        """The average number of candidates in the ledger, judged by these first requests; 1 if it has none."""
        candidates = (map(attrgetter("key"), samples_of(request, SAMPLES_PER_CANDIDATE, SAMPLES_PER_CANDIDATE)) for request in rendered)
        counts = [sum(1 for _ in itertools.takewhile(self.ledger.get, keys)) for keys in candidates]
        asked = [count for count in counts if count]
        return sum(asked) / len(asked) if asked else 1

    def _observed(self, kind: str, model: str) -> tuple[list[float], float, float, bool] | None:
        """Averages of the ledger. Refused samples and repairs count as further requests for the same thing."""
        query = (
            "SELECT count(*), count(DISTINCT dialogue_id || '/' || ifnull(turn, '')), avg(input_tokens), avg(cached_tokens),"
            " avg(output_tokens), avg(seconds) FROM sound_completions WHERE kind = ? AND model = ?"
        )
        count, things, *tokens, seconds = (float(str(value or 0)) for value in next(self.ledger.query(query, (kind, model))))
        return (tokens, seconds, count / things, True) if count else None

    def _assumed(self, kind: Kind, sizes: list[int]) -> tuple[list[float], float, float, bool]:
        turns = (self.config.rules.min_turns + self.config.rules.max_turns) / 2
        written = turns * TOKENS_A_TURN if kind == SELF_CHAT else TOKENS_A_VARIANT * (3 if kind == CROSSED else 1)
        return *assumed(sizes, written), float(kind.times), False


def assumed(sizes: Sequence[int], written: float) -> tuple[list[float], float]:
    """The assumed tokens (read, cached, written) and seconds of a request, given only the sizes of such requests in bytes."""
    read = sum(sizes) / len(sizes) / BYTES_A_TOKEN if sizes else 0.0
    return [read, 0.0, written], SECONDS_A_REQUEST + written * SECONDS_A_TOKEN


def estimated(
    kind: str, settings: ModelConfig, requests: int, average: Sequence[float], seconds: float, *, observed: bool
) -> RequestEstimate:
    """The estimate for a number of requests, from the average tokens (read, cached, written) and seconds of one."""
    usage = Usage(*(round(requests * value) for value in average))
    dollars = cost(usage, settings.prices) if settings.prices else None
    return RequestEstimate(kind, settings.model, requests, usage, dollars, _hours(settings, requests, usage, seconds), observed)


def _hours(settings: ModelConfig, requests: int, usage: Usage, seconds: float) -> float:
    """The slowest of three limits: requests in flight, requests per minute, tokens per minute."""
    minutes = [requests * seconds / settings.in_flight / 60]
    if settings.requests_per_minute:
        minutes.append(requests / settings.requests_per_minute)
    if settings.tokens_per_minute:
        minutes.append((usage.input_tokens + usage.output_tokens) / settings.tokens_per_minute)
    return max(minutes) / 60


def unused_answers(recipe: Recipe, ledger: Path, folders: Iterable[Path] = ()) -> UnusedAnswers | None:
    """The answers of a ledger that a build would not use although they are about its texts; None if there are none.

    A few dialogues of each scenario are replayed, and the result is extrapolated. ``folders`` are builds that may show what was changed
    since. Nothing is sent or stored; errors are left to the build itself.
    """
    if not ledger.is_file() or all(model.kind == "seed-bank" for model in recipe.config.active_models.values()):
        return None
    try:
        return run_beside_loops(lambda: _unused_answers(recipe, ledger, folders))
    except EmpathyEvalError:
        return None


def _unused_answers(recipe: Recipe, path: Path, folders: Iterable[Path]) -> UnusedAnswers | None:
    with Ledger(path, create=False, write=False) as ledger:
        ids = {dialogue_id for pair in ledger.query(LOOKED_AT, (SELF_CHAT.name,)) for dialogue_id in pair if isinstance(dialogue_id, str)}
        lacking = asyncio.run(_unanswered(recipe, ledger, ids)) if ids else set()
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
    return _extrapolated(recipe, shares, totals, exact, tuple(_changed(recipe, folders))) if shares else None


def _extrapolated(
    recipe: Recipe, shares: Mapping[Group, float], totals: Mapping[Group, tuple[int, Usage]], exact: bool, changed: tuple[str, ...]
) -> UnusedAnswers:
    """The counts and cost of a share of the answers of each scenario and kind."""
    kinds, tokens, dollars, priced = Counter[str](), 0, 0.0, True
    for group, share in shares.items():
        (count, usage), prices = totals[group], recipe.config.models[KINDS[group[1]].role].prices
        used = Usage(*(round(share * number) for number in (usage.input_tokens, usage.cached_tokens, usage.output_tokens)))
        kinds[group[1]] += round(share * count)
        tokens += used.input_tokens + used.output_tokens
        dollars += cost(used, prices) if prices else 0.0
        priced = priced and prices is not None
    answers = sum(count for count, _ in totals.values())
    return UnusedAnswers(dict(sorted(kinds.items())), answers, exact, tokens, dollars if priced else None, changed)


async def _unanswered(recipe: Recipe, ledger: Ledger, ids: set[str]) -> set[About]:
    """The first requests of these dialogues without an answer; further samples of answered requests do not count."""
    job = Dialogues(recipe).resolved()
    config = job.recipe.config
    models = make_models(job.recipe, Budget())
    # A score that the ledger does not have would be computed, for every text, and kept nowhere.
    asker = DryRun(ledger, models, job.prompts, config, instead={SCORE.name: PASSED})
    workshop = ItemPipeline(job.recipe, asker, custom_checks(job.recipe))
    try:
        for plan in plans(config, job.recipe.catalogue, ids):
            await workshop.item(plan)
    finally:
        # What was handed in was not asked, and is not to be closed before it is.
        for model in {models[role] for role in config.active_models if role not in recipe.models}:
            await model.close()
    asked = [step for step in asker.steps.values() if step.about.kind != SCORE.name]
    return {step.about for step in asked if step.completion is None} - {step.about for step in asked if step.completion}


def _changed(recipe: Recipe, folders: Iterable[Path]) -> Iterator[str]:
    """What differs from the build that requested the answers, as far as its folder shows it."""
    now, changes = dict(_leaves(recipe.config.published)), set[str]()
    present = {"template": recipe.templates, "scenario file": recipe.scenario_files, "all": {"seed dialogues": recipe.catalogue.seed_hash}}
    for folder in dict.fromkeys(folders):
        if (folder / CONFIGURATION).is_file():
            before = dict(_leaves(read_json(folder / CONFIGURATION, None, "")))
            differing = (name for name in now.keys() | before.keys() if now.get(name) != before.get(name))
            changes |= {f"{name} ({_shown(now.get(name))}, was {_shown(before.get(name))})" for name in differing}
        with contextlib.suppress(InputError):  # a folder without a finished build, or with what is none, says nothing of it
            header = read_json(folder / BUILD, "build", "")
            then = (header.get("templates", {}), header.get("scenario_files", {}), {"seed dialogues": header.get("seeds")})
            for (what, hashes), others in zip(present.items(), then, strict=True):
                changes |= {f"{what} {name}" for name, value in hashes.items() if others.get(name) not in (None, value)}
    yield from sorted(changes)


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by place, without those that never change a request."""
    for name, item in value.items() if isinstance(value, Mapping) else ():
        if place or name not in (*RELEASE_ONLY, "name"):
            inside = f"{place}: {name}" if place else name
            yield from _leaves(item, inside) if isinstance(item, Mapping) and item else ((inside, item),)


def _shown(value: Any) -> str:
    """A setting for display; "left out" if missing."""
    return shortened("left out" if value is None else str(value), 40)
