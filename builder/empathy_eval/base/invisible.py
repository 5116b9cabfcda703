"""Invisible characters: readers do not see them, programs read them. One rule for all texts of others."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

# Default_Ignorable_Code_Point, as DerivedCoreProperties.txt of Unicode 15 lists it, and the blank of Braille.
IGNORED = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\u2800"
)
INVISIBLE = re.compile(f"[{IGNORED}]")
CATEGORIES = {"Cc", "Cf", "Cn", "Co", "Zl", "Zp"}
LINES = "\t\n\r"
# Characters of emoji, in their blocks and alone; digits are not among them.
EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf\u2934\u2935\u2b05-\u2b55"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
IN_EMOJI = re.compile(
    rf"(?<=[{EMOJI}])[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)|(?:(?<=[{EMOJI}])|(?<=[{EMOJI}]\ufe0f))\u200d(?=[{EMOJI}])"
)
JOINERS = "\u200c\u200d"
# Scripts in which a joiner changes what is read, as the names of their signs begin.
JOINED = {
    "ARABIC", "SYRIAC", "MONGOLIAN", "NKO", "MANDAIC", "ADLAM", "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU",
    "KANNADA", "MALAYALAM", "SINHALA", "KHMER", "MYANMAR", "TIBETAN", "BALINESE", "JAVANESE",
}  # fmt: skip
PLAIN = {ord(character): None for character in LINES}


def invisible_characters(text: str) -> Iterator[tuple[int, str]]:
    """(index, U+ number and name) of each invisible character, except those that scripts and emoji need."""
    if not INVISIBLE.search(text) and text.translate(PLAIN).isprintable():
        return
    taken = {match.start() for match in IN_EMOJI.finditer(text)}
    for index, character in enumerate(text):
        odd = character not in LINES and (unicodedata.category(character) in CATEGORIES or INVISIBLE.match(character))
        if odd and index not in taken and not (character in JOINERS and _joins(text, index)):
            yield index, f"U+{ord(character):04X} {unicodedata.name(character, '')}".strip()


def _joins(text: str, index: int) -> bool:
    beside = text[index - 1 : index] + text[index + 1 : index + 2]
    scripts = {unicodedata.name(character, "").partition(" ")[0] for character in beside if unicodedata.category(character)[0] in "LM"}
    letters = all(unicodedata.category(character)[0] in "LM" for character in beside)
    return len(beside) == 2 and letters and len(scripts) == 1 and scripts <= JOINED
