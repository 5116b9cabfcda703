"""How far a text was edited from its reference."""

from __future__ import annotations

from empathy_eval.base.hashing import signature_line
from empathy_eval.base.text import edit_ratio
from empathy_eval.metrics.protocol import MeanMetric


class EditRatio(MeanMetric):
    """Mean word-level Levenshtein distance over the words of the longer text: no measure of quality, but what closeness is."""

    name = "edit ratio"
    higher_is_better = None
    share = True
    signature = signature_line(unit="word", over="longer", tok="empathy-eval")

    def score(self, text: str, reference: str) -> float:
        """The edit ratio, 0 to 1."""
        return edit_ratio(reference, text)
