"""What a student has to beat: rows beside it on the stand, what words alone learn, and the length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.base.text import words
from empathy_eval.evaluation.closed_forms import ALPHA, UNIT, Sums, log_odds
from empathy_eval.metrics.length import Length
from empathy_eval.metrics.protocol import MeanMetric
from empathy_eval.raters.students.contrasts import Batch


class Longer(MeanMetric):
    """The number of words, of which more is held to be kind."""

    name, reads = "length", ()
    signature = f"{Length.signature}|right:more-is-kind"

    def score(self, text: str) -> float:
        """The number of words."""
        return float(len(words(text)))


class WordsAlone(MeanMetric):
    """The sum of what each word weighs: the log odds of its counts in winners over those in losers, as the shortcut audit has them."""

    reads = ()

    def __init__(self, name: str, weights: Mapping[str, int], settings: Mapping[str, Any]) -> None:
        self.name, self._weights = name, weights
        self.signature = signature_line(counts="words,empathy-eval,casefolded", form=f"log-odds,alpha={ALPHA}", **settings)

    @classmethod
    def of(cls, name: str, batches: Iterable[Batch], **settings: object) -> WordsAlone:
        """Learned from these pairs."""
        kind, cold, pairs = Counter[str](), Counter[str](), 0
        for batch in batches:
            pairs += len(batch.ids)
            for counts, side in ((kind, batch.winners), (cold, batch.losers)):
                for text in side.texts:
                    counts.update(words(text))
        known = sorted({*kind, *cold})
        one, other = (np.array([counts[word] for word in known], dtype=np.int64) for counts in (kind, cold))
        weights = log_odds(Sums(one, other, np.zeros(0, dtype=np.int64), pairs))
        return cls(name, dict(zip(known, weights.tolist(), strict=True)), settings)

    def score(self, text: str) -> float:
        """The sum over its words; one that was not seen weighs nothing."""
        return sum(self._weights.get(word, 0) for word in words(text)) / UNIT
