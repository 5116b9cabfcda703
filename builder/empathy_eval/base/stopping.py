"""A stop that loses nothing: a signal is a message, heard once."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from empathy_eval.base.errors import JobError, Problem

T = TypeVar("T")
# By what a stop is called. A terminal that is closed and a batch system say theirs twice or more, so only Ctrl-C again is impatience.
SIGNALS = {"SIGINT": "Ctrl-C", "SIGTERM": "SIGTERM", "SIGHUP": "SIGHUP"}
# What is true once a signal has stopped a run, whichever it was.
AT_ONCE = "the next Ctrl-C ends at once"


class Stopped(JobError):
    """A signal has stopped the run."""


@contextlib.contextmanager
def stopped_by_signals(stop: Callable[[JobError], None]) -> Iterator[None]:
    """The first of Ctrl-C, SIGTERM and SIGHUP calls ``stop`` with the error to end with; a Ctrl-C after it does not wait.

    In a thread of :func:`beside_loops` it is the interrupt of the thread that waits for it.

    Raises:
        KeyboardInterrupt: out of the running event loop, at that Ctrl-C.
    """
    loop, heard = asyncio.get_running_loop(), list[str]()

    def hear(name: str) -> None:
        heard.append(name)
        if len(heard) == 1:
            fix = "run the same command to continue; every answer so far is in the ledger"
            stop(Stopped([Problem("build", f"stopped by {SIGNALS[name]}", fix)]))
        elif name == "SIGINT":
            raise KeyboardInterrupt

    numbers = {name: getattr(signal, name) for name in SIGNALS if hasattr(signal, name)}
    with contextlib.ExitStack() as stack:
        if ear := EAR.get():
            stack.enter_context(ear.open(lambda: loop.call_soon_threadsafe(hear, "SIGINT")))
        for name, number in numbers.items():
            before = signal.getsignal(number)
            if before in (signal.SIG_IGN, None):  # as nohup wants it, or a shell for what runs in the background; or what is not Python's
                continue
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # not the main thread, or not a Unix
                loop.add_signal_handler(number, hear, name)
                stack.callback(signal.signal, number, before)
                stack.callback(loop.remove_signal_handler, number)
        yield


class Ear:
    """Hears interrupts for work in another thread, where no signal comes."""

    def __init__(self) -> None:
        self.interrupted = threading.Event()
        # A signal's handler may come in while another one is at work.
        self._lock, self._heard_by = threading.RLock(), list[Callable[[], object]]()

    def interrupt(self) -> None:
        """Tells the work to stop, now or as soon as it listens."""
        with self._lock:
            self.interrupted.set()
            for hear in list(self._heard_by):
                hear()

    @contextlib.contextmanager
    def open(self, hear: Callable[[], object]) -> Iterator[None]:
        """Calls ``hear`` at each interrupt, and at once if there was one before."""
        with self._lock:
            self._heard_by.append(hear)
            if self.interrupted.is_set():
                hear()
        try:
            yield
        finally:
            with self._lock:
                self._heard_by.remove(hear)


EAR = contextvars.ContextVar[Ear | None]("EAR", default=None)


def beside_loops(work: Callable[[], T]) -> T:
    """The result of work that runs an event loop of its own, also where one is running already, as in a notebook.

    There the work is done in a thread of its own, and an interrupt here is to it what Ctrl-C is to the command line.

    Raises:
        KeyboardInterrupt: if the work does, as after a second interrupt.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    ear, context = Ear(), contextvars.copy_context()
    context.run(EAR.set, ear)
    with _heard_by(ear), ThreadPoolExecutor(1, "empathy-eval") as pool:
        future = pool.submit(context.run, work)
        # A signal that another thread of the process gets wakes nobody here: its handler runs when this thread next does something.
        while not future.done():
            wait([future], timeout=0.2)
        return future.result()


@contextlib.contextmanager
def _heard_by(ear: Ear) -> Iterator[None]:
    """Lets Ctrl-C tell an ear, and nobody else: raised here, where nothing is done but to wait, it could hit the start of the thread."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: ear.interrupt())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def pause(seconds: float) -> None:
    """Waits; an interrupt ends it.

    Raises:
        KeyboardInterrupt: then.
    """
    ear = EAR.get()
    if ear is None:
        time.sleep(seconds)
    elif ear.interrupted.wait(seconds):
        raise KeyboardInterrupt
