"""``score`` over texts of one's own, and over whatever people rated: who is asked for scores, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.text import ENGLISH
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import SPLITS, read_manifest
from empathy_eval.design.provenance import Provenance, file_of
from empathy_eval.evaluation.inversion import Chance
from empathy_eval.evaluation.items import check_items
from empathy_eval.evaluation.judges import Annotations, judged
from empathy_eval.evaluation.own_means import CHANCE, OwnMeasured, own_measured
from empathy_eval.evaluation.own_scores import read_own_scores, scored, write_own_items
from empathy_eval.evaluation.own_texts import Texts, read_texts
from empathy_eval.evaluation.score import given_in, named_apart, splits_measured
from empathy_eval.evaluation.score_file import Given
from empathy_eval.metrics.echo import Echo
from empathy_eval.metrics.length import Length
from empathy_eval.metrics.protocol import Metric
from empathy_eval.metrics.registry import Found, find
from empathy_eval.metrics.scoring import Scoring
from empathy_eval.metrics.vader import PositiveShare, Vader
from empathy_eval.raters.agreement import read_table
from empathy_eval.raters.agreement.table import Table
from empathy_eval.raters.people.against import against_people, rated_items
from empathy_eval.raters.people.ensembles import FITTED_ON, MEASURED_ON, fitted, wanted
from empathy_eval.raters.people.fitting import measured_of_release, measured_with, splits_of, with_ensembles
from empathy_eval.raters.people.of_release import ratings_of_release
from empathy_eval.raters.people.results import AgainstPeople


def shortcuts_of(language: str) -> tuple[Metric, ...]:
    """What knows nothing of empathy, beside every metric on texts of a language; VADER's lexicon is English.

    Words alone would have to learn from other texts.
    """
    sentiment: tuple[Metric, ...] = (Vader(), PositiveShare()) if language == ENGLISH else ()
    return (Length(language), *sentiment, Echo(language))


def score_texts(
    path: Path, names: Sequence[Any], files: Sequence[Path], scoring: Scoring, *, lower_is_better: bool = False,
    items: Path | None = None, ratings: Path | None = None, shortcuts: bool = True, ensembles: Sequence[str] = (),
) -> OwnMeasured | AgainstPeople:  # fmt: skip
    """Scores the texts of a file; with ``ratings``, puts what they get beside what people rated. ``items`` is a file for every score.

    With ``ensembles`` the texts have splits: ensembles are fitted on validation, and all is measured on test.

    Raises:
        InputError: for a faulty file of texts, scores or ratings, an unknown metric, or one that needs what the texts do not have, and for
            ensembles that cannot be fitted.
    """
    if items:
        check_items(items)
    texts, found = read_texts(path), find(names, {}) if names else Found((), ())
    table = None if ratings is None else _read(ratings, texts)
    found = found if table is None else _with_shortcuts(found, shortcuts)
    named_apart([one.name for one in found.metrics], files)
    given = [read_own_scores(one, texts.items, higher_is_better=not lower_is_better) for one in files]
    if table is not None:
        rated = set(table.items)
        texts = texts.take([row for row, item in enumerate(texts.items) if item in rated])
    asked = wanted(ensembles, [one.name for one in (*found.metrics, *given)], found.typed)
    scores = scored(texts, found, given, scoring)
    fits = fitted(asked, scores, table) if table is not None and asked else ()
    if items:
        write_own_items(items, with_ensembles(scores, fits))
    asked_for: dict[str, Any] = {
        "metrics": [one.name for one in found.metrics],
        "lower_is_better": lower_is_better,
        "ensembles": list(ensembles),
    }
    made = Provenance.of(files=map(file_of, [path, *files, *([ratings] if ratings else [])]), **asked_for, **asdict(CHANCE))
    if table is None:
        return own_measured(scores).of(made)
    return (measured_with(fits, scores, table, CHANCE) if fits else against_people(scores, table, CHANCE)).of(made)


def _read(ratings: Path, texts: Texts) -> Table:
    table = read_table(ratings)
    rated_items(table, texts.items, str(ratings))
    return table


def _with_shortcuts(found: Found, wanted: bool) -> Found:
    """The metrics, and after them those shortcuts that are none of them."""
    names = {one.name for one in found.metrics}
    more = [one for one in shortcuts_of(found.language) if one.name not in names] if wanted else []
    return replace(found, metrics=(*found.metrics, *more))


def score_rated(
    release_dir: Path, names: Sequence[Any], files: Sequence[Path], scoring: Scoring, *, ratings: Path, split: str | None = None,
    lower_is_better: bool = False, items: Path | None = None, shortcuts: bool = True, judges: Sequence[str] = (),
    annotations: Annotations | None = None, ensembles: Sequence[str] = (),
) -> AgainstPeople:  # fmt: skip
    """Puts metrics, files of scores and judges beside what people rated of a release, as ``review import`` wrote it.

    ``ensembles`` are fitted on its validation split; all is measured on its test split then, its pairs too.

    Raises:
        InputError: if it is no release, a name is unknown, a file of scores or ratings is faulty, or an ensemble cannot be fitted.
    """
    if items:
        check_items(items)
    manifest = read_manifest(release_dir)
    language = language_of(report := manifest["configuration"])
    found = _with_shortcuts(find(names, report["report"], language=language) if names else Found((), (), language), shortcuts)
    ruled = judged(release_dir, judges, annotations)
    named_apart([one.name for one in (*found.metrics, *ruled)], files)
    given: list[Given] = [*given_in(release_dir, files, higher_is_better=not lower_is_better), *ruled]
    asked = wanted(ensembles, [one.name for one in (*found.metrics, *given)], found.typed)
    # What people rated is a sample, which may hold little of one split: without a split it stays whole, with a warning.
    splits, notes = splits_measured(split, found.metrics, release_dir, manifest["name"], default=SPLITS)
    texts, table, told = ratings_of_release(release_dir, ratings, splits := (FITTED_ON, MEASURED_ON) if asked else splits)
    of_splits = splits_of(release_dir, texts.keys) if asked else ()
    scores = scored(replace(texts, language=language, splits=of_splits), found, given, scoring)
    fits = fitted(asked, scores, table) if asked else ()
    if items:
        write_own_items(items, with_ensembles(scores, fits))
    chance = Chance(report["report"]["bootstrap"], 0, report["seed"])
    made = Provenance.of(
        release_dir, splits, files=map(file_of, [*files, ratings]), metrics=[one.name for one in found.metrics],
        judges=[one.name for one in ruled], lower_is_better=lower_is_better, ensembles=list(ensembles), **asdict(chance),
    )  # fmt: skip
    if fits:
        everything = Found((*found.metrics, *given), (), language)
        measured = measured_of_release(release_dir, fits, scores, table, everything, scoring, chance)
    else:
        measured = against_people(scores, table, chance, unit="dialogue")
    return replace(measured, told=(*notes, *told, *measured.told), provenance=made)
