"""Training: a student of a kind becomes a model folder, with what it is worth and its card."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import data_folder, whole_folder
from empathy_eval.base.json_text import json_text
from empathy_eval.base.schemas import check
from empathy_eval.base.stages import stage
from empathy_eval.base.templates import environment
from empathy_eval.base.text import ENGLISH
from empathy_eval.design.configuration import language_of
from empathy_eval.design.contrasts import RAW, STANCE
from empathy_eval.design.dataset import read_manifest
from empathy_eval.design.provenance import Provenance, Result, file_of
from empathy_eval.metrics.empathy_score.kinds import scorer_of
from empathy_eval.metrics.empathy_score.model_folder import (
    CARD,
    CHECKSUMS,
    CONFIG,
    WEIGHTS,
    WORTH,
    ModelFolder,
    checksums_text,
    identity,
    is_model,
    is_packaged,
)
from empathy_eval.metrics.empathy_score.scores import EmpathyScore
from empathy_eval.metrics.empathy_score.tensors import tensor_bytes
from empathy_eval.statistics.estimate import Estimate
from empathy_eval.training.contrasts import Task
from empathy_eval.training.kinds import Trained, trainer_of
from empathy_eval.training.worth import worth_of

CARD_TEMPLATE = "card.md.j2"
LICENCE = "CC BY 4.0"


@dataclass(frozen=True, repr=False)
class Model(Result):
    """A model that was trained: its folder, what it was made of (``config.json``) and what it is worth (``metrics.json``)."""

    folder: Path
    config: Mapping[str, Any]
    metrics: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The model as JSON values."""
        return self._with_provenance({"folder": str(self.folder), "config": self.config, "metrics": self.metrics})

    @property
    def headline(self) -> dict[str, Estimate]:
        """By split that it was not trained on how often it is right: at equal closeness where there are controls, else as released."""
        found = {split: next(iter((tables.get(STANCE) or tables[RAW]).values())) for split, tables in self.metrics["splits"].items()}
        return {split: Estimate(one["accuracy"], one["low"], one["high"]) for split, one in found.items()}


def train(task: Task, kind: str, out: Path) -> Model:
    """Trains a student and writes its folder, whole or not at all; a model that is there already is replaced.

    Raises:
        InputError: if the folder of the task is no English release or lacks its pairs, the kind is not known, or ``out`` is taken.
        JobError: if the folder cannot be written.
    """
    trainer = trainer_of(kind)
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
        metrics = worth_of(EmpathyScore.of(model, scorer_of(model)), task, learned.pairs)
        metrics |= {"training": learned.training} if learned.training else {}
        files |= {WORTH: _json(metrics), CARD: _card(config, metrics, learned).encode()}
        for name, data in files.items():
            (folder / name).write_bytes(data)
        (folder / CHECKSUMS).write_bytes(checksums_text(files).encode())
        shutil.rmtree(checkpoint, ignore_errors=True)
    asked = {"kind": kind, "contrasts": config["contrasts"], **config["settings"]}
    return Model(out, config, metrics, provenance=Provenance.of(task.release, task.splits, files=map(file_of, task.also), **asked))


def _config(task: Task, kind: str, learned: Trained, manifest: Mapping[str, Any]) -> dict[str, Any]:
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
        "sources": [{"name": "the release {name} {version}".format(**named), "licence": LICENCE}, *map(dict, learned.sources)],
        "settings": dict(learned.settings),
        "training_range": learned.training_range,
    }


def _card(config: Mapping[str, Any], metrics: Mapping[str, Any], learned: Trained) -> str:
    weights = learned.arrays["weights"].tolist() if config["kind"] == "plain" else []
    names = config["features"]["names"] if weights else []
    ordered = sorted(zip(names, weights, strict=True), key=lambda one: (-abs(one[1]), one[0]))
    template = environment(data_folder("empathyscore")).get_template(CARD_TEMPLATE)
    return template.render(config=config, metrics=metrics, weights=ordered).strip() + "\n"


def _json(value: Mapping[str, Any]) -> bytes:
    return (json_text(value) + "\n").encode()
