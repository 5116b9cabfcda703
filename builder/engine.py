"""A build over many machines: slices of the plan as Ray tasks, every answer sent to the one ledger as it comes, then a replay."""

from __future__ import annotations

import asyncio
import signal
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from builder.budget import Budget
from builder.cluster import AGAIN, joined, plain_errors, workers_of
from builder.config import Configuration
from builder.errors import InputError, input_error, job_error
from builder.ledger import INSERT, Entry, Ledger, row_of
from builder.pipeline import LEDGER, Run, build, opened, work_through
from builder.planning import part_of, plans
from builder.prompts import Prompts
from builder.records import Usage
from builder.scenarios import Catalogue
from builder.summary import Summary

# Slices a lane works on, one after the other: a lost worker loses less, and none waits long for the last.
SLICES_A_LANE = 4
# Answers that a slice has sent and has not yet heard of: so many, and no more, are lost with their worker.
SENT = 16
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Work:
    """What all slices have in common: ``config`` has their share of the pace, ``slices`` is their number."""

    config: Configuration
    catalogue: Catalogue
    prompts: Prompts
    slices: int
    limited: bool = False


class Keeper:
    """Holds the ledger and the budget of a build for its slices; one process, on the machine where the ledger is."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._status: dict[int, Counter[str]] = {}
        # By slice, the worst cases of the requests it has under way.
        self._open: dict[int, dict[str, tuple[str, Usage]]] = {}

    async def open(self, config: Configuration, out: Path, run: Run) -> bool:
        """Opens the ledger; returns whether a budget is to be kept. Raises as :func:`builder.pipeline.build`."""
        self._ledger, self._budget = self._stack.enter_context(opened(config, out, run))
        return self._budget.limited

    async def begin(self, number: int, dialogues: Sequence[str]) -> Rows:
        """The rows of a slice's dialogues. If a worker was lost with the slice, its open requests keep their reservations."""
        for token, (model, worst) in self._open.pop(number, {}).items():
            self._budget.settle(token, model, worst, None, known=False)
        self._open[number] = {}
        marks = ",".join("?" * len(dialogues))
        query = f"SELECT * FROM completions WHERE dialogue_id IN ({marks})"  # noqa: S608 (placeholders alone)
        return list(self._ledger.query(query, dialogues))

    async def put(self, rows: Rows) -> None:
        """Stores rows in one commit."""
        self._ledger.write((INSERT, rows))

    async def reserve(self, number: int, token: str, model: str, worst: Usage) -> None:
        """As :meth:`builder.budget.Budget.reserve`, for a slice."""
        begun = self._open[number]
        await self._budget.reserve(token, model, worst)
        if begun is self._open[number]:
            begun[token] = (model, worst)
        else:  # its worker was lost while it waited, so it was never sent
            self._budget.settle(token, model, worst, None)

    async def settle(self, number: int, token: str, used: Usage | None, known: bool) -> None:
        """As :meth:`builder.budget.Budget.settle`, for a slice."""
        if (found := self._open[number].pop(token, None)) is not None:
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


class _SliceLedger(Ledger):
    """The ledger of a slice: what is stored in it is sent on to the keeper."""

    def __init__(self, path: Path, ray: Any, keeper: Any) -> None:
        super().__init__(path)
        self._ray, self._keeper = ray, keeper
        self._sent = list[Any]()

    def put(self, *entries: Entry) -> None:
        super().put(*entries)
        self._sent.append(self._keeper.put.remote([row_of(entry) for entry in entries]))
        with plain_errors(self._ray):
            heard, self._sent = self._ray.wait(self._sent, num_returns=len(self._sent), timeout=0)
            self._ray.get([*heard, *self._sent[:-SENT]])
        self._sent = self._sent[-SENT:]

    def close(self) -> None:
        """Waits until the keeper has stored everything; Ctrl-C, which Ray gives again every two seconds, does not cut it short."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            super().close()
            with plain_errors(self._ray):
                self._ray.get(self._sent)
        finally:
            signal.signal(signal.SIGINT, before)


class _SliceBudget(Budget):
    """The budget of a slice: the keeper's."""

    def __init__(self, ledger: Ledger, ray: Any, keeper: Any, number: int) -> None:
        super().__init__(ledger, {}, set(), None, None)
        self._ray, self._keeper, self._number = ray, keeper, number

    async def reserve(self, token: str, model: str, worst: Usage) -> None:
        with plain_errors(self._ray):
            await self._keeper.reserve.remote(self._number, token, model, worst)

    def settle(self, token: str, model: str, worst: Usage, used: Usage | None, *, known: bool = True) -> None:
        self._keeper.settle.remote(self._number, token, used, known)


