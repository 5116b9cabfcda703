"""Verifying the canary: it is that of the release's name, and stands in every file that holds texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem
from empathy_eval.base.parsing import text_of
from empathy_eval.base.tabular import schema_of
from empathy_eval.design.canary import CANARY, canary_of, notice_of
from empathy_eval.design.dataset import MANIFEST, TABLES
from empathy_eval.releases.explore import PAGE
from empathy_eval.releases.made_by import is_before
from empathy_eval.releases.verify_rows import RESTORE

# Beside all tables these hold texts: the card an example, the report and its tables some, the page of the explorer a sample.
WITH_TEXTS = ("README.md", f"report/{TABLES}", "report/index.html", PAGE)


def canary_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Problem]:
    """Another canary than that of the name, and files with texts that do not hold the line with it. A release of before has none."""
    if is_before(manifest):
        return
    if (told := manifest.get(CANARY)) != (canary := canary_of(manifest["name"])):
        what = f'"{told}" is not the canary of "{manifest["name"]}"' if told else f'has no canary; the canary of its name is "{canary}"'
        yield Problem(f"{folder / MANIFEST}: {CANARY}", what, RESTORE)
        return
    notice = notice_of(manifest) or ""
    for name in sorted(manifest["files"]):
        if not name.endswith(".parquet") and name not in WITH_TEXTS:
            continue
        try:
            holds = _holds(folder / name, notice)
        except InputError as error:
            yield from error.problems
            continue
        except (OSError, ValueError) as error:
            yield Problem(str(folder / name), f"cannot be read: {error}", RESTORE)
            continue
        if not holds:
            yield Problem(str(folder / name), f'does not hold the line with the canary "{canary}"', RESTORE)


def _holds(path: Path, notice: str) -> bool:
    if path.suffix == ".parquet":
        # And nothing beside it, which no column has and no reader sees.
        return dict(schema_of(path).metadata or {}) == {CANARY.encode(): notice.encode()}
    return notice in text_of(path)
