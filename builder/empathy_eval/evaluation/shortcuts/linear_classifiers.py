"""Features (words, characters, length, marks), and closed-form linear classifiers of the empathetic text of a pair."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.text import ENGLISH, tokens_of, words
from empathy_eval.design.word_list import UNIT as UNIT
from empathy_eval.metrics.protocol import Array
from empathy_eval.statistics.estimate import wins

Counts = NDArray[np.int64]
# Runs are hashed into so many bits: two of them may share a place.
BITS = 20
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
MARKS = (".", ",", "?", "!", ";", ":", "—", "…", "'’", '"“”„«»')


@dataclass(frozen=True)
class TokenizedTexts:
    """Texts with the indices of their words in a lexicon, end to end: those of text ``i`` begin at ``starts[i]``."""

    texts: Sequence[str]
    codes: NDArray[np.int32]
    starts: Counts

    @property
    def lengths(self) -> Counts:
        """The number of words of each text."""
        return np.diff(self.starts)

    def take(self, rows: Counts) -> TokenizedTexts:
        """Returns the texts of those rows."""
        lengths = self.lengths[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        at = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], lengths)
        return TokenizedTexts([self.texts[row] for row in rows.tolist()], self.codes[at], starts)


class Lexicon:
    """The words of all texts that were read, with their indices; ``tokens`` is their name in signatures."""

    def __init__(self, language: str = ENGLISH) -> None:
        self.language, self.tokens = language, tokens_of(language)
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    @property
    def words(self) -> list[str]:
        """All words, by index."""
        return list(self._places)

    def read(self, texts: Sequence[str]) -> TokenizedTexts:
        """Returns the texts with the indices of their words; new words are added."""
        places, codes, starts = self._places, array("i"), array("q", [0])
        for text in texts:
            codes.extend([places.setdefault(word, len(places)) for word in words(text, self.language)])
            starts.append(len(codes))
        return TokenizedTexts(texts, np.frombuffer(codes, dtype=np.int32), np.frombuffer(starts, dtype=np.int64))

    def known(self, text: str) -> set[int]:
        """Returns the indices of the known words of a text."""
        return {place for word in words(text, self.language) if (place := self._places.get(word)) is not None}


class Bag(NamedTuple):
    """Counts of some texts: ``counts[i]`` of the feature ``places[i]`` in text ``rows[i]``; a feature may be repeated."""

    rows: Counts
    places: Counts
    counts: Counts

    def scores(self, weights: Counts, texts: int) -> Counts:
        """Returns by text the sum of its counts times the weights of their features."""
        return np.bincount(self.rows, weights[self.places] * self.counts, texts).astype(np.int64)


class Features:
    """A set of features: their number, and their counts in texts."""

    signature: str
    size: int = 2**BITS

    def bag(self, texts: TokenizedTexts) -> Bag:
        """Returns the counts in these texts."""
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
    """Returns the CRC-32 of each word of a lexicon, by index."""
    return np.array([zlib.crc32(word.encode()) for word in lexicon.words], dtype=np.uint64)


class CharacterFeatures(Features):
    """Runs of three to five characters of the casefolded text, hashed; punctuation and spaces are included."""

    signature = f"characters-3-to-5,casefolded,hash=multiply-shift,{BITS}-bits"

    def bag(self, texts: TokenizedTexts) -> Bag:
        """One count a run of characters."""
        folded = [text.casefold() for text in texts.texts]
        symbols = np.frombuffer("".join(folded).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
        return _runs(symbols, np.array([len(text) for text in folded], dtype=np.int64), (3, 4, 5))


class LengthFeatures(Features):
    """The number of words, of characters, and of each mark."""

    signature = f"words,characters,marks={''.join(mark[0] for mark in MARKS)}"
    size = 2 + len(MARKS)

    def bag(self, texts: TokenizedTexts) -> Bag:
        """A count a feature."""
        own = zip(texts.texts, texts.lengths.tolist(), strict=True)
        rows_of_counts = [[length, len(text), *(sum(map(text.count, mark)) for mark in MARKS)] for text, length in own]
        rows = np.repeat(np.arange(len(rows_of_counts)), self.size)
        return Bag(rows, np.tile(np.arange(self.size), len(rows_of_counts)), np.array(rows_of_counts, dtype=np.int64).reshape(-1))


def _runs(symbols: NDArray[np.uint64], lengths: Counts, orders: Sequence[int]) -> Bag:
    """Returns the hashed runs of symbols within each text; texts lie end to end."""
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
    all_places = np.concatenate(places)
    return Bag(np.concatenate(rows), all_places, np.ones(len(all_places), dtype=np.int64))


ALPHA = 1
# What is added to the spread of a difference, so that one without any spread has a weight.
LEAST_SPREAD = 0.01
# And what is added to its variance: words that stand in few texts weigh less by it.
LEAST_VARIANCE = 0.05
# Pairs counted at once: memory does not grow with their number.
AT_ONCE = 512
# Of so few pairs most hashed features are in no text, and those alone that are in some are reckoned with.
FEW, MANY = 2000, 2**16


@dataclass(frozen=True)
class TrainingSums:
    """Sums that classifiers learn from: by feature the counts in empathetic and apathetic texts, and squared differences of pairs.

    There are no squares where no form asks for them: they take longer than all the rest.
    """

    kind: Counts | NDArray[np.int32]
    cold: Counts | NDArray[np.int32]
    squares: Counts
    pairs: int

    @classmethod
    def of(cls, parts: Iterable[tuple[Counts, Bag, Bag]], size: int, *, paired: bool) -> TrainingSums:
        """Returns the sums over parts of pairs, the empathetic and the apathetic text of each pair in one row."""
        kind, cold, squares = (np.zeros(length, dtype=np.int64) for length in (size, size, size if paired else 0))
        pairs = 0
        for rows, kind_bag, cold_bag in parts:
            pairs += len(rows)
            for total, bag in ((kind, kind_bag), (cold, cold_bag)):
                total += _counted(bag.places, bag.counts, size)
            if paired:
                squares += _squares(kind_bag, cold_bag, size)
        # Plain counts stay below 2^31, and there are sums for every fold.
        return cls(kind, cold, squares, pairs) if paired else cls(kind.astype(np.int32), cold.astype(np.int32), squares, pairs)

    def __add__(self, other: TrainingSums) -> TrainingSums:
        return TrainingSums(self.kind + other.kind, self.cold + other.cold, self.squares + other.squares, self.pairs + other.pairs)

    def __sub__(self, other: TrainingSums) -> TrainingSums:
        return TrainingSums(self.kind - other.kind, self.cold - other.cold, self.squares - other.squares, self.pairs - other.pairs)


def _squares(kind: Bag, cold: Bag, size: int) -> Counts:
    keys = np.concatenate([kind.rows * size + kind.places, cold.rows * size + cold.places])
    order = np.argsort(keys, kind="stable")
    keys, signed = keys[order], np.concatenate([kind.counts, -cold.counts])[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    difference = np.add.reduceat(signed, starts) if len(starts) else signed
    return _counted(keys[starts] % size, difference * difference, size)


def _counted(places: Counts, counts: Counts, size: int) -> Counts:
    # Doubles hold whole numbers below 2^53 without loss.
    return np.bincount(places, counts, size).astype(np.int64)


def log_odds(sums: TrainingSums) -> Counts:
    """Returns the log of a feature's share in empathetic texts over that in apathetic ones, add-one smoothed; 0 where it never occurs."""
    occurs = (sums.kind + sums.cold) > 0
    kind, cold = ((counts + ALPHA) / max(counts.sum(dtype=np.int64) + ALPHA * occurs.sum(), 1) for counts in (sums.kind, sums.cold))
    return _rounded(np.where(occurs, np.log(kind / cold), 0.0))


