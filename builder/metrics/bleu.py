"""BLEU-4 by sacrebleu."""

from __future__ import annotations

import numpy as np
import sacrebleu
from sacrebleu.metrics.bleu import BLEU

from builder.metrics.protocol import Array, Segments
from builder.signature import signature_line

ORDER = 4


class Bleu:
    """Corpus BLEU-4 on the scale 0 to 1 (Papineni et al. 2002), tokenised as 13a, exponential smoothing."""

    name = "BLEU-4"
    places = 6
    reads = ("reference",)
    higher_is_better = True
    share = True

    def __init__(self) -> None:
        self._bleu = BLEU(effective_order=True)
        self.signature = signature_line(
            nrefs=1, case="mixed", eff="no,sentence:yes", tok="13a", smooth="exp", scale="0-1", version=sacrebleu.__version__
        )

    def statistics(self, segments: Segments) -> Array:
        """Rows of 11: length, reference length, the 4 matches and the 4 totals of n-grams; last the sentence's own BLEU, never summed."""
        rows = []
        for text, reference in zip(segments.texts, segments.references, strict=True):
            score = self._bleu.sentence_score(text, [reference])
            rows.append([score.sys_len, score.ref_len, *score.counts, *score.totals, score.score / 100])
        return np.asarray(rows, dtype=np.float64).reshape(len(rows), 3 + 2 * ORDER)

    def aggregate(self, sums: Array) -> Array:
        """Corpus BLEU of summed counts, by sacrebleu's own formula."""
        return np.asarray([self._corpus([int(value) for value in row]) for row in np.rint(sums[:, : 2 + 2 * ORDER])])

    def scores(self, statistics: Array) -> Array:
        """Sentence BLEU, which counts only the orders that a text is long enough for (``eff`` in the signature)."""
        result: Array = statistics[:, -1]
        return result

    @staticmethod
    def _corpus(row: list[int]) -> float:
        counts, totals = row[2 : 2 + ORDER], row[2 + ORDER :]
        score = BLEU.compute_bleu(counts, totals, row[0], row[1], smooth_method="exp", effective_order=False)
        return float(score.score) / 100
