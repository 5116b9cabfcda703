"""An endpoint that cannot be reached: why, for how long it is tried, and what is told meanwhile."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import pytest
from empathy_eval.base.errors import JobError
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models.batch_api import Batches
from empathy_eval.completions.models.endpoint_health import QUIET, EndpointHealth
from empathy_eval.completions.models.openai_endpoint import EndpointConnection, OpenAIEndpoint
from empathy_eval.completions.models.transport import RetryableError
from empathy_eval.completions.requests import About, NoAnswer, Request
from empathy_eval.design.endpoints import ModelConfig

from tests.doubles.server import Behaviour, running

CONFIG = ModelConfig("openai", "m", "home", base_url="http://llm.example:8000/v1", max_tokens=9)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def caused(*errors: Exception) -> Exception:
    """The last of some errors, each caused by the one before."""
    for cause, error in zip(errors, errors[1:], strict=False):
        error.__cause__ = cause
    return errors[-1]


def no_connection(cause: Exception) -> Exception:
    """What aiohttp raises then, and what it is passed on as."""
    made = aiohttp.ClientConnectorError(None, cause if isinstance(cause, OSError) else OSError())  # type: ignore[arg-type]
    return caused(cause, made, httpx2.ConnectError("x"))


CERTIFICATE = ssl.SSLCertVerificationError(1, "certificate verify failed")
CERTIFICATE.verify_message = "self-signed certificate"
PROXY = aiohttp.ClientProxyConnectionError(None, ConnectionRefusedError())  # type: ignore[arg-type]
SLOW = aiohttp.ConnectionTimeoutError("x")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (no_connection(ConnectionRefusedError(111, "x")), "connection refused"),
        (no_connection(socket.gaierror(-2, "Name or service not known")), "unknown host"),
        (no_connection(CERTIFICATE), "its certificate is not accepted (self-signed certificate)"),
        (no_connection(ssl.SSLError(1, "Wrong version")), "no TLS (wrong version)"),
        (caused(ConnectionRefusedError(), PROXY, httpx2.ConnectError("x")), "the proxy: connection refused"),
        (caused(TimeoutError(), SLOW, httpx2.ConnectTimeout("x")), "no connection in time"),
        (no_connection(OSError(101, "Network is unreachable")), "OSError [Errno 101] Network is unreachable"),
        (caused(ConnectionRefusedError(), httpx2.ConnectError("x")), "connection refused"),
        (httpx2.ConnectTimeout("x"), "no connection in time"),
    ],
)
def test_why_there_is_no_connection_is_said_in_a_few_words_and_ends_the_run_when_it_has_lasted(error: Exception, reason: str) -> None:
    clock = Clock()
    reception = EndpointHealth(CONFIG, clock)
    reception.request_sent()
    found = reception.classify_error(error)
    assert isinstance(found, RetryableError) and str(found) == reason and found.known
    clock.now += CONFIG.unreachable_seconds - 0.01
    assert isinstance(reception.classify_error(error), RetryableError)
    clock.now += 0.01
    lost = reception.classify_error(error)
    assert isinstance(lost, JobError) and lost.exit_code == 1
    assert f'no connection to endpoint "home" (llm.example:8000) for 12 s, since the start: {reason}\n' in str(lost)
    assert "check that the server runs and that base_url" in str(lost)


@pytest.mark.parametrize(
    "error",
    [
        caused(aiohttp.ServerDisconnectedError(), httpx2.ConnectTimeout("x")),  # as the client passes it on
        caused(aiohttp.ClientOSError(104, "reset"), httpx2.ReadError("x")),
        httpx2.ReadTimeout("x"),
    ],
)
def test_a_connection_that_broke_was_one_and_what_it_was_asked_may_have_been_paid_for(error: Exception) -> None:
    clock = Clock()
    reception = EndpointHealth(CONFIG, clock)
    reception.request_sent()
    found = reception.classify_error(error)
    assert isinstance(found, RetryableError) and not found.known and str(found).startswith("no answer: ")
    clock.now += 10 * CONFIG.unreachable_seconds
    assert isinstance(reception.classify_error(no_connection(ConnectionRefusedError())), RetryableError), "it was reached once"


@pytest.mark.parametrize(
    "reach",
    [EndpointHealth.connection_made, EndpointHealth.answer_received, lambda one: one.record_refusal(RetryableError("503: loading"))],
)
def test_an_endpoint_that_was_reached_in_any_way_is_waited_for_as_long_as_patience_says(reach: Any) -> None:
    clock = Clock()
    reception = EndpointHealth(CONFIG, clock)
    reach(reception)
    reception.request_sent()
    for _ in range(100):
        clock.now += 30
        assert isinstance(reception.classify_error(no_connection(ConnectionRefusedError())), RetryableError)
        assert reception.bounded_wait(30.0) == 30.0


def test_before_an_unreachable_endpoint_is_given_up_it_is_tried_once_more_at_the_very_end() -> None:
    clock = Clock()
    reception = EndpointHealth(CONFIG, clock)
    reception.request_sent()
    clock.now += 8
    reception.classify_error(no_connection(ConnectionRefusedError()))
    assert reception.bounded_wait(30.0) == 4.0 and reception.bounded_wait(3.0) == 3.0


def test_the_first_connection_may_take_no_longer_than_an_unreachable_endpoint_is_given() -> None:
    reception = EndpointHealth(CONFIG)
    assert reception.connecting == CONFIG.unreachable_seconds <= 13, "told within 15 s, with the start of the program"
    reception.connection_made()
    assert reception.connecting == 20.0, "who was reached once has the time that it needs"


def test_what_is_told_says_why_since_when_and_for_how_long_it_is_still_tried() -> None:
    clock = Clock()
    reception = EndpointHealth(CONFIG, clock)

    def told() -> str:
        found = reception.notice(clock.now)
        assert found is None or found.key == f"home: {reception.reason.partition(':')[0]}"
        return found.words.removeprefix("home: ") if found else ""

    reception.request_sent()
    assert told() == "", "nothing has gone wrong"
    reception.classify_error(no_connection(ConnectionRefusedError()))
    reception.again[1] = clock.now + CONFIG.patience_seconds
    assert told() == "connection refused, trying for 12 s"
    clock.now += 5
    assert told() == "connection refused for 5 s, trying for 7 s more"
    reception.answer_received()
    assert told() == ""
    reception.record_refusal(RetryableError("429: slow down"))
    clock.now += QUIET - 1
    assert told() == "", "others are answered meanwhile, for all that is known"
    clock.now += 1
    assert told() == "429: slow down for 5 s, trying for 15 min more"
    clock.now = reception.again[1]
    assert told() == "429: slow down for 15 min, trying once more"
    reception.again.clear()
    assert reception.notice(clock.now) is None


def asked(config: ModelConfig, ledger: Path) -> None:
    """Asks an endpoint once, over a real socket."""

    async def ask() -> None:
        with Ledger(ledger) as open_one:
            model = OpenAIEndpoint(config, Budget(open_one, {}, set(), None, None), EndpointConnection(config, lambda: None), lambda: None)
            try:
                await model.complete(
                    Request(model.body([{"role": "user", "content": "x"}], "variant_answer"), "home", About("d", "far", 1))
                )
            finally:
                await model.close()

    asyncio.run(ask())


def unused() -> str:
    """An address of loopback where nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{one.getsockname()[1]}"


