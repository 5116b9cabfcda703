"""Summary of the kappas of all criteria: the median kappa of expert pairs (the benchmark), and judges and a crowd beside it.

It uses only the numbers of a table, so a published table can be summarised in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.raters.agreement.experts import ALIKE
from empathy_eval.raters.agreement.panel import JudgeRater
from empathy_eval.statistics.estimate import CONFIDENCE, Estimate, Z, rounded

# Where each band begins. Landis and Koch (1977) name them and print .41-.60 and .61-.80, which leaves open what lies between; here the
# lower end is in its band, as in the study of expert and model ratings of empathy, so that .60 is substantial.
BANDS = {"poor": -math.inf, "slight": 0.0, "fair": 0.2, "moderate": 0.4, "substantial": 0.6, "almost perfect": 0.8}
# Minimum points of a correlation; Fisher's interval needs one more.
LEAST = 3


@dataclass(frozen=True)
class CriterionKappas:
    """Kappas of one criterion: of each pair of experts, and of each judge and the crowd with the median expert; None if undefined."""

    framework: str
    criterion: str
    pairs: tuple[float | None, ...]
    judges: Mapping[str, float | None] = field(default_factory=dict)
    crowd: float | None = None

    @property
    def experts(self) -> float | None:
        """Median of the pairs."""
        values = [value for value in self.pairs if value is not None]
        return float(np.median(values)) if values else None


@dataclass(frozen=True)
class KappaDistribution:
    """Distribution of ``number`` values; without any all is None, and ``why`` gives the reason. Quartiles are numpy's linear ones."""

    number: int
    mean: float | None
    lowest: float | None
    first_quartile: float | None
    median: float | None
    third_quartile: float | None
    highest: float | None
    why: str | None
    signature: str


@dataclass(frozen=True)
class CriteriaSplit:
    """The criteria for which a condition holds, and those for which it does not; undefined ones are in neither."""

    so: tuple[str, ...]
    not_so: tuple[str, ...]

    @property
    def of(self) -> int:
        """Number of criteria for which it is defined."""
        return len(self.so) + len(self.not_so)


@dataclass(frozen=True)
class RaterOverall:
    """A judge, or the crowd, against the median expert over all criteria.

    ``at_benchmark`` splits the criteria by whether the benchmark is reached, ``where_experts_are`` those where the experts' own median
    reaches it; ``above_crowd`` is None for the crowd itself. ``with_experts`` is Pearson's r, over criteria, of its kappas and the experts'
    medians: its ``items`` are criteria, which share raters and often items, so its interval is approximate.
    """

    kappas: KappaDistribution
    at_benchmark: CriteriaSplit
    where_experts_are: CriteriaSplit
    above_crowd: CriteriaSplit | None
    with_experts: Estimate


@dataclass(frozen=True)
class FrameworkKappas:
    """Kappas of the criteria of one framework: of all pairs of experts, of each judge and of the crowd (None without one)."""

    framework: str
    criteria: int
    pairs: KappaDistribution
    judges: dict[str, KappaDistribution]
    crowd: KappaDistribution | None


@dataclass(frozen=True)
class Overall:
    """All criteria together. ``benchmark`` is the median of all kappas of pairs of experts, over all criteria.

    ``experts`` is the distribution of their medians by criterion, ``bands`` the number of criteria in each band.
    """

    criteria: int
    benchmark: float | None
    pairs: KappaDistribution
    experts: KappaDistribution
    bands: dict[str, int]
    judges: dict[str, RaterOverall]
    crowd: RaterOverall | None
    frameworks: tuple[FrameworkKappas, ...]
    signature: str


