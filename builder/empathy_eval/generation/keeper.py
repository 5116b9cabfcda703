"""The keeper of a build whose slices run in other processes: it holds the ledger and the budget, and says when to stop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import JobError, job_error
from empathy_eval.completions.budget import Spent
from empathy_eval.completions.ledger_rows import INSERT
from empathy_eval.completions.requests import Usage
from empathy_eval.design.endpoints import Asks
from empathy_eval.generation.build import Run, opened
from empathy_eval.generation.course import Notice

Rows = list[tuple[Any, ...]]


class Keeper:
    """Holds the ledger and the budget of a build for its slices; one process, on the machine where the ledger is."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._counts: dict[int, Counter[str]] = {}
        self._notices: dict[int, tuple[Notice, ...]] = {}
        self._answering = set[str]()
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
        for row in rows:
            model, usage = row[4], Usage(*row[6:9])
            self._answering.add(model)
            if not self._budget.limited:  # where it is, each slice settles what it reserved
                self._budget.settle("", model, Usage(), usage)
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
        self._notices.pop(number, None)
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

    async def answering(self) -> set[str]:
        """The names of the models that have answered since the start."""
        return self._answering

    async def tell(self, number: int, counts: Counter[str], notices: tuple[Notice, ...]) -> None:
        """Takes down how a slice is going."""
        self._counts[number], self._notices[number] = counts, notices

    async def told(self) -> tuple[Counter[str], Spent, tuple[Notice, ...]]:
        """How all of them are going: what is counted, what all answers cost, and what is to be told, each thing once."""
        notices = {one.key: one for some in self._notices.values() for one in some}
        return sum(self._counts.values(), Counter()), self._budget.spent, tuple(notices.values())

    async def close(self) -> None:
        """Closes the ledger."""
        self._stack.close()


def stopped() -> JobError:
    """The error that a slice ends with when it was told to stop; the command ends with the reason for it."""
    return job_error("build", "stopped with the other slices", "run the same command to continue; every answer so far is in the ledger")
