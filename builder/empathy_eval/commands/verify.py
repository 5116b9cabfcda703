"""``verify``: check that a release is what it claims."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.json_text import json_text
from empathy_eval.base.paths import takes_paths
from empathy_eval.commands.options import A_RELEASE, add_signer, add_trust, scoring_with
from empathy_eval.commands.progress import staged

if TYPE_CHECKING:
    from empathy_eval.base.errors import Problem


@takes_paths
def verify(
    release: str | Path, *, fast: bool = False, trusted: Sequence[str] = (), ledgers: Sequence[str | Path] = (),
    signer: str | Path | None = None, progress: Callable[[int], None] | None = None,
) -> list[Problem]:  # fmt: skip
    """All faults of a release (a folder, or a Hub name such as ``org/name@v1.0.0``); an empty list if it is what it claims.

    ``fast`` leaves the recomputation of the report's numbers out. A metric that is not run is no fault: at the end of the list a
    :class:`~empathy_eval.metrics.registry.NotRecomputed` names it. ``trusted`` are metrics of the manifest that may be run too.
    ``signer`` is a public key of minisign, as a file or as its line of base64: the release must be signed by it; without it a signature
    is told as not checked. With the ``ledgers`` of its build every text is held against the answers, with those that
    :func:`empathy_eval.annotate` filled every row of what judges said.

    Raises:
        InputError: if it is no release, or cannot be had, or a ledger or the key cannot be read.
        JobError: if a ledger is damaged.
    """
    from empathy_eval.releases.assemble.signing import read_public_key
    from empathy_eval.releases.hub.fetch import release_folder
    from empathy_eval.releases.verify.verify import verify

    key = read_public_key(signer) if signer is not None else None
    with scoring_with(cache=False, progress=progress) as scoring:
        return verify(
            release_folder(release), fast=fast, trusted=trusted, ledgers=[Path(one) for one in ledgers], signer=key, scoring=scoring
        )


def add(verbs: Any) -> None:
    """Adds the verb to the parser."""
    verb = verbs.add_parser(
        "verify",
        help="check that a release is what it claims",
        description="Recomputes a release: signature, files, rows, splits, duplicates, provenance, the checks of every text, toxicity, the "
        "report's numbers, and page, card, figures and explorer. Reports all faults at once, each with its place; exit status 2 if there "
        "is one. Runs only built-in and installed metrics; other metrics of the manifest are listed, not recomputed.",
    )
    verb.add_argument("release", metavar="RELEASE", help=f"the release, {A_RELEASE}")
    verb.add_argument("--fast", action="store_true", help="leave out slow checks: toxicity, numbers of the report, figures, the explorer")
    verb.add_argument(
        "--strict", action="store_true",
        help="exit with status 1 if something was not checked: a metric, toxicity, a signature without --signer, pages by another version "
        "of this program; other versions of packages or definitions do not count",
    )  # fmt: skip
    verb.add_argument(
        "--ledger", action="append", default=[], type=Path, metavar="FILE",
        help="a ledger of the build or of annotate: compare every text, or every row of annotations, with the answers; repeatable; "
        "annotations need all ledgers of annotate",
    )  # fmt: skip
    add_signer(verb)
    add_trust(verb)
    verb.add_argument("--json", action="store_true", help="print faults and notes as JSON; `kind` says which is which")
    verb.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit status."""
    from empathy_eval.metrics.registry import NotRecomputed, Told

    with staged("verify"):
        problems = verify(options.release, fast=options.fast, trusted=options.trust_metrics, ledgers=options.ledger, signer=options.signer)
    kinds = ["told" if isinstance(one, Told) else "not_recomputed" if isinstance(one, NotRecomputed) else "fault" for one in problems]
    faulty, left = "fault" in kinds, "not_recomputed" in kinds
    if options.json:
        told = [
            {"kind": kind, **{name: value for name, value in asdict(one).items() if name != "traceback"}}
            for kind, one in zip(kinds, problems, strict=True)
        ]
        # The name of a file may hold what is no sign; as an escape it is JSON again.
        print(json_text(told).encode(errors="backslashreplace").decode())
    else:
        claim = f"{options.release}: is what it claims" + (", except for what was not recomputed" if left else "")
        print("\n".join([*map(str, problems), *([] if faulty else [claim])]))
    return 2 if faulty else 1 if left and options.strict else 0
