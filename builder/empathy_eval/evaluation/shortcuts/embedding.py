"""The shortcut ``embedding``: a direction among embeddings of the reply alone, learned from differences of pairs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from empathy_eval.base.errors import InputError, missing_package
from empathy_eval.base.hashing import digest_file, signature_line
from empathy_eval.evaluation.corpus.pairs import drawn_rows
from empathy_eval.evaluation.shortcuts.bag_of_words import Counts
from empathy_eval.metrics.bertscore import FILE, PACKAGED, PLACES, Embedder, folder_of
from empathy_eval.metrics.protocol import Array

NAME = "embedding"
LAYER = 6
# So many pairs at most are embedded.
MOST = 5000
# What is added to the squares of each dimension, so that few pairs do not fit it to themselves.
RIDGE = 10.0


class Embedding(Embedder):
    """The packaged model as BERTScore loads it; a text is the mean of its tokens' vectors, of length 1."""

    def __init__(self, beside: Iterable[object] = ()) -> None:
        """Loads the model, or takes that of a metric ``beside`` it.

        Raises:
            InputError: if its packages are not installed.
        """
        try:
            super().__init__(PACKAGED, LAYER, beside)
        except InputError as error:
            raise missing_package(f"report: shortcuts: {NAME}", "bertscore", f"leave it out with --without {NAME}") from error
        versions = {name: metadata.version(name) for name in ("bert-score", "transformers", "torch", "numpy")}
        weights = digest_file(folder_of(PACKAGED) / FILE)[:12]
        vectors = {"model": PACKAGED, "layer": LAYER, "weights": weights, "pooled": "mean,normalised", "places": PLACES}
        sample = {"sample": MOST, "drawn": "sha256", **versions}
        self.signature = signature_line(**vectors, form="ridge-of-differences", ridge=RIDGE, **sample)
        # What is said of cosines, where nothing is learned.
        self.of_cosines = signature_line(**vectors, **sample)


def embedding_of(settings: Mapping[str, Any], without: Collection[str] = (), beside: Iterable[object] = ()) -> Embedding | None:
    """The embedding, where the part ``report`` of a configuration asks for it and it is not left out.

    Raises:
        InputError: if its packages are not installed.
    """
    return Embedding(beside) if NAME in settings.get("shortcuts", {}) and NAME not in without else None


def sampled(pair_ids: Sequence[str], seed: int) -> Counts:
    """The rows of at most ``MOST`` pairs, drawn by the SHA-256 of their ids, in their order."""
    return np.array(drawn_rows(pair_ids, NAME, seed, MOST), dtype=np.int64)


def margins_of(kind: Array, cold: Array, folds: Counts) -> Array:
    """By pair how far its kind text lies beyond its cold one in the direction that the pairs of the other folds point to.

    That is (X'X + ridge)^-1 X'1, where X are the differences of those pairs.
    """
    difference = kind - cold
    margins = np.zeros(len(difference))
    for fold in np.unique(folds).tolist():
        own = folds == fold
        others = difference[~own]
        squares = others.T @ others + RIDGE * np.eye(difference.shape[1])
        margins[own] = difference[own] @ np.linalg.solve(squares, others.sum(axis=0))
    return margins
