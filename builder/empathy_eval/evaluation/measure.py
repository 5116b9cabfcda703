"""All tables of a release: first those made of scores, then those that read the texts again; and files with the score of every text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.files import whole_file
from empathy_eval.base.tabular import TableWriter, write_rows
from empathy_eval.base.text import listed
from empathy_eval.design.configuration import language_of
from empathy_eval.design.contrasts import CELLS, CONTROLS, PAIR_VARIANTS, PAIRS, RAW, STANCE_FAR, STANCE_NEAR, TWO_BY_TWO
from empathy_eval.design.dataset import SPLITS, column, read_manifest
from empathy_eval.design.provenance import Provenance, file_of
from empathy_eval.evaluation.attacks.attack_scores import MOST, attack_table
from empathy_eval.evaluation.attacks.registry import Attacks
from empathy_eval.evaluation.corpus.pairs import Corpus
from empathy_eval.evaluation.crossed_items import crossed_tables
from empathy_eval.evaluation.external.judges import ReleaseAnnotations, read_judges
from empathy_eval.evaluation.external.score_file import PrecomputedCrossedScores, PrecomputedScores, read_crossed_files, read_scores
from empathy_eval.evaluation.fairness.fairness import FairnessTest
from empathy_eval.evaluation.inversion.evaluation import AllScores, Evaluation, dialogue_table
from empathy_eval.evaluation.inversion.inversion import EXCHANGES, ResamplingSettings, Scores, Statistics, compare_pairs, metric_scores
from empathy_eval.evaluation.inversion.results import DialogueTable, ReleaseTables, merge_faults
from empathy_eval.evaluation.shortcuts.shortcuts import audit_evaluation
from empathy_eval.evaluation.shortcuts.texts import REFERENCE, Embedding
from empathy_eval.metrics.lexical import Vader
from empathy_eval.metrics.protocol import SEEDS, Array, Metric, Pairs, TrainedMetric
from empathy_eval.metrics.registry import MetricSelection, find
from empathy_eval.metrics.scoring import PLAIN, Scoring, statistics_of

ITEMS = "items.parquet"
TEXTS = (REFERENCE, *PAIR_VARIANTS, *CONTROLS)
NAMED = [("pair_id", pa.string()), ("variant", pa.string())]
WORD_MARGIN = "word_margin"
# Columns that are no metric's.
BESIDE = (*(name for name, _ in NAMED), WORD_MARGIN)
# Seven digits are what a score says, and half of the bytes.
SCORE = pa.float32()
# Pairs of a group of rows. Who reads this file reads all of it, so groups are as large as memory likes: 50,000 rows at most.
GROUP = 10_000


@dataclass(frozen=True)
class TextScores:
    """The score of every text by metric, shape (pairs, texts), nan where there is none; ``present`` says which texts a pair has.

    The texts of a pair are those of ``TEXTS``, in that order. A metric that reads a reference gives references none.
    ``word_margins`` are by pair, as :class:`empathy_eval.evaluation.inversion.rows.ShortcutAudit` has them.
    """

    pair_ids: Sequence[str]
    present: NDArray[np.bool_]
    scores: Mapping[str, NDArray[np.float32]]
    word_margins: Mapping[str, float] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file."""
        return pa.schema([*NAMED, (WORD_MARGIN, pa.float64()), *((name, SCORE) for name in self.scores)])

    def groups(self) -> Iterator[pa.Table]:
        """The groups of rows of the file: pair after pair the texts that it has."""
        for start in range(0, len(self.pair_ids), GROUP):
            rows = slice(start, start + GROUP)
            pairs, texts = np.nonzero(self.present[rows])
            names = [pa.array(some, pa.string()).take(pa.array(at)) for some, at in ((self.pair_ids[rows], pairs), (TEXTS, texts))]
            names.append(pa.array(map(self.word_margins.get, names[0].to_pylist()), pa.float64()))
            scores = [pa.array(values[rows][pairs, texts], SCORE, from_pandas=True) for values in self.scores.values()]
            yield pa.table([*names, *scores], self.schema)


