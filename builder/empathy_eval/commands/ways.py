"""The ways to do a job that asks models: live, from the ledger alone, by hand, by batch, a part of it, or over a Ray cluster."""

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
from empathy_eval.commands.options import add_engine, check_engine, warned_of, whole
from empathy_eval.commands.progress import OfRun, shown

if TYPE_CHECKING:
    from empathy_eval.design.recipe import Recipe
    from empathy_eval.generation.build import Run
    from empathy_eval.generation.job import Job
    from empathy_eval.generation.summary import Course, Handed, Summary

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ways:
    """How a job is done; none of it changes what comes of it. The names are those of the command line, ``part`` is ``--slice``."""

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
    course: Course | None = None
    keep_going: bool = False

    def refuse_contradictions(self, verb: str) -> None:
        """Raises an :class:`InputError` for ways that do not go together."""
        check_engine(self.engine, self.ray_address)
        asked = [name for name in ("offline", "requests_to", "batch") if getattr(self, name)]
        if len(asked) > 1:
            raise input_error(verb, f"{' and '.join(asked)} cannot be combined", "choose one of them")
        part = self.part
        if part is not None and not (isinstance(part, tuple) and [*map(type, part)] == [int, int] and 1 <= part[0] <= part[1]):
            raise input_error(f"{verb}: part", f"{part!r} is not a part", "give (K, N) with K from 1 to N, such as (3, 16)")
        if not (self.wait or self.batch):
            raise input_error("--no-wait", "needs --batch", "add --batch, or leave it out")


def do(what: Recipe | Job, folder: Path, ways: Ways) -> Handed:
    """Does a job in a folder. Works where an event loop is running too, as in a notebook.

    Raises:
        InputError: if the folder holds another job, or a model or a scorer cannot be had.
        JobError: if the job could not finish; every answer so far is in the ledger.
    """
    from empathy_eval.base.stopping import beside_loops
    from empathy_eval.generation.build import Run
    from empathy_eval.generation.build_folder import LEDGER
    from empathy_eval.generation.summary import Course

    ledger = Path(ways.ledger) if ways.ledger else None
    run = Run(
        ledger, ways.offline, ways.budget_usd, ways.budget_tokens, ways.part, keep_going=ways.keep_going, progress=ways.progress,
        course=ways.course or Course(),
    )  # fmt: skip
    way = _over_ray if ways.engine == "ray" else _here
    _answers_taken(what, ledger or folder / LEDGER)

    def work() -> Handed:
        return way(what if ways.offline else _warned(what, folder, ledger or folder / LEDGER, ways), folder, run, ways)

    return beside_loops(work)


def _answers_taken(what: Recipe | Job, ledger: Path) -> None:
    """Takes the answers that a configuration comes with into the ledger, unless an export of them is the ledger."""
    from empathy_eval.completions.ledger_file import is_export
    from empathy_eval.completions.merge import merge
    from empathy_eval.design.recipe import Recipe

    answers = what.config.answers if isinstance(what, Recipe) else None
    if answers and not is_export(ledger):
        merge(ledger, [answers])


def _warned(what: Recipe | Job, folder: Path, ledger: Path, ways: Ways) -> Recipe | Job:
    """What is to be done, after it is said what a change asks again of answers that are there: before anything is sent.

    What that made of models of one's own is handed on with it, but not over Ray, where each task makes its own.
    """
    from empathy_eval.design.recipe import Recipe
    from empathy_eval.generation.job import Dialogues
    from empathy_eval.generation.preview import asked_again

    if not isinstance(what, Recipe) or not ledger.is_file():
        return what
    found = what if ways.engine == "ray" else Dialogues(what).found().recipe
    if again := asked_again(found, ledger, [folder, ledger.parent]):
        LOG.warning("%s", plain(f"{ledger}: {again}"))
    return found


def _over_ray(what: Recipe | Job, folder: Path, run: Run, ways: Ways) -> Handed:
    from empathy_eval.generation.on_ray import build_on_ray, only_whole
    from empathy_eval.generation.summary import Handed

    if ways.batch or ways.requests_to:
        raise only_whole()
    return Handed(build_on_ray(what, folder, run, address=ways.ray_address), {})


def _here(what: Recipe | Job, folder: Path, run: Run, ways: Ways) -> Handed:
    if ways.requests_to:
        from empathy_eval.generation.by_batch import hand_out

        return hand_out(what, folder, Path(ways.requests_to), run)
    if ways.batch:
        from empathy_eval.generation.by_batch import build_by_batch

        return build_by_batch(what, folder, run, wait=ways.wait, watch=ways.watch)
    from empathy_eval.generation.build import build
    from empathy_eval.generation.summary import Handed

    return Handed(build(what, folder, run), {})


