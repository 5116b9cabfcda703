"""The kind ``students``: encoders fine-tuned to a teacher's ratings or, without a teacher, to preferences between replies.

They are student in the steps of a schedule, each a batch of lessons, with checkpoints between them and an end when nothing gets better.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import whole_file
from empathy_eval.base.hashing import derived_random, digest
from empathy_eval.base.stages import stage
from empathy_eval.base.text import words
from empathy_eval.design.dataset import column, files_of
from empathy_eval.metrics.bertscore import TOKENS, batches, device, places_of
from empathy_eval.metrics.empathy_score.encoders import TOKENIZER as OF_ENCODER
from empathy_eval.metrics.empathy_score.encoders import Encoder, encoder_named
from empathy_eval.metrics.empathy_score.model import ENCODER, TOKENIZER
from empathy_eval.metrics.empathy_score.students import (
    Ids,
    NetworkDesign,
    PairTokenizer,
    arrays_of,
    conversation_text,
    forward,
    new_network,
    padded,
    require_packages,
    scored,
)
from empathy_eval.training.examples import PreferencePair, RatedText, TrainingExamples, build_examples
from empathy_eval.training.task import (
    BOTH,
    EQUAL_CLOSENESS,
    RANKING,
    REGRESSION,
    Step,
    TrainedArrays,
    TrainingSchedule,
    TrainingTask,
    hash_files,
    read_batches,
)

if TYPE_CHECKING:
    import torch
    from torch import Tensor

L = TypeVar("L", RatedText, PreferencePair)
STATE = "state.safetensors"


class Checkpoint:
    """The checkpoints of one training; those of other settings or data are ignored. Without a folder there are none."""

    def __init__(self, folder: Path | None, key: str) -> None:
        self._folder, self._key = folder, key

    def load(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Returns (state, tensors) of the last checkpoint; None if there is none of this training."""
        from safetensors import SafetensorError, safe_open

        if self._folder is None or not (self._folder / STATE).is_file():
            return None
        try:
            with safe_open(self._folder / STATE, "pt") as file:
                state = json.loads((file.metadata() or {}).get("state", "{}"))
                if state.get("key") != self._key:
                    return None
                return state, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        except (SafetensorError, OSError, ValueError):
            return None

    def save(self, state: dict[str, Any], tensors: dict[str, Any]) -> None:
        """Saves the state; deletes weights that are neither the last nor the best."""
        if self._folder is not None:
            _write(self._folder / STATE, tensors, {"state": json.dumps({**state, "key": self._key})})
            for path in self._folder.glob("best-*.safetensors"):
                if path.name != _best(state["best"]):
                    path.unlink()

    def keep_best(self, epoch: int, weights: dict[str, Any]) -> None:
        """Saves the weights after an epoch; they are used once a state names it as the best."""
        if self._folder is not None:
            _write(self._folder / _best(epoch), weights, {"key": self._key})

    def best(self, epoch: int) -> dict[str, Any]:
        """Returns the weights after that epoch."""
        from safetensors.torch import load_file

        weights: dict[str, Any] = load_file((self._folder or Path()) / _best(epoch))
        return weights


def _write(path: Path, tensors: dict[str, Any], metadata: dict[str, str]) -> None:
    from safetensors.torch import save_file

    with whole_file(path) as partial:
        save_file({key: tensor.contiguous() for key, tensor in tensors.items()}, partial, metadata)


def _best(epoch: int | None) -> str:
    return f"best-{epoch}.safetensors"


def regression(scores: Tensor, targets: Tensor) -> Tensor:
    """Returns the squared error of each score."""
    return (scores - targets) ** 2


def ranking(winners: Tensor, losers: Tensor, margin: float) -> Tensor:
    """Returns by pair the hinge loss: what the winner lacks to lead by the margin."""
    return (margin - winners + losers).clamp(min=0)


def combined(regressed: Tensor, ranked: Tensor, weight: float) -> Tensor:
    """Returns the sum of both losses, that of pairs weighted."""
    return regressed + weight * ranked


PLACES = 6
# The quality of a network after an epoch, higher is better; None where it is not known.
Quality = Callable[[], float | None]


