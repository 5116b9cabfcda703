"""What a status means, whose words are shown, and when an endpoint that never answered is given up."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai
import pytest
from empathy_eval.base.errors import EmpathyEvalError, InputError
from empathy_eval.completions.models.endpoint_health import ALIKE, FAILING_SECONDS, EndpointHealth
from empathy_eval.completions.models.transport import RetryableError, check_access, classify_status, with_environment
from empathy_eval.completions.requests import NoAnswer
from empathy_eval.design.endpoints import ModelConfig

CONFIG = ModelConfig("openai", "m", "e", api_key_env="A_KEY", headers={"x-gate": "gate ${A_GATE}"})


def status(code: int, content: Any, **headers: str) -> RetryableError | NoAnswer | EmpathyEvalError:
    request = httpx2.Request("POST", "http://localhost/v1/chat/completions")
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    response = httpx2.Response(code, content=raw, headers=headers, request=request)
    return classify_status(openai.APIStatusError("", response=response, body=None), CONFIG)


@pytest.mark.parametrize(
    ("code", "content", "words"),
    [
        (402, {"error": {"message": "pay first"}}, "the quota is used up (402: pay first)"),
        (422, {"error": {"message": "Budget has been exceeded! Current cost: 3"}}, "(422: Budget has been exceeded! Current cost: 3)"),
        (
            429,
            {"error": {"code": "insufficient_quota", "message": "none left"}},
            "used up (429: insufficient_quota none left)",
        ),
        (400, {"error": {"message": "Invalid model name passed in model=m"}}, 'Invalid model name passed in model=m), model "m"'),
        (404, {"detail": "Not Found"}, 'does not have this (404: Not Found), model "m"'),
        (401, b"<html><b>who</b> are you</html>", "refuses the key in A_KEY (401: who are you)"),
        (403, {"error": "not from here"}, "may not do this (403: not from here)"),
    ],
)
def test_what_makes_going_on_senseless_is_told_with_the_servers_own_words(code: int, content: Any, words: str) -> None:
    found = status(code, content)
    assert isinstance(found, EmpathyEvalError) and words in str(found) and found.exit_code == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"detail": [{"loc": ["body"], "msg": "field required"}]}, "field required"),
        ({"error": "as text"}, "as text"),
        ({"error": {"message": ["a", "list"]}}, "a; list"),
        ([{"error": {"code": 3, "message": "of Google's"}}], "3 of Google's"),
        (b"plain\n text", "plain text"),
        (b"\xff\x00\x1b[2J", "� [2J"),
        (b"[" * 100_000, "[" * 199 + "…"),
        (b"<" * 65_536, "<" * 199 + "…"),
        ({"message": "word " * 500}, ("word " * 500)[:199] + "…"),
    ],
)
def test_the_words_of_a_refusal_are_found_wherever_servers_put_them_and_are_bounded(content: Any, words: str) -> None:
    found = status(400, content)
    assert isinstance(found, NoAnswer) and str(found) == f"refused with 400: {words}"


def test_the_key_and_what_headers_take_from_the_environment_are_in_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "sk-123456789")
    monkeypatch.setenv("A_GATE", "gate-secret")
    for code in (400, 401, 403, 404, 500, 307):
        found = str(status(code, {"error": "key sk-123456789 through gate-secret"}, location="http://gate-secret/"))
        assert "sk-123" not in found and "gate-secret" not in found and "***" in found


def test_a_wait_that_is_asked_for_is_told_and_no_wait_is_absurd() -> None:
    for after, wait in (("7", 7.0), ("1e309", None), ("nan", None), ("-5", 0.0), ("soon", None), ("9" * 500, 1e7)):
        found = status(503, {}, **{"retry-after": after})
        assert isinstance(found, RetryableError) and found.wait == wait


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_endpoint_that_refuses_the_first_requests_with_one_status_is_given_up_whatever_its_words() -> None:
    reception = EndpointHealth(CONFIG)
    same, other = [NoAnswer(f"refused with 400: no (request {number})") for number in range(ALIKE)], NoAnswer("refused with 422: no")
    for refusal in [other, *same[1:], other, *same[1:]]:
        assert reception.record_refusal(refusal) is None
    assert "refused the first 20 requests for the same reason: refused with 400: no (request 0)" in str(reception.record_refusal(same[0]))
    reception.answer_received()
    assert reception.record_refusal(same[0]) is None


def test_an_endpoint_that_only_fails_is_given_up_after_a_minute_unless_it_has_answered() -> None:
    clock = Clock()
    failing, busy = RetryableError("503: loading", failing=True), RetryableError("429: busy")
    for between in (None, busy):
        reception = EndpointHealth(CONFIG, clock)
        assert reception.record_refusal(failing) is None
        clock.now += FAILING_SECONDS
        if between:
            assert reception.record_refusal(between) is None
            assert reception.record_refusal(failing) is None
            clock.now += FAILING_SECONDS
        assert "only with server errors for 60 s: 503: loading" in str(reception.record_refusal(failing))
    reception.answer_received()
    assert reception.record_refusal(failing) is None


def test_what_the_environment_holds_that_no_header_can_is_refused_unshown(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("with blank", "line\nend", "“curly”", "Schlüssel"):
        monkeypatch.setenv("A_KEY", key)
        monkeypatch.setenv("A_GATE", key)
        with pytest.raises(InputError) as caught:
            check_access(CONFIG)
        assert "the key in A_KEY holds a character that a header cannot contain" in str(caught.value) and key not in str(caught.value)
    monkeypatch.delenv("A_KEY")
    monkeypatch.delenv("A_GATE")
    with pytest.raises(InputError, match="x-gate: the environment variable A_GATE is not set"):
        check_access(CONFIG)
    monkeypatch.setenv("A_GATE", "open")
    check_access(CONFIG)
    assert with_environment(CONFIG.headers) == {"x-gate": "gate open"}
