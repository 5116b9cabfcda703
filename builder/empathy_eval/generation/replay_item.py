"""Replay of one item over a ledger, without sending anything: its requests, the answers, and the verdicts."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from empathy_eval.base.errors import InputError
from empathy_eval.completions.asker import DryRun, Step
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models import make_models
from empathy_eval.completions.models.custom import placeholder_model
from empathy_eval.completions.models.toxicity_scorer import ToxicityScorer
from empathy_eval.completions.requests import LONGEST, NoAnswer
from empathy_eval.design.kinds import KINDS, SCORE, SELF_CHAT
from empathy_eval.design.planning import Plan
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.crossed_by_models import CrossedItemWriter
from empathy_eval.generation.job import ItemPipeline
from empathy_eval.generation.outcomes import Dialogue, ItemTrail, Outcome
from empathy_eval.generation.rewriting import Rewriter

ORDER = {kind: index for index, kind in enumerate(KINDS)}


@dataclass(frozen=True)
class Trace:
    """All requests of an item by turn and kind, its outcome, and the dialogue whose turns were rewritten."""

    outcome: Outcome
    steps: tuple[Step, ...]
    dialogue: Dialogue | None

    @property
    def scores(self) -> dict[str, float]:
        """The toxicity of texts, in [0, 1]."""
        scores = dict[str, float]()
        for step in self.steps:
            if step.verdict == "scored" and step.completion:
                with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
                    scores[step.request.body["text"]] = float(json.loads(step.completion.text)["score"])
        return scores


@dataclass(frozen=True)
class KnownItem:
    """Known facts of an item besides recipe and ledger: its dialogue, and refusal reasons by key.

    The dialogue is used if the ledger does not give it; the reasons are used if no check that runs here finds one.
    """

    dialogue: Dialogue | None = None
    refused: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class ItemReplayer:
    """Replays items of a recipe with the code of a build.

    Custom models and checks are not run. A custom model is assumed to add nothing to its messages, as a ``TextModel`` does; the request
    keys show whether that is right. ``names`` are the names of such models, ``weights`` those of the scorer.
    """

    def __init__(self, recipe: Recipe, ledger: Ledger, weights: str | None = None, names: Mapping[str, str] | None = None) -> None:
        self.recipe, self.ledger = recipe, ledger
        own = {role: model for role, model in recipe.config.models.items() if not model.remote and model.kind != "seed-bank"}
        given = {role: placeholder_model(model, (names or {}).get(role, "")) for role, model in own.items()}
        self._models = make_models(replace(recipe, models=given), Budget())
        if isinstance(scorer := self._models.get(SCORE.role), ToxicityScorer):
            if weights is None:
                with contextlib.suppress(InputError):
                    weights = scorer.weights
            scorer.weights = weights or ""

    def trace(self, plan: Plan, known: KnownItem | None = None) -> Trace:
        """Replays a planned item, in its own event loop. Raises JobError if a ledger row that it needs is damaged."""
        return asyncio.run(self._trace(plan, known or KnownItem()))

    async def _trace(self, plan: Plan, known: KnownItem) -> Trace:
        asker = DryRun(self.ledger, self._models, self.recipe.prompts, self.recipe.config)
        asker.refused = known.refused
        outcome, dialogue = await ItemPipeline(self.recipe, asker).item(plan), known.dialogue
        if (
            dialogue is None
            or (outcome.dialogue and outcome.dialogue.turns == dialogue.turns)
            or not matches_plan(dialogue, plan, self.recipe)
        ):
            return Trace(outcome, _in_order(asker), outcome.dialogue)
        # The replay ends where an answer is missing, or tells another dialogue; with the right one at hand it goes on behind that.
        asker.steps = {key: step for key, step in asker.steps.items() if step.about.kind in (SELF_CHAT.name, SCORE.name)}
        makers = asker, self.recipe, (), ItemTrail()
        with contextlib.suppress(NoAnswer):
            await Rewriter(*makers).pairs(dialogue, plan.turns)
        with contextlib.suppress(NoAnswer):
            await CrossedItemWriter(*makers).items(dialogue, plan)
        return Trace(outcome, _in_order(asker), dialogue)


def _in_order(asker: DryRun) -> tuple[Step, ...]:
    """The requests by turn, kind and sample; scores of a turn come last."""

    def order(step: Step) -> tuple[int, int, int, bool]:
        return -1 if step.about.turn is None else step.about.turn, ORDER[step.about.kind], step.request.sample, step.repair

    return tuple(sorted(asker.steps.values(), key=order))


def matches_plan(dialogue: Dialogue, plan: Plan, recipe: Recipe) -> bool:
    """Whether an untrusted dialogue has the planned turns, each short enough to be checked."""
    helpers = [turn for turn in dialogue.turns if turn.role == "helper"]
    known = all(turn.strategy is not None and turn.strategy in recipe.catalogue.taxonomy for turn in helpers)
    short = all(len(turn.text) <= LONGEST for turn in dialogue.turns)
    return known and short and [turn.role for turn in dialogue.turns] == [turn.role for turn in plan.turns]
