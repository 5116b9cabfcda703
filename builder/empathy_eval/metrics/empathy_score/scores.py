"""The metrics: EmpathyScore of a model, and its two parts by themselves.

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
from empathy_eval.metrics.empathy_score.plain import UNIT, sentences, shares_of, word_lists
from empathy_eval.metrics.protocol import SEEDS, Array, MeanMetric, Segments

# Kind: the class that scores with it, made from a ModelFolder. It is imported when a model of the kind is loaded. What trains one is a row
# of ``training/task``.
KINDS = {
    "plain": "empathy_eval.metrics.empathy_score.plain:Plain",
    "encoder": "empathy_eval.metrics.empathy_score.encoders:Embedded",
    "students": "empathy_eval.metrics.empathy_score.students:Students",
}


class Scorer(Protocol):
    """A model at work. Scores lie in [0, 1], higher is more empathetic."""

    # Whether its scores are costly and are kept; whether it can be pickled and runs in several processes.
    keep: bool
    share: bool
    # Decimal places that are the same in every process.
    places: int

    def parts(self, segments: Segments) -> Mapping[str, Array]:
        """By part of the model the score of each text, shape (texts,): ``content`` is how empathetic it is by what it says, ``flow`` how
        well it goes on from its context."""


def scorer_of(folder: ModelFolder) -> Scorer:
    """The scorer of a model.

    Raises:
        InputError: if this version knows no such kind, or what the model needs is not there.
    """
    kind = folder.config["kind"]
    if kind not in KINDS:
        raise input_error(folder.path, f'is of the kind "{kind}", which this version does not know', f"use one of {', '.join(KINDS)}")
    scorer: Scorer = resolve_name(KINDS[kind])(folder)
    return scorer


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
        shares = shares_of(segments) / UNIT
        out = (shares < self.low - HALF) | (shares > self.high + HALF)
        beyond = (out & (np.abs(shares - self.means) > self.clip * self.spreads)).sum(axis=1)
        for row in np.flatnonzero(out.any(axis=1)).tolist():
            many = int(beyond[row])
            cut = f", {many if many < MOST_TOLD else f'{MOST_TOLD} or more'} of them cut by the model" if many else ""
            yield row, f"features outside of the range of the training texts{cut}"


FLOW, CONTENT = "flow", "content"
# Releases of nothing but the curated seed dialogues.
OF_SEEDS = ("empathy-eval-demo", "empathy-eval-seeds")
BOTH = (CONTENT, FLOW)


class EmpathyScore(MeanMetric):
    """The mean EmpathyScore of replies in [0, 1] by a trained model; of a model without flow it is its content alone."""

    reads = ("context",)

    def __init__(self, model: str = "plain", alpha: float = 0.5, part: str = "both") -> None:
        """Loads the model: a packaged one by its name, or a folder of ``train``.

        Raises:
            InputError: if it is no model, was changed, does not fit this version, or has no such part; or alpha is not in [0, 1].
        """
        if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 <= alpha <= 1:
            raise input_error("empathyscore: alpha", f"{alpha!r} is out of range", "use a number from 0 to 1: the weight of flow")
        if not isinstance(model, str):
            raise input_error("empathyscore: model", f"{model!r} is not a name", "name a packaged model or the folder of one, in quotes")
        self._take(read_model(model), alpha, part)

    @classmethod
    def of(cls, folder: ModelFolder, scorer: Scorer | None = None) -> EmpathyScore:
        """The metric of a model that was read, or was made just now and is at work."""
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
        self._weights = {one: 1.0 if len(parts) == 1 else alpha if one == FLOW else 1 - alpha for one in parts}
        self.name = f"EmpathyScore{'' if part == 'both' else f' {part}'} ({folder.name})"
        self.signature = _signature(folder, self._weights)
        self._range = TrainingRange.of(folder)
        name, splits = config["release"]["name"], tuple(config["splits"])
        self.trained_on: Mapping[str, Sequence[str]] = {name: splits, **({SEEDS: splits} if name in OF_SEEDS else {})}

    def score_all(self, segments: Segments) -> Any:
        """The scores of texts, one each, in their order."""
        found = self._scorer.parts(segments)
        return sum(weight * found[part] for part, weight in self._weights.items())

    def outside(self, segments: Segments) -> Sequence[tuple[int, str]]:
        """(row, reason) of texts unlike those that the model was trained on, by language, length and features."""
        return self._range.outside(segments)


def _signature(folder: ModelFolder, weights: dict[str, float]) -> str:
    config, release = folder.config, folder.config["release"]
    return signature_line(
        kind=config["kind"], sha256=folder.sha256[:12], weights=",".join(f"{part}={one}" for part, one in weights.items()),
        trained=f"{release['name']} {release['version']},{'+'.join(config['splits'])}", data=release["data"][:12],
        contrasts=",".join(config["contrasts"]), version=1,
    )  # fmt: skip
