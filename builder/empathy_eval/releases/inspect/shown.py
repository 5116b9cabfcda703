"""What is shown of a text: how it was made, what it was asked for with, what was answered, checked and said of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class CheckFigure:
    """What a check looked at: the figure, the bound that it was held against, and whether it keeps it."""

    name: str
    value: float | int | str
    bound: str
    holds: bool


@dataclass(frozen=True)
class ShownText:
    """A text with how it was made, its strategy, its manner or device, its checks, and the reasons why it was refused, if it was."""

    name: str
    text: str
    made: str
    strategy: str | None = None
    way: str | None = None
    model: str | None = None
    request_key: str | None = None
    figures: tuple[CheckFigure, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShownRequest:
    """A request and its answer. ``body`` is what was sent, None where it cannot be rendered again; ``note`` says why, or what is odd.

    ``verdict`` is ``taken``, ``not chosen``, ``refused``, ``unanswered``, ``scored``, ``not judged`` or ``unknown``; ``reasons`` are
    (reason, detail) of what was refused. Without an answer ``finish``, ``model`` and ``text`` are None.
    """

    key: str
    kind: str
    turn: int | None
    verdict: str
    body: Mapping[str, Any] | None = None
    endpoint: str | None = None
    sample: int | None = None
    repair: bool | None = None
    model: str | None = None
    finish: str | None = None
    text: str | None = None
    tokens: Mapping[str, int] = field(default_factory=dict)
    reasons: tuple[tuple[str, str], ...] = ()
    figures: tuple[CheckFigure, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class ShownItem:
    """All that is known of a dialogue, a pair, a turn or a request.

    ``status`` says what became of it and ``why`` in which way; ``before`` are the turns before it, ``refused`` texts that are not released.
    ``said`` holds rows of annotations, comparisons, strategies, reviews and scores by these names, and ``notes`` what cannot be shown and
    how to have it.
    """

    name: str
    source: str
    status: str
    why: tuple[str, ...] = ()
    before: tuple[ShownText, ...] = ()
    texts: tuple[ShownText, ...] = ()
    refused: tuple[ShownText, ...] = ()
    asked: tuple[ShownRequest, ...] = ()
    said: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class RefusedText:
    """A text that was refused, or what was left out: the reasons, where, and the text as it was (None where no ledger tells it)."""

    reasons: tuple[str, ...]
    dialogue_id: str
    kind: str | None = None
    turn: int | None = None
    request_key: str | None = None
    text: str | None = None
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)
