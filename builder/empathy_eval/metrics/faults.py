"""Faults of metrics: a metric that fails on a text, or gives one text two scores. Other scores and metrics are not affected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import raised_at, shortened, traceback_text
from empathy_eval.metrics.protocol import Array, MeanMetric, Metric, Pairs, Segments, with_count

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


@dataclass(frozen=True)
class MetricResult:
    """The result of a metric: by variant its statistics, shape (pairs, k), with rows of nan for texts without a score.

    ``rows`` is empty if the metric failed as a whole; ``fault`` says why.
    """

    rows: Mapping[str, Array] = field(default_factory=dict)
    fault: MetricFault | None = None


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
        statistics, odd = _returned_statistics(metric, segments.take(rows))
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


def _returned_statistics(metric: Metric, segments: Segments) -> tuple[Array, str]:
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


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise _NoNumbers(f"score returned {_shown(value)}; return a number") from None


def _numbers(method: str, values: Any) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise _NoNumbers(f"{method} returned {_shown(values)}; return numbers") from None


def _shown(value: Any) -> str:
    return shortened(repr(value))


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
            returned = np.asarray(metric.scores(statistics[sound]), dtype=np.float64)
            if returned.shape != (texts := int(sound.sum()),):
                what = f"scores returned an array of shape {returned.shape} for {texts} rows of statistics; return one score for each row"
                raise InvalidStatistics(what)
            scores[sound] = returned
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


# Scores that differ by less than this share of their standard deviation are equal: batches of a model round differently.
SAME_WITHIN = 0.01


def find_contradictions(metrics: Sequence[Metric], scored: Sequence[tuple[Pairs, Mapping[str, MetricResult]]]) -> dict[str, MetricFault]:
    """Returns the fault of each metric that gave one text two scores, in or across sets of pairs with their results.

    Texts are equal if all that the metric reads is equal.
    """
    repeats = cache(lambda reads: Repeats.of([pairs for pairs, _ in scored], reads))
    faults: dict[str, MetricFault] = {}
    for metric in metrics:
        rows = [(pairs, results[metric.name].rows if metric.name in results else {}) for pairs, results in scored]
        statistics = [by_variant.get(variant, np.zeros((len(pairs.ids), 0))) for pairs, by_variant in rows for variant in pairs.variants]
        fault = _contradiction(metric, repeats(tuple(sorted(metric.reads))), statistics)
        faults |= {metric.name: fault} if fault else {}
    return faults


@dataclass(frozen=True)
class Repeats:
    """Texts that occur more than once: their positions, and where each came first.

    Positions count through the ``columns``, the variants of all sets end to end, which begin at ``starts``.
    """

    columns: Sequence[tuple[Pairs, str]]
    starts: NDArray[np.int64]
    reads: tuple[str, ...]
    places: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, sets: Sequence[Pairs], reads: tuple[str, ...]) -> Repeats:
        """Finds repeats by a hash, which may confuse two texts: ``same`` decides."""
        columns = [(pairs, variant) for pairs in sets for variant in pairs.variants]
        starts = np.cumsum([0, *(len(pairs.ids) for pairs, _ in columns)])
        hashes = np.concatenate([_hashes(pairs, variant, reads) for pairs, variant in columns])
        _, first, of = np.unique(hashes, return_index=True, return_inverse=True)
        came_first = first[of]
        later = np.flatnonzero(came_first != np.arange(len(hashes)))
        return cls(columns, starts, reads, later, came_first[later])

    def at(self, position: int) -> tuple[Pairs, str, int]:
        """The set, variant and row of a position."""
        number = int(np.searchsorted(self.starts, position, side="right")) - 1
        return *self.columns[number], position - int(self.starts[number])

    def same(self, first: int, other: int) -> bool:
        """Whether two positions hold the same text, with everything that is read."""
        (pairs, variant, row), (rest, its, at) = self.at(first), self.at(other)
        return [column[row] for column in _read(pairs, variant, self.reads)] == [column[at] for column in _read(rest, its, self.reads)]


def _read(pairs: Pairs, variant: str, reads: tuple[str, ...]) -> list[Sequence[str]]:
    """What identifies a text for a metric. A context is identified by its pair, because reading all contexts takes longer than scoring."""
    columns = {"reference": pairs.references, "context": pairs.ids}
    return [pairs.variants[variant], *(columns[name] for name in reads)]


def _hashes(pairs: Pairs, variant: str, reads: tuple[str, ...]) -> NDArray[np.int64]:
    """A hash of each text with what is read, valid in this process only."""
    hashes = np.zeros(len(pairs.ids), dtype=np.int64)
    for column in _read(pairs, variant, reads):
        hashes = hashes * 1_000_003 + np.fromiter(map(hash, column), dtype=np.int64, count=len(hashes))
    return hashes


def _contradiction(metric: Metric, repeats: Repeats, statistics: Sequence[Array]) -> MetricFault | None:
    """The fault of a metric that gave a text two scores, at the first such text; None if each has one."""
    earlier, other = (_scores(metric, repeats, statistics, places) for places in (repeats.first, repeats.places))
    suspects = np.flatnonzero(np.abs(earlier - other) > 10.0**-metric.places)
    if not len(suspects):
        return None
    everything = _scores(metric, repeats, statistics, np.arange(repeats.starts[1]))
    within = SAME_WITHIN * float(np.nanstd(everything))
    for row in suspects[np.abs(earlier - other)[suspects] > within].tolist():
        first, later = int(repeats.first[row]), int(repeats.places[row])
        if repeats.same(first, later):
            names = [f"{pairs.ids[at]}, {variant}" for pairs, variant, at in map(repeats.at, (first, later))]
            values = [f"{value:.{max(metric.places, 0)}f}" for value in (earlier[row], other[row])]
            again = "beside other texts" if names[0] == names[1] else f"as {names[1]}"
            rule = "a score depends on the text and on what the metric reads, not on the texts beside it"
            return MetricFault(metric.name, names[0], f"gave one text two scores, {values[0]}, and {values[1]} {again}: {rule}")
    return None


def _scores(metric: Metric, repeats: Repeats, statistics: Sequence[Array], places: NDArray[np.int64]) -> Array:
    """The scores at positions, nan if missing."""
    values = np.full(len(places), np.nan)
    which = np.searchsorted(repeats.starts, places, side="right") - 1
    for number, part in enumerate(statistics):
        rows = np.flatnonzero(which == number)
        chosen = part[places[rows] - repeats.starts[number]]
        has = ~np.isnan(chosen[:, 0]) if chosen.shape[1] else np.zeros(len(rows), dtype=bool)
        if has.any():
            values[rows[has]] = metric.scores(chosen[has])
    return values