def fill(work: Work, number: int, keeper: Any) -> dict[str, str]:
    """Works on one slice of the plan, as ``build --slice`` does; returns by dialogue why items are missing."""
    import ray

    part = (number, work.slices)
    dialogues = [plan.dialogue_id for plan in part_of(plans(work.config, work.catalogue), *part)]
    if any(one.requests_per_minute or one.tokens_per_minute for one in work.config.models.values()):
        # The slice before may have used a second's worth at once, as a pace allows: this one begins when that is over.
        time.sleep(1)
    with tempfile.TemporaryDirectory() as folder, _SliceLedger(Path(folder) / LEDGER, ray, keeper) as ledger:
        with plain_errors(ray):
            ledger.write((INSERT, ray.get(keeper.begin.remote(number, dialogues))))
        budget = _SliceBudget(ledger, ray, keeper, number) if work.limited else Budget(ledger, {}, set(), None, None)
        # Ray cancels again every two seconds.
        run = Run(part=part, patient=True, progress=lambda summary: keeper.tell.remote(number, summary.status))
        inputs = (work.config, Path(folder), work.catalogue, work.prompts)
        summary = asyncio.run(work_through(*inputs, run, ledger, budget))
    return dict(one.split(": ", 1) for one in summary.missing)


def build_on_ray(
    config: Configuration, out: Path, catalogue: Catalogue, prompts: Prompts, run: Run | None = None, *, address: str | None = None
) -> Summary:
    """:func:`builder.pipeline.build`, with the asking and the checks done by Ray tasks; it gives the same bytes.

    Raises:
        InputError: if Ray is not installed or no cluster answers, for a part or an offline run, and as ``build``.
        JobError: as ``build``, and if workers are lost again and again.
    """
    run = run or Run()
    if run.offline or run.part or run.notes:
        raise only_whole()
    with joined(address) as ray, plain_errors(ray):
        left = _filled(ray, config, out.absolute(), catalogue, prompts, run)
    # What is neither in the ledger nor known to be missing (two slices had different answers to one request) is asked for here.
    return build(config, out, catalogue, prompts, replace(run, left=left))


def only_whole() -> InputError:
    """The error for another way to build that is asked for beside Ray."""
    return input_error("--engine ray", "only builds a whole plan live", "leave out --offline, --slice, --batch and --requests-to")


def _filled(ray: Any, config: Configuration, out: Path, catalogue: Catalogue, prompts: Prompts, run: Run) -> dict[str, str]:
    """Fills the ledger; returns by dialogue why items are missing."""
    items = sum(1 for _ in plans(config, catalogue))
    lanes = min(workers_of(ray), items, *(one.in_flight for one in config.models.values()))
    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    keeper = ray.remote(Keeper).options(num_cpus=0, max_concurrency=100_000, scheduling_strategy=here).remote()
    kept = Run(run.ledger and run.ledger.absolute(), False, run.budget_dollars, run.budget_tokens)
    limited = ray.get(keeper.open.remote(config, out, kept))
    try:
        work = Work(divided(config, lanes), catalogue, prompts, min(items, SLICES_A_LANE * lanes), limited)

        def watch() -> None:
            run.progress(Summary(items, None, ray.get(keeper.told.remote())))

        return _all_slices(ray, work, keeper, lanes, watch)
    finally:
        ray.get(keeper.close.remote())


def _all_slices(ray: Any, work: Work, keeper: Any, lanes: int, watch: Callable[[], None]) -> dict[str, str]:
    """Runs the slices, so many at once; after the first error or Ctrl-C nothing more is sent, and answers under way are stored."""
    task, shared, left = ray.remote(fill).options(num_cpus=1, max_retries=AGAIN), ray.put(work), dict[str, str]()
    waiting, running = deque(range(1, work.slices + 1)), list[Any]()
    try:
        while waiting or running:
            while waiting and len(running) < lanes:
                running.append(task.remote(shared, waiting.popleft(), keeper))
            done, running = ray.wait(running, timeout=1)
            for one in ray.get(done):
                left |= one
            watch()
    except KeyboardInterrupt:
        raise job_error("build", "stopped by Ctrl-C", "run the same command to go on; every answer so far is in the ledger") from None
    finally:
        for one in running:
            ray.cancel(one, recursive=False)  # as Ctrl-C does; what it sent to the keeper is stored all the same
        ray.wait(running, num_returns=len(running)) if running else None
    return left


def divided(config: Configuration, lanes: int) -> Configuration:
    """A configuration with one lane's share of what an endpoint may be asked at once, and a minute."""
    models = {
        role: replace(
            one,
            in_flight=one.in_flight // lanes,
            requests_per_minute=one.requests_per_minute and one.requests_per_minute / lanes,
            tokens_per_minute=one.tokens_per_minute and one.tokens_per_minute / lanes,
        )
        for role, one in config.models.items()
    }
    return replace(config, models=models)
