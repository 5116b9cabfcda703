"""How much of a reply the seeker has said before."""

from __future__ import annotations

from empathy_eval.base.hashing import signature_line
from empathy_eval.base.text import words
from empathy_eval.metrics.protocol import Context, MeanMetric


class Echo(MeanMetric):
    """Mean share of a reply's words that the seeker's turns before it have, in [0, 1]: no measure of quality, a shortcut."""

    name = "echo"
    reads = ("context",)
    higher_is_better = None
    signature = signature_line(share="words-of-the-reply-that-the-seeker-said-before", tok="empathy-eval", version=1)

    def score(self, text: str, context: Context) -> float:
        """The share; 0 for a text without words."""
        said = {word for turn in context if turn["role"] == "seeker" for word in words(turn["text"])}
        own = words(text)
        return sum(word in said for word in own) / len(own) if own else 0.0
