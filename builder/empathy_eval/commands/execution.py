"""Execution of jobs that call models: live, offline from the ledger, by hand, by batch, one part of the plan, or over Ray."""

from __future__ import annotations

import argparse
import gc
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import input_error, plain
from empathy_eval.base.json_text import json_text
from empathy_eval.commands.command import ENGINE, ONE_OF, Option, Rows, arguments_for, check_engine, print_warnings
from empathy_eval.commands.progress import RunDisplay, display_progress

if TYPE_CHECKING:
    from empathy_eval.design.recipe import Recipe
    from empathy_eval.generation.job import Job
    from empathy_eval.generation.summary import HandedOut, RunProgress, Summary


LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunOptions:
    """Options of a job that calls models, named as in ``RUN``; none of them changes the result."""

    ledger: str | Path | None = None
    offline: bool = False
    requests_to: str | Path | None = None
    batch: bool = False
    wait: bool = True
    budget_usd: float | None = None
    budget_tokens: int | None = None
    part: tuple[int, int] | None = None
    engine: str = "local"
    ray_address: str | None = None
    progress: Callable[[Summary], None] = lambda summary: None
    watch: Callable[[int, int], None] = lambda done, total: None
    course: RunProgress | None = None
    keep_going: bool = False

    def refuse_contradictions(self, verb: str) -> None:
        """Raises an :class:`InputError` for options that cannot be combined."""
        check_engine(self.engine, self.ray_address)
        modes = [name for name in ("offline", "requests_to", "batch") if getattr(self, name)]
        if len(modes) > 1:
            raise input_error(verb, f"{' and '.join(modes)} cannot be combined", "choose one of them")
        part = self.part
        if part is not None and not (isinstance(part, tuple) and [*map(type, part)] == [int, int] and 1 <= part[0] <= part[1]):
            raise input_error(f"{verb}: part", f"{part!r} is not a part", "give (K, N) with K from 1 to N, such as (3, 16)")
        if not (self.wait or self.batch):
            raise input_error("--no-wait", "needs --batch", "add --batch, or leave it out")


def run_job(what: Recipe | Job, folder: Path, options: RunOptions) -> HandedOut:
    """Runs a job in a folder. It also works inside a running event loop, as in a notebook.

    Raises:
        InputError: if the folder holds another job, or a model or a scorer is not available.
        JobError: if the job could not finish; every answer so far is in the ledger.
    """
    from empathy_eval.base.stopping import run_beside_loops
    from empathy_eval.generation.outcomes import LEDGER

    ledger = Path(options.ledger) if options.ledger else folder / LEDGER
    _import_packaged_answers(what, ledger)
    return run_beside_loops(lambda: _execute(what if options.offline else _with_warnings(what, folder, ledger, options), folder, options))


def _execute(what: Recipe | Job, folder: Path, options: RunOptions) -> HandedOut:
    from empathy_eval.generation.build import Run, build
    from empathy_eval.generation.summary import HandedOut, RunProgress

    run = Run(
        Path(options.ledger) if options.ledger else None, options.offline, options.budget_usd, options.budget_tokens, options.part,
        keep_going=options.keep_going, progress=options.progress, course=options.course or RunProgress(),
    )  # fmt: skip
    if options.engine == "ray":
        from empathy_eval.generation.on_ray import build_on_ray, whole_plan_only_error

        if options.batch or options.requests_to:
            raise whole_plan_only_error()
        return HandedOut(build_on_ray(what, folder, run, address=options.ray_address), {})
    if not (options.batch or options.requests_to):
        return HandedOut(build(what, folder, run), {})
    from empathy_eval.generation.by_batch import build_by_batch, hand_out

    if options.requests_to:
        return hand_out(what, folder, Path(options.requests_to), run)
    return build_by_batch(what, folder, run, wait=options.wait, watch=options.watch)


def _import_packaged_answers(what: Recipe | Job, ledger: Path) -> None:
    """Imports the packaged answers of a configuration into the ledger, unless the ledger is an export."""
    from empathy_eval.completions.ledger_file import is_export
    from empathy_eval.completions.merge import merge
    from empathy_eval.design.recipe import Recipe

    answers = what.config.answers if isinstance(what, Recipe) else None
    if answers and not is_export(ledger):
        merge(ledger, [answers])


