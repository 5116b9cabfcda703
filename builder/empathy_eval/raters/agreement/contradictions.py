"""Who finds in a text the opposite of what the experts find: high on a criterion where their median is high on its opposite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from empathy_eval.raters.agreement.benchmark import PANEL
from empathy_eval.raters.agreement.bootstrap import Measure
from empathy_eval.raters.agreement.crowd import one_each
from empathy_eval.raters.agreement.panel import CROWD, Framework, Panel
from empathy_eval.raters.agreement.shares import share
from empathy_eval.raters.agreement.table import Codes, Floats, Table

# The crowd as one, by its mean or median, and whether anybody of it is high.
ANY = "any of the crowd"
EXAMPLES = 3


@dataclass(frozen=True)
class High:
    """What is high on a criterion: ``above`` the middle of the rubric's scale, or of the values that occur where no rubric says one."""

    criterion: str
    above: float
    of: str


@dataclass(frozen=True)
class Contradiction:
    """Of the items on which the experts' median is high on ``there``, how many a rater is high on ``high`` of.

    ``of`` are the items among them that the rater rated on the latter. An expert stands against the median of the other experts; ``kind``
    is "expert", "judge", "crowd" or "any of the crowd". ``examples`` are the names of up to three items: first those that the rater, and
    then the experts, hold highest.
    """

    framework: str
    high: High
    there: High
    rater: str
    kind: str
    count: int
    of: int
    share: Measure
    examples: tuple[str, ...]


# Places of items, ascending, and the value of each.
Valued = tuple[Codes, Floats]


def contradictions(table: Table, panel: Panel, framework: Framework) -> tuple[Contradiction, ...]:
    """The contradictions of all raters by the opposites of a framework, each pair in both directions.

    The median of an even number of experts is the mean of the two middle ratings here, for nothing but which side of the middle it is on
    is asked of it. More than thirty experts are a crowd, and not looked at one by one.
    """
    both = [pair for one, other in framework.opposites for pair in ((one, other), (other, one))]
    found = []
    for name, opposite in both:
        if name in table.criteria and opposite in table.criteria:
            highs = tuple(_high(table, one, framework) for one in (name, opposite))
            for rater, kind, own, theirs in _sides(table, panel, name, opposite):
                how = {CROWD: {"crowd": f"{panel.crowd_as},not-rounded"}, ANY: {"crowd": "any-of-them"}}.get(kind, {})
                found.append(_contradiction(table, framework.name, (highs[0], highs[1]), (rater, kind, how), own, theirs))
    return tuple(found)


def _high(table: Table, criterion: str, framework: Framework) -> High:
    if scale := framework.scales.get(criterion):
        return High(criterion, (scale.low + scale.high) / 2, "scale-of-the-rubric")
    values = table.rating[table.criterion == table.criteria.index(criterion)]
    return High(criterion, float(values.min() + values.max()) / 2, "values-that-occur")


def _sides(table: Table, panel: Panel, name: str, opposite: str) -> Iterator[tuple[str, str, Valued, Valued]]:
    """Each rater with its kind, its own values on a criterion, and the experts' medians on the opposite one."""
    median = one_each(*_given(table, opposite, panel.experts), "median")
    for expert in panel.experts if 1 < len(panel.experts) <= PANEL else ():
        others = [one for one in panel.experts if one != expert]
        yield expert, "expert", _given(table, name, (expert,)), one_each(*_given(table, opposite, others), "median")
    for judge in panel.first:
        yield judge.rater, "judge", _given(table, name, (judge.rater,)), median
    if panel.crowd:
        crowd = _given(table, name, panel.crowd)
        yield CROWD, CROWD, one_each(*crowd, panel.crowd_as), median
        yield ANY, ANY, _most(*crowd), median


def _given(table: Table, criterion: str, raters: tuple[str, ...] | list[str]) -> Valued:
    """The ratings on a criterion by these raters, in the order of the items."""
    wanted = set(raters)
    places = [place for place, rater in enumerate(table.raters) if rater in wanted]
    rows = np.flatnonzero((table.criterion == table.criteria.index(criterion)) & np.isin(table.rater, places))
    rows = rows[np.argsort(table.item[rows], kind="stable")]
    return table.item[rows], table.rating[rows]


def _most(item: Codes, value: Floats) -> Valued:
    """The highest value of each item; items are in order."""
    items, first = np.unique(item, return_index=True)
    return items, np.maximum.reduceat(value, first) if len(first) else value


def _contradiction(
    table: Table, framework: str, highs: tuple[High, High], rater: tuple[str, str, dict[str, str]], own: Valued, theirs: Valued
) -> Contradiction:
    (high, there), (name, kind, how) = highs, rater
    item, here, place = np.intersect1d(own[0], theirs[0], assume_unique=True, return_indices=True)
    values, medians = own[1][here], theirs[1][place]
    asked = medians > there.above
    hit = asked & (values > high.above)
    worst = np.lexsort((item[hit], -medians[hit], -values[hit]))[:EXAMPLES]
    none = f'no item that is rated on "{high.criterion}" has a high median of the experts on "{there.criterion}"'
    settings = {"share": "high", "above": f"{high.above:g}", "where": "median-expert-high-on-opposite", "there_above": f"{there.above:g}"}
    settings |= {"middle": high.of if high.of == there.of else f"{high.of},{there.of}", **how}
    of_rater = share(int(hit.sum()), int(asked.sum()), none, **settings)
    examples = tuple(table.items[one] for one in item[hit][worst])
    return Contradiction(framework, high, there, name, kind, int(hit.sum()), int(asked.sum()), of_rater, examples)
