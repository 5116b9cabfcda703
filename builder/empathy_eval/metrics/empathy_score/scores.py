"""EmpathyScore of a model, and its two parts by themselves.

"EmpathyScore", Eq. 1: ``alpha * S_flow + (1 - alpha) * S_content``, both parts in [0, 1].
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pkgutil import resolve_name
from typing import Any, Protocol

import numpy as np

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import signature_line
from empathy_eval.metrics.empathy_score.model_folder import ModelFolder, read_model
from empathy_eval.metrics.empathy_score.plain import UNIT, feature_shares, sentences, word_lists
from empathy_eval.metrics.protocol import SEEDS, Array, MeanMetric, Segments

# Kind: the class that scores with it, made from a ModelFolder. It is imported when a model of the kind is loaded. What trains one is a row
# of ``training/task``.
KINDS = {
    "plain": "empathy_eval.metrics.empathy_score.plain:PlainScorer",
    "encoder": "empathy_eval.metrics.empathy_score.encoders:EncoderScorer",
    "students": "empathy_eval.metrics.empathy_score.students:StudentScorer",
}
# Of the words of the curated seeds' replies 48 % and more are fillers (the, to, is …), of replies in other languages hardly any.
FILLERS_AT_LEAST = 0.35
# In fewer words than this no language is told.
WORDS_TO_TELL = 5
# Features beyond the clip are told as a number up to this one.
MOST_TOLD = 3
# A share is a whole number of millionths in a text, and has six places in a range.
HALF = 0.5 / UNIT
FLOW, CONTENT = "flow", "content"
# Releases of nothing but the curated seed dialogues.
OF_SEEDS = ("empathy-eval-demo", "empathy-eval-seeds")
BOTH = (CONTENT, FLOW)


class Scorer(Protocol):
    """A loaded model. Scores lie in [0, 1]; higher is more empathetic."""

    # Whether its scores are costly and are kept; whether it can be pickled and runs in several processes.
    keep: bool
    share: bool
    # Decimal places that are the same in every process.
    places: int

    def parts(self, segments: Segments) -> Mapping[str, Array]:
        """The scores of each part, shape (texts,): ``content`` rates what a reply says, ``flow`` how well it continues its context."""


def scorer_of(folder: ModelFolder) -> Scorer:
    """The scorer of a model.

    Raises:
        InputError: if its kind is unknown, or something that it needs is missing.
    """
    kind = folder.config["kind"]
    if kind not in KINDS:
        raise input_error(folder.path, f'is of the kind "{kind}", which this version does not know', f"use one of {', '.join(KINDS)}")
    scorer: Scorer = resolve_name(KINDS[kind])(folder)
    return scorer


@dataclass(frozen=True)
class TrainingRange:
    """The range of a model's training texts: languages, fewest and most words, least and most of each feature.

    ``means``, ``spreads`` and ``clip`` are those of a model that clips features; without them nothing is clipped.
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
        """The range in a model's settings."""
        limits, names = folder.config["training_range"], (folder.config["features"] or {"names": []})["names"]
        bounds = np.array([limits["features"].get(name, (-np.inf, np.inf)) for name in names], dtype=np.float64).reshape(len(names), 2)
        means, spreads = (np.asarray(folder.arrays.get(name, ()), dtype=np.float64)[: len(names)] for name in ("means", "spreads"))
        cuts = means.shape == spreads.shape == (len(names),)
        clip = folder.config["settings"].get("clip", np.inf) if cuts else np.inf
        if not cuts:
            means, spreads = np.zeros(len(names)), np.ones(len(names))
        return cls(limits["languages"], tuple(limits["words"]), bounds[:, 0], bounds[:, 1], means, spreads, clip)

    def outside(self, segments: Segments) -> list[tuple[int, str]]:
        """(row, reason) of each text outside the range, once for each reason: language, length, features."""
        result = [(row, reason) for row, text in enumerate(segments.texts) for reason in chain(self._language(text), self._length(text))]
        return result + list(self._features(segments)) if len(self.low) else result

    def _language(self, text: str) -> Iterator[str]:
        """Why a text is unlike English; nothing is known for models of other languages."""
        if list(self.languages) != ["en"]:
            return
        letters = [character for character in text if character.isalpha()]
        own = [word for words, _ in sentences(text) for word in words]
        if 2 * sum(unicodedata.name(character, "").startswith("LATIN ") for character in letters) < len(letters):
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
        """Texts with more or less of a feature than any training text, by how many features the model clips."""
        shares = feature_shares(segments) / UNIT
        out = (shares < self.low - HALF) | (shares > self.high + HALF)
        beyond = (out & (np.abs(shares - self.means) > self.clip * self.spreads)).sum(axis=1)
        for row in np.flatnonzero(out.any(axis=1)).tolist():
            many = int(beyond[row])
            cut = f", {many if many < MOST_TOLD else f'{MOST_TOLD} or more'} of them cut by the model" if many else ""
            yield row, f"features outside of the range of the training texts{cut}"


