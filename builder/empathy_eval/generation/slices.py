"""A slice of a build over many machines: worked on by itself, with the ledger and the budget of the whole, which its keeper holds."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.clock import now
from empathy_eval.base.errors import EmpathyEvalError
from empathy_eval.base.ray_cluster import heard
from empathy_eval.completions.asker import Asker
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.ledger_rows import INSERT
from empathy_eval.completions.models.protocol import Model
from empathy_eval.completions.requests import Usage
from empathy_eval.generation.build import Run, work_through
from empathy_eval.generation.build_folder import LEDGER
from empathy_eval.generation.course import Course
from empathy_eval.generation.job import Job, part_of
from empathy_eval.generation.keeper import stopped

# Stores that a slice has sent and has not yet heard of; while there are so many it sends no request, for they are lost with its worker.
SENT = 16
# Seconds between two words with the keeper, of a slice that has nothing to store.
WORD = 0.5


@dataclass(frozen=True)
class Work:
    """What all slices have in common: the job has their share of the pace, ``slices`` is their number."""

    job: Job
    slices: int
    limited: bool = False
    keep_going: bool = False


class _SliceLedger(Ledger):
    """The ledger of a slice: what is to be stored the keeper stores first, and it answers whether to stop."""

    def __init__(self, path: Path, ray: Any, keeper: Any, number: int) -> None:
        super().__init__(path)
        self.ray, self.keeper, self.number, self.course = ray, keeper, number, Course()
        self.room = asyncio.Semaphore(SENT)
        self._asker: Asker | None = None
        # What the keeper is to settle once the answer is stored.
        self.owed = list[tuple[int, str, Usage | None, bool]]()

    async def commit(self, rows: list[tuple[object, ...]]) -> None:
        owed, self.owed = self.owed, []
        async with self.room:
            try:
                self._heed(await heard(self.ray, self.keeper.put.remote(rows)))
            except EmpathyEvalError:  # the answers are lost, and were paid for
                owed = [(number, token, used, False) for number, token, used, _ in owed]
                raise
            finally:
                for call in owed:
                    self.keeper.settle.remote(*call)
        self.write((INSERT, rows))

    @contextmanager
    def stopping(self, asker: Asker) -> Iterator[None]:
        """Stops the asker once the keeper says so; it is asked now and then too, and told how the slice is going."""
        self._asker = asker
        asking = asyncio.create_task(self._ask())
        try:
            yield
        finally:
            asking.cancel()

    async def _ask(self) -> None:
        while self._asker and not self._asker.stopped:
            await asyncio.sleep(WORD)
            self.tell()
            try:
                self._heed(await heard(self.ray, self.keeper.stopping.remote()))
            except EmpathyEvalError as error:  # the keeper is lost
                self._asker.stopped = error

    def tell(self) -> None:
        """Tells the keeper how the slice is going."""
        self.keeper.tell.remote(self.number, self.course.counts(), tuple(self.course.notable(now())))

    def _heed(self, stop: bool) -> None:
        if stop and self._asker:
            self._asker.stopped = self._asker.stopped or stopped()


class _SliceBudget(Budget):
    """The budget of a slice: the keeper's, if one is to be kept."""

    def __init__(self, ledger: _SliceLedger, kept: bool) -> None:
        super().__init__(ledger, {}, set(), None, None)
        self._slice, self._number, self._kept = ledger, ledger.number, kept

    async def reserve(self, token: str, model: str, worst: Usage) -> None:
        async with self._slice.room:  # nothing is sent while many answers wait to be stored
            pass
        if self._kept:
            await heard(self._slice.ray, self._slice.keeper.reserve.remote(self._number, token, model, worst))

    def settle(self, token: str, model: str, worst: Usage, used: Usage | None, *, known: bool = True) -> None:
        if not self._kept:
            return
        call = (self._number, token, used, known)
        if used and used.output_tokens:  # an answer, which is stored next: until then its reservation stands
            self._slice.owed.append(call)
        else:
            self._slice.keeper.settle.remote(*call)


def fill(work: Work, number: int, keeper: Any) -> dict[str, str]:
    """Works on one slice of the plan, as ``build --slice`` does; returns by dialogue why items are missing."""
    return asyncio.run(_fill(work, number, keeper))


async def _fill(work: Work, number: int, keeper: Any) -> dict[str, str]:
    import ray

    part, job = (number, work.slices), work.job
    dialogues = list(dict.fromkeys(item.dialogue_id for item in part_of(job.items(), *part)))
    if any(one.requests_per_minute or one.tokens_per_minute for one in job.config.models.values()):
        # The slice before may have used a second's worth at once, as a pace allows: this one begins when that is over.
        await asyncio.sleep(1)
    with tempfile.TemporaryDirectory() as folder, closing(_SliceLedger(Path(folder) / LEDGER, ray, keeper, number)) as ledger:
        ledger.write((INSERT, await heard(ray, keeper.begin.remote(number, dialogues))))
        answering = await heard(ray, keeper.answering.remote())
        run = Run(
            part=part, instead=lambda models: known(models, answering), progress=lambda summary: ledger.tell(), course=ledger.course,
            keep_going=work.keep_going,
        )  # fmt: skip
        budget = _SliceBudget(ledger, work.limited)
        try:
            summary = await work_through(job, Path(folder), run, ledger, budget, ledger.stopping)
        finally:
            await heard(ray, keeper.end.remote(number))
    return dict(one.split(": ", 1) for one in summary.missing)


def known(models: dict[str, Model], answering: Collection[str]) -> dict[str, Model]:
    """The models, whose endpoints are waited for if they have answered another slice."""
    for model in models.values():
        if model.name in answering and (reception := getattr(model, "reception", None)):
            reception.heard()
    return models
