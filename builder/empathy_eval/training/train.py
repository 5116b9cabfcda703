"""Training of a model folder, with the quality of the model and its card."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.array_files import tensor_bytes
from empathy_eval.base.errors import input_error
from empathy_eval.base.files import data_folder, whole_folder
from empathy_eval.base.hashing import signature_line
from empathy_eval.base.json_text import json_text
from empathy_eval.base.schemas import check
from empathy_eval.base.stages import stage
from empathy_eval.base.templates import environment
from empathy_eval.base.text import ENGLISH, words
from empathy_eval.design.configuration import language_of
from empathy_eval.design.contrasts import PAIR_VARIANTS, RAW, STANCE, STANCE_FAR, STANCE_NEAR
from empathy_eval.design.dataset import column, files_of, read_manifest
from empathy_eval.design.provenance import Provenance, Result, file_of
from empathy_eval.evaluation.corpus.pairs import Corpus, read_corpus
from empathy_eval.evaluation.crossed_items import crossed_rows, crossed_scorers, read_items
from empathy_eval.evaluation.external.score_file import CROSSED
from empathy_eval.evaluation.inversion.evaluation import Evaluation
from empathy_eval.evaluation.inversion.inversion import EXCHANGES, ResamplingSettings, accuracies
from empathy_eval.evaluation.inversion.results import MetricRow, ReleaseTables
from empathy_eval.evaluation.shortcuts.linear_classifiers import ALPHA, UNIT, TrainingSums, log_odds
from empathy_eval.metrics.empathy_score.model import (
    CARD,
    CHECKSUMS,
    CONFIG,
    METRICS,
    WEIGHTS,
    EmpathyScore,
    ModelFolder,
    checksums_text,
    identity,
    is_model,
    is_packaged,
)
from empathy_eval.metrics.lexical import Length, PositiveShare
from empathy_eval.metrics.protocol import MeanMetric, Segments
from empathy_eval.metrics.registry import MetricSelection
from empathy_eval.statistics.estimate import SIGNED, Estimate, wins
from empathy_eval.training.task import (
    CONTRASTS,
    EQUAL_CLOSENESS,
    REFERENCE,
    PairBatch,
    TrainedArrays,
    TrainingTask,
    find_trainer,
    hash_files,
    read_batches,
)


class LengthBaseline(Length):
    """The number of words, where more counts as empathetic."""

    higher_is_better = True
    form = f"{Length.form}|right:more-is-kind"


class WordsBaseline(MeanMetric):
    """The sum of word weights: log odds of counts in winners over those in losers, as in the shortcut audit."""

    reads = ()

    def __init__(self, name: str, weights: Mapping[str, int], settings: Mapping[str, Any]) -> None:
        self.name, self._weights = name, weights
        self.signature = signature_line(counts="words,empathy-eval,casefolded", form=f"log-odds,alpha={ALPHA}", **settings)

    @classmethod
    def of(cls, name: str, batches: Iterable[PairBatch], **settings: object) -> WordsBaseline:
        """Learns the weights from these pairs."""
        kind, cold, pairs = Counter[str](), Counter[str](), 0
        for batch in batches:
            pairs += len(batch.ids)
            for counts, side in ((kind, batch.winners), (cold, batch.losers)):
                for text in side.texts:
                    counts.update(words(text))
        known = sorted({*kind, *cold})
        kind_counts, cold_counts = (np.array([counts[word] for word in known], dtype=np.int64) for counts in (kind, cold))
        weights = log_odds(TrainingSums(kind_counts, cold_counts, np.zeros(0, dtype=np.int64), pairs))
        return cls(name, dict(zip(known, weights.tolist(), strict=True)), settings)

    def score(self, text: str) -> float:
        """Returns the sum over the words of a text; an unknown word has no weight."""
        return sum(self._weights.get(word, 0) for word in words(text)) / UNIT


# Of its own, so that nothing but the data of a release decides what is written.
CHANCE = ResamplingSettings(1000, EXCHANGES, 2026)
AT_EQUAL_CLOSENESS = EQUAL_CLOSENESS["equal-closeness"]
Figures = dict[str, Any]


def measure_quality(metric: MeanMetric, task: TrainingTask, pairs: int) -> Figures:
    """Returns ``metrics.json`` of a model learned from ``pairs`` pairs: accuracies by split that it was not trained on."""
    rows = [metric, *_baselines(task, pairs)]
    held_out = [split for split in ("validation", "test") if split not in task.splits and column(task.release, "pairs", "pair_id", [split])]
    configs = sorted({"pairs", "controls", *(CONTRASTS[name][0] for name in task.contrasts)})
    read = [path for config in configs for path in files_of(task.release, config, [*task.splits, *held_out])]
    contrasts = list(task.contrasts) if pairs and not task.teacher else []
    return {
        "data": hash_files(task.release, read),
        "trained_on": {"pairs": pairs, "contrasts": contrasts, "splits": list(task.splits)},
        "signatures": {row.name: row.signature for row in rows},
        "splits": {split: _measure_split(rows, task, split) for split in held_out},
    }


def _baselines(task: TrainingTask, pairs: int) -> list[MeanMetric]:
    """Returns baselines: words alone on the model's own pairs and on those at equal closeness, length and positive words."""
    quiet, baselines = replace(task, progress=lambda pairs: None), list[MeanMetric]()
    settings = {"learned": ",".join(task.contrasts), "of": "+".join(task.splits)}
    # What a teacher taught has no pairs of its own.
    name = "words alone, same pairs" if pairs and task.teacher is None else f"words alone, {settings['learned']}"
    baselines.append(WordsBaseline.of(name, read_batches(quiet), **settings))
    if task.contrasts != AT_EQUAL_CLOSENESS and column(task.release, "controls", "pair_id", task.splits):
        settings = {**settings, "learned": ",".join(AT_EQUAL_CLOSENESS)}
        equal = replace(quiet, contrasts=AT_EQUAL_CLOSENESS)
        baselines.append(WordsBaseline.of("words alone, equal closeness", read_batches(equal), **settings))
    return [*baselines, LengthBaseline(), PositiveShare()]


