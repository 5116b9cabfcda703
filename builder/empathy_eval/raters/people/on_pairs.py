"""Ensembles on the pairs of a release's test split: how often they and their rows rate the empathetic text higher."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import signature_line
from empathy_eval.base.tabular import WHOLE
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS, PAIRS, TWO_BY_TWO, Contrast
from empathy_eval.evaluation.corpus import Corpus, read_corpus
from empathy_eval.evaluation.inversion import Chance, accuracies
from empathy_eval.evaluation.own_scores import Column
from empathy_eval.evaluation.ranking import Duels
from empathy_eval.evaluation.resampling import CONFIDENCE, Clusters, Estimate
from empathy_eval.evaluation.score_file import Given
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.metrics.protocol import Array, Metric
from empathy_eval.metrics.registry import Found
from empathy_eval.metrics.scoring import Scoring, statistics_of
from empathy_eval.raters.people.ensembles import MEASURED_ON, Ensemble

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


@dataclass(frozen=True)
class _Row:
    name: str
    signature: str
    scores: Mapping[str, Array]


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
        if scores
        for row in _rows(ensembles, some, scores)
    ]
    return tuple(one for one in found if one), (*faults, *others)


def _scored(corpus: Corpus, variants: Sequence[str], metrics: Sequence[Metric], scoring: Scoring) -> tuple[Scored, list[MetricFault]]:
    texts = corpus.pairs(variants)
    made = statistics_of([one for one in metrics if not isinstance(one, Given)], texts, scoring)
    rows = {one.name: one.looked_up(texts) if isinstance(one, Given) else made[one.name].rows for one in metrics}
    scores = {one.name: {name: Column(one, row).scores for name, row in found.items()} for one in metrics if (found := rows[one.name])}
    return scores, [one.fault for one in made.values() if one.fault]


def _rows(ensembles: Sequence[Ensemble], metrics: Sequence[Metric], scores: Scored) -> Iterator[_Row]:
    """The rows of which higher is better, with those of which lower was turned round; then all ensembles."""
    for one in metrics:
        if one.name in scores and one.higher_is_better is not None:
            sign = 1 if one.higher_is_better else -1
            yield _Row(one.name, one.signature, {variant: sign * values for variant, values in scores[one.name].items()})
    several = len({one.criterion for one in ensembles}) > 1
    for made in ensembles:
        if all(member.row in scores for member in made.members):
            variants = scores[made.members[0].row]
            found = {variant: made.of({member.row: scores[member.row][variant] for member in made.members}) for variant in variants}
            yield _Row(f"{made.name} on {made.criterion}" if several else made.name, made.signature, found)


def _reached(row: _Row, name: str, contrast: Contrast, clusters: Clusters, chance: Chance) -> OnPairs | None:
    """The accuracy over the pairs that the row has all scores of; None where there is none."""
    duels = Duels([(row.scores[kind], row.scores[cold]) for kind, cold in contrast.duels])
    has = np.all([np.isfinite(side) for duel in duels.sides for side in duel], axis=0)
    if not has.any():
        return None
    (accuracy,) = accuracies([duels.won()[has]], kept := clusters.take(has), chance)
    how = signature_line(
        accuracy="ties-half", split=MEASURED_ON, interval="bootstrap,Rao-Wu,percentile", level=CONFIDENCE, resamples=chance.resamples,
        unit="dialogue", strata="scenario,singles-pooled", dialogues=len(kept), seed=chance.seed, numpy=np.__version__,
    )  # fmt: skip
    return OnPairs(row.name, name, int(has.sum()), accuracy, f"{row.signature}|{how}")
