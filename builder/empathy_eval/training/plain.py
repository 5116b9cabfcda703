"""Trainers of the kinds ``plain`` and ``encoder``: weights are shrunk mean differences of pairs over the spread.

For feature j, over all n pairs of the contrasts, with x the features of winners and losers:

    d_j = mean(winner - loser) / pooled spread of winners and losers
    t_j = mean(winner - loser) / (spread of winner - loser / sqrt(n))
    weight_j = d_j * t_j^2 / (t_j^2 + 4)

so that a difference of two standard errors keeps half of its weight, and one of six keeps nine tenths. Nothing is fitted by steps, and all
sums are of whole numbers or exactly rounded: the same bytes on any machine, from rows in any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.metrics import bertscore
from empathy_eval.metrics.empathy_score.encoders import EncoderFeatures, encoder_named
from empathy_eval.metrics.empathy_score.model import LinearModel
from empathy_eval.metrics.lexical import UNIT, FeatureCounter, Shares, sentences, word_lists
from empathy_eval.metrics.protocol import Segments
from empathy_eval.training.task import ReleaseReader, TrainedArrays, TrainingTask, read_batches

SHRINKAGE, CLIP, PLACES = 4, 3, 6
Kept = NDArray[np.int32]
Whole = NDArray[np.signedinteger[Any]]


def train(task: TrainingTask) -> TrainedArrays:
    """Trains a plain model.

    Raises:
        InputError: if there are no pairs, or a file of the release is damaged.
    """
    return _trained(task, FeatureCounter(word_lists()).of)


def train_over_encoder(task: TrainingTask) -> TrainedArrays:
    """Trains a model over plain features and embeddings by a frozen encoder.

    Raises:
        InputError: if packages are missing, the encoder is none, there are no pairs, or a file of the release is damaged.
    """
    encoder = encoder_named(task.encoder)
    trained = _trained(task, EncoderFeatures(encoder).of)
    settings = {
        "embedding": "mean of tokens, length 1, of the reply, and its product with that of the seeker's last turn",
        "embedding_places": bertscore.PLACES,
        "encoder_files": encoder.files, **{name: metadata.version(name) for name in ("bert-score", "torch", "transformers")},
    }  # fmt: skip
    return replace(trained, settings={**trained.settings, **settings}, encoder={"name": encoder.name, "sha256": encoder.sha256})


def _trained(task: TrainingTask, features: Callable[[Segments], Shares]) -> TrainedArrays:
    """Trains a model of these features, of which the first are those of the word lists."""
    reader, won, lost, bounds = ReleaseReader(task.release), list[Kept](), list[Kept](), list[int]()
    for batch in read_batches(task, reader):
        for rows, side in ((won, batch.winners), (lost, batch.losers)):
            # Half the memory: a million fits.
            rows.append(features(side).astype(np.int32))
            lengths = [sum(len(words) for words, _ in sentences(text)) for text in side.texts]
            # The fewest and the most words of a text.
            bounds = [min([*bounds[:1], *lengths]), max([*bounds[1:], *lengths])]
    winners, losers = np.concatenate(won), np.concatenate(lost)
    lists, learned = word_lists(), direction(winners, losers)
    settings = {
        "form": "mean-difference-over-pooled-spread", "shrinkage": SHRINKAGE, "clip": CLIP, "places": PLACES, "score": "logistic",
        "context": "the seeker's last turn", "scored": "shares of words and sentences",
    }  # fmt: skip
    features_used = {"names": lists.names, "sha256": lists.sha256, "vader": lists.vader}
    low, high = np.minimum(winners.min(axis=0), losers.min(axis=0)) / UNIT, np.maximum(winners.max(axis=0), losers.max(axis=0)) / UNIT
    # Features after those of the word lists have no range.
    ranges = {name: [float(least), float(most)] for name, least, most in zip(lists.names, low, high, strict=False)}
    arrays = {"means": learned.means, "spreads": learned.spreads, "weights": learned.weights, "scale": np.array([learned.scale])}
    return TrainedArrays(
        arrays, settings, len(winners), reader.data, {"languages": ["en"], "words": bounds, "features": ranges}, features_used,
        sources=({"name": "vaderSentiment, its lexicon (the signs of its words)", "licence": "MIT"},),
    )  # fmt: skip


def direction(winners: Whole, losers: Whole) -> LinearModel:
    """Returns the linear model of features of winners and losers, in millionths, row by row."""
    (means, spreads), (_, of_winners), (_, of_losers) = _moments(winners, losers), _moments(winners), _moments(losers)
    gained, of_gained = _moments(winners - losers)
    weights = [
        _weight(gain, math.sqrt((winner**2 + loser**2) / 2), spread, len(winners))
        for gain, winner, loser, spread in zip(gained, of_winners, of_losers, of_gained, strict=True)
    ]
    cut = [np.array([round(value, PLACES) for value in some], dtype=np.float64) for some in (means, spreads, weights)]
    learned = LinearModel(cut[0], cut[1], cut[2], 1.0, CLIP)
    sums = [value for side in (winners, losers) for value in learned.sums(side).tolist()]
    middle = math.fsum(sums) / len(sums)
    scale = math.sqrt(math.fsum((value - middle) ** 2 for value in sums) / len(sums))
    return replace(learned, scale=round(scale, PLACES))


def _weight(gain: float, pooled: float, spread: float, pairs: int) -> float:
    """Returns the shrunk weight of a feature; 0 without a difference. Equal differences of all pairs are not shrunk."""
    if not gain or not pooled:
        return 0.0
    if not spread:
        return gain / pooled
    t = gain / (spread / math.sqrt(pairs))
    return gain / pooled * t * t / (t * t + SHRINKAGE)


def _moments(*sides: Whole) -> tuple[list[float], list[float]]:
    """Returns the mean and the standard deviation of each column over all sides, in units, from sums of integers."""
    many, means, spreads = sum(map(len, sides)), list[float](), list[float]()
    for place in range(sides[0].shape[1]):
        columns = [side[:, place].astype(np.int64) for side in sides]
        total = sum(int(column.sum()) for column in columns)
        # A square is up to 10^12, so millions of them stay below 2^63.
        square = sum(int((column * column).sum()) for column in columns)
        means.append(total / (many * UNIT))
        spreads.append(math.sqrt((many * square - total * total) / (many * many)) / UNIT)
    return means, spreads
