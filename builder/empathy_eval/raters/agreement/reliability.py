"""How reliable people and judges are, criterion by criterion and framework by framework: all that ``agree --page`` shows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from empathy_eval.base.hashing import signature_line
from empathy_eval.evaluation.inversion import Chance
from empathy_eval.raters.agreement.agree import Agreement
from empathy_eval.raters.agreement.alpha import LEVELS
from empathy_eval.raters.agreement.bootstrap import Measure, Resampling
from empathy_eval.raters.agreement.crowd import crowd_on
from empathy_eval.raters.agreement.kappa import WEIGHTS
from empathy_eval.raters.agreement.panel import Framework, Panel
from empathy_eval.raters.agreement.reliability_rows import OnCriterion, ReliabilityRow, row
from empathy_eval.raters.agreement.table import Table
from empathy_eval.raters.agreement.variance_inflation import inflation


@dataclass(frozen=True)
class InFramework:
    """A framework and the rows of its criteria, in its order."""

    framework: Framework
    rows: tuple[ReliabilityRow, ...]


@dataclass(frozen=True)
class Reliability:
    """All figures of a page: ``weights`` are those of every kappa, ``level`` is that of every alpha of a group."""

    level: str
    weights: str
    panel: Panel
    frameworks: tuple[InFramework, ...]
    overall: Any
    stability: Any
    styles: Any
    contradictions: Any
    signature: str

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON values; what is not defined is null, with its reason in ``why``."""
        return asdict(self)


def reliability(table: Table, panel: Panel, frameworks: tuple[Framework, ...], agreement: Agreement, chance: Chance) -> Reliability:
    """All figures of the raters of a table, who are as ``panel`` says, by framework.

    ``agreement`` is that of the experts and judges, without the crowd, by the same draws of items.
    """
    weights = WEIGHTS[LEVELS.index(agreement.level)]
    judged = table.without(panel.crowd)
    found = tuple(InFramework(one, _rows(table, judged, one, panel, agreement, chance)) for one in frameworks)
    line = signature_line(
        level=agreement.level, weights=weights, experts=len(panel.experts), judges=len(panel.first), crowd=len(panel.crowd),
        crowd_as=panel.crowd_as, resamples=chance.resamples, seed=chance.seed,
    )  # fmt: skip
    return Reliability(agreement.level, weights, panel, found, None, None, None, None, line)


def _rows(
    table: Table, judged: Table, framework: Framework, panel: Panel, agreement: Agreement, chance: Chance
) -> tuple[ReliabilityRow, ...]:
    factors = _factors(judged, framework, panel, agreement, chance)
    figures = {one.criterion: one for one in agreement.criteria}
    rows = []
    for name in framework.criteria:
        ratings, scale = judged.on(name), framework.scales.get(name)
        crowd = crowd_on(table, name, panel, ratings, scale)
        sample = Resampling.of(ratings.items, chance.resamples, chance.seed)
        rows.append(row(OnCriterion(ratings, figures[name], panel, crowd, scale, framework.better.get(name), sample), factors[name]))
    return tuple(rows)


def _factors(judged: Table, framework: Framework, panel: Panel, agreement: Agreement, chance: Chance) -> dict[str, Measure]:
    """The variance inflation factors of the criteria of a framework, beside each other alone."""
    if set(framework.criteria) == set(judged.criteria):
        return agreement.inflation
    own = judged.of_criteria(framework.criteria)
    return inflation(own, [one for one in panel.experts if one in own.raters], chance.resamples, chance.seed)
