"""Standard output in plain sight: signs that nobody sees are written out, whoever prints them."""

from __future__ import annotations

import json
from typing import Any, TextIO

from empathy_eval.base.errors import plain


class PlainOutput:
    """A text stream whose texts are :func:`~empathy_eval.base.errors.plain`; the escapes are those of JSON, so JSON stays what it says."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes a text; returns its length."""
        self._stream.write(plain(text, json.dumps))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
