"""The build: works through a plan over its ledger and budget, and writes all outcomes into its folder or none."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import JobError, input_error, job_error
from empathy_eval.base.files import whole_file, write_whole
from empathy_eval.base.hashing import canonical_json, digest_file
from empathy_eval.base.json_text import json_text
from empathy_eval.base.stopping import stopped_by_signals
from empathy_eval.completions.asker import Asker, PendingRequests, PreviewModel
from empathy_eval.completions.budget import Budget, make_budget
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models.transport import check_access
from empathy_eval.completions.requests import Model
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.endpoints import JobConfig
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.word_list import WORD_LIST
from empathy_eval.generation.job import WINDOW, Job, job_of, outcomes, shard
from empathy_eval.generation.outcomes import BUILD, CONFIGURATION, LEDGER, OUTCOMES, claim_folder, write_definitions
from empathy_eval.generation.summary import FIRST, RunProgress, Summary

# Allocations, and collections of each generation, after which the next one is collected.
COLLECTED = (20_000, 10, 10)


@dataclass(frozen=True)
class Run:
    """How a build is run; none of it changes what is built."""

    ledger: Path | None = None
    offline: bool = False
    budget_dollars: float | None = None
    budget_tokens: int | None = None
    # A part of the plan, as (3, 16): every sixteenth item from the third on. A part only fills the ledger; outcomes need all of it.
    part: tuple[int, int] | None = None
    # With notes nothing is sent: unanswered requests are written down, and outcomes are written only if there are none.
    notes: PendingRequests | None = None
    # By key or by dialogue why something is not asked for in this run.
    skip_reasons: Mapping[str, str] = field(default_factory=dict)
    # The models whose endpoints are waited for from the start: they have answered another run.
    answering: Collection[str] = ()
    window: int = WINDOW
    # Without it the run is stopped when the first items all came to nothing; a run that sends nothing goes to its end anyhow.
    keep_going: bool = False
    progress: Callable[[Summary], None] = lambda summary: None
    course: RunProgress = field(default_factory=RunProgress)

    @property
    def guarded(self) -> bool:
        """Whether the run stops if the first items all fail."""
        return not (self.keep_going or self.offline or self.notes is not None)


class _OnlyFilled(Exception):
    """Only the ledger was filled; incomplete outcomes are discarded."""


def build(what: Recipe | Job, out: Path, run: Run | None = None) -> Summary:
    """Builds into a folder, or runs another job there: requests what the ledger lacks, and writes all outcomes or none.

    With a ``part`` of the plan only the ledger is filled. With ``notes`` nothing is sent.

    Raises:
        InputError: if the folder holds another configuration's build, or a scorer, a model or a price is not available.
        JobError: if the ledger is damaged or full, an offline build lacks an answer, the endpoint refuses everything, the budget is
            used up, or the first items all fail without ``keep_going``.
    """
    run, job = run or Run(), job_of(what).resolved()
    with opened(job.config, out, run) as (ledger, budget), rare_garbage_collection():
        return asyncio.run(run_job(job, out, run, ledger, budget))


@contextlib.contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """Collects garbage rarely, and skips existing objects: scanning modules and weights takes a sixth of a build's time."""
    # A caller does so already. How much is frozen is counted one by one, so that is asked last.
    if gc.get_threshold() >= COLLECTED or gc.get_freeze_count():
        yield
        return
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*COLLECTED)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


@contextlib.contextmanager
def opened(config: JobConfig, out: Path, run: Run) -> Iterator[tuple[Ledger, Budget]]:
    """The ledger of a build in its own folder, and the budget. Raises InputError or JobError as :func:`build` does."""
    claim_folder(out, config)
    if not run.offline and run.notes is None:
        for model in config.active_models.values():
            check_access(model)
    with Ledger(run.ledger or out / LEDGER, create=not run.offline, write=not run.offline) as ledger:
        if not run.offline and (waiting := ledger.open_batches()):
            builds = sorted({"this build" if batch.build == config.identity else f'the build "{batch.build}"' for batch in waiting})
            what = f"{len(waiting)} batches of {' and '.join(builds)} are under way: their requests would be paid for twice"
            mine = all(batch.build == config.identity for batch in waiting)
            fix = "run it with --batch, which takes them in" if mine else "first run the unchanged command that started them with --batch"
            raise input_error(ledger.path, what, fix)
        budget = make_budget(config, ledger, run.budget_dollars, run.budget_tokens)
        write_whole(out / CONFIGURATION, json_text(config.published) + "\n")
        if isinstance(config, Configuration) and config.words:
            write_whole(out / WORD_LIST, config.words.text)
        yield ledger, budget


