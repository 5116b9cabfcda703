"""A build over many machines: slices of the plan as Ray tasks, every answer sent to the one ledger as it comes, then a replay."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from empathy_eval.base.errors import EmpathyEvalError, InputError, JobError, Problem, input_error, job_error, refuse
from empathy_eval.base.stages import now
from empathy_eval.base.stopping import AT_ONCE, stopped_by_signals
from empathy_eval.base.workers import AGAIN, heard, joined, plain_errors, workers_of
from empathy_eval.completions.asker import Asker
from empathy_eval.completions.budget import Budget, Spent
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.ledger_rows import INSERT
from empathy_eval.completions.requests import Notice, Usage
from empathy_eval.design.endpoints import Asks
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.build import Run, build, opened, work_through
from empathy_eval.generation.build_folder import LEDGER
from empathy_eval.generation.job import Job, job_of, part_of
from empathy_eval.generation.summary import STATUSES, Course, Summary

Rows = list[tuple[Any, ...]]


class Coordinator:
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
        super().__init__()
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
            part=part, answering=answering, progress=lambda summary: ledger.tell(), course=ledger.course,
            keep_going=work.keep_going,
        )  # fmt: skip
        budget = _SliceBudget(ledger, work.limited)
        try:
            summary = await work_through(job, Path(folder), run, ledger, budget, ledger.stopping)
        finally:
            await heard(ray, keeper.end.remote(number))
    return dict(one.split(": ", 1) for one in summary.missing)


A = TypeVar("A", bound=Asks)
# Slices a lane works on, one after the other: a lost worker loses less, and none waits long for the last.
SLICES_A_LANE = 4
LOST = "answers of running slices that are not yet in the ledger may be lost and paid for again; all other answers are kept"


def build_on_ray(what: Recipe | Job, out: Path, run: Run | None = None, *, address: str | None = None) -> Summary:
    """:func:`empathy_eval.generation.build.build`, with the asking and the checks done by Ray tasks; it gives the same bytes.

    Raises:
        InputError: if Ray is not installed or no cluster answers, for a part or an offline run, and as ``build``.
        JobError: as ``build``, and if workers are lost again and again.
        KeyboardInterrupt: at a second Ctrl-C, saying that answers may be lost: those that slices have go down with them.
    """
    run, job = run or Run(), job_of(what)
    if run.offline or run.part or run.notes:
        raise only_whole()
    job.found()  # the tasks find for themselves what it names
    with joined(address, deaf=True) as ray, plain_errors(ray):
        _refuse_unsendable(ray, job)
        try:
            left = asyncio.run(_filled(ray, job, out.absolute(), run))
        except KeyboardInterrupt:
            raise KeyboardInterrupt(LOST) from None
    # What is neither in the ledger nor known to be missing (two slices had different answers to one request) is asked for here.
    # The slices have seen to it that something comes of the items.
    return build(job, out, replace(run, keep_going=True, unasked=left))


def _refuse_unsendable(ray: Any, job: Job) -> None:
    """Raises an :class:`InputError` for objects of one's own that no other process can have."""
    problems = []
    for what, one in job.objects.items():
        try:
            ray.cloudpickle.dumps(one)
        except Exception as error:  # an object's own pickling may raise anything
            said = f"cannot be sent to other processes: {type(error).__name__}: {str(error)[:200]}"
            problems.append(Problem(what, said, "create its contents at the first request, or build without --engine ray"))
    refuse(problems)


def only_whole() -> InputError:
    """The error for another way to build that is asked for beside Ray."""
    return input_error("--engine ray", "only builds a whole plan live", "leave out --offline, --slice, --batch and --requests-to")


async def _filled(ray: Any, job: Job, out: Path, run: Run) -> dict[str, str]:
    """Fills the ledger; returns by dialogue why items are missing."""
    config, items = job.config, job.planned()
    lanes = min(workers_of(ray), items, *(one.in_flight for one in config.asked.values()))
    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    keeper = ray.remote(Coordinator).options(num_cpus=0, max_concurrency=100_000, scheduling_strategy=here).remote()
    kept = Run(run.ledger and run.ledger.absolute(), False, run.budget_dollars, run.budget_tokens)
    limited = await heard(ray, keeper.open.remote(config, out, kept))
    try:
        work = Work(job.configured(divided(config, lanes)), min(items, SLICES_A_LANE * lanes), limited, run.keep_going)
        return await _all_slices(ray, work, keeper, lanes, run)
    finally:
        await heard(ray, keeper.close.remote())


async def _all_slices(ray: Any, work: Work, keeper: Any, lanes: int, run: Run) -> dict[str, str]:
    """Runs the slices, so many at once; after the first error or a signal nothing more is sent, and answers under way are stored."""
    task, shared, left = ray.remote(fill).options(num_cpus=1, max_retries=AGAIN), ray.put(work), dict[str, str]()
    waiting, running = deque(range(1, work.slices + 1)), dict[asyncio.Future[Any], int]()
    signalled: asyncio.Future[JobError] = asyncio.get_running_loop().create_future()
    course = run.course
    course.summary = work.job.summary(work.job.planned(), None)

    def stop(error: JobError) -> None:
        signalled.set_result(error)
        course.notices = (Notice("stop", f"{error.problems[0].what}: waiting for running requests, if any; {AT_ONCE}"),)

    with stopped_by_signals(stop):
        try:
            while (waiting or running) and not signalled.done():
                while waiting and len(running) < lanes:
                    number = waiting.popleft()
                    running[asyncio.create_task(heard(ray, task.remote(shared, number, keeper)))] = number
                done, _ = await asyncio.wait([*running, signalled], timeout=1, return_when=asyncio.FIRST_COMPLETED)
                for one in done & running.keys():
                    del running[one]
                    left |= one.result()
                if not signalled.done():
                    course.told, course.spent, notices = await heard(ray, keeper.told.remote())
                    course.notices = course.notices if signalled.done() else notices  # a signal may have come meanwhile
                    course.summary = replace(course.summary, status=Counter({name: course.told[name] for name in STATUSES}))
                    run.progress(course.summary)
        finally:
            # A slice that has not begun needs no waiting for: once it begins it is told, or there is no keeper any more.
            begun = await heard(ray, keeper.stop.remote())
            await asyncio.gather(*(one for one, number in running.items() if number in begun), return_exceptions=True)
    if signalled.done():
        raise signalled.result()
    return left


def divided(config: A, lanes: int) -> A:
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
    return replace(config, models=models)  # type: ignore[type-var]