def _with_warnings(what: Recipe | Job, folder: Path, ledger: Path, options: RunOptions) -> Recipe | Job:
    """Warns, before anything is sent, of answers in the ledger that a change has made unusable; returns the job.

    Resolved custom models are returned with it, except over Ray, where each task resolves its own.
    """
    from empathy_eval.design.recipe import Recipe
    from empathy_eval.generation.job import Dialogues
    from empathy_eval.generation.preview import unused_answers

    if not isinstance(what, Recipe) or not ledger.is_file():
        return what
    resolved = what if options.engine == "ray" else Dialogues(what).resolved().recipe
    if again := unused_answers(resolved, ledger, [folder, ledger.parent]):
        LOG.warning("%s", plain(f"{ledger}: {again}"))
    return resolved


def parse_part(text: str) -> tuple[int, int]:
    """Parses ``3/16`` into two numbers. Raises ArgumentTypeError if the text has another form, or K is not from 1 to N."""
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f'"{text}" is not a part; write K/N with K from 1 to N, such as 3/16')
    return int(match[1]), int(match[2])


RUN: Rows = {
    "--ledger PATH": "the ledger to use (default: DIR/ledger.sqlite)",
    "--offline": Option("use only answers from the ledger; an unanswered request is an error that names it", group=ONE_OF),
    "--requests-to FILE": Option(
        "send nothing: write the unanswered requests in the batch format of providers (JSON lines) and stop. Import the answers with "
        "`ledger import`, then run the same command again, until every request is answered",
        group=ONE_OF,
    ),
    "--batch": Option("send requests in batches of the endpoint, in a few rounds; batches cost less and take up to a day", group=ONE_OF),
    "wait=--no-wait": "with --batch: return while batches are under way; run it again to continue",
    "--budget-usd USD": "spend no more than this, including the cost of answers in the ledger",
    "--budget-tokens N": "use no more tokens than this, including those of answers in the ledger",
    "part=--slice K/N": Option(
        "only fill the ledger, with the K-th of N disjoint parts of the plan; then use `ledger merge`, and run once without --slice",
        type=parse_part,
    ),
    "--keep-going": "do not stop if the first 20 items all fail",
    **ENGINE,
    "--json": "print the closing summary as JSON",
}


@dataclass(frozen=True)
class ClosingMessage:
    """Message after the summary of a finished job, as text and as JSON values by name."""

    text: str
    json: dict[str, Any]


def run_command(
    options: argparse.Namespace, verb: str, work: Callable[[RunOptions], HandedOut], closing: Callable[[], ClosingMessage] | None = None
) -> int:
    """Runs a job with progress, and prints its result; returns the exit status.

    ``closing`` is called only if the job is finished: no requests are handed out, and it was not one part of the plan.
    """
    from empathy_eval.generation.outcomes import folder_canary_warnings
    from empathy_eval.generation.summary import RunProgress

    course = RunProgress()

    def watch(done: int, total: int) -> None:
        course.batch = (done, total)

    with display_progress(verb, RunDisplay(course)):
        import empathy_eval.generation.build  # noqa: F401  # loads what a job needs, for the next line

        # Loaded modules live as long as the process: the garbage collector need not scan them again.
        gc.freeze()
        run = RunOptions(**arguments_for(options, RunOptions), watch=watch, course=course)
        handed = work(run)
    finished = not handed.requests and not run.part
    more, canary = closing() if closing and finished else None, folder_canary_warnings(options.out) if finished else []
    print_warnings(canary)
    if options.json:
        added = more.json if more else {}
        parts = {name: {**summary.to_json(), **added.get(name, {})} for name, summary in handed.beside.items()}
        print(json_text({**handed.to_json(), **added, **parts, **({"canary": canary} if canary else {})}, ascii_only=True))
    else:
        for reason, count in sorted(handed.reasons.items()):
            print(f"came back from batches without an answer: {reason} ({count:,})")
        print(_next_step(run, options.out, handed.requests) if handed.requests else handed)
        if more:
            print(plain(f"\n{more.text}"))
        if run.part and not handed.requests:
            print("only the ledger was filled: combine the parts with `ledger merge`, then run the command without --slice")
    return 1 if handed.has_missing and not handed.requests else 0


def _next_step(run: RunOptions, out: Path, requests: Mapping[str, int]) -> str:
    """Returns the counts of requests that were handed out, and the next step."""
    listed = [f"  {name}: {count:,} requests" for name, count in requests.items()]
    if run.batch:
        return "\n".join(["batches are under way:", *listed, "run the same command again to import them, until every request is answered"])
    return "\n".join(
        [f"{sum(requests.values()):,} requests are written; nothing was sent:", *listed]
        + ["get the answers, import them and run this command again with another file, until every request is answered:"]
        + [f"  empathy-eval ledger import {run.ledger or out / 'ledger.sqlite'} ANSWERS.jsonl"]
    )
