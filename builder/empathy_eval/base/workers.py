"""Work spread over processes: results in the order of the items, however many work on them."""

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


class Spread(Protocol):
    """Where work on items is done."""

    def __call__(self, work: Callable[[Common, Item], Result], common: Common, items: Iterable[Item]) -> Iterator[Result]:
        """``work(common, item)`` of each item, in the order of the items."""


def here(work: Callable[[Common, Item], Result], common: Common, items: Iterable[Item]) -> Iterator[Result]:
    """In this process, an item when its result is asked for."""
    return (work(common, item) for item in items)


def local_processes(texts: int, processes: int | None) -> Spread:
    """In processes of this machine: so many, or one a core where there are many texts to work on."""
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


QUIET = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
# How long a cluster may take to take a connection.
SECONDS = 5
# The longest path, in bytes, of a folder for temporary files: Ray's sockets lie up to 77 deeper, and a socket may lie at 103 (on macOS).
LONGEST = 26
# How often a task is done again whose worker was lost.
AGAIN = 5


@contextmanager
def joined(address: str | None = None, workers: int | None = None, *, deaf: bool = False) -> Iterator[Any]:
    """The package ``ray``, connected: as it is already, else to ``address`` or RAY_ADDRESS, else to a Ray of this machine alone.

    The last has ``workers`` (by default one a core), keeps its files in a temporary folder, and ends with the block. Where it is
    ``deaf`` only this process hears SIGTERM and SIGHUP, as with Ctrl-C always, which some send to all processes of a command; it takes
    four seconds more to end.

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
    with redirect_stdout(sys.stderr), _there(ray, address) if address and address != "local" else own_ray(ray, workers, deaf):
        yield ray


@contextmanager
def _there(ray: Any, address: str) -> Iterator[None]:
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
def own_ray(ray: Any, workers: int | None, deaf: bool = False) -> Iterator[None]:
    """A Ray of this machine alone, ended with the block; a ``deaf`` one hears neither SIGTERM nor SIGHUP.

    Raises:
        JobError: if none can be started.
    """
    # A token of its own keeps other users of the machine out; without one Ray would write one into the home folder.
    if "RAY_AUTH_TOKEN_PATH" not in os.environ:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    with tempfile.TemporaryDirectory(prefix="ray-", dir=_near(), ignore_cleanup_errors=True) as folder:
        try:
            try:
                with _unheard() if deaf else nullcontext():
                    ray.init(address="local", num_cpus=workers, _temp_dir=folder, **QUIET)
            except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
                what = f'no Ray can be started in "{folder}": {" ".join(str(error).split())[:200]}'
                raise job_error(
                    "--engine ray", what, "check disk space and TMPDIR, then run the same command; or leave out --engine"
                ) from error
            yield
        finally:
            ray.shutdown()


@contextmanager
def _unheard() -> Iterator[None]:
    """What is started within hears neither SIGTERM nor SIGHUP, as Ray itself does it for Ctrl-C."""
    if not hasattr(signal, "SIGHUP"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _near() -> str:
    """A folder for temporary files whose path is short enough for Ray's sockets, if there is one."""
    usual, short = tempfile.gettempdir(), "/tmp"  # noqa: S108 (the folder in it is this process's own)
    return short if len(os.fsencode(usual)) > LONGEST and Path(short).is_dir() else usual


@contextmanager
def plain_errors(ray: Any) -> Iterator[None]:
    """Errors as they were where they were raised; a loss that Ray gives up on is a job that could not finish."""
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


async def heard(ray: Any, reference: Any) -> Any:
    """What a task or a call of an actor gives, with errors as they were where they were raised."""
    with plain_errors(ray):
        return await reference


def spread_over(ray: Any) -> Spread:
    """What maps ``work(common, item)`` over items as Ray tasks: results in the order of the items, a bounded number at once."""
    most = 2 * workers_of(ray)

    def spread(work: Callable[[Common, Item], Result], common: Common, items: Iterable[Item]) -> Iterator[Result]:
        task, shared, running = ray.remote(work).options(max_retries=AGAIN), ray.put(common), deque[Any]()
        with plain_errors(ray):
            for item in items:
                running.append(task.remote(shared, item))
                if len(running) >= most:
                    yield ray.get(running.popleft())
            while running:
                yield ray.get(running.popleft())

    return spread


def workers_of(ray: Any) -> int:
    """How many tasks the cluster can work on at once."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))
