"""Where a page and its figures are written: ``study --page`` and ``agree --page``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.base.files import room_for, whole_file
from empathy_eval.base.json_text import json_text

FIX = "name a file OUT.html; its figures are written beside it, as OUT.json"


def page_place(page: str | Path, read: Sequence[Path]) -> Path:
    """Where a page goes, its figures beside it (``.json``); neither may be what is ``read``, or a file that no page wrote.

    Raises:
        InputError: if it does not end in .html, a folder or what is read lies in the place of one of the two, or one of them is there
            without the other: then it is no page's, such as the record of reviews beside its tables.
        JobError: if no file can be called so.
    """
    path = Path(page)
    # Of a name that is too long nothing can be asked.
    with room_for(path):
        if path.suffix.lower() != ".html":
            raise InputError([Problem("page", f'"{path}" is {"a folder" if path.is_dir() else "not an .html file"}', FIX)])
        both = (path, path.with_suffix(".json"))
        folders, there = [one for one in both if one.is_dir()], [one for one in both if one.exists()]
    real = {one.resolve() for one in read}
    found = [Problem("page", f'"{one}" is a folder', FIX) for one in folders]
    found += [Problem("page", f'"{one}" is an input file, and would be overwritten', FIX) for one in both if one.resolve() in real]
    if not found and len(there) == 1:
        what = f'"{there[0]}" exists without the other file of a page, so no page wrote it: it would be overwritten'
        found = [Problem("page", what, "name another OUT.html, or move it away")]
    if found:
        raise InputError(found)
    return path


def write_page(html: str, figures: Any, path: Path) -> None:
    """Writes a page and its figures (as JSON values), both or neither.

    Raises:
        JobError: if they cannot be written.
    """
    texts = html, json_text(figures) + "\n"
    with whole_file(path) as one, whole_file(path.with_suffix(".json")) as other:
        for text, partial in zip(texts, (one, other), strict=True):
            partial.write_text(text, encoding="utf-8", newline="\n")
