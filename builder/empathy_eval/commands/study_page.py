"""Where ``study --page`` writes, and how the page could be made again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.base.files import room_for, whole_file

if TYPE_CHECKING:
    from empathy_eval.raters.study.ratings import Reading
    from empathy_eval.raters.study.studied import Studied
    from empathy_eval.raters.study.study import Asked

FIX = "name a file OUT.html; its figures are written beside it, as OUT.json"


def page_place(page: str | Path, tables: Sequence[Path]) -> Path:
    """Where a page goes, its figures beside it (``.json``); neither may be what is read (``tables``).

    Raises:
        InputError: if it does not end in .html, or a folder or a table lies in the place of one of the two.
        JobError: if no file can be called so.
    """
    path = Path(page)
    # Of a name that is too long nothing can be asked.
    with room_for(path):
        if path.suffix.lower() != ".html":
            raise InputError([Problem("page", f'"{path}" is {"a folder" if path.is_dir() else "not called .html"}', FIX)])
        both = (path, path.with_suffix(".json"))
        folders = [one for one in both if one.is_dir()]
    read = {one.resolve() for one in tables}
    found = [Problem("page", f'"{one}" is a folder', FIX) for one in folders]
    found += [Problem("page", f'"{one}" is a table that is read, and would be lost', FIX) for one in both if one.resolve() in read]
    if found:
        raise InputError(found)
    return path


def write_page(studied: Studied, path: Path, command: str | None) -> None:
    """Writes the page of a study and its figures, both or neither.

    Raises:
        JobError: if they cannot be written.
    """
    from empathy_eval.raters.study.page import page

    texts = page(studied, command), json.dumps(studied.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    with whole_file(path) as html, whole_file(path.with_suffix(".json")) as figures:
        for text, partial in zip(texts, (html, figures), strict=True):
            partial.write_text(text, encoding="utf-8", newline="\n")


def command_of(tables: Sequence[Path], reading: Reading, asked: Asked, files: dict[str, Sequence[Path]]) -> str | None:
    """The command that reckons the same; ``files`` by option. None where there is none: it cannot name labels with commas."""
    if any("," in label for label in reading.labels):
        return None
    found = ["empathy-eval", "study", *map(str, tables), f"--baseline={reading.baseline}"]
    found += [f"--labels={','.join(reading.labels)}"] if reading.labels else []
    found += [f"--criterion={reading.criterion}"] if reading.criterion is not None else []
    found += [f"--by={one}" for one in asked.by or ()]
    for one in fields(asked):
        value = getattr(asked, one.name)
        found += [f"--{one.name}={value}"] if one.name != "by" and value != one.default else []
    return shlex.join(found + [f"--{option}={path}" for option, paths in files.items() for path in paths])