def _measure_split(rows: Sequence[MeanMetric], task: TrainingTask, split: str) -> Figures:
    evaluation = Evaluation(task.release, MetricSelection(tuple(rows), ()), CHANCE, splits=(split,))
    measured = ReleaseTables(**evaluation.tables(evaluation.scores()))
    first = STANCE if measured.controls else RAW
    gaps = {row.other: row.accuracy for row in measured.comparisons if (row.first, row.contrast) == (rows[0].name, first)}
    tables = {name: _accuracies(measured.controls, name) for name in (STANCE, STANCE_NEAR, STANCE_FAR) if measured.controls}
    return {
        **tables,
        RAW: _accuracies(measured.inversion, RAW),
        **_measure_own_contrasts(rows, task, split),
        **{
            name: {group: _accuracies(some, next(iter(some[0].differences))) for group, some in groups.items() if some}
            for name, groups in measured.groups.items()
            if name in ("manner", "manner, as released")
        },
        # By how much the student is more often right than another.
        "minus": {
            "contrast": first,
            **{name: {"accuracy": gap.value, **gap.written("value", *SIGNED)} for name, gap in gaps.items()},
        },
        "interval": CHANCE.signature(evaluation.pairs.clusters),
    }  # fmt: skip


def _accuracies(rows: Sequence[MetricRow], contrast: str) -> Figures:
    return {row.metric: _accuracy_figures(row.differences[contrast].accuracy, row.pairs) for row in rows}


def _accuracy_figures(estimate: Estimate | None, pairs: int) -> Figures:
    return {"accuracy": estimate and estimate.value, "low": estimate and estimate.low, "high": estimate and estimate.high, "pairs": pairs}


def _measure_own_contrasts(rows: Sequence[MeanMetric], task: TrainingTask, split: str) -> Figures:
    """Returns the accuracies over the model's own contrasts that the evaluation does not have."""
    figures: Figures = {}
    for contrast in task.contrasts:
        config, winner, loser = CONTRASTS[contrast]
        if winner == REFERENCE:
            corpus = read_corpus(task.release, "pairs", PAIR_VARIANTS, contexts=True, splits=[split])
            won = [wins(_scores(row, corpus, corpus.references), _scores(row, corpus, corpus.variants[loser])) for row in rows]
            right = accuracies(won, corpus.clusters, CHANCE)
            figures[contrast] = {row.name: _accuracy_figures(accuracy, len(corpus)) for row, accuracy in zip(rows, right, strict=True)}
        elif config == CROSSED and (items := read_items(task.release, [split])):
            crossed = crossed_rows(crossed_scorers(rows, items)[0], items, CHANCE)
            figures[contrast] = {row.metric: _accuracy_figures(row.fitting, row.items) for row in crossed}
    return figures


def _scores(metric: MeanMetric, corpus: Corpus, texts: Sequence[str]) -> Any:
    return np.round(np.asarray(metric.score_all(Segments(texts, corpus.references, corpus.contexts)), dtype=np.float64), metric.places)


