"""``report``: new report of a release."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from empathy_eval.base.paths import takes_paths
from empathy_eval.commands.command import CACHE, ENGINE, RELEASE, TRUSTED, Command, cache_of, printed, report_faults, scoring_session

if TYPE_CHECKING:
    from empathy_eval.reports.report import Report


@takes_paths
def report(
    release: str | Path, out: str | Path, *, trusted: Sequence[str] = (), cache: str | Path | bool = True, engine: str = "local",
    ray_address: str | None = None, progress: Callable[[int], None] | None = None,
) -> Report:  # fmt: skip
    """Measures a release (a folder, or a Hub name such as ``org/name@v1.0.0``) again, and writes the report to ``out``.

    ``cache`` may be True (the user's cache folder) or False (none). ``progress`` is called with the number of scored texts.

    Raises
    ------
    InputError
        If it is no release or cannot be fetched, no metric is left to run, or ``out`` holds something else.
    """
    from empathy_eval.releases.hub.fetch import release_folder
    from empathy_eval.reports.report import report

    with scoring_session(cache, engine, ray_address, progress) as scoring:
        return report(release_folder(release), Path(out), trusted=trusted, scoring=scoring)


def _shown(result: Report, out: Path, json: bool = False) -> int:
    for finding in result.left:
        print(finding, file=sys.stderr)
    printed(result, json)
    if not json:
        print(f"\nreport: {out / 'index.html'}")
    return report_faults(result.measured.faults)


COMMAND = Command(
    report,
    "measure a release again",
    "Scores the variants of a release with the scorers that its manifest names, and writes one self-contained page, the tables as JSON and "
    "the figures.",
    {**RELEASE, "--out DIR": "where the report is written", **TRUSTED, **CACHE, **ENGINE, "--json": "print the tables as JSON"},
    shown=_shown,
    factories={"cache": cache_of},
    staged=True,
)
