"""The preview of annotations: the requests that come first, what the ledger has already, and what the rest would take. Sends nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path

from empathy_eval.completions.budget import Budget
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.requests import Model, Request, Usage
from empathy_eval.design.kinds import IDEAL, NAMED
from empathy_eval.generation.preview import RENDERED, Estimate, assumed, estimated
from empathy_eval.raters.judges.annotating import Annotations
from empathy_eval.raters.judges.cases import Case
from empathy_eval.raters.judges.replay import Ledgers, dry_run
from empathy_eval.raters.judges.sources import Conversation

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
