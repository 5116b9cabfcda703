"""What ``release`` and ``report`` print of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from empathy_eval.base.table_text import lined
from empathy_eval.design.contrasts import RAW, STANCE

if TYPE_CHECKING:
    from empathy_eval.evaluation.report import Report
    from empathy_eval.evaluation.resampling import Estimate


def inversion_table(report: Report) -> str:
    """The claims of a report and the figures of each metric behind them, as lines of text for a terminal."""
    from empathy_eval.evaluation.claims import claims, line_of, ranked

    measured, about = report.measured, report.about
    (contrast, found), line = ranked(measured), line_of(measured)
    alone = {row.metric: row.differences[STANCE] for row in measured.controls}
    of = "at equal closeness" if contrast == STANCE else "as released"
    rows = [("metric", f"accuracy {of}", "line", "difference at equal closeness", "difference as released")]
    for row in measured.inversion:
        accuracy = found[row.metric].accuracy if row.metric in found else None
        beside = line.beside.get(row.metric, "") if line else ""
        released = f"{_interval(row.differences[RAW])}{', forced' * row.differences[RAW].forced}"
        rows.append((row.metric, _share(accuracy), beside, _interval(alone.get(row.metric)), released))
    lines = lined(rows, len(rows[0]))
    lines.append(f"over {about['pairs']} pairs of {about['dialogues']} dialogues, {about['controls']} of them with controls")
    if line:
        lines.append(
            f"shortcut line {of}: {_share(line.accuracy)}, by {line.shortcut}; above and below mean the whole interval of a metric"
        )
    told = [f"{one.name}: {one.said}".replace("\N{NO-BREAK SPACE}", " ") for one in claims(measured)]
    return "\n".join([*lines, "", *told])


def _share(one: Estimate | None) -> str:
    return "" if one is None else f"{one.value:.3f}" + ("" if one.low is None else f" [{one.low:.3f}, {one.high:.3f}]")


def _interval(one: Estimate | None) -> str:
    return "" if one is None else f"{one.value:+.4f}" + ("" if one.low is None else f" [{one.low:+.4f}, {one.high:+.4f}]")
