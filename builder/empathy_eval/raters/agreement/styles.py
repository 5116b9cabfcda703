"""Judges by model and by style: which way of asking which model comes closest to the median expert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from empathy_eval.raters.agreement.benchmark import ALIKE
from empathy_eval.raters.agreement.bootstrap import Measure
from empathy_eval.raters.agreement.overall import Spread, spread
from empathy_eval.raters.agreement.panel import Judge


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
    if len({(_model(one), one.style) for one in judges}) < 2:
        return None
    rows = tuple(_row(criterion, [of.get(one.rater) for one in judges]) for criterion, of in kappas.items())
    columns = tuple(_column(place, one, rows) for place, one in enumerate(judges))
    return Styles(columns, rows, _wins(judges, rows))


def _model(judge: Judge) -> str:
    return judge.model or judge.judge


def _row(criterion: str, kappas: Sequence[Measure | None]) -> OnCriterion:
    return OnCriterion(criterion, tuple(kappas), _best(kappas, range(len(kappas))))


def _best(kappas: Sequence[Measure | None], among: Sequence[int]) -> tuple[int, ...]:
    """Which of some have the highest kappa; none where fewer than two have one, for then nobody was better."""
    values = {place: one.value for place in among if (one := kappas[place]) is not None and one.value is not None}
    return tuple(place for place, value in values.items() if value >= max(values.values()) - ALIKE) if len(values) > 1 else ()


def _column(place: int, judge: Judge, rows: Sequence[OnCriterion]) -> Column:
    own = [row.kappas[place] for row in rows]
    line = next((one.signature for one in own if one), "")
    kappas = spread((one.value if one else None for one in own), line)
    return Column(judge.rater, _model(judge), judge.style, kappas, sum(place in row.best for row in rows))


def _wins(judges: Sequence[Judge], rows: Sequence[OnCriterion]) -> tuple[StyleWins, ...]:
    best: dict[str, list[bool]] = {style: [] for style in dict.fromkeys(one.style for one in judges) if style}
    for model in dict.fromkeys(map(_model, judges)):
        places = [place for place, one in enumerate(judges) if _model(one) == model and one.style]
        if len({judges[place].style for place in places}) < 2:
            continue
        for row in rows:
            won = {judges[place].style for place in _best(row.kappas, places)}
            entered = {judges[place].style for place in places if (one := row.kappas[place]) is not None and one.value is not None}
            for style, found in best.items():
                if won and style in entered:
                    found.append(style in won)
    return tuple(StyleWins(style, sum(found), len(found)) for style, found in best.items())
