"""De-empathising by rules: markers of empathy deleted or replaced, as ``rules/apathetic.yaml`` says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from empathy_eval.base.text import edit_ratio
from empathy_eval.generation.patterns import language, load_patterns

if TYPE_CHECKING:
    from spacy.tokens import Span


def de_empathised(text: str, edit_ratio_below: float) -> str:
    """A colder near-copy of a text: as many markers of empathy replaced as keep the edit ratio under the limit.

    Sentences that point to professional or crisis help are left as they are. The text comes back unchanged if it has no marker.
    """
    return _de_empathised(text, edit_ratio_below)[0]


def rules_applied(text: str, edit_ratio_below: float) -> list[tuple[str, str, str]]:
    """(rule, marker, what stands in its place) of each edit that :func:`de_empathised` makes."""
    replacements = load_patterns("apathetic").replacements
    return [(span.label_, span.text, replacements[span.label_]) for span in _de_empathised(text, edit_ratio_below)[1]]


def _de_empathised(text: str, edit_ratio_below: float) -> tuple[str, list[Span]]:
    """The changed text, and the markers that were replaced."""
    markers, pointers = load_patterns("apathetic"), load_patterns("pointers")
    doc = language()(text)
    kept = {token.i for sentence in doc.sents if pointers.find(sentence.text) for token in sentence}
    spans = [span for span in markers.spans(doc) if span.start not in kept]
    changed, made = text, 0
    for count in range(1, len(spans) + 1):
        candidate = _replaced(text, [(span.start_char, span.end_char, markers.replacements[span.label_]) for span in spans[:count]])
        if edit_ratio(text, candidate) >= edit_ratio_below:
            break
        changed, made = candidate, count
    return changed, spans[:made]


def _replaced(text: str, edits: list[tuple[int, int, str]]) -> str:
    """The text with the edits made from the end, then its spaces, commas and capitals put right."""
    for start, end, new in reversed(edits):
        text = text[:start] + (new[:1].lower() + new[1:] if new and not _opens(text, start) else new) + text[end:]
    text = re.sub(r"\s+([,.!?;:])", r"\1", re.sub(r"[ \t]{2,}", " ", text)).strip()
    text = re.sub(r"(^|[.!?]\s+)[,;:]\s*", r"\1", text)
    return re.sub(r"(^|[.!?]\s+)([a-z])", lambda match: match[1] + match[2].upper(), text)


def _opens(text: str, start: int) -> bool:
    """Whether a sentence begins at this place."""
    before = text[:start].rstrip()
    return not before or before[-1] in ".!?"
