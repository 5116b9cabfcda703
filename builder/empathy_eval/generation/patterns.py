"""Phrases as data: spaCy matcher patterns in rule files, matched without model weights."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from empathy_eval.base.errors import Problem, input_error, refuse
from empathy_eval.base.imports import without
from empathy_eval.base.text import ENGLISH, edit_ratio, unspaced
from empathy_eval.design.language import Language, Rules, english

if TYPE_CHECKING:
    from spacy.language import Language as Tokens
    from spacy.matcher import Matcher
    from spacy.tokens import Doc, Span


# What spaCy's tokens of a language need beside spaCy.
PACKAGES = {"ja": "spacy[ja]", "ko": "spacy[ko]", "th": "spacy[th]", "vi": "pyvi"}


# Attributes of words, and those that nothing sets where tokens are made by rule and looked at before sentences are.
WORDS = ("LOWER", "ORTH", "TEXT", "NORM")
NEVER_SET = ("ENT_TYPE", "ENT_IOB", "ENT_ID", "ENT_KB_ID", "IS_SENT_START", "SENT_START")


@cache
def tokens(code: str) -> Tokens:
    """Rule-based tokens and sentences of a language: spaCy's, or generic ones for a language unknown to it.

    Raises:
        InputError: if spaCy needs a package for it that is not installed.
    """
    # Where torch is installed, spaCy's thinc loads it for models that are not used here: 200 MB and a second or two.
    with without("torch"):
        import spacy
    known = find_spec(f"spacy.lang.{code}") is not None
    try:
        blank = spacy.blank(code if known else "xx")
    except ImportError as error:
        fix = f'pip install "{PACKAGES.get(code, "spacy")}"'
        raise input_error(f"language: {code}", f"spaCy's tokens of it cannot be had: {str(error).splitlines()[0][:200]}", fix) from error
    if not known:
        # As our own words have it: a script without spaces is read character by character.
        cuts = spacy.util.compile_infix_regex([*(blank.Defaults.infixes or ()), unspaced().pattern])
        blank.tokenizer.infix_finditer = cuts.finditer  # type: ignore[union-attr]
    blank.add_pipe("sentencizer")
    return blank


def composed(text: str, code: str) -> str:
    """A text in the form that patterns match: outside English, a letter and its mark are one character (NFC)."""
    return text if code == ENGLISH else unicodedata.normalize("NFC", text)


def _composed(value: Any, code: str) -> Any:
    if isinstance(value, dict):
        return {name: _composed(item, code) for name, item in value.items()}
    if isinstance(value, list):
        return [_composed(item, code) for item in value]
    return composed(value, code) if isinstance(value, str) else value


@lru_cache(maxsize=256)
def _words(text: str, code: str) -> frozenset[int]:
    """The lower-cased tokens of a text, as spaCy's hashes."""
    return frozenset(tokens(code).make_doc(text).to_array("LOWER").tolist())


@dataclass(frozen=True, eq=False)
class Patterns:
    """Named patterns of a language; ``replacements`` for files whose patterns are edits.

    ``needed`` holds for each pattern the sets of words of which a text needs at least one each: most texts lack them for every pattern, and
    skip the matcher. ``telling`` joins one such set of each pattern; it is empty if a pattern has none. ``hint`` finds any of its words in
    a lower-cased text: without a hit a text is not even tokenised.
    """

    code: str
    matcher: Matcher
    needed: tuple[tuple[frozenset[int], ...], ...]
    telling: frozenset[int]
    hint: re.Pattern[str]
    replacements: dict[str, str]

    @lru_cache(maxsize=1024)  # noqa: B019  (the few objects of this class live as long as the process)
    def find(self, text: str) -> tuple[tuple[str, str], ...]:
        """(name, phrase) of each match, in text order; of overlapping matches the longest."""
        text = composed(text, self.code)
        if self.telling and not self.hint.search(text.lower()):
            return ()
        present = _words(text, self.code)
        if self.telling and present.isdisjoint(self.telling):
            return ()
        if all(any(map(present.isdisjoint, sets)) for sets in self.needed):
            return ()
        return tuple((span.label_, span.text) for span in self.spans(tokens(self.code).make_doc(text)))

    def spans(self, doc: Doc) -> list[Span]:
        """The matches as spans of a document, longest first where they overlap."""
        from spacy.util import filter_spans

        matches: list[Span] = self.matcher(doc, as_spans=True)
        return filter_spans(matches)


