"""Consistent forgeries: what somebody would do to a release who wants it to go unseen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.doubles.forger import Forger

# What only a signature finds.
EXCHANGED, WITHHELD, WHO, COST, ORDER = (
    "texts exchanged with everything derived from them", "rows withheld", "who the model was", "what it cost", "the order of events",
)  # fmt: skip


@dataclass(frozen=True)
class Forgery:
    """A change of a release; after it tables, report, card and page are made anew if ``anew``, and hashes and seal renewed.

    ``kind`` is what only a signature finds of it; None where ``verify`` must find it by itself.
    """

    name: str
    change: Callable[[Forger], object]
    anew: bool = False
    kind: str | None = None


KNOWN: list[Forgery] = []


def forgery(*, anew: bool = False, kind: str | None = None) -> Callable[[Callable[[Forger], object]], Callable[[Forger], object]]:
    """Takes a function up as a forgery of its name."""

    def taken(change: Callable[[Forger], object]) -> Callable[[Forger], object]:
        KNOWN.append(Forgery(change.__name__, change, anew, kind))
        return change

    return taken


def forgeries(*, anew: bool = False, kind: str | None = None, **changes: Callable[[Forger], object]) -> None:
    """Takes up forgeries by their names."""
    KNOWN.extend(Forgery(name, change, anew, kind) for name, change in changes.items())


def every() -> list[Forgery]:
    """All of them, by name."""
    from tests.doubles.forgeries import details, files, manifest, papers, rows, texts, traces  # noqa: F401

    assert len({one.name for one in KNOWN}) == len(KNOWN)
    return sorted(KNOWN, key=lambda one: one.name)
