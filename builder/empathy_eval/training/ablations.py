"""Fidelity and ablations of students: agreement with the teacher on unseen dialogues, and the contribution of each part.

Of one teacher, students are trained in full, with each loss alone, and with one encoder for both parts. What a part of the score adds is
seen without it, as in Table 6 of "EmpathyScore".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from empathy_eval.base.errors import InputError, input_error
from empathy_eval.base.files import data_folder, write_whole
from empathy_eval.base.hashing import digest_file, signature_line
from empathy_eval.base.json_text import fields_json, json_text
from empathy_eval.base.schemas import read_json, read_yaml
from empathy_eval.base.stages import stage
from empathy_eval.design.contrasts import CELLS, CONTROLS, FAR, NEAR, PAIR_VARIANTS
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.provenance import KEYS, LongForm, Provenance, file_of
from empathy_eval.evaluation.corpus.pairs import read_corpus
from empathy_eval.metrics.empathy_score.model import METRICS, is_model, read_model, scorer_of
from empathy_eval.metrics.protocol import Array, Context, Segments
from empathy_eval.raters.judges.estimator import Estimator, chance_of
from empathy_eval.raters.people.human_correlation import mean_ratings
from empathy_eval.statistics.estimate import Estimate, wins
from empathy_eval.training.examples import CONTENT, FLOW, PARTS, rated_by_teacher
from empathy_eval.training.students import read_settings
from empathy_eval.training.task import RANKING, REFERENCE, REGRESSION, TrainingTask
from empathy_eval.training.train import train

FULL, TEACHER = "full", "teacher"
# What is trained: the folder, and how its schedule differs.
TRAINED: dict[str, dict[str, Any]] = {
    FULL: {}, "regression alone": {"objective": REGRESSION}, "ranking alone": {"objective": RANKING}, "shared encoder": {"shared": True}
}  # fmt: skip
# Rows of the full students whose score is one part.
WITHOUT = {"without flow": CONTENT, "without content": FLOW}
ABLATION = "ablation.json"
SCORE, TOGETHER, WITHIN = "score", "flow and content", "flow and content, within variants"
HELD = ("test", "validation")
# A pair and a variant or the reference.
Text = tuple[str, str]


@dataclass(frozen=True)
class Row:
    """Figures of students (or of the teacher), by name; ``encoder`` and ``seed`` are None of the teacher."""

    row: str
    encoder: str | None
    seed: int | None
    figures: dict[str, Estimate]


@dataclass(frozen=True, repr=False)
class Ablation(LongForm):
    """All rows over the texts of a held-out split, the teacher first, and the paper's Table 6."""

    columns: ClassVar[tuple[str, ...]] = (
        *KEYS, "row", "encoder", "seed", "figure", "value", "low", "high", "items", "why", "signature"
    )  # fmt: skip
    numbers: ClassVar[tuple[str, ...]] = ("value", "low", "high", "items")
    folder: Path
    split: str
    texts: int
    rows: tuple[Row, ...]
    paper: tuple[dict[str, Any], ...]

    def to_json(self) -> dict[str, Any]:
        """All figures as JSON values."""
        return self._with_provenance({**fields_json(self), "folder": self.folder.name})

    def _records(self) -> Iterator[dict[str, Any]]:
        for row in self.rows:
            about = {"row": row.row, "encoder": row.encoder, "seed": row.seed}
            yield from ({**about, "figure": name, **figure.to_json()} for name, figure in row.figures.items())


@dataclass(frozen=True)
class AblationPlan:
    """The plan of an ablation: a task with a teacher, encoders and seeds, the weight of flow, and human ratings."""

    task: TrainingTask
    encoders: tuple[str, ...]
    seeds: tuple[int, ...]
    alpha: float = 0.5
    ratings: Path | None = None


def ablate(plan: AblationPlan, out: Path) -> Ablation:
    """Trains all students into folders of ``out``, and writes and returns their figures; trained ones are not trained again.

    Raises:
        InputError: if there is no teacher, no split that it annotated is left out of training, or ``out`` holds something else.
        JobError: if a folder cannot be written.
    """
    if plan.task.teacher is None:
        raise input_error("--ablate", "needs a teacher, whose values are what students are held against", "name one with --teacher")
    names = [_label(encoder, seed) for encoder in plan.encoders for seed in plan.seeds]
    if twice := [name for name in names if names.count(name) > 1]:
        raise input_error("--ablate", f'"{twice[0]}" is the name of two', "name each encoder and seed once")
    if out.exists() and (not out.is_dir() or is_model(out) or {path.name for path in out.iterdir()} - {ABLATION, *names}):
        raise input_error(out, "holds something other than these ablations", "name another folder with --out")
    held_out = _HeldOut.of(plan)
    rows = [held_out.of_teacher()]
    for encoder in plan.encoders:
        for seed in plan.seeds:
            schedule = replace(plan.task.schedule, seed=seed)
            task = replace(plan.task, encoder=encoder, schedule=schedule)
            rows += _rows(task, held_out, out / _label(encoder, seed))
    paper = tuple(read_yaml(data_folder("release") / "paper_ablations.yaml", "paper_ablations"))
    settings = {name: value for name, value in plan.task.schedule.settings().items() if name not in ("seed", "objective")}
    encoders = [Path(path).name for path in plan.encoders]
    settings = {"teacher": plan.task.teacher, "encoders": encoders, "seeds": list(plan.seeds), "alpha": plan.alpha, **settings}
    provenance = Provenance.of(plan.task.release, (held_out.split,), files=map(file_of, [plan.ratings] if plan.ratings else []), **settings)
    result = Ablation(out, held_out.split, len(held_out.rated), tuple(rows), paper, provenance=provenance)
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / ABLATION, json_text(result.to_json()) + "\n")
    return result


