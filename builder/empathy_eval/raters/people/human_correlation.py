"""``score`` on custom texts, and against people's ratings: collects scores and correlates them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.configuration import language_of
from empathy_eval.design.dataset import SPLITS, column, read_manifest
from empathy_eval.design.provenance import Provenance, file_of
from empathy_eval.evaluation.corpus.pairs import PAIR
from empathy_eval.evaluation.external.custom_means import CHANCE, CustomTextResults, compare_systems
from empathy_eval.evaluation.external.custom_texts import (
    CustomScores,
    CustomTexts,
    MetricColumn,
    read_own_scores,
    read_texts,
    score_custom_texts,
    texts_of_release,
    write_own_items,
)
from empathy_eval.evaluation.external.failures import Truth
from empathy_eval.evaluation.external.judges import ReleaseAnnotations, read_judges
from empathy_eval.evaluation.external.score_file import VARIANTS, PrecomputedScores
from empathy_eval.evaluation.inversion.inversion import ResamplingSettings
from empathy_eval.evaluation.measure import check_items, check_names, choose_splits, read_pair_scores
from empathy_eval.generation.outcomes import BUILD
from empathy_eval.metrics.lexical import Echo, Length, PositiveShare, Vader
from empathy_eval.metrics.protocol import Metric
from empathy_eval.metrics.registry import MetricSelection, find
from empathy_eval.metrics.scoring import Scoring
from empathy_eval.raters.agreement import read_table
from empathy_eval.raters.agreement.panel import item_values
from empathy_eval.raters.agreement.table import RatingTable
from empathy_eval.raters.people.correlations import AgainstPeople, correlate_with_people, refuse_unknown_items
from empathy_eval.raters.people.ensembles import FITTED_ON, MEASURED_ON, Ensemble, fit_ensembles, pair_accuracies, parse_ensembles
from empathy_eval.raters.review.sheets import text_hash
from empathy_eval.raters.systems.figures import join_folders, judge_columns
from empathy_eval.raters.systems.replies import Replied, read_replied, read_reply_annotations


def _splits_of(release_dir: Path, keys: Sequence[tuple[str, str]]) -> list[str]:
    """Split of each text of a release."""
    configs = ("pairs", "controls")
    split_of = {pair: split for split in SPLITS for config in configs for pair in column(release_dir, config, "pair_id", (split,))}
    return [split_of[pair] for pair, _ in keys]


def with_ensemble_columns(scores: CustomScores, ensembles: Sequence[Ensemble]) -> CustomScores:
    """All rows, then every ensemble."""
    several = len({ensemble.criterion for ensemble in ensembles}) > 1
    return replace(scores, columns=(*scores.columns, *(ensemble.column(scores, ensemble.label(several)) for ensemble in ensembles)))


def correlate(
    ensembles: Sequence[Ensemble], scores: CustomScores, table: RatingTable, chance: ResamplingSettings, unit: str = "context"
) -> AgainstPeople:
    """Correlate everything with people; with ensembles over the texts of test, each on the criterion that it was fitted on.

    Raises:
        InputError: as :func:`~empathy_eval.raters.people.correlations.correlate_with_people`.
    """
    if not ensembles:
        return correlate_with_people(scores, table, chance, unit)
    texts = scores.texts
    split_of = dict(zip(texts.items, texts.splits, strict=True))
    rows = [row for row, split in enumerate(texts.splits) if split == MEASURED_ON]
    columns = tuple(MetricColumn(column.metric, column.statistics[rows]) for column in scores.columns)
    tested = CustomScores(texts.take(rows), columns, scores.faults, scores.outside)
    columns_of = {name: [ensemble.column(tested) for ensemble in ensembles if ensemble.criterion == name] for name in table.criteria}
    ratings = list(table.rows())
    by_split = Counter(split_of[item] for item, *_ in ratings)
    of_test = RatingTable.of([row for row in ratings if split_of[row[0]] == MEASURED_ON])
    correlations = correlate_with_people(tested, of_test, chance, unit, columns_of)
    notes = [f"measured over the texts of {MEASURED_ON}; ratings of {FITTED_ON}, which ensembles are fitted on: {by_split[FITTED_ON]}"]
    if left := len(ratings) - by_split[FITTED_ON] - by_split[MEASURED_ON]:
        notes.append(f"ratings of train are left out: {left}")
    return replace(correlations, notes=tuple(notes), ensembles=tuple(ensembles))


ITEM = "pair_id:variant, as in the table of ratings that review import writes"
REJECTED, OTHER = "of rejected texts", "of other texts of the same id"
NOT_IN_SPLITS = "of texts that are not in these splits of the release"
OF_SYSTEMS = "of replies of systems, which are no part of the release,"


def ratings_of_release(release_dir: Path, path: Path, splits: Sequence[str] = SPLITS) -> tuple[CustomTexts, RatingTable, tuple[str, ...]]:
    """The rated texts, the table of their ratings, and notes on ratings that are left out.

    Left out are ratings of rejected texts, of texts that the release does not have (any more), of another text of the same id, and of
    systems' replies.

    Raises:
        InputError: for a faulty table, items that name no text of a pair, and if nothing is left.
    """
    table = read_table(path)
    names = _named(path, table)
    texts = texts_of_release(release_dir, {":".join(parts[:2]) for parts in names.values()}, splits)
    reply = dict(zip(texts.items, texts.replies, strict=True))
    left = Counter[str]()

    def rows() -> Iterator[tuple[str, str, float, str]]:
        for item, rater, rating, criterion in table.rows():
            name, end = ":".join(names[item][:2]), "".join(names[item][2:])
            if not names[item][1]:
                left[OF_SYSTEMS] += 1
            elif end.startswith("rejected-"):
                left[REJECTED] += 1
            elif name not in reply:
                left[NOT_IN_SPLITS] += 1
            elif end and end != text_hash(reply[name]):
                left[OTHER] += 1
            else:
                yield name, rater, rating, criterion

    kept_rows = list(rows())
    if not kept_rows:
        raise input_error(path, f"rates no text of {release_dir} in {', '.join(splits)}", "name the release that was rated")
    selected = RatingTable.of(kept_rows)
    rated_items_ = set(selected.items)
    rated = texts.take([row for row, item in enumerate(texts.items) if item in rated_items_])
    return rated, selected, tuple(f"ratings {why} are left out: {count}" for why, count in sorted(left.items()))


def mean_ratings(release_dir: Path, path: Path, splits: Sequence[str] = SPLITS) -> Truth:
    """What people gave texts of a release on average: by empathy where they rated it, else by the first criterion.

    Raises:
        InputError: as :func:`ratings_of_release`.
    """
    _, table, _ = ratings_of_release(release_dir, path, splits)
    criterion = "empathy" if "empathy" in table.criteria else table.criteria[0]
    items, means = item_values(table, criterion, table.raters)
    names = [table.items[place].split(":") for place in items.tolist()]
    return Truth(criterion, {(pair, variant): mean for (pair, variant), mean in zip(names, means.tolist(), strict=True)})


def _named(path: Path, table: RatingTable) -> dict[str, list[str]]:
    """Parts of each item's name: pair, variant (empty for a system's reply), and what distinguishes it from other texts of these."""
    names = {item: item.split(":", 2) for item in table.items}
    odd = [item for item, parts in names.items() if len(parts) < 2 or not PAIR.fullmatch(parts[0]) or parts[1] not in (*VARIANTS, "")]
    refuse(Problem(str(path), f'"{item}" names no text of a release', f"items are {ITEM}") for item in odd[:100])
    if not any(parts[1] for parts in names.values()):
        raise input_error(path, "rates no variant of a text, only replies of systems", f"name a table of ratings of a release: {ITEM}")
    return names


def shortcuts_of(language: str) -> tuple[Metric, ...]:
    """Metrics without any understanding of empathy, for texts of a language; VADER's lexicon is English.

    Words alone are missing, because they would need other texts to learn from.
    """
    sentiment: tuple[Metric, ...] = (Vader(), PositiveShare()) if language == ENGLISH else ()
    return (Length(language), *sentiment, Echo(language))


def score_texts(
    path: Path, names: Sequence[Any], files: Sequence[Path], scoring: Scoring, *, lower_is_better: bool = False,
    items: Path | None = None, ratings: Path | None = None, shortcuts: bool = True, ensembles: Sequence[str] = (),
    annotations: Sequence[Path] = (),
) -> CustomTextResults | AgainstPeople:  # fmt: skip
    """Score the texts of a file, or replies of systems with ``annotations`` of them; with ``ratings``, correlate the scores with them.

    ``items`` is a file for every score. Ensembles are fitted on the validation split, and everything is then measured on test.

    Raises:
        InputError: for a faulty file of texts, scores or ratings, an unknown metric, or one that needs what the texts lack, and for
            ensembles that cannot be fitted.
    """
    check_items(items)
    replied = read_replied(path) if path.is_dir() else None
    texts = join_folders([replied]).texts if replied else read_texts(path)
    selection = find(names, {}, language=texts.language) if names else MetricSelection((), (), texts.language)
    known = texts.items
    table = None
    if ratings is not None:
        table, selection = read_table(ratings), _with_shortcuts(selection, shortcuts)
        refuse_unknown_items(table, texts.items, str(ratings))
        rated = set(table.items)
        texts = texts.take([row for row, item in enumerate(texts.items) if item in rated])
    check_names([metric.name for metric in selection.metrics], files)
    precomputed = [read_own_scores(file, known, higher_is_better=not lower_is_better) for file in files]
    precomputed += _judge_scores(annotations, replied)
    requests = parse_ensembles(ensembles, [metric.name for metric in (*selection.metrics, *precomputed)], selection.typed)
    scores = score_custom_texts(texts, selection, precomputed, scoring)
    fits = fit_ensembles(requests, scores, table) if table is not None and requests else ()
    if items:
        write_own_items(items, with_ensemble_columns(scores, fits))
    sources = [path / BUILD if replied else path, *files, *(folder / BUILD for folder in annotations), *([ratings] if ratings else [])]
    provenance = Provenance.of(
        files=map(file_of, sources), metrics=[metric.name for metric in selection.metrics],
        lower_is_better=lower_is_better, ensembles=list(ensembles), **asdict(CHANCE),
    )  # fmt: skip
    return (compare_systems(scores) if table is None else correlate(fits, scores, table, CHANCE)).of(provenance)


def _judge_scores(annotations: Sequence[Path], replied: Replied | None) -> list[PrecomputedScores]:
    """Scores of replies by the judges of some annotations of them."""
    folders = read_reply_annotations(annotations, [replied]) if replied else []
    return [column.precomputed for folder in folders for column in judge_columns(folder)]


def _with_shortcuts(selection: MetricSelection, enabled: bool) -> MetricSelection:
    """The metrics, then the shortcuts that are not among them."""
    names = {metric.name for metric in selection.metrics}
    more = [metric for metric in shortcuts_of(selection.language) if metric.name not in names] if enabled else []
    return replace(selection, metrics=(*selection.metrics, *more))


def _judges(release_dir: Path, names: Sequence[str], annotations: ReleaseAnnotations | None) -> tuple[list[PrecomputedScores], list[str]]:
    """The judges of replies, and what is told of those of whole dialogues, which people did not rate."""
    judges_found = read_judges(release_dir, names, annotations)
    notes = [f"{judge.name}: left out, as it rates whole dialogues and people rated replies" for judge in judges_found if judge.whole]
    return [judge for judge in judges_found if not judge.whole], notes


def score_rated(
    release_dir: Path, names: Sequence[Any], files: Sequence[Path], scoring: Scoring, *, ratings: Path, split: str | None = None,
    lower_is_better: bool = False, items: Path | None = None, shortcuts: bool = True, judges: Sequence[str] = (),
    annotations: ReleaseAnnotations | None = None, ensembles: Sequence[str] = (),
) -> AgainstPeople:  # fmt: skip
    """Correlate metrics, score files and judges with people's ratings of a release, as ``review import`` writes them.

    ``ensembles`` are fitted on its validation split; everything is then measured on its test split, including its pairs.

    Raises:
        InputError: if it is no release, a name is unknown, a file of scores or ratings is faulty, or an ensemble cannot be fitted.
    """
    check_items(items)
    manifest = read_manifest(release_dir)
    language = language_of(report := manifest["configuration"])
    selection = _with_shortcuts(find(names, report["report"], language=language) if names else MetricSelection((), (), language), shortcuts)
    judge_scores, wholes = _judges(release_dir, judges, annotations)
    check_names([metric.name for metric in (*selection.metrics, *judge_scores)], files)
    columns: list[PrecomputedScores] = [*read_pair_scores(release_dir, files, higher_is_better=not lower_is_better), *judge_scores]
    requests = parse_ensembles(ensembles, [metric.name for metric in (*selection.metrics, *columns)], selection.typed)
    # Rated texts are a sample with possibly few of one split: by default all splits are used, with a warning.
    splits, notes = choose_splits(split, selection.metrics, release_dir, manifest["name"], default=SPLITS)
    texts, table, notes_of_ratings = ratings_of_release(release_dir, ratings, splits := (FITTED_ON, MEASURED_ON) if requests else splits)
    if requests:
        texts = replace(texts, splits=_splits_of(release_dir, texts.keys))
    scores = score_custom_texts(replace(texts, language=language), selection, columns, scoring)
    fits = fit_ensembles(requests, scores, table) if requests else ()
    if items:
        write_own_items(items, with_ensemble_columns(scores, fits))
    chance = ResamplingSettings(report["report"]["bootstrap"], 0, report["seed"])
    provenance = Provenance.of(
        release_dir, splits, files=map(file_of, [*files, ratings]), metrics=[metric.name for metric in selection.metrics],
        judges=[metric.name for metric in judge_scores], lower_is_better=lower_is_better, ensembles=list(ensembles), **asdict(chance),
    )  # fmt: skip
    measured = correlate(fits, scores, table, chance, unit="dialogue")
    if fits:
        reached, faults = pair_accuracies(release_dir, fits, MetricSelection((*selection.metrics, *columns), (), language), scoring, chance)
        measured = replace(measured, on_pairs=reached, faults=tuple(dict.fromkeys((*measured.faults, *faults))))
    return replace(measured, notes=(*notes, *wholes, *notes_of_ratings, *measured.notes), provenance=provenance)
