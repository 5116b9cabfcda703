"""Noting: a model that writes requests down instead of sending them. By hand and in batches, a ledger is filled from such notes."""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from empathy_eval.base.errors import job_error
from empathy_eval.completions.ledger import Noted
from empathy_eval.completions.requests import About, Completion, Model, NoAnswer, Request, Usage
from empathy_eval.design.endpoints import Asks
from empathy_eval.design.prompts import Message

TABLE = "CREATE TABLE noted (key PRIMARY KEY, endpoint, model, dialogue_id, kind, turn, sample, body, input, output)"
IN_ORDER = """
SELECT key, dialogue_id, kind, turn, endpoint, model, body, input, output FROM noted
ORDER BY endpoint, model, dialogue_id, kind, turn, sample, key
"""


@dataclass
class Notes:
    """The unanswered requests of a replay, each once. They lie in a temporary file: their number costs no memory.

    ``refused`` names requests that are not to be asked again in this run, with the provider's reasons.
    """

    refused: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A database without a name is a file that is gone when it is closed; SQLITE_TMPDIR says where it lies.
        self._file = sqlite3.connect("", isolation_level=None)
        self._file.execute(TABLE)
        self._file.execute("BEGIN")

    def add(self, request: Request, model: str, worst: Usage) -> None:
        """Writes a request down, unless it is there already.

        Raises:
            JobError: if there is no room for it.
        """
        about, body = request.about, zlib.compress(request.content, 1)
        tokens = (worst.input_tokens, worst.output_tokens)
        row = (request.key, request.endpoint, model, about.dialogue_id, about.kind, about.turn, request.sample, body, *tokens)
        with _room():
            self._file.execute("INSERT OR IGNORE INTO noted VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def __len__(self) -> int:
        return int(self._file.execute("SELECT count(*) FROM noted").fetchone()[0])

    def __iter__(self) -> Iterator[Noted]:
        """The requests by endpoint, model and place in the plan: an order that no concurrency can change."""
        with _room():
            for key, dialogue_id, kind, turn, endpoint, model, body, read, written in self._file.execute(IN_ORDER):
                yield Noted(key, About(dialogue_id, kind, turn), endpoint, model, zlib.decompress(body), Usage(read, 0, written))

    def stand_ins(self, models: Mapping[str, Model], config: Asks) -> dict[str, Model]:
        """Models that only note, in the place of those that a request is sent to."""
        tokens = {role: one.max_tokens for role, one in config.models.items() if one.remote}
        return {role: Noting(model, self, tokens[role]) if role in tokens else model for role, model in models.items()}


@contextlib.contextmanager
def _room() -> Iterator[None]:
    """Turns a full disk under the temporary file into a :class:`JobError`."""
    try:
        yield
    except sqlite3.OperationalError as error:
        fix = "make room for temporary files, or name a folder for them in SQLITE_TMPDIR; then run the same command"
        raise job_error("noted requests", f"cannot be written: {error}", fix) from error


class Noting:
    """Stands in for a model: the same bodies, so the same keys, and no answers."""

    def __init__(self, model: Model, notes: Notes, max_tokens: int) -> None:
        self.name, self.endpoint = model.name, model.endpoint
        self._model, self._notes, self._max_tokens = model, notes, max_tokens

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The body that the model itself would send."""
        return self._model.body(messages, answer_schema)

    async def complete(self, request: Request) -> Completion:
        """Writes the request down.

        Raises:
            NoAnswer: always.
        """
        if request.key in self._notes.refused:
            raise NoAnswer(self._notes.refused[request.key])
        # Before it is answered, as many tokens as bytes may be read: the worst case of a budget.
        self._notes.add(request, self.name, Usage(request.size, 0, self._max_tokens))
        raise NoAnswer(f"written down, not sent: {request.about}")

    async def close(self) -> None:
        """Closes the model it stands in for."""
        await self._model.close()
