"""Kappas of all criteria in one: the benchmark, how judges and a crowd stand to it, and whether they agree where experts do.

It goes by the numbers of a table alone, so that one that somebody published can be read in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.raters.agreement.experts import ALIKE
from empathy_eval.raters.agreement.panel import Judge
from empathy_eval.statistics.estimate import CONFIDENCE, Measure, Z, rounded

# Where each band begins. Landis and Koch (1977) name them and print .41-.60 and .61-.80, which leaves open what lies between; here the
# lower end is in its band, as in the study of expert and model ratings of empathy, so that .60 is substantial.
BANDS = {"poor": -math.inf, "slight": 0.0, "fair": 0.2, "moderate": 0.4, "substantial": 0.6, "almost perfect": 0.8}
# A correlation of fewer points says nothing, and Fisher's interval needs one more.
LEAST = 3


@dataclass(frozen=True)
class Kappas:
    """The kappas of one criterion: of each pair of experts, and of each judge and the crowd with the median expert; None if not defined."""

    framework: str
    criterion: str
    pairs: tuple[float | None, ...]
    judges: Mapping[str, float | None] = field(default_factory=dict)
    crowd: float | None = None

    @property
    def experts(self) -> float | None:
        """The median of the pairs."""
        values = [value for value in self.pairs if value is not None]
        return float(np.median(values)) if values else None


@dataclass(frozen=True)
class Spread:
    """Where ``number`` values lie; without any all is None, and ``why`` says so. Quartiles are numpy's linear ones."""

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
class Counted:
    """The criteria of which something is so, and those of which it is not; those where it is not defined are in neither."""

    so: tuple[str, ...]
    not_so: tuple[str, ...]

    @property
    def of(self) -> int:
        """How many criteria there were to look at."""
        return len(self.so) + len(self.not_so)


@dataclass(frozen=True)
class Stance:
    """A judge, or the crowd, with the median expert over all criteria.

    ``at_benchmark`` counts the criteria at the benchmark or above, ``where_experts_are`` the same of those where the experts' own median
    is; ``above_crowd`` is None of the crowd itself. ``with_experts`` is Pearson's r, over criteria, of its kappas and the experts' medians:
    its ``items`` are criteria, which share raters and often items, so its interval is a rough one.
    """

    kappas: Spread
    at_benchmark: Counted
    where_experts_are: Counted
    above_crowd: Counted | None
    with_experts: Measure


@dataclass(frozen=True)
class OfFramework:
    """The kappas of the criteria of one framework: of all pairs of experts, of each judge and of the crowd (None without one)."""

    framework: str
    criteria: int
    pairs: Spread
    judges: dict[str, Spread]
    crowd: Spread | None


@dataclass(frozen=True)
class Overall:
    """All criteria in one. ``benchmark`` is the median of all kappas of pairs of experts, over all criteria.

    ``experts`` is about their medians by criterion, and ``bands`` says how many criteria these put into which band.
    """

    criteria: int
    benchmark: float | None
    pairs: Spread
    experts: Spread
    bands: dict[str, int]
    judges: dict[str, Stance]
    crowd: Stance | None
    frameworks: tuple[OfFramework, ...]
    signature: str


def overall(kappas: Sequence[Kappas], weights: str = "quadratic") -> Overall:
    """The kappas of all criteria as one; ``weights`` says what kind of kappa they are.

    Values that differ by less than the rounding of sums count as equal, so that a printed .58 is at a benchmark of .58.
    """
    line = signature_line(kappa="cohen", weights=weights, quartiles="numpy-linear", alike=ALIKE, numpy=np.__version__)
    pairs = spread((value for one in kappas for value in one.pairs), line)
    judges = tuple(dict.fromkeys(name for one in kappas for name in one.judges))
    crowd = any(one.crowd is not None for one in kappas)
    bands = [band(one.experts) for one in kappas if one.experts is not None]
    frameworks = [[one for one in kappas if one.framework == name] for name in dict.fromkeys(one.framework for one in kappas)]
    return Overall(
        len(kappas), pairs.median, pairs, spread((one.experts for one in kappas), line), {name: bands.count(name) for name in BANDS},
        {name: _stance(kappas, [one.judges.get(name) for one in kappas], pairs.median, line, beside=crowd) for name in judges},
        _stance(kappas, [one.crowd for one in kappas], pairs.median, line, beside=False) if crowd else None,
        tuple(
            OfFramework(
                own[0].framework, len(own), spread((value for one in own for value in one.pairs), line),
                {judge: spread((one.judges.get(judge) for one in own), line) for judge in judges},
                spread((one.crowd for one in own), line) if crowd else None,
            )
            for own in frameworks
        ),
        signature_line(benchmark="median-of-all-pairs", bands="Landis-Koch-1977,lower-end-in") + f"|{line}",
    )  # fmt: skip


def spread(values: Iterable[float | None], signature: str) -> Spread:
    """Where values lie, without those that are not defined."""
    found = np.array([value for value in values if value is not None], dtype=np.float64)
    if not len(found):
        return Spread(0, None, None, None, None, None, None, "no kappa is defined", signature)
    mean, lowest, first, median, third, highest = map(rounded, [found.mean(), *np.quantile(found, [0, 0.25, 0.5, 0.75, 1])])
    return Spread(len(found), mean, lowest, first, median, third, highest, None, signature)


def at_least(value: float | None, least: float | None) -> bool | None:
    """Whether a kappa is at another or above it, but for the rounding of sums; None where one of the two is not defined."""
    return None if value is None or least is None else value >= least - ALIKE


