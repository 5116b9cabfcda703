"""The build: maps the items of a plan to outcomes, in plan order, through a bounded window."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder import __version__
from builder.asking import Asker, Trail
from builder.budget import Budget, make_budget
from builder.checks.toxicity import Toxicity
from builder.config import Configuration, identity_of
from builder.errors import JobError, input_error, job_error
from builder.files import data_folder, whole_file, write_whole
from builder.generation import generate
from builder.ledger import Ledger
from builder.models import make_models
from builder.models.noting import Notes
from builder.models.protocol import NoAnswer
from builder.models.transport import check_access
from builder.outstanding import under_way
from builder.planning import part_of, planned, plans, quotas
from builder.prompts import Prompts
from builder.records import Outcome, Plan
from builder.rewriting import Rewriter
from builder.scenarios import Catalogue
from builder.schemas import read_json, schema
from builder.signature import canonical_json, digest, digest_file
from builder.stopping import stopped_by_signals
from builder.summary import Summary

OUTCOMES, BUILD, CONFIGURATION, LEDGER = "outcomes.jsonl", "build.json", "configuration.json", "ledger.sqlite"
ANSWER_SCHEMAS = ("dialogue_answer", "variant_answer", "score_answer")
# Items that are worked on at once. An item rewrites all its turns at once, so this many keep any endpoint busy.
WINDOW = 256


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
    notes: Notes | None = None
    # Why items were not answered elsewhere in this run, by dialogue: what they lack is not asked for again.
    left: Mapping[str, str] = field(default_factory=dict)
    window: int = WINDOW
    progress: Callable[[Summary], None] = lambda summary: None


class _OnlyFilled(Exception):
    """The ledger was filled, and the outcomes are not all of the build's: they are not kept."""


@dataclass(frozen=True)
class Workshop:
    """Everything an item needs to be worked on."""

    config: Configuration
    catalogue: Catalogue
    asker: Asker
    toxicity: Toxicity

    async def item(self, plan: Plan) -> Outcome:
        """One planned dialogue with all its rewrites, ask by ask, to its outcome."""
        trail = Trail()
        identity = (plan.dialogue_id, plan.scenario_id)
        try:
            dialogue = await generate(self.asker, self.catalogue, self.config, self.toxicity, plan, trail)
            if dialogue is None:
                reasons = tuple(sorted({reason for _, failure in trail.failures for reason in failure.reasons}))
                return Outcome(*identity, "rejected", reasons, failures=trail.sorted_failures(), usage=trail.plain_usage())
            rewriter = Rewriter(self.asker, self.catalogue, self.config, self.toxicity)
            pairs = await rewriter.pairs(dialogue, plan.turns, trail)
        except NoAnswer as error:
            return Outcome(*identity, "missing", (str(error),))
        return Outcome(
            *identity, "accepted", (), dialogue, pairs, trail.sorted_failures(), trail.candidates_beside(pairs), trail.plain_usage()
        )


async def outcomes(workshop: Workshop, items: Iterable[Plan], window: int = WINDOW) -> AsyncGenerator[Outcome, None]:
    """The outcomes in plan order, at most ``window`` items at work. After an error nothing more is sent, and what is under way ends."""
    running: deque[asyncio.Task[Outcome]] = deque()
    try:
        for plan in items:
            running.append(asyncio.create_task(workshop.item(plan)))
            if len(running) >= window:
                yield await running.popleft()
        while running:
            yield await running.popleft()
    finally:
        if running:
            workshop.asker.stopped = workshop.asker.stopped or job_error("build", "stopped by an error", "run the same command to go on")
        await asyncio.gather(*running, return_exceptions=True)


def build(config: Configuration, out: Path, catalogue: Catalogue, prompts: Prompts, run: Run | None = None) -> Summary:
    """Builds into a folder: asks for what the ledger does not have, and writes the outcomes whole or not at all.

    With a ``part`` of the plan only the ledger is filled: no outcomes are written. With ``notes`` nothing is sent.

    Raises:
        InputError: if the folder holds another configuration's build, or a scorer, a model or a price cannot be had.
        JobError: if the ledger is damaged or full, an offline build lacks an answer, the endpoint refuses everything, or the
            budget is used up.
    """
    run = run or Run()
    with opened(config, out, run) as (ledger, budget):
        return asyncio.run(work_through(config, out, catalogue, prompts, run, ledger, budget))