@dataclass
class TrainingRecord:
    """Record of a training: losses by step, accuracy by epoch, and the best epoch, from 0."""

    losses: dict[str, list[float]] = field(default_factory=dict)
    accuracies: list[float | None] = field(default_factory=list)
    best: int | None = None

    def add(self, accuracy: float | None) -> bool:
        """Adds the accuracy of an epoch; returns whether it is the best so far. Without an accuracy the last epoch is the best."""
        known = self.accuracies[self.best] if self.best is not None else None
        self.accuracies.append(accuracy)
        if accuracy is None or known is None or accuracy > known:
            self.best = len(self.accuracies) - 1
            return True
        return False

    def ended(self, patience: int) -> bool:
        """Returns whether ``patience`` epochs brought no better accuracy."""
        return self.best is not None and len(self.accuracies) - 1 - self.best >= patience


@contextmanager
def one_way() -> Iterator[None]:
    """Runs torch in one thread with deterministic algorithms; afterwards its settings are restored."""
    import torch

    # What cuBLAS wants set before it gives the same numbers every time.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    try:
        with torch.random.fork_rng():
            yield
    finally:
        torch.use_deterministic_algorithms(strict)
        torch.set_num_threads(threads)


class StudentNetwork:
    """A network with its examples and optimisers."""

    def __init__(
        self, network: torch.nn.ModuleDict, design: NetworkDesign, examples: TrainingExamples, schedule: TrainingSchedule,
        inputs: PairTokenizer,
    ) -> None:  # fmt: skip
        from torch.optim import AdamW

        self.network, self.examples, self.schedule, self._design, self._inputs = network, examples, schedule, design, inputs
        self._device = next(network.parameters()).device.type
        named = dict(network.named_parameters())
        # Students of their own have an optimiser and a clipping of their own, so that neither hears of the other.
        wholes = [list(named)] if design.shared else [[name for name in named if name.startswith(f"{part}_")] for part in design.parts]
        self._groups = [{name: named[name] for name in names} for names in wholes]
        self._optimisers = [AdamW(some.values(), lr=schedule.rate, weight_decay=schedule.decay, foreach=False) for some in self._groups]

    def step(self, step: Step, rate: float, *seed: object) -> dict[str, float]:
        """Learns from the examples of a step; returns its losses by name."""
        import torch

        torch.manual_seed(derived_random(self.schedule.seed, *seed).getrandbits(63))
        self.network.train()
        losses = self._of_singles(step[0]) | self._of_pairs(step[1])
        for optimiser, group in zip(self._optimisers, self._groups, strict=True):
            torch.nn.utils.clip_grad_norm_(group.values(), self.schedule.clip, foreach=False)
            optimiser.param_groups[0]["lr"] = rate
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        sums = [sum(loss for name, loss in losses.items() if name.endswith(kind)) for kind in ("regression", "ranking")]
        total: Any = combined(sums[0], sums[1], self.schedule.rank_weight)  # type: ignore[arg-type]
        return {name: round(float(loss), PLACES) for name, loss in {"loss": total, **losses}.items()}

    def _of_singles(self, rows: Sequence[int]) -> dict[str, float]:
        import torch

        def loss(scores: Sequence[Tensor], some: Sequence[RatedText], place: int) -> Tensor:
            return regression(scores[0], torch.tensor([text.targets[place] for text in some], dtype=torch.float32, device=self._device))

        own = [self.examples.singles[row] for row in rows]
        ids = self._inputs.of([example.context for example in own], [example.reply for example in own])
        known = [[example.targets[place] is not None for example in own] for place in range(len(self._design.parts))]
        return self._learn(own, [ids], known, loss, ("regression", 1.0))

    def _of_pairs(self, rows: Sequence[int]) -> dict[str, float]:
        def loss(scores: Sequence[Tensor], some: Sequence[PreferencePair], place: int) -> Tensor:
            return ranking(scores[0], scores[1], self.schedule.margin)

        own = [self.examples.pairs[row] for row in rows]
        contexts = [pair.context for pair in own]
        sides = [self._inputs.of(contexts, texts) for texts in ([pair.winner for pair in own], [pair.loser for pair in own])]
        known = [[pair.parts[place] for pair in own] for place in range(len(self._design.parts))]
        return self._learn(own, sides, known, loss, ("ranking", self.schedule.rank_weight))

    def _learn(
        self, own: Sequence[L], sides: Sequence[Sequence[Ids]], known: Sequence[Sequence[bool]], loss: Callable[..., Tensor],
        called: tuple[str, float],
    ) -> dict[str, float]:  # fmt: skip
        """Adds the gradients of examples, and returns their losses; ``sides`` are the texts of each, ``known`` says by part which have a
        target, ``called`` is the name of their loss and its weight."""
        kind, weight = called
        sums = {f"{part} {kind}": 0.0 for part in self._design.parts if own}
        sizes = [len(sides) * max(len(ids) for ids, _ in texts) for texts in zip(*sides, strict=True)]
        for some in batches(sizes, TOKENS[self._device]):
            scores = forward(self.network, padded([side[row] for side in sides for row in some], self._design, self._device))
            losses = dict[str, Any]()
            for place, part in enumerate(self._design.parts):
                if at := [at for at, row in enumerate(some) if known[place][row]]:
                    own_scores = [scores[part][[row + number * len(some) for row in at]] for number in range(len(sides))]
                    losses[f"{part} {kind}"] = loss(own_scores, [own[some[row]] for row in at], place).sum() / sum(known[place])
            if losses:
                (weight * sum(losses.values())).backward()
            for name, value in losses.items():
                sums[name] += float(value.detach())
        return sums

    def state(self) -> dict[str, Any]:
        """Returns the tensors of the network and the optimisers."""
        state = {f"weight {name}": parameter.detach().clone() for name, parameter in self.network.state_dict().items()}
        for optimiser, group in zip(self._optimisers, self._groups, strict=True):
            for name, parameter in group.items():
                state.update({f"{what} {name}": value.detach().clone() for what, value in optimiser.state.get(parameter, {}).items()})
        return state

    def restore(self, tensors: dict[str, Any]) -> None:
        """Restores the network and the optimisers from tensors of :meth:`state`."""
        import torch

        self.network.load_state_dict({name: tensors[f"weight {name}"] for name in self.network.state_dict()})
        for optimiser, group in zip(self._optimisers, self._groups, strict=True):
            for name, parameter in group.items():
                if f"step {name}" in tensors:
                    state = {what: tensors[f"{what} {name}"].to(parameter.device) for what in ("exp_avg", "exp_avg_sq")}
                    optimiser.state[parameter] = {"step": tensors[f"step {name}"].to(torch.float32), **state}


