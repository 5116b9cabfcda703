"""The client of batches: what it reads is bounded, and what it says holds no secret."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from empathy_eval.base.errors import JobError
from empathy_eval.completions.models import transport
from empathy_eval.completions.models.batch_api import Batches
from empathy_eval.design.endpoints import ModelConfig

from tests.doubles.raw_server import body_without_end, http, raw_server, refusal, spaces_for_ever

SECRET = "sk-a/secret+of-mine"


def told(script: Callable[..., Any]) -> tuple[str, float]:
    with raw_server(script) as server:
        config = ModelConfig("openai", "m", "e", base_url=server.url, api_key_env="TEST_KEY", timeout_seconds=0.5, patience_seconds=1.2)
        begin = time.monotonic()
        with pytest.raises(JobError) as caught:
            Batches(config).state("batch-1")
        return str(caught.value), time.monotonic() - begin


@pytest.mark.parametrize("script", [spaces_for_ever, body_without_end])
def test_a_call_ends_in_time_and_memory_whatever_comes(script: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "LARGEST", 2**20)
    said, seconds = told(lambda _, request: script(request))
    assert ("no answer" in said or "more than" in said or "timed out" in said) and seconds < 10


@pytest.mark.parametrize("status", [200, 307, 400, 404, 500])
def test_a_key_that_is_said_back_is_shown_nowhere(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", SECRET)
    body = json.dumps({"error": {"message": f"bad key {SECRET}"}}).replace("/", "\\/")
    said, _ = told(lambda *_: refusal(status, body, Location=f"http://127.0.0.1:9/{SECRET}?k={SECRET}"))
    assert "secret+of-mine" not in said and "secret" not in said.replace("***", "")


def test_a_redirect_is_not_followed() -> None:
    asked = []

    def script(_: int, request: Any) -> Any:
        asked.append(request.head.split(b" ")[1])
        return refusal(307, "", Location="/v1/elsewhere") if len(asked) == 1 else [http(b"{}")]

    told(script)
    assert not [one for one in asked if b"elsewhere" in one]