@contextlib.contextmanager
def opened(config: Configuration, out: Path, run: Run) -> Iterator[tuple[Ledger, Budget]]:
    """The ledger of a build in a folder that belongs to it, and what may be spent.

    Raises:
        InputError, JobError: as :func:`build`.
    """
    _claim(out, config)
    if not run.offline and run.notes is None:
        for model in config.models.values():
            check_access(model)
    with Ledger(run.ledger or out / LEDGER, create=not run.offline, write=not run.offline) as ledger:
        if not run.offline and (waiting := under_way(ledger)):
            builds = sorted({"this build" if one.build == config.identity else f'the build "{one.build}"' for one in waiting})
            what = f"{len(waiting)} batches of {' and '.join(builds)} are under way: their requests would be paid for twice"
            raise input_error(ledger.path, what, "run it with --batch, which takes them in")
        budget = make_budget(config, ledger, run.budget_dollars, run.budget_tokens)
        write_whole(out / CONFIGURATION, json.dumps(config.published, indent=2, ensure_ascii=False) + "\n")
        yield ledger, budget


def _claim(out: Path, config: Configuration) -> None:
    """A build folder belongs to one configuration."""
    if out.exists() and not out.is_dir():
        raise input_error(out, "is a file", "name a folder with --out")
    written = out / CONFIGURATION
    fix = "name another folder with --out; a ledger can be shared with --ledger"
    if written.is_file() and identity_of(read_json(written, None, fix)) != config.identity:
        raise input_error(out, "holds the build of another configuration", fix)
    # A ledger alone is no obstacle: it was put there, or the disk was full before anything else could be written.
    if out.is_dir() and not written.is_file() and not all(path.name.startswith(LEDGER) for path in out.iterdir()):
        raise input_error(out, "is not empty and holds no build", "name another folder with --out")


async def work_through(
    config: Configuration, out: Path, catalogue: Catalogue, prompts: Prompts, run: Run, ledger: Ledger, budget: Budget,
    stopping: Callable[[Asker], contextlib.AbstractContextManager[None]] | None = None,
) -> Summary:  # fmt: skip
    """Works on all items of a run over an open ledger: :func:`build` without the claim on the folder.

    Within ``stopping`` the asker is stopped from outside; by default by Ctrl-C.
    """
    # What is loaded by now lives to the end: the garbage collector need not look at it again and again.
    gc.freeze()
    models = make_models(config, catalogue, budget, lambda: asker.stopped)
    models = run.notes.stand_ins(models, config) if run.notes is not None else models
    toxicity = Toxicity(config.checks.toxicity, ledger, offline=run.offline)
    asker = Asker(ledger, models, prompts, samples=config.samples, repairs=config.repairs, offline=run.offline, left=run.left)
    part = run.part or (1, 1)
    items = part_of(plans(config, catalogue), *part)
    summary = Summary(len(list(part_of(range(planned(config, catalogue)), *part))), budget)
    try:
        with contextlib.suppress(_OnlyFilled), (stopping or _stopped_by_signals)(asker), whole_file(out / OUTCOMES) as partial:
            made = outcomes(Workshop(config, catalogue, asker, toxicity), items, run.window)
            async with contextlib.aclosing(made):
                with partial.open("wb") as stream:
                    async for outcome in made:
                        stream.write(canonical_json(outcome.to_json()) + b"\n")
                        summary.add(outcome)
                        run.progress(summary)
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
    header = {**provenance(config, catalogue, prompts, toxicity), "summary": summary.to_json(), "outcomes": digest_file(out / OUTCOMES)}
    write_whole(out / BUILD, json.dumps(header, indent=2, ensure_ascii=False) + "\n")
    return summary


def _stopped_by_signals(asker: Asker) -> contextlib.AbstractContextManager[None]:
    """The first Ctrl-C, SIGTERM or SIGHUP sends nothing more and waits for the answers under way; a Ctrl-C after it does not wait."""

    def stop(error: JobError) -> None:
        asker.stopped = asker.stopped or error

    return stopped_by_signals(stop)


def _unanswered(summary: Summary, ledger: Path) -> JobError:
    shown = summary.missing[:5] + ([f"and {len(summary.missing) - 5} more"] if len(summary.missing) > 5 else [])
    return job_error(ledger, "the offline build lacks answers:\n  " + "\n  ".join(shown), "run the same build without --offline")


def provenance(config: Configuration, catalogue: Catalogue, prompts: Prompts, toxicity: Toxicity) -> dict[str, Any]:
    """All that a build is a function of, beside the ledger."""
    wanted = quotas(config, catalogue)
    return {
        "configuration": config.published,
        "identity": config.identity,
        "templates": dict(sorted(prompts.hashes.items())),
        "rules": {path.name: digest_file(path) for path in sorted(data_folder("rules").glob("*.yaml"))},
        "schemas": {name: digest(schema(name)) for name in ANSWER_SCHEMAS},
        "seeds": catalogue.seed_hash,
        "scenarios": {f"{number:03d}": {"name": catalogue[number].name, "quota": quota} for number, quota in wanted.items()},
        "toxicity_weights": toxicity.weights,
        "builder": __version__,
    }
