"""``release``: release folder for datasets.load_dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.json_text import json_text
from empathy_eval.base.paths import takes_paths
from empathy_eval.base.table_text import TableText, aligned, table_text
from empathy_eval.commands.command import A_RELEASE, Command, Option, report_faults, scoring_session
from empathy_eval.design.contrasts import RAW, STANCE

if TYPE_CHECKING:
    from empathy_eval.releases.assemble.write import Released
    from empathy_eval.reports.report import Report
    from empathy_eval.statistics.estimate import Estimate


def inversion_table(report: Report) -> TableText:
    """Returns the figures of each metric and the claims of a report, as lines of text for a terminal."""
    from empathy_eval.reports.claims import claims, headline_differences, shortcut_line

    measured, about = report.measured, report.about
    (contrast, differences), line = headline_differences(measured), shortcut_line(measured)
    alone = {row.metric: row.differences[STANCE] for row in measured.controls}
    of = "at equal closeness" if contrast == STANCE else "as released"
    rows = [("metric", f"accuracy {of}", "line", "difference at equal closeness", "difference as released")]
    for row in measured.inversion:
        accuracy = differences[row.metric].accuracy if row.metric in differences else None
        place = line.places.get(row.metric, "") if line else ""
        released = f"{_figure(row.differences[RAW], '+.4f')}{', forced' * row.differences[RAW].forced}"
        rows.append((row.metric, _figure(accuracy, ".3f"), place, _figure(alone.get(row.metric), "+.4f"), released))
    lines: list[str] = [*aligned(rows, len(rows[0]))]
    lines.append(f"over {about['pairs']} pairs of {about['dialogues']} dialogues, {about['controls']} of them with controls")
    if line:
        lines.append(
            f"shortcut line {of}: {_figure(line.accuracy, '.3f')}, by {line.shortcut}; above and below mean the whole interval of a metric"
        )
    sentences = [f"{claim.name}: {claim.text}".replace("\N{NO-BREAK SPACE}", " ") for claim in claims(measured)]
    return table_text([*lines, "", *sentences])


def _figure(estimate: Estimate | None, form: str) -> str:
    """Formats an estimate with its interval, if it has one."""
    if estimate is None:
        return ""
    return f"{estimate.value:{form}}" + ("" if estimate.low is None else f" [{estimate.low:{form}}, {estimate.high:{form}}]")


@takes_paths
def release(
    build: str | Path, out: str | Path, version: str, *, date: str | None = None, reviews: str | Path | None = None,
    without: Sequence[str] = (), annotations: Sequence[str | Path] = (), trusted: Sequence[str] = (), partial: bool = False,
    sign: str | Path | None = None, previous: str | Path | None = None, replace: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Released:  # fmt: skip
    """Writes a finished build as a release: a folder that can be uploaded to the Hub as it is. Writes it completely or not at all.

    ``reviews`` is a record of :func:`empathy_eval.review_import`. ``annotations`` are folders of :func:`empathy_eval.annotate`, which
    become the configs "annotations", "comparisons" and "strategies". ``progress`` is called with the number of scored texts.

    Raises
    ------
    InputError
        If the build is not finished or was changed, an argument is not valid, or ``out`` holds a release of another version.
    JobError
        If the folder cannot be written.
    """
    from empathy_eval.releases.assemble.write import release
    from empathy_eval.releases.hub.fetch import release_folder

    before = release_folder(previous) if previous is not None else None
    with scoring_session(cache=False, progress=progress) as scoring:
        return release(
            Path(build), Path(out), version, date=date, partial=partial, reviews=Path(reviews) if reviews else None, without=without,
            annotations=[Path(annotation) for annotation in annotations], trusted=trusted, scoring=scoring,
            key=Path(sign) if sign else None, previous=before, replace=replace,
        )  # fmt: skip


def withdrawn_lines(manifest: dict[str, Any]) -> list[str]:
    """Returns a line that counts withdrawn dialogues and pairs; no line without withdrawals."""
    if not (counts := manifest.get("withdrawn_counts")):
        return []
    some = (f"{counts[name]:,} {name if counts[name] != 1 else name[:-1]}" for name in ("dialogues", "pairs"))
    return [f"\nwithdrawn: {' and '.join(some)} of the build are left out, by {len(manifest['withdrawn']):,} withdrawals"]


def _shown(released: Released, out: Path, json: bool = False) -> int:
    faults = released.report.measured.faults
    if json:
        print(json_text(released.manifest))
        return report_faults(faults)
    print(inversion_table(released.report))
    for line in withdrawn_lines(released.manifest):
        print(line)
    print(f"\nrelease: {out}\nreport:  {out / 'report' / 'index.html'}")
    print(f'load it: datasets.load_dataset("{out}", "pairs")')
    return report_faults(faults)


COMMAND = Command(
    release,
    "write a build as a folder for datasets.load_dataset",
    "Writes the splits, the report, the card and the manifest of a finished build to a folder that can be uploaded to the Hub as it is. "
    "The folder is written completely or not at all, and replaces another version only with --replace.",
    {
        "build=DIR": "the build folder",
        "--out DIR": "the release folder",
        "--version X.Y.Z": "the version of the release",
        "--previous RELEASE": Option(
            f"the previous release, {A_RELEASE}; the manifest and the changelog then list it with its seal, and its predecessors",
            type=str,
        ),
        "--replace": "overwrite a release of another version in --out",
        "--date YYYY-MM-DD": "the release date to state; the clock is never read (default: no date)",
        "--reviews FILE": "a record of review import; removed dialogues are left out and listed",
        "--without NAME": "leave this metric of the configuration, or embedding, out of the report, as if its packages were not "
        "installed; repeatable",
        "--annotations DIR": "an annotation folder: its annotations of exactly these texts become configs of the release; repeatable",
        "trusted=--trust-judge NAME": "run this judge, which the annotations name as module:name, to get its requests. It runs code, so "
        "check it first; repeatable",
        "--partial": "release even if items are missing",
        "--sign KEY": "sign the manifest with this minisign secret key. Make it without a password (minisign -G -W), outside DIR and --out",
        "--json": "print the manifest as JSON",
    },
    shown=_shown,
    staged=True,
)  # fmt: skip