def score_references(evaluation: Evaluation) -> dict[str, Array]:
    """Returns the scores of references by metrics that read none; those of VADER are stored for the audit.

    A reference that a metric fails on has no score, which is no fault of the report: none of its tables is made of it.
    """
    alone = [metric for metric in evaluation.selection.metrics if REFERENCE not in metric.reads]
    pairs = Pairs(
        evaluation.pairs.pair_ids, evaluation.pairs.references, {REFERENCE: evaluation.pairs.references}, evaluation.pairs.contexts
    )
    statistics = {name: result.rows for name, result in statistics_of(alone, pairs, evaluation.scoring).items() if result.rows}
    if Vader.name in statistics:
        evaluation.known[Vader.name] = statistics[Vader.name]
    return {metric.name: metric_scores(metric, statistics[metric.name][REFERENCE]) for metric in alone if metric.name in statistics}


def text_scores(
    references: Mapping[str, Array], pairs: Corpus, controls: Corpus,
    rated: Sequence[Scores],
) -> TextScores:  # fmt: skip
    """Returns the scores of all texts, from those of references and the statistics of the tables."""
    row_of = {pair: row for row, pair in enumerate(pairs.pair_ids)}
    rows = np.array([row_of[pair] for pair in controls.pair_ids], dtype=np.int64)
    present = np.ones((len(pairs), len(TEXTS)), dtype=bool)
    present[:, -len(CONTROLS) :] = np.isin(np.arange(len(pairs)), rows)[:, None]
    scores = {}
    for metric, released, cells in rated:
        values = scores[metric.name] = np.full(present.shape, np.nan, dtype=np.float32)
        values[:, 0] = references.get(metric.name, np.nan)
        for name, statistics in released.items():
            values[:, TEXTS.index(name)] = metric_scores(metric, statistics)
        for name in CONTROLS if cells else ():
            values[rows, TEXTS.index(name)] = metric_scores(metric, cells[name])
    return TextScores(pairs.pair_ids, present, scores)


def write_text_scores(path: Path, scores: TextScores, about: Mapping[str, str] | None = None) -> None:
    """Writes one row per text as parquet, with ``about`` in the metadata of the file."""
    with whole_file(path) as partial, TableWriter(partial, scores.schema, about) as table:
        for group in scores.groups():
            table.add_table(group)


# What the verdict of a contrast is called.
VERDICTS = {RAW: "verdict_released", STANCE_NEAR: "verdict_near", STANCE_FAR: "verdict_far"}
SCORES = {name: f"score_{name}" for name in CELLS}
ABOUT = [(name, pa.string()) for name in ("metric", "pair_id", "dialogue_id", "scenario", "phase", "strategy")]
COLUMNS = pa.schema([*ABOUT, *((name, pa.float64()) for name in (*SCORES.values(), *VERDICTS.values())), ("signature", pa.string())])
SUFFIXES = (".parquet", ".csv")


def check_items(path: Path | None) -> None:
    """Refuses a file of another format than parquet or CSV.

    Raises:
        InputError: for it.
    """
    if path and path.suffix not in SUFFIXES:
        raise input_error(path, f'"{path.suffix}" is not a format for items', f"use a name that ends in {' or '.join(SUFFIXES)}")


def write_items(path: Path, pairs: Corpus, controls: Corpus, rated: Sequence[Scores]) -> None:
    """Writes one row per metric and pair as parquet or CSV: the score of each variant, and a verdict for each contrast of two variants.

    A verdict is 1 where the kind text is rated better, 0 where the cold one is, one half for a tie. What a metric gave no score, and
    what a pair has no control for, is null.

    Args:
        rated: each metric with its statistics of the pairs and of those with controls, by variant.
    """
    place = {pair: row for row, pair in enumerate(controls.pair_ids)}
    at = np.array([place.get(pair, -1) for pair in pairs.pair_ids], dtype=np.int64)
    write_rows(path, COLUMNS, _rows(pairs, at, rated))


def _rows(pairs: Corpus, at: Any, rated: Sequence[Scores]) -> Iterator[dict[str, Any]]:
    for metric, released, cells in rated:
        columns = _columns(metric, released, cells, at)
        for row, pair_id in enumerate(pairs.pair_ids):
            about = {name: pairs.groups[name][row] for name in ("scenario", "phase", "strategy")}
            yield {
                "metric": metric.name, "pair_id": pair_id, "dialogue_id": pairs.dialogues[row], **about,
                **{name: None if np.isnan(value := column[row]) else float(value) for name, column in columns.items()},
                "signature": metric.signature,
            }  # fmt: skip


