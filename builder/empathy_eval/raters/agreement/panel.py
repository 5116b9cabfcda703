"""Roles of raters and frameworks of criteria, by which the reliability page is laid out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import Problem, refuse
from empathy_eval.base.hashing import signature_line
from empathy_eval.design.rubrics import Criterion, Rubric, Scale
from empathy_eval.raters.agreement.table import CriterionRatings, RatingTable
from empathy_eval.statistics.estimate import Codes, Floats

# Name of the crowd among raters.
CROWD = "crowd"
# Names of groups of raters, which no rater may have.
GROUPS = ("experts", "judges", "median expert", CROWD)
# How the ratings of a crowd are aggregated by item.
CROWD_AS = ("mean", "median")


@dataclass(frozen=True)
class JudgeRater:
    """A rater that is a judge: the ``judge`` whose sample it is, and its model and style (None if unknown)."""

    rater: str
    judge: str
    model: str | None = None
    style: str | None = None
    sample: int = 1

    @property
    def called(self) -> str:
        """The model; a judge without a known one is named itself."""
        return self.model or self.judge


@dataclass(frozen=True)
class Panel:
    """Roles: each rater is an expert, a judge (or a further sample of one) or a member of the crowd."""

    experts: tuple[str, ...]
    judges: tuple[JudgeRater, ...] = ()
    crowd: tuple[str, ...] = ()
    crowd_as: str = "mean"

    @property
    def first(self) -> tuple[JudgeRater, ...]:
        """The judges by their first samples, which all figures but stability use."""
        return tuple(judge for judge in self.judges if judge.rater == self.samples[judge.judge][0].rater)

    @property
    def samples(self) -> dict[str, tuple[JudgeRater, ...]]:
        """Samples of each judge, in order, by the judge's name."""
        names = dict.fromkeys(judge.judge for judge in self.judges)
        ordered = sorted(self.judges, key=attrgetter("sample", "rater"))
        return {name: tuple(judge for judge in ordered if judge.judge == name) for name in names}


@dataclass(frozen=True)
class Framework:
    """Criteria that belong together, with their scales and better ends as their rubric defines them.

    The framework without a name has the criteria of no framework. ``opposites`` are pairs that contradict each other, each once.
    """

    name: str
    title: str
    criteria: tuple[str, ...]
    scales: Mapping[str, Scale] = field(default_factory=dict)
    better: Mapping[str, str] = field(default_factory=dict)
    opposites: tuple[tuple[str, str], ...] = ()


# Tolerance for a value half-way between two others.
HAIR = 1e-9


@dataclass(frozen=True)
class Crowd:
    """A crowd's aggregated ratings on a criterion.

    ``item`` are the indices of the items that it rated, among those of ``ratings``, and ``value`` its unrounded mean or median of each.
    ``ratings`` are those of the panel with the crowd as a last rater, rounded to the scale; ``signature`` says how.
    """

    item: Codes
    value: Floats
    ratings: CriterionRatings
    signature: str

    def at(self, items: Codes) -> Floats:
        """Unrounded values of some of its items."""
        return self.value[np.searchsorted(self.item, items)]


def crowd_ratings(table: RatingTable, criterion: str, panel: Panel, ratings: CriterionRatings, scale: Scale | None) -> Crowd | None:
    """The crowd of a panel on a criterion, over the items that experts or judges rated (``ratings``); None if it rated none of them.

    Halves are rounded up: to whole numbers if the scale has only these, or, without a rubric's scale, if experts and judges give only
    these; else to the nearest value that experts and judges give.
    """
    item, value = item_values(table, criterion, panel.crowd, panel.crowd_as)
    known = np.unique(table.item[(table.criterion == table.criteria.index(criterion)) & ~table.by(panel.crowd)])
    shared = np.isin(item, known)
    if not shared.any():
        return None
    item, value = np.searchsorted(known, item[shared]), value[shared]
    whole = scale.whole if scale else bool(np.all(ratings.scale == np.rint(ratings.scale)))
    # Of two equally near values of the scale the higher one.
    between = (ratings.scale[1:] + ratings.scale[:-1]) / 2 - HAIR
    rounded = np.floor(value + 0.5 + HAIR) if whole else ratings.scale[np.searchsorted(between, value, side="right")]
    line = signature_line(crowd=panel.crowd_as, rounded="halves-up", onto="whole-numbers" if whole else "values-of-experts-and-judges")
    # The crowd becomes one more rater, whose values may be new.
    steps = np.union1d(ratings.scale, rounded)
    step = np.searchsorted(steps, np.concatenate([ratings.scale[ratings.step], rounded]))
    rater = np.concatenate([ratings.rater, np.full(len(item), len(ratings.raters))])
    all_ = CriterionRatings(ratings.items, (*ratings.raters, CROWD), steps, np.concatenate([ratings.item, item]), rater, step)
    return Crowd(item, value, all_, line)


