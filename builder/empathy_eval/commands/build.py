"""``build``: make dialogues and their variants."""

from __future__ import annotations

import argparse
import gc
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import input_error
from empathy_eval.commands.engines import add_engine, check_engine
from empathy_eval.commands.inputs import add_inputs

if TYPE_CHECKING:
    from empathy_eval.design.configuration import Configuration
    from empathy_eval.design.prompts import Prompts
    from empathy_eval.design.scenarios import Catalogue
    from empathy_eval.generation.summary import Handed, Summary


def add(verbs: Any) -> None:
    """Adds the verb to the parser."""
    verb = verbs.add_parser(
        "build",
        help="make dialogues and their variants",
        description="Asks a model for what the ledger does not have yet, checks every answer, and writes the outcomes of all items into a "
        "folder. The same command again resumes: nothing answered is asked for twice.",
    )
    add_inputs(verb)
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
    if options.no_wait and not options.batch:
        raise input_error("--no-wait", "belongs to --batch", "add --batch, or leave it out")
    check_engine(options)
    handed = _built(options)
    summary = handed.summary
    if options.json:
        print(json.dumps({**(summary.to_json() if summary else {}), "requests": handed.requests, "reasons": handed.reasons}, indent=2))
    else:
        for reason, count in sorted(handed.reasons.items()):
            print(f"came back from batches without an answer: {reason} ({count:,})")
        print(_next_step(options, handed.requests) if handed.requests else summary)
        if options.slice and not handed.requests:
            print("only the ledger was filled: bring the parts together with `ledger merge`, then build without --slice")
    return 1 if summary and summary.missing and not handed.requests else 0


def _inputs(options: argparse.Namespace) -> tuple[Configuration, Path, Catalogue, Prompts]:
    """What is built, and where."""
    from empathy_eval.design.configuration import load_configuration
    from empathy_eval.design.prompts import load_prompts
    from empathy_eval.design.scenarios import load_catalogue

    config = load_configuration(options.config, model=options.model, base_url=options.base_url)
    return config, options.out, load_catalogue(options.scenarios), load_prompts(options.templates)


def _built(options: argparse.Namespace) -> Handed:
    """Builds in the way that is asked for."""
    from tqdm import tqdm

    inputs = _inputs(options)
    from empathy_eval.generation.build import Run, build
    from empathy_eval.generation.summary import Handed

    # What is loaded by now lives as long as this process: the garbage collector need not look at it again and again.
    gc.freeze()
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

        run = Run(options.ledger, options.offline, options.budget_usd, options.budget_tokens, options.slice, progress=show)
        if options.engine == "ray":
            from empathy_eval.generation.on_ray import build_on_ray, only_whole

            if options.batch or options.requests_to:
                raise only_whole()
            return Handed(build_on_ray(*inputs, run, address=options.ray_address), {})
        if options.requests_to:
            from empathy_eval.generation.by_hand import hand_out

            return hand_out(*inputs, options.requests_to, run)
        if options.batch:
            from empathy_eval.generation.by_batch import build_by_batch

            return build_by_batch(*inputs, run, wait=not options.no_wait, watch=watch)
        return Handed(build(*inputs, run), {})


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
