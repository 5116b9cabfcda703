"""ROUGE-L."""

from __future__ import annotations

from empathy_eval.base.hashing import signature_line
from empathy_eval.base.text import ENGLISH, UNICODE_WORDS, overlap
from empathy_eval.metrics.protocol import MeanMetric


def _signature(tokens: str) -> str:
    return signature_line(measure="f1", level="sentence", stemmer="no", tok=tokens)


class RougeL(MeanMetric):
    """Mean sentence-level ROUGE-L F1 (Lin 2004), with the values of rouge-score; in another language than English by words."""

    name = "ROUGE-L"
    signature = _signature("rouge-score")
    share = True

    def __init__(self, language: str = ENGLISH) -> None:
        """``language`` is the code of the texts' language."""
        self.language = language
        if language != ENGLISH:
            self.signature = _signature(UNICODE_WORDS)

    def score(self, text: str, reference: str) -> float:
        """F1 in [0, 1]."""
        return overlap(reference, text, self.language)
