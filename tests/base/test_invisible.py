"""Signs that nobody sees are found wherever they stand, but those that scripts and emoji need."""

from __future__ import annotations

import io
import json
import os
import sys
import unicodedata
from collections.abc import Iterator
from itertools import groupby
from typing import cast

import pytest
from empathy_eval.base import schemas
from empathy_eval.base.errors import InputError, plain
from empathy_eval.base.invisible import CATEGORIES, INVISIBLE, LINES, invisible_characters
from empathy_eval.base.schemas import violations
from empathy_eval.base.streams import PlainOutput
from empathy_eval.completions.requests import character_flaws
from empathy_eval.raters.agreement.table import RatingTable


def odd(sign: str) -> bool:
    return sign not in LINES and (unicodedata.category(sign) in CATEGORIES or INVISIBLE.match(sign) is not None)


def tried() -> Iterator[str]:
    """All such signs; but in full, of each run of private or unassigned ones the first and the last."""
    kinds = groupby((sign for sign in map(chr, range(sys.maxunicode + 1)) if odd(sign)), unicodedata.category)
    for kind, run in kinds:
        signs = list(run)
        yield from signs if "LONG" in os.environ or kind not in ("Cn", "Co") else {signs[0], signs[-1]}


@pytest.mark.sampled
def test_no_such_sign_passes_any_border() -> None:
    row = {"item": "", "rater": "r", "criterion": "c", "rating": 1}
    for sign in tried():
        text = f"kind {sign}words"
        assert list(character_flaws(text)), f"answers, {sign!a}"
        assert not schemas._plainly_seen([{text: 1}]) and not schemas._plainly_seen({"a": [text]}), f"files, {sign!a}"
        assert any("nobody sees, at character 6" in what for _, what, _ in violations({**row, "item": text}, "ratings_row")), f"{sign!a}"
        assert plain(text) == f"kind {ascii(sign)[1:-1]}words" and plain(text, json.dumps).isascii()


def test_what_files_of_strangers_hide_is_told_with_its_place_and_what_raters_write_stays() -> None:
    row = {"context": [{"role": "seeker", "text": "I\u200b am"}], "reply": "Yes.\U000e0041"}
    assert list(violations(row, "own_text")) == [
        ("context[0]: text", '"I\u200b am" holds U+200B ZERO WIDTH SPACE, which nobody sees, at character 2', "leave it out"),
        ("reply", '"Yes.\U000e0041" holds U+E0041 TAG LATIN CAPITAL LETTER A, which nobody sees, at character 5', "leave it out"),
    ]
    assert schemas._plainly_seen({"a": ["\u4f60\u597d", "me\u0301tro", 1.5, None, {"b": True}]})
    assert [schemas.checks_characters(name) for name in ("reviews", "batch_answer", "ledger_row", "configuration", "pairs_row")] == [
        False, False, False, True, True,
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"item .* holds U\+2060 WORD JOINER"):
        RatingTable.of([("a\u2060", "r", 1), ("b", "r", 2)])


def test_what_is_printed_hides_nothing_and_json_says_what_it_said() -> None:
    text, shown = "\u202eevil\x7f \U000e0041 \ud83d\r \u0645\u06cc\u200c\u062e\u0648 \u3000\tend", io.StringIO()
    print(json.dumps([text], ensure_ascii=False), file=cast(io.StringIO, PlainOutput(shown)))
    assert json.loads(shown.getvalue()) == [text] and "\u0645\u06cc\u200c\u062e\u0648 \u3000" in shown.getvalue()
    assert not any(sign in shown.getvalue() for sign in "\u202e\x7f\U000e0041\ud83d\r")


@pytest.mark.e2e
def test_every_sign_that_nobody_sees_is_found_and_no_answer_may_hold_it() -> None:
    for number in range(sys.maxunicode + 1):
        sign = chr(number)
        assert bool(list(invisible_characters(f"a{sign}b"))) == odd(sign), hex(number)
    for sign in "\u200b\u2060\ufeff\u00ad\u3164\U000e0041\ue000\uffff\u2028\u2800\ufe0f\u200d":
        assert [one.reason for one in character_flaws(f"kind {sign}words")] == ["hidden_sign"], hex(ord(sign))


def test_it_is_named_with_its_place() -> None:
    assert list(invisible_characters("ab\u200bc")) == [(2, "U+200B ZERO WIDTH SPACE")]


@pytest.mark.parametrize(
    "text",
    [
        "\u0645\u06cc\u200c\u062e\u0648", "\u0915\u094d\u200d\u0937", "\u0dc1\u0dca\u200d\u0dbb", "\U0001f469\u200d\U0001f467",
        "\u2764\ufe0f", "\u2764\ufe0f\u200d\U0001f525", "1\ufe0f\u20e3", "a\tb\r\nc\u00a0d",
        # Persian and Urdu; Arabic with its marks; Hindi, Marathi, Bengali, Malayalam, Sinhala and Khmer.
        "\u0646\u0645\u06cc\u200c\u062f\u0627\u0646\u0645", "\u06a9\u062a\u0627\u0628\u200c\u0647\u0627",
        "\u0645\u064f\u062d\u064e\u0645\u0651\u064e\u062f",
        "\u0915\u094d\u200c\u0937", "\u0926\u0930\u094d\u200d\u092f\u093e", "\u09b0\u200d\u09cd\u09af\u09be",
        "\u0d05\u0d35\u0d28\u0d4d\u200d\u0d31\u0d46", "\u0dc1\u0dca\u200d\u0dbb\u0dd3",
        # A family, a woman who heals with her colour of skin, a rainbow on a flag, the flag of a country, a heart as a text.
        "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f469\U0001f3fd\u200d\u2695\ufe0f",
        "\U0001f3f3\ufe0f\u200d\U0001f308",
        "\U0001f1ee\U0001f1f7", "\u2764\ufe0e", "#\ufe0f\u20e3",
    ],
)  # fmt: skip
def test_what_a_script_or_an_emoji_needs_stays(text: str) -> None:
    assert not list(invisible_characters(text))


@pytest.mark.parametrize("text", ["a\u200db", "\u0645\u200c b", "\u2764\ufe0f\ufe0f", "1\ufe0f", "\u200d", "\u0915\u200d\u200d\u0937",
    # The flag of England and hidden words after a flag: tags are letters that nobody sees.
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "\U0001f3f4\U000e0041",
    # Where a line may break, in German, Khmer and Thai; a direction; forms of Han and Mongolian letters.
    "Auf\u00adlage", "\u1781\u17d2\u1789\u17bb\u17c6\u200b\u1785\u1784\u17cb", "\u0e01\u200b\u0e02", "\u05d0\u200f!",
    "\u845b\U000e0100", "\u1820\u180b",
])  # fmt: skip
def test_elsewhere_it_is_found(text: str) -> None:
    assert list(invisible_characters(text))
