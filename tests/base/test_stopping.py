"""Builds where an event loop is running: an interrupt is Ctrl-C to them, and loses nothing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import JobError
from empathy_eval.base.stopping import LISTENER, InterruptListener, interruptible_sleep, run_beside_loops, stopped_by_signals
from empathy_eval.commands.build import build
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models.custom import TextModel
from empathy_eval.completions.requests import Completion, Request
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.prompts import Message, Prompts
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue

REPLY = json.dumps({"text": "Would it help to sit with this for a while and tell me more of it?"})
# Longer than any of these tests may take.
LONG = 30.0


class Far(TextModel):
    """Answers when it is told to; says when it was first asked. It is asked by the loop itself, or in threads."""

    name = "slow"

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.go_on = threading.Event()
        self.answered = 0

    async def complete(self, request: Request) -> Completion:
        self.asked.set()
        while not self.go_on.is_set():  # noqa: ASYNC110 (another thread says so)
            await asyncio.sleep(0.005)
        self.answered += 1
        return Completion(REPLY, "stop", self.name)


class InThreads(Far):
    """The same in the threads of a TextModel."""

    complete = TextModel.complete

    def answer(self, messages: list[Message], answer_schema: dict[str, Any]) -> str:
        self.asked.set()
        self.go_on.wait(LONG)
        self.answered += 1
        return REPLY


@pytest.fixture
def recipe(demo: Configuration, catalogue: Catalogue, prompts: Prompts) -> Recipe:
    return Recipe(demo, catalogue, prompts)


def within(work: Callable[[], Any]) -> Any:
    """What work gives where a loop is running, as in a cell of a notebook."""

    async def cell() -> Any:
        return work()

    return asyncio.run(cell())


def meanwhile(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_work_is_done_here_where_no_loop_is_running() -> None:
    assert run_beside_loops(threading.current_thread) is threading.current_thread()


def test_where_a_loop_is_running_the_work_has_a_thread_and_a_loop_of_its_own() -> None:
    async def inner() -> tuple[threading.Thread, int]:
        return threading.current_thread(), 7

    thread, value = within(lambda: run_beside_loops(lambda: asyncio.run(inner())))
    assert thread is not threading.current_thread() and value == 7


@pytest.mark.parametrize("error", [JobError([]), ValueError("x"), SystemExit(3), KeyboardInterrupt()])
def test_what_the_work_raises_comes_out(error: BaseException) -> None:
    def work() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        within(lambda: run_beside_loops(work))
    assert caught.value is error


def test_a_build_in_a_running_loop_has_the_bytes_of_the_plain_one(recipe: Recipe, built: Path, tmp_path: Path) -> None:
    handed = within(lambda: build(recipe, tmp_path / "b"))
    assert handed.summary.status == {"accepted": 3}
    assert (tmp_path / "b" / "build.json").read_bytes() == (built / "build.json").read_bytes()


@pytest.mark.parametrize("looped", [False, True], ids=["plain", "in a loop"])
def test_one_interrupt_stops_a_build_with_everything_that_was_under_way_stored(looped: bool, recipe: Recipe, tmp_path: Path) -> None:
    model = Far()

    def stop() -> None:
        model.asked.wait(LONG)
        interrupt()
        time.sleep(0.2)
        model.go_on.set()

    def work() -> Any:
        return build(recipe, tmp_path / "b", models={"far": model})

    meanwhile(stop)
    with pytest.raises(JobError, match=r"build: stopped by Ctrl-C\n  Fix: run the same command to continue"):
        within(work) if looped else work()
    assert model.answered > 0
    with Ledger(tmp_path / "b" / "ledger.sqlite", create=False) as ledger:
        assert next(ledger.query("SELECT count(*) FROM completions WHERE model = 'slow'")) == (model.answered,)
    before, model.answered = model.answered, 0
    build(recipe, tmp_path / "b", models={"far": model})
    assert before + model.answered == 40, "what was stored is not asked for again"


@pytest.mark.parametrize("looped", [False, True], ids=["plain", "in a loop"])
@pytest.mark.parametrize("kind", [Far, InThreads])
def test_a_second_interrupt_does_not_wait(looped: bool, kind: type[Far], recipe: Recipe, tmp_path: Path) -> None:
    model = kind()

    def stop() -> None:
        model.asked.wait(LONG)
        interrupt()
        time.sleep(1.5)  # two that come at once would be one
        interrupt()

    def work() -> Any:
        return build(recipe, tmp_path / "b", models={"far": model})

    meanwhile(stop)
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        within(work) if looped else work()
    assert time.monotonic() - begin < LONG / 2 and model.answered == 0
    model.go_on.set()
    again = kind()
    again.go_on.set()
    assert build(recipe, tmp_path / "b", models={"far": again}).summary.status == {"accepted": 3}  # type: ignore[union-attr]


def test_an_interrupt_before_the_loop_listens_is_not_lost() -> None:
    begun, heard = threading.Event(), list[JobError]()

    async def listen() -> None:
        with stopped_by_signals(heard.append):
            for _ in range(200):
                if heard:
                    return
                await asyncio.sleep(0.01)

    def work() -> None:
        begun.set()
        time.sleep(0.5)
        asyncio.run(listen())

    def stop() -> None:
        begun.wait(LONG)
        interrupt()

    meanwhile(stop)
    within(lambda: run_beside_loops(work))
    assert [str(one).splitlines()[0] for one in heard] == ["build: stopped by Ctrl-C"]


def test_ctrl_c_is_afterwards_what_it_was_before() -> None:
    async def cell() -> None:
        before = signal.getsignal(signal.SIGINT)
        during = run_beside_loops(lambda: signal.getsignal(signal.SIGINT))
        assert during is not before
        assert signal.getsignal(signal.SIGINT) is before

    asyncio.run(cell())


def test_who_ignores_ctrl_c_still_does() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert within(lambda: run_beside_loops(lambda: signal.getsignal(signal.SIGINT))) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_work_in_another_threads_loop_is_left_in_peace() -> None:
    found = list[Any]()
    thread = threading.Thread(target=lambda: found.append(within(lambda: run_beside_loops(lambda: 7))))
    thread.start()
    thread.join(LONG)
    assert found == [7]


def test_an_ear_tells_each_who_listens_and_no_longer() -> None:
    ear, heard = InterruptListener(), list[str]()
    with ear.open(lambda: heard.append("one")), ear.open(lambda: heard.append("other")):
        ear.interrupt()
    ear.interrupt()
    assert heard == ["one", "other"]
    with ear.open(lambda: heard.append("late")):
        assert heard[-1] == "late", "at once, for there was one before"


def test_a_pause_is_a_pause_and_ends_at_an_interrupt() -> None:
    begin = time.monotonic()
    interruptible_sleep(0.05)
    assert time.monotonic() - begin >= 0.05

    def work() -> None:
        assert LISTENER.get() is not None
        interruptible_sleep(0.01)
        meanwhile(interrupt)
        interruptible_sleep(LONG)

    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        within(lambda: run_beside_loops(work))
    assert time.monotonic() - begin < LONG / 2


def test_a_handler_of_ones_own_is_there_again_after_a_run() -> None:
    def mine(number: int, frame: object) -> None:
        raise AssertionError

    async def listen() -> None:
        with stopped_by_signals(lambda error: None):
            assert signal.getsignal(signal.SIGINT) is not mine

    before = signal.signal(signal.SIGINT, mine)
    try:
        asyncio.run(listen())
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, before)
