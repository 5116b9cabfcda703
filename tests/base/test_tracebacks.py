"""The place of what code of others raised."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from empathy_eval.base.errors import raised_at, traceback_text

MINE = """
import json

def helper(text):
    return json.loads(text)

def score(text):
    return helper(text)
"""


def raised(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch, text: str = "{") -> Exception:
    monkeypatch.syspath_prepend(folder)
    top = name.partition(".")[0]
    for one in {top, name, *(one for one in sys.modules if one.partition(".")[0] == top)}:
        # Deleted, and deleted again after the test: another one may load a module of this name.
        monkeypatch.setitem(sys.modules, one, sys)
        del sys.modules[one]
    with pytest.raises(Exception) as caught:  # noqa: PT011  # whatever it raises
        importlib.import_module(name).score(text)
    # Of the frames of this test nothing is to be told.
    error: Exception = caught.value.with_traceback(caught.value.__traceback__ and caught.value.__traceback__.tb_next)
    return error


def test_the_last_line_of_the_users_own_code_is_named_without_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    error = raised(tmp_path, "mine", monkeypatch)
    assert raised_at(error) == " (mine.py:5, in helper)"
    text = traceback_text(error)
    assert text.startswith("Traceback") and "json.loads(text)" in text and "JSONDecodeError" in text


def test_a_module_of_a_package_is_named_as_it_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "__init__.py").write_text("")
    (tmp_path / "kit" / "mine.py").write_text(MINE)
    assert raised_at(raised(tmp_path, "kit.mine", monkeypatch)) == " (kit/mine.py:5, in helper)"


def test_of_an_installed_package_it_is_the_last_line_of_that_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "installed_one.py").write_text("import other_one\n\ndef score(text):\n    return other_one.score(text)\n")
    (folder / "other_one.py").write_text(MINE)
    assert raised_at(raised(folder, "installed_one", monkeypatch)) == " (installed_one.py:4, in score)"


def test_of_a_module_that_cannot_be_read_it_is_the_line_of_the_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unfinished.py").write_text("x = 1\ny = (\n")
    assert raised_at(raised(tmp_path, "unfinished", monkeypatch)) == " (unfinished.py:2)"
    (tmp_path / "failing.py").write_text("x = 1\nraise OSError('no disk')\n")
    assert raised_at(raised(tmp_path, "failing", monkeypatch)) == " (failing.py:2)"


def test_what_no_code_of_others_raised_has_no_place() -> None:
    assert raised_at(ValueError("never raised")) == ""
