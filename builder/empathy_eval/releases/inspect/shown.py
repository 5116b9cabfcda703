"""Results of ``show``: texts with their origin, requests, answers, checks and judgements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from empathy_eval.base.json_text import fields_json


@dataclass(frozen=True)
class CheckFigure:
    """A figure of a check, its bound, and whether it is within the bound."""

    name: str
    value: float | int | str
    bound: str
    holds: bool


@dataclass(frozen=True)
class ShownText:
    """A text: its ``origin`` (how it was made), strategy, manner or device, figures of its checks, and the reasons if it was refused."""

    name: str
    text: str
    origin: str = field(metadata={"name": "made"})
    strategy: str | None = None
    way: str | None = None
    model: str | None = None
    request_key: str | None = None
    figures: tuple[CheckFigure, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShownRequest:
    """A request and its answer. ``body`` is the request as sent, None if it cannot be rendered again; ``note`` says why, or what differs.

    ``verdict`` is ``taken``, ``not chosen``, ``refused``, ``unanswered``, ``scored``, ``not judged`` or ``unknown``; ``reasons`` are
    (reason, detail) of a refused answer. Without an answer ``finish``, ``model`` and ``text`` are None.
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
    """A dialogue, a pair, a turn or a request with everything that is known of it.

    ``why`` explains its ``status``; ``before`` are the turns before it, ``refused`` texts that are not released. ``judgements`` are rows of
    annotations, comparisons, strategies, reviews and scores by these names. ``notes`` say what cannot be shown, and what would show it.
    """

    name: str
    source: str
    status: str
    why: tuple[str, ...] = ()
    before: tuple[ShownText, ...] = ()
    texts: tuple[ShownText, ...] = ()
    refused: tuple[ShownText, ...] = ()
    requests: tuple[ShownRequest, ...] = field(default=(), metadata={"name": "asked"})
    judgements: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict, metadata={"name": "said"})
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        return fields_json(self)


@dataclass(frozen=True)
class RefusedText:
    """A refused text, or an item that was left out: the reasons, the place, and the text (None if no ledger holds it)."""

    reasons: tuple[str, ...]
    dialogue_id: str
    kind: str | None = None
    turn: int | None = None
    request_key: str | None = None
    text: str | None = None
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        return fields_json(self)
