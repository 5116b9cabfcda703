"""``build``: make dialogues and their variants."""

from __future__ import annotations

import argparse
import gc
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import input_error
from empathy_eval.commands.options import add_engine, add_recipe, as_recipe, check_engine, recipe_of

if TYPE_CHECKING:
    from empathy_eval.design.recipe import Recipe
    from empathy_eval.generation.build import Run
    from empathy_eval.generation.summary import Handed, Summary


def build(
    recipe: Recipe | str | Path, out: str | Path, *, models: Mapping[str, Any] | None = None, checks: Sequence[Any] = (),
    ledger: str | Path | None = None, offline: bool = False, requests_to: str | Path | None = None, batch: bool = False,
    wait: bool = True, budget_usd: float | None = None, budget_tokens: int | None = None, part: tuple[int, int] | None = None,
    engine: str = "local", ray_address: str | None = None, progress: Callable[[Summary], None] = lambda summary: None,
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> Handed:  # fmt: skip
    """Makes dialogues and their variants in the folder ``out``: asks for what the ledger does not have. The same call again resumes.

    The recipe may be the path of a configuration or the name of a packaged one. ``models`` puts models of one's own in the place of
    the configured ones, by what they are for (``self_chat``, ``near``, ``far``); ``checks`` adds checks of one's own. All else is as on
    the command line, where ``part`` is ``--slice``: (3, 16) is the third of sixteen parts. ``progress`` is told after each item,
    ``watch`` of the requests of batches that are done, and how many there are.

    Works where an event loop is running too, as in a notebook: an interrupt sends nothing more and waits for what is under way.

    Raises:
        InputError: if something is wrong with what is given, or the folder holds another configuration's build.
        JobError: if the job could not finish; every answer so far is in the ledger.
    """
    check_engine(engine, ray_address)
    recipe, folder = as_recipe(recipe).with_own(models or {}, checks), Path(out)
    ways = {"offline": offline, "requests_to": requests_to is not None, "batch": batch}
    if sum(ways.values()) > 1:
        raise input_error("build", f"{' and '.join(name for name, asked in ways.items() if asked)} are asked for at once", "choose one way")
    if part is not None and not (isinstance(part, tuple) and [*map(type, part)] == [int, int] and 1 <= part[0] <= part[1]):
        raise input_error("build: part", f"{part!r} is no part", "give (K, N) with K from 1 to N, such as (3, 16)")
    if not (wait or batch):
        raise input_error("--no-wait", "belongs to --batch", "add --batch, or leave it out")
    from empathy_eval.base.stopping import beside_loops
    from empathy_eval.generation.build import Run

    run = Run(Path(ledger) if ledger else None, offline, budget_usd, budget_tokens, part, progress=progress)
    where = Path(requests_to) if requests_to else None
    if engine == "ray":
        return beside_loops(lambda: _over_ray(recipe, folder, run, ray_address, whole=not (batch or where)))
    return beside_loops(lambda: _here(recipe, folder, run, where, batch=batch, wait=wait, watch=watch))


def _over_ray(recipe: Recipe, folder: Path, run: Run, address: str | None, *, whole: bool) -> Handed:
    from empathy_eval.generation.on_ray import build_on_ray, only_whole
    from empathy_eval.generation.summary import Handed

    if not whole:
        raise only_whole()
    return Handed(build_on_ray(recipe, folder, run, address=address), {})


def _here(
    recipe: Recipe, folder: Path, run: Run, requests_to: Path | None, *, batch: bool, wait: bool, watch: Callable[[int, int], None]
) -> Handed:
    if requests_to:
        from empathy_eval.generation.by_hand import hand_out

        return hand_out(recipe, folder, requests_to, run)
    if batch:
        from empathy_eval.generation.by_batch import build_by_batch

        return build_by_batch(recipe, folder, run, wait=wait, watch=watch)
    from empathy_eval.generation.build import build
    from empathy_eval.generation.summary import Handed

    return Handed(build(recipe, folder, run), {})


def add(verbs: Any) -> None:
    """Adds the verb to the parser."""
    verb = verbs.add_parser(
        "build",
        help="make dialogues and their variants",
        description="Asks a model for what the ledger does not have yet, checks every answer, and writes the outcomes of all items into a "
        "folder. The same command again resumes: nothing answered is asked for twice.",
    )
    add_recipe(verb)
    verb.add_argument("--out", type=Path, required=True, metavar="DIR", help="the build folder; it belongs to one configuration")
    verb.add_argument("--ledger", type=Path, metavar="PATH", help="the ledger to use (default: DIR/ledger.sqlite)")
    way = verb.add_mutually_exclusive_group()
    way.add_argument("--offline", action="store_true", help="answer from the ledger alone; an unanswered request is an error that names it")
    way.add_argument(
        "--requests-to",
        type=Path,
        metavar="FILE",
        help="send nothing: write the unanswered requests in the batch form of providers (JSON lines) and stop; `ledger import` takes the "
        "answers, and the same command again goes on, until nothing is unanswered",
    )
    way.add_argument(
        "--batch",
        action="store_true",
        help="send requests through the batches of the endpoint, which cost less and take up to a day, in a few rounds",
    )
    verb.add_argument("--no-wait", action="store_true", help="with --batch: return while batches are under way; run it again to go on")
    verb.add_argument("--budget-usd", type=float, metavar="USD", help="spend no more than this, counting what the ledger has spent")
    verb.add_argument("--budget-tokens", type=int, metavar="N", help="use no more tokens than this, counting what the ledger has used")
    verb.add_argument(
        "--slice",
        type=part,
        metavar="K/N",
        help="only fill the ledger, with the K-th of N disjoint parts of the plan; `ledger merge` and one build make it whole",
    )
    add_engine(verb)
    verb.add_argument("--json", action="store_true", help="print the closing summary as JSON")
    verb.set_defaults(run=run)


def part(text: str) -> tuple[int, int]:
    """``3/16`` as two numbers.

    Raises:
        argparse.ArgumentTypeError: for anything else, and for a part that there is not.
    """
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f'"{text}" is no part; write K/N with K from 1 to N, such as 3/16')
    return int(found[1]), int(found[2])


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit status."""
    from tqdm import tqdm

    with (
        tqdm(unit="item", desc="build", disable=None) as bar,
        tqdm(unit="request", desc="batch", disable=None if options.batch else True) as waiting,
    ):

        def show(summary: Summary) -> None:
            bar.total, bar.n = summary.total, summary.status.total() - 1
            bar.set_postfix(summary.short(), refresh=False)
            bar.update()

        def watch(done: int, total: int) -> None:
            waiting.total, waiting.n = total, done
            waiting.refresh()

        recipe = recipe_of(options)
        import empathy_eval.generation.build  # noqa: F401  # what a build loads

        # What is loaded by now lives as long as this process: the garbage collector need not look at it again and again.
        gc.freeze()
        handed = build(
            recipe, options.out, ledger=options.ledger, offline=options.offline, requests_to=options.requests_to, batch=options.batch,
            wait=not options.no_wait, budget_usd=options.budget_usd, budget_tokens=options.budget_tokens, part=options.slice,
            engine=options.engine, ray_address=options.ray_address, progress=show, watch=watch,
        )  # fmt: skip
    summary = handed.summary
    if options.json:
        print(json.dumps(handed.to_json(), indent=2))
    else:
        for reason, count in sorted(handed.reasons.items()):
            print(f"came back from batches without an answer: {reason} ({count:,})")
        print(_next_step(options, handed.requests) if handed.requests else summary)
        if options.slice and not handed.requests:
            print("only the ledger was filled: bring the parts together with `ledger merge`, then build without --slice")
    return 1 if summary and summary.missing and not handed.requests else 0


def _next_step(options: argparse.Namespace, requests: Mapping[str, int]) -> str:
    """What was given out, and what to do now."""
    given = [f"  {name}: {count:,} requests" for name, count in requests.items()]
    if options.batch:
        return "\n".join(["batches are under way:", *given, "run the same command to take them in and go on, until nothing is unanswered"])
    ledger = options.ledger or options.out / "ledger.sqlite"
    return "\n".join(
        [f"{sum(requests.values()):,} requests are written, nothing was sent:", *given]
        + ["have them answered, take the answers in and run this command again (naming another file), until nothing is unanswered:"]
        + [f"  empathy-eval ledger import {ledger} ANSWERS.jsonl"]
    )