def overall(kappas: Sequence[CriterionKappas], weights: str = "quadratic") -> Overall:
    """Summarise the kappas of all criteria; ``weights`` is the weighting of these kappas.

    Values that differ by less than the rounding of sums count as equal, so that a printed .58 reaches a benchmark of .58.
    """
    line = signature_line(kappa="cohen", weights=weights, quartiles="numpy-linear", alike=ALIKE, numpy=np.__version__)
    pairs = distribution((value for row in kappas for value in row.pairs), line)
    judges = tuple(dict.fromkeys(name for row in kappas for name in row.judges))
    crowd = any(row.crowd is not None for row in kappas)
    bands = [band(row.experts) for row in kappas if row.experts is not None]
    frameworks = [[row for row in kappas if row.framework == name] for name in dict.fromkeys(row.framework for row in kappas)]
    return Overall(
        len(kappas), pairs.median, pairs, distribution((row.experts for row in kappas), line), {name: bands.count(name) for name in BANDS},
        {name: _rater_overall(kappas, [row.judges.get(name) for row in kappas], pairs.median, line, compared=crowd) for name in judges},
        _rater_overall(kappas, [row.crowd for row in kappas], pairs.median, line, compared=False) if crowd else None,
        tuple(
            FrameworkKappas(
                own[0].framework, len(own), distribution((value for row in own for value in row.pairs), line),
                {judge: distribution((row.judges.get(judge) for row in own), line) for judge in judges},
                distribution((row.crowd for row in own), line) if crowd else None,
            )
            for own in frameworks
        ),
        signature_line(benchmark="median-of-all-pairs", bands="Landis-Koch-1977,lower-end-in") + f"|{line}",
    )  # fmt: skip


def distribution(values: Iterable[float | None], signature: str) -> KappaDistribution:
    """Distribution of values, ignoring undefined ones."""
    defined = np.array([value for value in values if value is not None], dtype=np.float64)
    if not len(defined):
        return KappaDistribution(0, None, None, None, None, None, None, "no kappa is defined", signature)
    mean, lowest, first, median, third, highest = map(rounded, [defined.mean(), *np.quantile(defined, [0, 0.25, 0.5, 0.75, 1])])
    return KappaDistribution(len(defined), mean, lowest, first, median, third, highest, None, signature)


def at_least(value: float | None, least: float | None) -> bool | None:
    """Whether a kappa reaches another, up to rounding; None if one of the two is undefined."""
    return None if value is None or least is None else value >= least - ALIKE


def pearson(first: Sequence[float], other: Sequence[float], signature: str) -> Estimate:
    """Pearson's r of two columns over criteria, with Fisher's interval: z = artanh r has the standard error 1 / sqrt(n - 3)."""
    number = len(first)
    line = f"correlation:pearson|interval:Fisher-z|level:{CONFIDENCE}|{signature}"
    if number < LEAST:
        few = ("no criterion has", "only one criterion has", "only two criteria have")[number]
        return Estimate.undefined(f"{few} both kappas; a correlation needs {LEAST}", line, number)
    x, y = (np.array(column) - np.mean(column) for column in (first, other))
    below = math.sqrt(float(x @ x) * float(y @ y))
    if below <= ALIKE:
        return Estimate.undefined("one of the two is the same for all criteria", line, number)
    r = rounded(min(max(float(x @ y) / below, -1.0), 1.0))
    if number == LEAST or abs(r) == 1:
        why = f"Fisher's z needs more than {LEAST} criteria" if number == LEAST else "all criteria are on one line"
        return Estimate(r, n=number, reason=f"no interval: {why}", signature=line)
    low, high = (rounded(math.tanh(math.atanh(r) + side * Z / math.sqrt(number - LEAST))) for side in (-1, 1))
    return Estimate(r, low, high, n=number, signature=line)


def _rater_overall(
    kappas: Sequence[CriterionKappas], own: Sequence[float | None], benchmark: float | None, line: str, *, compared: bool
) -> RaterOverall:
    """A rater by the kappa on each criterion (``own``); ``compared`` says whether there is a crowd to compare with."""
    rows = list(zip(kappas, own, strict=True))
    both = [(row.experts, value) for row, value in rows if row.experts is not None and value is not None]
    reached = [(row, at_least(value, benchmark)) for row, value in rows]
    above = [(row, None if value is None or row.crowd is None else value > row.crowd + ALIKE) for row, value in rows]
    return RaterOverall(
        distribution(own, line), _split(reached), _split((row, so) for row, so in reached if at_least(row.experts, benchmark)),
        _split(above) if compared else None, pearson([expert for expert, _ in both], [value for _, value in both], line),
    )  # fmt: skip


