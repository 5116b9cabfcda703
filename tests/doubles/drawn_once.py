"""Figures of the very same content, drawn once for all tests of a run: what is in a figure is what its file is named by."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.files import room_for
from empathy_eval.reports import report

NAMES = {"draw_chart": lambda chart: chart.name, "draw_lengths": lambda _: "lengths", "draw_course": lambda _: "course"}


def share(patch: pytest.MonkeyPatch, kept: Path) -> None:
    """Reports take a figure from ``kept`` where it is, and leave it there where it is not."""
    for function, name in NAMES.items():
        patch.setattr(report, function, _taking(getattr(report, function), name, kept / function))


def _taking(draw: Callable[[Any, Path], None], name: Callable[[Any], str], kept: Path) -> Callable[[Any, Path], None]:
    def drawn(content: Any, folder: Path) -> None:
        there = kept / hashlib.sha256(repr(content).encode()).hexdigest()
        files = [f"{name(content)}.{suffix}" for suffix in ("svg", "png")]
        if not there.exists():
            draw(content, folder)
            _keep([folder / one for one in files], there)
            return
        with room_for(folder):
            folder.mkdir(parents=True, exist_ok=True)
            for one in files:
                shutil.copyfile(there / one, folder / one)

    return drawn


def _keep(files: list[Path], there: Path) -> None:
    """Copies to where others look for them, all at once: another worker may do the same at this moment."""
    there.parent.mkdir(parents=True, exist_ok=True)
    mine = there.with_name(f"{there.name}-{id(files)}-{hash(files[0])}")
    mine.mkdir()
    for one in files:
        shutil.copyfile(one, mine / one.name)
    try:
        mine.rename(there)
    except OSError:  # the other was first
        shutil.rmtree(mine)
