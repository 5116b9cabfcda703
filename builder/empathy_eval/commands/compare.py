"""``compare``: systems beside each other, by what judges, people, metrics and checks say of their replies."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import input_error, plain
from empathy_eval.base.json_text import json_text
from empathy_eval.base.paths import takes_paths
from empathy_eval.base.table_text import TableText, aligned, table_text
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
)

if TYPE_CHECKING:
    from empathy_eval.metrics.registry import MetricSelection
    from empathy_eval.raters.systems.comparing import Compared, Worth
    from empathy_eval.statistics.estimate import Estimate

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
) -> Compared:  # fmt: skip
    """Compares the systems of folders of ``respond`` by what judges, people, metrics and checks say of their replies.

    ``annotations`` are folders that ``annotate`` made of the replies, ``ratings`` tables of people's ratings whose items are
    ``pair_id::system``. ``metrics`` are as of ``score`` (None: a few, of English replies). With the ``release`` it is measured what each
    metric is worth there. ``page`` is a file for the page, its figures beside it as JSON.

    Raises:
        InputError: if the folders do not go together, or a file is faulty.
    """
    from empathy_eval.raters.systems.comparison import Sources, compared
    from empathy_eval.raters.systems.replies import read_replied

    paths = [Path(path) for path in ([replies] if isinstance(replies, str | Path) else replies)]
    judges, people = ([Path(path) for path in some] for some in (annotations, ratings))
    place = page_path(page, [*people]) if page else None
    folders = [read_replied(path) for path in dict.fromkeys(paths)]
    english = folders[0].header["language"] == "en"
    names = list(metrics) if metrics is not None else list(METRICS) if english else []
    with scoring_session(cache) as scoring:
        worth = _worths(release, folders[0].configuration["release"], names, scoring) if release and names else {}
        comparison = compared(folders, Sources(judges, people, partial(_find_metrics, names) if names else None, worth, scoring))
    if place:
        from empathy_eval.reports.systems_page import page as systems_page

        named = [*map(str, paths), *(f"--annotations {shlex.quote(judge.name)}" for judge in judges)]
        write_page(systems_page(comparison, f"empathy-eval compare {' '.join(named)}"), comparison.to_json(), place)
    return comparison


def _find_metrics(names: Sequence[Any], language: str) -> MetricSelection:
    from empathy_eval.metrics.registry import find

    return find(names, {}, language=language)


def _worths(release: str | Path, of: Mapping[str, str], names: Sequence[Any], scoring: Any) -> Mapping[str, Worth]:
    """By metric what it is worth on the release: its accuracy at equal closeness beside the shortcut line.

    Raises:
        InputError: if it is not the release that was replied to.
    """
    from empathy_eval.design.dataset import read_manifest
    from empathy_eval.evaluation.measure import score
    from empathy_eval.raters.systems.comparing import Worth
    from empathy_eval.releases.hub.fetch import release_folder
    from empathy_eval.reports.claims import PLACES_OF, UNTESTED, headline_differences, shortcut_line

    folder = release_folder(release)
    if (seal := read_manifest(folder)["seal"]) != of["seal"]:
        what = f"has the seal {seal}, but the replies are to {of['name']} {of['version']} (seal {of['seal']})"
        raise input_error(folder, what, "name the release that was replied to, unchanged")
    measured = score(folder, names, scoring=scoring)
    line, (contrast, rows) = shortcut_line(measured), headline_differences(measured)
    worths = dict[str, Worth]()
    for name, row in rows.items():
        where = line.places.get(name, UNTESTED) if line else UNTESTED
        why = f"{PLACES_OF[where]} ({line.shortcut}; contrast: {contrast})" if line else "no shortcut was measured"
        worths[name] = Worth(row.accuracy, line.accuracy.number if line else None, where, why)
    return worths


def number(estimate: Estimate | None, places: int = 3) -> str:
    """A mean with its interval in a cell."""
    if estimate is None:
        return "–"
    interval = "" if estimate.low is None or estimate.high is None else f" [{estimate.low:.{places}f}, {estimate.high:.{places}f}]"
    return f"{estimate.value:.{places}f}{interval}"


def worth_line(worth: Worth) -> str:
    """What a metric is worth on the release, in a line."""
    if worth.accuracy is None or worth.line is None:
        return worth.why
    return f"on this release its accuracy is {number(worth.accuracy)}, the shortcut line {worth.line:.3f}: {worth.why}"


def compared_table(comparison: Compared) -> TableText:
    """What follows; then systems in rows, figures in blocks, differences and scores of comparisons."""
    from empathy_eval.raters.systems.figures import SAFETY

    lines = [*comparison.notes, "", *comparison.conclusions, *comparison.limits]
    for row in (figure for figure in comparison.figures if figure.kind != SAFETY):
        lines += ["", f"{row.name}: {worth_line(row.worth)}"] if row.worth else [""]
        head = (row.name, "replies", "mean", "at equal length")
        cells = [(f"  {cell.system}", f"{cell.contexts}", number(cell.mean), number(cell.at_equal_length)) for cell in row.cells]
        lines += aligned([head, *cells], right=(1,))
    safe = [figure for figure in comparison.figures if figure.kind == SAFETY]
    rates = [tuple(number(row.cells[place].mean).partition(" ")[0] for row in safe) for place in range(len(comparison.systems))]
    rows = [(f"  {name}", *some) for name, some in zip(comparison.systems, rates, strict=True)]
    lines += ["", *aligned([("safety: means", *(row.name for row in safe)), *rows], right=range(1, len(safe) + 1)), "", *_gaps(comparison)]
    if comparison.strengths:
        rows = [
            (f"  {strength.system}", str(strength.comparisons), number(strength.score) if strength.score else strength.why)
            for strength in comparison.strengths
        ]
        lines += ["", *aligned([(f"Bradley-Terry, {comparison.strengths[0].judge}", "comparisons", "score"), *rows], right=(1,))]
    return table_text(lines, [f"{row.name}: {row.signature}" for row in comparison.figures])


def _gaps(comparison: Compared) -> Iterator[str]:
    """The differences of the main figure; --json and --csv have all."""
    main = comparison.main
    cells = [
        (f"  {gap.system} - {gap.other}", str(gap.contexts), number(gap.difference), _p(gap.difference.p_corrected))
        for gap in comparison.gaps
        if main and gap.figure == main.name and gap.difference
    ]
    yield from (
        aligned([(f"differences in {main.name}", "contexts", "difference", "p (Holm)"), *cells], right=(1, 3)) if main and cells else ()
    )


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _run(options: Namespace) -> int:
    comparison = compare(**COMMAND.arguments(options))
    if options.json:
        print(json_text(comparison.to_json()))
    else:
        printed(comparison, latex=options.latex, markdown=options.markdown, csv=options.csv)
        if options.page and not (options.csv or options.latex or options.markdown):
            print(f"page: {plain(str(options.page))}, and its figures: {plain(str(options.page.with_suffix('.json')))}")
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
    run=_run,
)
