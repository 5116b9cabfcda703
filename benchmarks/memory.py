"""What a command takes: seconds, and the peak memory of its largest process and of all its processes together."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

POLL = 0.5


def measured(command: Sequence[str], *, output: int | None = None, kill: Callable[[], bool] = lambda: False) -> dict[str, float]:
    """Runs a command: wall and CPU seconds, and megabytes. It is killed (kill -9) once ``kill`` says so.

    ``together_mb`` is the most that all its processes had at one time, a page that several share divided among them.
    """
    begin, together, killed = time.perf_counter(), 0.0, False
    process = subprocess.Popen(command, stdout=output)
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        together = max(together, sum(map(proportional, family(process.pid))))
        if not killed and kill():
            process.kill()
            killed = True
        time.sleep(POLL)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode and not killed:
        raise SystemExit(f"{' '.join(command)}: exit status {process.returncode}")
    wall, cpu = time.perf_counter() - begin, usage.ru_utime + usage.ru_stime
    return {"wall_s": wall, "cpu_s": cpu, "peak_mb": usage.ru_maxrss / 1024, "together_mb": max(together, usage.ru_maxrss / 1024)}


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