def mean_over_spread(sums: TrainingSums) -> Counts:
    """Returns the mean difference of a feature's counts over its standard deviation plus a hundredth; 0 where it never occurs."""
    total, spread = _difference(sums)
    return _rounded(total / spread)


def mean_over_variance(sums: TrainingSums) -> Counts:
    """Returns the mean difference of a feature's counts over its variance plus a twentieth: naive linear discriminant."""
    difference = (sums.kind - sums.cold) / max(sums.pairs, 1)
    variance = np.maximum(sums.squares / max(sums.pairs, 1) - difference**2, 0.0)
    return _rounded(difference / (variance + LEAST_VARIANCE))


def standardised(sums: TrainingSums) -> Counts:
    """Returns the mean over the spread for counts in units of their spread, for features of different units."""
    total, spread = _difference(sums)
    return _rounded(sums.pairs * total / spread**2)


def _difference(sums: TrainingSums) -> tuple[Array, Array]:
    """Returns by feature the sum of differences, and the number of pairs times their standard deviation plus a hundredth."""
    total, squares = (sums.kind - sums.cold).astype(np.float64), sums.squares.astype(np.float64)
    return total, np.sqrt(np.maximum(sums.pairs * squares - total * total, 0.0)) + LEAST_SPREAD * sums.pairs


