"""One item gone through again over a ledger, asking nobody: each of its requests, the answer, and what became of that."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, cast

from empathy_eval.base.errors import InputError
from empathy_eval.completions.answer_text import LONGEST
from empathy_eval.completions.asker import Asker
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models import asked_models
from empathy_eval.completions.models.own import TextModel
from empathy_eval.completions.models.seed_bank import SeedBank
from empathy_eval.completions.models.toxicity_scorer import ToxicityScorer, weights_of
from empathy_eval.completions.requests import About, Completion, Flaw, Model, NoAnswer, Request
from empathy_eval.design.configuration import APART, ToxicityConfig
from empathy_eval.design.endpoints import ModelConfig
from empathy_eval.design.kinds import KINDS, SCORE, SELF_CHAT
from empathy_eval.design.planning import Plan
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.crossed_by_models import Crosser
from empathy_eval.generation.job import Workshop
from empathy_eval.generation.outcomes import Dialogue, ItemTrail, Outcome
from empathy_eval.generation.rewriting import Rewriter

T = TypeVar("T")
Verdict = Literal["taken", "refused", "unanswered", "scored", "not judged"]
# Samples whose keys are looked through, where it is not known how many were asked for.
MOST_SAMPLES = 100
NOT_KEPT = "refused by a check of one's own, which is not run here; its words were not kept"
ORDER = {kind: place for place, kind in enumerate(KINDS)}


@dataclass(frozen=True)
class Step:
    """A request of an item, and its answer if the ledger has one. ``flaws`` say why the answer was refused.

    ``repair`` if it shows a bad answer and asks for a better one. ``scored`` is what the toxicity scorer was given; not judged is an answer
    whose text has no score in the ledger.
    """

    request: Request
    completion: Completion | None
    verdict: Verdict
    flaws: tuple[Flaw, ...] = ()
    repair: bool = False

    def keyed(self, key: str, samples: int) -> Request | None:
        """The same request as the sample that has this key, of the same candidate: a replay does not come to it where the first has no
        answer, or is taken."""
        if self.request.key == key:
            return self.request
        if self.repair:
            return None
        first = self.request.sample - self.request.sample % APART
        others = (replace(self.request, sample=first + sample) for sample in range(min(samples, MOST_SAMPLES)))
        return next((one for one in others if one.key == key), None)


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

    Neither models nor checks of one's own are run: such a model is taken to add nothing to its messages, as a :class:`TextModel` does,
    which the key of a request proves or disproves. ``names`` are what such models call themselves, ``weights`` those of the scorer.
    """

    def __init__(self, recipe: Recipe, ledger: Ledger, weights: str | None = None, names: Mapping[str, str] | None = None) -> None:
        self.recipe, self.ledger = recipe, ledger
        own = [role for role, one in recipe.config.models.items() if not one.remote and one.kind != "seed-bank"]
        self._models = _stand_ins(recipe, weights, {role: (names or {}).get(role, "") for role in own})

    def trace(self, plan: Plan, known: Known | None = None) -> Trace:
        """Goes through a planned item, in an event loop of its own.

        Raises:
            JobError: if a row of the ledger that it needs is damaged.
        """
        return asyncio.run(self._trace(plan, known or Known()))

    async def _trace(self, plan: Plan, known: Known) -> Trace:
        asker = _Listener(self.ledger, self._models, self.recipe, known.refused)
        outcome, there = await Workshop(self.recipe, asker).item(plan), known.dialogue
        if there is None or (outcome.dialogue and outcome.dialogue.turns == there.turns) or not planned(there, plan, self.recipe):
            return Trace(outcome, asker.told(), outcome.dialogue)
        # The replay ends where an answer is missing, or tells another dialogue; with the right one at hand it goes on behind that.
        asker.forget_turns()
        makers = asker, self.recipe, (), ItemTrail()
        with contextlib.suppress(NoAnswer):
            await Rewriter(*makers).pairs(there, plan.turns)
        with contextlib.suppress(NoAnswer):
            await Crosser(*makers).items(there, plan)
        return Trace(outcome, asker.told(), there)


