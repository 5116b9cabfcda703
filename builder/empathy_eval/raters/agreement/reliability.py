"""How reliable people and judges are, criterion by criterion and framework by framework: all that ``agree --page`` shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.design.provenance import Result
from empathy_eval.evaluation.inversion.inversion import Chance
from empathy_eval.raters.agreement.agree import Agreement, inflation
from empathy_eval.raters.agreement.columns import MISSING
from empathy_eval.raters.agreement.experts import PANEL, median_of_pairs, pair_up
from empathy_eval.raters.agreement.overall import Kappas, Overall, Styles, at_least, overall, styles
from empathy_eval.raters.agreement.panel import CROWD, Framework, Panel, crowd_on, one_each
from empathy_eval.raters.agreement.reliability_rows import OnCriterion, Placed, ReliabilityRow, row
from empathy_eval.raters.agreement.table import Ratings, Table
from empathy_eval.statistics.agreement import LEVELS, WEIGHTS, alpha, share
from empathy_eval.statistics.estimate import Codes, Floats, Measure
from empathy_eval.statistics.resampling import ItemBootstrap, ratio

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


ALONE = "there is only one sample"
NONE = "there is no item that all samples rate"


@dataclass(frozen=True)
class Stability:
    """How alike the samples of a judge are on a criterion.

    ``same`` is the share of items to which all give one value, ``range`` the mean distance of the highest and the lowest of an item, in
    points of the scale, both over items that all samples rate; ``kappa`` is the median over pairs of samples.
    """

    judge: str
    criterion: str
    samples: int
    same: Measure
    alpha: Measure
    kappa: Measure
    range: Measure


def stability(criterion: str, ratings: Ratings, panel: Panel, level: str, sample: ItemBootstrap) -> tuple[Stability, ...]:
    """Each judge beside itself on a criterion; where there is one sample nothing is defined. A judge that did not rate it is left out."""
    found = []
    for judge, samples in panel.samples.items():
        places = [ratings.raters.index(one.rater) for one in samples if one.rater in ratings.raters]
        rated = [place for place in places if np.any(ratings.rater == place)]
        if rated:
            found.append(Stability(judge, criterion, len(rated), *_figures(ratings, rated, level, sample)))
    return tuple(found)


def _figures(ratings: Ratings, places: Sequence[int], level: str, sample: ItemBootstrap) -> Iterator[Measure]:
    """The share of items alike, alpha, the median kappa and the mean range."""
    given = np.stack([ratings.of_rater(place) for place in places])
    items = np.flatnonzero(np.all(given != MISSING, axis=0))
    values = ratings.scale[given[:, items]]
    apart = values.max(axis=0) - values.min(axis=0)
    found = (
        share(int(np.sum(apart == 0)), len(items), NONE, share="all-alike", raters="samples", samples=len(places)),
        alpha(ratings.counts(places), ratings.scale, sample)[level],
        _kappa(ratings, places, WEIGHTS[LEVELS.index(level)], sample),
        _range(apart, items, len(places), sample),
    )
    for one in found:
        yield one if len(places) > 1 else Measure.undefined(ALONE, one.signature, len(items))


def _kappa(ratings: Ratings, places: Sequence[int], weights: str, sample: ItemBootstrap) -> Measure:
    line = signature_line(kappa="cohen", weights=weights, median="of-pairs-of-samples", samples=len(places)) + f"|{sample.signature}"
    if len(places) > PANEL:
        return Measure.undefined(f"there are {len(places)} samples: pairs are compared for at most {PANEL}", line, ratings.items)
    _, values = pair_up(ratings, list(combinations(places, 2)), weights, sample)
    return Measure.of(median_of_pairs(values), ratings.items, "rated", "no pair has a kappa", line)


def _range(apart: Floats, items: Codes, samples: int, sample: ItemBootstrap) -> Measure:
    line = signature_line(range="mean", raters="samples", samples=samples) + f"|{sample.signature}"
    sums = sample.resampled(sample.total(items, np.stack([apart, np.ones(len(items))])))
    return Measure.of(ratio(*sums.T), len(items), "that all samples rate", "no item of the draw is rated by all samples", line)


@dataclass(frozen=True)
class InFramework:
    """A framework and the rows of its criteria, in its order."""

    framework: Framework
    rows: tuple[ReliabilityRow, ...]


@dataclass(frozen=True, repr=False)
class Reliability(Result):
    """All figures of a page: ``weights`` are those of every kappa, ``level`` is that of every alpha of a group.

    ``crowd_alone`` are the criteria that nobody but the crowd rated: there is nobody to hold it against, and they are in no framework.
    """

    level: str
    weights: str
    panel: Panel
    frameworks: tuple[InFramework, ...]
    overall: Overall
    stability: tuple[Stability, ...]
    styles: Styles | None
    contradictions: tuple[Contradiction, ...]
    signature: str
    crowd_alone: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON values; what is not defined is null, with its reason in ``why``."""
        return self._with_provenance(asdict(self))


