"""Word measures: edit ratio, overlap (ROUGE-L F1), and shingles for duplicates.

English has its own tokens; every other language uses Unicode words. Where a script writes no spaces, a character with its marks is a word.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache

from rapidfuzz.distance import LCSseq, Levenshtein

WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
# The tokens of Google's rouge-score without a stemmer: ASCII letters and digits, lower-cased.
ROUGE_TOKEN = re.compile(r"[a-z0-9]+")
ENGLISH = "en"
# How the signature of what counts words calls those of every other language.
UNICODE_WORDS = "unicode-words"
# Thai, Lao; Myanmar; Khmer; radicals of Han; kana; Han in all its blocks; Myanmar again; kana of half width; kana and Han beyond.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff"
    "\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9f\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
# The marks and the wide letters that stand among them.
BETWEEN = "\u3000-\u303f\uff00-\uffef"


@cache
def _marks() -> str:
    """Marks, which belong to the letter before them, and joiners, which stand inside words: Python's ``\\w`` matches neither."""
    marks = (character for character in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(character)[0] == "M")
    return "".join(marks) + "\u200c\u200d"


@cache
def unspaced() -> re.Pattern[str]:
    """Pattern of a character of a script without spaces, with its marks."""
    return re.compile(rf"[{UNSPACED}](?<=\w)[{_marks()}]*")


@cache
def _unicode_words() -> re.Pattern[str]:
    letters = rf"(?:[^\W_{UNSPACED}][{_marks()}]*)+"
    return re.compile(rf"{letters}(?:['’-]{letters})*|{unspaced().pattern}")


@cache
def _single() -> re.Pattern[str]:
    return re.compile(rf"{unspaced().pattern}|[{BETWEEN}]")


def tokens_of(language: str) -> str:
    """The name of a language's tokens in signatures."""
    return "empathy-eval" if language == ENGLISH else UNICODE_WORDS


def _words(text: str, language: str) -> tuple[str, ...]:
    if language == ENGLISH:
        return tuple(word.casefold() for word in WORD.findall(text))
    return tuple(_unicode_words().findall(unicodedata.normalize("NFC", text.casefold())))


@lru_cache(maxsize=512)
def words(text: str, language: str = ENGLISH) -> tuple[str, ...]:
    """The words of a text, casefolded; an apostrophe or a hyphen inside a word belongs to it."""
    return _words(text, language)


def spaced(text: str, language: str = ENGLISH) -> str:
    """The text with spaces round characters of scripts without spaces, for splitting at white space; English is unchanged."""
    return text if language == ENGLISH else _single().sub(r" \g<0> ", text)


def joined(pieces: Sequence[str], language: str = ENGLISH) -> str:
    """Joins pieces that :func:`spaced` and white space split, as their script writes them."""
    text = " ".join(pieces)
    if language == ENGLISH:
        return text
    return re.sub(rf" (?=[{BETWEEN}])|(?<=[{UNSPACED}{BETWEEN}{_marks()}]) (?=[{UNSPACED}])", "", text)


def edit_ratio(a: str, b: str, language: str = ENGLISH) -> float:
    """Word-level Levenshtein distance / words of the longer text, in [0, 1]; 0 for two texts without words."""
    first, second = words(a, language), words(b, language)
    longer = max(len(first), len(second))
    return Levenshtein.distance(first, second) / longer if longer else 0.0


def overlap(a: str, b: str, language: str = ENGLISH) -> float:
    """ROUGE-L F1 of two texts as in rouge-score (Lin 2004, sentence level, no stemmer), in [0, 1].

    That package knows ASCII alone, so other languages are compared by their words.
    """
    first, second = (ROUGE_TOKEN.findall(text.lower()) if language == ENGLISH else words(text, language) for text in (a, b))
    common = LCSseq.similarity(first, second)
    return 2 * common / (len(first) + len(second)) if common else 0.0


def shingles(text: str, size: int = 5, language: str = ENGLISH) -> frozenset[tuple[str, ...]]:
    """The set of runs of ``size`` words; a shorter text is one run of all its words."""
    # Whole dialogues come here, each once: thousands of them kept would fill memory.
    tokens = _words(text, language)
    return frozenset(tokens[i : i + size] for i in range(max(1, len(tokens) - size + 1)))


def percent(value: float, places: int = 1) -> str:
    """A share in percent."""
    return f"{100 * value:.{places}f}\N{NO-BREAK SPACE}%"


def counted(count: int, singular: str, plural: str = "") -> str:
    """``1 pair``, ``2,000 pairs``."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def listed(parts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
