"""Phrases as data: spaCy matcher patterns in ``rules/*.yaml``, found in texts without any model weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.matcher import Matcher
from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from builder.errors import input_error
from builder.files import data_folder
from builder.schemas import read_yaml


@cache
def language() -> Language:
    """English tokens and sentences by rule."""
    blank = spacy.blank("en")
    blank.add_pipe("sentencizer")
    return blank


@dataclass(frozen=True)
class Patterns:
    """Named patterns; ``replacements`` for those files whose patterns stand for an edit."""

    matcher: Matcher
    names: tuple[str, ...]
    replacements: dict[str, str]

    def find(self, text: str) -> list[tuple[str, str]]:
        """(name, phrase) of each match, in the order of the text; of overlapping matches the longest."""
        return [(span.label_, span.text) for span in self.spans(language()(text))]

    def spans(self, doc: Doc) -> list[Span]:
        """The matches as spans of a document, longest first where they overlap."""
        found: list[Span] = self.matcher(doc, as_spans=True)
        return filter_spans(found)


@cache
def load_patterns(name: str, folder: Path | None = None) -> Patterns:
    """The patterns of ``rules/<name>.yaml``.

    Raises:
        InputError: if the file is missing, not valid, or holds a pattern that spaCy refuses.
    """
    path = (folder or data_folder("rules")) / f"{name}.yaml"
    rules: list[dict[str, Any]] = read_yaml(path, "rules")
    matcher = Matcher(language().vocab, validate=True)
    for rule in rules:
        try:
            matcher.add(rule["name"], rule["patterns"])
        except ValueError as error:
            raise input_error(f"{path}: {rule['name']}", f"spaCy refuses a pattern: {error}", "mend the pattern") from error
    replacements = {rule["name"]: rule["replace"] for rule in rules if "replace" in rule}
    return Patterns(matcher, tuple(rule["name"] for rule in rules), replacements)
