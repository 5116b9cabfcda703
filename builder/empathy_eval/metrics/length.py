"""The length of a text."""

from __future__ import annotations

from empathy_eval.base.hashing import signature_line
from empathy_eval.base.text import ENGLISH, UNICODE_WORDS, WORD, words
from empathy_eval.metrics.protocol import MeanMetric


def _signature(tokens: str) -> str:
    return signature_line(unit="word", tok=tokens)


class Length(MeanMetric):
    """Mean number of words: no measure of quality, shown because others follow it."""

    name = "length"
    reads = ()
    higher_is_better = None
    signature = _signature("empathy-eval")

    def __init__(self, language: str = ENGLISH) -> None:
        """``language`` is the code of the texts' language."""
        self.language = language
        if language != ENGLISH:
            self.signature = _signature(UNICODE_WORDS)

    def score(self, text: str) -> float:
        """The number of words."""
        if self.language != ENGLISH:
            return len(words(text, self.language))
        return sum(1 for _ in WORD.finditer(text))
