"""The length of a text."""

from __future__ import annotations

from empathy_eval.base.hashing import signature_line
from empathy_eval.base.text import WORD
from empathy_eval.metrics.protocol import MeanMetric


class Length(MeanMetric):
    """Mean number of words: no measure of quality, shown because others follow it."""

    name = "length"
    reads = ()
    higher_is_better = None
    signature = signature_line(unit="word", tok="empathy-eval")

    def score(self, text: str) -> float:
        """The number of words."""
        return sum(1 for _ in WORD.finditer(text))
