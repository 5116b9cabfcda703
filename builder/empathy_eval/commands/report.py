"""``report``: measure a release again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.json_text import json_text
from empathy_eval.base.paths import takes_paths
from empathy_eval.commands.options import A_RELEASE, add_cache, add_engine, add_trust, cache_of, scoring_with, told_of
from empathy_eval.commands.progress import staged

if TYPE_CHECKING:
    from empathy_eval.reports.report import Report


@takes_paths
def report(
    release: str | Path, out: str | Path, *, trusted: Sequence[str] = (), cache: str | Path | bool = True, engine: str = "local",
    ray_address: str | None = None, progress: Callable[[int], None] | None = None,
) -> Report:  # fmt: skip
    """Measures a release (a folder, or a Hub name such as ``org/name@v1.0.0``) anew, into a folder of its own.

    ``trusted`` are metrics of the manifest that may be run beside the built-in and the installed ones; ``cache`` is where costly scores are
    kept (True: in the user's cache folder, False: nowhere); ``progress`` is told of scored texts.

    Raises:
        InputError: if it is no release or cannot be had, no metric is left to run, or ``out`` holds something else.
    """
    from empathy_eval.releases.hub.fetch import release_folder
    from empathy_eval.reports.report import report

    with scoring_with(cache, engine, ray_address, progress) as scoring:
        return report(release_folder(release), Path(out), trusted=trusted, scoring=scoring)


def add(verbs: Any) -> None:
    """Adds the verb to the parser."""
    verb = verbs.add_parser(
        "report",
        help="measure a release again",
        description="Scores the variants of a release with the scorers that its manifest names, and writes one self-contained page, the "
        "tables as JSON and the figures.",
    )
    verb.add_argument("release", metavar="RELEASE", help=f"the release, {A_RELEASE}")
    verb.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the report is written")
    add_trust(verb)
    add_cache(verb)
    add_engine(verb)
    verb.add_argument("--json", action="store_true", help="print the tables as JSON")
    verb.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit status."""
    with staged("report"):
        made = report(
            options.release, options.out, trusted=options.trust_metrics, cache=cache_of(options), engine=options.engine,
            ray_address=options.ray_address,
        )  # fmt: skip
    for one in made.left:
        print(one, file=sys.stderr)
    print(json_text(made.to_json()) if options.json else made)
    if not options.json:
        print(f"\nreport: {options.out / 'index.html'}")
    return told_of(made.measured.faults)
