"""One item gone through again over a ledger, asking nobody: each of its requests, the answer, and what became of that."""

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
from empathy_eval.completions.models.own import messages_alone
from empathy_eval.completions.models.toxicity_scorer import ToxicityScorer
from empathy_eval.completions.requests import LONGEST, NoAnswer
from empathy_eval.design.kinds import KINDS, SCORE, SELF_CHAT
from empathy_eval.design.planning import Plan
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.crossed_by_models import CrossedItemWriter
from empathy_eval.generation.job import ItemPipeline
from empathy_eval.generation.outcomes import Dialogue, ItemTrail, Outcome
from empathy_eval.generation.rewriting import Rewriter

ORDER = {kind: place for place, kind in enumerate(KINDS)}


@dataclass(frozen=True)
class Trace:
    """All requests of an item by turn and kind, what became of it, and the dialogue whose turns were rewritten."""

    outcome: Outcome
    steps: tuple[Step, ...]
    dialogue: Dialogue | None

    @property
    def scores(self) -> dict[str, float]:
        """The toxicity of texts, in [0, 1]."""
        found = dict[str, float]()
        for one in self.steps:
            if one.verdict == "scored" and one.completion:
                with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
                    found[one.request.body["text"]] = float(json.loads(one.completion.text)["score"])
        return found


@dataclass(frozen=True)
class Known:
    """What is known of an item beside recipe and ledger: its dialogue, and the reasons against answers, by key.

    The dialogue is gone on with where the ledger does not tell it; the reasons are believed where no check that is run here finds one.
    """

    dialogue: Dialogue | None = None
    refused: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Retracer:
    """Goes through items of a recipe with the machinery of a build.

    Neither models nor checks of one's own are run: such a model is taken to add nothing to its messages, as a ``TextModel`` does,
    which the key of a request proves or disproves. ``names`` are what such models call themselves, ``weights`` those of the scorer.
    """

    def __init__(self, recipe: Recipe, ledger: Ledger, weights: str | None = None, names: Mapping[str, str] | None = None) -> None:
        self.recipe, self.ledger = recipe, ledger
        own = {role: one for role, one in recipe.config.models.items() if not one.remote and one.kind != "seed-bank"}
        given = {role: messages_alone(one, (names or {}).get(role, "")) for role, one in own.items()}
        self._models = make_models(replace(recipe, models=given), Budget())
        if isinstance(scorer := self._models.get(SCORE.role), ToxicityScorer):
            if weights is None:
                with contextlib.suppress(InputError):
                    weights = scorer.weights
            scorer.weights = weights or ""

    def trace(self, plan: Plan, known: Known | None = None) -> Trace:
        """Goes through a planned item, in an event loop of its own.

        Raises:
            JobError: if a row of the ledger that it needs is damaged.
        """
        return asyncio.run(self._trace(plan, known or Known()))

    async def _trace(self, plan: Plan, known: Known) -> Trace:
        asker = DryRun(self.ledger, self._models, self.recipe.prompts, self.recipe.config)
        asker.refused = known.refused
        outcome, there = await ItemPipeline(self.recipe, asker).item(plan), known.dialogue
        if there is None or (outcome.dialogue and outcome.dialogue.turns == there.turns) or not planned(there, plan, self.recipe):
            return Trace(outcome, _in_order(asker), outcome.dialogue)
        # The replay ends where an answer is missing, or tells another dialogue; with the right one at hand it goes on behind that.
        asker.steps = {place: step for place, step in asker.steps.items() if step.about.kind in (SELF_CHAT.name, SCORE.name)}
        makers = asker, self.recipe, (), ItemTrail()
        with contextlib.suppress(NoAnswer):
            await Rewriter(*makers).pairs(there, plan.turns)
        with contextlib.suppress(NoAnswer):
            await CrossedItemWriter(*makers).items(there, plan)
        return Trace(outcome, _in_order(asker), there)


def _in_order(asker: DryRun) -> tuple[Step, ...]:
    """The requests by turn, kind and sample; scores of a turn come last."""

    def place(one: Step) -> tuple[int, int, int, bool]:
        return -1 if one.about.turn is None else one.about.turn, ORDER[one.about.kind], one.request.sample, one.repair

    return tuple(sorted(asker.steps.values(), key=place))


def planned(dialogue: Dialogue, plan: Plan, recipe: Recipe) -> bool:
    """Whether a dialogue of strangers has the turns of a plan, each a text that the checks may look at."""
    helpers = [turn for turn in dialogue.turns if turn.role == "helper"]
    known = all(turn.strategy is not None and turn.strategy in recipe.catalogue.taxonomy for turn in helpers)
    short = all(len(turn.text) <= LONGEST for turn in dialogue.turns)
    return known and short and [turn.role for turn in dialogue.turns] == [turn.role for turn in plan.turns]
