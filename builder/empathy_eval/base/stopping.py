"""Graceful stops: the first signal lets running requests finish, so that no answer is lost."""

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
    """A signal stopped the run."""


@contextlib.contextmanager
def stopped_by_signals(stop: Callable[[JobError], None]) -> Iterator[None]:
    """Context manager: the first Ctrl-C, SIGTERM or SIGHUP calls ``stop`` with the error to end with. A later Ctrl-C ends at once.

    In a thread of :func:`run_beside_loops` an interrupt of the waiting thread counts as the signal.

    Raises:
        KeyboardInterrupt: out of the running event loop, at that Ctrl-C.
    """
    loop, received = asyncio.get_running_loop(), list[str]()

    def hear(name: str) -> None:
        received.append(name)
        if len(received) == 1:
            fix = "run the same command to continue; every answer so far is in the ledger"
            stop(Stopped([Problem("build", f"stopped by {SIGNALS[name]}", fix)]))
        elif name == "SIGINT":
            raise KeyboardInterrupt

    numbers = {name: getattr(signal, name) for name in SIGNALS if hasattr(signal, name)}
    with contextlib.ExitStack() as stack:
        if ear := LISTENER.get():
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


class InterruptListener:
    """Passes interrupts to work in another thread, which gets no signals."""

    def __init__(self) -> None:
        self.interrupted = threading.Event()
        # A signal's handler may come in while another one is at work.
        self._lock, self._heard_by = threading.RLock(), list[Callable[[], object]]()

    def interrupt(self) -> None:
        """Stops the work now, or as soon as it listens."""
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


LISTENER = contextvars.ContextVar[InterruptListener | None]("EAR", default=None)


def run_beside_loops(work: Callable[[], T]) -> T:
    """The result of work that runs its own event loop, even where one is running already, as in a notebook.

    There the work runs in a thread, and an interrupt here acts as Ctrl-C on the command line.

    Raises:
        KeyboardInterrupt: if the work raises it, as after a second interrupt.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    ear, context = InterruptListener(), contextvars.copy_context()
    context.run(LISTENER.set, ear)
    with _interrupts_sent_to(ear), ThreadPoolExecutor(1, "empathy-eval") as pool:
        future = pool.submit(context.run, work)
        # A signal that another thread of the process gets wakes nobody here: its handler runs when this thread next does something.
        while not future.done():
            wait([future], timeout=0.2)
        return future.result()


@contextlib.contextmanager
def _interrupts_sent_to(ear: InterruptListener) -> Iterator[None]:
    """Sends Ctrl-C to a listener only. Raised here, where nothing is done but to wait, it could hit the start of the thread."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: ear.interrupt())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def interruptible_sleep(seconds: float) -> None:
    """Waits some seconds; an interrupt ends it.

    Raises:
        KeyboardInterrupt: at an interrupt.
    """
    ear = LISTENER.get()
    if ear is None:
        time.sleep(seconds)
    elif ear.interrupted.wait(seconds):
        raise KeyboardInterrupt
