"""What ``release`` and ``report`` print of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from empathy_eval.design.contrasts import APATHETIC, EMPATHETIC, RAW, STANCE

if TYPE_CHECKING:
    from empathy_eval.evaluation.report import Report
    from empathy_eval.evaluation.resampling import Estimate
    from empathy_eval.evaluation.results import MetricRow


def inversion_table(report: Report) -> str:
    """The inversion, and what is left of it at equal closeness, as lines of text for a terminal."""
    stance = {row.metric: row for row in report.measured.controls}
    lines = [f"{'metric':<14}{APATHETIC:>11}{EMPATHETIC:>12}  {'difference':<29}{'prefers':<22}at equal closeness"]
    for row in report.measured.inversion:
        difference = row.differences[RAW]
        scores = f"{row.scores[APATHETIC]:>11.4f}{row.scores[EMPATHETIC]:>12.4f}"
        prefers, alone = difference.prefers + ", forced" * difference.forced, _alone(stance.get(row.metric))
        lines.append(f"{row.metric:<14}{scores}  {_interval(difference):<29}{prefers:<22}{alone}".rstrip())
    about = report.about
    lines.append(f"over {about['pairs']} pairs of {about['dialogues']} dialogues, {about['controls']} of them with controls")
    return "\n".join(lines)


def _alone(row: MetricRow | None) -> str:
    """The effect of stance within closeness, in few words."""
    return f"{_interval(row.differences[STANCE]):<29}{row.differences[STANCE].prefers}" if row else ""


def _interval(one: Estimate) -> str:
    return f"{one.value:+.4f}" + ("" if one.low is None else f" [{one.low:+.4f}, {one.high:+.4f}]")
