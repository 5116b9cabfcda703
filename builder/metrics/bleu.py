"""BLEU-4 by sacrebleu."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import sacrebleu
from sacrebleu.metrics.bleu import BLEU

from builder.metrics.ngrams import Codes, matches
from builder.metrics.protocol import Array, Segments
from builder.signature import signature_line

ORDER = 4
COUNTS = 2 + 2 * ORDER
TOKENIZER = BLEU().tokenizer


class Bleu:
    """Corpus BLEU-4 on the scale 0 to 1 (Papineni et al. 2002), tokenised as 13a, exponential smoothing."""

    name = "BLEU-4"
    places = 6
    reads = ("reference",)
    higher_is_better = True
    share = True
    signature = signature_line(
        nrefs=1, case="mixed", eff="no,sentence:yes", tok="13a", smooth="exp", scale="0-1", version=sacrebleu.__version__
    )

    def statistics(self, segments: Segments) -> Array:
        """Rows of 11: length, reference length, the 4 matches and the 4 totals of n-grams; last the sentence's own BLEU, never summed."""
        pairs = [_codes(tokens(text), tokens(reference)) for text, reference in zip(segments.texts, segments.references, strict=True)]
        ours, theirs = [one for one, _ in pairs], [other for _, other in pairs]
        lengths = np.array([(len(one), len(other)) for one, other in pairs], dtype=np.int64).reshape(-1, 2)
        totals = np.maximum(lengths[:, :1] - np.arange(ORDER), 0)
        counts = np.hstack([lengths, matches(ours, theirs, ORDER), totals])
        own = [_score(row, sentence=True) for row in counts.tolist()]
        return np.column_stack([counts, np.array(own, dtype=np.float64)])

    def aggregate(self, sums: Array) -> Array:
        """Corpus BLEU of summed counts, by sacrebleu's own formula."""
        return np.asarray([_score([int(value) for value in row], sentence=False) for row in np.rint(sums[:, :COUNTS])])

    def scores(self, statistics: Array) -> Array:
        """Sentence BLEU, which counts only the orders that a text is long enough for (``eff`` in the signature)."""
        result: Array = statistics[:, -1]
        return result


def tokens(text: str) -> list[str]:
    """The tokens of sacrebleu's 13a: each word is tokenised once, as its rules cross no white space but line ends."""
    if "\n" in text:
        return list(_word(text))
    return [token for word in text.split() for token in _word(word)]


@lru_cache(maxsize=2**16)
def _word(text: str) -> tuple[str, ...]:
    return tuple(TOKENIZER(text.rstrip()).split())


def _codes(text: Sequence[str], reference: Sequence[str]) -> tuple[Codes, Codes]:
    """The tokens as numbers from 1, the same token the same number."""
    numbers: dict[str, int] = {}
    return tuple(np.array([numbers.setdefault(token, len(numbers) + 1) for token in side], dtype=np.int64) for side in (text, reference))  # type: ignore[return-value]


def _score(row: list[int], sentence: bool) -> float:
    counts, totals = row[2 : 2 + ORDER], row[2 + ORDER :]
    score = BLEU.compute_bleu(counts, totals, row[0], row[1], smooth_method="exp", effective_order=sentence)
    return float(score.score) / 100
