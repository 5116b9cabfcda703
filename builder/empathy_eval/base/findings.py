"""What is found of something that is checked: faults, and notes that are none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from empathy_eval.base.errors import Problem

RESTORE = "restore the file from the published release, or release the build again"


@dataclass(frozen=True)
class Finding(Problem):
    """A fault; or what was ``unchecked`` here, which ``about`` names (a metric, a signature, toxicity, pages); or a ``note`` beside it.

    ``config``, ``row`` (its number in its file) and ``column`` say which cell of a release is meant, where it is one, with the value that
    was ``found`` there and the one that was ``derived``.
    """

    fix: str = RESTORE
    severity: Literal["fault", "unchecked", "note"] = "fault"
    about: str = ""
    config: str | None = None
    row: int | None = None
    column: str | None = None
    found: Any = None
    derived: Any = None


def faults_of(problems: Iterable[Problem]) -> Iterator[Finding]:
    """What keeps something from being read, as faults of it."""
    return (Finding(one.where, one.what, one.fix) for one in problems)


def faulty(found: Iterable[Finding]) -> bool:
    """Whether a fault is among what was found."""
    return any(one.severity == "fault" for one in found)