def config(url: str, **changes: Any) -> ModelConfig:
    return ModelConfig(
        "openai", "m", "home", base_url=url, **{"max_tokens": 9, "unreachable_seconds": 0.3, "patience_seconds": 20, **changes}
    )


@pytest.mark.parametrize("ask", [asked, lambda settings, _: Batches(settings).find("x")], ids=["a request", "a call of batches"])
def test_nobody_there_and_no_tls_end_requests_and_calls_of_batches(ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(JobError, match="since the start: connection refused"):
        ask(config(f"http://{unused()}/v1"), tmp_path / "l")
    with running() as server, pytest.raises(JobError, match=r"since the start: no TLS \("):
        ask(config(server.url.replace("http:", "https:")), tmp_path / "l")


def test_who_takes_a_connection_and_is_slow_is_given_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    slow = {"timeout_seconds": 0.5, "patience_seconds": 0.9, "unreachable_seconds": 0}
    with running(Behaviour(faults={"silence": 1.0})) as server, pytest.raises(NoAnswer, match=r"^no answer within 0.5 s$"):
        asked(config(server.url, **slow), tmp_path / "l")


def test_who_takes_the_connection_and_says_nothing_of_tls_is_none_that_was_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as deaf, pytest.raises(JobError, match="since the start: no connection in time"):
        asked(config(f"https://127.0.0.1:{deaf.getsockname()[1]}/v1", timeout_seconds=0.8), tmp_path / "l")
