"""The plain model: a weighted sum of standardised features, through the logistic function."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from empathy_eval.base.errors import input_error
from empathy_eval.metrics.empathy_score.features import UNIT, Features, Shares
from empathy_eval.metrics.empathy_score.model_folder import ANEW, ModelFolder
from empathy_eval.metrics.empathy_score.word_lists import word_lists
from empathy_eval.metrics.protocol import Array, Segments

ARRAYS = ("means", "scale", "spreads", "weights")


@dataclass(frozen=True)
class Direction:
    """What the plain model learned: by feature its mean and spread over the training texts and its weight; the spread of weighted sums.

    All are cut to six decimal places. A feature lies at most ``clip`` spreads from its mean.
    """

    means: Array
    spreads: Array
    weights: Array
    scale: float
    clip: float

    def sums(self, shares: Shares) -> Array:
        """The weighted sum of each row, shape (texts,): feature after feature, so that every machine adds in the same order."""
        total = np.zeros(len(shares))
        for place, (mean, spread, weight) in enumerate(zip(self.means, self.spreads, self.weights, strict=True)):
            if weight and spread:
                total += weight * np.clip((shares[:, place] / UNIT - mean) / spread, -self.clip, self.clip)
        return total

    def scores(self, shares: Shares) -> Array:
        """The scores of rows in [0, 1]: 1 / (1 + exp(-sum / scale)); one half is the middle of the training texts."""
        result: Array = 1 / (1 + np.exp(-self.sums(shares) / (self.scale or 1.0)))
        return result


class Plain:
    """A plain model at work; it reads the reply and what the seeker said last."""

    keep, share, places = False, True, 6

    def __init__(self, folder: ModelFolder) -> None:
        """Takes the weights of a folder.

        Raises:
            InputError: if it was trained with other word lists, or its arrays do not fit them.
        """
        self.direction = direction_of(folder)

    def content(self, segments: Segments) -> Array:
        """How empathetic each text is."""
        return self.direction.scores(shares_of(segments))

    def flow(self, segments: Segments) -> Array:
        """A plain model has no such part."""
        raise NotImplementedError("a plain model has no flow")


def direction_of(folder: ModelFolder, more: int = 0) -> Direction:
    """The direction that a folder holds, over the features of the word lists and so many others.

    Raises:
        InputError: if it was trained with other word lists, or its arrays do not fit them.
    """
    lists, told = word_lists(), folder.config["features"]
    names = lists.names
    if told is None or (told["names"], told["sha256"], told["vader"]) != (names, lists.sha256, lists.vader):
        what = "was trained with other word lists than this version has (empathyscore/features.yaml, and the lexicon of vaderSentiment)"
        raise input_error(folder.path, what, "train it again, or use the version that trained it")
    shapes = {name: one.shape for name, one in folder.arrays.items()}
    clip = folder.config["settings"].get("clip")
    if shapes != {name: (1,) if name == "scale" else (len(names) + more,) for name in ARRAYS} or not isinstance(clip, int | float):
        raise input_error(folder.path, f"does not hold the arrays and settings of a model of the kind {folder.config['kind']}", ANEW)
    values = {name: np.asarray(one, dtype=np.float64) for name, one in folder.arrays.items()}
    if not all(np.isfinite(one).all() for one in values.values()):
        raise input_error(folder.path, "has weights that are not numbers", ANEW)
    return Direction(values["means"], values["spreads"], values["weights"], float(values["scale"][0]), clip)


def shares_of(segments: Segments) -> Shares:
    """The features of the packaged word lists, in millionths."""
    return _features().of(segments)


@cache
def _features() -> Features:
    """Made once a process, and never pickled."""
    return Features(word_lists())
