"""BLEU-4, chrF, METEOR and Dist: n-gram metrics. N-grams are counted for many pairs of texts in one sort."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import metadata
from itertools import chain
from types import SimpleNamespace

import numpy as np
import sacrebleu
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import derived_random, signature_line
from empathy_eval.base.imports import without
from empathy_eval.base.text import ENGLISH, spaced
from empathy_eval.metrics.protocol import Array, LanguageMetric, MeanMetric, Segments

Codes = NDArray[np.int64]
# Bits of a key beside the one that tells text and reference apart.
WIDTH = 62
# Decimals of a resampled sum of counts that are kept.
PLACES = 6
TOKENIZER = BLEU().tokenizer
Words = NDArray[np.int64]


def matches(symbols: Codes, lengths: Codes, order: int) -> Codes:
    """The n-grams that each text shares with its reference (the smaller of both counts), shape (pairs, order).

    ``symbols`` holds integers from 0: all texts, then all references, end to end; ``lengths`` are their lengths. Every position becomes a
    64-bit key: the pair, then the next ``order`` symbols. Sorted once, equal n-grams of all orders are adjacent, since a shorter n-gram is
    a prefix of the key.
    """
    pairs = len(lengths) // 2
    if not len(symbols):
        return np.zeros((pairs, order), dtype=np.int64)
    # Numbers from 1 without gaps.
    used = np.zeros(int(symbols.max()) + 1, dtype=np.int64)
    used[symbols] = 1
    symbols = np.cumsum(used)[symbols]
    bits = int(symbols.max()).bit_length()
    if (pairs - 1).bit_length() + order * bits > WIDTH:
        return _in_halves(symbols, lengths, order) if pairs > 1 else _one_pair(symbols, int(lengths[0]), order)
    keys = _keys(symbols, lengths, order, bits)
    shared = np.zeros((pairs, order), dtype=np.int64)
    for n in range(1, order + 1):
        grams = keys >> (1 + bits * (order - n))
        starts = np.concatenate([[0], np.flatnonzero(grams[1:] != grams[:-1]) + 1])
        in_reference = np.add.reduceat(keys & 1, starts)
        smaller = np.minimum(in_reference, np.diff(starts, append=len(keys)) - in_reference)
        # A key whose last symbol is 0 lies too near the end of its sequence for an n-gram.
        smaller[grams[starts] & ((1 << bits) - 1) == 0] = 0
        shared[:, n - 1] = np.bincount(grams[starts] >> (bits * n), weights=smaller, minlength=pairs)
    return shared


def _keys(symbols: Codes, lengths: Codes, order: int, bits: int) -> Codes:
    """Sorted keys: the pair, the next ``order`` symbols (0 behind the end), and whether it is the reference."""
    pairs = len(lengths) // 2
    owner = np.repeat(np.arange(len(lengths)), lengths)
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(symbols))
    keys: Codes = owner % pairs
    behind = np.concatenate([symbols, np.zeros(order, dtype=np.int64)])
    for n in range(order):
        keys = keys << bits | np.where(left > n, behind[n : n + len(symbols)], 0)
    keys = keys << 1 | (owner >= pairs)
    keys.sort()
    return keys


def _in_halves(symbols: Codes, lengths: Codes, order: int) -> Codes:
    """Splits pairs whose keys would be too long."""
    pairs = len(lengths) // 2
    first = np.arange(len(lengths)) % pairs < pairs // 2
    return np.vstack([matches(symbols[np.repeat(half, lengths)], lengths[half], order) for half in (first, ~first)])


def _one_pair(symbols: Codes, length: int, order: int) -> Codes:
    """Counts a single pair whose keys would be too long."""
    sides = symbols[:length].tolist(), symbols[length:].tolist()
    shared = []
    for n in range(1, order + 1):
        ours, theirs = (Counter(zip(*(side[start:] for start in range(n)), strict=False)) for side in sides)
        shared.append((ours & theirs).total())
    return np.array([shared])


class NgramMetric:
    """Base of corpus scores of summed counts, by sacrebleu's formula, on the scale 0 to 1."""

    places = 6
    reads = ("reference",)
    higher_is_better = True
    share = True

    def scores(self, statistics: Array) -> Array:
        """The score of each text: the last of its row, never summed."""
        result: Array = statistics[:, -1]
        return result


