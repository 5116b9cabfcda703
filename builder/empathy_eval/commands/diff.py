"""``diff``: compare two releases."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.json_text import json_text
from empathy_eval.base.paths import takes_paths
from empathy_eval.commands.options import A_RELEASE

if TYPE_CHECKING:
    from empathy_eval.releases.compare.diff import Diff


@takes_paths
def diff(before: str | Path, after: str | Path) -> Diff:
    """What lies between two releases, each a folder or a Hub name such as ``org/name@v1.0.0``.

    Raises:
        InputError: if one of them is no release, or cannot be had.
    """
    from empathy_eval.releases.compare.diff import diff
    from empathy_eval.releases.hub.fetch import release_folder

    return diff(release_folder(before), release_folder(after))


def add(verbs: Any) -> None:
    """Adds the verb to the parser."""
    verb = verbs.add_parser(
        "diff",
        help="compare two releases",
        description="Lists dialogues that were added, removed, changed or withdrawn, and changes of crossed items, columns, figures, "
        "settings and software. It is an error (exit status 2) if a dialogue changes its split. It is also an error if a dialogue, "
        "pair, control or crossed item changes in place, disappears without a withdrawal, or is no longer withdrawn.",
    )
    verb.add_argument("before", metavar="A", help=f"the earlier release, {A_RELEASE}")
    verb.add_argument("after", metavar="B", help="the later release, in the same form")
    verb.add_argument("--json", action="store_true", help="print the differences as JSON")
    verb.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit status."""
    found = diff(options.before, options.after)
    print(json_text(found.to_json()) if options.json else found)
    return 2 if found.moved or found.unexplained else 0
