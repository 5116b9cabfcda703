"""``compare``: systems beside each other, by what judges, people, metrics and checks say of their replies."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import input_error, plain
from empathy_eval.base.paths import takes_paths
from empathy_eval.base.table_text import Column, TableText, figure, table, table_text
from empathy_eval.commands.command import (
    A_RELEASE,
    CACHE,
    ONE_OF,
    PAPER,
    Command,
    Option,
    cache_of,
    page_path,
    printed,
    scoring_session,
    write_page,
)  # fmt: skip

if TYPE_CHECKING:
    from empathy_eval.raters.systems.results import FigureRow, MetricWorth, SystemComparison

# What is measured of English replies where nothing is named; of other languages nothing is.
METRICS = ("empathyscore", "vader", "rouge-l")
EXAMPLES = """\
examples:
  empathy-eval compare build/replies
  empathy-eval compare build/replies --annotations build/judged --annotations build/preferred --release build/demo/release
  empathy-eval compare build/replies --ratings build/reviews.ratings.csv --page build/systems.html
  empathy-eval compare runs/one runs/two runs/three --csv

Each folder is one of `respond`; several are compared over the contexts that they share. --release measures what each metric is worth on the
release: docs/systems.md.
"""


@takes_paths
def compare(
    replies: Sequence[str | Path], *, annotations: Sequence[str | Path] = (), ratings: Sequence[str | Path] = (),
    metrics: Sequence[Any] | None = None, release: str | Path | None = None, page: str | Path | None = None,
    cache: str | Path | bool = True,
) -> SystemComparison:  # fmt: skip
    """Compares the systems of folders of ``respond`` by what judges, people, metrics and checks say of their replies.

    ``annotations`` are folders that ``annotate`` made of the replies, ``ratings`` tables of people's ratings whose items are
    ``pair_id::system``. ``metrics`` are as of ``score`` (None: a few, of English replies). With the ``release`` it is measured what each
    metric is worth there. ``page`` is a file for the page, its figures beside it as JSON.

    Raises:
        InputError: if the folders do not go together, or a file is faulty.
    """
    from empathy_eval.metrics.registry import find
    from empathy_eval.raters.systems.comparison import Sources, compare_systems
    from empathy_eval.raters.systems.replies import read_replied

    paths = [Path(path) for path in ([replies] if isinstance(replies, str | Path) else replies)]
    judges, people = ([Path(path) for path in some] for some in (annotations, ratings))
    place = page_path(page, [*people]) if page else None
    folders = [read_replied(path) for path in dict.fromkeys(paths)]
    language = folders[0].header["language"]
    names = list(metrics) if metrics is not None else list(METRICS) if language == "en" else []
    with scoring_session(cache) as scoring:
        worth = _worths(release, folders[0].configuration["release"], names, scoring) if release and names else {}
        comparison = compare_systems(
            folders, Sources(judges, people, find(names, {}, language=language) if names else None, worth, scoring)
        )
    if place:
        from empathy_eval.reports.systems_page import page as systems_page

        named = [*map(str, paths), *(f"--annotations {shlex.quote(judge.name)}" for judge in judges)]
        write_page(systems_page(comparison, f"empathy-eval compare {' '.join(named)}"), comparison.to_json(), place)
    return comparison


def _worths(release: str | Path, of: Mapping[str, str], names: Sequence[Any], scoring: Any) -> Mapping[str, MetricWorth]:
    """By metric its accuracy at equal closeness on the release, beside the shortcut line.

    Raises:
        InputError: if it is not the release that was replied to.
    """
    from empathy_eval.design.dataset import read_manifest
    from empathy_eval.evaluation.measure import score
    from empathy_eval.raters.systems.results import MetricWorth
    from empathy_eval.releases.hub.fetch import release_folder
    from empathy_eval.reports.claims import PLACES_OF, UNTESTED, headline_differences, shortcut_line

    folder = release_folder(release)
    if (seal := read_manifest(folder)["seal"]) != of["seal"]:
        what = f"has the seal {seal}, but the replies are to {of['name']} {of['version']} (seal {of['seal']})"
        raise input_error(folder, what, "name the release that was replied to, unchanged")
    measured = score(folder, names, scoring=scoring)
    line, (contrast, rows) = shortcut_line(measured), headline_differences(measured)
    if line is None:
        return {name: MetricWorth(row.accuracy, None, UNTESTED, "no shortcut was measured") for name, row in rows.items()}
    places, why = {name: line.places.get(name, UNTESTED) for name in rows}, f"{line.shortcut}; contrast: {contrast}"
    return {
        name: MetricWorth(row.accuracy, line.accuracy.number, places[name], f"{PLACES_OF[places[name]]} ({why})")
        for name, row in rows.items()
    }


def compared_table(comparison: SystemComparison) -> TableText:
    """The conclusions; then tables of the systems by figure, the differences of the main figure, and scores of comparisons."""
    from empathy_eval.raters.systems.figures import SAFETY

    lines = [*comparison.notes, "", *comparison.conclusions, *comparison.limits]
    for row in comparison.figures:
        columns = [Column(row.name, "system"), Column("replies", "contexts", "d"), *figure("mean", "mean", none="–")]
        columns += figure("at equal length", "at_equal_length", none="–")
        lines += [] if row.kind == SAFETY else ["", *_worth_line(row), *table(columns, row.cells)]
    safety = [row for row in comparison.figures if row.kind == SAFETY]
    means = [Column(row.name, f"{place}.mean.value", ".3f", "–") for place, row in enumerate(safety, 1)]
    lines += ["", *table([Column("safety: means", "0"), *means], zip(comparison.systems, *(row.cells for row in safety), strict=True))]
    if main := comparison.main:
        gaps = [gap for gap in comparison.gaps if gap.figure == main.name and gap.difference]
        columns = [Column(f"differences in {main.name}", lambda gap: f"{gap.system} - {gap.other}"), Column("contexts", "contexts", "d")]
        lines += ["", *table([*columns, *figure("difference", "difference", none="–", tested=True)], gaps)]
    columns = [Column("Bradley-Terry", "judge"), Column("system", "system"), Column("comparisons", "comparisons", "d")]
    lines += ["", *table([*columns, *figure("score", "score", none="–"), Column("", "why")], comparison.strengths)]
    return table_text(lines, [f"{row.name}: {row.signature}" for row in comparison.figures])


def _worth_line(row: FigureRow) -> Iterator[str]:
    if worth := row.worth:
        known = f"on this release its accuracy is {worth.accuracy}, the shortcut line {worth.line:.3f}: " if worth.line is not None else ""
        yield f"{row.name}: {known}{worth.why}"


def _shown(
    comparison: SystemComparison,
    json: bool = False,
    csv: bool = False,
    latex: bool = False,
    markdown: bool = False,
    page: Path | None = None,
) -> int:
    printed(comparison, json, latex, markdown, csv)
    if page and not (json or csv or latex or markdown):
        print(f"page: {plain(str(page))}, and its figures: {plain(str(page.with_suffix('.json')))}")
    return 1 if comparison.faults else 0


COMMAND = Command(
    compare,
    "compare systems by their replies to the same contexts",
    "Puts systems side by side: judges' ratings and comparisons, people's ratings, metrics with what each is worth on the release, length, "
    "safety and diversity; means with intervals by dialogue, differences paired by context and corrected, and what can be concluded.",
    {
        "replies=REPLIES": Option("folders of `respond`", type=Path),
        "--annotations DIR": "a folder of annotations of the replies; repeatable",
        "--ratings FILE": "a table of people's ratings of the replies, as `review import` writes it; repeatable",
        "metrics=--metric NAME": f"a metric by name or module:name; repeatable (default: {', '.join(METRICS)})",
        "--release RELEASE": Option(f"the release that was replied to, {A_RELEASE}: measures what each metric is worth there", type=str),
        "--page OUT.html": "write a page of the results, and its figures beside it as OUT.json",
        **CACHE,
        "--json": Option("print everything as JSON", group=ONE_OF),
        "--csv": Option("print all figures as CSV, one per line", group=ONE_OF),
        **PAPER,
    },
    EXAMPLES,
    factories={"cache": cache_of},
    shown=_shown,
)