def _needed(pattern: list[dict[str, Any]], code: str) -> tuple[frozenset[int], ...]:
    """The words that each obligatory token of a pattern can match, if given by LOWER."""
    strings, sets = tokens(code).vocab.strings, []
    for token in pattern:
        lower: Any = token.get("LOWER")
        words = lower.get("IN") if isinstance(lower, dict) else [lower]
        if words and lower is not None and token.get("OP", "1") in ("1", "+"):
            sets.append(frozenset(strings.add(word) for word in words))
    return tuple(sets)


def load_patterns(name: str, language: Language | None = None) -> Patterns:
    """The patterns of a rule file of a language, by default English.

    Raises:
        InputError: if spaCy refuses a pattern, or one can never match; all at once.
    """
    language = language or english()
    return _loaded(language.rules[name], language.code)


@cache
def _loaded(rules: Rules, code: str) -> Patterns:
    vocabulary = tokens(code).vocab
    from spacy.matcher import Matcher

    matcher, problems = Matcher(vocabulary, validate=True), list[Problem]()
    trial = tokens(code).make_doc("a text")
    entries = _composed(rules.content, code)
    for rule in entries:
        where = f"{rules.where}: {rule['name']}"
        try:
            matcher.add(rule["name"], rule["patterns"])
            matcher(trial)
        except Exception as error:  # some faults come out where a text is looked at: of an expression, of an attribute
            problems.append(Problem(where, f"spaCy refuses a pattern: {' '.join(str(error).split())[:300]}", "fix the pattern"))
            matcher = Matcher(vocabulary, validate=True)
            continue
        problems += [Problem(where, what, fix) for what, fix in _never_matching(rule["patterns"], code)]
    refuse(problems)
    replacements = {rule["name"]: rule["replace"] for rule in entries if "replace" in rule}
    needed = tuple(_needed(pattern, code) for rule in entries for pattern in rule["patterns"])
    # Long words are rarer than short ones: of each pattern the set whose shortest word is longest.
    strings, telling = vocabulary.strings, frozenset[int]()
    if all(needed):
        telling = telling.union(*(max(sets, key=lambda words: min(len(strings[word]) for word in words)) for sets in needed))
    hint = re.compile("|".join(re.escape(word) for word in sorted(strings[word] for word in telling)))
    return Patterns(code, matcher, needed, telling, hint, replacements)


def _never_matching(patterns: list[list[dict[str, Any]]], code: str) -> Iterator[tuple[str, str]]:
    """(what, fix) of pattern tokens that can never match: such a rule would be off without notice."""
    for attribute, value in ((name.upper(), value) for pattern in patterns for token in pattern for name, value in token.items()):
        if attribute in NEVER_SET:
            yield f"{attribute} is not set by the token rules and matches nothing", "use LOWER, the word in lower case"
        elif attribute in WORDS:
            for word, whole in _token_words(value):
                yield from _never_matching_word(attribute, word, code, whole=whole)


def _token_words(value: Any) -> Iterator[tuple[str | None, bool]]:
    """The words that a token can match, each with whether it is the whole token; None for an empty one."""
    if not isinstance(value, dict):
        yield value or None, True
        return
    for name, among in ((name.upper(), among) for name, among in value.items()):
        if name.startswith("FUZZY"):
            yield from ((word, False) for word, _ in _token_words(among))
        elif name in ("IN", "INTERSECTS"):
            yield from ((word or None, True) for word in among or [None])


