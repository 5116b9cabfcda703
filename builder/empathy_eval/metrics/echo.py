"""How much of a reply the seeker has said before."""

from __future__ import annotations

from empathy_eval.base.hashing import signature_line
from empathy_eval.base.text import ENGLISH, UNICODE_WORDS, words
from empathy_eval.metrics.protocol import Context, MeanMetric


def _signature(tokens: str) -> str:
    return signature_line(share="words-of-the-reply-that-the-seeker-said-before", tok=tokens, version=1)


class Echo(MeanMetric):
    """Mean share of a reply's words that the seeker's turns before it have, in [0, 1]: no measure of quality, a shortcut."""

    name = "echo"
    reads = ("context",)
    higher_is_better = None
    signature = _signature("empathy-eval")

    def __init__(self, language: str = ENGLISH) -> None:
        """``language`` is the code of the texts' language."""
        self.language = language
        if language != ENGLISH:
            self.signature = _signature(UNICODE_WORDS)

    def score(self, text: str, context: Context) -> float:
        """The share; 0 for a text without words."""
        said = {word for turn in context if turn["role"] == "seeker" for word in words(turn["text"], self.language)}
        own = words(text, self.language)
        return sum(word in said for word in own) / len(own) if own else 0.0