def reliability(table: Table, panel: Panel, frameworks: tuple[Framework, ...], agreement: Agreement, chance: Chance) -> Reliability:
    """All figures of the raters of a table, who are as ``panel`` says, by framework.

    ``agreement`` is that of the experts and judges, without the crowd, by the same draws of items.
    """
    weights = WEIGHTS[LEVELS.index(agreement.level)]
    judged = table.without(panel.crowd)
    rows, stable = [], list[Stability]()
    for one in frameworks:
        found = _rows(table, judged, one, panel, agreement, chance)
        rows.append(InFramework(one, tuple(row for row, _ in found)))
        stable += [of_judge for _, of_criterion in found for of_judge in of_criterion]
    together = overall([_kappas(one.framework.name, row) for one in rows for row in one.rows], weights)
    kappas = {row.criterion: {name: placed.kappa for name, placed in row.judges.items()} for one in rows for row in one.rows}
    line = signature_line(
        level=agreement.level, weights=weights, experts=len(panel.experts), judges=len(panel.first), crowd=len(panel.crowd),
        crowd_as=panel.crowd_as, resamples=chance.resamples, seed=chance.seed,
    )  # fmt: skip
    contradicting = tuple(found for one in frameworks for found in contradictions(table, panel, one))
    marked = tuple(replace(one, rows=tuple(_marked(row, together.benchmark) for row in one.rows)) for one in rows)
    return Reliability(
        agreement.level, weights, panel, marked, together, tuple(stable), styles(panel.first, kappas), contradicting, line,
        tuple(name for name in table.criteria if name not in judged.criteria),
    )  # fmt: skip


def _kappas(framework: str, row: ReliabilityRow) -> Kappas:
    """The numbers of a row, without their intervals."""
    judges = {name: placed.kappa.value for name, placed in row.judges.items()}
    return Kappas(
        framework, row.criterion, tuple(one.kappa.value for one in row.pairs), judges, row.crowd.kappa.value if row.crowd else None
    )


def _marked(row: ReliabilityRow, benchmark: float | None) -> ReliabilityRow:
    """A row whose judges and crowd say whether they are at the benchmark over all criteria."""

    def mark(placed: Placed) -> Placed:
        return replace(placed, at_overall=at_least(placed.kappa.value, benchmark))

    return replace(row, judges={name: mark(one) for name, one in row.judges.items()}, crowd=mark(row.crowd) if row.crowd else None)


def _rows(
    table: Table, judged: Table, framework: Framework, panel: Panel, agreement: Agreement, chance: Chance
) -> list[tuple[ReliabilityRow, tuple[Stability, ...]]]:
    """The rows of the criteria of a framework, and with each how stable the judges are."""
    factors = _factors(judged, framework, panel, agreement, chance)
    figures = {one.criterion: one for one in agreement.criteria}
    found = []
    for name in framework.criteria:
        ratings, scale = judged.on(name), framework.scales.get(name)
        crowd = crowd_on(table, name, panel, ratings, scale)
        sample = ItemBootstrap.of(ratings.items, chance.resamples, chance.seed)
        on = OnCriterion(ratings, figures[name], panel, crowd, scale, framework.better.get(name), sample)
        found.append((row(on, factors[name]), stability(name, ratings, panel, agreement.level, sample)))
    return found


def _factors(judged: Table, framework: Framework, panel: Panel, agreement: Agreement, chance: Chance) -> dict[str, Measure]:
    """The variance inflation factors of the criteria of a framework, beside each other alone."""
    if set(framework.criteria) == set(judged.criteria):
        return agreement.inflation
    own = judged.of_criteria(framework.criteria)
    return inflation(own, [one for one in panel.experts if one in own.raters], chance.resamples, chance.seed)
