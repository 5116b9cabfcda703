"""Signs that a reader does not see, and that a program reads: found by one rule, wherever texts of others come in."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

# Default_Ignorable_Code_Point, as DerivedCoreProperties.txt of Unicode 15 lists it, and the blank of Braille.
IGNORED = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\u2800"
)
UNSEEN = re.compile(f"[{IGNORED}]")
CATEGORIES = {"Cc", "Cf", "Cn", "Co", "Zl", "Zp"}
LINES = "\t\n\r"
# Signs that emoji are made of, in their blocks and alone; digits are not among them.
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


def unseen(text: str) -> Iterator[tuple[int, str]]:
    """(place, its U+ number and name) of each sign of a text that nobody sees, but those that scripts and emoji are written with."""
    if not UNSEEN.search(text) and text.translate(PLAIN).isprintable():
        return
    taken = {one.start() for one in IN_EMOJI.finditer(text)}
    for place, sign in enumerate(text):
        odd = sign not in LINES and (unicodedata.category(sign) in CATEGORIES or UNSEEN.match(sign))
        if odd and place not in taken and not (sign in JOINERS and _joins(text, place)):
            yield place, f"U+{ord(sign):04X} {unicodedata.name(sign, '')}".strip()


PLAIN = {ord(one): None for one in LINES}


def _joins(text: str, place: int) -> bool:
    beside = text[place - 1 : place] + text[place + 1 : place + 2]
    scripts = {unicodedata.name(one, "").partition(" ")[0] for one in beside if unicodedata.category(one)[0] in "LM"}
    letters = all(unicodedata.category(one)[0] in "LM" for one in beside)
    return len(beside) == 2 and letters and len(scripts) == 1 and scripts <= JOINED
