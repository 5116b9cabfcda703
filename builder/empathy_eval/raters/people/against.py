"""Scores against people: how far every metric, shortcut and file of scores goes with what people rated, and every two of them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from types import MappingProxyType

import numpy as np

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.base.hashing import signature_line
from empathy_eval.evaluation.external.custom_scores import Column, Scores
from empathy_eval.evaluation.external.custom_texts import Texts
from empathy_eval.evaluation.external.score_file import MOST_PROBLEMS
from empathy_eval.evaluation.inversion.inversion import Chance
from empathy_eval.evaluation.inversion.results import PLACES
from empathy_eval.metrics.length import Length
from empathy_eval.metrics.protocol import Array
from empathy_eval.raters.agreement.table import Table
from empathy_eval.raters.people.results import AgainstPeople, Criterion, Gap, Row, Systems
from empathy_eval.statistics.correlations import (
    BY_RATER,
    FORMS,
    GIVEN_LENGTH,
    IN_CONTEXT,
    NAMES,
    RAW,
    Rated,
    of_means,
    resampled,
    varies,
)
from empathy_eval.statistics.estimate import Measure, Tested
from empathy_eval.statistics.ranking import holm
from empathy_eval.statistics.resampling import Pigeonhole, Places, student, student_p


def rated_items(table: Table, texts_known: Sequence[str], where: str) -> None:
    """Refuses ratings of items that are none of the texts.

    Raises:
        InputError: that names them.
    """
    known = set(texts_known)
    stray = [item for item in table.items if item not in known]
    if stray:
        fix = "rate the texts that are scored, each by its item"
        more = [Problem(where, f"rates {len(stray) - MOST_PROBLEMS} more unknown items", fix)] if len(stray) > MOST_PROBLEMS else []
        raise InputError(
            [*(Problem(where, f'"{item}" is rated, but is not an item of the texts', fix) for item in stray[:MOST_PROBLEMS]), *more]
        )


def against_people(
    scores: Scores, table: Table, chance: Chance, unit: str = "context", beside: Mapping[str, Sequence[Column]] = MappingProxyType({})
) -> AgainstPeople:
    """How far every column of scores goes with the ratings of the same texts, on each criterion.

    All rows are over the same ratings: those of texts that every column has a score of. Scores of which lower is better are turned round.
    ``unit`` is what texts are drawn by, said in the settings; ``beside`` has columns more for a criterion, made of the others.

    Raises:
        InputError: for a rated item that is none of the texts, columns of one name, and if no rated text has a score by all.
    """
    rated_items(table, scores.texts.items, "ratings")
    names = [one.metric.name for one in scores.columns]
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise input_error("scores", f'there are two rows with the name "{twice[0]}"', "give a file of scores a name of its own")
    everywhere = np.all([one.there for one in scores.columns], axis=0) if scores.columns else np.zeros(len(scores.texts), dtype=bool)
    place = {item: row for row, item in enumerate(scores.texts.items)}
    text = np.array([place[item] for item in table.items], dtype=np.int64)[table.item]
    kept = everywhere[text]
    if not kept.any():
        raise input_error("scores", "no rated text has a score by every row", "leave out the metric or the file that lacks scores")
    criteria = tuple(
        _criterion(
            name, _with(scores, beside.get(name, ())), _rated(scores.texts, table, text, kept & (table.criterion == number)), chance, unit
        )
        for number, name in enumerate(table.criteria)
        if (kept & (table.criterion == number)).any()
    )
    lacking = {one.metric.name: int((~one.there[text]).sum()) for one in scores.columns if not one.there[text].all()}
    return AgainstPeople(criteria, int(kept.sum()), int((~kept).sum()), lacking, scores.outside, scores.faults)


def _with(scores: Scores, columns: Sequence[Column]) -> Scores:
    return replace(scores, columns=(*scores.columns, *columns))


def _rated(texts: Texts, table: Table, text: Places, kept: Array) -> Rated:
    rows = np.flatnonzero(kept)
    numbers = [{name: number for number, name in enumerate(dict.fromkeys(names))} for names in (texts.units, texts.contexts_of)]
    units, contexts = (
        np.array([known[name] for name in names], dtype=np.int64)[text[rows]]
        for known, names in zip(numbers, (texts.units, texts.contexts_of), strict=True)
    )
    rater, unit = (np.unique(codes, return_inverse=True)[1].astype(np.int64) for codes in (table.rater[rows], units))
    return Rated(text[rows], rater, unit, contexts, table.rating[rows])


def _scores(column: Column) -> Array:
    return -column.scores if column.metric.higher_is_better is False else column.scores


def _criterion(name: str, scores: Scores, rated: Rated, chance: Chance, unit: str) -> Criterion:
    draws = Pigeonhole.of(rated.rater, rated.unit, chance.resamples, chance.seed)
    columns = [_filled(_scores(one)) for one in scores.columns]
    length = Length(scores.texts.language)
    lengths = np.array([length.score(text) for text in scores.texts.replies])
    found = resampled(rated, columns, lengths, draws)
    rows, gaps, names = list[Row](), list[Gap](), [one.metric.name for one in scores.columns]
    texts = len(np.unique(rated.text))
    for form in FORMS:
        how = (_settings(form, length), draws.signature(unit))
        for column, values, own in zip(scores.columns, found[form], columns, strict=True):
            turned = "|sign:turned-round" if column.metric.higher_is_better is False else ""
            signature = "|".join([f"{column.metric.signature}{turned}", *how])
            why = _why(form, rated, own, lengths)
            figures = {which: Measure.of(values[:, place], texts, "rated", why, signature) for place, which in enumerate(NAMES)}
            rows.append(Row(column.metric.name, form, _no_draws(figures, draws), column.metric.higher_is_better))
        gaps += _gaps(form, names, found[form], draws, how)
    return Criterion(name, len(rated), texts, draws.raters, draws.units, unit, tuple(rows), tuple(gaps), _systems(scores, rated, columns))


def _no_draws(figures: dict[str, Measure], draws: Pigeonhole) -> dict[str, Measure]:
    """Says why there is no interval where nothing can be drawn."""
    alone = "no interval: there is one rater, and all that was rated hangs together"
    return {name: replace(one, why=alone) if one.value is not None and not draws.drawn else one for name, one in figures.items()}


def _filled(values: Array) -> Array:
    """Scores with 0 where there is none: no rating is of such a text."""
    return np.where(np.isnan(values), 0.0, values)


def _settings(form: str, length: Length) -> str:
    said = {
        RAW: "raw", BY_RATER: "within-rater", IN_CONTEXT: "within-context",
        GIVEN_LENGTH: f"partial,given:length({length.signature})",
    }  # fmt: skip
    return signature_line(form=said[form], r="pearson", rho="spearman,midranks", tau="kendall,b")


def _why(form: str, rated: Rated, scores: Array, lengths: Array) -> str:
    """Why a figure of this form is not defined, if it is not."""
    groups, own, long = rated.groups(form), scores[rated.text], lengths[rated.text]
    within = {BY_RATER: " within every rater", IN_CONTEXT: " within every context"}.get(form, "")
    if form in (BY_RATER, IN_CONTEXT) and not varies(rated.text, groups):
        return "no rater rated two texts" if form == BY_RATER else "no context has two rated texts"
    if not varies(rated.rating, groups):
        return f"all ratings are alike{within}"
    if not varies(own, groups):
        return f"all scores are alike{within}"
    return "all texts are of one length" if not varies(long, groups) else "the scores or the ratings depend on length alone"


def _gaps(form: str, names: Sequence[str], values: Array, draws: Pigeonhole, how: tuple[str, str]) -> list[Gap]:
    """Every two rows, on the same resamples; p-values are corrected over all of them, a coefficient by itself."""
    line = f"{how[0]}|p:student,two-sided|interval:student,freedom:{draws.freedom}|{how[1]}"
    made = list[Gap]()
    for number, which in enumerate(NAMES):
        twos = [(one, other, values[one, :, number] - values[other, :, number]) for one, other in combinations(range(len(names)), 2)]
        found = [(names[one], names[other], _tested(gap, draws)) for one, other, gap in twos if np.isfinite(gap[0])]
        ps = iter(holm([one.p for *_, one in found if one.p is not None]))
        for one, other, gap in found:
            difference = gap if gap.p is None else replace(gap, holm=round(next(ps), PLACES))
            made.append(Gap(one, other, form, which, difference, line))
    return made


def _tested(values: Array, draws: Pigeonhole) -> Tested:
    """A difference with the interval and the p-value of the spread of its resamples and Student's distribution."""
    value, drawn = round(float(values[0]), PLACES) + 0.0, values[1:][np.isfinite(values[1:])]
    if draws.freedom < 1 or len(drawn) < max(2, 0.95 * (len(values) - 1)):
        return Tested(value)
    error = float(drawn.std(ddof=1))
    half = student(draws.freedom) * error
    p = student_p(value / error, draws.freedom) if error > 0 else float(value == 0)
    return Tested(value, round(value - half, PLACES) + 0.0, round(value + half, PLACES) + 0.0, round(p, PLACES))


