"""The page of reliability: one self-contained file without a script, made from the templates in ``release/agreement/``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from empathy_eval.base.files import data_folder
from empathy_eval.base.templates import environment
from empathy_eval.evaluation.wording import counted, listed, percent
from empathy_eval.raters.agreement.panel import CROWD
from empathy_eval.raters.agreement.reliability import InFramework, Reliability
from empathy_eval.raters.agreement.reliability_rows import Placed, ReliabilityRow
from empathy_eval.reports.page import number, place, signed, without_controls
from empathy_eval.statistics.estimate import Measure

# So many judges are drawn one by one, with their intervals; of more each is a dot on one line.
JUDGES_DRAWN = 4
# About so many steps an axis has.
STEPS = 6
# The plane on which labels are placed, in dots; where it is drawn larger they are further apart.
PLANE = 280
# Where a number may stand beside its point, the best place first; how far a point reaches, and how large a letter is.
BESIDE = (
    (8, 4),
    (-8, 4),
    (0, -7),
    (0, 16),
    (6, -5),
    (-6, -5),
    (6, 13),
    (-6, 13),
    (0, -18),
    (0, 27),
    (17, -9),
    (-17, -9),
    (17, 16),
    (-17, 16),
)
POINT, LETTER = 4.5, (7.0, 9.0)
# Left, top, right and bottom of what something covers.
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Series:
    """Marks of one kind ("experts", "judge", "judges" for all of them on one line, "crowd"); ``name`` is that of a judge."""

    kind: str
    look: str
    name: str | None = None


@dataclass(frozen=True)
class Figure:
    """A figure of a row, and whose it is."""

    kind: str
    name: str | None
    of: Measure


@dataclass(frozen=True)
class Dots:
    """One row of a chart: its marks, each with the place of its series, and by reason whose figures are not defined."""

    name: str
    marks: tuple[tuple[int, Figure], ...]
    undefined: tuple[tuple[str, tuple[Figure, ...]], ...]


@dataclass(frozen=True)
class Chart:
    """Rows of dots by framework, on one axis. ``middle`` is where nothing differs, ``line`` what is to be reached.

    ``absent`` are series that are defined nowhere, with their reasons.
    """

    series: tuple[Series, ...]
    absent: tuple[tuple[Series, tuple[str, ...]], ...]
    groups: tuple[tuple[str, tuple[Dots, ...]], ...]
    ticks: tuple[float, ...]
    middle: float | None = None
    line: float | None = None

    @property
    def span(self) -> tuple[float, float]:
        """The ends of the axis."""
        return self.ticks[0], self.ticks[-1]


@dataclass(frozen=True)
class Point:
    """A criterion on a plane, and where beside it its number is written."""

    number: int
    criterion: str
    framework: int
    x: float
    y: float
    label: tuple[int, int]


@dataclass(frozen=True)
class Plane:
    """Criteria by how far experts agree (x), and a judge or the crowd with their median (y); ``left_out`` lack one of the two."""

    series: Series
    points: tuple[Point, ...]
    left_out: tuple[str, ...]


def judges_drawn(judges: Sequence[str]) -> tuple[Series, ...]:
    """A series a judge, or all on one line if they are many."""
    each = tuple(Series("judge", f"judge-{place}", name) for place, name in enumerate(judges))
    return each if len(judges) <= JUDGES_DRAWN else (Series("judges", "judge-0"),)


def dots(
    frameworks: Iterable[InFramework],
    series: Sequence[Series],
    figures: Callable[[ReliabilityRow], Iterable[Figure]],
    middle: float | None = None,
    line: float | None = None,
) -> Chart | None:
    """The chart of figures of each row; None where none is defined."""
    frameworks = list(frameworks)
    given = [(_of(series, one), one.of) for part in frameworks for row in part.rows for one in figures(row)]
    there = {key: [one for of, one in given if of is key] for key in series}
    drawn = [key for key, some in there.items() if any(one.value is not None for one in some)]
    if not drawn:
        return None
    absent = tuple((key, tuple(dict.fromkeys(str(one.why) for one in some))) for key, some in there.items() if key not in drawn)
    groups = tuple((one.framework.title, tuple(_row(row.criterion, drawn, figures(row)) for row in one.rows)) for one in frameworks)
    ends = [end for _, one in given for end in (one.value, one.low, one.high) if end is not None]
    return Chart(tuple(drawn), absent, groups, ticks([*ends, *(one for one in (middle, line) if one is not None)]), middle, line)


def _of(series: Sequence[Series], figure: Figure) -> Series | None:
    """The series that a figure belongs to: its own, or that of all judges."""
    lanes = {(one.kind, one.name): one for one in series}
    return lanes.get((figure.kind, figure.name), lanes.get(("judges", None)) if figure.kind == "judge" else None)


def _row(name: str, series: Sequence[Series], figures: Iterable[Figure]) -> Dots:
    marks, undefined = list[tuple[int, Figure]](), dict[str, list[Figure]]()
    for one in figures:
        of = _of(series, one)
        if of is not None and one.of.value is not None:
            marks.append((series.index(of), one))
        elif of is not None:
            undefined.setdefault(str(one.of.why), []).append(one)
    return Dots(name, tuple(marks), tuple((why, tuple(some)) for why, some in undefined.items()))


def ticks(values: Sequence[float]) -> tuple[float, ...]:
    """Round numbers, evenly apart, that hold all values."""
    low, high = min(values), max(values)
    least = (high - low) / STEPS or 0.1
    scale = 10.0 ** math.floor(math.log10(least))
    step = next(factor * scale for factor in (1, 2, 2.5, 5, 10) if factor * scale >= least * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(step * place, 9) + 0.0 for place in range(first, max(last, first + 1) + 1))


def planes(
    frameworks: Sequence[InFramework], series: Sequence[Series], value: Callable[[ReliabilityRow, Series], float | None]
) -> tuple[tuple[Plane, ...], tuple[float, ...]]:
    """A plane a series, all with the same axes; criteria are numbered through in their order."""
    rows = [(place, row) for place, one in enumerate(frameworks) for row in one.rows]
    found = [(one, [(row.experts.value, value(row, one)) for _, row in rows]) for one in series]
    ends = [end for _, places in found for x, y in places if x is not None and y is not None for end in (x, y)]
    if not ends:
        return (), ()
    axis = ticks([*ends, 1.0])
    return tuple(_plane(one, rows, places, axis) for one, places in found), axis


def _plane(
    series: Series, rows: Sequence[tuple[int, ReliabilityRow]], places: Sequence[tuple[float | None, float | None]], axis: Sequence[float]
) -> Plane:
    there = [
        (number, row.criterion, framework, x, y)
        for number, ((framework, row), (x, y)) in enumerate(zip(rows, places, strict=True), start=1)
        if x is not None and y is not None
    ]
    size = axis[-1] - axis[0]
    labels = _labels([(number, (x - axis[0]) / size * PLANE, (1 - (y - axis[0]) / size) * PLANE) for number, *_, x, y in there])
    missing = tuple(row.criterion for (_, row), both in zip(rows, places, strict=True) if None in both)
    return Plane(series, tuple(Point(*one, label) for one, label in zip(there, labels, strict=True)), missing)


def _labels(points: Sequence[tuple[int, float, float]]) -> Iterator[tuple[int, int]]:
    """Where beside each point its number stands: where it covers least of points and of the numbers before it, the best of equals."""
    marks = [(x - POINT, y - POINT, x + POINT, y + POINT) for _, x, y in points]
    taken: list[Box] = []
    for digits, x, y in points:
        boxes = [_box(len(str(digits)), x + right, y + down, right) for right, down in BESIDE]
        covered = [sum(_shared(box, other) for other in (*marks, *taken)) + _outside(box) for box in boxes]
        best = covered.index(min(covered))
        taken.append(boxes[best])
        yield BESIDE[best]


def _box(letters: int, x: float, y: float, right: int) -> Box:
    """What a number covers that is written to the right of a place, to its left, or in its middle."""
    width = LETTER[0] * letters
    left = x if right > 0 else x - width if right < 0 else x - width / 2
    return left, y - LETTER[1], left + width, y


def _shared(one: Box, other: Box) -> float:
    """The area that two boxes share, in whole dots: less does not disturb."""
    wide, high = min(one[2], other[2]) - max(one[0], other[0]), min(one[3], other[3]) - max(one[1], other[1])
    return float(round(wide * high)) if wide > 0 and high > 0 else 0.0


def _outside(one: Box) -> float:
    """How much a box costs for lying outside of the plane."""
    return 0.0 if min(one) >= -POINT and max(one) <= PLANE + POINT else PLANE


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
