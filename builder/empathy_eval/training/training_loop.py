"""Teaching: the steps of a course, each a batch of lessons, with checkpoints between them and an end when nothing gets better."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from empathy_eval.base.hashing import derived_random
from empathy_eval.base.stages import stage
from empathy_eval.metrics.bertscore import TOKENS, batches
from empathy_eval.metrics.empathy_score.inputs import Inputs
from empathy_eval.metrics.empathy_score.networks import Design, forward, padded
from empathy_eval.training.checkpoint import Checkpoint
from empathy_eval.training.contrasts import Course, Step
from empathy_eval.training.examples import Lessons

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def regression(scores: Tensor, targets: Tensor) -> Tensor:
    """The squared distance of each score to what the teacher says."""
    return (scores - targets) ** 2


def ranking(winners: Tensor, losers: Tensor, margin: float) -> Tensor:
    """By pair what the winner lacks to lead by the margin; 0, and nothing to learn, where it does."""
    return (margin - winners + losers).clamp(min=0)


def combined(regressed: Tensor, ranked: Tensor, weight: float) -> Tensor:
    """Both losses as one."""
    return regressed + weight * ranked


PLACES = 6
# What a network is worth after an epoch, more being better; None where nothing can be said.
Worth = Callable[[], float | None]


@dataclass
class Record:
    """What happened so far: by step its losses, by epoch what it was worth, and the best epoch, from 0."""

    losses: dict[str, list[float]] = field(default_factory=dict)
    worth: list[float | None] = field(default_factory=list)
    best: int | None = None

    def takes(self, worth: float | None) -> bool:
        """Takes note of what an epoch was worth; says whether it is the best so far. Where nothing can be said, the last one is."""
        known = self.worth[self.best] if self.best is not None else None
        self.worth.append(worth)
        if worth is None or known is None or worth > known:
            self.best = len(self.worth) - 1
            return True
        return False

    def ended(self, patience: int) -> bool:
        """Whether too many epochs brought nothing."""
        return self.best is not None and len(self.worth) - 1 - self.best >= patience


@contextmanager
def one_way() -> Iterator[None]:
    """One thread and algorithms that give the same numbers every time; before and after, torch is as it was."""
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


class Class:
    """A network and its lessons: what each step does with them."""

    def __init__(self, network: torch.nn.ModuleDict, design: Design, lessons: Lessons, course: Course, inputs: Inputs) -> None:
        from torch.optim import AdamW

        self.network, self._design, self._lessons, self._course, self._inputs = network, design, lessons, course, inputs
        self._device = next(network.parameters()).device.type
        named = dict(network.named_parameters())
        # Students of their own have an optimiser and a clipping of their own, so that neither hears of the other.
        wholes = [list(named)] if design.shared else [[name for name in named if name.startswith(f"{part}_")] for part in design.parts]
        self._groups = [{name: named[name] for name in names} for names in wholes]
        self._optimisers = [AdamW(some.values(), lr=course.rate, weight_decay=course.decay, foreach=False) for some in self._groups]

    def step(self, step: Step, rate: float, *seed: object) -> dict[str, float]:
        """Learns from the lessons of a step; returns its losses by name."""
        import torch

        torch.manual_seed(derived_random(self._course.seed, *seed).getrandbits(63))
        self.network.train()
        losses = self._of_singles(step[0]) | self._of_pairs(step[1])
        for optimiser, group in zip(self._optimisers, self._groups, strict=True):
            torch.nn.utils.clip_grad_norm_(group.values(), self._course.clip, foreach=False)
            optimiser.param_groups[0]["lr"] = rate
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        sums = [sum(one for name, one in losses.items() if name.endswith(kind)) for kind in ("regression", "ranking")]
        total: Any = combined(sums[0], sums[1], self._course.rank_weight)  # type: ignore[arg-type]
        return {name: round(float(one), PLACES) for name, one in {"loss": total, **losses}.items()}

    def _of_singles(self, rows: Sequence[int]) -> dict[str, float]:
        import torch

        own = [self._lessons.singles[row] for row in rows]
        ids, sums = self._inputs.of([one.context for one in own], [one.reply for one in own]), self._none("regression", own)
        many = [max(1, sum(one.targets[place] is not None for one in own)) for place in range(len(self._design.parts))]
        for some in batches([len(one) for one, _ in ids], TOKENS[self._device]):
            scores, losses = forward(self.network, padded([ids[row] for row in some], self._design, self._device)), []
            for place, part in enumerate(self._design.parts):
                known = [(at, target) for at, row in enumerate(some) if (target := own[row].targets[place]) is not None]
                if known:
                    at, targets = (list(column) for column in zip(*known, strict=True))
                    goal = torch.tensor(targets, dtype=torch.float32, device=self._device)
                    losses.append((f"{part} regression", regression(scores[part][at], goal).sum() / many[place]))
            _learn(losses, 1.0, sums)
        return sums

    def _of_pairs(self, rows: Sequence[int]) -> dict[str, float]:
        own = [self._lessons.pairs[row] for row in rows]
        contexts = [one.context for one in own]
        winners, losers = (self._inputs.of(contexts, texts) for texts in ([one.winner for one in own], [one.loser for one in own]))
        many = [max(1, sum(one.parts[place] for one in own)) for place in range(len(self._design.parts))]
        sizes, sums = [2 * max(len(one[0]), len(other[0])) for one, other in zip(winners, losers, strict=True)], self._none("ranking", own)
        for some in batches(sizes, TOKENS[self._device]):
            both = [winners[row] for row in some] + [losers[row] for row in some]
            scores, losses = forward(self.network, padded(both, self._design, self._device)), []
            for place, part in enumerate(self._design.parts):
                known = [at for at, row in enumerate(some) if own[row].parts[place]]
                if known:
                    won, lost = scores[part][known], scores[part][[at + len(some) for at in known]]
                    losses.append((f"{part} ranking", ranking(won, lost, self._course.margin).sum() / many[place]))
            _learn(losses, self._course.rank_weight, sums)
        return sums

    def _none(self, kind: str, lessons: Sequence[object]) -> dict[str, float]:
        return {f"{part} {kind}": 0.0 for part in self._design.parts if lessons}

    def tensors(self) -> dict[str, Any]:
        """All that the next step hangs on."""
        found = {f"weight {name}": one.detach().clone() for name, one in self.network.state_dict().items()}
        for optimiser, group in zip(self._optimisers, self._groups, strict=True):
            for name, one in group.items():
                found.update({f"{what} {name}": value.detach().clone() for what, value in optimiser.state.get(one, {}).items()})
        return found

    def take(self, tensors: dict[str, Any]) -> None:
        """Goes back to where these tensors were taken."""
        import torch

        self.network.load_state_dict({name: tensors[f"weight {name}"] for name in self.network.state_dict()})
        for optimiser, group in zip(self._optimisers, self._groups, strict=True):
            for name, one in group.items():
                if f"step {name}" in tensors:
                    state = {what: tensors[f"{what} {name}"].to(one.device) for what in ("exp_avg", "exp_avg_sq")}
                    optimiser.state[one] = {"step": tensors[f"step {name}"].to(torch.float32), **state}


def _learn(losses: Sequence[tuple[str, Any]], weight: float, sums: dict[str, float]) -> None:
    """Adds the gradients of losses to those that are there."""
    if losses:
        (weight * sum(loss for _, loss in losses)).backward()
    for name, loss in losses:
        sums[name] = sums.get(name, 0.0) + float(loss.detach())


def teach(taught: Class, lessons: Lessons, course: Course, worth: Worth, checkpoint: Checkpoint, progress: Callable[[int], None]) -> Record:
    """Teaches a network through a course, from where it was left if there is a checkpoint; at the end it is as after its best epoch."""
    record, begun, first = Record(), 0, 0
    if (found := checkpoint.load()) is not None:
        state, tensors = found
        record, begun, first = Record(state["losses"], state["worth"], state["best"]), state["epoch"], state["step"]
        taught.take(tensors)
    saved = time.monotonic()
    best = checkpoint.best(record.best) if record.best is not None else {}
    for epoch in range(begun, course.epochs):
        if record.ended(course.patience):
            break
        steps = course.steps_of(epoch, len(lessons.singles), len(lessons.pairs))
        stage(f"epoch {epoch + 1} of at most {course.epochs}", sum(map(len, steps[first:])), "lessons")
        for number in range(first, len(steps)):
            rate = course.rate_at(epoch * len(steps) + number, course.epochs * len(steps))
            for name, loss in taught.step(steps[number], rate, "dropout", epoch, number).items():
                record.losses.setdefault(name, []).append(loss)
            progress(sum(map(len, steps[number])))
            if time.monotonic() - saved >= course.save_seconds:
                checkpoint.save({**vars(record), "epoch": epoch, "step": number + 1}, taught.tensors())
                saved = time.monotonic()
        first = 0
        stage(f"measuring epoch {epoch + 1}")
        if record.takes(worth()):
            best = {name: one.detach().clone() for name, one in taught.network.state_dict().items()}
            checkpoint.keep_best(epoch, best)
        checkpoint.save({**vars(record), "epoch": epoch + 1, "step": 0}, taught.tensors())
    taught.network.load_state_dict(best)
    return record