class Bleu(LanguageMetric, NgramMetric):
    """Corpus BLEU-4 (Papineni et al. 2002), tokenised as 13a, exponential smoothing. A single text counts only the orders that fit (``eff``
    in the signature).

    Outside English each character of a script without spaces is a token, as in sacrebleu's ``zh``.
    """

    name = "BLEU-4"
    order = 4
    form = signature_line(nrefs=1, case="mixed", eff="no,sentence:yes", tok="{}", smooth="exp", scale="0-1", version=sacrebleu.__version__)
    tokens = ("13a", "13a,unspaced-by-character")

    def statistics(self, segments: Segments) -> Array:
        """Rows of 11: length, reference length, the 4 matches and the 4 totals of n-grams; last the sentence's own BLEU."""
        numbers = _Numbers()
        texts = (spaced(text, self.language) for text in (*segments.texts, *segments.references))
        codes = [[number for word in _words(text) for number in numbers[word]] for text in texts]
        lengths = np.array([len(code) for code in codes], dtype=np.int64)
        shared = matches(np.array(list(chain.from_iterable(codes)), dtype=np.int64), lengths, self.order)
        both = lengths.reshape(2, -1).T
        counts = np.hstack([both, shared, np.maximum(both[:, :1] - np.arange(self.order), 0)])
        return np.column_stack([counts, _bleu(counts, sentence=True)])

    def aggregate(self, sums: Array) -> Array:
        """Corpus BLEU of summed counts."""
        # A resampled sum that lies half-way is a hair above or below on another machine: without the hair both take the even one.
        return _bleu(np.rint(np.round(sums[:, :-1], PLACES)).astype(np.int64), sentence=False)


class ChrF(NgramMetric):
    """Corpus chrF2 (Popović 2015): character n-grams up to 6, no word n-grams, white space left out."""

    name = "chrF"
    order = 6
    signature = signature_line(
        nrefs=1, case="mixed", eff="yes", nc=order, nw=0, space="no", beta=2, scale="0-1", version=sacrebleu.__version__
    )

    def statistics(self, segments: Segments) -> Array:
        """Rows of 19: by order the n-grams of the text, of the reference, in common; last the text's own chrF."""
        lines = ["".join(text.split()) for text in (*segments.texts, *segments.references)]
        lengths = np.array([len(line) for line in lines], dtype=np.int64)
        # surrogatepass: a lone surrogate is a character like any other here.
        points = np.frombuffer("".join(lines).encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.int64)
        totals = np.maximum(lengths.reshape(2, -1).T[:, None, :] - np.arange(self.order)[:, None], 0)
        # As in sacrebleu, a text's n-grams do not count where the reference has none.
        totals[:, :, 0] *= totals[:, :, 1] > 0
        counts = np.dstack([totals, matches(points, lengths, self.order)]).reshape(-1, 3 * self.order)
        return np.column_stack([counts, self.aggregate(counts)])

    def aggregate(self, sums: Array | Codes) -> Array:
        """Corpus chrF of summed counts, for all rows at once, in sacrebleu's order of steps, so with bit-identical floats."""
        totals = sums[:, : 3 * self.order].reshape(len(sums), self.order, 3)[:, :, :2].astype(np.float64)
        parts = np.divide(sums[:, 2 : 3 * self.order : 3, None], totals, out=np.full(totals.shape, 1e-16), where=totals > 0)
        counted = np.all(totals > 0, axis=2)
        orders = np.maximum(counted.sum(axis=1), 1)
        means = np.zeros((len(sums), 2))
        for order in range(self.order):  # one after the other: a sum over an axis may add in another order
            means += np.where(counted[:, order, None], parts[:, order], 0.0)
        precision, recall = (means / orders[:, None]).T
        below = 4 * precision + recall  # beta is 2
        result = np.divide(5 * precision * recall, below, out=np.zeros(len(sums)), where=below > 0)
        return np.asarray(100 * result / 100, dtype=np.float64)


class _Numbers(dict[str, list[int]]):
    """The tokens of words as integers; each word is tokenised once."""

    def __init__(self) -> None:
        self._tokens: dict[str, int] = {}

    def __missing__(self, word: str) -> list[int]:
        self[word] = [self._tokens.setdefault(token, len(self._tokens)) for token in TOKENIZER(word.rstrip()).split()]
        return self[word]


def _words(text: str) -> list[str]:
    """Pieces that can be tokenised alone: 13a's rules cross no white space but line ends."""
    return [text] if "\n" in text else text.split()