def correlated(one: Sequence[float], other: Sequence[float], signature: str) -> Measure:
    """Pearson's r of two columns over criteria, with Fisher's interval (r as z = artanh r, whose standard error is 1 / sqrt(n - 3))."""
    number = len(one)
    line = f"correlation:pearson|interval:Fisher-z|level:{CONFIDENCE}|{signature}"
    if number < LEAST:
        few = ("no criterion has", "only one criterion has", "only two criteria have")[number]
        return Measure.undefined(f"{few} both kappas; a correlation needs {LEAST}", line, number)
    x, y = (np.array(column) - np.mean(column) for column in (one, other))
    below = math.sqrt(float(x @ x) * float(y @ y))
    if below <= ALIKE:
        return Measure.undefined("one of the two is the same for all criteria", line, number)
    r = rounded(min(max(float(x @ y) / below, -1.0), 1.0))
    if number == LEAST or abs(r) == 1:
        why = f"Fisher's z needs more than {LEAST} criteria" if number == LEAST else "all criteria are on one line"
        return Measure(r, None, None, number, f"no interval: {why}", line)
    low, high = (rounded(math.tanh(math.atanh(r) + side * Z / math.sqrt(number - LEAST))) for side in (-1, 1))
    return Measure(r, low, high, number, None, line)


def _stance(kappas: Sequence[Kappas], own: Sequence[float | None], benchmark: float | None, line: str, *, beside: bool) -> Stance:
    """Somebody by the kappa on each criterion (``own``); ``beside`` says whether there is a crowd to be above."""
    rows = list(zip(kappas, own, strict=True))
    both = [(one.experts, value) for one, value in rows if one.experts is not None and value is not None]
    reached = [(one, at_least(value, benchmark)) for one, value in rows]
    above = [(one, None if value is None or one.crowd is None else value > one.crowd + ALIKE) for one, value in rows]
    return Stance(
        spread(own, line), _counted(reached), _counted((one, so) for one, so in reached if at_least(one.experts, benchmark)),
        _counted(above) if beside else None, correlated([theirs for theirs, _ in both], [value for _, value in both], line),
    )  # fmt: skip


def _counted(found: Iterable[tuple[Kappas, bool | None]]) -> Counted:
    rows = list(found)
    return Counted(tuple(one.criterion for one, so in rows if so), tuple(one.criterion for one, so in rows if so is False))


def band(value: float) -> str:
    """The band that a kappa is in."""
    return next(name for name, least in reversed(BANDS.items()) if value >= least - ALIKE)


@dataclass(frozen=True)
class Column:
    """A model asked in a style, over all criteria: where its kappas lie, and on how many criteria it is the ``best`` of all columns."""

    rater: str
    model: str
    style: str | None
    kappas: Spread
    best: int


@dataclass(frozen=True)
class OnCriterion:
    """The kappa of each column with the median expert on a criterion, and which columns have the highest: several where they are equal."""

    criterion: str
    kappas: tuple[Measure | None, ...]
    best: tuple[int, ...]


@dataclass(frozen=True)
class StyleWins:
    """In how many of the contests it was in a style was best: a contest is a criterion and a model that was asked in several styles.

    Equal ones are all best.
    """

    style: str
    best: int
    of: int


@dataclass(frozen=True)
class Styles:
    """Kappas with the median expert by criterion and by column, and how often each style was the best for a model."""

    columns: tuple[Column, ...]
    criteria: tuple[OnCriterion, ...]
    wins: tuple[StyleWins, ...]


def styles(judges: Sequence[Judge], kappas: Mapping[str, Mapping[str, Measure]]) -> Styles | None:
    """Models by styles; None where there are not two judges of different model or style.

    ``kappas`` are with the median expert, by criterion and rater. A judge of whom no model is known stands for itself.
    """
    if len({(one.called, one.style) for one in judges}) < 2:
        return None
    found = {criterion: tuple(of.get(one.rater) for one in judges) for criterion, of in kappas.items()}
    rows = tuple(OnCriterion(criterion, own, _best(own, range(len(own)))) for criterion, own in found.items())
    columns = list[Column]()
    for place, judge in enumerate(judges):
        own = [row.kappas[place] for row in rows]
        where = spread((one.value if one else None for one in own), next((one.signature for one in own if one), ""))
        columns.append(Column(judge.rater, judge.called, judge.style, where, sum(place in row.best for row in rows)))
    return Styles(tuple(columns), rows, _wins(judges, rows))


def _best(kappas: Sequence[Measure | None], among: Sequence[int]) -> tuple[int, ...]:
    """Which of some have the highest kappa; none where fewer than two have one, for then nobody was better."""
    values = {place: one.value for place in among if (one := kappas[place]) and one.value is not None}
    return tuple(place for place, value in values.items() if value >= max(values.values()) - ALIKE) if len(values) > 1 else ()


def _wins(judges: Sequence[Judge], rows: Sequence[OnCriterion]) -> tuple[StyleWins, ...]:
    best: dict[str, list[bool]] = {style: [] for style in dict.fromkeys(one.style for one in judges) if style}
    for model in dict.fromkeys(one.called for one in judges):
        places = [place for place, one in enumerate(judges) if one.called == model and one.style]
        if len({judges[place].style for place in places}) < 2:
            continue
        for row in rows:
            won = {judges[place].style for place in _best(row.kappas, places)}
            entered = {judges[place].style for place in places if (one := row.kappas[place]) and one.value is not None}
            for style, found in best.items():
                if won and style in entered:
                    found.append(style in won)
    return tuple(StyleWins(style, sum(found), len(found)) for style, found in best.items())
