"""Stand-ins for the servers and gateways that people use: their words, their slots, their rate limits, and what they echo."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.doubles.jobs import Job, shorter
from tests.doubles.jobs import job as job
from tests.doubles.jobs import plain as plain
from tests.doubles.jobs import read_once as read_once
from tests.doubles.jobs import small_world as small_world
from tests.doubles.raw_server import (
    KEEP,
    Piece,
    RawServer,
    Received,
    Script,
    body_with,
    content_for,
    good,
    http,
    raw_server,
    refusal,
    usage_of,
)

DATA: dict[str, list[dict[str, Any]]] = yaml.safe_load((Path(__file__).parent / "real_servers.yaml").read_text())
# Who would wait for the whole patience would never end here.
PATIENT = {"patience_seconds": 600, "timeout_seconds": 5, "in_flight": 8}
SECRET = "sk-very-secret/0123456789+abc"  # noqa: S105


def name_of(case: dict[str, Any]) -> str:
    return str(case["name"])


def always(case: dict[str, Any], **headers: str) -> Script:
    return lambda _, request: refusal(case["status"], case["body"], **headers)


def at_first(case: dict[str, Any], requests: int = 1) -> Script:
    return lambda number, request: refusal(case["status"], case["body"]) if number < requests else good(request)


def finishes(job: Job, server: RawServer, **changes: Any) -> None:
    """A good endpoint finishes the build, and nothing in it is left of what was refused."""
    server.script = lambda _, request: good(request)
    assert job.run(server.url, **changes) == 0
    assert {outcome["status"] for outcome in job.outcomes()} == {"accepted"}


@pytest.mark.parametrize("case", DATA["refusals"], ids=name_of)
def test_a_server_that_refuses_everything_is_given_up_on_in_its_own_words(case: dict[str, Any], job: Job) -> None:
    with raw_server(always(case)) as server:
        assert job.run(server.url, model=PATIENT, dialogues=400) == 1
        assert case["words"] in " ".join(job.said.split()) and "Fix:" in job.said
        assert len(server.requests) < 20 + 8 + 8, "sixty dialogues were asked for"
        assert job.seconds < 20


@pytest.mark.parametrize("status", [402, 422, 400])
def test_what_can_not_be_mended_by_asking_again_stops_the_run_at_once(status: int, job: Job) -> None:
    case = next(one for one in DATA["refusals"] if one["status"] == status)
    with raw_server(always(case)) as server:
        assert job.run(server.url, model=PATIENT, dialogues=12) == 1
        assert len(server.requests) <= 8
        finishes(job, server, dialogues=12)


@pytest.mark.parametrize("case", DATA["failures"], ids=name_of)
def test_a_server_that_only_ever_fails_is_given_up_on_after_a_while(
    case: dict[str, Any], job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorter(monkeypatch, failing=0.5)
    with raw_server(always(case, Retry_After="0.05")) as server:
        assert job.run(server.url, model=PATIENT, dialogues=6) == 1
        assert case["words"] in " ".join(job.said.split()) and 0.4 < job.seconds < 20
        finishes(job, server, dialogues=6)


def test_a_server_that_has_answered_once_is_waited_for(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    shorter(monkeypatch, failing=0.2)
    answered: list[float] = []

    def script(_: int, request: Received) -> Iterable[Piece]:
        answered.append(time.monotonic())
        down = 0 < time.monotonic() - answered[0] < 1.5 and len(answered) > 1
        return refusal(503, '{"error": "restarting"}', Retry_After="0.1") if down else good(request)

    with raw_server(script) as server:
        assert job.run(server.url, model=PATIENT, dialogues=2) == 0
        assert {outcome["status"] for outcome in job.outcomes()} == {"accepted"} and job.seconds > 1.4


@pytest.mark.e2e
def test_a_server_that_refuses_some_requests_and_answers_others_is_not_given_up_on(job: Job) -> None:
    def script(number: int, request: Received) -> Iterable[Piece]:
        return good(request) if number == 0 else refusal(400, '{"error": {"message": "too many words"}}')

    with raw_server(script) as server:
        assert job.run(server.url, model=PATIENT, dialogues=22) == 1, "more than are refused before one gives up"
        assert {outcome["status"] for outcome in job.outcomes()} == {"missing"} and len(job.outcomes()) == 22
        assert {request.asked["messages"][1]["content"] for request in server.requests if request.kind == "dialogue"}
        assert sum(request.kind == "dialogue" for request in server.requests) == 22
        finishes(job, server, dialogues=22)


@pytest.mark.parametrize("case", DATA["hiccups"], ids=name_of)
def test_a_hiccup_is_no_answer(case: dict[str, Any], job: Job, plain: list[dict[str, Any]]) -> None:
    with raw_server(at_first(case)) as server:
        assert job.run(server.url, model=PATIENT) == 0
        assert job.outcomes() == plain and server.bodies()[0] == server.bodies()[1]


def test_content_in_parts_with_thinking_and_an_end_by_another_name_are_taken(job: Job, plain: list[dict[str, Any]]) -> None:
    def script(_: int, request: Received) -> Iterable[Piece]:
        text = json.dumps(content_for(request))
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "The user wants JSON."}]}
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": [thinking, {"type": "text", "text": text}]},
            "finish_reason": "eos",
        }
        return http(json.dumps({"choices": [choice], "usage": usage_of(request, text)}).encode()), KEEP

    with raw_server(script) as server:
        assert job.run(server.url) == 0 and job.outcomes() == plain


@pytest.mark.e2e
def test_a_local_server_with_four_slots_gets_as_few_requests_at_once_as_it_can_answer(job: Job) -> None:
    slots = threading.Semaphore(4)

    def script(_: int, request: Received) -> Iterable[Piece]:
        # Whoever has gone while waiting for a slot is not worked on: the first piece is a look at the connection.
        arrived = time.monotonic()
        while not slots.acquire(blocking=False):
            yield 0.005
            if time.monotonic() - arrived > 20:
                return
        try:
            yield 0.15
            yield http(body_with(request))
        finally:
            slots.release()
        yield KEEP

    with raw_server(script) as server:
        model = {"in_flight": 64, "timeout_seconds": 0.6, "patience_seconds": 60}
        assert job.run(server.url, model=model, dialogues=12) == 0, job.said
        assert {outcome["status"] for outcome in job.outcomes()} == {"accepted"}
        assert re.search(r"in[ _]flight", job.said), "that it slowed down is told"
        lost = len(server.requests) - len(job.rows("key"))
        assert lost < 200, f"{lost} requests timed out"


ABSURD = [
    "99999h", "1e309", "-5", "nan", "inf", "Fri, 31 Dec 9999 23:59:59 GMT", "Sun, 01 Jan 0001 00:00:00 GMT", "9" * 400, "soon", "1h" * 999,
]  # fmt: skip


@pytest.mark.parametrize("value", ABSURD, ids=lambda value: value[:30])
def test_an_absurd_time_until_a_window_resets_is_waited_for_no_longer_than_any_pause(
    value: str, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorter(monkeypatch, pause=0.3)
    names = [f"x_ratelimit_{what}_{unit}" for what in ("remaining", "reset") for unit in ("requests", "tokens")]
    headers = {name: "0" if "remaining" in name else value for name in names}

    def script(_: int, request: Received) -> Iterable[Piece]:
        return http(body_with(request), **headers), KEEP

    with raw_server(script) as server:
        assert job.run(server.url, model={"patience_seconds": 1}) == 0
        assert job.seconds < 12
        finishes(job, server)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("value", ABSURD, ids=lambda value: value[:30])
def test_an_absurd_time_to_come_back_after_is_no_longer_wait_than_patience(value: str, status: int, job: Job) -> None:
    def script(number: int, request: Received) -> Iterable[Piece]:
        return refusal(status, '{"error": "slow down"}', Retry_After=value) if number == 0 else good(request)

    with raw_server(script) as server:
        assert job.run(server.url, model={"patience_seconds": 1}) in (0, 1)
        assert job.seconds < 8
        finishes(job, server)


ECHOES = ['{{"error": {{"message": "{}", "code": "x{}"}}}}', '{{"detail": "Bearer {}"}}', "no: {}", '{{"error": ["{}"]}}']


@pytest.mark.parametrize("status", [200, 400, 401, 402, 403, 404, 422, 429, 500])
@pytest.mark.parametrize("shape", ECHOES)
def test_a_key_that_an_endpoint_says_back_is_nowhere(status: int, shape: str, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", SECRET)
    body = shape.format(f"wrong key {SECRET} (authorization: Bearer {SECRET})", SECRET)
    with raw_server(lambda _, request: refusal(status, body, X_Echo=SECRET)) as server:
        assert job.run(server.url, model={"api_key_env": "TEST_KEY"}) == 1
        assert SECRET.encode() in server.requests[0].head
        assert SECRET not in job.said and SECRET.encode() not in job.left()
        assert SECRET.replace("/", "\\/") not in job.said


def test_words_of_a_server_are_shown_in_part_and_as_plain_text(job: Job) -> None:
    body = json.dumps({"error": {"message": "\x1b[31mred\x07 " + "blah " * 100_000}})
    with raw_server(lambda _, request: refusal(400, body)) as server:
        assert job.run(server.url, model=PATIENT, dialogues=40) == 1
        assert len(job.said) < 20_000 and "blah" in job.said
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", job.said), "signs that move a terminal are not passed on"


def test_headers_and_query_of_an_endpoint_are_sent_with_values_from_the_environment(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_TITLE", "a title")
    model = {"headers": {"X-Title": "${TEST_TITLE}", "X-Plain": "as it is"}, "query": {"api-version": "2024-10-21", "who": "${TEST_TITLE}"}}
    with raw_server() as server:
        assert job.run(server.url, model=model) == 0, job.said
        for request in server.requests:
            line, head = request.head.split(b"\r\n")[0], request.head.lower()
            assert b"\r\nx-title: a title" in head and b"\r\nx-plain: as it is" in head
            assert b"api-version=2024-10-21" in line and (b"who=a%20title" in line or b"who=a+title" in line)
        before = job.written()
        assert b"a title" not in job.left().replace((job.folder / "config.yaml").read_bytes(), b"")
        # They are how a request is delivered, not what is asked: without them the same answers are found.
        assert job.run(server.url, "--offline") == 0 and job.written() == before


def test_a_variable_that_is_not_set_is_told_before_anything_is_sent(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_TITLE", raising=False)
    with raw_server() as server:
        assert job.run(server.url, model={"headers": {"X-Title": "${TEST_TITLE}"}}) == 2
        assert "TEST_TITLE" in job.said and server.requests == []


UNSENDABLE = [{"X-A": "a\nX-B: b"}, {"X A": "b"}, {"X-A": 7}, {"X-A": "\u2026"}, ["X-A"], {"Content-Length": "3"}]


@pytest.mark.parametrize("headers", UNSENDABLE, ids=str)
def test_a_header_that_cannot_be_sent_is_told_before_anything_is_sent(headers: Any, job: Job) -> None:
    with raw_server() as server:
        assert job.run(server.url, model={"headers": headers}) == 2
        assert "headers" in job.said and server.requests == []


KEYS = ["sk-abc\n", "sk-abc\nX-Other: 1", "sk-abc\u00e9\u20ac", "\u201csk-abc\u201d", "sk-abc\r", "sk-abc def"]


@pytest.mark.parametrize("key", KEYS, ids=ascii)
def test_a_key_that_cannot_stand_in_a_header_is_told_before_anything_is_sent(key: str, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", key)
    with raw_server() as server:
        assert job.run(server.url, model={"api_key_env": "TEST_KEY"}) == 2
        assert "TEST_KEY" in job.said and "abc" not in job.said and server.requests == []


ADDRESSES = [
    "http://user:secret-pw@{}/v1", "http://secret-pw@{}/v1", "ftp://{}/v1", "file:///{}", "{}/v1", "http://", "http://[::1/v1",
    "http://{}/v1?key=secret-pw",
]  # fmt: skip


@pytest.mark.parametrize("way", ["configuration", "option", "variable"])
@pytest.mark.parametrize("url", ADDRESSES)
def test_an_address_that_cannot_be_used_or_holds_a_secret_is_told_before_anything_is_sent(
    url: str, way: str, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    with raw_server() as server:
        address = url.format(server.url.removeprefix("http://").removesuffix("/v1"))
        if way == "variable":
            monkeypatch.setenv("OPENAI_BASE_URL", address)
            status = job.run("")
        else:
            status = job.run(address) if way == "configuration" else job.run(server.url, "--base-url", address)
        assert status == 2
        assert "secret-pw" not in job.said and server.requests == []


@pytest.mark.parametrize(("structure", "sent"), [("json_object", {"type": "json_object"}), ("instruction", None)])
def test_structure_is_asked_for_as_configured(structure: str, sent: Any, job: Job) -> None:
    with raw_server() as server:
        assert job.run(server.url, model={"structure": structure}) == 0, job.said
        assert all(request.asked.get("response_format") == sent for request in server.requests)
        assert all("json" in json.dumps(request.asked["messages"]).lower() for request in server.requests), (
            "some endpoints insist on the word"
        )


@pytest.mark.e2e
def test_a_model_whose_first_answers_are_all_refused_ends_the_build_and_keep_going_goes_on(job: Job) -> None:
    odd = json.dumps({"choices": [{"message": {"content": "no JSON"}, "finish_reason": "stop"}], "usage": {}}).encode()
    with raw_server(lambda _, request: (http(odd), KEEP)) as server:
        assert job.run(server.url, dialogues=400) == 1
        assert "the first 20 dialogues all failed" in job.said and "--keep-going" in job.said
        asked = len(server.requests)
        assert asked < 300 * 4, "those that are worked on at once (256), and no others, were begun"
        assert job.run(server.url, "--keep-going", dialogues=400) == 0
        assert {one["status"] for one in job.outcomes()} == {"rejected"} and len(server.requests) > asked
        before = job.written()
        assert job.run(server.url, "--offline", dialogues=400) == 0 and job.written() == before
