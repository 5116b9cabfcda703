"""The plain model: a weighted sum of standardised features, through the logistic function.

Features are shares, so that repeating a text changes none. Their word lists are data in ``empathyscore/features.yaml``, identified by hash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest, digest_file
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.text import WORD
from empathy_eval.metrics.empathy_score.model_folder import FIX_MODEL, ModelFolder
from empathy_eval.metrics.protocol import Array, Context, Segments, last_turns
from empathy_eval.metrics.vader import lexicon

Phrase = tuple[str, ...]
# Shares are whole numbers of millionths: their sums are the same in any order and on any machine.
UNIT = 10**6
SENTENCE = re.compile(r"[^.!?…\n]+[.!?…]*")
Shares = NDArray[np.int64]
Sentence = tuple[Sequence[str], str]


@dataclass(frozen=True)
class Feature:
    """A feature: its name, what it is a share of, its meaning, and its phrases by first word, the longest first."""

    name: str
    of: str
    what: str
    sign: int = 0
    phrases: Mapping[str, tuple[Phrase, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class WordLists:
    """The features in order, words without content, VADER's words by sign, and the hashes of both sources."""

    features: tuple[Feature, ...]
    fillers: frozenset[str]
    signs: Mapping[str, int]
    sha256: str
    vader: str

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [feature.name for feature in self.features]


def read_word_lists(path: Path) -> WordLists:
    """The word lists of a file, such as the packaged ``empathyscore/features.yaml``.

    Raises:
        InputError: if it cannot be read or breaks its schema.
    """
    raw = read_yaml(path, "empathyscore_features")
    signs = {word: 1 if valence > 0 else -1 for word, valence in lexicon().items() if valence}
    return WordLists(tuple(map(_listed, raw["features"])), frozenset(raw["fillers"].split()), signs, digest_file(path), digest(signs))


@cache
def word_lists() -> WordLists:
    """The packaged word lists."""
    return read_word_lists(data_folder("empathyscore") / "features.yaml")


def _listed(raw: dict[str, Any]) -> Feature:
    phrases = {tuple(part.split()) for part in raw.get("list", "").split(",") if part.strip()}
    ordered = sorted(phrases, key=lambda phrase: (phrase[0], -len(phrase), phrase))
    longest = {first: tuple(group) for first, group in groupby(ordered, key=itemgetter(0))}
    return Feature(raw["name"], raw["of"], raw["what"], raw.get("sign", 0), longest)


def last_seeker_text(context: Context) -> str:
    """The seeker's text since the helper's last turn; empty if the helper spoke last."""
    return "\n".join(last_turns(context))


def sentences(text: str) -> list[Sentence]:
    """The words of each sentence, casefolded and with straight apostrophes, and its end marks; sentences without words are skipped.

    A sentence ends at a full stop, a question or exclamation mark, an ellipsis, or the end of a line.
    """
    result = list[Sentence]()
    for sentence in SENTENCE.findall(text.replace("’", "'").casefold()):
        if own := WORD.findall(sentence):
            result.append((own, sentence[len(sentence.rstrip(".!?…")) :]))
    return result


class FeatureCounter:
    """Counts the features of replies by word lists."""

    def __init__(self, lists: WordLists) -> None:
        self.lists = lists
        self._first: dict[str, list[tuple[int, tuple[tuple[str, ...], ...]]]] = {}
        for index, feature in enumerate(lists.features):
            for word, phrases in feature.phrases.items() if feature.of == "words" else ():
                self._first.setdefault(word, []).append((index, phrases))

    def of(self, segments: Segments) -> Shares:
        """The features of texts in millionths, shape (texts, features); without contexts the echo is 0."""
        contexts: Iterable[Context] = segments.contexts or [()] * len(segments.texts)
        rows = [self.shares(text, last_seeker_text(context)) for text, context in zip(segments.texts, contexts, strict=True)]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self.lists.features))

    def shares(self, text: str, last_message: str = "") -> list[int]:
        """The features of one reply to the seeker's last message; all 0 for a text without words."""
        own = sentences(text)
        counts, many = self._listed(own), sum(len(words) for words, _ in own)
        # Each feature is a count over a whole: of words, of sentences, or of words with content.
        whole = {"words": many, "lexicon": many, "openings": len(own), "questions": len(own), "exclaimed": len(own)}
        shares = []
        for index, feature in enumerate(self.lists.features):
            if feature.of == "echo":
                shares.append(self._echo(own, last_message))
                continue
            count = counts[index] if feature.of == "words" else self._counted(feature, own)
            shares.append(_share(count, whole[feature.of]))
        return shares

    def _listed(self, own: Sequence[Sentence]) -> list[int]:
        """The words in phrases of each feature; phrases do not overlap, and stay within a sentence."""
        counts = [0] * len(self.lists.features)
        for words, _ in own:
            until = dict[int, int]()
            for at, word in enumerate(words):
                for index, phrases in self._first.get(word, ()):
                    if until.get(index, 0) <= at and (length := _longest(words, at, phrases)):
                        counts[index] += length
                        until[index] = at + length
        return counts

    def _counted(self, feature: Feature, own: Sequence[Sentence]) -> int:
        if feature.of == "lexicon":
            signs = self.lists.signs
            return sum(signs.get(word) == feature.sign for words, _ in own for word in words)
        if feature.of == "exclaimed":
            return sum("!" in marks for _, marks in own)
        wanted = [words for words, marks in own if feature.of == "openings" or "?" in marks]
        if not feature.phrases:
            return len(wanted)
        return sum(bool(_longest(words, 0, feature.phrases.get(words[0], ()))) for words in wanted)

    def _echo(self, own: Sequence[Sentence], last_message: str) -> int:
        fillers = self.lists.fillers
        content = [word for words, _ in own for word in words if word not in fillers]
        seeker_words = {word for words, _ in sentences(last_message) for word in words}
        return _share(sum(word in seeker_words for word in content), len(content))


