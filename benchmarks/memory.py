"""What a command takes: seconds, and the peak memory of its largest process and of all its processes together."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

POLL = 0.5


def measured(command: Sequence[str], *, output: int | None = None, kill: Callable[[], bool] = lambda: False) -> dict[str, float]:
    """Runs a command: wall and CPU seconds, and megabytes. It is killed (kill -9) once ``kill`` says so.

    ``together_mb`` is the most that all its processes had at one time, a page that several share divided among them.
    """
    begin, together, killed, ended = time.perf_counter(), [0.0], threading.Event(), threading.Event()
    process = subprocess.Popen(command, stdout=output)

    def watch() -> None:
        while not ended.wait(POLL):
            together.append(sum(map(proportional, family(process.pid))))
            if not killed.is_set() and kill():
                killed.set()
                os.kill(process.pid, signal.SIGKILL)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    # The process is there, if only as a zombie, until the second call: what is killed is never another of the same number.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    wall = time.perf_counter() - begin
    ended.set()
    watcher.join()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode and not killed.is_set():
        raise SystemExit(f"{' '.join(command)}: exit status {process.returncode}")
    cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    return {"wall_s": wall, "cpu_s": cpu, "peak_mb": peak, "together_mb": max(*together, peak)}


def family(pid: int) -> list[int]:
    """A process and those it started, and so on."""
    children: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    return [pid, *(one for child in children for one in family(child))]


def proportional(pid: int) -> float:
    """Megabytes of memory that a process has now, shared pages divided among those that share them; 0 if it has ended."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) / 1024
    return 0.0
