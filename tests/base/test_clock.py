"""Spans of time in words, and a clock that a loop can bring along."""

from __future__ import annotations

import asyncio
import time

import pytest
from empathy_eval.base.stages import duration_text, now

from tests.doubles.clock import leaping


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-1, "0 s"), (0.4, "0 s"), (12.4, "12 s"), (89, "89 s"), (90, "2 min"), (900, "15 min"), (5400, "2 h"), (129_600, "2 d")],
)
def test_a_span_is_said_in_the_unit_that_it_has_some_of(seconds: float, words: str) -> None:
    assert duration_text(seconds) == words


def test_time_is_that_of_the_running_loop_and_of_the_machine_without_one() -> None:
    async def waited() -> tuple[float, float]:
        before = now()
        await asyncio.sleep(3600)
        return before, now()

    assert abs(now() - time.monotonic()) < 1
    begin = time.monotonic()
    assert leaping(waited()) == (0.0, 3600.0) and time.monotonic() - begin < 5
