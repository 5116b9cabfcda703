"""The page of a comparison of systems: one self-contained file without a script, made from the templates in ``release/compare/``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from empathy_eval.base.text import counted, listed, percent
from empathy_eval.raters.systems.figures import JUDGE, LENGTH, METRIC, PEOPLE, SAFETY, WINS
from empathy_eval.raters.systems.results import FigureRow, Part, SystemComparison
from empathy_eval.reports.page import number, render_page, signed, without_controls
from empathy_eval.statistics.estimate import Estimate, format_p

# In the order in which the page shows them, with their headings.
KINDS = {
    PEOPLE: "What people say", WINS: "Which replies a judge prefers", JUDGE: "What judges rate", METRIC: "What metrics give",
    LENGTH: "Length", SAFETY: "Safety",
}  # fmt: skip
# A table of more rows is left to the JSON beside the page.
MOST_ROWS = 200


def page(comparison: SystemComparison, command: str | None = None) -> str:
    """The page as HTML; equal figures give equal pages. ``command`` is the command that made it, if it is known.

    All names and texts are escaped.
    """
    main, parts = comparison.main, dict[str, dict[str, dict[str, Part]]]()
    for part in comparison.parts:
        if main and part.figure == main.name:
            parts.setdefault(part.by, {}).setdefault(part.group, {})[part.system] = part
    compared = {row.name for row in comparison.figures if row.kind != SAFETY}
    return render_page(
        "compare", FILTERS, of=comparison, main=main, command=command, most_rows=MOST_ROWS, parts=parts,
        groups={heading: rows for kind, heading in KINDS.items() if (rows := [row for row in comparison.figures if row.kind == kind])},
        gaps=[gap for gap in comparison.gaps if gap.difference and gap.figure in compared],
    )  # fmt: skip


def _is_below(row: FigureRow) -> bool:
    """Whether a figure is below the shortcut line of the release."""
    return row.worth is not None and row.worth.place == "below"


def _places(row: FigureRow) -> int:
    """The decimal places of a figure: fewer for large numbers."""
    most = max((abs(cell.mean.number) for cell in row.cells if cell.mean), default=0.0)
    return 1 if most >= 10 else 2 if most >= 2 else 3


def _p_value(difference: Estimate) -> str:
    p = difference.p_corrected
    return "–" if p is None else "".join(format_p(p)).removeprefix("=")


def _width(value: float, row: FigureRow) -> str:
    """The length of the bar of a mean, in percent of the largest mean; 0 for a figure with negative means."""
    values = [cell.mean.number for cell in row.cells if cell.mean]
    return "0" if min(values) < 0 or max(values) <= 0 else f"{100 * value / max(values):.1f}"


FILTERS: Mapping[str, Any] = {
    "number": number, "signed": signed, "percent": percent, "counted": counted, "listed": listed, "plain": without_controls,
    "greyed": _is_below, "places": _places, "p_value": _p_value, "width": _width,
}  # fmt: skip
