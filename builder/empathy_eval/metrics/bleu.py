"""BLEU-4 by sacrebleu."""

from __future__ import annotations

import math
from itertools import chain

import numpy as np
import sacrebleu
from sacrebleu.metrics.bleu import BLEU

from empathy_eval.base.hashing import signature_line
from empathy_eval.base.text import ENGLISH, spaced
from empathy_eval.metrics.ngrams import Codes, matches
from empathy_eval.metrics.protocol import Array, Segments

ORDER = 4
COUNTS = 2 + 2 * ORDER
# Decimals of a resampled sum of counts that are kept.
PLACES = 6
TOKENIZER = BLEU().tokenizer


def _signature(tokens: str) -> str:
    return signature_line(
        nrefs=1, case="mixed", eff="no,sentence:yes", tok=tokens, smooth="exp", scale="0-1", version=sacrebleu.__version__
    )


class Bleu:
    """Corpus BLEU-4 on the scale 0 to 1 (Papineni et al. 2002), tokenised as 13a, exponential smoothing.

    In another language than English each character of a script without spaces is a token, as sacrebleu's ``zh`` has it.
    """

    name = "BLEU-4"
    places = 6
    reads = ("reference",)
    higher_is_better = True
    share = True
    signature = _signature("13a")

    def __init__(self, language: str = ENGLISH) -> None:
        """``language`` is the code of the texts' language."""
        self.language = language
        if language != ENGLISH:
            self.signature = _signature("13a,unspaced-by-character")

    def statistics(self, segments: Segments) -> Array:
        """Rows of 11: length, reference length, the 4 matches and the 4 totals of n-grams; last the sentence's own BLEU, never summed."""
        numbers = _Numbers()
        texts = (spaced(text, self.language) for text in (*segments.texts, *segments.references))
        codes = [[number for word in _words(text) for number in numbers[word]] for text in texts]
        lengths = np.array([len(one) for one in codes], dtype=np.int64)
        shared = matches(np.array(list(chain.from_iterable(codes)), dtype=np.int64), lengths, ORDER)
        both = lengths.reshape(2, -1).T
        counts = np.hstack([both, shared, np.maximum(both[:, :1] - np.arange(ORDER), 0)])
        return np.column_stack([counts, _formula(counts, sentence=True)])

    def aggregate(self, sums: Array) -> Array:
        """Corpus BLEU of summed counts, by sacrebleu's own formula."""
        # A resampled sum that lies half-way is a hair above or below on another machine: without the hair both take the even one.
        return _formula(np.rint(np.round(sums[:, :COUNTS], PLACES)).astype(np.int64), sentence=False)

    def scores(self, statistics: Array) -> Array:
        """Sentence BLEU, which counts only the orders that a text is long enough for (``eff`` in the signature)."""
        result: Array = statistics[:, -1]
        return result


class _Numbers(dict[str, list[int]]):
    """The tokens of words as numbers, each word tokenised once."""

    def __init__(self) -> None:
        self._tokens: dict[str, int] = {}

    def __missing__(self, word: str) -> list[int]:
        self[word] = [self._tokens.setdefault(token, len(self._tokens)) for token in TOKENIZER(word.rstrip()).split()]
        return self[word]


def _words(text: str) -> list[str]:
    """What can be tokenised by itself: the rules of 13a cross no white space but line ends."""
    return [text] if "\n" in text else text.split()


def _formula(counts: Codes, sentence: bool) -> Array:
    """sacrebleu's own floats. Where all orders are there, as in nearly every resample, without the objects and strings it makes of each."""
    full = (np.delete(counts, np.s_[2 : 2 + ORDER], axis=1) > 0).all(axis=1) & counts[:, 2 : 2 + ORDER].any(axis=1)
    found = np.zeros(len(counts), dtype=np.float64)
    found[~full] = [_score(row, sentence) for row in counts[~full].tolist()]
    long, reference, shared, totals = np.split(counts[full], (1, 2, 2 + ORDER), axis=1)
    # Orders without a match count as a half, a quarter … of one (Chen and Cherry 2014, method 3).
    halved = 2.0 ** np.cumsum(shared == 0, axis=1)
    precisions = np.where(shared == 0, 100.0 / (halved * totals), 100.0 * shared / totals)
    # The logarithms of numpy differ in the last place from machine to machine.
    means = [sum(map(math.log, row)) / ORDER for row in precisions.tolist()]
    short = np.minimum(1 - reference / long, 0.0)[:, 0].tolist()
    found[full] = [math.exp(penalty) * math.exp(mean) / 100 for penalty, mean in zip(short, means, strict=True)]
    return found


def _score(row: list[int], sentence: bool) -> float:
    counts, totals = row[2 : 2 + ORDER], row[2 + ORDER :]
    score = BLEU.compute_bleu(counts, totals, row[0], row[1], smooth_method="exp", effective_order=sentence)
    return float(score.score) / 100
