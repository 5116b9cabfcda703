"""VADER's compound score by vaderSentiment."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Any

from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from empathy_eval.base.hashing import signature_line
from empathy_eval.metrics.protocol import MeanMetric


class Vader(MeanMetric):
    """Mean compound sentiment in [-1, 1] (Hutto and Gilbert 2014); it reads the text alone."""

    name = "VADER"
    reads = ()
    share = True
    signature = signature_line(score="compound", level="text", version=metadata.version("vaderSentiment"))

    def score(self, text: str) -> float:
        """The compound score."""
        return float(_analyzer().polarity_scores(text)["compound"])


def lexicon() -> dict[str, float]:
    """The words of VADER's lexicon with their valence."""
    found: dict[str, float] = _analyzer().lexicon
    return found


@cache
def _analyzer() -> Any:
    return SentimentIntensityAnalyzer()
