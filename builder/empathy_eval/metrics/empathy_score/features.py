"""The plain features: what a reply has how much of, as shares, so that saying more of the same changes none of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.text import WORD
from empathy_eval.metrics.empathy_score.word_lists import Listed, WordLists
from empathy_eval.metrics.protocol import Context, Segments

# Shares are whole numbers of millionths: their sums are the same in any order and on any machine.
UNIT = 10**6
SENTENCE = re.compile(r"[^.!?…\n]+[.!?…]*")
Shares = NDArray[np.int64]
Sentence = tuple[Sequence[str], str]


def said_last(context: Context) -> str:
    """What the seeker said last: all turns since the helper's last one, empty if the helper spoke last."""
    said: list[str] = []
    for turn in reversed(context):
        if turn["role"] != "seeker":
            break
        said.append(turn["text"])
    return "\n".join(reversed(said))


def sentences(text: str) -> list[Sentence]:
    """The words of each sentence, casefolded and with straight apostrophes, and the marks that end it; one without words is none.

    A sentence ends at a full stop, a question or exclamation mark, an ellipsis, or the end of a line.
    """
    found = list[Sentence]()
    for one in SENTENCE.findall(text.replace("’", "'").casefold()):
        if own := WORD.findall(one):
            found.append((own, one[len(one.rstrip(".!?…")) :]))
    return found


class Features:
    """What is counted in replies by some word lists."""

    def __init__(self, lists: WordLists) -> None:
        self.lists = lists
        self._first: dict[str, list[tuple[int, tuple[tuple[str, ...], ...]]]] = {}
        for place, one in enumerate(lists.features):
            for word, phrases in one.phrases.items() if one.of == "words" else ():
                self._first.setdefault(word, []).append((place, phrases))

    def of(self, segments: Segments) -> Shares:
        """The features of texts in millionths, shape (texts, features); without contexts nothing is an echo."""
        contexts: Iterable[Context] = segments.contexts or [()] * len(segments.texts)
        found = [self.shares(text, said_last(context)) for text, context in zip(segments.texts, contexts, strict=True)]
        return np.array(found, dtype=np.int64).reshape(len(found), len(self.lists.features))

    def shares(self, text: str, said: str = "") -> list[int]:
        """The features of one reply to what the seeker said last; all 0 for a text without words."""
        own = sentences(text)
        counts, many = self._listed(own), sum(len(words) for words, _ in own)
        # Each feature is a count over a whole: of words, of sentences, or of words with content.
        whole = {"words": many, "lexicon": many, "openings": len(own), "questions": len(own), "exclaimed": len(own)}
        shares = []
        for place, one in enumerate(self.lists.features):
            if one.of == "echo":
                shares.append(self._echo(own, said))
                continue
            count = counts[place] if one.of == "words" else self._counted(one, own)
            shares.append(_share(count, whole[one.of]))
        return shares

    def _listed(self, own: Sequence[Sentence]) -> list[int]:
        """By feature how many words are in a phrase of its list; phrases do not overlap, and none goes beyond its sentence."""
        counts = [0] * len(self.lists.features)
        for words, _ in own:
            until = dict[int, int]()
            for at, word in enumerate(words):
                for place, phrases in self._first.get(word, ()):
                    if until.get(place, 0) <= at and (length := _longest(words, at, phrases)):
                        counts[place] += length
                        until[place] = at + length
        return counts

    def _counted(self, one: Listed, own: Sequence[Sentence]) -> int:
        if one.of == "lexicon":
            signs = self.lists.signs
            return sum(signs.get(word) == one.sign for words, _ in own for word in words)
        if one.of == "exclaimed":
            return sum("!" in marks for _, marks in own)
        wanted = [words for words, marks in own if one.of == "openings" or "?" in marks]
        if not one.phrases:
            return len(wanted)
        return sum(bool(_longest(words, 0, one.phrases.get(words[0], ()))) for words in wanted)

    def _echo(self, own: Sequence[Sentence], said: str) -> int:
        fillers = self.lists.fillers
        content = [word for words, _ in own for word in words if word not in fillers]
        there = {word for words, _ in sentences(said) for word in words}
        return _share(sum(word in there for word in content), len(content))


def _longest(words: Sequence[str], at: int, phrases: Sequence[tuple[str, ...]]) -> int:
    """How many words the longest of the phrases has that stands at this place; 0 if none does."""
    return next((len(one) for one in phrases if tuple(words[at : at + len(one)]) == one), 0)


def _share(count: int, whole: int) -> int:
    """A share in millionths, halves up; 0 of nothing."""
    return (2 * UNIT * count + whole) // (2 * whole) if whole else 0