# Indices of items, ascending, and the value of each.
ItemValues = tuple[Codes, Floats]


def item_values(table: RatingTable, criterion: str, raters: Iterable[str], how: str = "mean") -> ItemValues:
    """Items that these raters rated on a criterion, and the mean, the median or the maximum of each."""
    rows = (table.criterion == table.criteria.index(criterion)) & table.by(raters)
    order = np.lexsort((table.rating[rows], table.item[rows]))
    value = table.rating[rows][order]
    items, first, number = np.unique(table.item[rows][order], return_index=True, return_counts=True)
    if how == "mean":
        return items, np.add.reduceat(value, first) / number
    if how == "most":
        return items, value[first + number - 1]
    return items, (value[first + (number - 1) // 2] + value[first + number // 2]) / 2


# Title of criteria without a framework.
OTHERS = "Other criteria"


def frameworks_of(table: RatingTable, named: Mapping[str, str], rubrics: Sequence[Rubric]) -> tuple[Framework, ...]:
    """Frameworks of the criteria of a table: those of the rubrics in order, then others in ``named``, then the rest.

    ``named`` is the framework of each criterion according to a column; it takes precedence over the rubric. A rubric may be named there by
    its title.

    Raises:
        InputError: for two rubrics that define a criterion differently.
    """
    known, rubric_of = _known(table, rubrics)
    titles = {rubric.name: rubric.title for rubric in rubrics}
    names = {title: name for name, title in titles.items()}
    stated = {criterion: named.get(criterion, "") for criterion in table.criteria}
    group = {criterion: names.get(title, title or rubric_of.get(criterion, "")) for criterion, title in stated.items()}
    order = [*titles, *sorted(set(group.values()) - {*titles, ""}), ""]
    ranked = [*known, *(criterion for criterion in table.criteria if criterion not in known)]
    frameworks = list[Framework]()
    for name in [name for name in order if name in group.values()]:
        criteria = tuple(criterion for criterion in ranked if group[criterion] == name)
        defined = [known[criterion] for criterion in criteria if criterion in known]
        scales = {criterion.name: criterion.scale for criterion in defined if criterion.scale}
        better = {criterion.name: criterion.better for criterion in defined if criterion.better}
        frameworks.append(Framework(name, titles.get(name, name or OTHERS), criteria, scales, better, tuple(_opposites(defined))))
    return tuple(frameworks)


def off_scale(table: RatingTable, frameworks: Sequence[Framework], crowd: Sequence[str]) -> list[Problem]:
    """Problems of ratings off the scale of a rubric; a crowd's may lie between two values, because they may be means."""
    members = table.by(crowd)
    return [problem for framework in frameworks for name in framework.scales for problem in _off(table, framework, name, members)]


def _known(table: RatingTable, rubrics: Sequence[Rubric]) -> tuple[dict[str, Criterion], dict[str, str]]:
    """Definition of each criterion, in the order of the rubrics, and the name of the first rubric that has it."""
    known, rubric_of, problems = dict[str, Criterion](), dict[str, str](), list[Problem]()
    for rubric in rubrics:
        for criterion in rubric.criteria:
            if criterion.name not in table.criteria:
                continue
            other = known.setdefault(criterion.name, criterion)
            if (other.scale, other.better, other.opposite) != (criterion.scale, criterion.better, criterion.opposite):
                what = f'defines "{criterion.name}" differently from "{rubric_of[criterion.name]}": the scale, better end or opposite'
                problems.append(Problem(f'rubric "{rubric.name}"', what, "leave one of the two out, or rename the criterion"))
            rubric_of.setdefault(criterion.name, rubric.name)
    refuse(problems)
    return known, rubric_of


def _opposites(criteria: Sequence[Criterion]) -> Iterator[tuple[str, str]]:
    """Each pair of opposites once, in the order of the criteria."""
    names, pairs = {criterion.name for criterion in criteria}, set[frozenset[str]]()
    for criterion in criteria:
        if criterion.opposite in names and (pair := frozenset((criterion.name, str(criterion.opposite)))) not in pairs:
            pairs.add(pair)
            yield criterion.name, str(criterion.opposite)


def _off(table: RatingTable, framework: Framework, name: str, members: NDArray[np.bool_]) -> Iterator[Problem]:
    scale, rows = framework.scales[name], table.criterion == table.criteria.index(name)
    for value in np.unique(table.rating[rows]):
        rated = rows & (table.rating == value)
        inside = scale.low <= value <= scale.high
        wrong = np.flatnonzero(rated & ~members if inside else rated)
        if (fault := scale.fault(float(value))) and len(wrong):
            who, item = table.raters[table.rater[wrong[0]]], table.items[table.item[wrong[0]]]
            what = f'{value:g} by "{who}" for "{item}" {fault}, as "{framework.name}" defines it'
            yield Problem(f'ratings on "{name}"', what, "correct the rating, or leave the rubric out")
