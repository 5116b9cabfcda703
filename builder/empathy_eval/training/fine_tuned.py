"""The kind ``students``: encoders that are fine-tuned to say what a teacher said, or, without one, which of two replies is better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import digest
from empathy_eval.base.text import words
from empathy_eval.design.dataset import column, files_of
from empathy_eval.metrics.bertscore import device
from empathy_eval.metrics.empathy_score.encoders import TOKENIZER as OF_ENCODER
from empathy_eval.metrics.empathy_score.encoders import Encoder, encoder_named
from empathy_eval.metrics.empathy_score.inputs import Inputs, told
from empathy_eval.metrics.empathy_score.model_folder import ENCODER, TOKENIZER
from empathy_eval.metrics.empathy_score.networks import Design, arrays_of, require, scored, started
from empathy_eval.training.checkpoint import Checkpoint
from empathy_eval.training.contrasts import BOTH, EQUAL_CLOSENESS, RANKING, REGRESSION, Reader, Task, hashes
from empathy_eval.training.examples import Lessons, lessons_of
from empathy_eval.training.kinds import Trained
from empathy_eval.training.training_loop import Class, Record, one_way, teach

if TYPE_CHECKING:
    import torch


VALIDATION = "validation"
SHORTEST = 8


def train(task: Task) -> Trained:
    """Trains students.

    Raises:
        InputError: if packages are missing, the encoder is none, or there is nothing to learn from.
    """
    require()
    encoder, course = encoder_named(task.encoder), task.course
    lessons = lessons_of(task)
    design = Design(lessons.parts, course.shared, encoder.shape)
    if not SHORTEST <= course.max_tokens <= design.places:
        fix = f"use a number from {SHORTEST} to {design.places}, the longest input of the encoder {encoder.name}"
        raise input_error("--max-tokens", f"{course.max_tokens} is out of range", fix)
    settings = _settings(task, encoder, lessons)
    # Validation says which epoch counts.
    judged_by = hashes(task.release, files_of(task.release, "controls", [VALIDATION]))
    key = digest([settings, lessons.data.rows, encoder.sha256, list(task.splits), list(task.contrasts), judged_by])
    inputs = Inputs((encoder.folder / OF_ENCODER).read_bytes(), course.max_tokens)
    with one_way():
        network = _begun(design, encoder, course.seed)
        taught = Class(network, design, lessons, course, inputs)
        record = teach(taught, lessons, course, _worth(task, network, design, inputs), Checkpoint(task.checkpoint, key), task.progress)
    lengths = [len(words(text)) for text in lessons.texts()]
    return Trained(
        arrays_of(network), settings, len(lessons.pairs), lessons.data,
        training_range={"languages": ["en"], "words": [min(lengths), max(lengths)], "features": {}},
        encoder={"name": encoder.name, "sha256": encoder.sha256}, parts=lessons.parts, sources=lessons.sources,
        contrasts=task.contrasts if task.teacher is None and lessons.pairs else (),
        files={ENCODER: (encoder.folder / "config.json").read_bytes(), TOKENIZER: (encoder.folder / OF_ENCODER).read_bytes()},
        training=_told(record),
    )  # fmt: skip


def _begun(design: Design, encoder: Encoder, seed: int) -> torch.nn.ModuleDict:
    import torch

    torch.manual_seed(seed)
    return started(design, encoder.folder).to(device())


def _settings(task: Task, encoder: Encoder, lessons: Lessons) -> dict[str, Any]:
    made_of = dict(lessons.made_of)
    used = BOTH if made_of["singles"] and made_of["pairs"] else REGRESSION if made_of["singles"] else RANKING
    return {
        **replace(task.course, objective=used).settings(),
        "teacher": task.teacher,
        **made_of,
        "encoder_files": encoder.files,
        "device": device(),
        **{name: metadata.version(name) for name in ("torch", "transformers", "tokenizers")},
    }


def _worth(task: Task, network: torch.nn.ModuleDict, design: Design, inputs: Inputs) -> Callable[[], float | None]:
    """Accuracy at equal closeness on validation: how often the score, both parts alike, is higher for the kind text; a tie is half."""
    if VALIDATION in task.splits or not column(task.release, "controls", "pair_id", [VALIDATION]):
        return lambda: None
    asked = replace(task, contrasts=EQUAL_CLOSENESS["equal-closeness"], splits=(VALIDATION,), progress=lambda pairs: None)
    pairs = [
        (told(context), winner, loser)
        for batch in Reader(asked).batches()
        for context, winner, loser in zip(batch.winners.contexts, batch.winners.texts, batch.losers.texts, strict=True)
    ]
    contexts, *sides = (list(some) for some in zip(*pairs, strict=True))

    def worth() -> float:
        ids = inputs.of([*contexts, *contexts], [*sides[0], *sides[1]])
        scores = np.round(sum(scored(network, ids, design).values()) / len(design.parts), 4)
        won, lost = scores[: len(pairs)], scores[len(pairs) :]
        return float(np.mean((won > lost) + (won == lost) / 2))

    return worth


def _told(record: Record) -> dict[str, Any]:
    """What ``metrics.json`` says of the training itself: by step the losses, by epoch the accuracy on validation."""
    return {
        "accuracy at equal closeness, validation": [one if one is None else round(one, 6) for one in record.worth],
        "best epoch": None if record.best is None else record.best + 1,
        "losses": record.losses,
    }
