"""ROUGE-L."""

from __future__ import annotations

from builder.metrics.protocol import MeanMetric
from builder.signature import signature_line
from builder.text import overlap


class RougeL(MeanMetric):
    """Mean sentence-level ROUGE-L F1 (Lin 2004), with the values of the rouge-score package."""

    name = "ROUGE-L"
    signature = signature_line(measure="f1", level="sentence", stemmer="no", tok="rouge-score")
    share = True

    def score(self, text: str, reference: str) -> float:
        """F1 in [0, 1]."""
        return overlap(reference, text)