def _columns(metric: Metric, released: Statistics, cells: Statistics, rows: Any) -> dict[str, Array]:
    """Scores and verdicts by column over all pairs, nan where there is none."""

    def spread(values: Array) -> Array:
        """Values of the pairs with controls, over all pairs."""
        return np.where(rows >= 0, np.append(values, np.nan)[rows], np.nan)

    known = {name: metric_scores(metric, values) for name, values in released.items()}
    known |= {name: spread(metric_scores(metric, values)) for name, values in cells.items() if name not in known}
    missing = np.full(len(rows), np.nan)
    verdicts = {contrast.name: compare_pairs(metric, released, contrast).won() for contrast in PAIRS}
    verdicts |= {contrast.name: spread(compare_pairs(metric, cells, contrast).won()) for contrast in TWO_BY_TWO if contrast.sides and cells}
    return {column: known.get(name, missing) for name, column in SCORES.items()} | {
        column: verdicts.get(name, missing) for name, column in VERDICTS.items()
    }


@dataclass(frozen=True)
class ExtraMeasurements:
    """Measurements beside the inversion: attacks on at most ``most`` pairs, fairness, and shortcuts, with or without an embedding.

    ``crossed_scores`` are scores of crossed items from files.
    """

    attacks: Attacks | None = None
    most: int = MOST
    fairness: FairnessTest | None = None
    shortcuts: bool = True
    embedding: Embedding | None = None
    crossed_scores: Sequence[PrecomputedCrossedScores] = ()

    def note_crossed(self, what: str) -> list[str]:
        """Notes on scores of crossed items for tables of pairs."""
        return [f"{scores.path.stem}: {what}, as its scores are of crossed items" for scores in self.crossed_scores]


def score_tables(evaluation: Evaluation, scores: AllScores, extra: ExtraMeasurements) -> dict[str, Any]:
    """Returns the tables that are made of scores, by their names in ``ReleaseTables``; the scores are not needed afterwards."""
    attacks, fairness = extra.attacks, extra.fairness
    return {
        "attacks": attack_table(evaluation, scores.rated, attacks, extra.most, extra.note_crossed("not attacked")) if attacks else None,
        "fairness": fairness.tables(scores.rated, extra.note_crossed("is not asked")) if fairness else None,
        **evaluation.tables(scores),
    }


def add_text_tables(evaluation: Evaluation, tables: dict[str, Any], extra: ExtraMeasurements) -> dict[str, Any]:
    """Returns the tables with those that read the texts again, and with all faults; with a limit there are none of them."""
    whole = evaluation.chance.limit is None
    audit = audit_evaluation(evaluation, extra.embedding) if whole and extra.shortcuts else None
    crossed, faults = None, tables["faults"]
    if whole:
        crossed, new = crossed_tables(evaluation, faults, extra.crossed_scores, shortcuts=extra.shortcuts, embedding=extra.embedding)
        faults = merge_faults(faults, new)
    faults_of_tables = [table.faults for table in (tables["fairness"], tables["attacks"]) if table]
    return {**tables, "audit": audit, "crossed": crossed, "faults": merge_faults(faults, *faults_of_tables)}


# The name of all splits, and what the ids of curated seed dialogues have.
ALL, SEED = "all", "-seed-"
LEFT_OUT = "without the shortcut audit, crossed items, whole dialogues and texts from before the contrast checks"
FIRST_LOOK = f"a first look: {{}} pairs, drawn by their ids, {LEFT_OUT}"


