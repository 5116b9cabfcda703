"""The arguments of the command line, and the help that teaches them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from builder import __version__

EXAMPLES = """\
a release from nothing, without a model, a key or a network:
  empathy-eval build release/demo.yaml --out build/demo
  empathy-eval release build/demo --out build/demo/release --version 0.1.0

exit status: 0 done; 1 the job could not finish (what was paid for is kept, run it again); 2 the input is wrong
"""


def make_parser() -> argparse.ArgumentParser:
    """The parser of all verbs; ``verb`` of what it parses is the verb's name."""
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
    _add_verify(verbs)
    _add_diff(verbs)
    _add_publish(verbs)
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
    verb.set_defaults(verb="preview")


def _add_verify(verbs: Any) -> None:
    verb = verbs.add_parser(
        "verify",
        help="check that a release is what it claims",
        description="Derives a release again: file hashes, counts, every row, ids, splits, duplicates, the card's counts, the report's "
        "numbers. All faults at once, each with its place; exit status 2 if there is one.",
    )
    verb.add_argument("release", type=Path, metavar="DIR", help="the release folder")
    verb.add_argument("--fast", action="store_true", help="leave the recomputation of the report's numbers out")
    verb.add_argument("--json", action="store_true", help="print the faults as JSON")
    verb.set_defaults(verb="verify")


def _add_diff(verbs: Any) -> None:
    verb = verbs.add_parser(
        "diff",
        help="compare two releases",
        description="Dialogues added, removed, changed, withdrawn; columns; the inversion side by side; what made them. A dialogue "
        "that moved to another split is an error (exit status 2).",
    )
    verb.add_argument("before", type=Path, metavar="A", help="the earlier release")
    verb.add_argument("after", type=Path, metavar="B", help="the later release")
    verb.add_argument("--json", action="store_true", help="print the differences as JSON")
    verb.set_defaults(verb="diff")


def _add_publish(verbs: Any) -> None:
    verb = verbs.add_parser(
        "publish",
        help="put a release on the Hugging Face Hub",
        description="One commit and a tag in a dataset repository. Refuses what verify refuses, and a version that is there already. The "
        "token is that of `hf auth login` or HF_TOKEN.",
    )
    verb.add_argument("release", type=Path, metavar="DIR", help="the release folder")
    verb.add_argument("--repo", required=True, metavar="ORG/NAME", help="the dataset repository; it is made if it is not there")
    verb.add_argument("--dry-run", action="store_true", help="list what would go, and send nothing")
    verb.set_defaults(verb="publish")


def _add_ledger(verbs: Any) -> None:
    verb = verbs.add_parser("ledger", help="look into a ledger", description="Works on the file that holds every answer.")
    inner = verb.add_subparsers(title="verbs", metavar="VERB", required=True)
    show = inner.add_parser("show", help="requests, tokens and spend by model, kind and finish reason")
    show.add_argument("ledger", type=Path, metavar="PATH", help="the ledger, such as build/demo/ledger.sqlite")
    show.add_argument("--config", type=Path, metavar="CONFIG", help="a configuration with prices, to show what was spent")
    show.add_argument("--json", action="store_true", help="print the rows as JSON")
    show.set_defaults(verb="ledger_show")


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
    verb.set_defaults(verb="build")


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
    verb.set_defaults(verb="release")


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
    verb.set_defaults(verb="report")
