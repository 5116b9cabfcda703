"""Frozen word lists: word weights for stance, learned from an earlier release, by which one of several candidates is chosen."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import Problem, input_error, refuse, some_of
from empathy_eval.base.hashing import digest
from empathy_eval.base.json_text import json_text
from empathy_eval.base.schemas import check, read_json
from empathy_eval.base.text import ENGLISH, tokens_of, words
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


@dataclass(frozen=True)
class ContrastWeights:
    """The word weights of a contrast of two variants, above 0 for empathetic; its pairs, and how the weights were learned."""

    kind: str
    cold: str
    pairs: int
    signature: str
    words: Mapping[str, int]


@dataclass(frozen=True)
class WordList:
    """Weights by contrast, the release they were learned from, and its language code."""

    release: Mapping[str, str]
    language: str
    contrasts: Mapping[str, ContrastWeights]

    def to_json(self) -> dict[str, Any]:
        """The list as plain JSON values."""
        return {
            "release": dict(self.release),
            "language": self.language,
            "tokens": tokens_of(self.language),
            "unit": UNIT,
            "contrasts": {name: {**vars(weights), "words": dict(weights.words)} for name, weights in self.contrasts.items()},
        }

    @property
    def text(self) -> str:
        """The canonical text form of the list."""
        return json_text(self.to_json(), indent=1, sort_keys=True) + "\n"

    @cached_property
    def digest(self) -> str:
        """The hash of the list's content."""
        return digest(self.to_json())

    def contrast_of(self, variant: str) -> str:
        """The contrast that scores a variant."""
        return TOLD_BY[variant] if TOLD_BY[variant] in self.contrasts else RAW

    def score(self, variant: str, text: str) -> int:
        """How empathetic the words of a text are, in millionths: the sum of their weights, once for each occurrence."""
        weights = self.contrasts[self.contrast_of(variant)].words
        return sum(weights.get(word, 0) for word in words(text, self.language))

    def giveaway(self, variant: str, text: str) -> int:
        """How well words alone reveal the intended stance of a text, in millionths: empathetic score of an empathetic text, else its
        negative.
        """
        score = self.score(variant, text)
        return score if STANCE_OF[variant] == EMPATHETIC else -score

    def hardest(self, variant: str, texts: Sequence[str]) -> int:
        """The index of the text whose stance the list reveals least; the first of equals."""
        return min(range(len(texts)), key=lambda index: (self.giveaway(variant, texts[index]), index))


def word_list_of(value: Any, where: object) -> WordList:
    """The word list of plain values. Raises InputError if they are invalid; all problems at once."""
    check(value, "word_list", where)
    if value["tokens"] != (tokens := tokens_of(value["language"])):
        what = f'counts tokens by "{value["tokens"]}", but the language "{value["language"]}" uses "{tokens}"'
        raise input_error(where, what, MAKE)
    contrasts = {name: ContrastWeights(**entry) for name, entry in value["contrasts"].items()}
    refuse([problem for name in contrasts for problem in _unusable(contrasts[name], name, value["language"], where)])
    return WordList(value["release"], value["language"], contrasts)


def _unusable(weights: ContrastWeights, contrast: str, language: str, where: object) -> Iterator[Problem]:
    """Problems for variants of another contrast, and for words that no text can have."""
    place, (kind, cold) = f"{where}: contrasts: {contrast}", VARIANTS[contrast]
    if (weights.kind, weights.cold) != (kind, cold):
        what = f'compares "{weights.kind}" with "{weights.cold}", but this contrast is of "{kind}" and "{cold}"'
        yield Problem(place, what, MAKE)
    if odd := [word for word in weights.words if not _counted(word, language)]:
        shown = some_of([json.dumps(word[:40], ensure_ascii=False) for word in odd], SHOWN)
        yield Problem(f"{place}: words", f"no text has {shown} among its words", f"write single words in lower case, or {MAKE}")


def _counted(word: str, language: str) -> bool:
    """Whether the tokens of a text can contain this word."""
    # A capital may be a letter and a mark in lower case, and English counts no marks by themselves.
    bare = "".join(character for character in word if unicodedata.category(character)[0] != "M") if language == ENGLISH else word
    return words(bare, language) == (bare,)


def read_word_list(path: Path) -> WordList:
    """The word list of a file. Raises InputError if it cannot be read or is invalid."""
    return word_list_of(read_json(path, None, MAKE), path)
