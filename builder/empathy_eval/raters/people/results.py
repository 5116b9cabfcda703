"""The table of scores against people: figures by row and form, differences of rows, and means of systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import signature_line
from empathy_eval.base.printed import data_frame
from empathy_eval.base.tabular import WHOLE
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS, PAIRS, TWO_BY_TWO, Contrast
from empathy_eval.design.provenance import KEYS, Result
from empathy_eval.evaluation.corpus.pairs import Corpus, read_corpus
from empathy_eval.evaluation.external.custom_scores import Column, Outside
from empathy_eval.evaluation.external.score_file import Given
from empathy_eval.evaluation.inversion.inversion import Chance, accuracies
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.protocol import Array, Metric
from empathy_eval.metrics.registry import Found
from empathy_eval.metrics.scoring import Scoring, statistics_of
from empathy_eval.raters.people.ensembles import MEASURED_ON, Ensemble, turned
from empathy_eval.statistics.estimate import Estimate, Measure, Tested
from empathy_eval.statistics.ranking import Duels
from empathy_eval.statistics.resampling import Clusters

if TYPE_CHECKING:
    import pandas as pd


CLOSENESS, RELEASED = "at equal closeness", "as released"
# By row and variant the scores of all pairs, nan where there is none.
Scored = Mapping[str, Mapping[str, Array]]


@dataclass(frozen=True)
class OnPairs:
    """How often a row rates the empathetic of two texts higher, ties half: ``at equal closeness`` or ``as released``."""

    row: str
    contrast: str
    pairs: int
    accuracy: Estimate
    signature: str


def on_pairs(
    release_dir: Path, ensembles: Sequence[Ensemble], known: Found, scoring: Scoring, chance: Chance
) -> tuple[tuple[OnPairs, ...], tuple[MetricFault, ...]]:
    """Scores all pairs of the test split by the rows of these ensembles, which are among those ``known``; and what failed in that.

    Rows without a better direction are left out, and so is a row that could not score these texts.

    Raises:
        InputError: if the release is damaged.
    """
    some = [one for one in known.metrics if one.name in {member.row for ensemble in ensembles for member in ensemble.members}]
    both = (("pairs", PAIR_VARIANTS), ("controls", CELLS))
    pairs, controls = (
        read_corpus(release_dir, config, variants, contexts=True, splits=(MEASURED_ON,), language=known.language)
        for config, variants in both
    )
    if stray := set(controls.pair_ids).difference(pairs.pair_ids):
        raise input_error(release_dir, f'the control "{min(stray)}" is not a pair', WHOLE)
    released, faults = _scored(pairs, PAIR_VARIANTS, some, scoring)
    place = {pair: row for row, pair in enumerate(pairs.pair_ids)}
    at = np.array([place[pair] for pair in controls.pair_ids], dtype=np.int64)
    near = {name: {variant: values[at] for variant, values in found.items()} for name, found in released.items()}
    more, others = _scored(controls, CONTROLS, some, scoring) if len(controls) else ({}, [])
    cells = {name: {**near[name], **found} for name, found in more.items() if name in near}
    tables = ((CLOSENESS, TWO_BY_TWO[0], controls, cells), (RELEASED, PAIRS[0], pairs, released))
    found = [
        _reached(row, name, contrast, corpus.clusters, chance)
        for name, contrast, corpus, scores in tables
        for row in _rows(ensembles, some, scores)
    ]
    return tuple(one for one in found if one), (*faults, *others)


def _scored(corpus: Corpus, variants: Sequence[str], metrics: Sequence[Metric], scoring: Scoring) -> tuple[Scored, list[MetricFault]]:
    texts = corpus.pairs(variants)
    made = statistics_of([one for one in metrics if not isinstance(one, Given)], texts, scoring)
    rows = {one.name: one.looked_up(texts) if isinstance(one, Given) else made[one.name].rows for one in metrics}
    scores = {one.name: {name: Column(one, row).scores for name, row in found.items()} for one in metrics if (found := rows[one.name])}
    return scores, [one.fault for one in made.values() if one.fault]


def _rows(ensembles: Sequence[Ensemble], metrics: Sequence[Metric], scores: Scored) -> Iterator[tuple[str, str, Mapping[str, Array]]]:
    """Names, signatures and scores by variant: rows of which higher is better, or lower and turned round; then all ensembles."""
    for one in metrics:
        if one.name in scores and one.higher_is_better is not None:
            yield one.name, one.signature, {name: turned(some, one.higher_is_better) for name, some in scores[one.name].items()}
    several = len({one.criterion for one in ensembles}) > 1
    for made in ensembles:
        if all(member.row in scores for member in made.members):
            variants = scores[made.members[0].row]
            found = {variant: made.of({member.row: scores[member.row][variant] for member in made.members}) for variant in variants}
            yield made.called(several), made.signature, found


def _reached(
    row: tuple[str, str, Mapping[str, Array]], name: str, contrast: Contrast, clusters: Clusters, chance: Chance
) -> OnPairs | None:
    """The accuracy over the pairs that the row has all scores of; None where there is none."""
    (metric, signature, scores), sides = row, [side for duel in contrast.duels for side in duel]
    has = np.all([np.isfinite(scores[side]) for side in sides], axis=0)
    if not has.any():
        return None
    duels = Duels([(scores[kind][has], scores[cold][has]) for kind, cold in contrast.duels])
    (accuracy,) = accuracies([duels.won()], kept := clusters.take(has), chance)
    how = signature_line(accuracy="ties-half", split=MEASURED_ON) + f"|{chance.of_intervals(kept)}"
    return OnPairs(metric, name, int(has.sum()), accuracy, f"{signature}|{how}")


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
class AgainstPeople(Result):
    """Scores against people; ``left_out`` ratings are of texts that some row has no score of: how many, by row, says ``lacking``.

    With ``ensembles`` all else is of the test split, and ``on_pairs`` is what they and their rows reach on the pairs of a release.
    """

    columns: ClassVar[tuple[str, ...]] = (*KEYS, *RECORD)
    criteria: tuple[Criterion, ...]
    ratings: int
    left_out: int
    lacking: Mapping[str, int]
    outside: tuple[Outside, ...]
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

    def records(self) -> Iterator[dict[str, Any]]:
        """The long form: a record a figure, difference, warning or fault, with the columns ``columns``."""
        return self._stamped(self._records())

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

    def to_pandas(self) -> pd.DataFrame:
        """The long form as a data frame; a number that there is not is NaN.

        Raises:
            InputError: if pandas is not installed.
        """
        return data_frame(self.records(), self.columns, NUMBERS)


def _record(table: str, found: Measure | Estimate | None = None, /, **about: Any) -> dict[str, Any]:
    values = {name: value for name, value in asdict(found).items() if name in RECORD and value is not None} if found else {}
    return dict.fromkeys(RECORD, "") | dict.fromkeys(NUMBERS) | {"table": table} | values | about
