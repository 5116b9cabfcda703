"""Measures on words: the edit ratio of near variants, the overlap of far ones, shingles for duplicates."""

from __future__ import annotations

import re
from functools import lru_cache

from rapidfuzz.distance import LCSseq, Levenshtein

WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
# The tokens of Google's rouge-score without a stemmer: ASCII letters and digits, lower-cased.
ROUGE_TOKEN = re.compile(r"[a-z0-9]+")


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.casefold() for word in WORD.findall(text))


@lru_cache(maxsize=512)
def words(text: str) -> tuple[str, ...]:
    """The words of a text, casefolded; an apostrophe or a hyphen inside a word belongs to it."""
    return _words(text)


def edit_ratio(a: str, b: str) -> float:
    """Word-level Levenshtein distance over the number of words of the longer text, in [0, 1].

    Two texts without words have the ratio 0.
    """
    first, second = words(a), words(b)
    longer = max(len(first), len(second))
    return Levenshtein.distance(first, second) / longer if longer else 0.0


def overlap(a: str, b: str) -> float:
    """ROUGE-L F1 of two texts as rouge-score computes it (Lin 2004, sentence level, no stemmer), in [0, 1]."""
    first, second = ROUGE_TOKEN.findall(a.lower()), ROUGE_TOKEN.findall(b.lower())
    common = LCSseq.similarity(first, second)
    return 2 * common / (len(first) + len(second)) if common else 0.0


def shingles(text: str, size: int = 5) -> frozenset[tuple[str, ...]]:
    """The set of runs of ``size`` words; a shorter text is one run of all its words."""
    # Whole dialogues come here, each once: thousands of them kept would fill memory.
    tokens = _words(text)
    return frozenset(tokens[i : i + size] for i in range(max(1, len(tokens) - size + 1)))
