"""Lighter imports: hides optional modules of a library while it is imported."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec


class _Absent:
    """A module finder that hides modules from the thread that made it."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._thread = names, threading.get_ident()

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name in self._names and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{name} is not wanted here", name=name)
        return None


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Inside, imports of these modules by this thread fail unless they are loaded already. Other threads see no difference."""
    finder = _Absent(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
