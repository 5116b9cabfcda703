"""The page of reliability: one self-contained file without a script, made from the templates in ``release/agreement/``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup, escape

from empathy_eval.base.files import data_folder
from empathy_eval.base.templates import environment
from empathy_eval.evaluation.page import number, place, signed, without_controls
from empathy_eval.evaluation.wording import counted, listed, percent
from empathy_eval.raters.agreement.bootstrap import Measure
from empathy_eval.raters.agreement.page_drawings import Chart, Figure, Plane, Series, dots, judges_drawn, planes
from empathy_eval.raters.agreement.panel import CROWD
from empathy_eval.raters.agreement.reliability import Reliability
from empathy_eval.raters.agreement.reliability_rows import Placed, ReliabilityRow

EXPERTS, OF_CROWD = Series("experts", "experts"), Series(CROWD, CROWD)


def page(of: Reliability, command: str | None = None) -> str:
    """The page as HTML; equal figures give equal pages. ``command`` is how it was made, where that is known.

    Names are strangers' texts and stay texts: all is escaped but our own style.
    """
    folder = data_folder("release")
    templates = environment(folder)
    templates.filters |= FILTERS
    judges = list(dict.fromkeys(name for one in of.frameworks for row in one.rows for name in row.judges))
    crowd = any(row.crowd for one in of.frameworks for row in one.rows)
    drawn, axis = _planes(of, judges, crowd=crowd)
    return templates.get_template("agreement/page.html.j2").render(
        of=of, overall=of.overall, judges=judges, best=_best(of, judges), crowd=crowd, command=command, sure=_sure(of, judges),
        charts=_charts(of, judges, crowd=crowd), planes=drawn, axis=axis, signatures=_signatures(of),
        style="\n".join((folder / one / "page.css").read_text(encoding="utf-8") for one in ("report", "agreement")),
    ) + "\n"  # fmt: skip


def _best(of: Reliability, judges: Sequence[str]) -> list[str]:
    """The judges by how many criteria they have at the benchmark, most first; equal ones stay in their order."""
    return sorted(judges, key=lambda name: -len(of.overall.judges[name].at_benchmark.so))


def _charts(of: Reliability, judges: Sequence[str], *, crowd: bool) -> dict[str, Chart | None]:
    drawn, last = judges_drawn(judges), (OF_CROWD,) if crowd else ()

    def kappas(row: ReliabilityRow) -> Iterator[Figure]:
        yield Figure("experts", None, row.experts)
        yield from (Figure("judge", name, one.kappa) for name, one in row.judges.items())
        if row.crowd:
            yield Figure(CROWD, None, row.crowd.kappa)

    def alphas(row: ReliabilityRow) -> Iterator[Figure]:
        yield from (Figure(name, None, one) for name, one in row.alpha.items())

    def inflations(row: ReliabilityRow) -> Iterator[Figure]:
        yield from (Figure("judge", name, row.inflation[name]) for name in row.judges)
        if row.crowd:
            yield Figure(CROWD, None, row.inflation[CROWD])

    return {
        "kappas": dots(of.frameworks, (EXPERTS, *drawn, *last), kappas, line=of.overall.benchmark),
        "alphas": dots(of.frameworks, (EXPERTS, *((Series("judges", "judge-0"),) if judges else ())), alphas),
        "inflations": dots(of.frameworks, (*drawn, *last), inflations, middle=0),
    }


def _planes(of: Reliability, judges: Sequence[str], *, crowd: bool) -> tuple[tuple[Plane, ...], tuple[float, ...]]:
    each = tuple(Series("judge", f"judge-{place % len(judges_drawn(judges))}", name) for place, name in enumerate(judges))

    def value(row: ReliabilityRow, series: Series) -> float | None:
        found = row.crowd if series.name is None else row.judges.get(series.name)
        return found.kappa.value if found else None

    return planes(of.frameworks, (*each, *((OF_CROWD,) if crowd else ())), value)


def _sure(of: Reliability, judges: Sequence[str]) -> dict[str | None, dict[str, int]]:
    """On how many criteria the whole interval of a judge (None: the crowd) minus the criterion's own benchmark is above or below 0."""

    def sides(found: Sequence[Placed | None]) -> dict[str, int]:
        apart = [one.minus_benchmark for one in found if one and one.minus_benchmark.value is not None]
        above = sum(one.low is not None and one.low > 0 for one in apart)
        below = sum(one.high is not None and one.high < 0 for one in apart)
        return {"above": above, "below": below, "neither": len(apart) - above - below}

    rows = [row for one in of.frameworks for row in one.rows]
    return {name: sides([row.judges.get(name) for row in rows]) for name in judges} | {None: sides([row.crowd for row in rows])}


def _signatures(of: Reliability) -> dict[str, dict[str, list[str]]]:
    """The settings of every kind of figure, each with the criteria that have them."""
    found: dict[str, dict[str, list[str]]] = {}

    def note(what: str, criterion: str, *some: Measure | None) -> None:
        for one in filter(None, some):
            names = found.setdefault(what, {}).setdefault(one.signature, [])
            if criterion not in names:
                names.append(criterion)

    for row in (row for one in of.frameworks for row in one.rows):
        placed = [*row.judges.values(), *([row.crowd] if row.crowd else [])]
        note("pairs of experts", row.criterion, *(one.kappa for one in row.pairs))
        note("median of the pairs", row.criterion, row.experts)
        note("with the median expert", row.criterion, *(one.kappa for one in placed))
        note("minus own", row.criterion, *(one.minus_benchmark for one in placed))
        note("crowd with judges", row.criterion, *row.crowd_with_judge.values())
        note("alpha", row.criterion, *row.alpha.values(), row.crowd_alpha)
        note("F1", row.criterion, *(some for one in row.f1.values() for some in (one.macro, one.mean)))
        note("guessing", row.criterion, *(some for one in row.f1.values() for some in (one.guess_macro, one.guess_binary)))
        note("difference in points", row.criterion, *row.inflation.values())
        note("variance inflation", row.criterion, row.vif)
    for again in of.stability:
        note("judges asked again", again.criterion, again.same, again.alpha, again.kappa, again.range)
    for one in of.contradictions:
        note("contradictions", one.high.criterion, one.share)
    return found


def figure(value: float, places: int) -> str:
    """A number that has no sign where it rounds to zero."""
    return number(abs(value) if abs(value) < 0.5 / 10**places else value, places)


def breakable(name: str) -> Markup:
    """A name that stays a text, and whose lines may end after an underscore."""
    return Markup("_<wbr>").join(escape(part) for part in without_controls(name).split("_"))


def mean(counts: Sequence[float], scale: Sequence[float]) -> float | None:
    """The mean of values that are given so often; None where none is."""
    return sum(count * value for count, value in zip(counts, scale, strict=True)) / sum(counts) if sum(counts) else None


FILTERS: dict[str, Any] = {
    "number": figure, "signed": signed, "percent": percent, "counted": counted, "place": place, "listed": listed,
    "plain": without_controls, "breakable": breakable, "mean": mean,
}  # fmt: skip
