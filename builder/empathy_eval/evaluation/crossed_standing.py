"""Crossed items beside the tables of a release: its metrics, files of scores, and the shortcuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.base.stages import stage
from empathy_eval.design.dataset import column, files_of
from empathy_eval.evaluation.crossed import CONFIG, Asked, asked_of, crossed_of, read_items
from empathy_eval.evaluation.crossed_scores import GivenCrossed, of_crossed, read_crossed_scores
from empathy_eval.evaluation.crossed_shortcuts import shortcuts_of
from empathy_eval.evaluation.embedding import Embedding
from empathy_eval.evaluation.results import Measured
from empathy_eval.evaluation.score_file import Given
from empathy_eval.evaluation.stand import Stand

WHOLE_SETS = "not applicable: whole sets of texts are measured"


def read_given(release_dir: Path, scores: Sequence[Path], *, higher_is_better: bool = True) -> tuple[Sequence[Path], list[GivenCrossed]]:
    """The files of scores that are of pairs, and the scores of the others, which are of crossed items.

    Raises:
        InputError: if the release has no such items, or as :func:`empathy_eval.evaluation.crossed_scores.read_crossed_scores`.
    """
    files = [path for path in scores if of_crossed(path)]
    if not files:
        return scores, []
    if not any(path.is_file() for path in files_of(release_dir, CONFIG)):
        raise input_error(release_dir, f"has no crossed items, but {files[0]} holds scores of them", "score a release that has them")
    known = column(release_dir, CONFIG, "crossed_id")
    given = [read_crossed_scores(path, known, higher_is_better=higher_is_better) for path in files]
    return [path for path in scores if path not in files], given


def with_crossed(
    measured: Measured, stand: Stand, given: Sequence[GivenCrossed] = (), *, shortcuts: bool = True, embedding: Embedding | None = None
) -> Measured:
    """The tables with that of crossed items, where the release has some in the splits that are measured; else as they are.

    Raises:
        InputError: if a file holds no score of these splits.
    """
    items = read_items(stand.folder, stand.splits, stand.found.language)
    there = set(items.ids) if items else set[str]()
    if stray := [one for one in given if one.ids.isdisjoint(there)]:
        what, fix = f"holds no score of a crossed item in {', '.join(stand.splits)}", "leave --split out, or name another"
        raise InputError([Problem(str(one.path), what, fix) for one in stray])
    if not items:
        return measured
    stage("crossed items")
    # Scores that are given of pairs are of no crossed item.
    metrics = [one for one in stand.found.metrics if not isinstance(one, Given)]
    # No score of a metric is believed that failed as a whole over pairs.
    broken = {one.metric: one.what for one in measured.faults if not one.texts}
    asked, faults = asked_of([one for one in metrics if one.name not in broken], items, stand.scoring)
    asked += [Asked(one.name, one.signature, None, f"it failed: {broken[one.name]}") for one in metrics if one.name in broken]
    asked += [Asked(one.name, one.signature, None, WHOLE_SETS) for one in stand.found.diversities]
    asked += [one.asked(items, strict=stand.strict) for one in given]
    simple = shortcuts_of(items, stand.chance.seed, embedding) if shortcuts else []
    told = {one.metric for one in measured.faults}
    faults = [*measured.faults, *(one for one in faults if one.metric not in told)]
    return replace(measured, crossed=crossed_of(items, asked, simple, stand.chance), faults=faults)
