"""The kinds of models, a row a kind: what a model that was read can score."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from empathy_eval.base.errors import input_error
from empathy_eval.metrics.empathy_score.model_folder import ModelFolder
from empathy_eval.metrics.protocol import Array, Segments

# Kind: the class that scores with it, made from a ModelFolder. It is imported when a model of the kind is loaded.
KINDS = {
    "plain": "empathy_eval.metrics.empathy_score.plain:Plain",
    "encoder": "empathy_eval.metrics.empathy_score.embedded:Embedded",
    "students": "empathy_eval.metrics.empathy_score.students:Students",
}


class Scorer(Protocol):
    """A model at work. Scores lie in [0, 1], higher is more empathetic."""

    # Whether its scores are costly and are kept; whether it can be pickled and runs in several processes.
    keep: bool
    share: bool
    # Decimal places that are the same in every process.
    places: int

    def content(self, segments: Segments) -> Array:
        """How empathetic each text is by what it says, shape (texts,)."""
        ...

    def flow(self, segments: Segments) -> Array:
        """How well each text goes on from its context; asked only of models whose parts have ``flow``."""
        ...


def scorer_of(folder: ModelFolder) -> Scorer:
    """The scorer of a model.

    Raises:
        InputError: if this version knows no such kind, or what the model needs is not there.
    """
    kind = folder.config["kind"]
    if kind not in KINDS:
        raise input_error(folder.path, f'is of the kind "{kind}", which this version does not know', f"use one of {', '.join(KINDS)}")
    module, _, name = KINDS[kind].partition(":")
    made: Any = getattr(import_module(module), name)(folder)
    scorer: Scorer = made
    return scorer
