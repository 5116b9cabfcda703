"""Who is who among raters, and which criteria belong together: what the page of reliability is laid out by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import Problem, refuse
from empathy_eval.base.hashing import signature_line
from empathy_eval.design.rubrics import Criterion, Rubric, Scale
from empathy_eval.raters.agreement.table import Ratings, Table
from empathy_eval.statistics.estimate import Codes, Floats

# What the third group is called where raters are named.
CROWD = "crowd"
# What figures are of beside raters, who must not be called so.
GROUPS = ("experts", "judges", "median expert", CROWD)
# How the ratings of a crowd become one an item.
CROWD_AS = ("mean", "median")


@dataclass(frozen=True)
class Judge:
    """A rater that is a judge: what the ``judge`` is called whose samples it has, the model and style behind it (None: nobody said)."""

    rater: str
    judge: str
    model: str | None = None
    style: str | None = None
    sample: int = 1

    @property
    def called(self) -> str:
        """The model; a judge of whom none is known stands for itself."""
        return self.model or self.judge


@dataclass(frozen=True)
class Panel:
    """Who is who: each rater is an expert, a judge (or a further sample of one) or one of the crowd."""

    experts: tuple[str, ...]
    judges: tuple[Judge, ...] = ()
    crowd: tuple[str, ...] = ()
    crowd_as: str = "mean"

    @property
    def first(self) -> tuple[Judge, ...]:
        """The judges by their first samples: the ones that figures are about, but for stability."""
        return tuple(one for one in self.judges if one.rater == self.samples[one.judge][0].rater)

    @property
    def samples(self) -> dict[str, tuple[Judge, ...]]:
        """The samples of each judge, in their order, by what the judge is called."""
        ordered = sorted(self.judges, key=lambda one: (one.judge, one.sample, one.rater))
        return {name: tuple(one for one in ordered if one.judge == name) for name in dict.fromkeys(one.judge for one in self.judges)}


@dataclass(frozen=True)
class Framework:
    """Criteria that belong together, with what their rubric says of them, by criterion, where there is one.

    The framework without a name has the criteria that belong to none. ``opposites`` are pairs that contradict each other, each once.
    """

    name: str
    title: str
    criteria: tuple[str, ...]
    scales: Mapping[str, Scale] = field(default_factory=dict)
    better: Mapping[str, str] = field(default_factory=dict)
    opposites: tuple[tuple[str, str], ...] = ()


# Beneath this a value is half-way but for rounding.
HAIR = 1e-9


@dataclass(frozen=True)
class Crowd:
    """What a crowd makes of the items of a criterion.

    ``item`` are the places of the items that it rated, among those of ``ratings``, and ``value`` its mean or median of each, as it is.
    ``ratings`` are those of the panel with the crowd as a last rater, its values rounded onto the scale; ``signature`` says how.
    """

    item: Codes
    value: Floats
    ratings: Ratings
    signature: str

    def at(self, items: Codes) -> Floats:
        """The values of some of its items, as they are."""
        return self.value[np.searchsorted(self.item, items)]


def crowd_on(table: Table, criterion: str, panel: Panel, ratings: Ratings, scale: Scale | None) -> Crowd | None:
    """The crowd of a panel on a criterion, over the items that experts or judges rated (``ratings``); None where it rated none of them.

    Halves are rounded up: onto whole numbers where the scale has these alone, or, of a scale that no rubric says, where experts and judges
    give these alone; else onto the nearest value that experts and judges give.
    """
    item, value = values_of(table, criterion, panel.crowd, panel.crowd_as)
    known = np.unique(table.item[(table.criterion == table.criteria.index(criterion)) & ~table.by(panel.crowd)])
    shared = np.isin(item, known)
    if not shared.any():
        return None
    item, value = np.searchsorted(known, item[shared]), value[shared]
    whole = scale.whole if scale else bool(np.all(ratings.scale == np.rint(ratings.scale)))
    # Of two values of the scale that are as near the higher one.
    between = (ratings.scale[1:] + ratings.scale[:-1]) / 2 - HAIR
    rounded = np.floor(value + 0.5 + HAIR) if whole else ratings.scale[np.searchsorted(between, value, side="right")]
    line = signature_line(crowd=panel.crowd_as, rounded="halves-up", onto="whole-numbers" if whole else "values-of-experts-and-judges")
    # The crowd is one more rater, whose values may be ones that nobody else gives.
    steps = np.union1d(ratings.scale, rounded)
    step = np.searchsorted(steps, np.concatenate([ratings.scale[ratings.step], rounded]))
    rater = np.concatenate([ratings.rater, np.full(len(item), len(ratings.raters))])
    all_ = Ratings(ratings.items, (*ratings.raters, CROWD), steps, np.concatenate([ratings.item, item]), rater, step)
    return Crowd(item, value, all_, line)


# Places of items, ascending, and the value of each.
Valued = tuple[Codes, Floats]


def values_of(table: Table, criterion: str, raters: Iterable[str], how: str = "mean") -> Valued:
    """The items that these raters rated on a criterion, and the mean, the median or the most of what each was given."""
    rows = (table.criterion == table.criteria.index(criterion)) & table.by(raters)
    order = np.lexsort((table.rating[rows], table.item[rows]))
    value = table.rating[rows][order]
    items, first, number = np.unique(table.item[rows][order], return_index=True, return_counts=True)
    if how == "mean":
        return items, np.add.reduceat(value, first) / number
    if how == "most":
        return items, value[first + number - 1]
    return items, (value[first + (number - 1) // 2] + value[first + number // 2]) / 2


# The title over criteria that are of no framework.
OTHERS = "Other criteria"


def frameworks_of(table: Table, named: Mapping[str, str], rubrics: Sequence[Rubric]) -> tuple[Framework, ...]:
    """The frameworks of the criteria of a table: those of the rubrics in their order, then others that ``named`` has, then the rest.

    ``named`` is the framework of each criterion of which a column says one; it goes before the rubric that has the criterion. A rubric may
    be named there by its title too.

    Raises:
        InputError: for two rubrics that say different things of one criterion.
    """
    known, of = _known(table, rubrics)
    titles = {one.name: one.title for one in rubrics}
    names = {title: name for name, title in titles.items()}
    group = {one: names.get(named.get(one, ""), named.get(one) or of.get(one, "")) for one in table.criteria}
    order = [*titles, *sorted(set(group.values()) - {*titles, ""}), ""]
    ranked = [*known, *(one for one in table.criteria if one not in known)]
    found = list[Framework]()
    for name in [name for name in order if name in group.values()]:
        criteria = tuple(one for one in ranked if group[one] == name)
        said = [known[one] for one in criteria if one in known]
        scales = {one.name: one.scale for one in said if one.scale}
        better = {one.name: one.better for one in said if one.better}
        found.append(Framework(name, titles.get(name, name or OTHERS), criteria, scales, better, tuple(_opposites(said))))
    return tuple(found)


def off_scale(table: Table, frameworks: Sequence[Framework], crowd: Sequence[str]) -> list[Problem]:
    """The ratings that are not on the scale that a rubric says; what a crowd gave may lie between two values, for it may be a mean."""
    members = table.by(crowd)
    return [problem for framework in frameworks for name in framework.scales for problem in _off(table, framework, name, members)]


def _known(table: Table, rubrics: Sequence[Rubric]) -> tuple[dict[str, Criterion], dict[str, str]]:
    """What is said of each criterion, in the order of the rubrics, and the name of the first rubric that has it."""
    known, of, problems = dict[str, Criterion](), dict[str, str](), list[Problem]()
    for rubric in rubrics:
        for one in rubric.criteria:
            if one.name not in table.criteria:
                continue
            other = known.setdefault(one.name, one)
            if (other.scale, other.better, other.opposite) != (one.scale, one.better, one.opposite):
                what = f'defines "{one.name}" differently from "{of[one.name]}": the scale, better end or opposite'
                problems.append(Problem(f'rubric "{rubric.name}"', what, "leave one of the two out, or rename the criterion"))
            of.setdefault(one.name, rubric.name)
    refuse(problems)
    return known, of


def _opposites(criteria: Sequence[Criterion]) -> Iterator[tuple[str, str]]:
    """Each pair once, in the order of the criteria."""
    names, seen = {one.name for one in criteria}, set[frozenset[str]]()
    for one in criteria:
        if one.opposite in names and (pair := frozenset((one.name, str(one.opposite)))) not in seen:
            seen.add(pair)
            yield one.name, str(one.opposite)


def _off(table: Table, framework: Framework, name: str, members: NDArray[np.bool_]) -> Iterator[Problem]:
    scale, rows = framework.scales[name], table.criterion == table.criteria.index(name)
    for value in np.unique(table.rating[rows]):
        given = rows & (table.rating == value)
        inside = scale.low <= value <= scale.high
        wrong = np.flatnonzero(given & ~members if inside else given)
        if (fault := scale.fault(float(value))) and len(wrong):
            who, item = table.raters[table.rater[wrong[0]]], table.items[table.item[wrong[0]]]
            what = f'{value:g} by "{who}" for "{item}" {fault}, as "{framework.name}" defines it'
            yield Problem(f'ratings on "{name}"', what, "correct the rating, or leave the rubric out")
