"""Lexical metrics and features: length, edit ratio, echo, ROUGE-L, VADER, Sentlink, and shares of words and phrases by word lists.

Features are shares, so that repeating a text changes none. Their word lists are data in ``empathyscore/features.yaml``, identified by hash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from itertools import dropwhile, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest, digest_file, signature_line
from empathy_eval.base.schemas import read_yaml
from empathy_eval.base.text import ENGLISH, UNICODE_WORDS, WORD, edit_ratio, overlap, words
from empathy_eval.metrics.protocol import Context, LanguageMetric, MeanMetric, Segments, last_turns


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


Phrase = tuple[str, ...]
# Shares are whole numbers of millionths: their sums are the same in any order and on any machine.
UNIT = 10**6
SENTENCE = re.compile(r"[^.!?…\n]+[.!?…]*")
Shares = NDArray[np.int64]
Sentence = tuple[Sequence[str], str]


@dataclass(frozen=True)
class Feature:
    """A feature: its name, what it is a share of, its meaning, and its phrases by first word, the longest first."""

    name: str
    of: str
    what: str
    sign: int = 0
    phrases: Mapping[str, tuple[Phrase, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class WordLists:
    """The features in order, words without content, VADER's words by sign, and the hashes of both sources."""

    features: tuple[Feature, ...]
    fillers: frozenset[str]
    signs: Mapping[str, int]
    sha256: str
    vader: str

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [feature.name for feature in self.features]


def read_word_lists(path: Path) -> WordLists:
    """The word lists of a file, such as the packaged ``empathyscore/features.yaml``.

    Raises:
        InputError: if it cannot be read or breaks its schema.
    """
    raw = read_yaml(path, "empathyscore_features")
    signs = {word: 1 if valence > 0 else -1 for word, valence in lexicon().items() if valence}
    return WordLists(tuple(map(_listed, raw["features"])), frozenset(raw["fillers"].split()), signs, digest_file(path), digest(signs))


@cache
def word_lists() -> WordLists:
    """The packaged word lists."""
    return read_word_lists(data_folder("empathyscore") / "features.yaml")


def _listed(raw: dict[str, Any]) -> Feature:
    phrases = {tuple(part.split()) for part in raw.get("list", "").split(",") if part.strip()}
    ordered = sorted(phrases, key=lambda phrase: (phrase[0], -len(phrase), phrase))
    longest = {first: tuple(group) for first, group in groupby(ordered, key=itemgetter(0))}
    return Feature(raw["name"], raw["of"], raw["what"], raw.get("sign", 0), longest)


def last_seeker_text(context: Context) -> str:
    """The seeker's text since the helper's last turn; empty if the helper spoke last."""
    return "\n".join(last_turns(context))


def sentences(text: str) -> list[Sentence]:
    """The words of each sentence, casefolded and with straight apostrophes, and its end marks; sentences without words are skipped.

    A sentence ends at a full stop, a question or exclamation mark, an ellipsis, or the end of a line.
    """
    result = list[Sentence]()
    for sentence in SENTENCE.findall(text.replace("’", "'").casefold()):
        if own := WORD.findall(sentence):
            result.append((own, sentence[len(sentence.rstrip(".!?…")) :]))
    return result


class FeatureCounter:
    """Counts the features of replies by word lists."""

    def __init__(self, lists: WordLists) -> None:
        self.lists = lists
        self._first: dict[str, list[tuple[int, tuple[tuple[str, ...], ...]]]] = {}
        for index, feature in enumerate(lists.features):
            for word, phrases in feature.phrases.items() if feature.of == "words" else ():
                self._first.setdefault(word, []).append((index, phrases))

    def of(self, segments: Segments) -> Shares:
        """The features of texts in millionths, shape (texts, features); without contexts the echo is 0."""
        contexts: Iterable[Context] = segments.contexts or [()] * len(segments.texts)
        rows = [self.shares(text, last_seeker_text(context)) for text, context in zip(segments.texts, contexts, strict=True)]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self.lists.features))

    def shares(self, text: str, last_message: str = "") -> list[int]:
        """The features of one reply to the seeker's last message; all 0 for a text without words."""
        own = sentences(text)
        counts, many = self._listed(own), sum(len(words) for words, _ in own)
        # Each feature is a count over a whole: of words, of sentences, or of words with content.
        whole = {"words": many, "lexicon": many, "openings": len(own), "questions": len(own), "exclaimed": len(own)}
        shares = []
        for index, feature in enumerate(self.lists.features):
            if feature.of == "echo":
                shares.append(self._echo(own, last_message))
                continue
            count = counts[index] if feature.of == "words" else self._counted(feature, own)
            shares.append(_share(count, whole[feature.of]))
        return shares

    def _listed(self, own: Sequence[Sentence]) -> list[int]:
        """The words in phrases of each feature; phrases do not overlap, and stay within a sentence."""
        counts = [0] * len(self.lists.features)
        for sentence, _ in own:
            until = dict[int, int]()
            for at, word in enumerate(sentence):
                for index, phrases in self._first.get(word, ()):
                    if until.get(index, 0) <= at and (length := _longest(sentence, at, phrases)):
                        counts[index] += length
                        until[index] = at + length
        return counts

    def _counted(self, feature: Feature, own: Sequence[Sentence]) -> int:
        if feature.of == "lexicon":
            signs = self.lists.signs
            return sum(signs.get(word) == feature.sign for words, _ in own for word in words)
        if feature.of == "exclaimed":
            return sum("!" in marks for _, marks in own)
        chosen = [words for words, marks in own if feature.of == "openings" or "?" in marks]
        if not feature.phrases:
            return len(chosen)
        return sum(bool(_longest(words, 0, feature.phrases.get(words[0], ()))) for words in chosen)

    def _echo(self, own: Sequence[Sentence], last_message: str) -> int:
        fillers = self.lists.fillers
        content = [word for words, _ in own for word in words if word not in fillers]
        seeker_words = {word for words, _ in sentences(last_message) for word in words}
        return _share(sum(word in seeker_words for word in content), len(content))


def _longest(words: Sequence[str], at: int, phrases: Sequence[tuple[str, ...]]) -> int:
    """The words of the longest phrase at this index; 0 if there is none."""
    return next((len(phrase) for phrase in phrases if tuple(words[at : at + len(phrase)]) == phrase), 0)


def _share(count: int, whole: int) -> int:
    """A share in millionths, rounded half up; 0 if the whole is 0."""
    return (2 * UNIT * count + whole) // (2 * whole) if whole else 0


def feature_shares(segments: Segments) -> Shares:
    """The features of the packaged word lists, in millionths."""
    return _features().of(segments)


@cache
def _features() -> FeatureCounter:
    """Cached for each process, and never pickled."""
    return FeatureCounter(word_lists())
