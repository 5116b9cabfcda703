"""``release``: a folder for datasets.load_dataset."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.json_text import json_text
from empathy_eval.commands.options import scoring_bar, scoring_with, told_of
from empathy_eval.commands.tables import inversion_table

if TYPE_CHECKING:
    from empathy_eval.releases.write import Released


def release(
    build: str | Path, out: str | Path, version: str, *, date: str | None = None, reviews: str | Path | None = None,
    without: Sequence[str] = (), annotations: Sequence[str | Path] = (), trusted: Sequence[str] = (), partial: bool = False,
    sign: str | Path | None = None, progress: Callable[[int], None] | None = None,
) -> Released:  # fmt: skip
    """Writes a finished build as a folder that is a Hub dataset repository as it stands, whole or not at all.

    ``reviews`` is a record of :func:`empathy_eval.review_import`: what raters removed is left out. ``without`` are metrics of the
    configuration that the report leaves out, or "embedding"; ``annotations`` are folders of :func:`empathy_eval.annotate`, which become
    the configs "annotations", "comparisons" and "strategies", ``trusted`` the judges that they name as ``module:name`` and that may be
    run; ``partial`` releases although items are missing; ``sign`` is a secret key of minisign without a password, by which the manifest
    is signed; ``progress`` is told of scored texts.

    Raises:
        InputError: if the build is not finished or was changed, or something that is given is not valid.
        JobError: if the folder cannot be written.
    """
    from empathy_eval.releases.write import release

    with scoring_with(cache=False, progress=progress) as scoring:
        return release(
            Path(build), Path(out), version, date=date, partial=partial, reviews=Path(reviews) if reviews else None, without=without,
            annotations=[Path(one) for one in annotations], trusted=trusted, scoring=scoring, key=Path(sign) if sign else None,
        )  # fmt: skip


def add(verbs: Any) -> None:
    """Adds the verb to the parser."""
    verb = verbs.add_parser(
        "release",
        help="publish a build as a folder for datasets.load_dataset",
        description="Writes the splits, the report, the card and the manifest of a finished build into a folder that is a Hub dataset "
        "repository as it stands. The folder is written whole or not at all.",
    )
    verb.add_argument("build", type=Path, metavar="DIR", help="the build folder")
    verb.add_argument("--out", type=Path, required=True, metavar="DIR", help="the release folder")
    verb.add_argument("--version", required=True, metavar="X.Y.Z", help="the version of the release")
    verb.add_argument("--date", metavar="YYYY-MM-DD", help="the release date to state; no clock is read")
    verb.add_argument("--reviews", type=Path, metavar="FILE", help="a record of review import: what raters removed is left out and named")
    verb.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="NAME",
        help="leave this metric of the configuration, or embedding, out of the report, as where its packages are not installed; repeatable",
    )
    verb.add_argument(
        "--annotations", action="append", default=[], type=Path, metavar="DIR",
        help="a folder of annotate: what the judge said of these very texts becomes configs of the release; repeatable",
    )  # fmt: skip
    verb.add_argument(
        "--trust-judge", action="append", default=[], metavar="NAME",
        help="run this judge that annotations name as module:name, to know its requests: it is code, so know what it is; repeatable",
    )  # fmt: skip
    verb.add_argument("--partial", action="store_true", help="release although items are missing")
    verb.add_argument(
        "--sign", type=Path, metavar="KEY",
        help="sign the manifest with this secret key of minisign, made without a password (minisign -G -W), outside of DIR and --out",
    )  # fmt: skip
    verb.add_argument("--json", action="store_true", help="print the manifest as JSON")
    verb.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit status."""
    with scoring_bar() as progress:
        released = release(
            options.build, options.out, options.version, date=options.date, reviews=options.reviews, without=options.without,
            annotations=options.annotations, trusted=options.trust_judge, partial=options.partial, sign=options.sign, progress=progress,
        )  # fmt: skip
    faults = released.report.measured.faults
    if options.json:
        print(json_text(released.manifest))
        return told_of(faults)
    print(inversion_table(released.report))
    print(f"\nrelease: {options.out}\nreport:  {options.out / 'report' / 'index.html'}")
    print(f'load it: datasets.load_dataset("{options.out}", "pairs")')
    return told_of(faults)
