"""How reliable people and judges are, criterion by criterion and framework by framework: all that ``agree --page`` shows."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from empathy_eval.base.hashing import signature_line
from empathy_eval.design.provenance import Result
from empathy_eval.evaluation.inversion import Chance
from empathy_eval.raters.agreement.agree import Agreement
from empathy_eval.raters.agreement.alpha import LEVELS
from empathy_eval.raters.agreement.bootstrap import Measure, Resampling
from empathy_eval.raters.agreement.contradictions import Contradiction, contradictions
from empathy_eval.raters.agreement.crowd import crowd_on
from empathy_eval.raters.agreement.kappa import WEIGHTS
from empathy_eval.raters.agreement.overall import Kappas, Overall, at_least, overall
from empathy_eval.raters.agreement.panel import Framework, Panel
from empathy_eval.raters.agreement.reliability_rows import OnCriterion, Placed, ReliabilityRow, row
from empathy_eval.raters.agreement.stability import Stability, stability
from empathy_eval.raters.agreement.styles import Styles, styles
from empathy_eval.raters.agreement.table import Table
from empathy_eval.raters.agreement.variance_inflation import inflation


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
        sample = Resampling.of(ratings.items, chance.resamples, chance.seed)
        on = OnCriterion(ratings, figures[name], panel, crowd, scale, framework.better.get(name), sample)
        found.append((row(on, factors[name]), stability(name, ratings, panel, agreement.level, sample)))
    return found


def _factors(judged: Table, framework: Framework, panel: Panel, agreement: Agreement, chance: Chance) -> dict[str, Measure]:
    """The variance inflation factors of the criteria of a framework, beside each other alone."""
    if set(framework.criteria) == set(judged.criteria):
        return agreement.inflation
    own = judged.of_criteria(framework.criteria)
    return inflation(own, [one for one in panel.experts if one in own.raters], chance.resamples, chance.seed)
