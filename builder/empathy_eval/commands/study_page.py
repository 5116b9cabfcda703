"""How the page of a study could be made again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from empathy_eval.raters.study.ratings import Reading
    from empathy_eval.raters.study.study import Asked


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
