"""The page of a report: one self-contained file without a script, made from the templates in ``release/report/``."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

from empathy_eval.base.errors import plain
from empathy_eval.base.files import data_folder
from empathy_eval.base.json_text import json_text
from empathy_eval.base.templates import environment
from empathy_eval.design.contrasts import CLOSENESS, RAW, STANCE
from empathy_eval.design.terms import terms
from empathy_eval.evaluation.charts import Chart, by_scenario
from empathy_eval.evaluation.claims import PLACES_OF, claims, line_of, ranked
from empathy_eval.evaluation.judged import judged
from empathy_eval.evaluation.results import Measured, MetricRow
from empathy_eval.evaluation.wording import counted, listed, percent, sides, whom

MINUS = "\N{MINUS SIGN}"


def page(measured: Measured, about: dict[str, Any], told: dict[str, Any], charts: Sequence[Chart]) -> str:
    """The page as HTML; equal reports give equal pages. Texts of the data stay texts: all is escaped but our own style."""
    folder = data_folder("release") / "report"
    templates = environment(folder)
    templates.filters |= FILTERS
    return templates.get_template("page.html.j2").render(
        measured=measured, about=about, told=told, charts={one.name: one for one in charts}, claims=claims(measured),
        line=line_of(measured), ranked=ranked(measured), closeness=closeness(measured), raw=RAW, stance=STANCE,
        by_scenario=by_scenario(measured), judged=judged(told.get("judges"), measured), terms=terms(),
        style=(folder / "page.css").read_text(encoding="utf-8"),
    ) + "\n"  # fmt: skip


def closeness(measured: Measured) -> dict[str, Any]:
    """How closeness and stance compare, for metrics that read the reference.

    ``times`` is how many times as far closeness moves their scores as stance does, at least and at most (None if stance may not move one
    of them at all); ``uneven`` says whether edit size or length differ between stances, None where no interval can tell.
    """
    forced = {row.metric for row in measured.inversion if row.differences[RAW].forced and row.higher_is_better is not None}
    alone = [row for row in measured.controls if row.metric in forced]
    times = [abs(row.differences[CLOSENESS].value / value) for row in alone if (value := row.differences[STANCE].value)]
    # What may be nothing is no measure: then there is no greatest one.
    unsure = any(one.low is not None and not one.decided for one in (row.differences[STANCE] for row in alone))
    even = [one for row in measured.balance for name, one in row.differences.items() if name.startswith(STANCE)]
    return {
        "of": len(alone),
        "times": (min(times), None if unsure else max(times)) if times and len(times) == len(alone) else None,
        "uneven": any(one.decided for one in even) if all(one.low is not None for one in even) else None,
    }


def number(value: float, places: int = 4) -> str:
    """A number with a true minus sign."""
    return f"{value:.{places}f}".replace("-", MINUS)


def signed(value: float, places: int = 4) -> str:
    """A number that always has its sign; nothing has a sign if it rounds to zero."""
    text = f"{value:+.{places}f}"
    return f"{0:.{places}f}" if not float(text) else text.replace("-", MINUS)


def times(value: float) -> str:
    """How many times: whole from ten on, with one decimal below."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


def place(value: float, span: tuple[float, float]) -> str:
    """Where a value lies on a drawing, a little room at both ends left free."""
    return f"{6.5 + 87 * (value - span[0]) / (span[1] - span[0]):.2f}%"


def ends(rows: Sequence[tuple[str, MetricRow]]) -> tuple[tuple[str, float], tuple[str, float]]:
    """The groups with the smallest and the largest accuracy, the first of equals."""
    values = [(name, found.value) for name, row in rows if (found := row.only.accuracy)]
    return min(values, key=lambda one: one[1]), max(values, key=lambda one: one[1])


def peak(phase: dict[str, Any], course: dict[str, Any]) -> tuple[int, float]:
    """The part of a dialogue where a phase has its largest share of the turns, and that share; the first of equals."""
    totals = [sum(column) for column in zip(*(one["counts"] for one in course["phases"]), strict=True)]
    shares = [count / total if total else 0.0 for count, total in zip(phase["counts"], totals, strict=True)]
    return shares.index(max(shares)), max(shares)


def without_controls(text: str) -> str:
    """A text with control signs written out: nobody would see them. What joins signs, or turns the direction, stays."""
    return "".join(plain(sign) if unicodedata.category(sign) == "Cc" else sign for sign in text)


def pretty(value: Any) -> str:
    """JSON to be read."""
    return json_text(value)


FILTERS: dict[str, Any] = {
    "number": number, "signed": signed, "percent": percent, "times": times, "counted": counted, "place": place, "pretty": pretty,
    "listed": listed, "sides": sides, "whom": whom, "ends": ends, "peak": peak, "shift": Chart.shift, "beside": PLACES_OF.get,
}  # fmt: skip
