"""What can be counted in a text without understanding it: words, runs of words and characters, length and marks."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.text import ENGLISH, words
from empathy_eval.design.word_list import tokens_of

Counts = NDArray[np.int64]
# Runs are hashed into so many bits: two of them may share a place.
BITS = 20
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
MARKS = (".", ",", "?", "!", ";", ":", "—", "…", "'’", '"“”„«»')


@dataclass(frozen=True)
class TokenizedTexts:
    """Texts, and end to end the places of their words in a lexicon: those of text ``i`` begin at ``starts[i]``."""

    texts: Sequence[str]
    codes: NDArray[np.int32]
    starts: Counts

    @property
    def lengths(self) -> Counts:
        """How many words each text has."""
        return np.diff(self.starts)

    def take(self, rows: Counts) -> TokenizedTexts:
        """The texts of those rows."""
        lengths = self.lengths[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        at = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], lengths)
        return TokenizedTexts([self.texts[row] for row in rows.tolist()], self.codes[at], starts)


class Lexicon:
    """The words of all texts that were read, each with its place; ``tokens`` is what a signature calls them."""

    def __init__(self, language: str = ENGLISH) -> None:
        self.language, self.tokens = language, tokens_of(language)
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    @property
    def words(self) -> list[str]:
        """All words, by place."""
        return list(self._places)

    def read(self, texts: Sequence[str]) -> TokenizedTexts:
        """The texts with the places of their words; new words are taken in."""
        places, codes, starts = self._places, array("i"), array("q", [0])
        for text in texts:
            codes.extend([places.setdefault(word, len(places)) for word in words(text, self.language)])
            starts.append(len(codes))
        return TokenizedTexts(texts, np.frombuffer(codes, dtype=np.int32), np.frombuffer(starts, dtype=np.int64))

    def known(self, text: str) -> set[int]:
        """The places of those words of a text that were read before."""
        return {place for word in words(text, self.language) if (place := self._places.get(word)) is not None}


class Bag(NamedTuple):
    """Counts of some texts: ``counts[i]`` times the feature ``places[i]`` in text ``rows[i]``; a feature may come again."""

    rows: Counts
    places: Counts
    counts: Counts

    def scores(self, weights: Counts, texts: int) -> Counts:
        """By text the sum of its counts, each times the weight of its feature."""
        return np.bincount(self.rows, weights[self.places] * self.counts, texts).astype(np.int64)


class Features:
    """What is counted in a text: so many features, and the bag of some texts."""

    signature: str
    size: int = 2**BITS

    def bag(self, texts: TokenizedTexts) -> Bag:
        """What is counted in these texts."""
        raise NotImplementedError


class WordFeatures(Features):
    """Words."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon, self.signature = lexicon, f"words,{lexicon.tokens},casefolded"

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of different words."""
        return len(self.lexicon)

    def bag(self, texts: TokenizedTexts) -> Bag:
        """One count a word."""
        lengths, places = texts.lengths, texts.codes.astype(np.int64)
        return Bag(np.repeat(np.arange(len(lengths)), lengths), places, np.ones(len(places), dtype=np.int64))


class WordPairFeatures(Features):
    """Words and pairs of neighbouring words, hashed."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.signature = f"words-and-pairs-of-words,{lexicon.tokens},casefolded,hash=crc32-multiply-shift,{BITS}-bits"
        self._hashes = hashes_of(lexicon)

    def bag(self, texts: TokenizedTexts) -> Bag:
        """One count a word or pair of words."""
        codes = texts.codes
        return _runs(self._hashes[codes] if len(codes) else codes.astype(np.uint64), texts.lengths, (1, 2))


def hashes_of(lexicon: Lexicon) -> NDArray[np.uint64]:
    """The CRC-32 of each word of a lexicon, by place."""
    return np.array([zlib.crc32(word.encode()) for word in lexicon.words], dtype=np.uint64)


class CharacterFeatures(Features):
    """Runs of three to five characters of the casefolded text, hashed; signs and spaces are characters too."""

    signature = f"characters-3-to-5,casefolded,hash=multiply-shift,{BITS}-bits"

    def bag(self, texts: TokenizedTexts) -> Bag:
        """One count a run of characters."""
        folded = [one.casefold() for one in texts.texts]
        symbols = np.frombuffer("".join(folded).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
        return _runs(symbols, np.array([len(one) for one in folded], dtype=np.int64), (3, 4, 5))


class LengthFeatures(Features):
    """The number of words, of characters, and of each mark."""

    signature = f"words,characters,marks={''.join(mark[0] for mark in MARKS)}"
    size = 2 + len(MARKS)

    def bag(self, texts: TokenizedTexts) -> Bag:
        """A count a feature."""
        own = zip(texts.texts, texts.lengths.tolist(), strict=True)
        found = [[length, len(text), *(sum(map(text.count, mark)) for mark in MARKS)] for text, length in own]
        rows = np.repeat(np.arange(len(found)), self.size)
        return Bag(rows, np.tile(np.arange(self.size), len(found)), np.array(found, dtype=np.int64).reshape(-1))


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