def _bleu(counts: Codes, sentence: bool) -> Array:
    """sacrebleu's floats. If all orders match, as in nearly every resample, they are computed without its objects and strings."""
    order = Bleu.order
    full = (np.delete(counts, np.s_[2 : 2 + order], axis=1) > 0).all(axis=1) & counts[:, 2 : 2 + order].any(axis=1)
    result = np.zeros(len(counts), dtype=np.float64)
    result[~full] = [_score(row, sentence) for row in counts[~full].tolist()]
    long, reference, shared, totals = np.split(counts[full], (1, 2, 2 + order), axis=1)
    # Orders without a match count as a half, a quarter … of one (Chen and Cherry 2014, method 3).
    halved = 2.0 ** np.cumsum(shared == 0, axis=1)
    precisions = np.where(shared == 0, 100.0 / (halved * totals), 100.0 * shared / totals)
    # The logarithms of numpy differ in the last place from machine to machine.
    means = [sum(map(math.log, row)) / order for row in precisions.tolist()]
    short = np.minimum(1 - reference / long, 0.0)[:, 0].tolist()
    result[full] = [math.exp(penalty) * math.exp(mean) / 100 for penalty, mean in zip(short, means, strict=True)]
    return result


def _score(row: list[int], sentence: bool) -> float:
    counts, totals = row[2 : 2 + Bleu.order], row[2 + Bleu.order :]
    return float(BLEU.compute_bleu(counts, totals, row[0], row[1], smooth_method="exp", effective_order=sentence).score) / 100


class Dist:
    """Distinct n-grams / all n-grams (Li et al. 2016), lower-cased, split at white space, over equally many words of each variant.

    Dist falls as a corpus grows, so all variants are measured on as many words: whole dialogues in a seeded order, joined and cut. The
    error is a jackknife over dialogues, with the same number of words of the others.
    """

    BUDGET = 20_000

    def __init__(self, order: int, budget: int = BUDGET, language: str = ENGLISH) -> None:
        """``language`` is the code of the texts' language: in another than English, characters of scripts without spaces are words."""
        self.order, self.language = order, language
        self.name = f"Dist-{order}"
        self.budget = budget
        tokens = "whitespace" if language == ENGLISH else "whitespace,unspaced-by-character"
        self.signature = signature_line(n=order, case="lower", tok=tokens, words_at_most=budget, interval="jackknife,normal", version=2)

    def measure(self, variants: Mapping[str, Sequence[str]], dialogues: Sequence[str], seed: int) -> tuple[dict[str, Array], int]:
        """By variant the value with all dialogues, then without each: shape (1 + dialogues,); and the number of words."""
        variants = {name: [spaced(text, self.language) for text in texts] for name, texts in variants.items()}
        order = sorted(dict.fromkeys(dialogues))
        derived_random(seed, "dist").shuffle(order)
        used, budget = self._fitting(_lengths(variants, dialogues, order))
        coded = _coded(variants, dialogues, order[:used])
        values = {}
        for name, parts in coded.items():
            grams = _grams(parts, self.order)
            left = [_distinct(parts, grams, budget, self.order)]
            for index in range(used if used > 1 else 0):
                words, of_them = ([*sequence[:index], *sequence[index + 1 :]] for sequence in (parts, grams))
                left.append(_distinct(words, of_them, budget, self.order))
            values[name] = np.array(left)
        return values, budget

    def _fitting(self, lengths: Words) -> tuple[int, int]:
        """The number of dialogues, and of words that remain without any one of them."""
        enough = np.cumsum(lengths, axis=1) - np.maximum.accumulate(lengths, axis=1)
        room = enough.min(axis=0)
        used = int(np.argmax(room >= self.budget)) + 1 if (room >= self.budget).any() else lengths.shape[1]
        return used, int(min(self.budget, room[used - 1])) if used > 1 else int(lengths.sum(axis=1).min())


def _lengths(variants: Mapping[str, Sequence[str]], dialogues: Sequence[str], order: Sequence[str]) -> Words:
    """The number of words by variant and dialogue."""
    numbers = {dialogue: number for number, dialogue in enumerate(order)}
    at = [numbers[dialogue] for dialogue in dialogues]
    counted = [np.bincount(at, [len(text.split()) for text in texts], len(order)) for texts in variants.values()]
    return np.array(counted).astype(np.int64)


def _coded(variants: Mapping[str, Sequence[str]], dialogues: Sequence[str], used: Sequence[str]) -> dict[str, list[Words]]:
    """The words of some dialogues as integers."""
    numbers: dict[str, int] = {}
    coded = {}
    for name, texts in variants.items():
        words: dict[str, list[int]] = {dialogue: [] for dialogue in used}
        for dialogue, text in zip(dialogues, texts, strict=True):
            if dialogue in words:
                # A text ends with a mark of its own, so that no n-gram reaches over its end.
                words[dialogue] += [numbers.setdefault(word, len(numbers)) for word in text.lower().split()] + [-1]
        coded[name] = [np.array(code, dtype=np.int64) for code in words.values()]
    return coded


