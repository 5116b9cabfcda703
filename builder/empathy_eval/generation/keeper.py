"""The keeper of a build whose slices run in other processes: it holds the ledger and the budget, and says when to stop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import JobError, job_error
from empathy_eval.completions.ledger import INSERT
from empathy_eval.completions.requests import Usage
from empathy_eval.design.endpoints import Asks
from empathy_eval.generation.build import Run, opened

Rows = list[tuple[Any, ...]]


class Keeper:
    """Holds the ledger and the budget of a build for its slices; one process, on the machine where the ledger is."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._status: dict[int, Counter[str]] = {}
        # By slice, the worst cases of the requests it has under way.
        self._open: dict[int, dict[str, tuple[str, Usage]]] = {}
        self._changed = asyncio.Event()
        self._stop = False

    async def open(self, config: Asks, out: Path, run: Run) -> bool:
        """Opens the ledger; returns whether a budget is to be kept. Raises as :func:`empathy_eval.generation.build.build`."""
        self._ledger, self._budget = self._stack.enter_context(opened(config, out, run))
        return self._budget.limited

    async def begin(self, number: int, dialogues: Sequence[str]) -> Rows:
        """The rows of a slice's dialogues. If a worker was lost with the slice, its open requests keep their reservations.

        Raises:
            JobError: if the slices are stopping.
        """
        if self._stop:
            raise stopped()
        for token, (model, worst) in self._open.pop(number, {}).items():
            self._budget.settle(token, model, worst, None, known=False)
        self._open[number] = {}
        marks = ",".join("?" * len(dialogues))
        query = f"SELECT * FROM completions WHERE dialogue_id IN ({marks})"  # noqa: S608 (placeholders alone)
        return list(self._ledger.query(query, dialogues))

    async def put(self, rows: Rows) -> bool:
        """Stores rows in one commit; returns whether to stop."""
        self._ledger.write((INSERT, rows))
        return self._stop

    async def stopping(self) -> bool:
        """Whether to stop, for a slice that only waits."""
        return self._stop

    async def stop(self) -> set[int]:
        """Lets all slices send nothing more and store what is under way; returns those that have begun."""
        self._stop = True
        return set(self._open)

    async def end(self, number: int) -> None:
        """Returns once the requests of a slice that has ended are all settled: what it sent may come in any order."""
        while self._open[number]:
            self._changed.clear()
            await self._changed.wait()

    async def reserve(self, number: int, token: str, model: str, worst: Usage) -> None:
        """As :meth:`empathy_eval.completions.budget.Budget.reserve`, for a slice."""
        begun = self._open[number]
        await self._budget.reserve(token, model, worst)
        if begun is self._open[number]:
            begun[token] = (model, worst)
        else:  # its worker was lost while it waited, so it was never sent
            self._budget.settle(token, model, worst, None)

    async def settle(self, number: int, token: str, used: Usage | None, known: bool) -> None:
        """As :meth:`empathy_eval.completions.budget.Budget.settle`, for a slice."""
        if (found := self._open[number].pop(token, None)) is not None:
            self._changed.set()
            self._budget.settle(token, *found, used, known=known)

    async def tell(self, number: int, status: Counter[str]) -> None:
        """Takes down what has become of a slice's items so far."""
        self._status[number] = status

    async def told(self) -> Counter[str]:
        """What has become of all items so far."""
        return sum(self._status.values(), Counter())

    async def close(self) -> None:
        """Closes the ledger."""
        self._stack.close()


def stopped() -> JobError:
    """The error that a slice ends with when it was told to stop; the command ends with the reason for it."""
    return job_error("build", "stopped with the other slices", "run the same command to go on; every answer so far is in the ledger")