def score(
    release_dir: Path, names: Sequence[str] = (), scores: Sequence[Path] = (), *, split: str | None = None, lower_is_better: bool = False,
    strict: bool = False, items: Path | None = None, shortcuts: bool = True, scoring: Scoring = PLAIN, judges: Sequence[str] = (),
    annotations: ReleaseAnnotations | None = None, attacks: Callable[..., Attacks] | None = None,
    fairness: Callable[[Evaluation], FairnessTest] | None = None, limit: int | None = None,
) -> ReleaseTables:  # fmt: skip
    """Scores a release by metrics (by name or ``module:name``), files of scores and judges, over all splits or one.

    Without a split it is ``test`` where a metric was trained on the release, else all. A ``limit`` measures a sample of so many pairs.
    Judges are those of ``annotations`` (none named: all), or of the release; no model is called. With ``strict`` a pair that a file or a
    judge leaves out counts as wrong in its accuracy. ``items`` is a parquet or CSV file for all scores and verdicts. The audit of
    ``shortcuts`` has no embedding. ``attacks`` makes the attacks for a ``language``, ``fairness`` the test of an evaluation.

    Raises:
        InputError: if the folder is no release, a metric or a judge is unknown, a file of scores is faulty or has the name of another
            row, or nothing is left to score.
    """
    configuration = (manifest := read_manifest(release_dir))["configuration"]
    chance = ResamplingSettings(configuration["report"]["bootstrap"], EXCHANGES, configuration["seed"], limit)
    check_items(items)
    language = language_of(configuration)
    selection = find(names, configuration["report"], language=language) if names else MetricSelection((), (), language)
    splits, notes = choose_splits(split, selection.metrics, release_dir, manifest["name"])
    chosen, found_judges = attacks(language=language) if attacks else None, read_judges(release_dir, judges, annotations)
    ruled, wholes = ([judge for judge in found_judges if judge.whole is whole] for whole in (False, True))
    files, (scores, of_items) = scores, read_crossed_files(release_dir, scores, higher_is_better=not lower_is_better)
    _refuse_items(of_items if limit is not None else ())
    known = [*(metric.name for metric in (*selection.metrics, *ruled, *wholes)), *(measure.name for measure in selection.diversities)]
    for paths in (scores, [crossed.path for crossed in of_items]):
        check_names(known, paths)
    precomputed = [*read_pair_scores(release_dir, scores, higher_is_better=not lower_is_better), *ruled]
    selection = replace(selection, metrics=(*selection.metrics, *precomputed))
    evaluation = Evaluation(release_dir, selection, chance, scoring, splits=splits, strict=strict)
    _refuse_unscored(evaluation, release_dir, dict(zip([*map(str, scores), *(judge.name for judge in ruled)], precomputed, strict=True)))
    notes += [FIRST_LOOK.format(len(evaluation.pairs))] if limit is not None else []
    dialogues = _of_dialogues(evaluation, wholes)
    extra = ExtraMeasurements(chosen, fairness=fairness(evaluation) if fairness else None, shortcuts=shortcuts, crossed_scores=of_items)
    tables = add_text_tables(evaluation, _of_scores(evaluation, extra, items), extra)
    settings = {"lower_is_better": lower_is_better, "shortcuts": shortcuts, "fairness": fairness is not None, **_named(wholes)}
    return ReleaseTables(**tables, dialogues=dialogues, notes=tuple(notes), provenance=_provenance(evaluation, files, chosen, settings))


def _named(wholes: Sequence[PrecomputedScores]) -> dict[str, list[str]]:
    """Returns the entry of a provenance for judges of whole dialogues; empty without any."""
    return {"judges_of_dialogues": [whole.name for whole in wholes]} if wholes else {}


def _refuse_items(scores: Sequence[PrecomputedCrossedScores]) -> None:
    """Refuses scores of crossed items where only some pairs are measured."""
    if scores:
        raise input_error(scores[0].path, "holds scores of crossed items, but --limit is for pairs", "leave out one of the two")


def _of_dialogues(evaluation: Evaluation, judges: Sequence[PrecomputedScores]) -> DialogueTable | None:
    """Returns the table of judges of whole dialogues, None with a limit; refuses a judge without a score."""
    table = dialogue_table(evaluation, judges) if evaluation.chance.limit is None else None
    silent = {judge.name for judge in judges} - {row.metric for row in table.inversion} if table else set()
    what = f"holds no score of a whole dialogue in {', '.join(evaluation.splits)}"
    refuse([Problem(name, what, "leave --split out, or name another") for name in sorted(silent)])
    return table


def _of_scores(evaluation: Evaluation, extra: ExtraMeasurements, items: Path | None) -> dict[str, Any]:
    """Returns the tables that are made of scores, and writes the file of the scores."""
    scores = evaluation.scores()
    if items:
        write_items(items, evaluation.pairs, evaluation.controls, scores.rated)
    return score_tables(evaluation, scores, extra)


