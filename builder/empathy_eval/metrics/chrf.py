"""chrF by sacrebleu."""

from __future__ import annotations

import numpy as np
import sacrebleu
from sacrebleu.metrics.chrf import CHRF

from empathy_eval.base.hashing import signature_line
from empathy_eval.metrics.ngrams import Codes, matches
from empathy_eval.metrics.protocol import Array, Segments

ORDER = 6
LIBRARY = CHRF(char_order=ORDER, word_order=0, beta=2)


class ChrF:
    """Corpus chrF2 on the scale 0 to 1 (Popović 2015): character n-grams up to 6, no word n-grams, white space left out."""

    name = "chrF"
    places = 6
    reads = ("reference",)
    higher_is_better = True
    share = True
    signature = signature_line(
        nrefs=1, case="mixed", eff="yes", nc=ORDER, nw=0, space="no", beta=2, scale="0-1", version=sacrebleu.__version__
    )

    def statistics(self, segments: Segments) -> Array:
        """Rows of 19: by order the n-grams of the text, of the reference, in common; last the text's own chrF, never summed."""
        lines = ["".join(text.split()) for text in (*segments.texts, *segments.references)]
        lengths = np.array([len(line) for line in lines], dtype=np.int64)
        # surrogatepass: a lone surrogate is a character like any other here.
        points = np.frombuffer("".join(lines).encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.int64)
        totals = np.maximum(lengths.reshape(2, -1).T[:, None, :] - np.arange(ORDER)[:, None], 0)
        # As in sacrebleu, a text's n-grams do not count where the reference has none.
        totals[:, :, 0] *= totals[:, :, 1] > 0
        counts = np.dstack([totals, matches(points, lengths, ORDER)]).reshape(-1, 3 * ORDER)
        return np.column_stack([counts, _formula(counts)])

    def aggregate(self, sums: Array) -> Array:
        """Corpus chrF of summed counts, by sacrebleu's own formula."""
        return _formula(sums[:, : 3 * ORDER])

    def scores(self, statistics: Array) -> Array:
        """The chrF of each text."""
        result: Array = statistics[:, -1]
        return result


def _formula(counts: Array | Codes) -> Array:
    """sacrebleu's own steps in its own order, so to the last bit its own floats, for all rows at once."""
    totals, shared = counts.reshape(len(counts), ORDER, 3)[:, :, :2].astype(np.float64), counts[:, 2::3, None]
    parts = np.divide(shared, totals, out=np.full(totals.shape, 1e-16), where=totals > 0)
    counted = np.all(totals > 0, axis=2)
    orders = np.maximum(counted.sum(axis=1), 1)
    means = np.zeros((len(counts), 2))
    for order in range(ORDER):  # one after the other: a sum over an axis may add in another order
        means += np.where(counted[:, order, None], parts[:, order], 0.0)
    precision, recall = (means / orders[:, None]).T
    factor = LIBRARY.beta**2
    below = factor * precision + recall
    found = np.divide((1 + factor) * precision * recall, below, out=np.zeros(len(counts)), where=below > 0)
    return np.asarray(100 * found / 100, dtype=np.float64)
