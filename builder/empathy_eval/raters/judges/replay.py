"""Replay and preview of annotations: the requests about given texts, and the answers of a ledger."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from empathy_eval.base.errors import input_error
from empathy_eval.completions.asker import Asker, DryRun, samples_of
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models import asked_models
from empathy_eval.completions.models.custom import placeholder_model
from empathy_eval.completions.requests import Completion, Model, Request, Usage
from empathy_eval.design.endpoints import ModelConfig, model_of
from empathy_eval.design.judge_prompts import judge_prompts
from empathy_eval.design.kinds import IDEAL, JUDGE, JUDGING, NAMED, PREFERENCE, REPLY
from empathy_eval.design.prompts import load_prompts
from empathy_eval.design.rubrics import rubric_of
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.job import Job
from empathy_eval.generation.preview import RENDERED, RequestEstimate, assumed, estimated
from empathy_eval.raters.judges.annotating import Annotating, AnnotationJob, AnnotationPlan
from empathy_eval.raters.judges.annotations import Annotated
from empathy_eval.raters.judges.cases import Case

KINDS = ", ".join(f"'{kind.name}'" for kind in (*JUDGING, REPLY))
ASKED = f"SELECT DISTINCT dialogue_id, turn FROM sound_completions WHERE kind IN ({KINDS})"  # noqa: S608


class Ledgers:
    """Several ledgers read as one; none at all answers nothing."""

    def __init__(self, ledgers: Sequence[Ledger] = ()) -> None:
        self._ledgers = ledgers

    def get(self, key: str) -> Completion | None:
        """Completion of a request, from the first ledger that has it."""
        return next(filter(None, (ledger.get(key) for ledger in self._ledgers)), None)

    def judged(self) -> set[tuple[str, int | None]]:
        """Dialogues and turns that judges or systems were asked about."""
        return {(row[0], row[1]) for ledger in self._ledgers for row in ledger.query(ASKED)}


class Replay:
    """A judge whose requests are known and who is never called. The entry is that of a manifest about annotations, valid under its schema.

    Raises:
        InputError: if the requests cannot be known here: the judge is a custom model that may not be loaded (unless ``own``), or the
            templates, the schemas or the rubric differ.
    """

    def __init__(
        self, entry: Mapping[str, Any], catalogue: Catalogue, where: object, ledgers: Ledgers | None = None, *, own: bool = False
    ) -> None:
        self._ledgers = ledgers or Ledgers()
        self.job = _job(entry, catalogue, where)
        self._models = {JUDGE: _model(self.job.config.model, where, own=own)}

    def matches(self, annotated: Annotated, case: Case) -> bool:
        """Whether annotations are of these very texts: each request about them has its key among those answered, well or badly.

        The key of a repair depends on the bad answer, which is not available; the key of what was repaired is. If the partner of an answer
        failed, a good answer is not available either.
        """
        asker = dry_run(self.job, cast(Ledger, Ledgers()), self._models)
        asyncio.run(self.job.work(asker)(case))
        keys, bad = _values_named(annotated, "request_key"), {failure.request_key for failure in annotated.failures}
        tries = [{each.key for each in samples_of(request, asker.samples)} for request in asker.asked]
        same_texts = _values_named(annotated, "variant") <= {None, *case.texts, *case.conversations} and (
            bool(bad) or keys <= set().union(*tries)
        )
        in_vain = [mine <= bad for mine in tries]
        return same_texts and all(mine & (keys | bad) or _partner_failed(index, asker.asked, in_vain) for index, mine in enumerate(tries))

    def replayed(self, cases: Iterable[Case]) -> list[Annotated]:
        """Results of cases from the ledgers: ``missing`` without an answer."""

        async def work() -> list[Annotated]:
            config = self.job.config
            ledger = cast(Ledger, self._ledgers)
            asker = Asker(ledger, self._models, self.job.prompts, samples=config.samples, repairs=config.repairs, offline=True)
            return [await self.job.work(asker)(case) for case in cases]

        return asyncio.run(work())


class PreviewedJob(Job, Protocol):
    """A job with a preview: items of equal ``shape`` take equally many requests, ``written`` is the assumed size of an answer."""

    def shape(self, item: Any) -> tuple[str, ...]: ...  # noqa: D102
    def written(self, kind: str) -> float: ...  # noqa: D102
    def instead(self) -> dict[str, Completion]: ...  # noqa: D102


def dry_run(job: PreviewedJob, ledger: Ledger, models: Mapping[str, Model]) -> DryRun:
    """An asker that records the requests of a job."""
    return DryRun(ledger, models, job.prompts, job.config, instead=job.instead())


def _partner_failed(index: int, requests: Sequence[Request], in_vain: Sequence[bool]) -> bool:
    """Whether all that an answer depends on had bad answers: the other order of a preference, or the other step of strategies."""
    request = requests[index]
    if request.about.kind == PREFERENCE.name:  # both orders of two texts are adjacent
        return in_vain[index ^ 1]
    other = {IDEAL.name: NAMED.name, NAMED.name: IDEAL.name}.get(request.about.kind)
    partners = [failed for failed, each in zip(in_vain, requests, strict=True) if (each.about.kind, each.sample) == (other, request.sample)]
    return bool(partners) and all(partners)


def _values_named(annotated: Annotated, what: str) -> set[str | None]:
    """Values of all answers in fields whose name contains ``what``: the judged variants, or the keys of good answers."""
    rows = map(vars, (*annotated.ratings, *annotated.comparisons, *annotated.strategies))
    return {value for row in rows for name, value in row.items() if what in name}


def _job(entry: Mapping[str, Any], catalogue: Catalogue, where: object) -> AnnotationJob:
    """The job that made annotations, without its cases."""
    rubric = rubric_of(entry["says"])
    if (rubric.hash, rubric.name) != (entry["rubric_hash"], entry["rubric"]):
        raise input_error(where, f'the rubric "{rubric.name}" does not have the hash {entry["rubric_hash"]}', "annotate again")
    design = AnnotationPlan(entry["turns"], tuple(entry["variants"]), entry["samples"])
    tries = entry["tries"]
    models = {JUDGE: model_of(entry["judge"])}
    config = Annotating(entry["judge"], rubric, design, entry["release"], models, tries["samples"], tries["repairs"])
    job = AnnotationJob(judge_prompts(rubric, catalogue), (), config=config, prompts=load_prompts())
    current = job.header()
    for name in ("templates", "schemas"):
        if changed := sorted(key for key in current[name].keys() | entry[name].keys() if current[name].get(key) != entry[name].get(key)):
            what = f"was made with other {name} than those here: {', '.join(changed)}"
            raise input_error(where, what, f"use the version that made it ({entry['builder']}), or annotate again")
    return job


def _model(config: ModelConfig, where: object, *, own: bool) -> Model:
    """The judge, for the request bodies that it makes."""
    if not config.remote and config.kind != "given" and not own:
        what = f'the judge "{config.kind}" is a custom model, which is not available here'
        raise input_error(where, what, "ask the authors of the release")
    return asked_models({JUDGE: config}, {JUDGE: placeholder_model(config)} if config.kind == "given" else {}, Budget())[JUDGE]


@dataclass(frozen=True)
class JobPreview:
    """Requests of the first items, how many of them the ledger answers, and estimates of what is left."""

    requests: tuple[Request, ...]
    answered: int
    estimates: tuple[RequestEstimate, ...]


def preview(unresolved: PreviewedJob, ledger_path: Path | None, count: int) -> JobPreview:
    """Render the requests about the first ``count`` items, and estimate what is left of the whole job.

    The second step of strategies is counted before the first is answered.

    Raises:
        InputError: if the ledger cannot be opened, or a custom judge cannot be loaded.
    """
    job = cast(PreviewedJob, unresolved.resolved())
    with Ledger(ledger_path, create=False, write=False) if ledger_path else Ledger(Path(":memory:")) as ledger:
        models = job.models(Budget(), lambda: None)
        outlook = asyncio.run(_look_ahead(job, ledger, models, count))
        estimates = tuple(_estimates(job, ledger, outlook))
    return JobPreview(tuple(outlook.shown), len(outlook.used), estimates)


@dataclass
class _Outlook:
    """Requests of a job: by kind how many are open, and known answers and sizes in bytes."""

    shown: list[Request] = field(default_factory=list)
    open: Counter[str] = field(default_factory=Counter)
    used: dict[str, tuple[str, Usage]] = field(default_factory=dict)
    # By kind the number of first requests with an answer, good or bad.
    begun: Counter[str] = field(default_factory=Counter)
    sizes: dict[str, list[int]] = field(default_factory=dict)


async def _look_ahead(job: PreviewedJob, ledger: Ledger, models: Mapping[str, Model], count: int) -> _Outlook:
    """Collect the requests of all items; unknown items are rendered once per shape, because equal shapes make equally many requests."""
    outlook, shapes, known = _Outlook(), dict[tuple[str, ...], Counter[str]](), Ledgers([ledger]).judged()
    for number, case in enumerate(job.items()):
        shape = job.shape(case)
        fresh = (case.dialogue_id, case.turn) not in known
        if fresh and number >= max(count, RENDERED) and shape in shapes:
            outlook.open += shapes[shape]
            continue
        asker = dry_run(job, ledger, models)
        await job.work(asker)(case)
        steps = list(asker.steps.values())
        first = [step for step in steps if not step.repair and step.request.sample % asker.samples == 0]
        # A request chain ends with the first request without an answer.
        opened = Counter(step.about.kind for step in steps if step.completion is None)
        if fresh:
            shapes[shape] = opened
        outlook.open += opened
        outlook.used |= {step.request.key: (step.about.kind, step.completion.usage) for step in steps if step.completion}
        outlook.begun.update(step.about.kind for step in first if step.completion)
        outlook.shown += (step.request for step in first) if number < count else ()
        for step in first if number < RENDERED else ():
            outlook.sizes.setdefault(step.about.kind, []).append(step.request.size)
    return outlook


def _estimates(job: PreviewedJob, ledger: Ledger, outlook: _Outlook) -> Iterator[RequestEstimate]:
    """Estimates of what is left by kind: from the averages of this job's answers, including repairs and samples, or assumed."""
    (settings,) = job.config.models.values()
    for kind, count in outlook.open.items():
        answers = [usage for about, usage in outlook.used.values() if about == kind]
        average, seconds = assumed(outlook.sizes.get(kind, []), job.written(kind))
        if answers:
            average = [sum(column) / len(answers) for column in zip(*map(astuple, answers), strict=True)]
            (known,) = next(ledger.query("SELECT avg(seconds) FROM sound_completions WHERE kind = ?", (kind,)))
            seconds = float(str(known or seconds))
        requests = round(count * len(answers) / outlook.begun[kind]) if answers else count
        yield estimated(kind, settings, requests, average, seconds, observed=bool(answers))
