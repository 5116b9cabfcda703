"""Pace: bounds, refusals, recovery, and the headers of rate limits."""

import asyncio
import email.utils
import time

import pytest
from empathy_eval.base.stages import now
from empathy_eval.completions.models.endpoint_health import GLANCE, ROUND, Bucket, RateLimiter, Sleeper
from empathy_eval.completions.models.transport import retry_seconds
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.clock import leaping


@pytest.mark.parametrize(
    ("text", "expected"), [("1.5", 1.5), ("0", 0), ("6m0s", 360), ("20ms", 0.02), ("1h2m3s", 3723), ("-3", 0), ("soon", None), (None, None)]
)
def test_seconds_of_headers(text: str | None, expected: float | None) -> None:
    assert retry_seconds(text) == expected


def test_seconds_until_a_date() -> None:
    assert retry_seconds(email.utils.formatdate(time.time() + 30, usegmt=True)) == pytest.approx(30, abs=1.5)
    assert retry_seconds(email.utils.formatdate(time.time() - 30, usegmt=True)) == 0


@given(st.text())
def test_any_header_is_survived(text: str) -> None:
    assert (retry_seconds(text) or 0) >= 0


def test_a_bucket_lets_its_rate_through_after_a_second_at_once() -> None:
    bucket = Bucket(per_minute=600)  # ten a second
    delays = [bucket.delay(1, now=100.0) for _ in range(31)]
    assert delays[:11] == [0.0] * 11
    assert delays[30] == pytest.approx(2.0)
    bucket.give_back(10)
    assert bucket.delay(1, now=100.0) == pytest.approx(1.1)


async def test_no_more_than_the_limit_are_in_flight() -> None:
    pace, peak = RateLimiter(5), 0

    async def one() -> None:
        nonlocal peak
        await pace.start(10)
        peak = max(peak, pace.running)
        await asyncio.sleep(0.001)
        pace.end(10, 10)

    await asyncio.gather(*(one() for _ in range(50)))
    assert peak == 5 and pace.running == 0


async def answers(pace: RateLimiter, refused: list[bool]) -> None:
    for one in refused:
        await pace.start(1)
        pace.end(1, 1, refused=one)


async def test_a_sporadic_refusal_slows_nothing_a_persistent_one_does_and_the_pace_recovers() -> None:
    pace = RateLimiter(64)
    await answers(pace, ([True] + [False] * 4) * 200)
    assert pace.limit == 64
    await answers(pace, [True] * 64 * 3)
    slow = pace.limit
    assert slow <= 16
    await answers(pace, [True] * ROUND * 50)
    assert pace.limit == 1, "it never stops"
    await answers(pace, [False] * ROUND * 60)
    assert pace.limit == 64


async def test_an_exhausted_window_pauses_new_requests_until_it_resets() -> None:
    pace = RateLimiter(5)
    pace.apply_headers([(b"X-RateLimit-Remaining-Requests", b"0"), (b"x-ratelimit-reset-requests", b"120ms")])
    begin = time.monotonic()
    await pace.start(1)
    assert time.monotonic() - begin >= 0.11
    pace.apply_headers([(b"x-ratelimit-remaining-tokens", b"9"), (b"x-ratelimit-reset-tokens", b"99s")])
    await asyncio.wait_for(pace.start(1), 0.1)


def test_however_many_rest_they_all_hear_of_a_stop_and_rest_their_time_without_one() -> None:
    asked = 0
    until = 100.0

    def stopped() -> bool:
        nonlocal asked
        asked += 1
        return now() >= until

    async def rested(count: int, length: float) -> float:
        rests = Sleeper(stopped)
        await asyncio.gather(*(rests.rest(length) for _ in range(count)))
        return now()

    assert leaping(rested(1000, 3.0)) == 3.0
    assert asked <= 1000 + 3 / GLANCE + 1, "not for each of them again and again"
    assert until <= leaping(rested(1000, 3600.0)) <= until + GLANCE
    until = 0.0
    assert leaping(rested(1, 3600.0)) == 0.0


async def test_what_waits_for_its_turn_to_be_sent_does_not_outlast_a_stop() -> None:
    heard = False
    pace = RateLimiter(1, requests_per_minute=1, stopped=lambda: heard)
    await pace.start(1)
    pace.end(1, 1)
    waiting = asyncio.create_task(pace.start(1))
    await asyncio.sleep(0)
    heard = True
    await asyncio.wait_for(waiting, 2 * GLANCE)
