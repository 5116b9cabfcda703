"""Study page: one self-contained file without a script, from the templates in ``release/study/``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from empathy_eval.base.text import counted, listed, percent
from empathy_eval.raters.study.results import Gain, StudyPart, StudyReport
from empathy_eval.reports.page import MINUS, axis_position, number, render_page, round_step, signed, without_controls
from empathy_eval.statistics.estimate import format_p

MOST_TICKS = 5
# The axis reaches this many times the largest gain, or the median gain; longer intervals are cut off with an arrow.
BEYOND_LARGEST, BEYOND_MIDDLE = 3, 3.5
LEAST = 10.0


@dataclass(frozen=True)
class StudyAxis:
    """Axis of a drawing in percent: its ends and its ticks."""

    span: tuple[float, float]
    ticks: tuple[float, ...]


def axis_of(gains: Iterable[Gain], beyond: float = BEYOND_LARGEST, most_ticks: int = MOST_TICKS) -> StudyAxis:
    """Returns the axis for gains and their intervals; it contains 0."""
    known = [gain for gain in gains if gain.value is not None]
    sizes = [abs(gain.value) for gain in known if gain.value is not None] or [0.0]
    far = max(beyond * max(sizes), BEYOND_MIDDLE * median(sizes), LEAST)
    ends = [0.0, -LEAST, LEAST]
    ends += [end for gain in known for end in (gain.value, gain.low, gain.high) if end is not None]
    low, high = max(min(ends), -far, -100.0), min(max(ends), far)
    step = round_step((high - low) / most_ticks)
    ticks = [step * place for place in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return StudyAxis((low, high), tuple(round(tick, 9) + 0.0 for tick in ticks))


def clamped(value: float, axis: StudyAxis) -> float:
    """Clamps a value to the axis."""
    return min(max(value, axis.span[0]), axis.span[1])


# Longer tables are only in the JSON beside the page.
MOST_ROWS = 2000
# Reach and number of ticks of an axis in a table cell.
IN_A_CELL = 1.25, 3


def page(studied: StudyReport, command: str | None = None) -> str:
    """Returns the page as HTML; equal figures give equal pages. ``command`` is the command line that made it, if known.

    Names are untrusted: all but our own style is escaped.
    """
    label, alpha = studied.labels[-1], studied.power.alpha
    # By column: tests of its parts whose two p-values conflict, and tests that have both.
    torn_parts = {
        name: {
            "torn": sum(len(conflicting_tests(part, alpha)) for part in parts),
            "of": sum(test.p is not None and test.permutation is not None for part in parts for _, _, test, _ in part.tests()),
        }
        for name, parts in studied.parts.items()
    }
    return render_page(
        "study", FILTERS, of=studied, power=studied.power, baseline=studied.groups[0].name, label=label, command=command,
        best=largest_gain(studied.whole, label, alpha),
        unit="block" if "|unit:block|" in f"|{studied.whole.gains[0].signature}|" else "rater",
        torn=conflicting_tests(studied.whole, alpha), torn_parts=torn_parts, most_rows=MOST_ROWS, axis=axis_of(studied.whole.gains),
        axes={name: axis_of(_gains(parts, label), *IN_A_CELL) for name, parts in studied.parts.items()},
    )  # fmt: skip


def largest_gain(part: StudyPart, label: str, alpha: float) -> dict[str, Any]:
    """Returns the largest gain in a category, and counts of gains above, below and at 0 and without an interval.

    The largest ratio is taken from gains with a corrected p below ``alpha`` ("shown"), else from those whose interval excludes 0, else
    from all with an interval.
    """
    gains = _gains((part,), label)
    sides = {name: [gain for gain in gains if side(gain) == name] for name in ("above", "below", "at", "none")}
    sure = sides["above"] + sides["below"]
    shown = [gain for gain in sure if (p := corrected(gain)) is not None and p < alpha]
    largest = max(shown or sure or sides["at"], key=lambda gain: abs(_distance_from_none(gain.value or 0.0)), default=None)
    counts = {name: len(some) for name, some in sides.items()}
    return {"gain": largest, "sure": bool(sure), "shown": bool(shown), "of": len(gains), **counts}


def corrected(gain: Gain) -> float | None:
    """Returns the corrected p of a gain: from permutations of raters or, without them, of the chi-squared test."""
    return gain.corrected.holm if gain.test.permutation is None else gain.corrected.holm_by_rater


def side(gain: Gain) -> str:
    """Returns whether the interval of a gain is "above" or "below" 0 or contains it ("at"); "none" without an interval."""
    if gain.low is None or gain.high is None:
        return "none"
    return "above" if gain.low > 0 else "below" if gain.high < 0 else "at"


def conflicting_tests(part: StudyPart, alpha: float) -> list[dict[str, Any]]:
    """Returns tests whose chi-squared and permutation p-values lie on different sides of ``alpha``; ``of`` is their kind."""
    return [
        {"of": kind, "names": tuple(names.values()), "test": test}
        for kind, names, test, _ in part.tests()
        if test.p is not None and test.permutation is not None and (test.p < alpha) != (test.permutation < alpha)
    ]


def _gains(parts: Sequence[StudyPart], label: str) -> list[Gain]:
    """Returns the gains in one category."""
    return [gain for part in parts for gain in part.gains if gain.category == label]


def _distance_from_none(gain: float) -> float:
    """Returns the ratio of a gain or its inverse, whichever is larger: doubled equals halved."""
    ratio = 1 + gain / 100
    return ratio if ratio >= 1 else 1 / ratio if ratio else float("inf")


def signed_percent(value: float) -> str:
    """Formats a gain in percent with its sign, to a tenth, or whole if it is large."""
    return f"{value:+,.0f}".replace("-", MINUS) if abs(value) >= 999.95 else signed(value, 1)


def p_value(value: float | None, draws: int = 0, of: float | None = None) -> str:
    """Formats a p-value for a cell."""
    return "–" if value is None else "".join(format_p(value, draws, of)).removeprefix("=")


def p_in_sentence(value: float, draws: int = 0, of: float | None = None) -> str:
    """Formats a p-value for a sentence, after "p"."""
    return "\u00a0".join(format_p(value, draws, of))


def point_text(value: float) -> str:
    """Formats a quantile of drawn values: whole, or to a tenth if it is small."""
    return number(value, 0 if value >= 10 else 1)


FILTERS: dict[str, Any] = {
    "number": number, "signed": signed, "percent": percent, "counted": counted, "place": axis_position, "listed": listed,
    "p_value": p_value, "p_said": p_in_sentence, "about": point_text, "corrected": corrected,
    "plain": without_controls, "side": side, "gain": signed_percent, "kept": clamped,
}  # fmt: skip
