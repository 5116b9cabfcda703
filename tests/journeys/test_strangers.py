"""What strangers send in place of an answer: nothing of it is a traceback, and all of it has the fate that the data file says."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from empathy_eval.base.hashing import derived_random
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.doubles.jobs import Job
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
    expanded,
    good,
    http,
    raw_server,
    usage_of,
)

# What a body is made of, from the outside in; a case stands in for one of them.
WHOLE = {
    "ANSWER": '{"id": "a", "object": "chat.completion", "choices": CHOICES, "usage": USAGE}',
    "CHOICES": '[{"index": 0, "message": MESSAGE, "finish_reason": FINISH}]',
    "MESSAGE": '{"role": "assistant", "content": CONTENT}',
    "CONTENT": "GOOD",
    "FINISH": '"stop"',
}
MANY = "100000000"


class WithContent(str):
    """A text that is a content, not a body."""


@dataclass(frozen=True)
class Odd:
    """An odd answer and its fate."""

    section: str
    name: str
    fate: str
    json: str = ""
    text: str = ""
    usage: str = ""
    reason: str = ""
    worst: str = ""

    def content(self, request: Received) -> str:
        """The text of the content, where that is what is odd."""
        value, escaped = content_for(request), request.kind == "dialogue"
        if self.section == "reply":
            place = next(turn for turn in value["turns"] if turn["role"] == "helper") if "turns" in value else value
            place["text"] += expanded(self.text)
        # In a dialogue the sign is written as an escape in the content's JSON, in a variant it stands there itself.
        text = json.dumps(value, ensure_ascii=escaped)
        return expanded(self.text).replace("GOOD", text) if self.section == "text" else text

    def body(self, request: Received) -> bytes:
        """The whole body."""
        content = self.content(request)
        usage = self.usage or '{"prompt_tokens": INPUT, "completion_tokens": OUTPUT}'
        parts = {**WHOLE, "USAGE": self.json if self.section == "usage" else usage}
        if (stands_in_for := self.section.upper()) in parts:
            parts[stands_in_for] = self.json
        body = self.json if self.section == "body" else parts["ANSWER"]
        for name, part in parts.items():
            body = body.replace(name, part)
        half = len(content) // 2
        parts = {"GOOD": content, "HEAD": content[:half], "TAIL": content[half:]}
        body = expanded(body)
        for name, part in parts.items():
            body = body.replace(name, json.dumps(part))
        counts = usage_of(request, content)
        body = body.replace("INPUT", str(counts["prompt_tokens"])).replace("OUTPUT", str(counts["completion_tokens"]))
        return body.encode()

    def once(self, kind: str = "dialogue") -> Script:
        """This answer to the first request of a kind, good ones to all others."""
        count = itertools.count()

        def script(_: int, request: Received) -> Iterable[Piece]:
            first = request.kind == kind and next(count) == 0
            return (http(self.body(request)), KEEP) if first else good(request)

        return script


DATA: dict[str, list[dict[str, Any]]] = yaml.safe_load((Path(__file__).parent / "odd_answers.yaml").read_text())
CASES = [Odd(section, **case) for section, cases in DATA.items() for case in cases]


def named(case: Odd) -> str:
    return f"{case.section}: {case.name}"


def settled(job: Job, server: RawServer, plain: list[dict[str, Any]]) -> None:
    """Replays the ledger without the endpoint to the same end; where something is missing, a good endpoint finishes the build."""
    sent, before = len(server.requests), job.written()
    finished = job.outcomes()[0]["status"] == "accepted"
    assert job.run(server.url, "--offline") == (0 if finished else 1)
    assert len(server.requests) == sent, "offline sends nothing"
    if finished:
        assert job.written() == before
        return
    server.script = lambda _, request: good(request)
    assert job.run(server.url, "--budget-tokens", MANY) == 0
    assert job.outcomes() == plain and server.bodies()[0] == server.bodies()[1], "it was asked again, and nothing else of it is left"


def check_fate(job: Job, server: RawServer, case: Odd, status: int, plain: list[dict[str, Any]]) -> None:
    """That what became of an odd answer to the first request of a kind is its fate."""
    outcome, fate = job.outcomes()[0], case.fate
    assert (outcome["status"], status) in (("accepted", 0), ("missing", 1)), job.said
    if fate == "taken":
        assert job.outcomes() == plain
    elif fate == "flaw":
        assert status == 0 and outcome["failures"], "it was taken for a good answer, or for none"
        first = outcome["failures"][0]["reasons"]
        assert first and all(re.fullmatch(r"[A-Za-z0-9_-]{1,60}", reason) for reason in first)
        assert case.reason in ("", *first)
    elif fate == "none":
        assert status == 1 and len(server.requests) == 1 and job.rows("key") == []
        assert job.reserved() > 0, "it may have been charged"
    assert job.cpu_seconds < 6, "something was judged for too long"


@pytest.mark.parametrize("case", CASES, ids=named)
def test_an_odd_answer_has_its_fate(case: Odd, job: Job, plain: list[dict[str, Any]]) -> None:
    with raw_server(case.once()) as server:
        status = job.run(server.url, "--budget-tokens", MANY)
        check_fate(job, server, case, status, plain)
        if case.section == "usage" and case.fate == "taken":
            request = server.requests[0]
            honest = usage_of(request, json.dumps(content_for(request)))
            counted = next(row for kind, *row in job.rows("kind, input_tokens, cached_tokens, output_tokens") if kind == "self_chat")
            read = len(request.body) if case.worst in ("input", "both") else honest["prompt_tokens"]
            written = 2000 if case.worst in ("output", "both") else honest["completion_tokens"]
            assert counted == [read, 0, written]
        settled(job, server, plain)


REPLIES = [case for case in CASES if case.section == "reply"]


@pytest.mark.parametrize("case", REPLIES, ids=named)
def test_an_odd_reply_of_a_variant_has_its_fate(case: Odd, job: Job, plain: list[dict[str, Any]]) -> None:
    with raw_server(case.once("far")) as server:
        status = job.run(server.url)
        check_fate(job, server, case, status, plain)
        settled(job, server, plain)


@pytest.mark.parametrize("case", REPLIES, ids=named)
def test_an_odd_reply_that_rules_would_rewrite_blocks_nothing(case: Odd, job: Job, plain: list[dict[str, Any]]) -> None:
    with raw_server(case.once()) as server:
        status = job.run(server.url, near_apathetic="rules-then-model")
        check_fate(job, server, case, status, plain)


def test_a_server_that_says_something_odd_every_time_leaves_items_rejected_or_missing_and_a_good_one_goes_on(job: Job) -> None:
    seen, flaws = Counter[bytes](), [case for case in CASES if case.fate == "flaw"]

    def script(_: int, request: Received) -> Iterable[Piece]:
        # What is said depends on what was asked, and how often, not on how fast: so the fates are the same on every machine.
        seen[request.body] += 1
        drawn = derived_random(0, request.body.decode(), seen[request.body])
        return http(drawn.choice(CASES if drawn.random() < 0.5 else flaws).body(request)), KEEP

    with raw_server(script) as server:
        changes: dict[str, Any] = {"dialogues": 30}
        first = job.run(server.url, **changes)
        statuses = Counter(outcome["status"] for outcome in job.outcomes())
        assert first == 1 and statuses["missing"] and statuses["rejected"]
        assert job.run(server.url, "--offline", **changes) == 1
        server.script = lambda _, request: good(request)
        assert job.run(server.url, **changes) == 0
        whole = job.written()
        assert job.run(server.url, "--offline", **changes) == 0 and job.written() == whole
        assert job.command("ledger", "show", str(job.ledger)) == 0


@pytest.mark.parametrize("case", [case for case in CASES if case.section == "usage"], ids=named)
def test_no_way_of_miscounting_lets_the_server_charge_more_than_the_budget(case: Odd, job: Job) -> None:
    def script(_: int, request: Received) -> Iterable[Piece]:
        server.charge(request, json.dumps(content_for(request)))
        return http(case.body(request)), KEEP

    budget = 40_000
    with raw_server(script) as server:
        for _ in range(2):
            status = job.run(server.url, "--budget-tokens", str(budget), dialogues=3)
            assert 0 < server.charged <= budget and status == 1
        assert "budget" in job.said or case.fate == "any"
        assert job.command("ledger", "show", str(job.ledger)) == 0


def jsons() -> st.SearchStrategy[Any]:
    """Any JSON value, with the names that an answer has among its keys."""
    names = st.sampled_from(["choices", "usage", "message", "content", "error", "detail", "text", "turns", "refusal", "finish_reason"])
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20)
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names | st.text(max_size=5), inner, max_size=4), max_leaves=12
    )


def answers() -> st.SearchStrategy[Any]:
    """What looks like an answer, with any value in any place."""
    finish = st.sampled_from(["stop", "length", "content_filter"]) | jsons()
    message = st.fixed_dictionaries({}, optional={"content": st.text(st.characters()) | jsons(), "refusal": jsons(), "role": jsons()})
    choice = st.fixed_dictionaries({}, optional={"message": message | jsons(), "finish_reason": finish})
    usage = st.fixed_dictionaries({}, optional={"prompt_tokens": jsons(), "completion_tokens": jsons(), "prompt_tokens_details": jsons()})
    body = {"choices": st.lists(choice, max_size=2) | jsons(), "usage": usage | jsons(), "error": st.none() | jsons()}
    return jsons() | st.fixed_dictionaries({}, optional=body)


LONG = bool(os.environ.get("LONG"))


@pytest.mark.sampled
@settings(max_examples=1000 if LONG else 25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(odd=st.lists(answers() | st.text(st.characters()).map(WithContent), min_size=1, max_size=6))
def test_whatever_comes_as_body_or_content_the_ledger_replays_and_a_good_endpoint_finishes(odd: list[Any], job: Job) -> None:
    def script(number: int, request: Received) -> Iterable[Piece]:
        if number >= len(odd):
            return good(request)
        one = odd[number]
        body = body_with(request, one) if isinstance(one, WithContent) else json.dumps(one).encode()
        return http(body), KEEP

    shutil.rmtree(job.folder / "b", ignore_errors=True)
    with raw_server(script) as server:
        status = job.run(server.url, "--budget-tokens", MANY)
        assert status == (1 if job.outcomes()[0]["status"] == "missing" else 0)
        before = job.written()
        assert job.run(server.url, "--offline") == status and (status or job.written() == before)
        server.script = lambda _, request: good(request)
        assert job.run(server.url, "--budget-tokens", MANY) == 0
        assert job.outcomes()[0]["status"] in ("accepted", "rejected")
