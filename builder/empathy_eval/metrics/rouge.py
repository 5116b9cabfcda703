"""ROUGE-L."""

from __future__ import annotations

from empathy_eval.base.hashing import signature_line
from empathy_eval.base.text import overlap
from empathy_eval.metrics.protocol import MeanMetric


class RougeL(MeanMetric):
    """Mean sentence-level ROUGE-L F1 (Lin 2004), with the values of the rouge-score package."""

    name = "ROUGE-L"
    signature = signature_line(measure="f1", level="sentence", stemmer="no", tok="rouge-score")
    share = True

    def score(self, text: str, reference: str) -> float:
        """F1 in [0, 1]."""
        return overlap(reference, text)
