"""Annotations again: what a judge would be sent about these texts, and what a ledger answers to it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, cast

from empathy_eval.base.errors import input_error
from empathy_eval.base.json_text import json_text
from empathy_eval.completions.asker import Asker, DryRun, samples_of
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models import asked_models
from empathy_eval.completions.models.own import messages_alone
from empathy_eval.completions.requests import Completion, Model, Request, Usage
from empathy_eval.design.endpoints import ModelConfig, model_of
from empathy_eval.design.judge_prompts import judge_prompts
from empathy_eval.design.kinds import IDEAL, JUDGE, JUDGING, NAMED, PREFERENCE
from empathy_eval.design.prompts import load_prompts
from empathy_eval.design.rubrics import rubric_of
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.preview import RENDERED, Estimate, assumed, estimated
from empathy_eval.raters.judges.annotating import Annotating, Annotations, Design
from empathy_eval.raters.judges.annotations import Annotated
from empathy_eval.raters.judges.cases import Case, Conversation

KINDS = ", ".join(f"'{one.name}'" for one in JUDGING)
ASKED = f"SELECT DISTINCT dialogue_id, turn FROM sound_completions WHERE kind IN ({KINDS})"  # noqa: S608


class Ledgers:
    """Several ledgers that are read as one; none at all answers nothing."""

    def __init__(self, ledgers: Sequence[Ledger] = ()) -> None:
        self._ledgers = ledgers

    def get(self, key: str) -> Completion | None:
        """The completion of a request, from the first ledger that has it."""
        return next(filter(None, (one.get(key) for one in self._ledgers)), None)

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
        self._models = {JUDGE: _model(self.job.config.model, where, own=own)}

    def fits(self, one: Annotated, case: Case) -> bool:
        """Whether it is of these very texts: each request about them has its key among those that were answered, well or badly.

        The key of a repair holds the bad answer, which is not here; the key of what was repaired is. Where what an answer goes with came to
        nothing, a good answer is not here either.
        """
        asker = dry_run(self.job, cast(Ledger, Ledgers()), self._models)
        asyncio.run(self.job.work(asker)(case))
        keys, bad = _told(one, "request_key"), {failure.request_key for failure in one.failures}
        tries = [{each.key for each in samples_of(request, asker.samples)} for request in asker.asked]
        there = _told(one, "variant") <= {None, *case.texts} and (bool(bad) or keys <= set().union(*tries))
        in_vain = [mine <= bad for mine in tries]
        return there and all(mine & (keys | bad) or _beside_in_vain(place, asker.asked, in_vain) for place, mine in enumerate(tries))

    def again(self, cases: Iterable[Case]) -> list[Annotated]:
        """What the ledgers answer about cases: ``missing`` where they do not."""

        async def work() -> list[Annotated]:
            config = self.job.config
            ledger = cast(Ledger, self._ledgers)
            asker = Asker(ledger, self._models, self.job.prompts, samples=config.samples, repairs=config.repairs, offline=True)
            return [await self.job.work(asker)(case) for case in cases]

        return asyncio.run(work())


def dry_run(job: Annotations, ledger: Ledger, models: Mapping[str, Model]) -> DryRun:
    """An asker of what a job would send. The second step of strategies does not depend on what is answered to the first."""
    ideal = [{"strategy": one.abbreviation, "probability": int(not place)} for place, one in enumerate(job.asking.taxonomy.strategies)]
    return DryRun(ledger, models, job.prompts, job.config, instead={IDEAL.name: Completion(json_text({"strategies": ideal}), "stop", "")})


def _beside_in_vain(place: int, asked: Sequence[Request], in_vain: Sequence[bool]) -> bool:
    """Whether all that an answer goes with had bad answers alone: the other order of a preference, or the other step of strategies."""
    request = asked[place]
    if request.about.kind == PREFERENCE.name:  # both orders of two texts stand side by side
        return in_vain[place ^ 1]
    other = {IDEAL.name: NAMED.name, NAMED.name: IDEAL.name}.get(request.about.kind)
    beside = [one for one, each in zip(in_vain, asked, strict=True) if (each.about.kind, each.sample) == (other, request.sample)]
    return bool(beside) and all(beside)


def _told(one: Annotated, what: str) -> set[str | None]:
    """What is said of all answers under names with this part: the variants that were judged, or the keys of the good answers."""
    rows = map(vars, (*one.ratings, *one.comparisons, *one.strategies))
    return {value for row in rows for name, value in row.items() if what in name}


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


def _model(config: ModelConfig, where: object, *, own: bool) -> Model:
    """The judge, for the bodies that it makes."""
    if not config.remote and config.kind != "given" and not own:
        raise input_error(
            where, f'the judge "{config.kind}" is a custom model, which is not available here', "ask the authors of the release"
        )
    return asked_models({JUDGE: config}, {JUDGE: messages_alone(config)} if config.kind == "given" else {}, Budget())[JUDGE]


# Assumed of an answer while the ledger has none of its kind: what a value takes with its name in JSON, and an analysis in words.
TOKENS_A_VALUE, TOKENS_OF_AN_ANALYSIS = 14, 60


@dataclass(frozen=True)
class AnnotationPreview:
    """The requests of the first cases, how many the ledger answers already, and the estimates of what is left to ask."""

    requests: tuple[Request, ...]
    answered: int
    estimates: tuple[Estimate, ...]


def preview(job: Annotations, ledger_path: Path | None, count: int) -> AnnotationPreview:
    """Renders the requests about the first ``count`` cases, and estimates what is left of the whole job.

    Of strategies the second step is counted before the first is answered.

    Raises:
        InputError: if the ledger cannot be opened, or a judge of one's own cannot be had.
    """
    job = job.found()
    with Ledger(ledger_path, create=False, write=False) if ledger_path else Ledger(Path(":memory:")) as ledger:
        models = job.models(Budget(), lambda: None)
        seen = asyncio.run(_seen(job, ledger, models, count))
        estimates = tuple(_estimates(job, ledger, seen))
    return AnnotationPreview(tuple(seen.shown), len(seen.used), estimates)


@dataclass
class _Seen:
    """What a job would ask: by kind how many requests are open, and what is known of answers and of sizes in bytes."""

    shown: list[Request] = field(default_factory=list)
    open: Counter[str] = field(default_factory=Counter)
    used: dict[str, tuple[str, Usage]] = field(default_factory=dict)
    # By kind how many of those that come first have an answer, good or bad.
    begun: Counter[str] = field(default_factory=Counter)
    sizes: dict[str, list[int]] = field(default_factory=dict)


async def _seen(job: Annotations, ledger: Ledger, models: Mapping[str, Model], count: int) -> _Seen:
    """Looks at all cases; those of which nothing is known are looked at once a shape, for one asks as often as another."""
    seen, shapes, known = _Seen(), dict[tuple[str, ...], Counter[str]](), Ledgers([ledger]).judged()
    for number, case in enumerate(job.cases):
        shape = _shape(case)
        fresh = (case.dialogue_id, case.turn) not in known
        if fresh and number >= max(count, RENDERED) and shape in shapes:
            seen.open += shapes[shape]
            continue
        asker = dry_run(job, ledger, models)
        await job.work(asker)(case)
        steps = list(asker.steps.values())
        first = [one for one in steps if not one.repair and one.request.sample % asker.samples == 0]
        # Whatever is asked for ends with the first request that has no answer.
        opened = Counter(one.about.kind for one in steps if one.completion is None)
        if fresh:
            shapes[shape] = opened
        seen.open += opened
        seen.used |= {one.request.key: (one.about.kind, one.completion.usage) for one in steps if one.completion}
        seen.begun.update(one.about.kind for one in first if one.completion)
        seen.shown += (one.request for one in first) if number < count else ()
        for one in first if number < RENDERED else ():
            seen.sizes.setdefault(one.about.kind, []).append(one.request.size)
    return seen


def _shape(case: Case) -> tuple[str, ...]:
    """The variants of a case, equal texts as one of them: what says how many requests there are."""
    first: dict[tuple[Conversation, str], str] = {}
    return tuple(f"{variant}={first.setdefault((case.before(variant), text), variant)}" for variant, text in case.texts.items())


def _estimates(job: Annotations, ledger: Ledger, seen: _Seen) -> Iterator[Estimate]:
    """By kind what is left: with the averages of this job's own answers, repairs and further samples too, or as it is assumed."""
    settings = job.config.model
    for kind, count in seen.open.items():
        answers = [usage for about, usage in seen.used.values() if about == kind]
        average, seconds = assumed(seen.sizes.get(kind, []), _written(job, kind))
        if answers:
            average = [sum(column) / len(answers) for column in zip(*map(astuple, answers), strict=True)]
            (known,) = next(ledger.query("SELECT avg(seconds) FROM sound_completions WHERE kind = ?", (kind,)))
            seconds = float(str(known or seconds))
        requests = round(count * len(answers) / seen.begun[kind]) if answers else count
        yield estimated(kind, settings, requests, average, seconds, observed=bool(answers))


def _written(job: Annotations, kind: str) -> float:
    rubric = job.config.rubric
    values = {IDEAL.name: len(job.asking.taxonomy.strategies), NAMED.name: 1}.get(kind, len(rubric.requests[0]) if rubric.criteria else 1)
    return TOKENS_A_VALUE * values + (TOKENS_OF_AN_ANALYSIS if rubric.style == "reasoned" else 0)
