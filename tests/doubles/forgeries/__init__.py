"""Consistent forgeries: what somebody would do to a release who wants it to go unseen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.doubles.forger import Forger, Row

# What only a signature finds.
EXCHANGED, WITHHELD, WHO, COST, ORDER = (
    "texts exchanged with everything derived from them", "rows withheld", "who the model was", "what it cost", "the order of events",
)  # fmt: skip

Change = Callable[[Forger], object]


@dataclass(frozen=True)
class Forgery:
    """A change of a release; after it tables, report, card and page are made anew if ``anew``, and hashes and seal renewed.

    ``kind`` is what only a signature finds of it; None where ``verify`` must find it by itself.
    """

    name: str
    change: Change
    anew: bool = False
    kind: str | None = None


KNOWN: list[Forgery] = []


def forgery(*, anew: bool = False, kind: str | None = None) -> Callable[[Change], Change]:
    """Registers a function as a forgery of its name."""

    def register(change: Change) -> Change:
        KNOWN.append(Forgery(change.__name__, change, anew, kind))
        return change

    return register


def forgeries(*, anew: bool = False, kind: str | None = None, **changes: Change) -> None:
    """Registers forgeries by their names."""
    KNOWN.extend(Forgery(name, change, anew, kind) for name, change in changes.items())


def in_rows(name: str, change: Callable[[list[Row]], list[Row] | None]) -> Change:
    """Changes the rows of a parquet file beside the configs."""
    return lambda forger: forger.change(forger.folder / f"{name}.parquet", change)


def in_each(change: Callable[[Row], object], *configs: str) -> Change:
    """Changes every row of the configs, by default ``pairs`` and ``controls``."""

    def change_all(forger: Forger) -> None:
        for config in configs or ("pairs", "controls"):
            forger.each(config, change)

    return change_all


def in_text(pattern: str, change: Callable[[str], str]) -> Change:
    """Changes the first text file that matches a pattern."""
    return lambda forger: forger.write(first(forger, pattern).relative_to(forger.folder).as_posix(), change)


def in_facts(change: Callable[[dict[str, Any]], object]) -> Change:
    """Changes the manifest."""
    return lambda forger: change(forger.facts)


def first(forger: Forger, pattern: str) -> Path:
    """The first file that matches a pattern."""
    return sorted(forger.folder.glob(pattern))[0]


def every() -> list[Forgery]:
    """All of them, by name."""
    from tests.doubles.forgeries import details, files, manifest, papers, rows, texts, traces  # noqa: F401

    assert len({one.name for one in KNOWN}) == len(KNOWN)
    return sorted(KNOWN, key=lambda one: one.name)
