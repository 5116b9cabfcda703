"""The range of the texts that a model was trained on, and which texts are outside of it: by language, by length, by features."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from empathy_eval.metrics.empathy_score.features import UNIT, Features, sentences
from empathy_eval.metrics.empathy_score.model_folder import ModelFolder
from empathy_eval.metrics.empathy_score.word_lists import word_lists
from empathy_eval.metrics.protocol import Array, Segments

# Of the words of the curated seeds' replies 48 % and more are fillers (the, to, is …), of replies in other languages hardly any.
FILLERS_AT_LEAST = 0.35
# In fewer words than this no language is told.
WORDS_TO_TELL = 5
# Features beyond the clip are told as a number up to this one.
MOST_TOLD = 3
# A share is a whole number of millionths in a text, and has six places in a range.
HALF = 0.5 / UNIT


@dataclass(frozen=True)
class TrainingRange:
    """What the texts had that a model was trained on: languages, the fewest and most words, and by feature the least and the most.

    ``means``, ``spreads`` and ``clip`` are those of a model that cuts features; without them nothing is cut.
    """

    languages: Sequence[str]
    words: tuple[float, float]
    low: Array
    high: Array
    means: Array
    spreads: Array
    clip: float

    @classmethod
    def of(cls, folder: ModelFolder) -> TrainingRange:
        """The range that a model's settings tell."""
        told, names = folder.config["training_range"], (folder.config["features"] or {"names": []})["names"]
        bounds = np.array([told["features"].get(name, (-np.inf, np.inf)) for name in names], dtype=np.float64).reshape(len(names), 2)
        means, spreads = (np.asarray(folder.arrays.get(name, ()), dtype=np.float64)[: len(names)] for name in ("means", "spreads"))
        cuts = means.shape == spreads.shape == (len(names),)
        clip = folder.config["settings"].get("clip", np.inf) if cuts else np.inf
        if not cuts:
            means, spreads = np.zeros(len(names)), np.ones(len(names))
        return cls(told["languages"], tuple(told["words"]), bounds[:, 0], bounds[:, 1], means, spreads, clip)

    def outside(self, segments: Segments) -> list[tuple[int, str]]:
        """(row, reason) of each text that is outside, once for each reason: its language, its length, its features."""
        found = [(row, reason) for row, text in enumerate(segments.texts) for reason in chain(self._language(text), self._length(text))]
        return found + list(self._features(segments)) if len(self.low) else found

    def _language(self, text: str) -> Iterator[str]:
        """What makes a text unlike English ones; of models of other languages nothing is known."""
        if list(self.languages) != ["en"]:
            return
        letters = [sign for sign in text if sign.isalpha()]
        own = [word for some, _ in sentences(text) for word in some]
        if 2 * sum(unicodedata.name(sign, "").startswith("LATIN ") for sign in letters) < len(letters):
            yield "most letters are not Latin"
        elif len(own) >= WORDS_TO_TELL and sum(word in word_lists().fillers for word in own) < FILLERS_AT_LEAST * len(own):
            yield "hardly any common English words: another language, or no sentences"

    def _length(self, text: str) -> Iterator[str]:
        many, (fewest, most) = sum(len(own) for own, _ in sentences(text)), self.words
        if many < fewest:
            yield f"shorter than all training texts ({fewest:g} words)"
        if many > most:
            yield f"longer than all training texts ({most:g} words)"

    def _features(self, segments: Segments) -> Iterator[tuple[int, str]]:
        """Texts that have more or less of a feature than any training text, by how many of these the model cuts."""
        shares = Features(word_lists()).of(segments) / UNIT
        out = (shares < self.low - HALF) | (shares > self.high + HALF)
        beyond = (out & (np.abs(shares - self.means) > self.clip * self.spreads)).sum(axis=1)
        for row in np.flatnonzero(out.any(axis=1)).tolist():
            many = int(beyond[row])
            cut = f", {many if many < MOST_TOLD else f'{MOST_TOLD} or more'} of them cut by the model" if many else ""
            yield row, f"features outside of the range of the training texts{cut}"
