"""Builds on Ray: shards of the plan as tasks that send every answer to the one ledger, then a replay."""

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
from empathy_eval.base.workers import MAX_RETRIES, ray_result, ray_session, task_slots, unwrapped_ray_errors
from empathy_eval.completions.asker import Asker
from empathy_eval.completions.budget import Budget, Spent
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.ledger_rows import INSERT
from empathy_eval.completions.requests import Notice, Usage
from empathy_eval.design.endpoints import JobConfig
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.build import Run, build, opened, run_job
from empathy_eval.generation.job import Job, job_of, shard
from empathy_eval.generation.outcomes import LEDGER
from empathy_eval.generation.summary import STATUSES, RunProgress, Summary

Rows = list[tuple[Any, ...]]
# Stores that a slice has sent and has not yet heard of; while there are so many it sends no request, for they are lost with its worker.
MAX_PENDING_STORES = 16
# Seconds between two words with the keeper, of a slice that has nothing to store.
REPORT_SECONDS = 0.5
A = TypeVar("A", bound=JobConfig)
# Slices a lane works on, one after the other: a lost worker loses less, and none waits long for the last.
SHARDS_PER_LANE = 4
WARN_LOST = "answers of running slices that are not yet in the ledger may be lost and paid for again; all other answers are kept"


class Coordinator:
    """Holds the ledger and budget of a build for its shards; one process, on the ledger's machine."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._counts: dict[int, Counter[str]] = {}
        self._notices: dict[int, tuple[Notice, ...]] = {}
        self._answering = set[str]()
        # By slice, the worst cases of the requests it has under way.
        self._open: dict[int, dict[str, tuple[str, Usage]]] = {}
        self._changed = asyncio.Event()
        self._stop = False

    async def open(self, config: JobConfig, out: Path, run: Run) -> bool:
        """Opens the ledger; returns whether there is a budget. Raises as :func:`empathy_eval.generation.build.build`."""
        self._ledger, self._budget = self._stack.enter_context(opened(config, out, run))
        return self._budget.limited

    async def begin(self, number: int, dialogues: Sequence[str]) -> Rows:
        """The ledger rows of a shard's dialogues. If its worker was lost before, its open requests keep their reservations.

        Raises:
            JobError: if the shards are stopping.
        """
        if self._stop:
            raise stopped_error()
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
        """Whether to stop, for a shard that only waits."""
        return self._stop

    async def stop(self) -> set[int]:
        """Makes all shards stop sending and store pending answers; returns those that have begun."""
        self._stop = True
        return set(self._open)

    async def end(self, number: int) -> None:
        """Waits until all requests of a finished shard are settled: calls may arrive in any order."""
        self._notices.pop(number, None)
        while self._open[number]:
            self._changed.clear()
            await self._changed.wait()

    async def reserve(self, number: int, token: str, model: str, worst: Usage) -> None:
        """As :meth:`empathy_eval.completions.budget.Budget.reserve`, for a shard."""
        begun = self._open[number]
        await self._budget.reserve(token, model, worst)
        if begun is self._open[number]:
            begun[token] = (model, worst)
        else:  # its worker was lost while it waited, so it was never sent
            self._budget.settle(token, model, worst, None)

    async def settle(self, number: int, token: str, used: Usage | None, known: bool) -> None:
        """As :meth:`empathy_eval.completions.budget.Budget.settle`, for a shard."""
        if (reserved := self._open[number].pop(token, None)) is not None:
            self._changed.set()
            self._budget.settle(token, *reserved, used, known=known)

    async def answering(self) -> set[str]:
        """The names of the models that have answered since the start."""
        return self._answering

    async def report(self, number: int, counts: Counter[str], notices: tuple[Notice, ...]) -> None:
        """Records the progress of a shard."""
        self._counts[number], self._notices[number] = counts, notices

    async def totals(self) -> tuple[Counter[str], Spent, tuple[Notice, ...]]:
        """The progress of all shards: summed counts, the cost of all answers, and each notice once."""
        notices = {notice.key: notice for group in self._notices.values() for notice in group}
        return sum(self._counts.values(), Counter()), self._budget.spent, tuple(notices.values())

    async def close(self) -> None:
        """Closes the ledger."""
        self._stack.close()


def stopped_error() -> JobError:
    """The error of a shard that was told to stop; the command ends with the original reason."""
    return job_error("build", "stopped with the other slices", "run the same command to continue; every answer so far is in the ledger")


@dataclass(frozen=True)
class ShardWork:
    """What all shards share: the job with their share of the rate limits; ``shards`` is their number."""

    job: Job
    shards: int
    limited: bool = False
    keep_going: bool = False


class _ShardLedger(Ledger):
    """The ledger of a shard: the keeper stores answers first, and replies whether to stop."""

    def __init__(self, path: Path, ray: Any, keeper: Any, number: int) -> None:
        super().__init__(path)
        self.ray, self.keeper, self.number, self.course = ray, keeper, number, RunProgress()
        self.room = asyncio.Semaphore(MAX_PENDING_STORES)
        self._asker: Asker | None = None
        # What the keeper is to settle once the answer is stored.
        self.owed = list[tuple[int, str, Usage | None, bool]]()

    async def commit(self, rows: list[tuple[object, ...]]) -> None:
        owed, self.owed = self.owed, []
        async with self.room:
            try:
                self._heed(await ray_result(self.ray, self.keeper.put.remote(rows)))
            except EmpathyEvalError:  # the answers are lost, and were paid for
                owed = [(number, token, used, False) for number, token, used, _ in owed]
                raise
            finally:
                for call in owed:
                    self.keeper.settle.remote(*call)
        self.write((INSERT, rows))

    @contextmanager
    def stopping(self, asker: Asker) -> Iterator[None]:
        """Context manager: stops the asker once the keeper says so, and reports progress to the keeper."""
        self._asker = asker
        asking = asyncio.create_task(self._ask())
        try:
            yield
        finally:
            asking.cancel()

    async def _ask(self) -> None:
        while self._asker and not self._asker.stopped:
            await asyncio.sleep(REPORT_SECONDS)
            self.report()
            try:
                self._heed(await ray_result(self.ray, self.keeper.stopping.remote()))
            except EmpathyEvalError as error:  # the keeper is lost
                self._asker.stop(error)

    def report(self) -> None:
        """Reports the progress of the shard to the keeper."""
        self.keeper.report.remote(self.number, self.course.counts(), tuple(self.course.notices_at(now())))

    def _heed(self, stop: bool) -> None:
        if stop and self._asker:
            self._asker.stop(stopped_error())


class _ShardBudget(Budget):
    """The budget of a shard: the keeper's, if there is one."""

    def __init__(self, ledger: _ShardLedger, kept: bool) -> None:
        super().__init__()
        self._slice, self._number, self._kept = ledger, ledger.number, kept

    async def reserve(self, token: str, model: str, worst: Usage) -> None:
        async with self._slice.room:  # nothing is sent while many answers wait to be stored
            pass
        if self._kept:
            await ray_result(self._slice.ray, self._slice.keeper.reserve.remote(self._number, token, model, worst))

    def settle(self, token: str, model: str, worst: Usage, used: Usage | None, *, known: bool = True) -> None:
        if not self._kept:
            return
        call = (self._number, token, used, known)
        if used and used.output_tokens:  # an answer, which is stored next: until then its reservation stands
            self._slice.owed.append(call)
        else:
            self._slice.keeper.settle.remote(*call)