def _never_matching_word(attribute: str, word: str | None, code: str, *, whole: bool) -> Iterator[tuple[str, str]]:
    if word is None:
        yield f"{attribute} names no word and matches nothing", "write the word, or leave it out"
    elif attribute in ("LOWER", "NORM") and word != word.lower() and not (attribute == "NORM" and word in _norms(code)):
        yield f'{attribute} "{word}" is not in lower case and matches nothing', f'write "{word.lower()}"'
    # What stands before or behind an apostrophe may be a token in its place and none alone.
    elif (
        whole
        and attribute != "NORM"
        and not {"'", "’"}.intersection(word)
        and len(parts := [token.text for token in tokens(code).make_doc(word)]) > 1
    ):
        yield f'{attribute} "{word}" is {len(parts)} tokens and matches nothing', f"write one pattern token for each: {', '.join(parts)}"


@cache
def _norms(code: str) -> frozenset[str]:
    """The norms of a language's abbreviations, which may be in capitals."""
    rules = getattr(tokens(code).tokenizer, "rules", None) or {}
    return frozenset(str(value) for parts in rules.values() for part in parts for value in part.values())


def de_empathised(text: str, edit_ratio_below: float, language: Language) -> str:
    """A near copy of a text with less empathy: as many markers replaced as the edit ratio allows.

    Sentences that point to professional or crisis help are kept. A text without markers is returned unchanged.
    """
    return _de_empathised(text, edit_ratio_below, language)[0]


def rules_applied(text: str, edit_ratio_below: float, language: Language) -> list[tuple[str, str, str]]:
    """(rule, marker, replacement) of each edit by :func:`de_empathised`."""
    replacements = load_patterns("apathetic", language).replacements
    return [(span.label_, span.text, replacements[span.label_]) for span in _de_empathised(text, edit_ratio_below, language)[1]]


def _de_empathised(text: str, edit_ratio_below: float, language: Language) -> tuple[str, list[Span]]:
    """The changed text, and the replaced markers."""
    markers, pointers = load_patterns("apathetic", language), load_patterns("pointers", language)
    whole = composed(text, language.code)
    doc = tokens(language.code)(whole)
    kept = {token.i for sentence in doc.sents if pointers.find(sentence.text) for token in sentence}
    spans = [span for span in markers.spans(doc) if span.start not in kept]
    replaced = _replaced if language.code == ENGLISH else partial(_replaced_plainly, code=language.code)
    changed, done = text, 0
    for count in range(1, len(spans) + 1):
        candidate = replaced(whole, [(span.start_char, span.end_char, markers.replacements[span.label_]) for span in spans[:count]])
        if edit_ratio(text, candidate, language.code) >= edit_ratio_below:
            break
        changed, done = candidate, count
    return changed, spans[:done]


def _replaced(text: str, edits: list[tuple[int, int, str]]) -> str:
    """English text with edits, then its spaces, commas and capitals corrected."""
    for start, end, new in reversed(edits):
        text = text[:start] + (new[:1].lower() + new[1:] if new and not _opens(text, start) else new) + text[end:]
    text = re.sub(r"\s+([,.!?;:])", r"\1", re.sub(r"[ \t]{2,}", " ", text)).strip()
    text = re.sub(r"(^|[.!?]\s+)[,;:]\s*", r"\1", text)
    return re.sub(r"(^|[.!?]\s+)([a-z])", lambda match: match[1] + match[2].upper(), text)


def _replaced_plainly(text: str, edits: list[tuple[int, int, str]], code: str) -> str:
    """A text with edits as the rules write them, since rules for capitals and spaces of other languages are unknown.

    Only traces of an edit are corrected: an extra space or comma, and the capital at the start of a sentence.
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
    """A letter in title case; the i of Turkish and Azerbaijani keeps its dot."""
    return "İ" if letter == "i" and code in ("tr", "az") else letter.title()


def _opens(text: str, start: int, ends: str = ".!?") -> bool:
    """Whether a sentence begins at this index."""
    before = text[:start].rstrip()
    return not before or before[-1] in ends
