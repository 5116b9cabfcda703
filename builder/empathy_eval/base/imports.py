"""Imports that bring less: what a library would load for uses that are not ours is, while it is imported, as if it were not installed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec


class _Absent:
    """Says of some modules, to the thread that made it alone, that they are not installed."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._thread = names, threading.get_ident()

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name in self._names and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{name} is not wanted here", name=name)
        return None


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Inside, an import of these modules by this thread fails unless they are loaded already; other threads see no difference."""
    finder = _Absent(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
