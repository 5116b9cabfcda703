"""What can be counted in a text without understanding it: words, runs of words and characters, length and marks."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.text import words

Counts = NDArray[np.int64]
# Runs are hashed into so many bits: two of them may share a place.
BITS = 20
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
MARKS = (".", ",", "?", "!", ";", ":", "—", "…", "'’", '"“”„«»')


class Reading(NamedTuple):
    """A text, and the places of its words in a lexicon."""

    text: str
    codes: NDArray[np.int32]


class Lexicon:
    """The words of all texts that were read, each with its place."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    @property
    def words(self) -> list[str]:
        """All words, by place."""
        return list(self._places)

    def read(self, text: str) -> Reading:
        """The text with the places of its words; new words are taken in."""
        places = self._places
        return Reading(text, np.array([places.setdefault(word, len(places)) for word in words(text)], dtype=np.int32))


class Bag(NamedTuple):
    """Counts of some texts: ``counts[i]`` times the feature ``places[i]`` in text ``rows[i]``; a feature may come again."""

    rows: Counts
    places: Counts
    counts: Counts

    def scores(self, weights: Counts, texts: int) -> Counts:
        """By text the sum of its counts, each times the weight of its feature."""
        return np.bincount(self.rows, weights[self.places] * self.counts, texts).astype(np.int64)


class Features(Protocol):
    """What is counted in a text: so many features, and the bag of some texts."""

    signature: str

    @property
    def size(self) -> int:
        """The number of features."""
        ...

    def bag(self, texts: Sequence[Reading]) -> Bag:
        """What is counted in these texts."""
        ...


class Words:
    """Words."""

    signature = "words,empathy-eval,casefolded"

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon

    @property
    def size(self) -> int:
        """The number of different words."""
        return len(self.lexicon)

    def bag(self, texts: Sequence[Reading]) -> Bag:
        """One count a word."""
        places, lengths = _codes(texts)
        return Bag(np.repeat(np.arange(len(texts)), lengths), places, np.ones(len(places), dtype=np.int64))


class WordPairs:
    """Words and pairs of neighbouring words, hashed."""

    signature = f"words-and-pairs-of-words,empathy-eval,casefolded,hash=crc32-multiply-shift,{BITS}-bits"
    size = 2**BITS

    def __init__(self, lexicon: Lexicon) -> None:
        self._hashes = np.array([zlib.crc32(word.encode()) for word in lexicon.words], dtype=np.uint64)

    def bag(self, texts: Sequence[Reading]) -> Bag:
        """One count a word or pair of words."""
        codes, lengths = _codes(texts)
        return _runs(self._hashes[codes] if len(codes) else codes.astype(np.uint64), lengths, (1, 2))


class Characters:
    """Runs of three to five characters of the casefolded text, hashed; signs and spaces are characters too."""

    signature = f"characters-3-to-5,casefolded,hash=multiply-shift,{BITS}-bits"
    size = 2**BITS

    def bag(self, texts: Sequence[Reading]) -> Bag:
        """One count a run of characters."""
        folded = [one.text.casefold() for one in texts]
        symbols = np.frombuffer("".join(folded).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
        return _runs(symbols, np.array([len(one) for one in folded], dtype=np.int64), (3, 4, 5))


class LengthAndMarks:
    """The number of words, of characters, and of each mark."""

    signature = f"words,characters,marks={''.join(mark[0] for mark in MARKS)}"
    size = 2 + len(MARKS)

    def bag(self, texts: Sequence[Reading]) -> Bag:
        """A count a feature."""
        found = [[len(codes), len(text), *(sum(map(text.count, mark)) for mark in MARKS)] for text, codes in texts]
        rows = np.repeat(np.arange(len(texts)), self.size)
        return Bag(rows, np.tile(np.arange(self.size), len(texts)), np.array(found, dtype=np.int64).reshape(-1))


def _codes(texts: Sequence[Reading]) -> tuple[Counts, Counts]:
    """The places of all words end to end, and how many each text has."""
    codes = [one.codes for one in texts]
    return np.concatenate([np.zeros(0, dtype=np.int64), *codes]).astype(np.int64), np.array([len(one) for one in codes], dtype=np.int64)


def _runs(symbols: NDArray[np.uint64], lengths: Counts, orders: Sequence[int]) -> Bag:
    """The hashed runs of so many symbols within each text, of texts that stand end to end."""
    owners = np.repeat(np.arange(len(lengths)), lengths)
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(symbols))
    rows, places = [], []
    for order in orders:
        starts = np.flatnonzero(left >= order)
        value = np.full(len(starts), order, dtype=np.uint64)
        for step in range(order):
            value = (value ^ symbols[starts + step]) * MULTIPLIER
            value ^= value >> np.uint64(32)
        rows.append(owners[starts])
        places.append((value & np.uint64(2**BITS - 1)).astype(np.int64))
    found = np.concatenate(places)
    return Bag(np.concatenate(rows), found, np.ones(len(found), dtype=np.int64))