def _grams(parts: Sequence[Words], order: int) -> list[Words]:
    """The n-gram beginning at each word as an integer; -1 where the text ends within it."""
    words = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    whole, grams = np.ones(len(words), dtype=bool), np.zeros(len(words), dtype=np.int64)
    base = int(words.max(initial=0)) + 2
    for shift in range(order):
        part = np.append(words[shift:], np.full(min(shift, len(words)), -1))
        whole &= part >= 0
        # Numbers of n-grams are made small again at each step, so that none overflows.
        grams = np.unique(grams * base + part, return_inverse=True)[1]
    return np.split(np.where(whole, grams, -1), np.cumsum([len(part) for part in parts])[:-1]) if parts else []


def _distinct(parts: Sequence[Words], grams: Sequence[Words], budget: int, order: int) -> float:
    """The share of distinct n-grams among the first words; 0 if no text is long enough."""
    words = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    # Marks between texts are no words.
    many = min(len(words), int(np.searchsorted(np.cumsum(words >= 0), budget)) + 1)
    used = np.concatenate(grams)[: max(many - order + 1, 0)] if parts else words
    whole = used[used >= 0]
    return np.count_nonzero(np.bincount(whole)) / len(whole) if len(whole) else 0.0


WORDS = 2**16
NO_SYNONYMS = SimpleNamespace(synsets=lambda word: ())


@cache
def _nltk() -> SimpleNamespace:
    """What METEOR takes of nltk, loaded with the metric; stems and synonyms are looked up once each."""
    # nltk's classifiers and tests of association, which nothing here is made of.
    with without("scipy", "scipy.stats", "sklearn"):
        from nltk.corpus import wordnet
        from nltk.stem.porter import PorterStemmer
        from nltk.tokenize import wordpunct_tokenize
        from nltk.translate.meteor_score import single_meteor_score
    stemmer = SimpleNamespace(stem=lru_cache(WORDS)(PorterStemmer().stem))
    synonyms = SimpleNamespace(synsets=lru_cache(WORDS)(lambda word: wordnet.synsets(word)))
    return SimpleNamespace(
        score=single_meteor_score, tokenize=wordpunct_tokenize, wordnet=wordnet, stemmer=stemmer, synonyms={"wordnet": synonyms}
    )


class Meteor(MeanMetric):
    """Mean METEOR (Lavie and Agarwal 2007) as nltk computes it: exact words, then stems, then synonyms where asked for."""

    name = "METEOR"
    share = True

    def __init__(self, synonyms: str = "none") -> None:
        """``synonyms`` is ``none`` or ``wordnet``.

        Raises:
            InputError: if WordNet is asked for and not installed.
        """
        _nltk()  # before worker processes are forked
        self._synonyms = synonyms
        names = f"wordnet-{wordnet_version()}" if synonyms == "wordnet" else "none"
        self.signature = signature_line(
            alpha=0.9, beta=3, gamma=0.5, case="lower", tok="wordpunct", stem="porter", synonyms=names, version=metadata.version("nltk")
        )

    def score(self, text: str, reference: str) -> float:
        """METEOR in [0, 1]."""
        words = _nltk().synonyms.get(self._synonyms, NO_SYNONYMS)
        return float(_nltk().score(_tokens(reference), _tokens(text), preprocess=str, stemmer=_nltk().stemmer, wordnet=words))


def _tokens(text: str) -> list[str]:
    """nltk's wordpunct tokens in lower case. No token crosses white space, so each word is tokenised once."""
    return [token for word in text.split() for token in _word(word)]


@lru_cache(WORDS)
def _word(text: str) -> tuple[str, ...]:
    return tuple(token.lower() for token in _nltk().tokenize(text))


@cache
def wordnet_version() -> str:
    """The version of the WordNet that nltk finds.

    Raises:
        InputError: if there is none.
    """
    try:
        return str(_nltk().wordnet.get_version())
    except LookupError as error:
        fix = 'python -m nltk.downloader wordnet, or write "synonyms: none"'
        what = '"wordnet" needs WordNet, which is in no folder of nltk.data.path'
        raise input_error("report: meteor: synonyms", what, fix) from error