def _systems(scores: Scores, rated: Rated, columns: Sequence[Array]) -> Systems | None:
    """The means of systems beside each other; None where texts have no system."""
    systems = np.array(scores.texts.systems)[rated.text]
    names = sorted(set(systems.tolist()))
    if names == [""]:
        return None
    ratings = np.array([rated.rating[systems == name].mean() for name in names])
    # The same ratings as everywhere: a text counts as often as it was rated.
    means = [np.array([one[rated.text[systems == name]].mean() for name in names]) for one in columns]
    line = signature_line(level="system", mean="over-ratings", r="pearson", rho="spearman,midranks", tau="kendall,b", systems=len(names))
    # Of two means every correlation is 1 or -1, whatever they are.
    few = len(names) < 3
    why = ("only one system" if len(names) < 2 else "only two systems") if few else "all means are alike"
    found = of_means(ratings, means) if not few else np.full((len(columns), len(NAMES)), np.nan)
    return Systems(
        tuple(names),
        {
            column.metric.name: {
                which: Measure(round(float(value), PLACES) + 0.0, None, None, len(names), None, f"{column.metric.signature}|{line}")
                if np.isfinite(value)
                else Measure.undefined(why, f"{column.metric.signature}|{line}", len(names))
                for which, value in zip(NAMES, row, strict=True)
            }
            for column, row in zip(scores.columns, found, strict=True)
        },
    )  # fmt: skip
