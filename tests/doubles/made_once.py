"""What takes long to make and is the same for all tests: made by one worker of a run, and copied by the others."""

from __future__ import annotations

import fcntl
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

Made = TypeVar("Made")


def of_all_workers(factory: pytest.TempPathFactory) -> Path:
    """The run's temporary folder, which its workers share."""
    mine = factory.getbasetemp()
    return mine.parent if "PYTEST_XDIST_WORKER" in os.environ else mine


def copied(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Made]) -> tuple[Path, Made]:
    """A folder of this worker's own as ``make`` left it, and what that returned; ``name`` is of this alone."""
    first = of_all_workers(factory) / "made-once" / name
    first.parent.mkdir(exist_ok=True)
    returned = first.with_suffix(".pickle")
    with first.with_suffix(".lock").open("w") as lock:
        # Who comes second waits. A worker that ends lets go.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not returned.exists():
            shutil.rmtree(first, ignore_errors=True)
            first.mkdir()
            _write(returned, make(first))
    mine = shutil.copytree(first, factory.mktemp(name) / "copy")
    made: Any = pickle.loads(returned.read_bytes())
    return mine, made


def _write(path: Path, made: object) -> None:
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(pickle.dumps(made))
    partial.replace(path)
