"""Parallel maps over processes or Ray: results in the order of the items, however many workers there are."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Any, Protocol, TypeVar

import joblib
from joblib.externals.loky import get_reusable_executor

from empathy_eval.base.errors import EmpathyEvalError, input_error, job_error, missing_package

# Starting processes costs more than they save below so many texts.
MANY = 16_384
MOST_PROCESSES = 8
Common = TypeVar("Common")
Item = TypeVar("Item")
Result = TypeVar("Result")
QUIET = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
# How long a cluster may take to take a connection.
SECONDS = 5
# The longest path, in bytes, of a folder for temporary files: Ray's sockets lie up to 77 deeper, and a socket may lie at 103 (on macOS).
LONGEST = 26
# How often a task is done again whose worker was lost.
MAX_RETRIES = 5


class ParallelMap(Protocol):
    """A map that decides where the work is done."""

    def __call__(self, work: Callable[[Common, Item], Result], common: Common, items: Iterable[Item]) -> Iterator[Result]:
        """Yields ``work(common, item)`` for each item, in order."""


def map_serially(work: Callable[[Common, Item], Result], common: Common, items: Iterable[Item]) -> Iterator[Result]:
    """Maps in this process, lazily."""
    return (work(common, item) for item in items)


def map_in_processes(texts: int, processes: int | None) -> ParallelMap:
    """A map in processes of this machine; by default one for each core if there are many texts."""
    if processes is None:
        processes = min(joblib.cpu_count(), MOST_PROCESSES) if texts >= MANY else 1
    # loky's workers do not run the caller's script again, as those of multiprocessing do.
    parallel = joblib.Parallel(n_jobs=processes, return_as="generator", backend="loky" if processes > 1 else "sequential")

    def spread(work: Callable[[Common, Item], Result], common: Common, items: Iterable[Item]) -> Iterator[Result]:
        yield from parallel(joblib.delayed(work)(common, item) for item in items)
        if processes > 1:
            # Idle workers would keep their memory while the caller goes on.
            get_reusable_executor().shutdown()

    return spread


@contextmanager
def ray_session(address: str | None = None, workers: int | None = None, *, deaf: bool = False) -> Iterator[Any]:
    """Yields the package ``ray``, connected: the present connection, else ``address`` or RAY_ADDRESS, else a local Ray.

    A local Ray has ``workers`` (by default one for each core), keeps its files in a temporary folder, and ends with the block. With
    ``deaf``, its processes ignore SIGTERM and SIGHUP, as they always ignore Ctrl-C: some systems send signals to all processes of a
    command. It then takes four seconds longer to end.

    Raises:
        InputError: if Ray is not installed, or no cluster answers.
    """
    # Nothing is reported to Ray's makers unless the user says so.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise missing_package("--engine ray", "ray") from error
    address = address or os.environ.get("RAY_ADDRESS")
    if ray.is_initialized():
        yield ray
        return
    # Ray tells of lost workers on standard output, where a program may be reading.
    with redirect_stdout(sys.stderr), _cluster_session(ray, address) if address and address != "local" else local_ray(ray, workers, deaf):
        yield ray


@contextmanager
def _cluster_session(ray: Any, address: str) -> Iterator[None]:
    if address.startswith("ray://"):
        fix = 'run this command on a machine of the cluster, with --ray-address auto; "ray job submit" does it from elsewhere'
        raise input_error("--ray-address", f'"{address}" is the address of Ray Client, which cannot see the ledger', fix)
    host, colon, port = address.rpartition(":")
    try:
        if colon and port.isdigit():  # Ray itself would try for minutes
            socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS).close()
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        what = f'no cluster answers at "{address}": {" ".join(str(error).split())[:200]}'
        raise input_error("--ray-address", what, 'run "ray start --head", or correct --ray-address or RAY_ADDRESS') from error
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def local_ray(ray: Any, workers: int | None, deaf: bool = False) -> Iterator[None]:
    """A Ray of this machine that ends with the block; with ``deaf`` it ignores SIGTERM and SIGHUP.

    Raises:
        JobError: if none can be started.
    """
    # A token of its own keeps other users of the machine out; without one Ray would write one into the home folder.
    if "RAY_AUTH_TOKEN_PATH" not in os.environ:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    with tempfile.TemporaryDirectory(prefix="ray-", dir=_short_temp_dir(), ignore_cleanup_errors=True) as folder:
        try:
            try:
                with _signals_blocked() if deaf else nullcontext():
                    ray.init(address="local", num_cpus=workers, _temp_dir=folder, **QUIET)
            except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
                what = f'no Ray can be started in "{folder}": {" ".join(str(error).split())[:200]}'
                fix = "check disk space and TMPDIR, then run the same command; or leave out --engine"
                raise job_error("--engine ray", what, fix) from error
            yield
        finally:
            ray.shutdown()


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Processes started in the block ignore SIGTERM and SIGHUP, as Ray does by itself for Ctrl-C."""
    if not hasattr(signal, "SIGHUP"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _short_temp_dir() -> str:
    """A folder for temporary files with a path short enough for Ray's sockets, if there is one."""
    usual, short = tempfile.gettempdir(), "/tmp"  # noqa: S108 (the folder in it is this process's own)
    return short if len(os.fsencode(usual)) > LONGEST and Path(short).is_dir() else usual


@contextmanager
def unwrapped_ray_errors(ray: Any) -> Iterator[None]:
    """Raises errors of tasks as they were raised there; a loss that Ray gives up on becomes a :class:`JobError`."""
    try:
        yield
    except ray.exceptions.RayError as error:
        cause = error
        while isinstance(cause, ray.exceptions.RayTaskError):
            cause = cause.cause
        if isinstance(cause, EmpathyEvalError) or not isinstance(cause, ray.exceptions.RayError):
            raise cause from None
        what = f"Ray gave up: {type(cause).__name__}: {' '.join(str(cause).split())[:200]}"
        raise job_error("--engine ray", what, "check the machines, then run the same command to continue; what is done is kept") from error


async def ray_result(ray: Any, reference: Any) -> Any:
    """The result of a task or an actor call, with errors as they were raised there."""
    with unwrapped_ray_errors(ray):
        return await reference


def map_over_ray(ray: Any) -> ParallelMap:
    """A map over Ray tasks: results in order, a bounded number of tasks at once."""
    most = 2 * task_slots(ray)

    def spread(work: Callable[[Common, Item], Result], common: Common, items: Iterable[Item]) -> Iterator[Result]:
        task, shared, running = ray.remote(work).options(max_retries=MAX_RETRIES), ray.put(common), deque[Any]()
        with unwrapped_ray_errors(ray):
            for item in items:
                running.append(task.remote(shared, item))
                if len(running) >= most:
                    yield ray.get(running.popleft())
            while running:
                yield ray.get(running.popleft())

    return spread


def task_slots(ray: Any) -> int:
    """How many tasks the cluster can run at once."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))