def _longest(words: Sequence[str], at: int, phrases: Sequence[tuple[str, ...]]) -> int:
    """The words of the longest phrase at this index; 0 if there is none."""
    return next((len(phrase) for phrase in phrases if tuple(words[at : at + len(phrase)]) == phrase), 0)


def _share(count: int, whole: int) -> int:
    """A share in millionths, rounded half up; 0 if the whole is 0."""
    return (2 * UNIT * count + whole) // (2 * whole) if whole else 0


@dataclass(frozen=True)
class LinearModel:
    """The learned plain model: mean, spread and weight of each feature over the training texts; the spread of weighted sums.

    All have six decimal places. A feature is clipped at ``clip`` spreads from its mean.
    """

    means: Array
    spreads: Array
    weights: Array
    scale: float
    clip: float

    def sums(self, shares: Shares) -> Array:
        """The weighted sum of each row, shape (texts,), added feature by feature, so in the same order on every machine."""
        total = np.zeros(len(shares))
        for index, (mean, spread, weight) in enumerate(zip(self.means, self.spreads, self.weights, strict=True)):
            if weight and spread:
                total += weight * np.clip((shares[:, index] / UNIT - mean) / spread, -self.clip, self.clip)
        return total

    def scores(self, shares: Shares) -> Array:
        """The scores of rows in [0, 1]: 1 / (1 + exp(-sum / scale)); one half is the middle of the training texts."""
        result: Array = 1 / (1 + np.exp(-self.sums(shares) / (self.scale or 1.0)))
        return result


class PlainScorer:
    """The scorer of a plain model; reads the reply and the seeker's last message."""

    keep, share, places = False, True, 6

    def __init__(self, folder: ModelFolder) -> None:
        """Loads the weights of a folder.

        Raises:
            InputError: if it was trained with other word lists, or its arrays do not fit them.
        """
        self.direction = linear_model_of(folder)

    def parts(self, segments: Segments) -> dict[str, Array]:
        """How empathetic each text is; a plain model has no other part."""
        return {"content": self.direction.scores(feature_shares(segments))}


def linear_model_of(folder: ModelFolder, more: int = 0) -> LinearModel:
    """The linear model in a folder, over the features of the word lists and ``more`` others.

    Raises:
        InputError: if it was trained with other word lists, or its arrays do not fit them.
    """
    lists, trained = word_lists(), folder.config["features"]
    names = lists.names
    if trained is None or (trained["names"], trained["sha256"], trained["vader"]) != (names, lists.sha256, lists.vader):
        what = "was trained with other word lists than this version has (empathyscore/features.yaml, and the lexicon of vaderSentiment)"
        raise input_error(folder.path, what, "train it again, or use the version that trained it")
    shapes = {name: array.shape for name, array in folder.arrays.items()}
    wanted = dict.fromkeys(("means", "spreads", "weights"), (len(names) + more,)) | {"scale": (1,)}
    clip = folder.config["settings"].get("clip")
    if shapes != wanted or not isinstance(clip, int | float):
        raise input_error(folder.path, f"does not hold the arrays and settings of a model of the kind {folder.config['kind']}", FIX_MODEL)
    values = {name: np.asarray(array, dtype=np.float64) for name, array in folder.arrays.items()}
    if not all(np.isfinite(array).all() for array in values.values()):
        raise input_error(folder.path, "has weights that are not numbers", FIX_MODEL)
    return LinearModel(values["means"], values["spreads"], values["weights"], float(values["scale"][0]), clip)


def feature_shares(segments: Segments) -> Shares:
    """The features of the packaged word lists, in millionths."""
    return _features().of(segments)


@cache
def _features() -> FeatureCounter:
    """Cached for each process, and never pickled."""
    return FeatureCounter(word_lists())
