"""A frozen word list: what of it is refused because it could choose nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.invisible import invisible_characters
from empathy_eval.base.text import words
from empathy_eval.design.word_list import word_list_of

from tests.doubles.telling import WORDS

FAR = "stance, far"


def told() -> dict[str, Any]:
    value: dict[str, Any] = json.loads(WORDS.read_text())
    return value


@pytest.mark.parametrize("word", ["Care", "two words", "", "-", "ca_re"])
def test_a_word_that_no_text_is_counted_to_have_is_refused_by_its_place(word: str) -> None:
    value = told()
    value["contrasts"][FAR]["words"] = {"please": 1, word: 5}
    with pytest.raises(InputError) as caught:
        word_list_of(value, "LIST")
    (problem,) = caught.value.problems
    assert problem.where == f"LIST: contrasts: {FAR}: words" and f'no text has "{word}" among its words' in problem.what


def test_variants_of_another_contrast_are_refused_with_all_else_at_once() -> None:
    value = told()
    value["contrasts"][FAR] |= {"kind": "near_empathetic", "words": {f"Word{number}": 1 for number in range(7)}}
    with pytest.raises(InputError) as caught:
        word_list_of(value, "LIST")
    first, second = caught.value.problems
    assert first.what == 'compares "near_empathetic" with "far_apathetic", but this contrast is of "empathetic" and "far_apathetic"'
    assert '"Word4" and 2 more' in second.what


@pytest.mark.e2e
@pytest.mark.parametrize("language", ["en", "de", "zh"])
def test_whatever_a_text_is_counted_to_have_may_be_in_a_list(language: str) -> None:
    letters = (chr(number) for number in range(0x10000) if not 0xD800 <= number < 0xE000)
    # No text that is read holds a character that nobody sees.
    found = {word for letter in letters for word in words(f"A{letter} {letter}b", language) if not list(invisible_characters(word))}
    value = told() | {"language": language, "tokens": "empathy-eval" if language == "en" else "unicode-words"}
    value["contrasts"][FAR]["words"] = dict.fromkeys(found, 1)
    assert len(word_list_of(value, "LIST").contrasts[FAR].words) == len(found) > 10_000
