"""``diff``: compare two releases."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


def add(verbs: Any) -> None:
    """Adds the verb to the parser."""
    verb = verbs.add_parser(
        "diff",
        help="compare two releases",
        description="Dialogues added, removed, changed, withdrawn; columns; the inversion side by side; what made them. A dialogue "
        "that moved to another split is an error (exit status 2).",
    )
    verb.add_argument("before", type=Path, metavar="A", help="the earlier release")
    verb.add_argument("after", type=Path, metavar="B", help="the later release")
    verb.add_argument("--json", action="store_true", help="print the differences as JSON")
    verb.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit status."""
    from empathy_eval.releases.diff import diff

    found = diff(options.before, options.after)
    print(json.dumps(found.to_json(), indent=2, ensure_ascii=False) if options.json else found)
    return 2 if found.moved else 0
