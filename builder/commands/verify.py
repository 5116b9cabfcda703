"""``verify``: check that a release is what it claims."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from builder.commands.scores import scoring_bar


def add(verbs: Any) -> None:
    """Adds the verb to the parser."""
    verb = verbs.add_parser(
        "verify",
        help="check that a release is what it claims",
        description="Derives a release again: file hashes, counts, every row, ids, splits, duplicates, the card's counts, the report's "
        "numbers. All faults at once, each with its place; exit status 2 if there is one.",
    )
    verb.add_argument("release", type=Path, metavar="DIR", help="the release folder")
    verb.add_argument("--fast", action="store_true", help="leave the recomputation of the report's numbers out")
    verb.add_argument("--json", action="store_true", help="print the faults as JSON")
    verb.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit status."""
    from builder.verifying import verify

    with scoring_bar() as progress:
        problems = verify(options.release, fast=options.fast, progress=progress)
    if options.json:
        print(json.dumps([asdict(problem) for problem in problems], indent=2, ensure_ascii=False))
    else:
        print("\n".join(map(str, problems)) or f"{options.release}: is what it claims")
    return 2 if problems else 0
