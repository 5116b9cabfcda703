"""A frozen word list: what each word says of a stance, learned from an earlier release, by which one of several samples is chosen."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.hashing import digest
from empathy_eval.base.json_text import json_text
from empathy_eval.base.schemas import check, read_json
from empathy_eval.base.text import ENGLISH, UNICODE_WORDS, words
from empathy_eval.design.contrasts import APATHETIC, EMPATHETIC, FAR, NEAR, RAW, STANCE_FAR, STANCE_NEAR, STANCE_OF

# Weights are whole numbers of millionths: a text's score is their sum, the same on every machine.
UNIT = 10**6
# The file in a build and in a release.
WORD_LIST = "word_list.json"
# By which contrast a variant is told: that of its own closeness; a list of a release without controls has the first alone.
TOLD_BY = {**dict.fromkeys(NEAR, STANCE_NEAR), **dict.fromkeys(FAR, STANCE_FAR)}
# The kind and the cold variant of each contrast.
VARIANTS = {RAW: (EMPATHETIC, APATHETIC), STANCE_NEAR: NEAR, STANCE_FAR: FAR}
# Words that an error shows.
SHOWN = 5
# Why a text that passed its checks is not released, where several were asked for.
NOT_CHOSEN = "not_chosen"
MAKE = "make one with empathy-eval shortcuts RELEASE --out LIST.json"


def tokens_of(language: str) -> str:
    """What signatures call the words of a language."""
    return "empathy-eval" if language == ENGLISH else UNICODE_WORDS


@dataclass(frozen=True)
class Weights:
    """The words of a contrast of two variants with their weights, above 0: kind; its pairs, and how the weights were made."""

    kind: str
    cold: str
    pairs: int
    signature: str
    words: Mapping[str, int]


@dataclass(frozen=True)
class WordList:
    """Weights by contrast, the release that they were learned from, and the code of its language."""

    release: Mapping[str, str]
    language: str
    contrasts: Mapping[str, Weights]

    def to_json(self) -> dict[str, Any]:
        """The list as plain JSON values."""
        return {
            "release": dict(self.release),
            "language": self.language,
            "tokens": tokens_of(self.language),
            "unit": UNIT,
            "contrasts": {name: {**vars(one), "words": dict(one.words)} for name, one in self.contrasts.items()},
        }

    @property
    def text(self) -> str:
        """The one text form of a list."""
        return json_text(self.to_json(), indent=1, sort_keys=True) + "\n"

    @cached_property
    def digest(self) -> str:
        """The hash of what the list says."""
        return digest(self.to_json())

    def contrast_of(self, variant: str) -> str:
        """By which contrast a variant is told."""
        return TOLD_BY[variant] if TOLD_BY[variant] in self.contrasts else RAW

    def score(self, variant: str, text: str) -> int:
        """How kind the words of a text are, in millionths: the sum of their weights, each as often as it is there; others weigh nothing."""
        weights = self.contrasts[self.contrast_of(variant)].words
        return sum(weights.get(word, 0) for word in words(text, self.language))

    def giveaway(self, variant: str, text: str) -> int:
        """How well words alone tell a text for what it is meant to be, in millionths: how kind a kind one is, how cold a cold one."""
        score = self.score(variant, text)
        return score if STANCE_OF[variant] == EMPATHETIC else -score

    def hardest(self, variant: str, texts: Sequence[str]) -> int:
        """The place of the text that the list tells worst, the first of equals."""
        return min(range(len(texts)), key=lambda place: (self.giveaway(variant, texts[place]), place))


def word_list_of(value: Any, where: object) -> WordList:
    """The list of plain values.

    Raises:
        InputError: if they are not valid; all problems at once.
    """
    check(value, "word_list", where)
    if value["tokens"] != (tokens := tokens_of(value["language"])):
        what = f'counts tokens by "{value["tokens"]}", but the language "{value["language"]}" uses "{tokens}"'
        raise input_error(where, what, MAKE)
    contrasts = {name: Weights(**one) for name, one in value["contrasts"].items()}
    refuse([one for name in contrasts for one in _unusable(contrasts[name], name, value["language"], where)])
    return WordList(value["release"], value["language"], contrasts)


def _unusable(weights: Weights, contrast: str, language: str, where: object) -> Iterator[Problem]:
    """Variants that are not of the contrast, and words that no text is counted to have."""
    place, (kind, cold) = f"{where}: contrasts: {contrast}", VARIANTS[contrast]
    if (weights.kind, weights.cold) != (kind, cold):
        what = f'compares "{weights.kind}" with "{weights.cold}", but this contrast is of "{kind}" and "{cold}"'
        yield Problem(place, what, MAKE)
    if odd := [one for one in weights.words if not _counted(one, language)]:
        shown = ", ".join(json.dumps(one[:40], ensure_ascii=False) for one in odd[:SHOWN])
        more = f" and {len(odd) - SHOWN} more" if len(odd) > SHOWN else ""
        yield Problem(f"{place}: words", f"no text has {shown}{more} among its words", f"write single words in lower case, or {MAKE}")


def _counted(word: str, language: str) -> bool:
    """Whether a text may be counted to have this word."""
    # A capital may be a letter and a mark in lower case, and English counts no marks by themselves.
    bare = "".join(one for one in word if unicodedata.category(one)[0] != "M") if language == ENGLISH else word
    return words(bare, language) == (bare,)


def read_word_list(path: Path) -> WordList:
    """The list of a file.

    Raises:
        InputError: if it cannot be read, or is not valid.
    """
    return word_list_of(read_json(path, None, MAKE), path)
