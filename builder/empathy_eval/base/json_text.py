"""The writer of JSON: all JSON that the program prints, or writes into a file or a page, comes from here."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from typing import Any


def json_text(value: Any, *, indent: int | None = 2, ascii_only: bool = False, sort_keys: bool = False) -> str:
    """A value as JSON text, without a line break at its end.

    JSON has neither NaN nor infinity. A number that is not finite is not defined, and is written as null, as all that is not defined is.

    Raises:
        TypeError: for anything that JSON does not have.
    """

    def text(one: Any) -> str:
        return json.dumps(one, indent=indent, ensure_ascii=ascii_only, sort_keys=sort_keys, allow_nan=False)

    try:
        return text(value)
    except ValueError:
        return text(_defined(value))


def _defined(value: Any) -> Any:
    """The value with None for each number that is not finite, at any depth."""
    if isinstance(value, dict):
        return {name: _defined(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_defined(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def embedded_json(value: Any) -> str:
    """JSON that nothing in a page can read as markup: ``<``, ``>``, ``&`` and all that is not ASCII are escaped."""
    text = json_text(value, indent=None, ascii_only=True)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def csp(text: str) -> str:
    """The source expression by which a Content-Security-Policy allows exactly this inline text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