@dataclass(frozen=True, repr=False)
class TrainedModel(Result):
    """A trained model: its folder, its settings (``config.json``) and its quality (``metrics.json``)."""

    folder: Path
    config: Mapping[str, Any]
    metrics: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The model as JSON values."""
        return self._with_provenance({"folder": str(self.folder), "config": self.config, "metrics": self.metrics})

    @property
    def headline(self) -> dict[str, Estimate]:
        """Accuracy by held-out split: at equal closeness where there are controls, else as released."""
        rows = {split: next(iter((tables.get(STANCE) or tables[RAW]).values())) for split, tables in self.metrics["splits"].items()}
        return {split: Estimate(row["accuracy"], row["low"], row["high"]) for split, row in rows.items()}


def train(task: TrainingTask, kind: str, out: Path) -> TrainedModel:
    """Trains a model and writes its folder, whole or not at all; an older model in it is replaced.

    Raises:
        InputError: if the folder of the task is no English release or lacks its pairs, the kind is not known, or ``out`` is taken.
        JobError: if the folder cannot be written.
    """
    trainer = find_trainer(kind)
    manifest = read_manifest(task.release)
    if (language := language_of(manifest["configuration"])) != ENGLISH:
        what = f'is of the language "{language}", and the features and shortcuts of EmpathyScore are English'
        raise input_error(task.release, what, "name an English release")
    if out.name in ("", ".."):
        raise input_error(out, "has no name of its own", "name a folder with --out")
    if is_packaged(str(out)):
        raise input_error(out, "is the name of a packaged model, which would be scored in its place", "name another folder with --out")
    if out.exists() and not (out.is_dir() and (is_model(out) or not any(out.iterdir()))):
        raise input_error(out, "holds something other than a model of EmpathyScore", "name another folder with --out")
    # The checkpoints too belong to one training at a time.
    with whole_folder(out, made_by=CHECKSUMS) as folder:
        checkpoint = out.with_name(f".{out.name}.checkpoint")
        stage("reading and learning", things="pairs")
        learned = trainer(replace(task, checkpoint=checkpoint))
        config = _config(task, kind, learned, manifest)
        check(config, "empathyscore_config", CONFIG)
        files = {CONFIG: _json(config), WEIGHTS: tensor_bytes(learned.arrays), **learned.files}
        model = ModelFolder(kind, out, config, learned.arrays, identity(*files.values()), learned.files)
        stage("measuring the model")
        metrics = measure_quality(EmpathyScore.of(model), task, learned.pairs)
        metrics |= {"training": learned.training} if learned.training else {}
        files |= {METRICS: _json(metrics), CARD: _card(config, metrics, learned).encode()}
        for name, data in files.items():
            (folder / name).write_bytes(data)
        (folder / CHECKSUMS).write_bytes(checksums_text(files).encode())
        shutil.rmtree(checkpoint, ignore_errors=True)
    settings = {"kind": kind, "contrasts": config["contrasts"], **config["settings"]}
    provenance = Provenance.of(task.release, task.splits, files=map(file_of, task.also), **settings)
    return TrainedModel(out, config, metrics, provenance=provenance)


def _config(task: TrainingTask, kind: str, learned: TrainedArrays, manifest: Mapping[str, Any]) -> dict[str, Any]:
    named = {"name": manifest["name"], "version": manifest["version"]}
    return {
        "format": 1,
        "kind": kind,
        "parts": list(learned.parts),
        "features": learned.features,
        "contrasts": list(task.contrasts if learned.contrasts is None else learned.contrasts),
        "splits": list(task.splits),
        "release": {**named, "data": learned.data.sha256, "rows": learned.data.rows},
        "encoder": learned.encoder,
        "sources": [{"name": "the release {name} {version}".format(**named), "licence": "CC BY 4.0"}, *map(dict, learned.sources)],
        "settings": dict(learned.settings),
        "training_range": learned.training_range,
    }


def _card(config: Mapping[str, Any], metrics: Mapping[str, Any], learned: TrainedArrays) -> str:
    weights = learned.arrays["weights"].tolist() if config["kind"] == "plain" else []
    names = config["features"]["names"] if weights else []
    ordered = sorted(zip(names, weights, strict=True), key=lambda weight: (-abs(weight[1]), weight[0]))
    template = environment(data_folder("empathyscore")).get_template("card.md.j2")
    return template.render(config=config, metrics=metrics, weights=ordered).strip() + "\n"


def _json(value: Mapping[str, Any]) -> bytes:
    return (json_text(value) + "\n").encode()