def _label(encoder: str, seed: int) -> str:
    return f"{Path(encoder).name}-seed-{seed}"


def _rows(task: TrainingTask, held_out: _HeldOut, folder: Path) -> Iterator[Row]:
    """Yields the rows of one encoder and seed; drops are relative to its full students."""
    full: Mapping[str, Array] | None = None
    for number, (name, change) in enumerate(TRAINED.items(), 1):
        own, place = replace(task, schedule=replace(task.schedule, **change)), folder / name.replace(" ", "-")
        if not _is_trained(own, place):
            stage(f"training {name}, {number} of {len(TRAINED)}")
            train(own, "students", place)
        stage(f"measuring {name}, {number} of {len(TRAINED)}")
        scores = held_out.scores(place)
        full = full or scores
        about = Path(task.encoder).name, task.schedule.seed
        yield Row(name, *about, held_out.figures(scores, full))
        for row, part in WITHOUT.items() if name == FULL else ():
            figures = held_out.figures({**scores, SCORE: scores[part]}, full)
            # Of the parts themselves there is nothing new.
            yield Row(row, *about, {key: figures[key] for key in figures if key.partition(":")[0] not in (FLOW, CONTENT, TOGETHER, WITHIN)})


def _is_trained(task: TrainingTask, folder: Path) -> bool:
    """Returns whether a folder holds the result of this task: equal settings, data and measured files."""
    try:
        config = read_model(str(folder)).config
    except InputError:
        return False
    settings, rows = read_settings(task)
    same = (config["settings"], config["release"]["rows"], config["splits"]) == (settings, rows, list(task.splits))
    measured: dict[str, str] = read_json(folder / METRICS, None, "train the model again")["data"]
    files = {name: task.release / name for name in measured}
    return same and all(path.is_file() and digest_file(path) == measured[name] for name, path in files.items())


