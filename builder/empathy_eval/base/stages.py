"""Stages of a long job: its present stage and count, for a display that follows it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Stages:
    """The stage that a job is at: its ``name``, and how many ``things`` of the ``total`` are done; a total of 0 is not known.

    It may be read in another thread at any moment. ``number`` counts stages and their counts, so that two of one name can be told apart.
    The name is None before the first stage, and empty while the job shows its progress by other means.
    """

    name: str | None = None
    things: str = ""
    total: int = 0
    done: int = 0
    number: int = 0

    def count(self, total: int, things: str) -> None:
        """Begins to count."""
        self.things, self.total, self.done = things, total, 0
        self.number += 1


# Where nothing follows, nobody reads what is told.
_FOLLOWED = ContextVar("followed", default=Stages())  # noqa: B039


@contextlib.contextmanager
def followed() -> Iterator[Stages]:
    """Follows the job that is done within, in this thread."""
    stages = Stages()
    token = _FOLLOWED.set(stages)
    try:
        yield stages
    finally:
        _FOLLOWED.reset(token)


def stage(name: str, total: int = 0, things: str = "") -> None:
    """Tells that the job begins another stage, named as what it does: "drawing figures"."""
    _FOLLOWED.get().name = name
    count(total, things)


def count(total: int, things: str) -> None:
    """Tells how many things there are to do within the stage, from now on."""
    _FOLLOWED.get().count(total, things)


def advance(things: int = 1) -> None:
    """Tells that so many more things of the stage are done."""
    _FOLLOWED.get().done += things


# A unit is used from one and a half of it on: 80 s, 90 s, 2 min.
UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))


def now() -> float:
    """The time of the running event loop, which a test may let go as it likes; without a loop that of the machine. In seconds."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


def span(seconds: float) -> str:
    """So many seconds in words: ``12 s``, ``15 min``, ``3 h``."""
    for length, unit in UNITS:
        if seconds >= 1.5 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
