"""The page of a comparison of systems: part self-contained file without a script, made from the templates in ``release/compare/``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from empathy_eval.base.text import counted, listed, percent
from empathy_eval.raters.systems.comparing import Compared, FigureRow, Part, SystemDifference
from empathy_eval.raters.systems.figures import JUDGE, LENGTH, METRIC, PEOPLE, SAFETY, WINS
from empathy_eval.reports.page import number, render_page, signed, without_controls
from empathy_eval.statistics.estimate import format_p

# In the order in which the page shows them, with their headings.
KINDS = {
    PEOPLE: "What people say", WINS: "Which replies a judge prefers", JUDGE: "What judges rate", METRIC: "What metrics give",
    LENGTH: "Length", SAFETY: "Safety",
}  # fmt: skip
# A table of more rows is left to the JSON beside the page.
MOST_ROWS = 200


def page(comparison: Compared, command: str | None = None) -> str:
    """The page as HTML; equal figures give equal pages. ``command`` is how it was made, where that is known.

    Names and texts are strangers' and stay texts: all is escaped but our own style.
    """
    groups = {heading: some for kind, heading in KINDS.items() if (some := [part for part in comparison.figures if part.kind == kind])}
    main = comparison.main
    return render_page(
        "compare", FILTERS, of=comparison, groups=groups, main=main, command=command, most_rows=MOST_ROWS,
        gaps=[gap for gap in comparison.gaps if gap.difference and any(gap.figure == part.name for part in groups_shown(comparison))],
        parts=parts_by(comparison.parts, main.name) if main else {},
    )  # fmt: skip


def groups_shown(comparison: Compared) -> list[FigureRow]:
    """The figures whose differences the page shows: what is said of empathy, and length."""
    return [part for part in comparison.figures if part.kind != SAFETY]


def parts_by(parts: Sequence[Part], figure: str) -> dict[str, dict[str, dict[str, Part]]]:
    """The parts of a figure by what they are parts of, group and system."""
    groups = dict[str, dict[str, dict[str, Part]]]()
    for part in parts:
        if part.figure == figure:
            groups.setdefault(part.by, {}).setdefault(part.group, {})[part.system] = part
    return groups


def greyed(row: FigureRow) -> bool:
    """Whether a figure is shown as part that counts for little: below the shortcut line of the release."""
    return row.worth is not None and row.worth.place == "below"


def cell_places(row: FigureRow) -> int:
    """The decimal places of a figure: fewer for large numbers."""
    most = max((abs(cell.mean.number) for cell in row.cells if cell.mean), default=0.0)
    return 1 if most >= 10 else 2 if most >= 2 else 3


def p_value(gap: SystemDifference) -> str:
    """The corrected p-value of a difference in a cell."""
    comparison = gap.difference
    if comparison is None or comparison.p_corrected is None:
        return "–"
    return "".join(format_p(comparison.p_corrected)).removeprefix("=")


def width(value: float, row: FigureRow) -> str:
    """How long the bar of a mean is, in percent of the largest; nothing for a figure below 0."""
    values = [cell.mean.number for cell in row.cells if cell.mean]
    return "0" if min(values) < 0 or max(values) <= 0 else f"{100 * value / max(values):.1f}"


FILTERS: Mapping[str, Any] = {
    "number": number, "signed": signed, "percent": percent, "counted": counted, "listed": listed, "plain": without_controls,
    "greyed": greyed, "places": cell_places, "p_value": p_value, "width": width,
}  # fmt: skip
