"""Crossed items: the twin stays near, the replies are as long as one another, and no count of shared words tells whose they are."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from empathy_eval.base.text import overlap, words
from empathy_eval.completions.requests import Flaw
from empathy_eval.design.configuration import Limits
from empathy_eval.design.crossed import APART, CHANGED, changed_words
from empathy_eval.design.language import Language
from empathy_eval.generation.checks import safety
from empathy_eval.generation.patterns import tokens

# Of a language without a list of function words, a word of so many letters is taken for one of content.
LONG = 4


@dataclass(frozen=True)
class Bounds:
    """How many words of the seeker's last message a twin changes, and how many its reply has, where the given one has ``words``."""

    words: int
    least: int
    most: int
    changed_least: int = CHANGED[0]
    changed_most: int = CHANGED[1]

    @classmethod
    def of(cls, reference: str, limits: Limits, language: str) -> Bounds:
        """For a given reply: the shorter of the two has no fewer words than the longer one without its share."""
        count = len(words(reference, language))
        return cls(count, max(math.ceil(count * (1 - APART)), limits.helper_words_at_least), math.floor(count / (1 - APART)))


@dataclass(frozen=True)
class Twins:
    """What is to be crossed: the seeker's last message and the given reply to it, the twin of the message and its own reply."""

    said: str
    reference: str
    twin: str
    reply: str


def wrong_with(twins: Twins, limits: Limits, language: Language) -> Iterator[Flaw]:
    """What keeps an item from being taken before anybody reads it."""
    bounds = Bounds.of(twins.reference, limits, language.code)
    yield from _of_twin(twins, bounds, language)
    if not bounds.least <= (count := len(words(twins.reply, language.code))) <= bounds.most:
        what = f"the reply has {count} words and the given one {bounds.words}; write {bounds.least} to {bounds.most}"
        yield Flaw("length_apart", what)
    if (share := overlap(twins.reference, twins.reply, language.code)) > limits.overlap_at_most:
        what = f"reply and given reply have {share:.0%} of their words in common, in order; at most {limits.overlap_at_most:.0%} is taken"
        yield Flaw("replies_alike", what)
    yield from _echoes(twins, language.code)


def _of_twin(twins: Twins, bounds: Bounds, language: Language) -> Iterator[Flaw]:
    changed = changed_words(twins.said, twins.twin, language.code)
    if not words(twins.twin, language.code):
        yield Flaw("twin_empty", "the twin says nothing; write the seeker's whole last message, with a few words changed")
    elif changed < bounds.changed_least:
        yield Flaw("twin_unchanged", f"the twin changes {changed} words; change at least {bounds.changed_least}")
    elif changed > bounds.changed_most:
        yield Flaw("twin_apart", f"the twin changes {changed} words; change at most {bounds.changed_most}")
    if safety.in_crisis(twins.twin, language):
        yield Flaw("twin_in_crisis", "the twin sounds hopeless or in danger; let the need turn in another way")


def _echoes(twins: Twins, code: str) -> Iterator[Flaw]:
    """A reply that repeats a word by which its own context differs: who counts shared words would know whose it is."""
    said, twin = (content_words(text, code) for text in (twins.said, twins.twin))
    if repeated := sorted((twin - said) & content_words(twins.reply, code)):
        told = ", ".join(f'"{word}"' for word in repeated)
        yield Flaw("echoes_twin", f"the reply repeats {len(repeated)} of the words that are new in the twin: {told}; say it in other words")
    if gone := sorted((said - twin) & content_words(twins.reference, code)):
        told = ", ".join(f'"{word}"' for word in gone)
        yield Flaw("echo_taken", f"the given reply takes up {len(gone)} of the words that the twin drops: {told}; keep them in the twin")


def content_words(text: str, code: str) -> set[str]:
    """The words of a text without function words: those of spaCy's list for the language, and what an apostrophe makes of them."""
    known = tokens(code).Defaults.stop_words
    return {word for word in words(text, code) if not (_function(word, known) if known else len(word) < LONG)}


def _function(word: str, known: set[str]) -> bool:
    # "didn't" is made of "did", and "won't" of what is no word.
    stem, *more = re.split("['’]", word)
    return word in known or stem in known or bool(more) and (stem.removesuffix("n") in known or len(stem) < LONG)
