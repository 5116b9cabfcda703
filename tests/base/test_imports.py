"""Modules that are left out of an import: for one thread and one moment."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path

import pytest
from empathy_eval.base.imports import without


@pytest.fixture
def heavy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that can be imported and is not loaded."""
    (tmp_path / "a_heavy_module.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "a_heavy_module", raising=False)
    return "a_heavy_module"


def test_a_module_is_missing_inside_and_there_again_outside(heavy: str) -> None:
    finders = list(sys.meta_path)
    with pytest.raises(ModuleNotFoundError) as caught, without(heavy):
        importlib.import_module(heavy)
    assert caught.value.name == heavy and heavy not in sys.modules and sys.meta_path == finders
    assert importlib.import_module(heavy)


def test_another_thread_imports_it_in_the_meantime(heavy: str) -> None:
    found = []
    with without(heavy):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(heavy)
        thread = threading.Thread(target=lambda: found.append(importlib.import_module(heavy)))
        thread.start()
        thread.join()
    assert [one.__name__ for one in found] == [heavy]


def test_what_is_loaded_already_stays(heavy: str) -> None:
    module = importlib.import_module(heavy)
    with without(heavy):
        assert importlib.import_module(heavy) is module


def test_two_threads_may_leave_out_the_same_in_any_order(heavy: str) -> None:
    finders, inside, leave = list(sys.meta_path), threading.Event(), threading.Event()

    def first() -> None:
        with without(heavy):
            inside.set()
            leave.wait()

    thread = threading.Thread(target=first)
    thread.start()
    inside.wait()
    with without(heavy):
        leave.set()
        thread.join()
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(heavy)
    assert sys.meta_path == finders and importlib.import_module(heavy)