async def run_job(
    job: Job, out: Path, run: Run, ledger: Ledger, budget: Budget,
    stopping: Callable[[Asker], contextlib.AbstractContextManager[None]] = lambda asker: stopped_by_signals(asker.stop),
) -> Summary:  # fmt: skip
    """:func:`build` over an open ledger, without claiming the folder; ``stopping`` stops the asker, by default Ctrl-C does."""
    models = mark_answering(job.models(budget, lambda: asker.stopped), run.answering)
    asking = Asker if run.notes is None else functools.partial(PreviewModel, run.notes, job.config)
    asker: Asker = asking(ledger, models, job.prompts, samples=job.config.samples, repairs=job.config.repairs, offline=run.offline)
    asker.skip_reasons = run.skip_reasons
    part = run.part or (1, 1)
    items = run.course.begun(shard(job.items(), *part), job.least)
    summary = job.summary(len(list(shard(range(job.planned()), *part))), budget)
    run.course.follow(summary, asker)
    try:
        with contextlib.suppress(_OnlyFilled), stopping(asker), whole_file(out / OUTCOMES) as partial:
            results = outcomes(asker, job.work(asker), items, run.window, _unanswered_items(job, run, ledger))
            async with contextlib.aclosing(results):
                with partial.open("wb") as stream:
                    async for outcome in results:
                        stream.write(canonical_json(outcome.to_json()) + b"\n")
                        summary.add(outcome)
                        run.course.ended()
                        run.progress(summary)
                        _stop_if_fruitless(run, summary, asker, ledger)
            if run.offline and summary.missing:
                raise _unanswered(summary, ledger.path)
            if run.part or run.notes:
                raise _OnlyFilled
            (out / BUILD).unlink(missing_ok=True)
    finally:
        for model in set(models.values()):
            await model.close()
    if run.part or run.notes:
        return summary
    header = {**job.header(), **write_definitions(out, job.carried()), "summary": summary.to_json()}
    write_whole(out / BUILD, json_text({**header, "outcomes": digest_file(out / OUTCOMES)}) + "\n")
    return summary


def mark_answering(models: dict[str, Model], answering: Collection[str]) -> dict[str, Model]:
    """The models; endpoints that have answered another run count as healthy."""
    for model in models.values():
        if model.name in answering and (reception := getattr(model, "reception", None)):
            reception.answer_received()
    return models


def _unanswered_items(job: Job, run: Run, ledger: Ledger) -> Iterator[tuple[int, Any]]:
    """(index, item) of items that surely lack answers, if the ledger has answers of others."""
    answered: dict[str, int] = {} if run.offline or run.notes is not None else dict(ledger.answered())
    for index, item in enumerate(shard(job.items(), *(run.part or (1, 1))) if answered else ()):
        # Several items may be of one dialogue.
        left = answered[item.dialogue_id] = answered.get(item.dialogue_id, 0) - job.least(item)
        if left < 0:
            yield index, item


def _stop_if_fruitless(run: Run, summary: Summary, asker: Asker, ledger: Ledger) -> None:
    """Ends a guarded run whose first items all failed."""
    if run.guarded and summary.fruitless:
        reason, count = min(summary.failure_reasons.items(), key=lambda entry: (-entry[1], entry[0]), default=("no reason", 0))
        what = f"the first {FIRST} {summary.things} all failed, most often because of: {reason} ({count:,})"
        fix = "try another model, or fix the prompt or the check that refuses; to go on anyway, add --keep-going to the same command"
        asker.stopped = asker.stopped or job_error(ledger.path, what, fix)
        raise asker.stopped


def _unanswered(summary: Summary, ledger: Path) -> JobError:
    shown = summary.missing[:5] + ([f"and {len(summary.missing) - 5} more"] if len(summary.missing) > 5 else [])
    return job_error(ledger, "the offline build lacks answers:\n  " + "\n  ".join(shown), "run the same build without --offline")