def run_shard(work: ShardWork, number: int, keeper: Any) -> dict[str, str]:
    """Works on one shard of the plan, as ``build --slice`` does; returns by dialogue why items are missing."""
    return asyncio.run(_run_shard(work, number, keeper))


async def _run_shard(work: ShardWork, number: int, keeper: Any) -> dict[str, str]:
    import ray

    part, job = (number, work.shards), work.job
    dialogues = list(dict.fromkeys(item.dialogue_id for item in shard(job.items(), *part)))
    if any(model.requests_per_minute or model.tokens_per_minute for model in job.config.models.values()):
        # The slice before may have used a second's worth at once, as a pace allows: this one begins when that is over.
        await asyncio.sleep(1)
    with tempfile.TemporaryDirectory() as folder, closing(_ShardLedger(Path(folder) / LEDGER, ray, keeper, number)) as ledger:
        ledger.write((INSERT, await ray_result(ray, keeper.begin.remote(number, dialogues))))
        answering = await ray_result(ray, keeper.answering.remote())
        run = Run(
            part=part, answering=answering, progress=lambda summary: ledger.report(), course=ledger.course,
            keep_going=work.keep_going,
        )  # fmt: skip
        budget = _ShardBudget(ledger, work.limited)
        try:
            summary = await run_job(job, Path(folder), run, ledger, budget, ledger.stopping)
        finally:
            await ray_result(ray, keeper.end.remote(number))
    return dict(line.split(": ", 1) for line in summary.missing)


