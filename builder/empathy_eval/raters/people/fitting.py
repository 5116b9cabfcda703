"""Ensembles beside people: fitted on what was rated of validation, and measured with all other rows on what was rated of test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from empathy_eval.design.dataset import SPLITS, column
from empathy_eval.evaluation.inversion import Chance
from empathy_eval.evaluation.own_scores import Column, Scores
from empathy_eval.metrics.registry import Found
from empathy_eval.metrics.scoring import Scoring
from empathy_eval.raters.agreement.table import Table
from empathy_eval.raters.people.against import against_people
from empathy_eval.raters.people.ensembles import FITTED_ON, MEASURED_ON, Ensemble
from empathy_eval.raters.people.on_pairs import on_pairs
from empathy_eval.raters.people.results import AgainstPeople


def splits_of(release_dir: Path, keys: Sequence[tuple[str, str]]) -> list[str]:
    """The split of the pair of each text of a release."""
    configs = ("pairs", "controls")
    split_of = {pair: split for split in SPLITS for config in configs for pair in column(release_dir, config, "pair_id", (split,))}
    return [split_of[pair] for pair, _ in keys]


def with_ensembles(scores: Scores, ensembles: Sequence[Ensemble]) -> Scores:
    """All rows, and after them every ensemble; of several criteria each says which it was fitted on."""
    several = len({one.criterion for one in ensembles}) > 1
    more = [one.column(scores, f"{one.name} on {one.criterion}" if several else "") for one in ensembles]
    return replace(scores, columns=(*scores.columns, *more))


def measured_with(ensembles: Sequence[Ensemble], scores: Scores, table: Table, chance: Chance, unit: str = "context") -> AgainstPeople:
    """Everything against people over the texts of test, each ensemble beside the criterion that it was fitted on.

    Raises:
        InputError: as :func:`~empathy_eval.raters.people.against.against_people`.
    """
    texts = scores.texts
    split_of = dict(zip(texts.items, texts.splits, strict=True))
    rows = [row for row, split in enumerate(texts.splits) if split == MEASURED_ON]
    columns = tuple(Column(one.metric, one.statistics[rows]) for one in scores.columns)
    tested = Scores(texts.take(rows), columns, scores.faults, scores.outside)
    ratings = list(table.rows())
    beside: Mapping[str, list[Column]] = {
        name: [one.column(tested) for one in ensembles if one.criterion == name] for name in table.criteria
    }
    of_test = Table.of([row for row in ratings if split_of[row[0]] == MEASURED_ON])
    found = against_people(tested, of_test, chance, unit, beside)
    fitted = sum(split_of[item] == FITTED_ON for item, *_ in ratings)
    left = len(ratings) - fitted - len(of_test.rating)
    told = [f"measured over the texts of {MEASURED_ON}; ratings of {FITTED_ON}, which ensembles are fitted on: {fitted}"]
    told += [f"ratings of train are left out: {left}"] if left else []
    return replace(found, told=tuple(told), ensembles=tuple(ensembles))


def measured_of_release(
    release_dir: Path,
    ensembles: Sequence[Ensemble],
    scores: Scores,
    table: Table,
    known: Found,
    scoring: Scoring,
    chance: Chance,
) -> AgainstPeople:
    """The same for a release, and what ensembles and their rows, which are among those ``known``, reach on the pairs of test.

    Raises:
        InputError: as :func:`measured_with` and :func:`~empathy_eval.raters.people.on_pairs.on_pairs`.
    """
    found = measured_with(ensembles, scores, table, chance, unit="dialogue")
    reached, faults = on_pairs(release_dir, ensembles, known, scoring, chance)
    return replace(found, on_pairs=reached, faults=tuple(dict.fromkeys((*found.faults, *faults))))
