"""Where the gains of a study lie on a drawing: an axis that shows most of them, and round numbers along it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from empathy_eval.raters.study.results import Gain

STEPS = (1, 2, 2.5, 5, 10)
MOST_TICKS = 5
# An interval may reach so many times as far as the largest gain, and as the middle one; beyond both it is cut off, with an arrow.
BEYOND_LARGEST, BEYOND_MIDDLE = 3, 3.5
LEAST = 10.0


@dataclass(frozen=True)
class Axis:
    """From where to where a drawing goes, in percent, with the numbers that are written along it."""

    span: tuple[float, float]
    ticks: tuple[float, ...]


def axis_of(gains: Iterable[Gain], beyond: float = BEYOND_LARGEST, most_ticks: int = MOST_TICKS) -> Axis:
    """The axis for gains and their intervals, 0 among them; equal gains have equal axes."""
    known = [one for one in gains if one.gain is not None]
    sizes = [abs(one.gain) for one in known if one.gain is not None] or [0.0]
    far = max(beyond * max(sizes), BEYOND_MIDDLE * median(sizes), LEAST)
    ends = [0.0, -LEAST, LEAST]
    ends += [end for one in known for end in (one.gain, one.low, one.high) if end is not None]
    low, high = max(min(ends), -far, -100.0), min(max(ends), far)
    step = _step((high - low) / most_ticks)
    ticks = [step * place for place in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return Axis((low, high), tuple(round(one, 9) + 0.0 for one in ticks))


def _step(least: float) -> float:
    """The smallest round number that is no less."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(one * power for one in STEPS if one * power >= least * (1 - 1e-9))


def kept(value: float, axis: Axis) -> float:
    """A value on the axis, or the end of the axis beyond which it lies."""
    return min(max(value, axis.span[0]), axis.span[1])