def add_ways(verb: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    """Adds the ways of a verb that asks models; returns the group of those that stand in each other's place."""
    verb.add_argument("--ledger", type=Path, metavar="PATH", help="the ledger to use (default: DIR/ledger.sqlite)")
    way = verb.add_mutually_exclusive_group()
    way.add_argument(
        "--offline", action="store_true", help="use only answers from the ledger; an unanswered request is an error that names it"
    )
    way.add_argument(
        "--requests-to",
        type=Path,
        metavar="FILE",
        help="send nothing: write the unanswered requests in the batch format of providers (JSON lines) and stop. Import the answers with "
        "`ledger import`, then run the same command again, until every request is answered",
    )
    way.add_argument(
        "--batch",
        action="store_true",
        help="send requests in batches of the endpoint, in a few rounds; batches cost less and take up to a day",
    )
    verb.add_argument("--no-wait", action="store_true", help="with --batch: return while batches are under way; run it again to continue")
    verb.add_argument(
        "--budget-usd", type=float, metavar="USD", help="spend no more than this, including the cost of answers in the ledger"
    )
    verb.add_argument(
        "--budget-tokens", type=whole, metavar="N", help="use no more tokens than this, including those of answers in the ledger"
    )
    verb.add_argument(
        "--slice",
        type=part,
        metavar="K/N",
        help="only fill the ledger, with the K-th of N disjoint parts of the plan; then use `ledger merge`, and run once without --slice",
    )
    verb.add_argument("--keep-going", action="store_true", help="do not stop if the first 20 items all fail")
    add_engine(verb)
    verb.add_argument("--json", action="store_true", help="print the closing summary as JSON")
    return way


def part(text: str) -> tuple[int, int]:
    """``3/16`` as two numbers.

    Raises:
        argparse.ArgumentTypeError: for anything else, and for a part that there is not.
    """
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f'"{text}" is not a part; write K/N with K from 1 to N, such as 3/16')
    return int(found[1]), int(found[2])


@dataclass(frozen=True)
class Closing:
    """What is said once a job is finished, beside its summary: in words, and by name as JSON values."""

    text: str
    json: dict[str, Any]


def done(options: argparse.Namespace, verb: str, work: Callable[[Ways], Handed], closing: Callable[[], Closing] | None = None) -> int:
    """Does the work in the way that is asked for, with progress, and prints what came of it; returns the exit status.

    ``closing`` is asked only if the job is finished: nothing is handed out, and it was no part of it.
    """
    from empathy_eval.generation.summary import Course
    from empathy_eval.raters.judges.canary_scan import heard_in_folder

    course = Course()

    def watch(done: int, total: int) -> None:
        course.batch = (done, total)

    with shown(verb, OfRun(course)):
        import empathy_eval.generation.build  # noqa: F401  # what such work loads

        # What is loaded by now lives as long as this process: the garbage collector need not look at it again and again.
        gc.freeze()
        ways = Ways(
            options.ledger, options.offline, options.requests_to, options.batch, not options.no_wait, options.budget_usd,
            options.budget_tokens, options.slice, options.engine, options.ray_address, watch=watch, course=course,
            keep_going=options.keep_going,
        )  # fmt: skip
        handed = work(ways)
    finished = not handed.requests and not options.slice
    more, heard = closing() if closing and finished else None, heard_in_folder(options.out) if finished else []
    warned_of(heard)
    if options.json:
        told = more.json if more else {}
        beside = {name: {**one.to_json(), **told.get(name, {})} for name, one in handed.beside.items()}
        print(json_text({**handed.to_json(), **told, **beside, **({"canary": heard} if heard else {})}, ascii_only=True))
    else:
        for reason, count in sorted(handed.reasons.items()):
            print(f"came back from batches without an answer: {reason} ({count:,})")
        print(_next_step(options, handed.requests) if handed.requests else handed)
        if more:
            print(plain(f"\n{more.text}"))
        if options.slice and not handed.requests:
            print("only the ledger was filled: combine the parts with `ledger merge`, then run the command without --slice")
    return 1 if handed.lacking and not handed.requests else 0


def _next_step(options: argparse.Namespace, requests: Mapping[str, int]) -> str:
    """What was given out, and what to do now."""
    given = [f"  {name}: {count:,} requests" for name, count in requests.items()]
    if options.batch:
        return "\n".join(["batches are under way:", *given, "run the same command again to import them, until every request is answered"])
    ledger = options.ledger or options.out / "ledger.sqlite"
    return "\n".join(
        [f"{sum(requests.values()):,} requests are written; nothing was sent:", *given]
        + ["get the answers, import them and run this command again with another file, until every request is answered:"]
        + [f"  empathy-eval ledger import {ledger} ANSWERS.jsonl"]
    )
