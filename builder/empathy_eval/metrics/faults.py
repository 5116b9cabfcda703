"""A metric that fails gives a fault that names it and the text; the rest of a report, and of its own scores, stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import place_of, shortened, traceback_text
from empathy_eval.metrics.protocol import Array, MeanMetric, Metric, Segments, with_count

Result = TypeVar("Result")


@dataclass(frozen=True)
class MetricFault:
    """What a metric did wrong, and to which text first, as ``017-00042-t05, empathetic``.

    ``texts`` of the ``of`` that it was asked for have no score; 0 where it is no fault of single texts, and the metric has none at all.
    ``traceback`` is that of what it raised first, if it did.
    """

    metric: str
    where: str
    what: str
    texts: int = 0
    of: int = 0
    traceback: str = field(default="", repr=False, compare=False)

    def __str__(self) -> str:
        failed = f"{self.texts} of {self.of} texts, first " if self.texts else ""
        return f"metric {self.metric}: {failed}{self.where}: {self.what}\n  Fix: mend the metric, or leave it out"


# The statistics of some texts, rows of nan (of no width where none has a score) for those that failed, and the fault of the first of these.
Part = tuple[Array, MetricFault | None]
NOTHING: Array = np.zeros((1, 0))


class Failure(NamedTuple):
    """Why a text has no score, and the traceback of what was raised; that of the first text of some is kept alone."""

    what: str
    traceback: str = ""


class _NoNumbers(Exception):
    """A metric returned what is no number; the words say what is expected."""


class Unsound(ValueError):
    """What no score of a metric can be believed after; ``rows`` are the texts that it was seen with."""

    def __init__(self, what: str, rows: Sequence[int] = ()) -> None:
        super().__init__(what)
        self.rows = rows


def attempted(name: str, work: Callable[[], Result]) -> Result | MetricFault:
    """What work over all texts gives, or the fault of the measure that raised."""
    try:
        return work()
    except Exception as error:  # whatever a stranger's measure raises is a fault of that measure alone
        return MetricFault(name, "all texts", _raised(error), traceback=traceback_text(error))


def one_by_one(metric: Metric) -> bool:
    """Whether a metric scores each text by itself, with ``score``."""
    return isinstance(metric, MeanMetric) and all(_inherited(metric, name) for name in ("score_all", "statistics"))


def _inherited(metric: MeanMetric, name: str) -> bool:
    """Whether a method is that of the base."""
    return getattr(getattr(metric, name, None), "__func__", None) is getattr(MeanMetric, name)


def guarded(metric: Metric, segments: Segments, name_of: Callable[[int], str]) -> Part:
    """The statistics of segments, each asked for until it has a score, and what failed; ``name_of`` gives the name of a row."""
    rows, failed = range(len(segments.texts)), dict[int, Failure]()
    try:
        found = _each(metric, segments, failed) if one_by_one(metric) else _halved(metric, segments, rows, failed)
        found = _finite(metric, found, failed)
    except Unsound as error:
        first, last = ((error.rows or rows)[place] for place in (0, -1))
        where = name_of(first) if first == last else f"{name_of(first)} to {name_of(last)}"
        return NOTHING[:0], MetricFault(
            metric.name, where, str(error), traceback=traceback_text(error.__cause__) if error.__cause__ else ""
        )
    if not failed:
        return found, None
    first = min(failed)
    return found, MetricFault(metric.name, name_of(first), failed[first].what, len(failed), len(rows), failed[first].traceback)


def _each(metric: Any, segments: Segments, failed: dict[int, Failure]) -> Array:
    """The statistics of texts that are scored one by one."""
    scores = []
    for row, read in enumerate(zip(segments.texts, *segments.columns(metric.reads), strict=True)):
        try:
            scores.append(_number(metric.score(*read)))
        except Exception as error:  # whatever a stranger's metric raises is a fault of that text alone
            failed[row] = _failure(error, failed)
            scores.append(np.nan)
    return with_count(scores)


def _halved(metric: Metric, segments: Segments, rows: Sequence[int], failed: dict[int, Failure]) -> Array:
    """The statistics of texts that are scored together; where that raises, of their halves, down to single texts."""
    try:
        found, odd = _given(metric, segments.take(rows))
        if not odd:
            return found
        failure, raised = Failure(odd), False
    except Exception as error:  # whatever a stranger's metric raises is a fault of that metric alone
        failure, raised = _failure(error, failed), True
    if len(rows) > 1:
        before, middle = len(failed), len(rows) // 2
        halves = stacked([_halved(metric, segments, half, failed) for half in (rows[:middle], rows[middle:])])
        if raised or len(failed) > before:
            return halves
    # What has the wrong shape in company alone cannot be believed alone either.
    if not raised:
        raise Unsound(failure.what, rows)
    failed[rows[0]] = failure
    return NOTHING


def _given(metric: Metric, segments: Segments) -> tuple[Array, str]:
    """The statistics that a metric gives texts, and what is wrong with their number, in the words of what it defines; else empty."""
    count = len(segments.texts)
    texts = "1 text" if count == 1 else f"{count} texts"
    if isinstance(metric, MeanMetric) and _inherited(metric, "statistics"):
        returned = metric.score_all(segments)
        scores = _numbers("score_all", returned)
        if scores.shape == (count,):
            return with_count(scores), ""
        numbers = "1 number" if scores.size == 1 else f"{scores.size} numbers"
        gave = {0: _shown(returned), 1: numbers}.get(scores.ndim, f"an array of shape {scores.shape}")
        return NOTHING, f"score_all returned {gave} for {texts}; return one number for each text, in their order"
    found = _numbers("statistics", metric.statistics(segments))
    if found.ndim == 2 and len(found) == count and (found.shape[1] or not count):
        return found, ""
    return NOTHING, f"statistics returned an array of shape {found.shape} for {texts}; return one row of numbers for each text"


def _number(given: Any) -> float:
    try:
        return float(given)
    except (TypeError, ValueError):
        raise _NoNumbers(f"score returned {_shown(given)}; return a number") from None


def _numbers(method: str, given: Any) -> Array:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise _NoNumbers(f"{method} returned {_shown(given)}; return numbers") from None


def _shown(given: Any) -> str:
    return shortened(repr(given))


def uneven(now: int, before: int) -> str:
    """What is said of statistics that differ in width."""
    return f"statistics returned rows of {now} numbers after rows of {before}; return rows of one width"


def stacked(parts: Sequence[Array]) -> Array:
    """Statistics under each other; those of no width get rows of nan.

    Raises:
        Unsound: if the others differ in width.
    """
    widths = list(dict.fromkeys(one.shape[1] for one in parts if one.shape[1]))
    if len(widths) > 1:
        raise Unsound(uneven(widths[1], widths[0]))
    return np.vstack([one if one.shape[1] in widths else np.full((len(one), sum(widths)), np.nan) for one in parts])


def _finite(metric: Metric, statistics: Array, failed: dict[int, Failure]) -> Array:
    """The statistics with rows of nan for all texts without a score.

    Raises:
        Unsound: if the others do not make scores, or an aggregate that is linear.
    """
    sound: NDArray[np.bool_] = np.isfinite(statistics).all(axis=1) & np.full(len(statistics), statistics.shape[1] > 0)
    scores = np.full(len(sound), np.nan)
    try:
        if sound.any():
            found = np.asarray(metric.scores(statistics[sound]), dtype=np.float64)
            if found.shape != (texts := int(sound.sum()),):
                what = f"scores returned an array of shape {found.shape} for {texts} rows of statistics; return one score for each row"
                raise Unsound(what)
            scores[sound] = found
        scored = np.isfinite(scores)
        twice = np.asarray(metric.aggregate(np.vstack([statistics[scored].sum(axis=0)] * 2)) if scored.any() else (0, 0), dtype=np.float64)
    except Unsound:
        raise
    except Exception as error:  # whatever a stranger's metric raises is a fault of that metric alone
        raise Unsound(_raised(error)) from error
    if twice.shape != (2,) or (np.isfinite(twice).all() and twice[0] != twice[1]):
        raise Unsound(f"aggregates two equal rows of sums to {twice.tolist()}, which are not two equal numbers")
    if not np.isfinite(twice).all():
        raise Unsound(f"gave {twice[~np.isfinite(twice)][0]}, which is no number")
    for row in np.flatnonzero(~scored).tolist():
        value = next((one for one in statistics[row] if not np.isfinite(one)), scores[row])
        failed.setdefault(row, Failure(f"gave {value}, which is no number"))
    return statistics if scored.all() else np.where(scored[:, None], statistics, np.nan)


def _failure(error: Exception, failed: Mapping[int, Failure]) -> Failure:
    if isinstance(error, _NoNumbers):
        return Failure(str(error))
    return Failure(_raised(error), "" if any(one.traceback for one in failed.values()) else traceback_text(error))


def _raised(error: Exception) -> str:
    return f'raised {type(error).__name__}: "{error}"{place_of(error)}'
