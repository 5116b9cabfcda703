"""Correlation of metrics, shortcuts and score files with people's ratings, and the differences of every two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.hashing import signature_line
from empathy_eval.base.json_text import fields_json
from empathy_eval.design.provenance import KEYS, LongForm
from empathy_eval.evaluation.external.custom_texts import CustomScores, CustomTexts, DomainWarning, MetricColumn
from empathy_eval.evaluation.external.score_file import MOST_PROBLEMS
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.evaluation.inversion.results import PLACES
from empathy_eval.evaluation.inversion.rows import Failures
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.lexical import Length
from empathy_eval.metrics.protocol import Array, Metric
from empathy_eval.raters.agreement.table import RatingTable
from empathy_eval.raters.people.ensembles import Ensemble, PairAccuracy, oriented, text_of
from empathy_eval.statistics.correlations import (
    BY_RATER,
    FORMS,
    IN_CONTEXT,
    NAMES,
    Pigeonhole,
    RatedScores,
    correlations_of_means,
    resampled_correlations,
    varies,
)
from empathy_eval.statistics.estimate import SIGNED, TESTED, Codes, Estimate, holm_corrected, student_interval, student_p

# Reason for a missing interval if nothing can be resampled.
NOTHING_TO_DRAW = "no interval: there is one rater, and all that was rated hangs together"
FORM_SETTINGS = dict(zip(FORMS, ("raw", "within-rater", "within-context", "partial,given:length({length})"), strict=True))
NUMBERS = ("value", "low", "high", "p", "holm", "items")
# Figures of a row in an ensemble, a record each.
MEMBER = ("r", "weight", "low", "high", "clipped")
RECORD = ("table", "criterion", "form", "metric", "other", "figure", *NUMBERS, "why", "signature", "told")


@dataclass(frozen=True)
class CorrelationRow:
    """Correlation of a metric with people in one form: ``r``, ``rho`` and ``tau_b``, with reasons if undefined."""

    metric: str
    form: str
    figures: Mapping[str, Estimate]
    higher_is_better: bool | None


@dataclass(frozen=True)
class CorrelationDifference:
    """The figure of one row minus that of another, on the same ratings and resamples."""

    first: str = field(metadata={"name": "one"})
    other: str
    form: str
    figure: str
    difference: Estimate = field(metadata=TESTED)
    signature: str


@dataclass(frozen=True)
class SystemCorrelations:
    """Correlations of the means of systems, by row; without intervals, because systems are few."""

    names: tuple[str, ...]
    figures: Mapping[str, Mapping[str, Estimate]]

    @property
    def note(self) -> str:
        """Note on these figures."""
        return f"{len(self.names)} systems are too few to decide anything, so the figures have no interval"


@dataclass(frozen=True)
class CriterionCorrelations:
    """All figures on one criterion, over so many ratings of so many texts; texts are resampled by their ``unit``."""

    criterion: str
    ratings: int
    texts: int
    raters: int
    units: int
    unit: str
    rows: tuple[CorrelationRow, ...]
    gaps: tuple[CorrelationDifference, ...]
    systems: SystemCorrelations | None


@dataclass(frozen=True, repr=False)
class AgainstPeople(LongForm):
    """Scores against people; ``left_out`` ratings are of texts without a score in some row: ``lacking`` counts them by row.

    With ``ensembles`` all else is of the test split, and ``on_pairs`` is the accuracy of them and their rows on the pairs of a release.
    """

    columns, numbers = (*KEYS, *RECORD), NUMBERS
    criteria: tuple[CriterionCorrelations, ...]
    ratings: int
    left_out: int
    lacking: Mapping[str, int]
    outside: tuple[DomainWarning, ...]
    faults: tuple[MetricFault, ...]
    notes: tuple[str, ...] = field(default=(), metadata={"name": "told"})
    ensembles: tuple[Ensemble, ...] = ()
    on_pairs: tuple[PairAccuracy, ...] = ()
    failures: Failures | None = None

    @property
    def headline(self) -> dict[tuple[str, str], Estimate]:
        """By criterion and metric Pearson's r with people in the first form, over all ratings as they are, with its interval."""
        rows = ((criterion.criterion, row) for criterion in self.criteria for row in criterion.rows if row.form == criterion.rows[0].form)
        return {(criterion, row.metric): row.figures["r"] for criterion, row in rows}

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values; undefined values are null, with a reason in ``why``."""
        plain = fields_json(self) | {"faults": [str(fault) for fault in self.faults]}
        for criterion, plain_criterion in zip(self.criteria, plain["criteria"], strict=True):
            if criterion.systems:
                plain_criterion["systems"]["told"] = criterion.systems.note
        if self.failures is None:
            del plain["failures"]
        return self._with_provenance(plain)

    def _records(self) -> Iterator[dict[str, Any]]:
        for criterion in self.criteria:
            for row in criterion.rows:
                for figure, measure in row.figures.items():
                    yield _record("figures", measure, criterion=criterion.criterion, form=row.form, metric=row.metric, figure=figure)
            for gap in criterion.gaps:
                about = {"form": gap.form, "metric": gap.first, "other": gap.other, "figure": gap.figure, "signature": gap.signature}
                yield _record("differences", gap.difference, criterion=criterion.criterion, **about)
            for name, figures in criterion.systems.figures.items() if criterion.systems else ():
                note = criterion.systems.note if criterion.systems else ""
                for figure, measure in figures.items():
                    yield _record("systems", measure, criterion=criterion.criterion, metric=name, figure=figure, told=note)
        for ensemble in self.ensembles:
            for member in ensemble.members:
                about = {"criterion": ensemble.criterion, "metric": ensemble.name, "other": member.row, "signature": ensemble.signature}
                for figure in MEMBER:
                    yield _record("ensembles", **about, figure=figure, value=getattr(member, figure), items=ensemble.texts)
        for pair in self.on_pairs:
            about = {"metric": pair.row, "form": pair.contrast, "figure": "accuracy", "signature": pair.signature}
            yield _record("on pairs", pair.accuracy, **about, items=pair.pairs)
        lacking = [f"{name} has no score of the texts of {count} ratings" for name, count in self.lacking.items()]
        for table, texts in (("lacking", lacking), ("told", self.notes), ("outside", self.outside), ("faults", self.faults)):
            yield from (_record(table, told=str(text)) for text in texts)


def _record(table: str, estimate: Estimate | None = None, /, **about: Any) -> dict[str, Any]:
    written = estimate.written(*(() if estimate.signature else SIGNED)) if estimate else {}
    return {"table": table} | {name: value for name, value in written.items() if value is not None} | about


def refuse_unknown_items(table: RatingTable, texts_known: Sequence[str], where: str) -> None:
    """Refuse ratings of unknown items.

    Raises:
        InputError: that names them.
    """
    known = set(texts_known)
    stray = [item for item in table.items if item not in known]
    fix = "rate the texts that are scored, each by its item"
    more = [Problem(where, f"rates {len(stray) - MOST_PROBLEMS} more unknown items", fix)] if len(stray) > MOST_PROBLEMS else []
    refuse([*(Problem(where, f'"{item}" is rated, but is not an item of the texts', fix) for item in stray[:MOST_PROBLEMS]), *more])


def correlate_with_people(
    scores: CustomScores,
    table: RatingTable,
    chance: ResamplingSettings,
    unit: str = "context",
    more_columns: Mapping[str, Sequence[MetricColumn]] = MappingProxyType({}),
) -> AgainstPeople:
    """Correlate every column of scores with the ratings of the same texts, on each criterion.

    All rows use the same ratings: those of texts that have a score in every column. Scores of which lower is better are negated. ``unit``
    is what texts are resampled by, for the signature; ``more_columns`` has further columns by criterion, computed from the others.

    Raises:
        InputError: for a rated item that is none of the texts, columns of one name, and if no rated text has a score in every column.
    """
    refuse_unknown_items(table, scores.texts.items, "ratings")
    names = [column.metric.name for column in scores.columns]
    if twice := [name for index, name in enumerate(names) if name in names[:index]]:
        raise input_error("scores", f'there are two rows with the name "{twice[0]}"', "give a file of scores a name of its own")
    everywhere = np.all([column.scored for column in scores.columns], axis=0) if scores.columns else np.zeros(len(scores.texts), dtype=bool)
    text = text_of(scores.texts, table)
    rated = everywhere[text]
    if not rated.any():
        raise input_error("scores", "no rated text has a score by every row", "leave out the metric or the file that lacks scores")
    criteria = list[CriterionCorrelations]()
    for number, name in enumerate(table.criteria):
        if (of_criterion := rated & (table.criterion == number)).any():
            columns = replace(scores, columns=(*scores.columns, *more_columns.get(name, ())))
            criteria.append(_criterion(name, columns, _rated(scores.texts, table, text, of_criterion), chance, unit))
    lacking = {column.metric.name: int((~column.scored[text]).sum()) for column in scores.columns if not column.scored[text].all()}
    return AgainstPeople(tuple(criteria), int(rated.sum()), int((~rated).sum()), lacking, scores.outside, scores.faults)


def _rated(texts: CustomTexts, table: RatingTable, text: Codes, mask: Array) -> RatedScores:
    rows = np.flatnonzero(mask)

    def numbered(names: Sequence[str]) -> Codes:
        number = {name: index for index, name in enumerate(dict.fromkeys(names))}
        return np.array([number[name] for name in names], dtype=np.int64)[text[rows]]

    rater, unit = (np.unique(codes, return_inverse=True)[1].astype(np.int64) for codes in (table.rater[rows], numbered(texts.units)))
    return RatedScores(text[rows], rater, unit, numbered(texts.contexts_of), table.rating[rows])


def _criterion(name: str, scores: CustomScores, rated: RatedScores, chance: ResamplingSettings, unit: str) -> CriterionCorrelations:
    draws = Pigeonhole.of(rated.rater, rated.unit, chance.resamples, chance.seed)
    # 0 for a missing score, because no rating is of such a text.
    columns = [np.where(np.isnan(own := oriented(column.scores, column.metric.higher_is_better)), 0.0, own) for column in scores.columns]
    length = Length(scores.texts.language)
    lengths = np.array([length.score(text) for text in scores.texts.replies])
    values_of = resampled_correlations(rated, columns, lengths, draws)
    rows, gaps, names = list[CorrelationRow](), list[CorrelationDifference](), [column.metric.name for column in scores.columns]
    texts = len(np.unique(rated.text))
    for form in FORMS:
        setting = FORM_SETTINGS[form].format(length=length.signature)
        how = (signature_line(form=setting, r="pearson", rho="spearman,midranks", tau="kendall,b"), draws.signature(unit))
        for column, values, own in zip(scores.columns, values_of[form], columns, strict=True):
            sign = ["sign:turned-round"] if column.metric.higher_is_better is False else []
            signature = "|".join([column.metric.signature, *sign, *how])
            why = _why(form, rated, own, lengths)
            figures = {which: Estimate.of_resamples(values[:, index], texts, "rated", why, signature) for index, which in enumerate(NAMES)}
            if not draws.drawn:
                defined = {name: measure for name, measure in figures.items() if measure.value is not None}
                figures |= {name: replace(measure, reason=NOTHING_TO_DRAW) for name, measure in defined.items()}
            rows.append(CorrelationRow(column.metric.name, form, figures, column.metric.higher_is_better))
        gaps += _differences(form, names, values_of[form], draws, how)
    systems = _systems(scores, rated, columns)
    return CriterionCorrelations(name, len(rated), texts, draws.raters, draws.units, unit, tuple(rows), tuple(gaps), systems)


def _why(form: str, rated: RatedScores, scores: Array, lengths: Array) -> str:
    """Reason why a figure of this form is undefined, if it is."""
    groups, own, long = rated.groups(form), scores[rated.text], lengths[rated.text]
    within = {BY_RATER: " within every rater", IN_CONTEXT: " within every context"}.get(form, "")
    if form in (BY_RATER, IN_CONTEXT) and not varies(rated.text, groups):
        return "no rater rated two texts" if form == BY_RATER else "no context has two rated texts"
    if not varies(rated.rating, groups):
        return f"all ratings are alike{within}"
    if not varies(own, groups):
        return f"all scores are alike{within}"
    return "all texts are of one length" if not varies(long, groups) else "the scores or the ratings depend on length alone"


def _differences(form: str, names: Sequence[str], values: Array, draws: Pigeonhole, how: tuple[str, str]) -> list[CorrelationDifference]:
    """Differences of every two rows, on the same resamples; p-values are corrected over all of them, each coefficient by itself."""
    line = f"{how[0]}|p:student,two-sided|interval:student,freedom:{draws.degrees_of_freedom}|{how[1]}"
    gaps = list[CorrelationDifference]()
    for number, which in enumerate(NAMES):
        twos = [(first, other, values[first, :, number] - values[other, :, number]) for first, other in combinations(range(len(names)), 2)]
        known = [(names[first], names[other], gap) for first, other, gap in twos if np.isfinite(gap[0])]
        corrected = holm_corrected([_tested(gap, draws) for *_, gap in known], PLACES)
        gaps += [
            CorrelationDifference(first, other, form, which, gap, line) for (first, other, _), gap in zip(known, corrected, strict=True)
        ]
    return gaps


def _tested(values: Array, draws: Pigeonhole) -> Estimate:
    """A difference with its interval and p-value from the spread of its resamples and Student's distribution."""
    value, drawn = round(float(values[0]), PLACES) + 0.0, values[1:][np.isfinite(values[1:])]
    if draws.degrees_of_freedom < 1 or len(drawn) < max(2, 0.95 * (len(values) - 1)):
        return Estimate(value)
    error = float(drawn.std(ddof=1))
    low, high = (end + 0.0 for end in student_interval(value, drawn, draws.degrees_of_freedom, PLACES))
    p = student_p(value / error, draws.degrees_of_freedom) if error > 0 else float(value == 0)
    return Estimate(value, low, high, round(p, PLACES))


