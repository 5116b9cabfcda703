"""Scores against people: how far every metric, shortcut and file of scores goes with what people rated, and every two of them apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.hashing import signature_line
from empathy_eval.design.provenance import KEYS, LongForm
from empathy_eval.evaluation.external.custom_scores import CustomScores, DomainWarning, MetricColumn
from empathy_eval.evaluation.external.custom_texts import CustomTexts
from empathy_eval.evaluation.external.score_file import MOST_PROBLEMS
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.evaluation.inversion.results import PLACES
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.length import Length
from empathy_eval.metrics.protocol import Array, Metric
from empathy_eval.raters.agreement.table import Table
from empathy_eval.raters.people.ensembles import Ensemble, OnPairs, text_of, turned
from empathy_eval.statistics.correlations import BY_RATER, FORMS, IN_CONTEXT, NAMES, RatedScores, of_means, resampled, varies
from empathy_eval.statistics.estimate import Codes, Estimate, Measure, Tested
from empathy_eval.statistics.ranking import holm_corrected
from empathy_eval.statistics.resampling import Pigeonhole, student_p, studentised

# Why there is no interval where nothing can be drawn.
ALONE = "no interval: there is one rater, and all that was rated hangs together"
FORM_SETTINGS = dict(zip(FORMS, ("raw", "within-rater", "within-context", "partial,given:length({length})"), strict=True))
NUMBERS = ("value", "low", "high", "p", "holm", "items")
# What is told of a row in an ensemble, a record each.
MEMBER = ("r", "weight", "low", "high", "clipped")
RECORD = ("table", "criterion", "form", "metric", "other", "figure", *NUMBERS, "why", "signature", "told")


@dataclass(frozen=True)
class Row:
    """A metric against people in one form: its figures ``r``, ``rho`` and ``tau_b``, which say when they are not defined."""

    metric: str
    form: str
    figures: Mapping[str, Measure]
    higher_is_better: bool | None


@dataclass(frozen=True)
class Gap:
    """The figure of one row minus that of another, on the same ratings and resamples."""

    one: str
    other: str
    form: str
    figure: str
    difference: Tested
    signature: str


@dataclass(frozen=True)
class Systems:
    """The figures of the means of systems, by row; without intervals, for few systems decide nothing."""

    names: tuple[str, ...]
    figures: Mapping[str, Mapping[str, Measure]]

    @property
    def told(self) -> str:
        """What is to be said of them."""
        return f"{len(self.names)} systems are too few to decide anything, so the figures have no interval"


@dataclass(frozen=True)
class Criterion:
    """All figures on one criterion, over so many ratings of so many texts; texts are drawn by their ``unit``."""

    criterion: str
    ratings: int
    texts: int
    raters: int
    units: int
    unit: str
    rows: tuple[Row, ...]
    gaps: tuple[Gap, ...]
    systems: Systems | None


@dataclass(frozen=True, repr=False)
class AgainstPeople(LongForm):
    """Scores against people; ``left_out`` ratings are of texts that some row has no score of: how many, by row, says ``lacking``.

    With ``ensembles`` all else is of the test split, and ``on_pairs`` is what they and their rows reach on the pairs of a release.
    """

    columns, numbers = (*KEYS, *RECORD), NUMBERS
    criteria: tuple[Criterion, ...]
    ratings: int
    left_out: int
    lacking: Mapping[str, int]
    outside: tuple[DomainWarning, ...]
    faults: tuple[MetricFault, ...]
    told: tuple[str, ...] = ()
    ensembles: tuple[Ensemble, ...] = ()
    on_pairs: tuple[OnPairs, ...] = ()

    @property
    def headline(self) -> dict[tuple[str, str], Measure]:
        """By criterion and metric Pearson's r with people in the first form, over all ratings as they are, with its interval."""
        return {(one.criterion, row.metric): row.figures["r"] for one in self.criteria for row in one.rows if row.form == one.rows[0].form}

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values; what is not defined is null, with its reason in ``why``."""
        plain = asdict(self) | {"faults": [str(one) for one in self.faults]}
        for one, found in zip(self.criteria, plain["criteria"], strict=True):
            if one.systems:
                found["systems"]["told"] = one.systems.told
        return self._with_provenance(plain)

    def _records(self) -> Iterator[dict[str, Any]]:
        for one in self.criteria:
            for row in one.rows:
                for figure, measure in row.figures.items():
                    yield _record("figures", measure, criterion=one.criterion, form=row.form, metric=row.metric, figure=figure)
            for gap in one.gaps:
                about = {"form": gap.form, "metric": gap.one, "other": gap.other, "figure": gap.figure, "signature": gap.signature}
                yield _record("differences", gap.difference, criterion=one.criterion, **about)
            for name, figures in one.systems.figures.items() if one.systems else ():
                told = one.systems.told if one.systems else ""
                for figure, measure in figures.items():
                    yield _record("systems", measure, criterion=one.criterion, metric=name, figure=figure, told=told)
        for made in self.ensembles:
            for member in made.members:
                about = {"criterion": made.criterion, "metric": made.name, "other": member.row, "signature": made.signature}
                for figure in MEMBER:
                    yield _record("ensembles", **about, figure=figure, value=getattr(member, figure), items=made.texts)
        for pair in self.on_pairs:
            about = {"metric": pair.row, "form": pair.contrast, "figure": "accuracy", "signature": pair.signature}
            yield _record("on pairs", pair.accuracy, **about, items=pair.pairs)
        lacking = [f"{name} has no score of the texts of {count} ratings" for name, count in self.lacking.items()]
        for table, some in (("lacking", lacking), ("told", self.told), ("outside", self.outside), ("faults", self.faults)):
            yield from (_record(table, told=str(one)) for one in some)


def _record(table: str, found: Measure | Estimate | None = None, /, **about: Any) -> dict[str, Any]:
    values = {name: value for name, value in asdict(found).items() if name in RECORD and value is not None} if found else {}
    return dict.fromkeys(RECORD, "") | dict.fromkeys(NUMBERS) | {"table": table} | values | about


def rated_items(table: Table, texts_known: Sequence[str], where: str) -> None:
    """Refuses ratings of items that are none of the texts.

    Raises:
        InputError: that names them.
    """
    known = set(texts_known)
    stray = [item for item in table.items if item not in known]
    fix = "rate the texts that are scored, each by its item"
    more = [Problem(where, f"rates {len(stray) - MOST_PROBLEMS} more unknown items", fix)] if len(stray) > MOST_PROBLEMS else []
    refuse([*(Problem(where, f'"{item}" is rated, but is not an item of the texts', fix) for item in stray[:MOST_PROBLEMS]), *more])


def against_people(
    scores: CustomScores,
    table: Table,
    chance: ResamplingSettings,
    unit: str = "context",
    beside: Mapping[str, Sequence[MetricColumn]] = MappingProxyType({}),
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
    text = text_of(scores.texts, table)
    kept = everywhere[text]
    if not kept.any():
        raise input_error("scores", "no rated text has a score by every row", "leave out the metric or the file that lacks scores")
    criteria = list[Criterion]()
    for number, name in enumerate(table.criteria):
        if (of_criterion := kept & (table.criterion == number)).any():
            columns = replace(scores, columns=(*scores.columns, *beside.get(name, ())))
            criteria.append(_criterion(name, columns, _rated(scores.texts, table, text, of_criterion), chance, unit))
    lacking = {one.metric.name: int((~one.there[text]).sum()) for one in scores.columns if not one.there[text].all()}
    return AgainstPeople(tuple(criteria), int(kept.sum()), int((~kept).sum()), lacking, scores.outside, scores.faults)


def _rated(texts: CustomTexts, table: Table, text: Codes, kept: Array) -> RatedScores:
    rows = np.flatnonzero(kept)

    def numbered(names: Sequence[str]) -> Codes:
        number = {name: place for place, name in enumerate(dict.fromkeys(names))}
        return np.array([number[name] for name in names], dtype=np.int64)[text[rows]]

    rater, unit = (np.unique(codes, return_inverse=True)[1].astype(np.int64) for codes in (table.rater[rows], numbered(texts.units)))
    return RatedScores(text[rows], rater, unit, numbered(texts.contexts_of), table.rating[rows])


def _criterion(name: str, scores: CustomScores, rated: RatedScores, chance: ResamplingSettings, unit: str) -> Criterion:
    draws = Pigeonhole.of(rated.rater, rated.unit, chance.resamples, chance.seed)
    # 0 where there is no score: no rating is of such a text.
    columns = [np.where(np.isnan(own := turned(one.scores, one.metric.higher_is_better)), 0.0, own) for one in scores.columns]
    length = Length(scores.texts.language)
    lengths = np.array([length.score(text) for text in scores.texts.replies])
    found = resampled(rated, columns, lengths, draws)
    rows, gaps, names = list[Row](), list[Gap](), [one.metric.name for one in scores.columns]
    texts = len(np.unique(rated.text))
    for form in FORMS:
        said = FORM_SETTINGS[form].format(length=length.signature)
        how = (signature_line(form=said, r="pearson", rho="spearman,midranks", tau="kendall,b"), draws.signature(unit))
        for column, values, own in zip(scores.columns, found[form], columns, strict=True):
            sign = ["sign:turned-round"] if column.metric.higher_is_better is False else []
            signature = "|".join([column.metric.signature, *sign, *how])
            why = _why(form, rated, own, lengths)
            figures = {which: Measure.of(values[:, place], texts, "rated", why, signature) for place, which in enumerate(NAMES)}
            if not draws.drawn:
                figures = {name: one if one.value is None else replace(one, why=ALONE) for name, one in figures.items()}
            rows.append(Row(column.metric.name, form, figures, column.metric.higher_is_better))
        gaps += _gaps(form, names, found[form], draws, how)
    return Criterion(name, len(rated), texts, draws.raters, draws.units, unit, tuple(rows), tuple(gaps), _systems(scores, rated, columns))


def _why(form: str, rated: RatedScores, scores: Array, lengths: Array) -> str:
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
        known = [(names[one], names[other], gap) for one, other, gap in twos if np.isfinite(gap[0])]
        found = holm_corrected([_tested(gap, draws) for *_, gap in known], PLACES)
        made += [Gap(one, other, form, which, gap, line) for (one, other, _), gap in zip(known, found, strict=True)]
    return made


def _tested(values: Array, draws: Pigeonhole) -> Tested:
    """A difference with the interval and the p-value of the spread of its resamples and Student's distribution."""
    value, drawn = round(float(values[0]), PLACES) + 0.0, values[1:][np.isfinite(values[1:])]
    if draws.freedom < 1 or len(drawn) < max(2, 0.95 * (len(values) - 1)):
        return Tested(value)
    error = float(drawn.std(ddof=1))
    low, high = (end + 0.0 for end in studentised(value, drawn, draws.freedom, PLACES))
    p = student_p(value / error, draws.freedom) if error > 0 else float(value == 0)
    return Tested(value, low, high, round(p, PLACES))


def _systems(scores: CustomScores, rated: RatedScores, columns: Sequence[Array]) -> Systems | None:
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

    def measure(value: float, metric: Metric) -> Measure:
        signature = f"{metric.signature}|{line}"
        if not np.isfinite(value):
            return Measure.undefined(why, signature, len(names))
        return Measure(round(float(value), PLACES) + 0.0, None, None, len(names), None, signature)

    metrics = [column.metric for column in scores.columns]
    rows = zip(metrics, found, strict=True)
    return Systems(tuple(names), {one.name: dict(zip(NAMES, (measure(value, one) for value in row), strict=True)) for one, row in rows})
