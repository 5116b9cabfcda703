"""Results that many tests need: made by one worker, copied by the others, and kept between runs until sources or data change."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pickle
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
from empathy_eval.base.files import data_folder

Made = TypeVar("Made")
ROOT = Path(__file__).parent.parent.parent
# Emptied by ``make clean``. Results of the last few states stay, so that going back to one finds them.
KEPT, STATES = ROOT / "build" / "test-results", 3
# What results depend on, beside the module that asks for them; all that is packaged is named in pyproject.toml.
SOURCES = ("builder", "tests/conftest.py", "tests/doubles", "constraints.txt", "pyproject.toml")
DATA = ("scenarios", "prompt_templates", "rubrics", "rules", "schemas", "release", "review", "empathyscore")


@cache
def _state() -> str:
    """A hash of the interpreter and of every file that a result may depend on."""
    digest = hashlib.sha256(sys.version.encode())
    roots = [*(ROOT / name for name in SOURCES), *(data_folder(name) for name in DATA)]
    for path in sorted(path for root in roots for path in (root.rglob("*") if root.is_dir() else [root])):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(ROOT)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:20]


@cache
def results() -> Path:
    """The folder of results of this state of sources and data."""
    folder = KEPT / _state()
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    for old in sorted(KEPT.iterdir(), key=lambda path: path.stat().st_mtime)[:-STATES]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


def copied(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Made]) -> tuple[Path, Made]:
    """A folder of this worker's own as ``make`` left it, and what that returned; ``name`` is of this alone."""
    first = results() / f"{name}-{_maker(make)}"
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


def _maker(make: Callable[[Path], object]) -> str:
    """A hash of the module that makes a result, and of those of tests that it takes something from."""
    modules = {getattr(value, "__module__", None) for value in make.__globals__.values()}
    files = {make.__code__.co_filename, *(str(sys.modules[one].__file__) for one in modules if one and one.startswith("tests."))}
    return hashlib.sha256(b"".join(Path(file).read_bytes() for file in sorted(files))).hexdigest()[:20]


def _write(path: Path, made: object) -> None:
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(pickle.dumps(made))
    partial.replace(path)
