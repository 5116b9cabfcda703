"""``agree``: how far raters agree."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

EXAMPLES = """\
examples:
  empathy-eval agree ratings.csv
  empathy-eval agree ratings.csv --judge my-model --json

TABLE.csv has the columns item, rater, rating and, if there are several, criterion; a missing rating is an empty cell or no row.
docs/agreement.md says what each figure means and when it is not defined.
"""


def add(verbs: Any) -> None:
    """Adds the verb to the parser."""
    verb = verbs.add_parser(
        "agree",
        help="say how far raters agree",
        description="Cohen's kappa of each pair of raters, Krippendorff's alpha, Fleiss' kappa, F1 against the median rater, variance "
        "inflation between criteria, and where a judge stands against what the experts reach with each other. Intervals are over items.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("table", type=Path, metavar="TABLE.csv", help="the ratings, a row a rating")
    verb.add_argument("--judge", action="append", default=[], metavar="NAME", help="a rater to be placed against the others; repeatable")
    verb.add_argument("--resamples", type=int, default=1000, metavar="N", help="draws of items for the intervals (default 1000; 0: none)")
    verb.add_argument("--seed", type=int, default=0, metavar="N", help="of the draws (default 0)")
    verb.add_argument(
        "--level",
        choices=("nominal", "ordinal", "interval"),
        default="interval",
        help="what the distance of two ratings means: the benchmark takes plain, linear or quadratic kappa (default interval: quadratic)",
    )
    verb.add_argument("--json", action="store_true", help="print all figures as JSON, each with its settings")
    verb.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit status."""
    from empathy_eval.raters.agreement import agree, read_table
    from empathy_eval.raters.agreement.terminal import shown

    found = agree(read_table(options.table), options.judge, options.resamples, options.seed, options.level)
    print(json.dumps(found.to_json(), indent=2, ensure_ascii=False, allow_nan=False) if options.json else shown(found))
    return 0
