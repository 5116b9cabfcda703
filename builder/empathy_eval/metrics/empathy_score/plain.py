"""The plain model: a weighted sum of standardised features, through the logistic function.

A feature is what a reply has how much of, as a share, so that saying more of the same changes none of them. The word lists of features are
data in ``empathyscore/features.yaml``, read once, and known by their hash.
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
from empathy_eval.metrics.empathy_score.model_folder import ANEW, ModelFolder
from empathy_eval.metrics.protocol import Array, Context, Segments, last_turns
from empathy_eval.metrics.vader import lexicon

Phrase = tuple[str, ...]


@dataclass(frozen=True)
class Listed:
    """A feature: its name, what it is a share of, what it means, and by first word the phrases of its list, the longest first."""

    name: str
    of: str
    what: str
    sign: int = 0
    phrases: Mapping[str, tuple[Phrase, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class WordLists:
    """The features in their order, the words without content, the words that VADER has by their sign, and the hashes of both sources."""

    features: tuple[Listed, ...]
    fillers: frozenset[str]
    signs: Mapping[str, int]
    sha256: str
    vader: str

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [one.name for one in self.features]


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
    """The word lists that are packaged."""
    return read_word_lists(data_folder("empathyscore") / "features.yaml")


def _listed(raw: dict[str, Any]) -> Listed:
    phrases = {tuple(part.split()) for part in raw.get("list", "").split(",") if part.strip()}
    ordered = sorted(phrases, key=lambda one: (one[0], -len(one), one))
    longest = {first: tuple(some) for first, some in groupby(ordered, key=itemgetter(0))}
    return Listed(raw["name"], raw["of"], raw["what"], raw.get("sign", 0), longest)


# Shares are whole numbers of millionths: their sums are the same in any order and on any machine.
UNIT = 10**6
SENTENCE = re.compile(r"[^.!?…\n]+[.!?…]*")
Shares = NDArray[np.int64]
Sentence = tuple[Sequence[str], str]


def said_last(context: Context) -> str:
    """What the seeker said last: all turns since the helper's last one, empty if the helper spoke last."""
    return "\n".join(last_turns(context))


def sentences(text: str) -> list[Sentence]:
    """The words of each sentence, casefolded and with straight apostrophes, and the marks that end it; one without words is none.

    A sentence ends at a full stop, a question or exclamation mark, an ellipsis, or the end of a line.
    """
    found = list[Sentence]()
    for one in SENTENCE.findall(text.replace("’", "'").casefold()):
        if own := WORD.findall(one):
            found.append((own, one[len(one.rstrip(".!?…")) :]))
    return found


class Features:
    """What is counted in replies by some word lists."""

    def __init__(self, lists: WordLists) -> None:
        self.lists = lists
        self._first: dict[str, list[tuple[int, tuple[tuple[str, ...], ...]]]] = {}
        for place, one in enumerate(lists.features):
            for word, phrases in one.phrases.items() if one.of == "words" else ():
                self._first.setdefault(word, []).append((place, phrases))

    def of(self, segments: Segments) -> Shares:
        """The features of texts in millionths, shape (texts, features); without contexts nothing is an echo."""
        contexts: Iterable[Context] = segments.contexts or [()] * len(segments.texts)
        found = [self.shares(text, said_last(context)) for text, context in zip(segments.texts, contexts, strict=True)]
        return np.array(found, dtype=np.int64).reshape(len(found), len(self.lists.features))

    def shares(self, text: str, said: str = "") -> list[int]:
        """The features of one reply to what the seeker said last; all 0 for a text without words."""
        own = sentences(text)
        counts, many = self._listed(own), sum(len(words) for words, _ in own)
        # Each feature is a count over a whole: of words, of sentences, or of words with content.
        whole = {"words": many, "lexicon": many, "openings": len(own), "questions": len(own), "exclaimed": len(own)}
        shares = []
        for place, one in enumerate(self.lists.features):
            if one.of == "echo":
                shares.append(self._echo(own, said))
                continue
            count = counts[place] if one.of == "words" else self._counted(one, own)
            shares.append(_share(count, whole[one.of]))
        return shares

    def _listed(self, own: Sequence[Sentence]) -> list[int]:
        """By feature how many words are in a phrase of its list; phrases do not overlap, and none goes beyond its sentence."""
        counts = [0] * len(self.lists.features)
        for words, _ in own:
            until = dict[int, int]()
            for at, word in enumerate(words):
                for place, phrases in self._first.get(word, ()):
                    if until.get(place, 0) <= at and (length := _longest(words, at, phrases)):
                        counts[place] += length
                        until[place] = at + length
        return counts

    def _counted(self, one: Listed, own: Sequence[Sentence]) -> int:
        if one.of == "lexicon":
            signs = self.lists.signs
            return sum(signs.get(word) == one.sign for words, _ in own for word in words)
        if one.of == "exclaimed":
            return sum("!" in marks for _, marks in own)
        wanted = [words for words, marks in own if one.of == "openings" or "?" in marks]
        if not one.phrases:
            return len(wanted)
        return sum(bool(_longest(words, 0, one.phrases.get(words[0], ()))) for words in wanted)

    def _echo(self, own: Sequence[Sentence], said: str) -> int:
        fillers = self.lists.fillers
        content = [word for words, _ in own for word in words if word not in fillers]
        there = {word for words, _ in sentences(said) for word in words}
        return _share(sum(word in there for word in content), len(content))


def _longest(words: Sequence[str], at: int, phrases: Sequence[tuple[str, ...]]) -> int:
    """How many words the longest of the phrases has that stands at this place; 0 if none does."""
    return next((len(one) for one in phrases if tuple(words[at : at + len(one)]) == one), 0)


def _share(count: int, whole: int) -> int:
    """A share in millionths, halves up; 0 of nothing."""
    return (2 * UNIT * count + whole) // (2 * whole) if whole else 0


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

    def parts(self, segments: Segments) -> dict[str, Array]:
        """How empathetic each text is; a plain model has no other part."""
        return {"content": self.direction.scores(shares_of(segments))}


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
    wanted = dict.fromkeys(("means", "spreads", "weights"), (len(names) + more,)) | {"scale": (1,)}
    clip = folder.config["settings"].get("clip")
    if shapes != wanted or not isinstance(clip, int | float):
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