class EmpathyScore(MeanMetric):
    """Mean EmpathyScore of replies in [0, 1] by a trained model; content alone if the model has no flow."""

    reads = ("context",)

    def __init__(self, model: str = "plain", alpha: float = 0.5, part: str = "both") -> None:
        """Loads a packaged model by name, or a folder of ``train``.

        Raises:
            InputError: if it is not a model, was changed, does not fit this version, or has no such part; or alpha is not in [0, 1].
        """
        if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 <= alpha <= 1:
            raise input_error("empathyscore: alpha", f"{alpha!r} is out of range", "use a number from 0 to 1: the weight of flow")
        if not isinstance(model, str):
            raise input_error("empathyscore: model", f"{model!r} is not a name", "name a packaged model or the folder of one, in quotes")
        self._take(read_model(model), alpha, part)

    @classmethod
    def of(cls, folder: ModelFolder, scorer: Scorer | None = None) -> EmpathyScore:
        """The metric of a model that is already loaded."""
        metric = cls.__new__(cls)
        metric._take(folder, 0.5, "both", scorer)
        return metric

    def _take(self, folder: ModelFolder, alpha: float, part: str, scorer: Scorer | None = None) -> None:
        config = folder.config
        has_flow = FLOW in config["parts"]
        if part == FLOW and not has_flow:
            what = f'has no flow: a model of the kind "{config["kind"]}" scores content alone'
            raise input_error(f"empathyscore-flow: model {folder.name}", what, "use empathyscore, or a model that was trained with flow")
        self._scorer = scorer or scorer_of(folder)
        self.keep, self.share, self.places = self._scorer.keep, self._scorer.share, self._scorer.places
        parts = {"both": BOTH if has_flow else (CONTENT,), CONTENT: (CONTENT,), FLOW: (FLOW,)}[part]
        self._weights = {part: 1.0 if len(parts) == 1 else alpha if part == FLOW else 1 - alpha for part in parts}
        self.name = f"EmpathyScore{'' if part == 'both' else f' {part}'} ({folder.name})"
        self.signature = _signature(folder, self._weights)
        self._range = TrainingRange.of(folder)
        name, splits = config["release"]["name"], tuple(config["splits"])
        self.trained_on: Mapping[str, Sequence[str]] = {name: splits, **({SEEDS: splits} if name in OF_SEEDS else {})}

    def score_all(self, segments: Segments) -> Any:
        """The scores of texts, in order."""
        scores = self._scorer.parts(segments)
        return sum(weight * scores[part] for part, weight in self._weights.items())

    def outside(self, segments: Segments) -> Sequence[tuple[int, str]]:
        """(row, reason) of texts unlike the training texts, by language, length and features."""
        return self._range.outside(segments)


def _signature(folder: ModelFolder, weights: dict[str, float]) -> str:
    config, release = folder.config, folder.config["release"]
    return signature_line(
        kind=config["kind"], sha256=folder.sha256[:12], weights=",".join(f"{part}={weight}" for part, weight in weights.items()),
        trained=f"{release['name']} {release['version']},{'+'.join(config['splits'])}", data=release["data"][:12],
        contrasts=",".join(config["contrasts"]), version=1,
    )  # fmt: skip