def _systems(scores: CustomScores, rated: RatedScores, columns: Sequence[Array]) -> SystemCorrelations | None:
    """Correlations of the means of systems; None if texts have no system."""
    systems = np.array(scores.texts.systems)[rated.text]
    names = sorted(set(systems.tolist()))
    if names == [""]:
        return None
    ratings = np.array([rated.rating[systems == name].mean() for name in names])
    # Weighted by ratings, as all figures: a text counts as often as it was rated.
    means = [np.array([column[rated.text[systems == name]].mean() for name in names]) for column in columns]
    line = signature_line(level="system", mean="over-ratings", r="pearson", rho="spearman,midranks", tau="kendall,b", systems=len(names))
    # The correlation of two points is always 1 or -1.
    few = len(names) < 3
    why = ("only one system" if len(names) < 2 else "only two systems") if few else "all means are alike"
    coefficients = correlations_of_means(ratings, means) if not few else np.full((len(columns), len(NAMES)), np.nan)

    def measure(value: float, metric: Metric) -> Estimate:
        signature = f"{metric.signature}|{line}"
        if not np.isfinite(value):
            return Estimate.undefined(why, signature, len(names))
        return Estimate(round(float(value), PLACES) + 0.0, n=len(names), signature=signature)

    metrics = [column.metric for column in scores.columns]
    rows = zip(metrics, coefficients, strict=True)
    figures = {metric.name: {name: measure(row[index], metric) for index, name in enumerate(NAMES)} for metric, row in rows}
    return SystemCorrelations(tuple(names), figures)
