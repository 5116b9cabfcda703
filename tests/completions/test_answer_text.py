"""From the text of an answer to a value: every fault has a name, and none takes long."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from empathy_eval.completions.asker import evaluate_answer
from empathy_eval.completions.requests import Completion, NoAnswer, parse_json_answer, strip_wrapping
from empathy_eval.design.language import english
from empathy_eval.generation.checks import built_in
from hypothesis import given
from hypothesis import strategies as st


def found(text: str, finish: str = "stop") -> tuple[Any, list[str]]:
    value, flaws = parse_json_answer(Completion(text, finish, "m"))
    return value, [flaw.reason for flaw in flaws]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no", "not_json"),
        ("NaN", "not_json"),
        ("[" * 100_000, "too_long"),
        ("[" * 40_000, "too_deep"),
        ('{"a":' * 70 + "1" + "}" * 70, "too_deep"),
        ('{"text": "a", "text": "b"}', "duplicate_key"),
        (json.dumps({"text": "bell \a"}), "control_sign"),
        (json.dumps({"text": "nul \0"}), "control_sign"),
        (json.dumps({"text": "half \ud83d"}), "surrogate"),
        (json.dumps({"text": "turned \u202e"}), "bidirectional_sign"),
        (json.dumps({"text\u2066": "in a name"}), "bidirectional_sign"),
        (json.dumps({"text": "no" + "!" * 8000}), "run_of_signs"),
        (json.dumps({"text": "?!" * 60}), "run_of_signs"),
        (json.dumps({"text": "a" * 60 + "b" * 60}), ""),
        (json.dumps({"text": "ab" * 600}), "run_of_signs"),
        (json.dumps({"text": "x " * 30_000}), "too_long"),
        (json.dumps({"text": "tab\tand\r\nlines, [{[{[{ in a text: ok"}), ""),
        ("1" * 5000, "not_json"),
    ],
)
def test_what_no_text_has_is_named(text: str, reason: str) -> None:
    assert found(text)[1] == [reason] * bool(reason)


@pytest.mark.parametrize("finish", ["stop", "eos", "eos_token", "END_TURN", "Stop", "end"])
def test_a_normal_end_under_another_name_is_one(finish: str) -> None:
    assert found("1", finish) == (1, [])


@pytest.mark.parametrize("finish", ["length", "unknown", "tool_calls", "MAX_TOKENS"])
def test_any_other_end_is_a_flaw_with_its_word(finish: str) -> None:
    assert found("1", finish)[1] == [f"finish_{finish}"]


@pytest.mark.parametrize(
    "wrapped",
    ["\ufeff1", " \ufeff 1 ", "<think>2\n</think>1", "<think></think>\n```json\n1\n```", "```\n1```", "\ufeff<thinking>{</thinking>1"],
)
def test_what_endpoints_put_around_json_is_taken_off(wrapped: str) -> None:
    assert found(wrapped) == (1, [])


@pytest.mark.parametrize("text", ["1 ```", "words ```json\n1\n```", "<think>1", "1</think>", "<b>1</b>"])
def test_nothing_else_is_taken_off(text: str) -> None:
    assert strip_wrapping(text) == text and found(text)[1] == ["not_json"]


@pytest.mark.e2e
@given(st.text(st.characters()) | st.recursive(st.none() | st.text() | st.floats(), lambda one: st.lists(one)).map(json.dumps))
def test_any_text_is_a_value_or_has_flaws(text: str) -> None:
    value, flaws = parse_json_answer(Completion(text, "stop", "m"))
    assert value is not None or flaws or strip_wrapping(text).strip() == "null"


async def test_what_a_check_trips_over_is_a_flaw_of_the_answer_and_what_is_no_judgement_goes_on() -> None:
    async def trips(value: Any) -> Any:
        raise value

    async def judge(error: Exception) -> Any:
        return await evaluate_answer(Completion('{"text": "kind"}', "stop", "m"), "variant_answer", lambda value: trips(error))

    verdict = await judge(KeyError("strategy"))
    assert [flaw.reason for flaw in verdict] == ["not_judged"] and "KeyError" in verdict[0].detail
    for error in (NoAnswer("later"), OSError("disk")):
        with pytest.raises(type(error)):
            await judge(error)


async def test_a_value_with_a_hundred_thousand_faults_is_told_in_a_moment() -> None:
    async def never(value: Any) -> Any:
        raise AssertionError(value)

    begin = time.process_time()
    text = json.dumps({"description": "", "turns": [0] * 15_000})
    flaws = await evaluate_answer(Completion(text, "stop", "m"), "dialogue_answer", never)
    assert isinstance(flaws, list) and len(flaws) >= 100 and time.process_time() - begin < 5


def test_the_longest_text_of_signs_that_passes_is_tokenised_in_seconds() -> None:
    text = " ".join("".join(chr(33 + (place * 7 + one) % 15) for one in range(99)) for place in range(480))[:40_000]
    built_in.harmless("warm up", english())
    begin = time.process_time()
    assert found(json.dumps({"text": text}))[1] == []
    built_in.harmless(text, english())
    assert time.process_time() - begin < 5