def planned(dialogue: Dialogue, plan: Plan, recipe: Recipe) -> bool:
    """Whether a dialogue of strangers has the turns of a plan, each a text that the checks may look at."""
    helpers = [turn for turn in dialogue.turns if turn.role == "helper"]
    known = all(turn.strategy is not None and turn.strategy in recipe.catalogue.taxonomy for turn in helpers)
    short = all(len(turn.text) <= LONGEST for turn in dialogue.turns)
    return known and short and [turn.role for turn in dialogue.turns] == [turn.role for turn in plan.turns]


class _Listener(Asker):
    """Asks nobody, and keeps each request with what became of its answer."""

    def __init__(self, ledger: Ledger, models: dict[str, Model], recipe: Recipe, refused: Mapping[str, tuple[str, ...]]) -> None:
        config = recipe.config
        super().__init__(ledger, models, recipe.prompts, samples=config.samples, repairs=config.repairs, offline=True)
        self._refused = refused
        self._steps = dict[tuple[About, str], Step]()

    async def complete(self, model: Model, request: Request) -> Completion:
        """The completion of a request, from the ledger."""
        about = request.about
        before = [one for one in self._steps.values() if (one.request.about, one.request.sample) == (about, request.sample)]
        step = Step(request, None, "unanswered", repair=about.kind != SCORE.name and _goes_on(request, before))
        self._steps.setdefault((about, request.key), step)
        found = await super().complete(model, request)
        verdict: Verdict = "scored" if about.kind == SCORE.name else "not judged"
        self._steps[about, request.key] = replace(self._steps[about, request.key], completion=found, verdict=verdict)
        return found

    def ruled(self, request: Request, verdict: Any) -> Any:
        """The verdict, or where a check of one's own made it, that one as it was noted."""
        if not isinstance(verdict, list) and (noted := self._refused.get(request.key)):
            verdict = [Flaw(reason, NOT_KEPT) for reason in noted]
        place, flaws = (request.about, request.key), tuple(verdict) if isinstance(verdict, list) else ()
        self._steps[place] = replace(self._steps[place], verdict="refused" if flaws else "taken", flaws=flaws)
        return verdict

    def forget_turns(self) -> None:
        """Leaves what is known of the dialogue itself."""
        self._steps = {place: step for place, step in self._steps.items() if place[0].kind in (SELF_CHAT.name, SCORE.name)}

    def told(self) -> tuple[Step, ...]:
        """The requests by turn, kind and sample; scores of a turn come last."""

        def place(one: Step) -> tuple[int, int, int, bool]:
            about = one.request.about
            return -1 if about.turn is None else about.turn, ORDER[about.kind], one.request.sample, one.repair

        return tuple(sorted(self._steps.values(), key=place))


def _goes_on(request: Request, before: Sequence[Step]) -> bool:
    """Whether a request shows a bad answer to one that was asked before; of some kinds there are several about the same."""
    if KINDS[request.about.kind].times == 1:
        return bool(before)
    said = len(request.body.get("messages", ()))
    return any(said > len(one.request.body.get("messages", ())) for one in before)


class _Unpaid:
    """Stands in for a ledger where nothing is spent."""

    def spent(self) -> list[Any]:
        return []


class _Scores(ToxicityScorer):
    """Scores that a ledger holds, by the weights that they were made with: neither is needed here."""

    def __init__(self, config: ToxicityConfig, weights: str | None) -> None:
        if weights is None:
            with contextlib.suppress(InputError):
                weights = weights_of(config)
        self.name, self.weights = config.scorer, weights or ""


def _stand_ins(recipe: Recipe, weights: str | None, names: Mapping[str, str]) -> dict[str, Model]:
    """The models by what they are for, for the bodies that they make."""
    config, bank = recipe.config, SeedBank(recipe.catalogue)
    made: dict[str, Model] = {role: bank for role, one in config.models.items() if one.kind == "seed-bank"}
    given = {role: _plain(config.models[role], name) for role, name in names.items()}
    others = {role: one for role, one in config.models.items() if role not in made}
    made |= asked_models(others, given, Budget(cast(Ledger, _Unpaid()), {}, set(), None, None))
    return made | ({SCORE.role: _Scores(config.checks.toxicity, weights)} if config.checks.toxicity else {})


def _plain(config: ModelConfig, name: str) -> TextModel:
    """A model that adds nothing to its messages: one that was handed in is named by the configuration, another by its answers."""
    said = {"name": config.model, "endpoint": config.endpoint} if config.kind == "given" else {"name": name or config.kind}
    made: TextModel = type("Given", (TextModel,), said)()
    return made
