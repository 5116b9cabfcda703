"""De-empathising by rules: markers of empathy deleted or replaced, as the rules ``apathetic`` of a language say."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from empathy_eval.base.text import ENGLISH, edit_ratio
from empathy_eval.design.language import Language
from empathy_eval.generation.patterns import composed, load_patterns, tokens

if TYPE_CHECKING:
    from spacy.tokens import Span

DOTTED = ("tr", "az")


def de_empathised(text: str, edit_ratio_below: float, language: Language) -> str:
    """A colder near-copy of a text: as many markers of empathy replaced as keep the edit ratio under the limit.

    Sentences that point to professional or crisis help are left as they are. The text comes back unchanged if it has no marker.
    """
    return _de_empathised(text, edit_ratio_below, language)[0]


def rules_applied(text: str, edit_ratio_below: float, language: Language) -> list[tuple[str, str, str]]:
    """(rule, marker, what stands in its place) of each edit that :func:`de_empathised` makes."""
    replacements = load_patterns("apathetic", language).replacements
    return [(span.label_, span.text, replacements[span.label_]) for span in _de_empathised(text, edit_ratio_below, language)[1]]


def _de_empathised(text: str, edit_ratio_below: float, language: Language) -> tuple[str, list[Span]]:
    """The changed text, and the markers that were replaced."""
    markers, pointers = load_patterns("apathetic", language), load_patterns("pointers", language)
    whole = composed(text, language.code)
    doc = tokens(language.code)(whole)
    kept = {token.i for sentence in doc.sents if pointers.find(sentence.text) for token in sentence}
    spans = [span for span in markers.spans(doc) if span.start not in kept]
    replaced = _replaced if language.code == ENGLISH else partial(_replaced_plainly, code=language.code)
    changed, made = text, 0
    for count in range(1, len(spans) + 1):
        candidate = replaced(whole, [(span.start_char, span.end_char, markers.replacements[span.label_]) for span in spans[:count]])
        if edit_ratio(text, candidate, language.code) >= edit_ratio_below:
            break
        changed, made = candidate, count
    return changed, spans[:made]


def _replaced(text: str, edits: list[tuple[int, int, str]]) -> str:
    """English with the edits made from the end, then its spaces, commas and capitals put right."""
    for start, end, new in reversed(edits):
        text = text[:start] + (new[:1].lower() + new[1:] if new and not _opens(text, start) else new) + text[end:]
    text = re.sub(r"\s+([,.!?;:])", r"\1", re.sub(r"[ \t]{2,}", " ", text)).strip()
    text = re.sub(r"(^|[.!?]\s+)[,;:]\s*", r"\1", text)
    return re.sub(r"(^|[.!?]\s+)([a-z])", lambda match: match[1] + match[2].upper(), text)


def _replaced_plainly(text: str, edits: list[tuple[int, int, str]], code: str) -> str:
    """The text with the edits as their rules write them: where another language has capitals and spaces is not known here.

    Only what an edit leaves is put right, a space and a comma too many, and a sentence that opened with a capital opens with one.
    """
    for start, end, new in reversed(edits):
        before, after, opens = text[:start], text[end:], _opens(text, start, ".!?。！？")
        if not new and opens:
            after = re.sub(r"^\s*[,;:，；：、]?\s*", "", after)
        elif not new and before.endswith(" ") and after[:1] in ("", *" .,;:!?…"):
            before = before[:-1]
        if not new and after[:1] in ("", *".!?…。！？"):
            before = before.rstrip(" ,;:，；：、")
        changed = new + after
        capital = opens and text[start] != text[start].lower()
        text = before + (_capital(changed[:1], code) + changed[1:] if capital else changed)
    return text.strip()


def _capital(letter: str, code: str) -> str:
    """A letter as it begins a sentence; the i of Turkish and Azerbaijani keeps its dot."""
    return "İ" if letter == "i" and code in DOTTED else letter.title()


def _opens(text: str, start: int, ends: str = ".!?") -> bool:
    """Whether a sentence begins at this place."""
    before = text[:start].rstrip()
    return not before or before[-1] in ends
