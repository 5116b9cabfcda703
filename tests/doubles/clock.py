"""An event loop whose time goes on only where everybody waits, and then at once: hours of waiting take none."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Leaping(selectors.DefaultSelector):
    """Instead of waiting for so long it lets the time leap."""

    leapt = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0 if timeout is not None else None)
        if not ready and timeout:
            self.leapt += timeout
        return ready


class Leaping(asyncio.SelectorEventLoop):
    """The loop; its time begins at 0. What it runs must not wait for other threads or sockets."""

    def __init__(self) -> None:
        self._leaping = _Leaping()
        super().__init__(self._leaping)

    def time(self) -> float:
        return self._leaping.leapt


def leaping(work: Coroutine[Any, Any, T]) -> T:
    """The result of some work in such a loop."""
    with asyncio.Runner(loop_factory=Leaping) as runner:
        return runner.run(work)
