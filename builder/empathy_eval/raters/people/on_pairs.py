"""Ensembles on the stand: what they and their rows reach on the pairs of a release's test split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS, PAIRS, STANCE
from empathy_eval.evaluation.corpus import Corpus, read_corpus
from empathy_eval.evaluation.inversion import Chance
from empathy_eval.evaluation.own_scores import Column
from empathy_eval.evaluation.resampling import Estimate
from empathy_eval.evaluation.results import Measured
from empathy_eval.evaluation.score_file import Given
from empathy_eval.evaluation.stand import Stand
from empathy_eval.metrics.protocol import Array, Metric
from empathy_eval.metrics.registry import Found
from empathy_eval.metrics.scoring import Scoring, statistics_of
from empathy_eval.raters.people.ensembles import MEASURED_ON, Ensemble

CLOSENESS, RELEASED = "at equal closeness", "as released"


@dataclass(frozen=True)
class OnPairs:
    """How often a row rates the empathetic of two texts higher, ties half: ``at equal closeness`` or ``as released``."""

    row: str
    contrast: str
    pairs: int
    accuracy: Estimate
    signature: str


def on_pairs(
    release_dir: Path, ensembles: Sequence[Ensemble], metrics: Sequence[Metric], language: str, scoring: Scoring, chance: Chance
) -> tuple[OnPairs, ...]:
    """Scores all pairs of the test split by the rows of these ensembles, which ``metrics`` holds, and puts all on the stand of the report.

    Rows without a better direction have no place on it, nor has a row that could not score these texts.
    """
    members = {member.row for one in ensembles for member in one.members}
    known: dict[tuple[str, str], dict[str, float]] = {}
    some = [one for one in metrics if one.name in members]
    for config, read, variants in (("pairs", PAIR_VARIANTS, PAIR_VARIANTS), ("controls", CELLS, CONTROLS)):
        corpus = read_corpus(release_dir, config, read, contexts=True, splits=(MEASURED_ON,), language=language)
        for key, scores in _scores(corpus, variants, some, scoring):
            known.setdefault(key, {}).update(scores)
    keys = list(known)
    columns = {one.name: np.array([known[key].get(one.name, np.nan) for key in keys]) for one in some}
    several = len({one.criterion for one in ensembles}) > 1
    rows = [_row(one, keys, columns[one.name]) for one in some if one.higher_is_better is not None]
    rows += [one.given(keys, one.of(columns), f"{one.name} on {one.criterion}" if several else "") for one in ensembles]
    stand = Stand(release_dir, Found(tuple(rows), (), language), chance, scoring, splits=(MEASURED_ON,))
    return tuple(_headline(stand.measured()))


def _scores(
    corpus: Corpus, variants: Sequence[str], metrics: Sequence[Metric], scoring: Scoring
) -> Iterator[tuple[tuple[str, str], dict[str, float]]]:
    """By pair and variant the scores of all metrics."""
    if not len(corpus):
        return
    pairs = corpus.pairs(variants)
    asked = [one for one in metrics if not isinstance(one, Given)]
    made = {name: one.rows for name, one in statistics_of(asked, pairs, scoring).items()}
    made |= {one.name: one.looked_up(pairs) for one in metrics if isinstance(one, Given)}
    for variant in variants:
        found = {one.name: Column(one, made[one.name][variant]).scores.tolist() for one in metrics if made[one.name]}
        for row, pair in enumerate(corpus.pair_ids):
            yield (pair, variant), {name: values[row] for name, values in found.items()}


def _row(metric: Metric, keys: Sequence[tuple[str, str]], values: Array) -> Given:
    """A row of an ensemble as scores that are known."""
    scores = {key: value for key, value in zip(keys, values.tolist(), strict=True) if np.isfinite(value)}
    return Given(metric.name, metric.signature, scores, bool(metric.higher_is_better))


def _headline(measured: Measured) -> Iterator[OnPairs]:
    for contrast, name, rows in ((CLOSENESS, STANCE, measured.controls), (RELEASED, PAIRS[0].name, measured.inversion)):
        for row in rows:
            if accuracy := row.differences[name].accuracy:
                line = f"{row.signature}|{row.interval_signature}" if row.interval_signature else row.signature
                yield OnPairs(row.metric, contrast, row.pairs, accuracy, line)
