"""ROUGE-L."""

from __future__ import annotations

from collections.abc import Sequence

from builder.metrics.protocol import Array, mean_of_scores, with_count
from builder.signature import signature_line
from builder.text import overlap


class RougeL:
    """Mean sentence-level ROUGE-L F1 (Lin 2004), with the values of the rouge-score package."""

    name = "ROUGE-L"
    places = 6
    signature = signature_line(measure="f1", level="sentence", stemmer="no", tok="rouge-score")

    def statistics(self, texts: Sequence[str], references: Sequence[str]) -> Array:
        """Rows (F1, 1)."""
        return with_count([overlap(reference, text) for text, reference in zip(texts, references, strict=True)])

    def aggregate(self, sums: Array) -> Array:
        """The mean over segments."""
        return mean_of_scores(sums)
