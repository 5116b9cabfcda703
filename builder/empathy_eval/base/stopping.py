"""A stop that loses nothing: a signal is a message, heard once."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator

from empathy_eval.base.errors import JobError, job_error

# By what a stop is called. A terminal that is closed and a batch system say theirs twice or more, so only Ctrl-C again is impatience.
SIGNALS = {"SIGINT": "Ctrl-C", "SIGTERM": "SIGTERM", "SIGHUP": "SIGHUP"}


@contextlib.contextmanager
def stopped_by_signals(stop: Callable[[JobError], None]) -> Iterator[None]:
    """The first of Ctrl-C, SIGTERM and SIGHUP calls ``stop`` with the error to end with; a Ctrl-C after it does not wait.

    Raises:
        KeyboardInterrupt: out of the running event loop, at that Ctrl-C.
    """
    loop, heard = asyncio.get_running_loop(), list[str]()

    def hear(name: str) -> None:
        heard.append(name)
        if len(heard) == 1:
            fix = "run the same command to go on; every answer so far is in the ledger"
            stop(job_error("build", f"stopped by {SIGNALS[name]}", fix))
        elif name == "SIGINT":
            raise KeyboardInterrupt

    numbers = {name: getattr(signal, name) for name in SIGNALS if hasattr(signal, name)}
    with contextlib.ExitStack() as stack:
        for name, number in numbers.items():
            before = signal.getsignal(number)
            if before == signal.SIG_IGN:  # as nohup wants it, or a shell for what it runs in the background
                continue
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # not the main thread, or not a Unix
                loop.add_signal_handler(number, hear, name)
                if name != "SIGINT":  # whose handler of before is the loop's own
                    stack.callback(signal.signal, number, before)
                stack.callback(loop.remove_signal_handler, number)
        yield
