"""The kinds of students, a row a kind, and what a trainer gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from empathy_eval.base.errors import InputError, Problem, nearest
from empathy_eval.metrics.empathy_score.tensors import Arrays
from empathy_eval.training.contrasts import Data, Task

# Kind: the function that trains it from a Task. It is imported when a student of the kind is trained; what scores with it is a row of
# ``metrics/empathy_score/kinds``.
TRAINERS = {
    "plain": "empathy_eval.training.plain:train",
    "encoder": "empathy_eval.training.embedded:train",
    "students": "empathy_eval.training.fine_tuned:train",
}
# What only some kinds take: the argument, and the kinds.
TAKEN = {
    "teacher": ("students",), "also": ("students",), "objective": ("students",), "shared": ("students",), "max_tokens": ("students",),
    "encoder": ("students", "encoder"),
}  # fmt: skip


@dataclass(frozen=True)
class Trained:
    """What was learned: the arrays, all settings that could change a number, how many pairs taught it, what was read of
    the release, the range of the training texts, the features (None: no such), the encoder, and what it is made of beside the release.

    ``contrasts`` are those that taught it, None where all of the task did; ``files`` lie beside the weights; ``training`` is what is
    told of the training itself.
    """

    arrays: Arrays
    settings: Mapping[str, Any]
    pairs: int
    data: Data
    training_range: Mapping[str, Any]
    features: Mapping[str, Any] | None = None
    encoder: Mapping[str, Any] | None = None
    parts: tuple[str, ...] = ("content",)
    sources: tuple[Mapping[str, str], ...] = ()
    contrasts: tuple[str, ...] | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)


def trainer_of(kind: str) -> Callable[[Task], Trained]:
    """The trainer of a kind.

    Raises:
        InputError: if there is no such kind.
    """
    if problems := unknown(kind):
        raise InputError(problems)
    module, _, name = TRAINERS[kind].partition(":")
    found: Callable[[Task], Trained] = getattr(import_module(module), name)
    return found


def unknown(kind: str) -> list[Problem]:
    """What is wrong with the name of a kind."""
    fix = f"use one of these: {', '.join(TRAINERS)}{nearest(kind, TRAINERS)}"
    return [] if kind in TRAINERS else [Problem("--kind", f'"{kind}" is not known', fix)]


def stray(kind: str, given: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with a kind, and with arguments, those that were given, for a kind that does not take them."""
    return unknown(kind) or [
        Problem(
            f"--{name.replace('_', '-')}", f"does not apply to the kind {kind}", f"leave it out, or use --kind {' or '.join(TAKEN[name])}"
        )
        for name in given
        if kind not in TAKEN[name]
    ]
