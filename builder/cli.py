"""The command line: arguments and printing only. Each verb is one plain Python call."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from builder import __version__
from builder.config import load_configuration
from builder.errors import EmpathyEvalError
from builder.prompts import load_prompts
from builder.scenarios import load_catalogue

# spaCy, matplotlib and torch take seconds to import: each verb imports what it needs, so that --help and errors are instant.
if TYPE_CHECKING:
    from builder.summary import Summary

EXAMPLES = """\
a release from nothing, without a model, a key or a network:
  empathy-eval build release/demo.yaml --out build/demo
  empathy-eval release build/demo --out build/demo/release --version 0.1.0

exit status: 0 done; 1 the job could not finish (what was paid for is kept, run it again); 2 the input is wrong
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb and returns the exit status; errors that a user can mend are printed without a traceback."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.verb(options)
        return status
    except EmpathyEvalError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("stopped; every answer so far is in the ledger, run the same command to go on", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="empathy-eval",
        description="Builds, checks, releases and explains a contrastive benchmark of emotional-support conversations.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"empathy-eval {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_preview(verbs)
    _add_build(verbs)
    _add_release(verbs)
    _add_report(verbs)
    _add_ledger(verbs)
    return parser


def _add_config(verb: argparse.ArgumentParser) -> None:
    """What ``preview`` and ``build`` share."""
    verb.add_argument("config", type=Path, metavar="CONFIG", help="a build configuration, such as release/demo.yaml")
    verb.add_argument("--model", metavar="NAME", help="use this model for everything, instead of the configured ones")
    verb.add_argument("--base-url", metavar="URL", help="the OpenAI-compatible endpoint of the model, such as http://localhost:8000/v1")
    verb.add_argument("--scenarios", type=Path, metavar="DIR", help="a folder of scenarios of your own")
    verb.add_argument("--templates", type=Path, metavar="DIR", help="a folder of prompt templates of your own")


def _add_preview(verbs: Any) -> None:
    verb = verbs.add_parser(
        "preview",
        help="show the first requests of a build and estimate all of it",
        description="Shows the exact requests of the first items, and estimates requests, tokens, cost and hours of the whole build. Sends "
        "nothing. With a ledger that has answers already, the estimate uses their averages.",
    )
    _add_config(verb)
    verb.add_argument("-n", type=int, default=1, metavar="N", help="items whose requests are shown (default: 1; 0 shows only the estimate)")
    verb.add_argument("--ledger", type=Path, metavar="PATH", help="a ledger to learn from; it is not changed")
    verb.add_argument("--json", action="store_true", help="print everything as JSON")
    verb.set_defaults(verb=_preview)


def _add_ledger(verbs: Any) -> None:
    verb = verbs.add_parser("ledger", help="look into a ledger", description="Works on the file that holds every answer.")
    inner = verb.add_subparsers(title="verbs", metavar="VERB", required=True)
    show = inner.add_parser("show", help="requests, tokens and spend by model, kind and finish reason")
    show.add_argument("ledger", type=Path, metavar="PATH", help="the ledger, such as build/demo/ledger.sqlite")
    show.add_argument("--config", type=Path, metavar="CONFIG", help="a configuration with prices, to show what was spent")
    show.add_argument("--json", action="store_true", help="print the rows as JSON")
    show.set_defaults(verb=_ledger_show)


def _add_build(verbs: Any) -> None:
    verb = verbs.add_parser(
        "build",
        help="make dialogues and their variants",
        description="Asks a model for what the ledger does not have yet, checks every answer, and writes the outcomes of all items into a "
        "folder. The same command again resumes: nothing answered is asked for twice.",
    )
    _add_config(verb)
    verb.add_argument("--out", type=Path, required=True, metavar="DIR", help="the build folder; it belongs to one configuration")
    verb.add_argument("--ledger", type=Path, metavar="PATH", help="the ledger to use (default: DIR/ledger.sqlite)")
    verb.add_argument(
        "--offline", action="store_true", help="answer from the ledger alone; an unanswered request is an error that names it"
    )
    verb.add_argument("--budget-usd", type=float, metavar="USD", help="spend no more than this, counting what the ledger has spent")
    verb.add_argument("--budget-tokens", type=int, metavar="N", help="use no more tokens than this, counting what the ledger has used")
    verb.add_argument("--json", action="store_true", help="print the closing summary as JSON")
    verb.set_defaults(verb=_build)


def _add_release(verbs: Any) -> None:
    verb = verbs.add_parser(
        "release",
        help="publish a build as a folder for datasets.load_dataset",
        description="Writes the splits, the report, the card and the manifest of a finished build into a folder that is a Hub dataset "
        "repository as it stands. The folder is written whole or not at all.",
    )
    verb.add_argument("build", type=Path, metavar="DIR", help="the build folder")
    verb.add_argument("--out", type=Path, required=True, metavar="DIR", help="the release folder")
    verb.add_argument("--version", required=True, metavar="X.Y.Z", help="the version of the release")
    verb.add_argument("--date", metavar="YYYY-MM-DD", help="the release date to state; no clock is read")
    verb.add_argument("--partial", action="store_true", help="release although items are missing")
    verb.add_argument("--json", action="store_true", help="print the manifest as JSON")
    verb.set_defaults(verb=_release)


def _add_report(verbs: Any) -> None:
    verb = verbs.add_parser(
        "report",
        help="measure a release again",
        description="Scores the variants of a release with the scorers its manifest names, and writes one self-contained page, the tables "
        "as JSON and the figures.",
    )
    verb.add_argument("release", type=Path, metavar="DIR", help="the release folder")
    verb.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the report is written")
    verb.add_argument("--json", action="store_true", help="print the tables as JSON")
    verb.set_defaults(verb=_report)


def _preview(options: argparse.Namespace) -> int:
    config = load_configuration(options.config, model=options.model, base_url=options.base_url)
    from builder.estimating import estimate_table, preview

    made = preview(config, load_catalogue(options.scenarios), load_prompts(options.templates), options.ledger, options.n)
    if options.json:
        requests = [{"about": asdict(one.about), "key": one.key, "endpoint": one.endpoint, "body": one.body} for one in made.requests]
        print(
            json.dumps({"requests": requests, "stand_ins": made.stand_ins, "estimates": [asdict(one) for one in made.estimates]}, indent=2)
        )
        return 0
    for request in made.requests:
        print(f"--- {request.about} · key {request.key} · endpoint {request.endpoint}")
        print(json.dumps(request.body, indent=2, ensure_ascii=False))
    if made.stand_ins:
        print(f"--- not in the ledger yet, so a seed dialogue stands in for rewriting: {', '.join(made.stand_ins)}")
    print(estimate_table(made.estimates))
    return 0


def _ledger_show(options: argparse.Namespace) -> int:
    from builder.ledger import Ledger
    from builder.spending import spending, spending_table

    config = load_configuration(options.config) if options.config else None
    with Ledger(options.ledger, create=False) as ledger:
        rows = spending(ledger, config)
    print(json.dumps([asdict(row) for row in rows], indent=2) if options.json else spending_table(rows))
    return 0


def _build(options: argparse.Namespace) -> int:
    config = load_configuration(options.config, model=options.model, base_url=options.base_url)
    catalogue, prompts = load_catalogue(options.scenarios), load_prompts(options.templates)
    from builder.pipeline import Run, build

    with tqdm(unit="item", desc="build", disable=None) as bar:

        def show(summary: Summary) -> None:
            bar.total = summary.total
            bar.set_postfix(summary.short(), refresh=False)
            bar.update()

        run = Run(options.ledger, options.offline, options.budget_usd, options.budget_tokens, progress=show)
        summary = build(config, options.out, catalogue, prompts, run)
    print(json.dumps(summary.to_json(), indent=2) if options.json else summary)
    return 1 if summary.missing else 0


def _release(options: argparse.Namespace) -> int:
    from builder.releasing import release
    from builder.reporting import inversion_table

    released = release(options.build, options.out, options.version, date=options.date, partial=options.partial)
    if options.json:
        print(json.dumps(released.manifest, indent=2, ensure_ascii=False))
        return 0
    print(inversion_table(released.report))
    print(f"\nrelease: {options.out}\nreport:  {options.out / 'report' / 'index.html'}")
    print(f'load it: datasets.load_dataset("{options.out}", "pairs")')
    return 0


def _report(options: argparse.Namespace) -> int:
    from builder.reporting import inversion_table, report

    made = report(options.release, options.out)
    print(json.dumps(made.to_json(), indent=2, ensure_ascii=False) if options.json else inversion_table(made))
    if not options.json:
        print(f"\nreport: {options.out / 'index.html'}")
    return 0


def entry() -> None:
    """The console script."""
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has had enough, as in ``… | head``
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    sys.exit(status)
