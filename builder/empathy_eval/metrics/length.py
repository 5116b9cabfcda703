"""Word metrics: length, edit ratio, echo of the seeker, ROUGE-L."""

from __future__ import annotations

from empathy_eval.base.hashing import signature_line
from empathy_eval.base.text import ENGLISH, UNICODE_WORDS, WORD, edit_ratio, overlap, words
from empathy_eval.metrics.protocol import Context, LanguageMetric, MeanMetric


class Length(LanguageMetric, MeanMetric):
    """Mean number of words: not a measure of quality, shown because others follow it."""

    name = "length"
    reads = ()
    higher_is_better: bool | None = None
    form = signature_line(unit="word", tok="{}")

    def score(self, text: str) -> float:
        """The number of words."""
        if self.language != ENGLISH:
            return len(words(text, self.language))
        return sum(1 for _ in WORD.finditer(text))


class EditRatio(LanguageMetric, MeanMetric):
    """Mean word-level Levenshtein distance / words of the longer text: not a measure of quality, but of closeness."""

    name = "edit ratio"
    higher_is_better = None
    share = True
    form = signature_line(unit="word", over="longer", tok="{}")

    def score(self, text: str, reference: str) -> float:
        """The edit ratio, 0 to 1."""
        return edit_ratio(reference, text, self.language)


class Echo(LanguageMetric, MeanMetric):
    """Mean share of a reply's words that the seeker used before, in [0, 1]: not a measure of quality, but a shortcut."""

    name = "echo"
    reads = ("context",)
    higher_is_better = None
    form = signature_line(share="words-of-the-reply-that-the-seeker-said-before", tok="{}", version=1)

    def score(self, text: str, context: Context) -> float:
        """The share; 0 for a text without words."""
        seeker_words = {word for turn in context if turn["role"] == "seeker" for word in words(turn["text"], self.language)}
        own = words(text, self.language)
        return sum(word in seeker_words for word in own) / len(own) if own else 0.0


class RougeL(LanguageMetric, MeanMetric):
    """Mean sentence-level ROUGE-L F1 (Lin 2004) as in rouge-score; outside English over Unicode words."""

    name = "ROUGE-L"
    share = True
    form = signature_line(measure="f1", level="sentence", stemmer="no", tok="{}")
    tokens = ("rouge-score", UNICODE_WORDS)

    def score(self, text: str, reference: str) -> float:
        """F1 in [0, 1]."""
        return overlap(reference, text, self.language)