def _rounded(weights: Array) -> Counts:
    return np.rint(weights * UNIT).astype(np.int64)


class LinearClassifier(NamedTuple):
    """A closed form: its signature, its weights of features, and whether it needs squared differences."""

    signature: str
    weights: Callable[[TrainingSums], Counts]
    paired: bool = True


FORMS: Mapping[str, LinearClassifier] = {
    "log-odds": LinearClassifier(f"log-odds,alpha={ALPHA}", log_odds, paired=False),
    "mean-over-spread": LinearClassifier(f"mean-over-spread,least-spread={LEAST_SPREAD}", mean_over_spread),
    "mean-over-variance": LinearClassifier(f"mean-over-variance,least-variance={LEAST_VARIANCE}", mean_over_variance),
    "standardised": LinearClassifier(f"mean-over-spread,least-spread={LEAST_SPREAD},standardised", standardised),
}


@dataclass(frozen=True)
class PairSides:
    """The empathetic and the apathetic text of pairs, and the fold of each pair."""

    kind: TokenizedTexts
    cold: TokenizedTexts
    folds: Counts

    @property
    def number(self) -> int:
        """The number of folds."""
        return int(self.folds.max(initial=-1)) + 1

    def parts(self, features: Features, fold: int) -> Iterator[tuple[Counts, Bag, Bag]]:
        """Yields some pairs of a fold at a time: their rows, and the counts in their texts."""
        rows = np.flatnonzero(self.folds == fold)
        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            kind, cold = (features.bag(texts.take(some)) for texts in (self.kind, self.cold))
            yield some, kind, cold


class OccurringFeatures(Features):
    """The features that occur in some texts, in rising order; all others have no counts and no weight."""

    def __init__(self, features: Features, sides: PairSides) -> None:
        """Finds the features of the texts of all pairs."""
        self.features, self.signature = features, features.signature
        bags = (bag for fold in range(sides.number) for _, *both in sides.parts(features, fold) for bag in both)
        self.places = np.unique(np.concatenate([bag.places for bag in bags]))
        self.size = len(self.places)

    def bag(self, texts: TokenizedTexts) -> Bag:
        """Returns the counts in such texts."""
        bag = self.features.bag(texts)
        return bag._replace(places=np.searchsorted(self.places, bag.places))


@dataclass(frozen=True)
class FittedClassifier:
    """A fitted classifier: margins by pair, out of fold and in millionths; sums of all pairs; and the closed form.

    Of few pairs the sums of hashed features are those of the features that occur.
    """

    margins: Counts
    whole: TrainingSums
    form: str

    @property
    def won(self) -> Array:
        """By pair 1 where it is right, 0 where it is wrong, one half for a tie."""
        return wins(self.margins.astype(np.float64), np.zeros(len(self.margins)))

    @property
    def weights(self) -> Counts:
        """The weights of features, in millionths, learned from all pairs."""
        return FORMS[self.form].weights(self.whole)


@dataclass(frozen=True)
class FeatureClassifier:
    """Features, and closed forms of which the most accurate one out of fold is used, the first of equals."""

    features: Features
    forms: Sequence[str]

    def learn(self, sides: PairSides) -> FittedClassifier:
        """Scores each pair by weights learned from the other folds."""
        paired = any(FORMS[name].paired for name in self.forms)
        sparse = self.features.size > MANY and 0 < len(sides.folds) <= FEW
        features: Features = OccurringFeatures(self.features, sides) if sparse else self.features
        own = [TrainingSums.of(sides.parts(features, fold), features.size, paired=paired) for fold in range(sides.number)]
        whole = reduce(add, own)
        margins = {name: np.zeros(len(sides.folds), dtype=np.int64) for name in self.forms}
        for fold, sums in enumerate(own):
            weights = {name: FORMS[name].weights(whole - sums) for name in self.forms}
            for rows, kind, cold in sides.parts(features, fold):
                for name, weight in weights.items():
                    margins[name][rows] = kind.scores(weight, len(rows)) - cold.scores(weight, len(rows))
        return max((FittedClassifier(margins[name], whole, name) for name in self.forms), key=lambda fitted: float(fitted.won.sum()))
