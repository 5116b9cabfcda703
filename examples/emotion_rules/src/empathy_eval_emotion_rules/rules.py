"""The 36 cases: what the sentiments and emotions of a query and its reply decide, and where the likelihood of the reply does."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from itertools import product
from typing import NamedTuple

from empathy_eval.base.hashing import digest_bytes

NEGATIVE, NEUTRAL, POSITIVE = "negative", "neutral", "positive"
SENTIMENTS = (NEGATIVE, NEUTRAL, POSITIVE)
# Of VADER's compound score: farther from 0 than this is a sentiment.
EDGE = 0.1
LIKELIHOOD = "likelihood"
TABLE = "cases.csv"


class Case(NamedTuple):
    """What the rules know of a query and its reply."""

    query_sentiment: str
    query_emotional: bool
    reply_sentiment: str
    reply_emotional: bool


def sentiment(compound: float) -> str:
    """The class of a compound score of VADER in [-1, 1]: a score of exactly 0.1 or -0.1 is neutral."""
    return NEGATIVE if compound < -EDGE else POSITIVE if compound > EDGE else NEUTRAL


@cache
def cases() -> dict[Case, str]:
    """By case ``0``, ``1`` or ``likelihood``, from the table ``cases.csv``."""
    flag = {"yes": True, "no": False}
    return {
        Case(row["query_sentiment"], flag[row["query_emotional"]], row["reply_sentiment"], flag[row["reply_emotional"]]): row["score"]
        for row in csv.DictReader(_text().splitlines())
    }


def asks_for_emotions(query_sentiment: str, reply_sentiment: str) -> bool:
    """Whether the four cases of two sentiments differ, so that emotions have to be known."""
    flags = product((True, False), repeat=2)
    return len({cases()[Case(query_sentiment, query, reply_sentiment, reply)] for query, reply in flags}) > 1


def table_hash() -> str:
    """The first 12 digits of the SHA-256 of the table, for the signature."""
    return digest_bytes(_text().encode())[:12]


def _text() -> str:
    return files(__package__).joinpath(TABLE).read_text(encoding="utf-8")
