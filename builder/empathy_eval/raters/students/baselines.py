"""What a student has to beat: rows beside it on the stand, from words alone to VADER's share of positive words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from empathy_eval.base.hashing import signature_line
from empathy_eval.base.text import words
from empathy_eval.evaluation.closed_forms import ALPHA, UNIT, Sums, log_odds
from empathy_eval.metrics.empathy_score.features import sentences
from empathy_eval.metrics.empathy_score.word_lists import word_lists
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


class PositiveShare(MeanMetric):
    """The share of a reply's words that VADER's lexicon finds positive."""

    name, reads = "VADER, share of positive words", ()

    def __init__(self) -> None:
        self.signature = signature_line(share="words-with-positive-valence", lexicon=word_lists().vader[:15], tok="empathy-eval", version=1)

    def score(self, text: str) -> float:
        """The share; 0 for a text without words."""
        signs = word_lists().signs
        own = [signs.get(word, 0) > 0 for some, _ in sentences(text) for word in some]
        return sum(own) / max(1, len(own))


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