def choose_splits(
    split: str | None, metrics: Sequence[Metric], release_dir: Path, name: str, *, default: Sequence[str] = ("test",)
) -> tuple[Sequence[str], list[str]]:
    """Returns the splits to measure, and notes on metrics that were trained on the release of that name.

    With such a metric ``default`` is measured where no split is named, if it holds pairs.
    """
    trained_metrics = {metric.name: trained for metric in metrics if (trained := _trained_on(metric, release_dir, name))}
    if split is None and trained_metrics and column(release_dir, "pairs", "pair_id", default):
        splits, chosen = tuple(default), True
    else:
        splits, chosen = SPLITS if split in (None, ALL) else (str(split),), False
    notes = []
    for metric, trained in trained_metrics.items():
        trained_note = f"{metric} was trained on {listed(trained)} of this release"
        if both := [split for split in trained if split in splits]:
            notes.append(f"warning: {trained_note}: no figure over {listed(both)} shows how good it is")
        elif chosen:
            notes.append(f"{trained_note}: measured on {listed(splits)} alone; --split {ALL} measures all")
    return splits, notes


def _trained_on(metric: Metric, release_dir: Path, name: str) -> list[str]:
    """Returns the splits of a release that a metric declares to be trained on."""
    declared: Mapping[str, Sequence[str]] = metric.trained_on if isinstance(metric, TrainedMetric) else {}
    splits = set(declared.get(name, ()))
    if seeds := [split for split in declared.get(SEEDS, ()) if split not in splits]:
        splits |= {seed for seed in seeds if any(SEED in pair for pair in column(release_dir, "pairs", "pair_id", [seed]))}
    return [split for split in SPLITS if split in splits]


def read_pair_scores(release_dir: Path, scores: Sequence[Path], *, higher_is_better: bool) -> list[PrecomputedScores]:
    """Reads the scores of pairs of a release from files.

    Raises:
        InputError: for a faulty file.
    """
    known, controls = (column(release_dir, config, "pair_id") if scores else [] for config in ("pairs", "controls"))
    return [read_scores(path, known, controls, higher_is_better=higher_is_better) for path in scores]


def _provenance(evaluation: Evaluation, files: Sequence[Path], chosen: Attacks | None, settings: Mapping[str, Any]) -> Provenance:
    """Returns the provenance of an evaluation: its pairs, files of scores, metrics, and the settings of intervals and tests."""
    selection, from_files = evaluation.selection, {file.stem for file in files}
    precomputed = [metric.name for metric in selection.metrics if isinstance(metric, PrecomputedScores)]
    named = [metric.name for metric in selection.metrics] + [measure.name for measure in selection.diversities]
    metrics, judges = [name for name in named if name not in precomputed], [name for name in precomputed if name not in from_files]
    attacks = [attack.name for attack in chosen.some] if chosen else []
    line = {"metrics": metrics, "judges": judges, "strict": evaluation.strict, "attacks": attacks, **settings, **asdict(evaluation.chance)}
    counts = len(evaluation.pairs), len(evaluation.controls)
    return Provenance.of(evaluation.folder, evaluation.splits, counts, map(file_of, files), **line)


def _refuse_unscored(evaluation: Evaluation, release_dir: Path, scores: Mapping[str, PrecomputedScores]) -> None:
    """Refuses splits without pairs, and files and judges (by their origin) without a score of one."""
    splits, fix = ", ".join(evaluation.splits), "leave --split out, or name another"
    if not len(evaluation.pairs):
        raise input_error(release_dir, f"holds no pairs in {splits}", fix)
    what = f"holds no score of a pair in {splits}"
    refuse(Problem(place, what, fix) for place, precomputed in scores.items() if precomputed.pair_ids.isdisjoint(evaluation.pairs.pair_ids))


def check_names(metrics: Iterable[str], scores: Sequence[Path]) -> None:
    """Refuses a file with the name of another row."""
    known, problems = set(metrics), list[Problem]()
    for path in scores:
        if path.stem in known:
            problems.append(Problem(str(path), f'there is another row with the name "{path.stem}"', "give the file a name of its own"))
        known.add(path.stem)
    refuse(problems)
