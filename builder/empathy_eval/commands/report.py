"""``report``: measure a release again."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from empathy_eval.commands.engines import add_engine
from empathy_eval.commands.scores import add_cache, add_trust, scoring_of, told_of
from empathy_eval.commands.tables import inversion_table


def add(verbs: Any) -> None:
    """Adds the verb to the parser."""
    verb = verbs.add_parser(
        "report",
        help="measure a release again",
        description="Scores the variants of a release with the scorers its manifest names, and writes one self-contained page, the tables "
        "as JSON and the figures.",
    )
    verb.add_argument("release", type=Path, metavar="DIR", help="the release folder")
    verb.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the report is written")
    add_trust(verb)
    add_cache(verb)
    add_engine(verb)
    verb.add_argument("--json", action="store_true", help="print the tables as JSON")
    verb.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit status."""
    from empathy_eval.evaluation.report import report

    with scoring_of(options) as scoring:
        made = report(options.release, options.out, trusted=options.trust_metrics, scoring=scoring)
    for one in made.left:
        print(one, file=sys.stderr)
    print(json.dumps(made.to_json(), indent=2, ensure_ascii=False) if options.json else inversion_table(made))
    if not options.json:
        print(f"\nreport: {options.out / 'index.html'}")
    return told_of(made.measured.faults)
