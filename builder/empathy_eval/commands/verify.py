"""``verify``: verification of a release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from empathy_eval.base.json_text import json_text
from empathy_eval.base.paths import takes_paths
from empathy_eval.commands.command import RELEASE, SIGNER, TRUSTED, Command, scoring_session

if TYPE_CHECKING:
    from empathy_eval.base.errors import Finding


@takes_paths
def verify(
    release: str | Path, *, fast: bool = False, trusted: Sequence[str] = (), ledgers: Sequence[str | Path] = (),
    signer: str | Path | None = None, progress: Callable[[int], None] | None = None,
) -> list[Finding]:  # fmt: skip
    """Verifies a release (a folder, or a Hub name such as ``org/name@v1.0.0``); returns all findings, faults first.

    A release is what it claims if no finding has the severity ``fault``. A metric that is not run is ``unchecked``, as is a signature
    without ``signer``. ``ledgers`` of the build check every text against its answers, ledgers of :func:`empathy_eval.annotate` every
    annotation.

    Raises
    ------
    InputError
        If it is no release or cannot be fetched, or a ledger or the key cannot be read.
    JobError
        If a ledger is damaged.
    """
    from empathy_eval.releases.assemble.signing import read_public_key
    from empathy_eval.releases.hub.fetch import release_folder
    from empathy_eval.releases.verify.verify import verify

    key = read_public_key(signer) if signer is not None else None
    with scoring_session(cache=False, progress=progress) as scoring:
        return verify(
            release_folder(release), fast=fast, trusted=trusted, ledgers=[Path(ledger) for ledger in ledgers], signer=key, scoring=scoring
        )


def _shown(problems: list[Finding], release: str, strict: bool = False, json: bool = False) -> int:
    severities = {problem.severity for problem in problems}
    faulty, left = "fault" in severities, "unchecked" in severities
    if json:
        rows = [{name: value for name, value in asdict(problem).items() if name != "traceback"} for problem in problems]
        # A file name may hold lone surrogates, which only an escape makes valid JSON.
        print(json_text(rows).encode(errors="backslashreplace").decode())
    else:
        claim = f"{release}: is what it claims" + (", except for what was not recomputed" if left else "")
        print("\n".join([*map(str, problems), *([] if faulty else [claim])]))
    return 2 if faulty else 1 if left and strict else 0


COMMAND = Command(
    verify,
    "check that a release is what it claims",
    "Recomputes a release: signature, files, rows, splits, duplicates, provenance, the checks of every text, toxicity, the report's "
    "numbers, and page, card, figures and explorer. Reports all faults at once, each with its place; exit status 2 if there is one. Runs "
    "only built-in and installed metrics; other metrics of the manifest are listed, not recomputed.",
    {
        **RELEASE,
        "--fast": "leave out slow checks: toxicity, numbers of the report, figures, the explorer",
        "--strict": "exit with status 1 if something was not checked: a metric, toxicity, a signature without --signer, pages by "
        "another version of this program; other versions of packages or definitions do not count",
        "ledgers=--ledger FILE": "a ledger of the build or of annotate: compare every text, or every row of annotations, with the "
        "answers; repeatable; annotations need all ledgers of annotate",
        **SIGNER,
        **TRUSTED,
        "--json": "print faults and notes as JSON; `severity` says which is which",
    },
    shown=_shown,
    staged=True,
)
