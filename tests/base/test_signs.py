"""Signs that nobody sees are found wherever they stand, but those that scripts and emoji need."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from empathy_eval.base.signs import CATEGORIES, LINES, UNSEEN, unseen
from empathy_eval.completions.answer_text import sign_flaws


def test_every_sign_that_nobody_sees_is_found_and_no_answer_may_hold_it() -> None:
    for number in range(sys.maxunicode + 1):
        sign = chr(number)
        odd = sign not in LINES and (unicodedata.category(sign) in CATEGORIES or UNSEEN.match(sign) is not None)
        assert bool(list(unseen(f"a{sign}b"))) == odd, hex(number)
    for sign in "\u200b\u2060\ufeff\u00ad\u3164\U000e0041\ue000\uffff\u2028\u2800\ufe0f\u200d":
        assert [one.reason for one in sign_flaws(f"kind {sign}words")] == ["hidden_sign"], hex(ord(sign))


def test_it_is_named_with_its_place() -> None:
    assert list(unseen("ab\u200bc")) == [(2, "U+200B ZERO WIDTH SPACE")]


@pytest.mark.parametrize(
    "text",
    [
        "\u0645\u06cc\u200c\u062e\u0648", "\u0915\u094d\u200d\u0937", "\u0dc1\u0dca\u200d\u0dbb", "\U0001f469\u200d\U0001f467",
        "\u2764\ufe0f", "\u2764\ufe0f\u200d\U0001f525", "1\ufe0f\u20e3", "a\tb\r\nc\u00a0d",
    ],
)  # fmt: skip
def test_what_a_script_or_an_emoji_needs_stays(text: str) -> None:
    assert not list(unseen(text))


@pytest.mark.parametrize("text", ["a\u200db", "\u0645\u200c b", "\u2764\ufe0f\ufe0f", "1\ufe0f", "\u200d", "\u0915\u200d\u200d\u0937"])
def test_elsewhere_it_is_found(text: str) -> None:
    assert list(unseen(text))