def _split(judged: Iterable[tuple[CriterionKappas, bool | None]]) -> CriteriaSplit:
    rows = list(judged)
    return CriteriaSplit(tuple(row.criterion for row, so in rows if so), tuple(row.criterion for row, so in rows if so is False))


def band(value: float) -> str:
    """Band of a kappa."""
    return next(name for name, least in reversed(BANDS.items()) if value >= least - ALIKE)


@dataclass(frozen=True)
class StyleColumn:
    """A model prompted in a style: the distribution of its kappas, and on how many criteria it is the ``best`` of all columns."""

    rater: str
    model: str
    style: str | None
    kappas: KappaDistribution
    best: int


@dataclass(frozen=True)
class StyleRow:
    """Kappa of each column with the median expert on a criterion, and the columns with the highest: several if they are equal."""

    criterion: str
    kappas: tuple[Estimate | None, ...]
    best: tuple[int, ...]


@dataclass(frozen=True)
class StyleWins:
    """Number of contests that a style won: a contest is a criterion and a model prompted in several styles; ties win all."""

    style: str
    best: int
    of: int


@dataclass(frozen=True)
class Styles:
    """Kappas with the median expert by criterion and column, and how often each style was the best for a model."""

    columns: tuple[StyleColumn, ...]
    criteria: tuple[StyleRow, ...]
    wins: tuple[StyleWins, ...]


def styles(judges: Sequence[JudgeRater], kappas: Mapping[str, Mapping[str, Estimate]]) -> Styles | None:
    """Models by styles; None unless two judges differ in model or style.

    ``kappas`` are with the median expert, by criterion and rater. A judge without a known model is a model of its own.
    """
    if len({(judge.called, judge.style) for judge in judges}) < 2:
        return None
    by_criterion = {criterion: tuple(measures.get(judge.rater) for judge in judges) for criterion, measures in kappas.items()}
    rows = tuple(StyleRow(criterion, own, _best(own, range(len(own)))) for criterion, own in by_criterion.items())
    columns = list[StyleColumn]()
    for index, judge in enumerate(judges):
        own = [row.kappas[index] for row in rows]
        signature = next((measure.signature for measure in own if measure), "")
        kappas_of = distribution((measure.value if measure else None for measure in own), signature)
        columns.append(StyleColumn(judge.rater, judge.called, judge.style, kappas_of, sum(index in row.best for row in rows)))
    return Styles(tuple(columns), rows, _wins(judges, rows))


def _best(kappas: Sequence[Estimate | None], among: Sequence[int]) -> tuple[int, ...]:
    """Indices with the highest kappa; none if fewer than two are defined."""
    values = {index: measure.value for index in among if (measure := kappas[index]) and measure.value is not None}
    return tuple(index for index, value in values.items() if value >= max(values.values()) - ALIKE) if len(values) > 1 else ()


def _wins(judges: Sequence[JudgeRater], rows: Sequence[StyleRow]) -> tuple[StyleWins, ...]:
    best: dict[str, list[bool]] = {style: [] for style in dict.fromkeys(judge.style for judge in judges) if style}
    for model in dict.fromkeys(judge.called for judge in judges):
        places = [index for index, judge in enumerate(judges) if judge.called == model and judge.style]
        if len({judges[index].style for index in places}) < 2:
            continue
        for row in rows:
            won = {judges[index].style for index in _best(row.kappas, places)}
            entered = {judges[index].style for index in places if (measure := row.kappas[index]) and measure.value is not None}
            for style, victories in best.items():
                if won and style in entered:
                    victories.append(style in won)
    return tuple(StyleWins(style, sum(victories), len(victories)) for style, victories in best.items())
