"""Annotations again: what a judge would be sent about these texts, and what a ledger answers to it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from empathy_eval.base.errors import input_error
from empathy_eval.completions.asker import Answer, Asker, Judge, T, Trail
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models import asked_models
from empathy_eval.completions.models.own import TextModel
from empathy_eval.completions.requests import About, Completion, Model, Request
from empathy_eval.design.endpoints import ModelConfig, model_of
from empathy_eval.design.judge_prompts import judge_prompts
from empathy_eval.design.kinds import ALL_KINDS, IDEAL, JUDGE, JUDGING, NAMED, PREFERENCE
from empathy_eval.design.prompts import Message, load_prompts
from empathy_eval.design.rubrics import rubric_of
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.raters.judges.annotating import Annotating, Annotations, Design
from empathy_eval.raters.judges.annotations import Annotated
from empathy_eval.raters.judges.cases import Case

KINDS = ", ".join(f"'{one.name}'" for one in JUDGING)
ASKED = f"SELECT DISTINCT dialogue_id, turn FROM sound_completions WHERE kind IN ({KINDS})"  # noqa: S608


class Ledgers:
    """Several ledgers that are read as one; none at all answers nothing."""

    def __init__(self, ledgers: Sequence[Ledger] = ()) -> None:
        self._ledgers = ledgers

    def get(self, key: str) -> Completion | None:
        """The completion of a request, from the first ledger that has it."""
        return next(filter(None, (one.get(key) for one in self._ledgers)), None)

    def spent(self) -> list[Any]:
        """Nothing: what is read here was paid for elsewhere."""
        return []

    def judged(self) -> set[tuple[str, int | None]]:
        """The dialogues and turns that judges were asked about."""
        return {(row[0], row[1]) for one in self._ledgers for row in one.query(ASKED)}


class Replay:
    """A judge whose requests are known and who is never asked. ``said`` is what a manifest says of annotations, valid under its schema.

    Raises:
        InputError: if the requests cannot be known here: the judge is a model of one's own that is not to be made (unless ``own``),
            or the templates, the schemas or the rubric are others.
    """

    def __init__(
        self, said: Mapping[str, Any], catalogue: Catalogue, where: object, ledgers: Ledgers | None = None, *, own: bool = False
    ) -> None:
        self._ledgers = ledgers or Ledgers()
        self.job = _job(said, catalogue, where)
        self._models = {JUDGE: _model(self.job.config.model, self._ledgers, where, own=own)}

    def fits(self, one: Annotated, case: Case) -> bool:
        """Whether it is of these very texts: each request about them has its key among those that were answered, well or badly.

        The key of a repair holds the bad answer, which is not here; the key of what was repaired is. Where what an answer goes with came to
        nothing, a good answer is not here either.
        """
        noting = _Noting(self._models, self.job)
        asyncio.run(self.job.work(noting)(case))
        keys, bad = _keys(one), {failure.request_key for failure in one.failures}
        noted = [asked.keys for asked in noting.noted]
        there = _variants(one) <= {None, *case.texts} and (bool(bad) or keys <= set().union(*noted))
        return there and all(asked.keys & (keys | bad) or noting.in_vain(place, bad) for place, asked in enumerate(noting.noted))

    def again(self, cases: Iterable[Case]) -> list[Annotated]:
        """What the ledgers answer about cases: ``missing`` where they do not."""

        async def work() -> list[Annotated]:
            config = self.job.config
            ledger = cast(Ledger, self._ledgers)
            asker = Asker(ledger, self._models, self.job.prompts, samples=config.samples, repairs=config.repairs, offline=True)
            return [await self.job.work(asker)(case) for case in cases]

        return asyncio.run(work())


@dataclass(frozen=True)
class _Asked:
    """A request that would be asked: its kind, the sample it belongs to, and the keys that its tries have."""

    kind: str
    sample: int
    keys: set[str | None]


class _Noting(Asker):
    """Asks nobody: notes each request."""

    def __init__(self, models: dict[str, Model], job: Annotations) -> None:
        super().__init__(cast(Ledger, Ledgers()), models, job.prompts, samples=job.config.samples, offline=True)
        self.noted = list[_Asked]()

    async def ask(self, about: About, messages: list[Message], judge: Judge[T], trail: Trail, again: int = 0) -> Answer[T] | None:
        """Nothing; but which strategies were thought of is passed over, so that what comes after it is asked for."""
        model = self.models[JUDGE]
        body = model.body(messages, ALL_KINDS[about.kind].answer)
        samples = range(again * self.samples, (again + 1) * self.samples)
        self.noted.append(_Asked(about.kind, again, {Request(body, model.endpoint, about, sample).key for sample in samples}))
        return Answer(cast(T, None), "", "") if about.kind == IDEAL.name else None

    def in_vain(self, place: int, bad: set[str | None]) -> bool:
        """Whether all that an answer goes with had bad answers alone: the other order of a preference, or the other step of strategies."""
        asked = self.noted[place]
        # Both orders of two texts stand side by side.
        beside = [self.noted[place ^ 1]] if asked.kind == PREFERENCE.name else []
        if other := {IDEAL.name: NAMED.name, NAMED.name: IDEAL.name}.get(asked.kind):
            beside = [one for one in self.noted if (one.kind, one.sample) == (other, asked.sample)]
        return bool(beside) and all(one.keys <= bad for one in beside)


def _keys(one: Annotated) -> set[str | None]:
    """The keys of all good answers."""
    compared = {key for each in one.comparisons for key in (each.request_key_12, each.request_key_21)}
    named = {key for each in one.strategies for key in (each.request_key, each.ideal_request_key)}
    return {*(each.request_key for each in one.ratings), *compared, *named}


def _variants(one: Annotated) -> set[str | None]:
    """The variants that were judged."""
    compared = {name for each in one.comparisons for name in (each.variant_1, each.variant_2)}
    return {*(each.variant for each in one.ratings), *compared, *(each.variant for each in one.strategies)}


def _job(said: Mapping[str, Any], catalogue: Catalogue, where: object) -> Annotations:
    """The job that annotations were made by, without its cases."""
    rubric = rubric_of(said["says"])
    if (rubric.hash, rubric.name) != (said["rubric_hash"], said["rubric"]):
        raise input_error(where, f'the rubric "{rubric.name}" does not have the hash {said["rubric_hash"]}', "annotate again")
    design = Design(said["turns"], tuple(said["variants"]), said["samples"])
    tries = said["tries"]
    config = Annotating(said["judge"], rubric, design, said["release"], model_of(said["judge"]), tries["samples"], tries["repairs"])
    job = Annotations(config, load_prompts(), judge_prompts(rubric, catalogue), ())
    here = job.header()
    for name in ("templates", "schemas"):
        if others := sorted(key for key in here[name].keys() | said[name].keys() if here[name].get(key) != said[name].get(key)):
            what = f"was made with other {name} than those here: {', '.join(others)}"
            raise input_error(where, what, f"use the version that made it ({said['builder']}), or annotate again")
    return job


def _model(config: ModelConfig, ledgers: Ledgers, where: object, *, own: bool) -> Model:
    """The judge, for the bodies that it makes."""
    given: dict[str, Any] = {}
    if config.kind == "given":
        # It is not here; but of a model that adds nothing to the messages the bodies are known.
        given = {JUDGE: type("Given", (TextModel,), {"name": config.model, "endpoint": config.endpoint})()}
    elif not config.remote and not own:
        raise input_error(
            where, f'the judge "{config.kind}" is a custom model, which is not available here', "ask the authors of the release"
        )
    budget = Budget(cast(Ledger, ledgers), {}, set(), None, None)
    return asked_models({JUDGE: config}, given, budget)[JUDGE]
