"""Reliability page: one self-contained file without a script, from the templates in ``release/agreement/``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from empathy_eval.base.text import counted, listed, percent
from empathy_eval.raters.agreement.panel import CROWD
from empathy_eval.raters.agreement.reliability import AgainstBenchmark, FrameworkRows, Reliability, ReliabilityRow
from empathy_eval.reports.page import axis_position, number, render_page, round_step, signed, without_controls
from empathy_eval.statistics.estimate import Estimate

# Up to this number, judges are drawn separately with intervals; more share one line of dots.
JUDGES_DRAWN = 4
# Approximate number of steps of an axis.
STEPS = 6
# Side of the plane on which labels are placed, in pixels; a larger drawing only spreads them.
PLANE = 280
# Candidate offsets of a number from its point, the best first; radius of a point; width and height of a letter.
BESIDE = (
    (8, 4), (-8, 4), (0, -7), (0, 16), (6, -5), (-6, -5), (6, 13), (-6, 13), (0, -18), (0, 27), (17, -9), (-17, -9), (17, 16), (-17, 16),
)  # fmt: skip
POINT, LETTER = 4.5, (7.0, 9.0)
# Left, top, right and bottom.
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class DotSeries:
    """Marks of one kind ("experts", "judge", "judges" for all of them on one line, "crowd"); ``name`` is that of a judge."""

    kind: str
    look: str
    name: str | None = None


@dataclass(frozen=True)
class DotFigure:
    """An estimate of a row, and the rater that it belongs to."""

    kind: str
    name: str | None
    of: Estimate


@dataclass(frozen=True)
class DotRow:
    """One row of a chart: marks with the index of their series, and undefined figures by reason."""

    name: str
    marks: tuple[tuple[int, DotFigure], ...]
    undefined: tuple[tuple[str, tuple[DotFigure, ...]], ...]


@dataclass(frozen=True)
class DotChart:
    """Rows of dots by framework, on one axis. ``middle`` marks no difference, ``line`` the benchmark, ``absent`` undefined series."""

    series: tuple[DotSeries, ...]
    absent: tuple[tuple[DotSeries, tuple[str, ...]], ...]
    groups: tuple[tuple[str, tuple[DotRow, ...]], ...]
    ticks: tuple[float, ...]
    middle: float | None = None
    line: float | None = None

    @property
    def span(self) -> tuple[float, float]:
        """The ends of the axis."""
        return self.ticks[0], self.ticks[-1]


@dataclass(frozen=True)
class PlanePoint:
    """A criterion on a plane, and the offset of its number."""

    number: int
    framework: int
    x: float
    y: float
    label: tuple[int, int]


@dataclass(frozen=True)
class AgreementPlane:
    """Criteria by agreement of experts (x), and of a judge or the crowd with their median (y); ``left_out`` lack one of the two."""

    series: DotSeries
    points: tuple[PlanePoint, ...]
    left_out: tuple[str, ...]


EXPERTS, JUDGES, CROWD_SERIES = DotSeries("experts", "experts"), DotSeries("judges", "judge-0"), DotSeries(CROWD, CROWD)


def judge_series(judges: Sequence[str]) -> tuple[DotSeries, ...]:
    """Returns one series per judge, or a single series if there are many."""
    each = tuple(DotSeries("judge", f"judge-{place}", name) for place, name in enumerate(judges))
    return each if len(judges) <= JUDGES_DRAWN else (JUDGES,)


def dot_chart(
    frameworks: Sequence[FrameworkRows], series: Sequence[DotSeries], figures: Callable[[ReliabilityRow], Iterable[DotFigure]],
    middle: float | None = None, line: float | None = None,
) -> DotChart | None:  # fmt: skip
    """Returns the chart of the figures of each row; None if none is defined."""
    lanes = {(lane.kind, lane.name): lane for lane in series}
    by_series: dict[DotSeries, list[Estimate]] = {lane: [] for lane in series}
    for row in _rows(frameworks):
        for figure in figures(row):
            if of := _of(lanes, figure):
                by_series[of].append(figure.of)
    drawn = [key for key, some in by_series.items() if any(estimate.value is not None for estimate in some)]
    if not drawn:
        return None
    reasons = {key: dict.fromkeys(str(estimate.reason) for estimate in some) for key, some in by_series.items() if key not in drawn}
    groups = []
    for part in frameworks:
        rows = (_dot_row(row.criterion, drawn, [(_of(lanes, dot), dot) for dot in figures(row)]) for row in part.rows)
        groups.append((part.framework.title, tuple(rows)))
    ends = [end for some in by_series.values() for estimate in some for end in (estimate.value, estimate.low, estimate.high)]
    axis = ticks([end for end in (*ends, middle, line) if end is not None])
    return DotChart(tuple(drawn), tuple((key, tuple(some)) for key, some in reasons.items()), tuple(groups), axis, middle, line)


def _rows(frameworks: Iterable[FrameworkRows]) -> Iterator[ReliabilityRow]:
    return (row for framework in frameworks for row in framework.rows)


def _of(lanes: Mapping[tuple[str, str | None], DotSeries], figure: DotFigure) -> DotSeries | None:
    """Returns the series of a figure: its own, or that of all judges."""
    return lanes.get((figure.kind, figure.name), lanes.get(("judges", None)) if figure.kind == "judge" else None)


def _dot_row(name: str, drawn: Sequence[DotSeries], figures: Sequence[tuple[DotSeries | None, DotFigure]]) -> DotRow:
    undefined = dict[str, list[DotFigure]]()
    for of, mark in figures:
        if of in drawn and mark.of.value is None:
            undefined.setdefault(str(mark.of.reason), []).append(mark)
    marks = tuple((drawn.index(of), mark) for of, mark in figures if of in drawn and mark.of.value is not None)
    return DotRow(name, marks, tuple((why, tuple(some)) for why, some in undefined.items()))


def ticks(values: Sequence[float]) -> tuple[float, ...]:
    """Returns evenly spaced round numbers that span all values."""
    low, high = min(values), max(values)
    step = round_step((high - low) / STEPS or 0.1)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(step * place, 9) + 0.0 for place in range(first, max(last, first + 1) + 1))


def agreement_planes(
    frameworks: Sequence[FrameworkRows], series: Sequence[DotSeries], value: Callable[[ReliabilityRow, DotSeries], float | None]
) -> tuple[tuple[AgreementPlane, ...], tuple[float, ...]]:
    """Returns one plane per series, with common axes; criteria are numbered in their order."""
    rows = [(place, row) for place, framework in enumerate(frameworks) for row in framework.rows]
    coordinates = [(lane, [(row.experts.value, value(row, lane)) for _, row in rows]) for lane in series]
    ends = [end for _, places in coordinates for x, y in places if x is not None and y is not None for end in (x, y)]
    if not ends:
        return (), ()
    axis = ticks([*ends, 1.0])
    size = axis[-1] - axis[0]
    drawn = list[AgreementPlane]()
    for lane, places in coordinates:
        numbered = enumerate(zip(rows, places, strict=True), start=1)
        points = [(number, index, x, y) for number, ((index, _), (x, y)) in numbered if x is not None and y is not None]
        labels = _labels([(number, (x - axis[0]) / size * PLANE, (1 - (y - axis[0]) / size) * PLANE) for number, _, x, y in points])
        missing = tuple(row.criterion for (_, row), both in zip(rows, places, strict=True) if None in both)
        drawn.append(AgreementPlane(lane, tuple(PlanePoint(*point, label) for point, label in zip(points, labels, strict=True)), missing))
    return tuple(drawn), axis


def _labels(points: Sequence[tuple[int, float, float]]) -> Iterator[tuple[int, int]]:
    """Yields the offset of each number that overlaps points and earlier numbers least; the best of equals."""
    covered: list[Box] = [(x - POINT, y - POINT, x + POINT, y + POINT) for _, x, y in points]
    for written, x, y in points:
        boxes = {place: _box(len(str(written)), x, y, place) for place in BESIDE}
        best = min(BESIDE, key=lambda place, boxes=boxes: _covered(boxes[place], covered))  # type: ignore[misc]
        covered.append(boxes[best])
        yield best


def _box(letters: int, x: float, y: float, place: tuple[int, int]) -> Box:
    """Returns the box of a number to the right of a point, to its left, or centred."""
    (right, down), width = place, LETTER[0] * letters
    left = x + right - (0 if right > 0 else width if right < 0 else width / 2)
    return left, y + down - LETTER[1], left + width, y + down


def _covered(box: Box, boxes: Iterable[Box]) -> float:
    """Returns the overlap of a box with others in whole pixels, plus a penalty outside the plane."""
    sides = ((min(box[2], other[2]) - max(box[0], other[0]), min(box[3], other[3]) - max(box[1], other[1])) for other in boxes)
    shared = sum(round(wide * high) for wide, high in sides if wide > 0 and high > 0)
    return shared + (0 if min(box) >= -POINT and max(box) <= PLANE + POINT else PLANE)


def page(of: Reliability, command: str | None = None) -> str:
    """Returns the page as HTML; equal figures give equal pages. ``command`` is the command line that made it, if known.

    Names are untrusted: all but our own style is escaped.
    """
    judges = list(dict.fromkeys(name for row in _rows(of.frameworks) for name in row.judges))
    crowd = any(row.crowd for row in _rows(of.frameworks))
    drawn, axis = _planes(of, judges, crowd=crowd)
    return render_page(
        "agreement", FILTERS, of=of, overall=of.overall, judges=judges, crowd=crowd, command=command, sure=_decided_counts(of, judges),
        # By number of criteria at the benchmark; the sort is stable.
        best=sorted(judges, key=lambda name: -len(of.overall.judges[name].at_benchmark.so)),
        charts=_charts(of, judges, crowd=crowd), planes=drawn, axis=axis, signatures=_signatures(of),
    )  # fmt: skip


def _charts(of: Reliability, judges: Sequence[str], *, crowd: bool) -> dict[str, DotChart | None]:
    drawn, last = judge_series(judges), (CROWD_SERIES,) if crowd else ()

    def others(row: ReliabilityRow, figures: Mapping[str, Estimate]) -> Iterator[DotFigure]:
        yield from (DotFigure("judge", name, figures[name]) for name in row.judges)
        if row.crowd:
            yield DotFigure(CROWD, None, figures[CROWD])

    def kappas(row: ReliabilityRow) -> Iterator[DotFigure]:
        placed = row.judges | ({CROWD: row.crowd} if row.crowd else {})
        yield DotFigure("experts", None, row.experts)
        yield from others(row, {name: against.kappa for name, against in placed.items()})

    def alphas(row: ReliabilityRow) -> Iterator[DotFigure]:
        return (DotFigure(name, None, estimate) for name, estimate in row.alpha.items())

    return {
        "kappas": dot_chart(of.frameworks, (EXPERTS, *drawn, *last), kappas, line=of.overall.benchmark),
        "alphas": dot_chart(of.frameworks, (EXPERTS, *((JUDGES,) if judges else ())), alphas),
        "inflations": dot_chart(of.frameworks, (*drawn, *last), lambda row: others(row, row.inflation), middle=0),
    }


def _planes(of: Reliability, judges: Sequence[str], *, crowd: bool) -> tuple[tuple[AgreementPlane, ...], tuple[float, ...]]:
    each = tuple(DotSeries("judge", f"judge-{place % len(judge_series(judges))}", name) for place, name in enumerate(judges))

    def value(row: ReliabilityRow, series: DotSeries) -> float | None:
        against = row.crowd if series.name is None else row.judges.get(series.name)
        return against.kappa.value if against else None

    return agreement_planes(of.frameworks, (*each, *((CROWD_SERIES,) if crowd else ())), value)


def _decided_counts(of: Reliability, judges: Sequence[str]) -> dict[str | None, dict[str, int]]:
    """Counts criteria by judge (None: the crowd) on which the interval of its kappa minus the benchmark is above or below 0."""

    def sides(criteria: Sequence[AgainstBenchmark | None]) -> dict[str, int]:
        apart = [criterion.minus_benchmark for criterion in criteria if criterion and criterion.minus_benchmark.value is not None]
        above = sum(estimate.low is not None and estimate.low > 0 for estimate in apart)
        below = sum(estimate.high is not None and estimate.high < 0 for estimate in apart)
        return {"above": above, "below": below, "neither": len(apart) - above - below}

    rows = list(_rows(of.frameworks))
    return {name: sides([row.judges.get(name) for row in rows]) for name in judges} | {None: sides([row.crowd for row in rows])}


def _signatures(of: Reliability) -> dict[str, dict[str, list[str]]]:
    """Returns the criteria by kind of figure and signature."""
    names_by_signature: dict[str, dict[str, list[str]]] = {}
    for criterion, figures in _signed(of):
        for what, some in figures.items():
            for estimate in filter(None, some):
                names = names_by_signature.setdefault(what, {}).setdefault(estimate.signature, [])
                if criterion not in names:
                    names.append(criterion)
    return names_by_signature


def _signed(of: Reliability) -> Iterator[tuple[str, Mapping[str, Sequence[Estimate | None]]]]:
    """Yields the figures of each criterion by kind, then those of row judging and of contradictions."""
    for row in _rows(of.frameworks):
        placed = [*row.judges.values(), *([row.crowd] if row.crowd else [])]
        yield (
            row.criterion,
            {
                "pairs of experts": [pair.kappa for pair in row.pairs],
                "median of the pairs": [row.experts],
                "with the median expert": [against.kappa for against in placed],
                "minus own": [against.minus_benchmark for against in placed],
                "crowd with judges": [*row.crowd_with_judge.values()],
                "alpha": [*row.alpha.values(), row.crowd_alpha],
                "F1": [some for score in row.f1.values() for some in (score.macro, score.mean)],
                "guessing": [some for score in row.f1.values() for some in (score.guess_macro, score.guess_binary)],
                "difference in points": [*row.inflation.values()],
                "variance inflation": [row.vif],
            },
        )
    yield from ((row.criterion, {"judges asked again": [row.same, row.alpha, row.kappa, row.range]}) for row in of.stability)
    yield from ((contradiction.high.criterion, {"contradictions": [contradiction.share]}) for contradiction in of.contradictions)


def format_number(value: float, places: int) -> str:
    """Formats a number, without a sign if it rounds to zero."""
    return number(abs(value) if abs(value) < 0.5 / 10**places else value, places)


def breakable(name: str) -> Markup:
    """Escapes a name, and allows line breaks after underscores."""
    return Markup("_<wbr>").join(escape(part) for part in without_controls(name).split("_"))


def mean(counts: Sequence[float], scale: Sequence[float]) -> float | None:
    """Returns the mean of a scale weighted by counts; None if all counts are 0."""
    return sum(count * value for count, value in zip(counts, scale, strict=True)) / sum(counts) if sum(counts) else None


FILTERS: dict[str, Any] = {
    "number": format_number, "signed": signed, "percent": percent, "counted": counted, "place": axis_position, "listed": listed,
    "plain": without_controls, "breakable": breakable, "mean": mean,
}  # fmt: skip
