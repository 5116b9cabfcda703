"""Noting: requests are written down instead of being sent. By hand and in batches, a ledger is filled from such notes."""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Iterator
from typing import Any

from empathy_eval.base.errors import job_error
from empathy_eval.completions.asker import Asker
from empathy_eval.completions.ledger import Noted
from empathy_eval.completions.requests import About, Completion, Model, NoAnswer, Request, Usage
from empathy_eval.design.endpoints import Asks
from empathy_eval.design.kinds import ALL_KINDS

TABLE = "CREATE TABLE noted (key PRIMARY KEY, endpoint, model, dialogue_id, kind, turn, sample, body, input, output)"
IN_ORDER = """
SELECT key, dialogue_id, kind, turn, endpoint, model, body, input, output FROM noted
ORDER BY endpoint, model, dialogue_id, kind, turn, sample, key
"""


class Notes:
    """The unanswered requests of a replay, each once. They lie in a temporary file: their number costs no memory."""

    def __init__(self) -> None:
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


@contextlib.contextmanager
def _room() -> Iterator[None]:
    """Turns a full disk under the temporary file into a :class:`JobError`."""
    try:
        yield
    except sqlite3.OperationalError as error:
        fix = "make room for temporary files, or name a folder for them in SQLITE_TMPDIR; then run the same command"
        raise job_error("noted requests", f"cannot be written: {error}", fix) from error


class Noter(Asker):
    """Writes down what would be sent to an endpoint; models that are here answer."""

    def __init__(self, notes: Notes, config: Asks, *asks: Any, **how: Any) -> None:
        super().__init__(*asks, **how)
        self._notes, self._configured = notes, config.models

    async def send(self, model: Model, request: Request) -> Completion:
        """The answer of a model that is here.

        Raises:
            NoAnswer: for any other.
        """
        config = self._configured.get(ALL_KINDS[request.about.kind].role)
        if config is None or not config.remote:
            return await super().send(model, request)
        # Before it is answered, as many tokens as bytes may be read: the worst case of a budget.
        self._notes.add(request, model.name, Usage(request.size, 0, config.max_tokens))
        raise NoAnswer(f"written down, not sent: {request.about}")