def run_training(student: StudentNetwork, measure: Quality, checkpoint: Checkpoint, progress: Callable[[int], None]) -> TrainingRecord:
    """Trains a network by its schedule, from a checkpoint if there is one; at the end it has the weights of its best epoch."""
    examples, schedule = student.examples, student.schedule
    record, begun, first = TrainingRecord(), 0, 0
    if (resumed := checkpoint.load()) is not None:
        state, tensors = resumed
        record, begun, first = TrainingRecord(state["losses"], state["accuracies"], state["best"]), state["epoch"], state["step"]
        student.restore(tensors)
    saved = time.monotonic()
    best = checkpoint.best(record.best) if record.best is not None else {}
    for epoch in range(begun, schedule.epochs):
        if record.ended(schedule.patience):
            break
        steps = schedule.steps_of(epoch, len(examples.singles), len(examples.pairs))
        stage(f"epoch {epoch + 1} of at most {schedule.epochs}", sum(map(len, steps[first:])), "lessons")
        for number in range(first, len(steps)):
            rate = schedule.rate_at(epoch * len(steps) + number, schedule.epochs * len(steps))
            for name, loss in student.step(steps[number], rate, "dropout", epoch, number).items():
                record.losses.setdefault(name, []).append(loss)
            progress(sum(map(len, steps[number])))
            if time.monotonic() - saved >= schedule.save_seconds:
                checkpoint.save({**vars(record), "epoch": epoch, "step": number + 1}, student.state())
                saved = time.monotonic()
        first = 0
        stage(f"measuring epoch {epoch + 1}")
        if record.add(measure()):
            best = {name: weight.detach().clone() for name, weight in student.network.state_dict().items()}
            checkpoint.keep_best(epoch, best)
        checkpoint.save({**vars(record), "epoch": epoch + 1, "step": 0}, student.state())
    student.network.load_state_dict(best)
    return record


VALIDATION = "validation"


