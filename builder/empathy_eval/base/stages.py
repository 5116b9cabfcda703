"""Progress of a long job: its present stage and a count, for a display that follows it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass

# A unit is used from one and a half of it on: 80 s, 90 s, 2 min.
UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))


@dataclass
class Stages:
    """The present stage of a job: its ``name``, and how many ``things`` of the ``total`` are done. A total of 0 means unknown.

    Another thread may read it at any moment. ``number`` counts stages, so that two of one name differ. The name is None before the first
    stage, and empty while the job shows its progress by other means.
    """

    name: str | None = None
    things: str = ""
    total: int = 0
    done: int = 0
    number: int = 0

    def count(self, total: int, things: str) -> None:
        """Starts a new count."""
        self.things, self.total, self.done = things, total, 0
        self.number += 1


# Where nothing follows, nobody reads what is told.
_FOLLOWED = ContextVar("followed", default=Stages())  # noqa: B039


@contextlib.contextmanager
def track_stages() -> Iterator[Stages]:
    """Context manager: yields the stages of the job that runs in this thread."""
    stages = Stages()
    token = _FOLLOWED.set(stages)
    try:
        yield stages
    finally:
        _FOLLOWED.reset(token)


def stage(name: str, total: int = 0, things: str = "") -> None:
    """Starts a stage, named by what it does: "drawing figures"."""
    _FOLLOWED.get().name = name
    count(total, things)


def count(total: int, things: str) -> None:
    """Sets how many things the stage has to do from now on."""
    _FOLLOWED.get().count(total, things)


def advance(things: int = 1) -> None:
    """Counts more things of the stage as done."""
    _FOLLOWED.get().done += things


def now() -> float:
    """The clock of the running event loop, which a test may control; without a loop the monotonic clock. In seconds."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


def duration_text(seconds: float) -> str:
    """A duration in words: ``12 s``, ``15 min``, ``3 h``."""
    for length, unit in UNITS:
        if seconds >= 1.5 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
