"""How far a text was edited from its reference."""

from __future__ import annotations

from empathy_eval.base.hashing import signature_line
from empathy_eval.base.text import ENGLISH, UNICODE_WORDS, edit_ratio
from empathy_eval.metrics.protocol import MeanMetric


def _signature(tokens: str) -> str:
    return signature_line(unit="word", over="longer", tok=tokens)


class EditRatio(MeanMetric):
    """Mean word-level Levenshtein distance over the words of the longer text: no measure of quality, but what closeness is."""

    name = "edit ratio"
    higher_is_better = None
    share = True
    signature = _signature("empathy-eval")

    def __init__(self, language: str = ENGLISH) -> None:
        """``language`` is the code of the texts' language."""
        self.language = language
        if language != ENGLISH:
            self.signature = _signature(UNICODE_WORDS)

    def score(self, text: str, reference: str) -> float:
        """The edit ratio, 0 to 1."""
        return edit_ratio(reference, text, self.language)
