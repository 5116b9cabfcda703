"""Phrases as data: spaCy matcher patterns in ``rules/*.yaml``, found in texts without any model weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.files import data_folder
from empathy_eval.base.imports import without
from empathy_eval.base.schemas import read_yaml

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.matcher import Matcher
    from spacy.tokens import Doc, Span


@cache
def language() -> Language:
    """English tokens and sentences by rule."""
    # Where torch is installed, spaCy's thinc loads it for models that are not used here: 200 MB and a second or two.
    with without("torch"):
        import spacy
    blank = spacy.blank("en")
    blank.add_pipe("sentencizer")
    return blank


@lru_cache(maxsize=256)
def _words(text: str) -> frozenset[int]:
    """The lower-cased tokens of a text, as spaCy's hashes of them."""
    return frozenset(language().make_doc(text).to_array("LOWER").tolist())


@dataclass(frozen=True, eq=False)
class Patterns:
    """Named patterns; ``replacements`` for those files whose patterns stand for an edit.

    ``needed`` holds for each pattern the sets of words of which a text must have at least one each: most texts lack them for
    every pattern, and are not handed to the matcher at all. ``telling`` is one such set of each pattern, all together.
    """

    matcher: Matcher
    needed: tuple[tuple[frozenset[int], ...], ...]
    telling: frozenset[int]
    replacements: dict[str, str]

    @lru_cache(maxsize=1024)  # noqa: B019  (the few objects of this class live as long as the process)
    def find(self, text: str) -> tuple[tuple[str, str], ...]:
        """(name, phrase) of each match, in the order of the text; of overlapping matches the longest."""
        present = _words(text)
        if present.isdisjoint(self.telling) or all(any(map(present.isdisjoint, sets)) for sets in self.needed):
            return ()
        return tuple((span.label_, span.text) for span in self.spans(language().make_doc(text)))

    def spans(self, doc: Doc) -> list[Span]:
        """The matches as spans of a document, longest first where they overlap."""
        from spacy.util import filter_spans

        found: list[Span] = self.matcher(doc, as_spans=True)
        return filter_spans(found)


def _needed(pattern: list[dict[str, Any]]) -> tuple[frozenset[int], ...]:
    """The words that each obligatory token of a pattern may be, where the pattern says so by LOWER."""
    strings, sets = language().vocab.strings, []
    for token in pattern:
        lower: Any = token.get("LOWER")
        words = lower.get("IN") if isinstance(lower, dict) else [lower]
        if words and lower is not None and token.get("OP", "1") in ("1", "+"):
            sets.append(frozenset(strings.add(word) for word in words))
    return tuple(sets)


@cache
def load_patterns(name: str, folder: Path | None = None) -> Patterns:
    """The patterns of ``rules/<name>.yaml``.

    Raises:
        InputError: if the file is missing, not valid, or holds a pattern that spaCy refuses.
    """
    path = (folder or data_folder("rules")) / f"{name}.yaml"
    rules: list[dict[str, Any]] = read_yaml(path, "rules")
    vocabulary = language().vocab
    from spacy.matcher import Matcher

    matcher = Matcher(vocabulary, validate=True)
    for rule in rules:
        try:
            matcher.add(rule["name"], rule["patterns"])
        except ValueError as error:
            raise input_error(f"{path}: {rule['name']}", f"spaCy refuses a pattern: {error}", "mend the pattern") from error
    replacements = {rule["name"]: rule["replace"] for rule in rules if "replace" in rule}
    needed = tuple(_needed(pattern) for rule in rules for pattern in rule["patterns"])
    # Long words are rarer than short ones: of each pattern the set whose shortest word is longest.
    strings = vocabulary.strings
    telling = frozenset().union(*(max(sets, key=lambda words: min(len(strings[word]) for word in words)) for sets in needed))
    return Patterns(matcher, needed, telling, replacements)
