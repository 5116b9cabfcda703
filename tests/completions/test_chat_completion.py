"""From a body to a completion: what is said, what is not said, what was paid for, and what the budget counts."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from empathy_eval.completions.models.transport import MAX_ERROR_TEXT, NoCompletion, completion_of, error_text
from empathy_eval.completions.requests import Completion, Usage
from hypothesis import given
from hypothesis import strategies as st

WORST = Usage(100, 0, 50)


def body(content: Any = "words", finish: Any = "stop", usage: Any = None, **message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": content, **message}, "finish_reason": finish}], "usage": usage}


def read(value: Any) -> Completion:
    return completion_of(copy.deepcopy(value), "m", WORST)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 80, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 30}}, Usage(80, 30, 20)),
        (None, WORST),
        ({}, WORST),
        ([], WORST),
        ("many", WORST),
        ({"prompt_tokens": 80}, Usage(80, 0, 50)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, WORST),
        ({"prompt_tokens": -5, "completion_tokens": -5}, WORST),
        ({"prompt_tokens": 1.5, "completion_tokens": 2.5}, WORST),
        ({"prompt_tokens": "80", "completion_tokens": True}, WORST),
        ({"prompt_tokens": 1e30, "completion_tokens": float("nan")}, WORST),
        ({"prompt_tokens": 101, "completion_tokens": 51}, WORST),
        ({"prompt_tokens": 80, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 81}}, Usage(100, 0, 20)),
        ({"prompt_tokens": 80.0, "completion_tokens": 20, "prompt_tokens_details": 7}, Usage(80, 0, 20)),
    ],
)
def test_tokens_that_are_not_counted_or_cannot_be_are_the_worst_case(usage: Any, expected: Usage) -> None:
    found = read(body(usage=usage)).usage
    assert found == expected and all(type(one) is int for one in (found.input_tokens, found.cached_tokens, found.output_tokens))


@pytest.mark.parametrize(
    ("value", "text", "finish"),
    [
        (body(), "words", "stop"),
        (body(finish=None), "words", "stop"),
        (body(finish="EOS"), "words", "EOS"),
        (body(finish=5), "words", "unknown"),
        (body(finish="a reason\nin many words"), "words", "unknown"),
        (body([{"type": "thinking", "thinking": []}, {"type": "text", "text": "wo"}, 5, {"type": "text", "text": "rds"}]), "words", "stop"),
        (body(None, refusal="I will not"), "I will not", "refusal"),
        (body(None, "length"), "", "length"),
        (body(" ", "content_filter"), "", "content_filter"),
        (body(5, usage={"completion_tokens": 7}), "", "stop"),
        ({"choices": [], "usage": {"completion_tokens": 7}}, "", "empty"),
        ({"choices": {"0": 1}, "usage": {"completion_tokens": 7}}, "", "empty"),
        (body("half \ud83d"), "half \\ud83d", "stop"),
        ({**body(), "choices": body()["choices"] + [5] * 100_000}, "words", "stop"),
    ],
)
def test_what_was_worked_on_is_an_answer_with_what_could_be_read_of_it(value: Any, text: str, finish: str) -> None:
    found = read(value)
    assert (found.text, found.finish) == (text, finish)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([], "no chat completion: list"),
        ("a page", "no chat completion: a page"),
        (None, "no chat completion: NoneType"),
        ({"error": {"code": 502, "message": "upstream"}}, "an error in the place of an answer: 502 upstream"),
        ({"detail": [{"msg": "no"}, {"msg": "neither"}]}, "no usable content: no; neither"),
        ({**body(), "error": "overloaded"}, "an error in the place of an answer: overloaded"),
        (body({"text": "words"}), "no usable content; choices[0]: message: content: "),
        (body([{"type": "text", "text": 5}] * 5000), "no usable content; choices[0]: message: content: "),
        (body(""), "no usable content"),
        ({"choices": [{"message": [1]}]}, "no usable content; choices[0]: message: [1] is not of type"),
        ({"choices": None, "usage": {"completion_tokens": 0}}, "no usable content"),
    ],
)
def test_what_holds_nothing_that_was_paid_for_is_no_answer(value: Any, why: str) -> None:
    with pytest.raises(NoCompletion) as caught:
        read(value)
    assert why in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["choices", "message", "content", "usage", "error", "x"]), inner),
)


@pytest.mark.e2e
@given(st.one_of(JSON, JSON.map(body), JSON.map(lambda one: body(usage=one)), JSON.map(lambda one: body(finish=one))))
def test_any_value_is_a_completion_that_can_be_stored_or_none(value: Any) -> None:
    try:
        found = read(value)
    except NoCompletion as error:
        assert str(error).isprintable()
        return
    found.text.encode()
    assert 0 <= found.usage.cached_tokens <= found.usage.input_tokens <= 100 and 0 <= found.usage.output_tokens <= 50


@pytest.mark.e2e
@given(JSON)
def test_what_a_provider_says_is_one_short_line_without_signs_that_move_a_cursor(value: Any) -> None:
    line = error_text(value)
    assert len(line) <= MAX_ERROR_TEXT and not any(ord(sign) < 32 or 0x202A <= ord(sign) <= 0x202E for sign in line)