def train(task: TrainingTask) -> TrainedArrays:
    """Trains students.

    Raises:
        InputError: if packages are missing, the encoder is none, or there is nothing to learn from.
    """
    require_packages()
    encoder, schedule = encoder_named(task.encoder), task.schedule
    examples = build_examples(task)
    design = NetworkDesign(examples.parts, schedule.shared, encoder.shape)
    if not 8 <= schedule.max_tokens <= (places := places_of(encoder.shape)):
        fix = f"use a number from 8 to {places}, the longest input of the encoder {encoder.name}"
        raise input_error("--max-tokens", f"{schedule.max_tokens} is out of range", fix)
    settings = _settings(task, encoder, examples)
    # Validation says which epoch counts.
    judged_by = hash_files(task.release, files_of(task.release, "controls", [VALIDATION]))
    key = digest([settings, examples.data.rows, encoder.sha256, list(task.splits), list(task.contrasts), judged_by])
    inputs = PairTokenizer((encoder.folder / OF_ENCODER).read_bytes(), schedule.max_tokens)
    with one_way():
        network = new_network(design, encoder.folder, schedule.seed).to(device())
        student = StudentNetwork(network, design, examples, schedule, inputs)
        measure = _validation_accuracy(task, network, design, inputs)
        record = run_training(student, measure, Checkpoint(task.checkpoint, key), task.progress)
    lengths = [len(words(text)) for text in examples.texts()]
    return TrainedArrays(
        arrays_of(network), settings, len(examples.pairs), examples.data,
        training_range={"languages": ["en"], "words": [min(lengths), max(lengths)], "features": {}},
        encoder={"name": encoder.name, "sha256": encoder.sha256}, parts=examples.parts, sources=examples.sources,
        contrasts=task.contrasts if task.teacher is None and examples.pairs else (),
        files={ENCODER: (encoder.folder / "config.json").read_bytes(), TOKENIZER: (encoder.folder / OF_ENCODER).read_bytes()},
        training=_training_figures(record),
    )  # fmt: skip


def read_settings(task: TrainingTask) -> tuple[dict[str, Any], str]:
    """Returns the settings of ``config.json`` and the hash of the rows, without training; raises as :func:`train`."""
    require_packages()
    examples = build_examples(replace(task, progress=lambda pairs: None))
    return _settings(task, encoder_named(task.encoder), examples), examples.data.rows


def _settings(task: TrainingTask, encoder: Encoder, examples: TrainingExamples) -> dict[str, Any]:
    made_of = dict(examples.made_of)
    used = BOTH if made_of["singles"] and made_of["pairs"] else REGRESSION if made_of["singles"] else RANKING
    return {
        **replace(task.schedule, objective=used).settings(),
        "teacher": task.teacher,
        **made_of,
        "encoder_files": encoder.files,
        "device": device(),
        **{name: metadata.version(name) for name in ("torch", "transformers", "tokenizers")},
    }


def _validation_accuracy(task: TrainingTask, network: torch.nn.ModuleDict, design: NetworkDesign, inputs: PairTokenizer) -> Quality:
    """Returns a function for the accuracy at equal closeness on validation, ties half; it returns None without validation."""
    if VALIDATION in task.splits or not column(task.release, "controls", "pair_id", [VALIDATION]):
        return lambda: None
    validation_task = replace(task, contrasts=EQUAL_CLOSENESS["equal-closeness"], splits=(VALIDATION,), progress=lambda pairs: None)
    pairs = [
        (conversation_text(context), winner, loser)
        for batch in read_batches(validation_task)
        for context, winner, loser in zip(batch.winners.contexts, batch.winners.texts, batch.losers.texts, strict=True)
    ]
    contexts, *sides = (list(some) for some in zip(*pairs, strict=True))

    def accuracy() -> float:
        ids = inputs.of([*contexts, *contexts], [*sides[0], *sides[1]])
        scores = np.round(sum(scored(network, ids, design).values()) / len(design.parts), 4)
        won, lost = scores[: len(pairs)], scores[len(pairs) :]
        return float(np.mean((won > lost) + (won == lost) / 2))

    return accuracy


def _training_figures(record: TrainingRecord) -> dict[str, Any]:
    """Returns the figures of the training for ``metrics.json``: losses by step, accuracy on validation by epoch."""
    return {
        "accuracy at equal closeness, validation": [accuracy if accuracy is None else round(accuracy, 6) for accuracy in record.accuracies],
        "best epoch": None if record.best is None else record.best + 1,
        "losses": record.losses,
    }
