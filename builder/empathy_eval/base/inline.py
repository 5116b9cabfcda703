"""What a page holds in itself: data that nothing in it can read as markup, and scripts and styles that its policy allows one by one."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from empathy_eval.base.json_text import json_text


def embedded_json(value: Any) -> str:
    """JSON that nothing in a page can read as markup: ``<``, ``>``, ``&`` and all that is not ASCII are escaped."""
    text = json_text(value, indent=None, ascii_only=True)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def csp(text: str) -> str:
    """The source expression by which a Content-Security-Policy allows exactly this inline text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
