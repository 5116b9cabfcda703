"""The length of a text."""

from __future__ import annotations

from empathy_eval.base.hashing import signature_line
from empathy_eval.base.text import ENGLISH, UNICODE_WORDS, WORD, edit_ratio, words
from empathy_eval.metrics.protocol import Context, MeanMetric


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


def _edit_signature(tokens: str) -> str:
    return signature_line(unit="word", over="longer", tok=tokens)


class EditRatio(MeanMetric):
    """Mean word-level Levenshtein distance over the words of the longer text: no measure of quality, but what closeness is."""

    name = "edit ratio"
    higher_is_better = None
    share = True
    signature = _edit_signature("empathy-eval")

    def __init__(self, language: str = ENGLISH) -> None:
        """``language`` is the code of the texts' language."""
        self.language = language
        if language != ENGLISH:
            self.signature = _edit_signature(UNICODE_WORDS)

    def score(self, text: str, reference: str) -> float:
        """The edit ratio, 0 to 1."""
        return edit_ratio(reference, text, self.language)


def _echo_signature(tokens: str) -> str:
    return signature_line(share="words-of-the-reply-that-the-seeker-said-before", tok=tokens, version=1)


class Echo(MeanMetric):
    """Mean share of a reply's words that the seeker's turns before it have, in [0, 1]: no measure of quality, a shortcut."""

    name = "echo"
    reads = ("context",)
    higher_is_better = None
    signature = _echo_signature("empathy-eval")

    def __init__(self, language: str = ENGLISH) -> None:
        """``language`` is the code of the texts' language."""
        self.language = language
        if language != ENGLISH:
            self.signature = _echo_signature(UNICODE_WORDS)

    def score(self, text: str, context: Context) -> float:
        """The share; 0 for a text without words."""
        said = {word for turn in context if turn["role"] == "seeker" for word in words(turn["text"], self.language)}
        own = words(text, self.language)
        return sum(word in said for word in own) / len(own) if own else 0.0
