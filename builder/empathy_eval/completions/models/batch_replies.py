"""What a batch endpoint says: any body at all, read at one place; what passes no schema is no answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from empathy_eval.base.schemas import violations
from empathy_eval.completions.models.chat_completion import said
from empathy_eval.completions.models.refusals import Refused

ENDED = ("completed", "failed", "expired", "cancelled")
# What a schema is of, in words.
KINDS = {"batch_state": "batch", "batch_upload": "uploaded file", "batch_page": "list"}


@dataclass(frozen=True)
class State:
    """How far a batch is; once it has ended, the files that hold its answers and errors, and why it failed if it did."""

    status: str
    done: int
    total: int
    files: tuple[str, ...]
    reason: str

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self.status in ENDED


def read(content: bytes, name: str) -> dict[str, Any]:
    """What an endpoint said, valid under the schema of that name.

    Raises:
        Refused: for anything else, in the endpoint's words if it says why.
    """
    try:
        return valid(json.loads(content), name)
    except (ValueError, RecursionError) as error:
        raise Refused(f"what came for a {KINDS[name]} is not JSON: {said(str(error))}") from error


def valid(value: Any, name: str) -> dict[str, Any]:
    """The value, valid under the schema of that name; raises Refused for any other."""
    for place, what, _ in violations(value, name):
        reason = said(value.get("error")) if isinstance(value, dict) else ""
        raise Refused(f"what came is no {KINDS[name]}: {reason or said(': '.join(filter(None, (place, what))))}")
    found: dict[str, Any] = value
    return found


def mark(batch: dict[str, Any]) -> str | None:
    """The hash that a batch carries."""
    metadata = batch.get("metadata")
    found = metadata.get("file") if isinstance(metadata, dict) else None
    return found if isinstance(found, str) else None


def status_of(batch: dict[str, Any]) -> str:
    """The status as OpenAI writes it; others write capitals, spaces or one l."""
    status = str(batch["status"]).casefold().replace(" ", "_").replace("-", "_")
    return "cancelled" if status == "canceled" else status


def count(counts: Any, name: str) -> int:
    """A number that is only shown; 0 for what is none."""
    found = counts.get(name) if isinstance(counts, dict) else None
    return found if isinstance(found, int) and found > 0 else 0
