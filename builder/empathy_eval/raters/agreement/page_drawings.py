"""What the page of reliability draws: rows of dots on one axis, and criteria on the plane of two agreements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from empathy_eval.raters.agreement.bootstrap import Measure
from empathy_eval.raters.agreement.reliability import InFramework
from empathy_eval.raters.agreement.reliability_rows import ReliabilityRow

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
    for number, x, y in points:
        boxes = [_box(len(str(number)), x + right, y + down, right) for right, down in BESIDE]
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