def build_on_ray(what: Recipe | Job, out: Path, run: Run | None = None, *, address: str | None = None) -> Summary:
    """:func:`empathy_eval.generation.build.build` with its requests and checks in Ray tasks; the bytes are the same.

    Raises:
        InputError: if Ray is not installed or no cluster answers, for a part or an offline run, and as ``build``.
        JobError: as ``build``, and if workers are lost repeatedly.
        KeyboardInterrupt: at a second Ctrl-C; answers that shards hold are lost.
    """
    run, job = run or Run(), job_of(what)
    if run.offline or run.part or run.notes:
        raise whole_plan_only_error()
    job.resolved()  # the tasks find for themselves what it names
    with ray_session(address, deaf=True) as ray, unwrapped_ray_errors(ray):
        _refuse_unsendable(ray, job)
        try:
            left = asyncio.run(_run_shards(ray, job, out.absolute(), run))
        except KeyboardInterrupt:
            raise KeyboardInterrupt(WARN_LOST) from None
    # What is neither in the ledger nor known to be missing (two slices had different answers to one request) is asked for here.
    # The slices have seen to it that something comes of the items.
    return build(job, out, replace(run, keep_going=True, skip_reasons=left))


def _refuse_unsendable(ray: Any, job: Job) -> None:
    """Raises an :class:`InputError` for custom objects that cannot be sent to other processes."""
    problems = []
    for what, value in job.objects.items():
        try:
            ray.cloudpickle.dumps(value)
        except Exception as error:  # an object's own pickling may raise anything
            fault = f"cannot be sent to other processes: {type(error).__name__}: {str(error)[:200]}"
            problems.append(Problem(what, fault, "create its contents at the first request, or build without --engine ray"))
    refuse(problems)


def whole_plan_only_error() -> InputError:
    """The error for combining Ray with another way to build."""
    return input_error("--engine ray", "only builds a whole plan live", "leave out --offline, --slice, --batch and --requests-to")


async def _run_shards(ray: Any, job: Job, out: Path, run: Run) -> dict[str, str]:
    """Fills the ledger; returns by dialogue why items are missing."""
    config, items = job.config, job.planned()
    lanes = min(task_slots(ray), items, *(model.in_flight for model in config.active_models.values()))
    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    keeper = ray.remote(Coordinator).options(num_cpus=0, max_concurrency=100_000, scheduling_strategy=here).remote()
    kept = Run(run.ledger and run.ledger.absolute(), False, run.budget_dollars, run.budget_tokens)
    limited = await ray_result(ray, keeper.open.remote(config, out, kept))
    try:
        work = ShardWork(job.configured(lane_config(config, lanes)), min(items, SHARDS_PER_LANE * lanes), limited, run.keep_going)
        return await _all_shards(ray, work, keeper, lanes, run)
    finally:
        await ray_result(ray, keeper.close.remote())


async def _all_shards(ray: Any, work: ShardWork, keeper: Any, lanes: int, run: Run) -> dict[str, str]:
    """Runs the shards, a few at once. After an error or a signal nothing more is sent, and pending answers are stored."""
    task, shared, left = ray.remote(run_shard).options(num_cpus=1, max_retries=MAX_RETRIES), ray.put(work), dict[str, str]()
    waiting, running = deque(range(1, work.shards + 1)), dict[asyncio.Future[Any], int]()
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
                    running[asyncio.create_task(ray_result(ray, task.remote(shared, number, keeper)))] = number
                done, _ = await asyncio.wait([*running, signalled], timeout=1, return_when=asyncio.FIRST_COMPLETED)
                for future in done & running.keys():
                    del running[future]
                    left |= future.result()
                if not signalled.done():
                    course.remote_counts, course.spent, notices = await ray_result(ray, keeper.totals.remote())
                    course.notices = course.notices if signalled.done() else notices  # a signal may have come meanwhile
                    course.summary = replace(course.summary, status=Counter({name: course.remote_counts[name] for name in STATUSES}))
                    run.progress(course.summary)
        finally:
            # A slice that has not begun needs no waiting for: once it begins it is told, or there is no keeper any more.
            begun = await ray_result(ray, keeper.stop.remote())
            await asyncio.gather(*(future for future, number in running.items() if number in begun), return_exceptions=True)
    if signalled.done():
        raise signalled.result()
    return left


def lane_config(config: A, lanes: int) -> A:
    """A configuration with one lane's share of the rate limits."""
    models = {}
    for role, model in config.models.items():
        rates = {name: rate / lanes for name in ("requests_per_minute", "tokens_per_minute") if (rate := getattr(model, name))}
        models[role] = replace(model, in_flight=model.in_flight // lanes, **rates)
    return replace(config, models=models)  # type: ignore[type-var]
