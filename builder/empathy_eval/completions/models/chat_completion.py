"""The body of a chat completion: through one schema into a completion, or no answer at all; and what a provider says of an error."""

from __future__ import annotations

from typing import Any

from empathy_eval.base.schemas import sound
from empathy_eval.completions.requests import Completion, Usage

# Ends that the provider or the limit made: an answer without a text that says so was worked on all the same.
EARLY_ENDS = {"content_filter", "length"}
# Where a provider puts its words, in the order in which they are looked for.
SAID_IN = ("error", "detail", "code", "message", "msg", "errors", "data")
LONGEST_SAID, DEPTH = 200, 4


class NoCompletion(Exception):
    """A body that holds no answer; the text says why."""


def completion_of(body: Any, model: str, worst: Usage) -> Completion:
    """A completion from the body of a chat completion, whatever its finish. What breaks the schema counts as not said.

    Where tokens are not counted, or in a way that cannot be, the worst case stands in, so that a budget stays hard.

    Raises:
        NoCompletion: if it is an error, or has neither a text, output tokens, a refusal nor a finish reason of :data:`EARLY_ENDS`.
    """
    if not isinstance(body, dict):
        raise NoCompletion(f"the answer is no chat completion: {said(body) or type(body).__name__}")
    if body.get("error"):
        raise NoCompletion(f"an error in the place of an answer: {said(body)}")
    if isinstance(body.get("choices"), list):  # one was asked for
        body = {**body, "choices": body["choices"][:1]}
    body, odd = sound(body, "chat_completion")
    choice = next(iter(body.get("choices") or ()), None) or {}
    message, usage = choice.get("message") or {}, body.get("usage") or {}
    text, refusal, finish = _text(message.get("content")), message.get("refusal") or "", choice.get("finish_reason")
    if any("finish_reason" in place for place, _ in odd):
        finish = "unknown"
    if not (text or refusal or usage.get("completion_tokens") or (finish or "").casefold() in EARLY_ENDS):
        why = next((f"; {said(f'{place}: {what}')}" for place, what in odd), "") or f": {said(body)}".removesuffix(": ")
        raise NoCompletion(f"the answer has no usable content{why}")
    ends = "refusal" if refusal else finish or ("stop" if text else "empty")
    return Completion(_storable(refusal or text), ends, model, counted(usage, worst, empty=not (refusal or text)))


def _text(content: Any) -> str:
    """A content as one text: its text parts joined; empty where nothing but white space is in it."""
    parts = content if isinstance(content, list) else [{"text": content}]
    text = "".join(part.get("text") or "" for part in parts if part and part.get("type", "text") in ("text", "output_text", None))
    return text if text.strip() else ""


def _storable(text: str) -> str:
    """A text that UTF-8 can hold: half of a surrogate pair, which JSON can write, becomes the escape that JSON writes it as."""
    return text.encode("utf-8", "backslashreplace").decode()


def counted(usage: dict[str, Any], worst: Usage, *, empty: bool) -> Usage:
    """The tokens as they were counted, each within its worst case, or the worst case."""
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    if not read or not cached <= read <= worst.input_tokens:
        read, cached = worst.input_tokens, 0
    if written is None or (not written and not empty) or written > worst.output_tokens:
        written = worst.output_tokens
    return Usage(int(read), int(cached), int(written))


def said(value: Any, depth: int = DEPTH) -> str:
    """What a provider says of an error, in one short line: of an object its code and message, of a list what is in it, or plain text."""
    found = ""
    if isinstance(value, str):
        found = value
    elif isinstance(value, dict) and depth:
        found = next(filter(None, (said(value.get(name), depth - 1) for name in SAID_IN[:2])), "")
        found = found or " ".join(filter(None, (said(value.get(name), depth - 1) for name in SAID_IN[2:])))
    elif isinstance(value, list) and depth:
        found = "; ".join(filter(None, (said(one, depth - 1) for one in value[:3])))
    elif isinstance(value, int) and not isinstance(value, bool) and depth < DEPTH and abs(value) < 10**9:  # a code
        found = str(value)
    # Control and formatting signs could move a terminal's cursor.
    plain = "".join(sign if sign.isprintable() else " " for sign in found[: 10 * LONGEST_SAID])
    line = " ".join(plain.split())
    return line if len(line) <= LONGEST_SAID else f"{line[: LONGEST_SAID - 1]}…"