@dataclass(frozen=True)
class _HeldOut:
    """Held-out texts with the teacher's values and human ratings."""

    release: Path
    split: str
    alpha: float
    rated: Mapping[Text, tuple[float | None, ...]]
    people: Mapping[Text, float]
    criterion: str
    estimator: Estimator

    @classmethod
    def of(cls, plan: AblationPlan) -> _HeldOut:
        """Returns the test split, or else validation, if the teacher annotated it."""
        task, problem = plan.task, None
        for split in [split for split in HELD if split not in task.splits]:
            try:
                rated = rated_by_teacher(replace(task, splits=(split,)))
            except InputError as error:
                problem = error
                continue
            people = mean_ratings(task.release, plan.ratings, (split,)) if plan.ratings else None
            signed = signature_line(teacher=task.teacher, split=split, alpha=plan.alpha, flow=task.schedule.flow)
            chance = chance_of(read_manifest(task.release))
            ratings, criterion = (people.scores, people.criterion) if people else ({}, "")
            return cls(task.release, split, plan.alpha, rated, ratings, criterion, Estimator(signed, chance))
        raise problem or input_error("--ablate", "no split is left out of training", "train on fewer splits with --split")

    @cached_property
    def keys(self) -> list[Text]:
        """All texts, in the order of their names."""
        return sorted({*self.rated, *self.people})

    def scores(self, folder: Path) -> dict[str, Array]:
        """Returns the scores of students by part, and combined."""
        texts = self._texts
        contexts, replies = zip(*(texts[key] for key in self.keys), strict=True)
        parts_of_scorer = scorer_of(read_model(str(folder))).parts(Segments(replies, (), contexts))
        parts: dict[str, Array] = {name: np.round(values, 4).astype(np.float64) for name, values in parts_of_scorer.items()}
        return {**parts, SCORE: self._mixed(parts)}

    def _mixed(self, parts: Mapping[str, Array]) -> Array:
        mixed: Array = np.round(self.alpha * parts[FLOW] + (1 - self.alpha) * parts[CONTENT], 6)
        return mixed

    @cached_property
    def _texts(self) -> dict[Text, tuple[Context, str]]:
        texts, keys = dict[Text, tuple[Context, str]](), set(self.keys)
        for config, variants in (("pairs", PAIR_VARIANTS), ("controls", CONTROLS)):
            corpus = read_corpus(self.release, config, variants, contexts=True, splits=(self.split,))
            columns = {REFERENCE: corpus.references, **corpus.variants}
            for row, pair in enumerate(corpus.pair_ids):
                texts |= {(pair, name): (corpus.contexts[row], some[row]) for name, some in columns.items() if (pair, name) in keys}
        return texts

    @cached_property
    def teacher(self) -> dict[str, Array]:
        """The teacher's values of each text, NaN without one."""
        nothing = (None,) * len(PARTS)
        values = np.array([self.rated.get(key, nothing) for key in self.keys], dtype=np.float64)
        parts = {name: values[:, place] for place, name in enumerate(PARTS)}
        return {**parts, SCORE: self._mixed(parts)}

    def of_teacher(self) -> Row:
        """Returns the row of the teacher's own figures."""
        return Row(TEACHER, None, None, {**self._own(self.teacher), **self._with_people(self.teacher, None)})

    def figures(self, scores: Mapping[str, Array], full: Mapping[str, Array]) -> dict[str, Estimate]:
        """Returns all figures of students: agreement with the teacher, their own, and with people beside the full students."""
        figures = dict[str, Estimate]()
        for name in (FLOW, CONTENT, SCORE):
            known = ~np.isnan(self.teacher[name])
            names, ours, theirs = self._names(known), scores[name][known], self.teacher[name][known]
            figures[f"{name}: r"] = self.estimator.correlation(ours, theirs, names, of=f"{name},teacher")
            figures[f"{name}: rho"] = self.estimator.correlation(ours, theirs, names, ranks=True, of=f"{name},teacher")
            gap = np.abs(ours - theirs).tolist()
            figures[f"{name}: mean error"] = self.estimator.shares({"": gap}, names, mean=f"absolute-error,{name},teacher")[""]
        return {**figures, **self._own(scores), **self._with_people(scores, full)}

    def _own(self, scores: Mapping[str, Array]) -> dict[str, Estimate]:
        """Returns the accuracy at equal closeness where the teacher rated all four cells, and the correlation of flow and content."""
        whole = ~np.isnan(self.teacher[SCORE])
        place = {key: row for row, key in enumerate(self.keys) if whole[row]}
        pairs = [pair for pair in dict.fromkeys(name for name, _ in self.keys) if all((pair, cell) in place for cell in CELLS)]
        duels = [(pair, kind, cold) for pair in pairs for kind, cold in (NEAR, FAR)]
        kind, cold = (scores[SCORE][[place[duel[0], duel[side]] for duel in duels]] if duels else np.zeros(0) for side in (1, 2))
        names, won = [pair for pair, _, _ in duels], wins(kind, cold).tolist()
        known = whole & ~np.isnan(scores[FLOW]) & ~np.isnan(scores[CONTENT])
        variants = [self.keys[row][1] for row in np.flatnonzero(known)]
        flow, content = (_centred(scores[name][known], variants) for name in (FLOW, CONTENT))
        names_of_known = self._names(known)
        return {
            "accuracy": self.estimator.shares({"": won}, names, right="kind-over-cold,ties-half", duels="near,far")[""],
            TOGETHER: self.estimator.correlation(scores[FLOW][known], scores[CONTENT][known], names_of_known, of="flow,content"),
            WITHIN: self.estimator.correlation(flow, content, names_of_known, of="flow,content,less-means-of-variants"),
        }

    def _with_people(self, scores: Mapping[str, Array], full: Mapping[str, Array] | None) -> dict[str, Estimate]:
        """Returns the correlation with people, and its drop from the full students over the same draws (Table 6)."""
        if not self.people:
            return {}
        ratings = np.array([self.people.get(key, np.nan) for key in self.keys])
        known = ~(np.isnan(ratings) | np.isnan(scores[SCORE]))
        names, figures = self._names(known), dict[str, Estimate]()
        for name, ranks in (("r", False), ("rho", True)):
            of = f"score,people,{self.criterion}"
            values, line = self.estimator.correlated(scores[SCORE][known], ratings[known], names, ranks=ranks, of=of)
            figures[f"people: {name}"] = Estimate.of_resamples(
                values, len(names), "in common", "one of the two is the same for all items", line
            )
            if full is not None:
                whole, _ = self.estimator.correlated(full[SCORE][known], ratings[known], names, ranks=ranks, of=of)
                with np.errstate(divide="ignore", invalid="ignore"):
                    drop = (whole - values) / whole
                figures[f"drop in {name}"] = Estimate.of_resamples(
                    drop, len(names), "in common", "not defined", f"{line}|drop:share-of-full"
                )
        return figures

    def _names(self, known: Any) -> list[str]:
        return [name for (name, _), is_known in zip(self.keys, known, strict=True) if is_known]


def _centred(values: Array, variants: Sequence[str]) -> Array:
    """Returns values less the mean of their variant."""
    groups = np.unique(variants, return_inverse=True)[1]
    centred: Array = values - (np.bincount(groups, values) / np.maximum(np.bincount(groups), 1))[groups] if len(values) else values
    return centred
