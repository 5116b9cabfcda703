"""VADER sentiment: the compound score, the positive share, and Sentlink, which compares a reply's sentiment with the seeker's."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from itertools import dropwhile
from typing import Any

from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from empathy_eval.base.hashing import signature_line
from empathy_eval.metrics.protocol import Context, MeanMetric, last_turns

NEGATIVE, NEUTRAL, POSITIVE = "negative", "neutral", "positive"
# Compound scores beyond these are negative or positive; these themselves are neutral.
BOUND = 0.1
# What VADER alone leaves open.
OPEN = 0.5
# (query, reply): the score.
CELLS = {
    (NEGATIVE, NEGATIVE): OPEN, (NEGATIVE, NEUTRAL): OPEN, (NEGATIVE, POSITIVE): 1.0,
    (NEUTRAL, NEGATIVE): 0.0, (NEUTRAL, NEUTRAL): OPEN, (NEUTRAL, POSITIVE): 1.0,
    (POSITIVE, NEGATIVE): 0.0, (POSITIVE, NEUTRAL): OPEN, (POSITIVE, POSITIVE): 1.0,
}  # fmt: skip


class Vader(MeanMetric):
    """Mean compound sentiment in [-1, 1] (Hutto and Gilbert 2014); reads the text alone."""

    name = "VADER"
    reads = ()
    share = True
    part = "compound"
    signature = signature_line(score=part, level="text", version=metadata.version("vaderSentiment"))

    def score(self, text: str) -> float:
        """This part of the polarity."""
        return float(_analyzer().polarity_scores(text)[self.part])


class PositiveShare(Vader):
    """Mean positive share of a text by VADER, in [0, 1]; reads the text alone."""

    name = "VADER positive share"
    part = "pos"
    signature = signature_line(score=part, level="text", version=metadata.version("vaderSentiment"))


def lexicon() -> dict[str, float]:
    """VADER's lexicon: words with their valence."""
    words: dict[str, float] = _analyzer().lexicon
    return words


@cache
def _analyzer() -> Any:
    return SentimentIntensityAnalyzer()


class Sentlink(MeanMetric):
    """The sentiment part of "Performance Evaluation Metrics for Empathetic LLMs" (Hong, Ku and Ko 2025), in {0, 0.5, 1}; English only.

    Query and reply are each negative, neutral or positive by VADER's compound score, cut at -0.1 and 0.1: nine cells. The paper gives a
    positive reply 1. A neutral reply is decided by an emotion classifier, a negative reply to a negative query by a BART model; its
    sections disagree whether that model also decides other negative replies, and other replies to a negative query. Here VADER decides
    alone: cells of another model are 0.5, and a negative reply to a query that is not negative is 0. The paper does not define the query of
    several turns either: here it is all seeker text since the helper spoke.
    """

    name = "Sentlink"
    reads = ("context",)
    share = True
    signature = signature_line(query="seeker-since-helper", bound=BOUND, open=OPEN, vader=Vader.signature.rpartition(":")[2], version=1)

    def score(self, text: str, context: Context) -> float:
        """The score of the cell."""
        compound = Vader().score
        return CELLS[sentiment(compound(query(context))), sentiment(compound(text))]


def query(context: Context) -> str:
    """The seeker's last messages, after a helper or from the start; empty if no seeker spoke."""
    return " ".join(last_turns(list(dropwhile(lambda turn: turn["role"] != "seeker", reversed(context)))[::-1]))


def sentiment(compound: float) -> str:
    """The class of a compound score."""
    if compound < -BOUND:
        return NEGATIVE
    return POSITIVE if compound > BOUND else NEUTRAL
