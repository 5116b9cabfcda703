"""Responses that are wrong as HTTP, without end, or larger than they look: no answer, soon, and the next one is good."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.doubles.jobs import Job
from tests.doubles.jobs import job as job
from tests.doubles.jobs import plain as plain
from tests.doubles.jobs import read_once as read_once
from tests.doubles.jobs import small_world as small_world
from tests.doubles.raw_server import ENDLESS, INTERIM, KEEP, Piece, RawServer, Received, body_with, expanded, good, raw_server, with_another

CASES: list[dict[str, str]] = yaml.safe_load((Path(__file__).parent / "raw_responses.yaml").read_text())
TIMEOUT = 0.4
# For responses that are to be taken, on a machine that is busy.
PATIENCE = 20.0
MANY = "100000000"
Reply = Callable[[Received], Iterable[Piece]]


def bytes_of(case: dict[str, str], request: Received, here: str, there: str) -> bytes:
    """The bytes of a case of the data file."""
    body = body_with(request).decode()
    chunks = "".join(f"{len(part):x}\r\n{part}\r\n" for part in (body[:100], body[100:]))
    raw = expanded(case["raw"])
    for name, value in (("CHUNKS", chunks), ("BODY", body), ("LENGTH", str(len(body))), ("THERE", there), ("HERE", here)):
        raw = raw.replace(name, value)
    return raw.encode("latin-1")


def first(job: Job, server: RawServer, reply: Reply, seconds: float = TIMEOUT) -> int:
    """A run in which the first request alone is answered in this way; the exit status."""
    server.script = lambda number, request: reply(request) if number == 0 else good(request)
    return job.run(server.url, "--budget-tokens", MANY, model={"timeout_seconds": seconds})


def no_answer(job: Job, server: RawServer, plain: list[dict[str, Any]]) -> None:
    """Nothing is stored, its room is kept, and a good endpoint finishes the build, which then replays."""
    assert job.outcomes()[0]["status"] == "missing" and len(server.requests) == 1 and job.rows("key") == []
    assert job.run(server.url, "--offline") == 1 and len(server.requests) == 1
    assert job.run(server.url, "--budget-tokens", MANY) == 0
    assert server.bodies()[0] == server.bodies()[1] and job.outcomes() == plain
    before = job.written()
    assert job.run(server.url, "--offline") == 0 and job.written() == before


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_bytes_that_are_no_good_response_are_no_answer(case: dict[str, str], job: Job, plain: list[dict[str, Any]]) -> None:
    with raw_server() as server, raw_server() as elsewhere:
        seconds = PATIENCE if case["fate"] == "taken" else TIMEOUT
        # A response that says where it ends promises that its connection stays: the next request may come on it before a close is seen.
        stays = [KEEP] if case["fate"] != "none" and ("Length" in case["raw"] or "chunked" in case["raw"]) else []
        status = first(job, server, lambda request: [bytes_of(case, request, server.url, elsewhere.url), *stays], seconds)
        assert elsewhere.requests == [], "what is sent here, and the key, goes nowhere else"
        assert job.seconds < TIMEOUT + 3 and len(job.said) < 5000
        if case["fate"] == "none" or (case["fate"] == "any" and status):
            assert status == 1
            # A redirection or another status that is no success says that the request was not worked on.
            assert job.reserved() > 0 or case["raw"].startswith(("HTTP/1.1 1", "HTTP/1.1 3", "HTTP/1.1 9"))
            no_answer(job, server, plain)
        else:
            assert status == 0 and job.outcomes() == plain


@pytest.mark.parametrize("name", ENDLESS)
def test_a_response_without_end_is_no_answer_within_the_time_and_the_size_of_a_whole_one(
    name: str, job: Job, plain: list[dict[str, Any]]
) -> None:
    with raw_server() as server:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert first(job, server, ENDLESS[name]) == 1
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        assert job.seconds < TIMEOUT + 3, "the time is for the whole answer, not for each read of it"
        assert grown < 300, f"{grown:.0f} MiB more were held"
        assert job.reserved() > 0, "it may have been charged"
        no_answer(job, server, plain)


@pytest.mark.parametrize("name", INTERIM)
def test_an_answer_after_interim_responses_is_taken(name: str, job: Job, plain: list[dict[str, Any]]) -> None:
    with raw_server() as server:
        assert first(job, server, INTERIM[name], PATIENCE) == 0 and job.outcomes() == plain


def test_a_second_answer_on_the_same_connection_is_nobodys(job: Job, plain: list[dict[str, Any]]) -> None:
    with raw_server(lambda _, request: with_another(request)) as server:
        assert job.run(server.url) == 0 and job.outcomes() == plain
        assert b"Nobody has asked" not in job.written()


def test_an_endpoint_that_is_not_there_is_no_answer(job: Job, plain: list[dict[str, Any]]) -> None:
    with raw_server() as server:
        assert job.run("http://127.0.0.1:9/v1", "--budget-tokens", MANY) == 1
        assert job.run(server.url, "--budget-tokens", MANY) == 0 and job.outcomes() == plain


def test_an_encrypted_connection_to_a_server_that_speaks_plainly_is_no_answer(job: Job, plain: list[dict[str, Any]]) -> None:
    with raw_server() as server:
        model = {"timeout_seconds": TIMEOUT}
        assert job.run(server.url.replace("http:", "https:"), model=model) == 1
        assert job.seconds < TIMEOUT + 3
        assert job.run(server.url) == 0 and job.outcomes() == plain
