"""Ensembles of metrics, ordered and scaled by their correlation with people on the validation split."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import Problem, collecting, input_error, refuse
from empathy_eval.base.hashing import digest, signature_line
from empathy_eval.base.tabular import WHOLE
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS, PAIRS, TWO_BY_TWO, Contrast
from empathy_eval.design.dataset import SPLITS
from empathy_eval.evaluation.corpus.pairs import Corpus, read_corpus
from empathy_eval.evaluation.external.custom_texts import CustomScores, CustomTexts, MetricColumn
from empathy_eval.evaluation.external.score_file import PrecomputedScores
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings, accuracies
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.protocol import Array, Metric, with_count
from empathy_eval.metrics.registry import MetricSelection
from empathy_eval.metrics.scoring import Scoring, statistics_of
from empathy_eval.raters.agreement.table import RatingTable
from empathy_eval.statistics.correlations import correlations_of_means
from empathy_eval.statistics.estimate import PLACES, Clusters, Codes, Estimate, PairwiseComparisons

_, FITTED_ON, MEASURED_ON = SPLITS
# Fewer texts define no order.
FEWEST = 3


def huffman_chain(ordered: Array) -> Array:
    """Huffman order of "EMPATH: An Ensemble Method for Automatic Fine-Grained Turn-Level Dialogue Empathy Evaluation with a Novel Emotional
    Distance Metric" (Rao, Liang and Jiang).

    ``ordered`` has scores of shape (scores, texts), the least correlated first: the first is averaged with the second, the result with the
    third, and so on, so the weights are 2^-(n-1), 2^-(n-1), 2^-(n-2), …, 1/2. The rule follows the paper's text; its Eq. 6 orders four
    scores otherwise than by their correlations in its Table 2. It is a plain chain: Huffman's code would put each average back among the
    scores.
    """
    return reduce(lambda mean, scores: np.asarray((mean + scores) / 2), ordered)


def plain_mean(ordered: Array) -> Array:
    """Mean of scores of shape (scores, texts)."""
    return np.asarray(ordered.mean(axis=0))


KINDS: Mapping[str, Callable[[Array], Array]] = {"huffman": huffman_chain, "mean": plain_mean}
FORM = f"write {' or '.join(f'{kind}:NAME,NAME' for kind in KINDS)}, with two names of rows or more"


@dataclass(frozen=True)
class EnsembleRequest:
    """A requested ensemble: its name, kind and rows."""

    name: str
    kind: str
    rows: tuple[str, ...]


def parse_ensembles(texts: Sequence[str], rows: Sequence[str], typed: Mapping[str, str]) -> list[EnsembleRequest]:
    """Parse ensembles of the form ``kind:name,name``; a name is that of a row, or its metric as ``typed``.

    Raises:
        InputError: for another form, another kind, unknown rows and rows named twice; all at once.
    """
    problems, ensembles = list[Problem](), list[EnsembleRequest]()
    known = {**typed, **{name: name for name in rows}}
    for text in dict.fromkeys(texts):
        where, (kind, _, listed) = f'ensemble "{text}"', text.partition(":")
        names = [name.strip() for name in listed.split(",")]
        unknown = [name for name in names if name and name not in known]
        rows_of = [known[name] for name in names if name in known]
        if kind not in KINDS or len(names) < 2 or not all(names):
            problems.append(Problem(where, "is not an ensemble", FORM))
        elif unknown:
            fix = f"name rows of this call: {', '.join(dict.fromkeys(rows))}"
            problems += [Problem(where, f'there is no row "{name}"', fix) for name in unknown]
        elif len(set(rows_of)) < len(rows_of):
            twice = next(name for index, name in enumerate(rows_of) if name in rows_of[:index])
            problems.append(Problem(where, f'"{twice}" is in it twice', "name each row once"))
        else:
            ensembles.append(EnsembleRequest(text, kind, tuple(rows_of)))
    refuse(problems)
    return ensembles


@dataclass(frozen=True)
class Member:
    """A row in an ensemble: its ``r`` with people on validation, with lower-is-better scores negated, and its weight.

    ``low`` and ``high`` become 0 and 1; the share ``clipped`` of the rated test texts lies beyond them.
    """

    row: str
    r: float
    weight: float
    low: float
    high: float
    clipped: float
    higher_is_better: bool | None


@dataclass(frozen=True)
class Ensemble:
    """An ensemble fitted on ratings of the validation split; members in order, the least correlated first.

    The combined score is scaled to [0, 1] again by its minimum ``low`` and maximum ``high`` on validation.
    """

    name: str
    kind: str
    criterion: str
    ratings: int
    texts: int
    members: tuple[Member, ...]
    low: float
    high: float
    signature: str

    def label(self, several: bool) -> str:
        """Its name; with the criterion it was fitted on if there are several."""
        return f"{self.name} on {self.criterion}" if several else self.name

    def of(self, scores: Mapping[str, Array]) -> Array:
        """Scores of texts from those of its rows; NaN if one of them is."""
        scaled = [_min_max(oriented(scores[member.row], member.higher_is_better), member.low, member.high) for member in self.members]
        # Rounded like every score, so that ties are the same on every machine.
        return np.asarray(np.round(_min_max(KINDS[self.kind](np.stack(scaled)), self.low, self.high), PrecomputedScores.places))

    def column(self, scores: CustomScores, name: str = "") -> MetricColumn:
        """Its row among those of these scores."""
        keys, values = scores.texts.keys, self.of({column.metric.name: column.scores for column in scores.columns}).tolist()
        known = {key: value for key, value in zip(keys, values, strict=True) if math.isfinite(value)}
        metric = PrecomputedScores(name or self.name, self.signature, known, higher_is_better=True)
        return MetricColumn(metric, with_count(metric.of(keys)))


def fit_ensembles(ensembles: Sequence[EnsembleRequest], scores: CustomScores, table: RatingTable) -> tuple[Ensemble, ...]:
    """Fit every ensemble on every criterion of the validation ratings, which are of texts of these scores.

    Raises:
        InputError: if texts have no split, or if validation has too few ratings, or constant ratings or scores; all at once.
    """
    _refuse_without_splits(scores.texts)
    problems, ensembles_ = list[Problem](), list[Ensemble]()
    for criterion in table.criteria:
        for request in ensembles:
            with collecting(problems):
                ensembles_.append(_fit(request, criterion, scores, table))
    refuse(dict.fromkeys(problems))
    return tuple(ensembles_)


def _refuse_without_splits(texts: CustomTexts) -> None:
    splits = texts.splits or [""] * len(texts)
    fix = f"""write "split": "{FITTED_ON}" or "{MEASURED_ON}" into every line: the first fits an ensemble, the second measures it"""
    if without := [item for item, split in zip(texts.items, splits, strict=True) if not split]:
        raise input_error(texts.where, f"{len(without)} of {len(texts)} rated texts have no split, first {without[0]}", fix)
    if MEASURED_ON not in splits:
        raise input_error(texts.where, f'no rated text is of the split "{MEASURED_ON}"', f"rate texts of {FITTED_ON} and of {MEASURED_ON}")


def _fit(request: EnsembleRequest, criterion: str, scores: CustomScores, table: RatingTable) -> Ensemble:
    columns = {column.metric.name: column for column in scores.columns}
    where = f'ensemble "{request.name}" on "{criterion}"'
    if lost := [name for name in request.rows if name not in columns]:
        raise input_error(where, f'"{lost[0]}" gave no text a score', "leave it out of the ensemble")
    values = {name: oriented(columns[name].scores, columns[name].metric.higher_is_better) for name in request.rows}
    ratings, text = _ratings(scores.texts, table, criterion, FITTED_ON, list(values.values()))
    texts = np.unique(text)
    fit = {name: scores_of[texts] for name, scores_of in values.items()}
    _refuse_unfit(where, ratings, fit)
    correlations = correlations_of_means(ratings, [scores_of[text] for scores_of in values.values()])[:, 0]
    correlation_of = {name: round(float(r), PLACES) for name, r in zip(values, correlations, strict=True)}
    order = sorted(request.rows, key=lambda name: (correlation_of[name], name))
    tested = np.unique(_ratings(scores.texts, table, criterion, MEASURED_ON, list(values.values()))[1])
    members = list[Member]()
    for name, weight in zip(order, KINDS[request.kind](np.eye(len(order))).tolist(), strict=True):
        low, high, of_test = float(fit[name].min()), float(fit[name].max()), values[name][tested]
        clipped = round(float(((of_test < low) | (of_test > high)).mean()), PLACES) if len(of_test) else 0.0
        members.append(Member(name, correlation_of[name], weight, low, high, clipped, columns[name].metric.higher_is_better))
    combined = KINDS[request.kind](np.stack([_min_max(fit[member.row], member.low, member.high) for member in members]))
    low, high = float(combined.min()), float(combined.max())
    if low == high:
        raise input_error(where, f"its scores are all alike on {FITTED_ON}", "name other rows")
    settings = [[member.row, columns[member.row].metric.signature, member.low, member.high] for member in members]
    signature = signature_line(
        ensemble={"huffman": "huffman-order,chain", "mean": "mean"}[request.kind], order=",".join(order), by=f"pearson,{FITTED_ON}",
        criterion=criterion, ratings=len(ratings), texts=len(texts), scale=f"min-max,{FITTED_ON},clipped", members=digest(settings)[:16],
    )  # fmt: skip
    return Ensemble(request.name, request.kind, criterion, len(ratings), len(texts), tuple(members), low, high, signature)


def text_of(texts: CustomTexts, table: RatingTable) -> Codes:
    """Row of the text of each rating."""
    row_of = {item: row for row, item in enumerate(texts.items)}
    return np.array([row_of[item] for item in table.items], dtype=np.int64)[table.item]


def _ratings(texts: CustomTexts, table: RatingTable, criterion: str, split: str, scores: Sequence[Array]) -> tuple[Array, Codes]:
    """Ratings of texts of a split that have all these scores, and the row of the text of each."""
    text = text_of(texts, table)
    scored = (np.array(texts.splits) == split) & np.all(np.isfinite(scores), axis=0)
    rated = scored[text] & (table.criterion == table.criteria.index(criterion))
    return table.rating[rated], text[rated]


def _refuse_unfit(where: str, ratings: Array, scores: Mapping[str, Array]) -> None:
    """Refuse data on which nothing can be fitted."""
    texts = len(next(iter(scores.values())))
    more = f"rate more texts of {FITTED_ON}"
    if texts < FEWEST:
        unit = "text" if texts == 1 else "texts"
        raise input_error(where, f"{FITTED_ON} has ratings of {texts} {unit} that all its rows score, but an order needs {FEWEST}", more)
    if len(np.unique(ratings)) < 2:
        raise input_error(where, f"all {len(ratings)} ratings of {FITTED_ON} are alike", more)
    if alike := [name for name, values in scores.items() if values.min() == values.max()]:
        what = f'"{alike[0]}" gives all {texts} rated texts of {FITTED_ON} the same score'
        raise input_error(where, what, f"{more}, or leave it out of the ensemble")


def oriented(scores: Array, higher_is_better: bool | None) -> Array:
    """Scores with higher being better: negated if lower is better."""
    return -scores if higher_is_better is False else scores


def _min_max(values: Array, low: float, high: float) -> Array:
    """Values scaled to [0, 1], clipped at the ends."""
    return np.asarray(np.clip((values - low) / (high - low), 0.0, 1.0))


CLOSENESS, RELEASED = "at equal closeness", "as released"
# By row and variant the scores of all pairs, NaN if there is none; and a row's name, signature and scores by variant.
VariantScores = Mapping[str, Mapping[str, Array]]
ScoredRow = tuple[str, str, Mapping[str, Array]]


@dataclass(frozen=True)
class PairAccuracy:
    """How often a row rates the empathetic of two texts higher, ties half: ``at equal closeness`` or ``as released``."""

    row: str
    contrast: str
    pairs: int
    accuracy: Estimate
    signature: str


def pair_accuracies(
    release_dir: Path, ensembles: Sequence[Ensemble], known: MetricSelection, scoring: Scoring, chance: ResamplingSettings
) -> tuple[tuple[PairAccuracy, ...], tuple[MetricFault, ...]]:
    """Score all pairs of the test split by the rows of these ensembles, and return accuracies and faults.

    Rows without a better direction are left out, and so are rows that could not score these texts.

    Raises:
        InputError: if the release is damaged.
    """
    metrics = [metric for metric in known.metrics if metric.name in {member.row for ensemble in ensembles for member in ensemble.members}]
    how: dict[str, Any] = {"contexts": True, "splits": (MEASURED_ON,), "language": known.language}
    pairs, controls = (read_corpus(release_dir, *names, **how) for names in (("pairs", PAIR_VARIANTS), ("controls", CELLS)))
    if stray := set(controls.pair_ids).difference(pairs.pair_ids):
        raise input_error(release_dir, f'the control "{min(stray)}" is not a pair', WHOLE)
    released, faults = _scored(pairs, PAIR_VARIANTS, metrics, scoring)
    row_of = {pair: row for row, pair in enumerate(pairs.pair_ids)}
    pair_rows = np.array([row_of[pair] for pair in controls.pair_ids], dtype=np.int64)
    near = {name: {variant: values[pair_rows] for variant, values in by_variant.items()} for name, by_variant in released.items()}
    more, other_metrics = _scored(controls, CONTROLS, metrics, scoring) if len(controls) else ({}, [])
    cells = {name: {**near[name], **by_variant} for name, by_variant in more.items() if name in near}
    tables = ((CLOSENESS, TWO_BY_TWO[0], controls, cells), (RELEASED, PAIRS[0], pairs, released))
    rows = ((row, name, by, texts.clusters) for name, by, texts, scores in tables for row in _rows(ensembles, metrics, scores))
    return tuple(filter(None, (_accuracy(*row, chance) for row in rows))), (*faults, *other_metrics)


def _scored(
    corpus: Corpus, variants: Sequence[str], metrics: Sequence[Metric], scoring: Scoring
) -> tuple[VariantScores, list[MetricFault]]:
    texts = corpus.pairs(variants)
    statistics = statistics_of([metric for metric in metrics if not isinstance(metric, PrecomputedScores)], texts, scoring)
    rows = {
        metric.name: metric.looked_up(texts) if isinstance(metric, PrecomputedScores) else statistics[metric.name].rows
        for metric in metrics
    }
    scored = [metric for metric in metrics if rows[metric.name]]
    scores = {metric.name: {name: MetricColumn(metric, row).scores for name, row in rows[metric.name].items()} for metric in scored}
    return scores, [result.fault for result in statistics.values() if result.fault]


def _rows(ensembles: Sequence[Ensemble], metrics: Sequence[Metric], scores: VariantScores) -> Iterator[ScoredRow]:
    """(name, signature, scores by variant) of rows with a direction, oriented, then of all ensembles."""
    for metric in metrics:
        if metric.name in scores and metric.higher_is_better is not None:
            by_variant = {name: oriented(values, metric.higher_is_better) for name, values in scores[metric.name].items()}
            yield metric.name, metric.signature, by_variant
    several = len({ensemble.criterion for ensemble in ensembles}) > 1
    for ensemble in ensembles:
        if all(member.row in scores for member in ensemble.members):
            rows = {member.row: scores[member.row] for member in ensemble.members}
            variants = scores[ensemble.members[0].row]
            combined = {variant: ensemble.of({name: row[variant] for name, row in rows.items()}) for variant in variants}
            yield ensemble.label(several), ensemble.signature, combined


def _accuracy(row: ScoredRow, name: str, contrast: Contrast, clusters: Clusters, chance: ResamplingSettings) -> PairAccuracy | None:
    """Accuracy over the pairs that the row has all scores of; None if there are none."""
    (metric, signature, scores), sides = row, [side for duel in contrast.duels for side in duel]
    has = np.all([np.isfinite(scores[side]) for side in sides], axis=0)
    if not has.any():
        return None
    duels = PairwiseComparisons([(scores[empathetic][has], scores[apathetic][has]) for empathetic, apathetic in contrast.duels])
    (accuracy,) = accuracies([duels.won()], scored := clusters.take(has), chance)
    how = signature_line(accuracy="ties-half", split=MEASURED_ON) + f"|{chance.of_intervals(scored)}"
    return PairAccuracy(metric, name, int(has.sum()), accuracy, f"{signature}|{how}")
