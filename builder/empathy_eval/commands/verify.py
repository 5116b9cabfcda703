"""``verify``: check that a release is what it claims."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from empathy_eval.commands.scores import add_trust, scoring_of


def add(verbs: Any) -> None:
    """Adds the verb to the parser."""
    verb = verbs.add_parser(
        "verify",
        help="check that a release is what it claims",
        description="Derives a release again: file hashes, counts, every row, ids, splits, duplicates, the card's counts, the report's "
        "numbers. All faults at once, each with its place; exit status 2 if there is one. Runs built-in and installed metrics alone: "
        "another that the manifest names is told, not recomputed.",
    )
    verb.add_argument("release", type=Path, metavar="DIR", help="the release folder")
    verb.add_argument("--fast", action="store_true", help="leave the recomputation of the report's numbers out")
    verb.add_argument("--strict", action="store_true", help="exit with status 1 if a metric was not recomputed")
    add_trust(verb)
    verb.add_argument("--json", action="store_true", help="print the faults, and what was not recomputed, as JSON; `kind` tells which")
    verb.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit status."""
    from empathy_eval.metrics.trust import NotRecomputed
    from empathy_eval.releases.verify import verify

    with scoring_of() as scoring:
        problems = verify(options.release, fast=options.fast, trusted=options.trust_metrics, scoring=scoring)
    left = [one for one in problems if isinstance(one, NotRecomputed)]
    faulty = len(problems) > len(left)
    if options.json:
        told = [{"kind": "not_recomputed" if one in left else "fault", **asdict(one)} for one in problems]
        # The name of a file may hold what is no sign; as an escape it is JSON again.
        print(json.dumps(told, indent=2, ensure_ascii=False).encode(errors="backslashreplace").decode())
    else:
        claim = f"{options.release}: is what it claims" + (", but for what was not recomputed" if left else "")
        print("\n".join([*map(str, problems), *([] if faulty else [claim])]))
    return 2 if faulty else 1 if left and options.strict else 0
