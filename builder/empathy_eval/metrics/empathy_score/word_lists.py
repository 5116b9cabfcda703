"""The word lists of the plain features: data in ``empathyscore/features.yaml``, read once, and known by their hash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from empathy_eval.base.files import data_folder
from empathy_eval.base.hashing import digest, digest_file
from empathy_eval.base.schemas import read_yaml
from empathy_eval.metrics.vader import lexicon

FILE = "features.yaml"
Phrase = tuple[str, ...]


@dataclass(frozen=True)
class Listed:
    """A feature: its name, what it is a share of, what it means, and by first word the phrases of its list, the longest first."""

    name: str
    of: str
    what: str
    sign: int = 0
    phrases: Mapping[str, tuple[Phrase, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class WordLists:
    """The features in their order, the words without content, the words that VADER has by their sign, and the hashes of both sources."""

    features: tuple[Listed, ...]
    fillers: frozenset[str]
    signs: Mapping[str, int]
    sha256: str
    vader: str

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [one.name for one in self.features]


def read_word_lists(path: Path) -> WordLists:
    """The word lists of a file.

    Raises:
        InputError: if it cannot be read or breaks its schema.
    """
    raw = read_yaml(path, "empathyscore_features")
    signs = {word: 1 if valence > 0 else -1 for word, valence in lexicon().items() if valence}
    return WordLists(tuple(map(_listed, raw["features"])), frozenset(raw["fillers"].split()), signs, digest_file(path), digest(signs))


@cache
def word_lists() -> WordLists:
    """The word lists that are packaged."""
    return read_word_lists(data_folder("empathyscore") / FILE)


def _listed(raw: dict[str, Any]) -> Listed:
    phrases: dict[str, list[Phrase]] = {}
    for one in dict.fromkeys(" ".join(part.split()) for part in raw.get("list", "").split(",")):
        if one:
            phrase = tuple(one.split())
            phrases.setdefault(phrase[0], []).append(phrase)
    longest = {first: tuple(sorted(some, key=lambda one: (-len(one), one))) for first, some in phrases.items()}
    return Listed(raw["name"], raw["of"], raw["what"], raw.get("sign", 0), longest)
