"""Faults of metrics: a failing metric is named with the text; other scores and metrics are not affected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import raised_at, shortened, traceback_text
from empathy_eval.metrics.protocol import Array, MeanMetric, Metric, Segments, with_count

Result = TypeVar("Result")
NOTHING: Array = np.zeros((1, 0))


@dataclass(frozen=True)
class MetricFault:
    """What a metric did wrong, and for which text first, such as ``017-00042-t05, empathetic``.

    ``texts`` of ``of`` texts have no score; 0 if the whole metric failed. ``traceback`` is that of the first exception, if any.
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


class TextFailure(NamedTuple):
    """Why a text has no score, and the traceback; only that of the first text is kept."""

    what: str
    traceback: str = ""


class _NoNumbers(Exception):
    """A metric returned something else than numbers; the text says what is expected."""


class InvalidStatistics(ValueError):
    """A result after which no score of the metric can be trusted; ``rows`` are the texts that showed it."""

    def __init__(self, what: str, rows: Sequence[int] = ()) -> None:
        super().__init__(what)
        self.rows = rows


def attempt(name: str, work: Callable[[], Result]) -> Result | MetricFault:
    """The result of work over all texts, or the fault of the metric that raised."""
    try:
        return work()
    except Exception as error:  # whatever a stranger's measure raises is a fault of that measure alone
        return MetricFault(name, "all texts", _raised(error), traceback=traceback_text(error))


def scores_single_texts(metric: Metric) -> bool:
    """Whether a metric scores each text alone, with ``score``."""
    return isinstance(metric, MeanMetric) and all(_inherited(metric, name) for name in ("score_all", "statistics"))


def _inherited(metric: MeanMetric, name: str) -> bool:
    """Whether a method is the base class's."""
    return getattr(getattr(metric, name, None), "__func__", None) is getattr(MeanMetric, name)


def safe_statistics(metric: Metric, segments: Segments, name_of: Callable[[int], str]) -> Part:
    """The statistics of segments and the fault, if any; failing batches are halved. ``name_of`` returns the name of a row."""
    rows, failed = range(len(segments.texts)), dict[int, TextFailure]()
    try:
        statistics = _one_by_one(metric, segments, failed) if scores_single_texts(metric) else _halved(metric, segments, rows, failed)
        statistics = _finite(metric, statistics, failed)
    except InvalidStatistics as error:
        first, last = ((error.rows or rows)[index] for index in (0, -1))
        where = name_of(first) if first == last else f"{name_of(first)} to {name_of(last)}"
        traceback = traceback_text(error.__cause__) if error.__cause__ else ""
        return NOTHING[:0], MetricFault(metric.name, where, str(error), traceback=traceback)
    if not failed:
        return statistics, None
    first = min(failed)
    return statistics, MetricFault(metric.name, name_of(first), failed[first].what, len(failed), len(rows), failed[first].traceback)


def _one_by_one(metric: Any, segments: Segments, failed: dict[int, TextFailure]) -> Array:
    """The statistics of texts that are scored one by one."""
    scores = []
    for row, read in enumerate(zip(segments.texts, *segments.columns(metric.reads), strict=True)):
        try:
            scores.append(_number(metric.score(*read)))
        except Exception as error:  # whatever a stranger's metric raises is a fault of that text alone
            failed[row] = _failure(error, failed)
            scores.append(np.nan)
    return with_count(scores)


def _halved(metric: Metric, segments: Segments, rows: Sequence[int], failed: dict[int, TextFailure]) -> Array:
    """The statistics of texts that are scored together; after an exception those of their halves, down to single texts."""
    try:
        statistics, odd = _given(metric, segments.take(rows))
        if not odd:
            return statistics
        failure, raised = TextFailure(odd), False
    except Exception as error:  # whatever a stranger's metric raises is a fault of that metric alone
        failure, raised = _failure(error, failed), True
    if len(rows) > 1:
        before, middle = len(failed), len(rows) // 2
        halves = stacked([_halved(metric, segments, half, failed) for half in (rows[:middle], rows[middle:])])
        if raised or len(failed) > before:
            return halves
    # What has the wrong shape in company alone cannot be believed alone either.
    if not raised:
        raise InvalidStatistics(failure.what, rows)
    failed[rows[0]] = failure
    return NOTHING


def _given(metric: Metric, segments: Segments) -> tuple[Array, str]:
    """The statistics that a metric returns, and what is wrong with their shape; else empty."""
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
    statistics = _numbers("statistics", metric.statistics(segments))
    if statistics.ndim == 2 and len(statistics) == count and (statistics.shape[1] or not count):
        return statistics, ""
    return NOTHING, f"statistics returned an array of shape {statistics.shape} for {texts}; return one row of numbers for each text"


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
    """The message for statistics that differ in width."""
    return f"statistics returned rows of {now} numbers after rows of {before}; return rows of one width"


def stacked(parts: Sequence[Array]) -> Array:
    """Stacked statistics; those of width 0 become rows of nan.

    Raises:
        InvalidStatistics: if the others differ in width.
    """
    widths = list(dict.fromkeys(part.shape[1] for part in parts if part.shape[1]))
    if len(widths) > 1:
        raise InvalidStatistics(uneven(widths[1], widths[0]))
    return np.vstack([part if part.shape[1] in widths else np.full((len(part), sum(widths)), np.nan) for part in parts])


def _finite(metric: Metric, statistics: Array, failed: dict[int, TextFailure]) -> Array:
    """The statistics with rows of nan for all texts without a score.

    Raises:
        InvalidStatistics: if the others do not yield scores, or a linear aggregate.
    """
    sound: NDArray[np.bool_] = np.isfinite(statistics).all(axis=1) & np.full(len(statistics), statistics.shape[1] > 0)
    scores = np.full(len(sound), np.nan)
    try:
        if sound.any():
            given = np.asarray(metric.scores(statistics[sound]), dtype=np.float64)
            if given.shape != (texts := int(sound.sum()),):
                what = f"scores returned an array of shape {given.shape} for {texts} rows of statistics; return one score for each row"
                raise InvalidStatistics(what)
            scores[sound] = given
        scored = np.isfinite(scores)
        twice = np.asarray(metric.aggregate(np.vstack([statistics[scored].sum(axis=0)] * 2)) if scored.any() else (0, 0), dtype=np.float64)
    except InvalidStatistics:
        raise
    except Exception as error:  # whatever a stranger's metric raises is a fault of that metric alone
        raise InvalidStatistics(_raised(error)) from error
    if twice.shape != (2,) or (np.isfinite(twice).all() and twice[0] != twice[1]):
        raise InvalidStatistics(f"aggregates two equal rows of sums to {twice.tolist()}, which are not two equal numbers")
    if not np.isfinite(twice).all():
        raise InvalidStatistics(f"gave {twice[~np.isfinite(twice)][0]}, which is no number")
    for row in np.flatnonzero(~scored).tolist():
        value = next((number for number in statistics[row] if not np.isfinite(number)), scores[row])
        failed.setdefault(row, TextFailure(f"gave {value}, which is no number"))
    return statistics if scored.all() else np.where(scored[:, None], statistics, np.nan)


def _failure(error: Exception, failed: Mapping[int, TextFailure]) -> TextFailure:
    if isinstance(error, _NoNumbers):
        return TextFailure(str(error))
    return TextFailure(_raised(error), "" if any(failure.traceback for failure in failed.values()) else traceback_text(error))


def _raised(error: Exception) -> str:
    return f'raised {type(error).__name__}: "{error}"{raised_at(error)}'
