"""Requests and completions, the value in an answer, and its flaws."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from empathy_eval.base.hashing import SCHEME, canonical_json, digest_bytes
from empathy_eval.base.invisible import invisible_characters
from empathy_eval.base.parsing import DuplicateKey, ParseError, TooDeep, json_value
from empathy_eval.base.schemas import texts_in, violations
from empathy_eval.design.prompts import Message

# How providers call a normal end; docs/models.md has the list.
NORMAL_ENDS = {"stop", "eos", "eos_token", "end", "end_turn"}
END = re.compile("[A-Za-z][A-Za-z_-]{0,31}")
# The longest answer that is looked at, in characters; the longest dialogue that is asked for has about a third of it.
LONGEST = 50_000
THOUGHTS = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
# Runs that tokenisers take quadratic time for: of one character, of characters without letters or digits, of letters without a blank.
RUN = re.compile(r"(.)\1{99}|[^\w\s]{100}|\S{1000}", re.DOTALL)
# Control characters but tab and line ends, half surrogate pairs, and marks of the writing direction.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
SURROGATE = re.compile("[\ud800-\udfff]")
BIDIRECTIONAL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
SIGNS = (
    (SURROGATE, "surrogate", "half of a surrogate pair (such as \\ud83d alone)"),
    (CONTROL, "control_sign", "a control character"),
    (BIDIRECTIONAL, "bidirectional_sign", "a sign that changes the direction of writing"),
)


@dataclass(frozen=True)
class About:
    """What a request is about; ``kind`` names a row of :data:`empathy_eval.design.kinds.ALL_KINDS`. It is not sent, and not in the key."""

    dialogue_id: str
    kind: str
    turn: int | None = None

    def __str__(self) -> str:
        return f"{self.dialogue_id} {self.kind}" + ("" if self.turn is None else f" turn {self.turn}")


@dataclass(frozen=True)
class Request:
    """The body for a model, the label of its endpoint, and the sample number."""

    body: dict[str, Any]
    endpoint: str
    about: About
    sample: int = 0

    @property
    def content(self) -> bytes:
        """The body as canonical JSON: what is sent and hashed. Not cached, since thousands of requests wait at once."""
        return canonical_json(self.body)

    @property
    def key(self) -> str:
        """The hash that names the answer in a ledger: of body, endpoint label and sample number."""
        return self._key_and_size[0]

    @property
    def size(self) -> int:
        """The number of bytes of the body."""
        return self._key_and_size[1]

    @cached_property
    def _key_and_size(self) -> tuple[str, int]:
        # The canonical JSON of {"body": …, "endpoint": …, "sample": …}, put together so that the body is written out once.
        content = self.content
        whole = b'{"body":%b,"endpoint":%b,"sample":%d}' % (content, canonical_json(self.endpoint), self.sample)
        return f"{SCHEME}-{digest_bytes(whole)}", len(content)


@dataclass(frozen=True)
class Usage:
    """Tokens as the provider counted them; ``cached_tokens`` is the cached part of the input."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True)
class Completion:
    """A model's answer, good or bad. ``finish`` is the provider's finish reason: ``stop``, ``length``, ``refusal`` …"""

    text: str
    finish: str
    model: str
    usage: Usage = Usage()


@dataclass(frozen=True)
class Flaw:
    """Why a sample is refused: a reason that is counted, and the detail shown in a repair request."""

    reason: str
    detail: str


@dataclass(frozen=True)
class Failure:
    """A refused sample with its reasons; ``final`` if it was the last."""

    kind: str
    turn: int | None
    reasons: tuple[str, ...]
    request_key: str | None = None
    final: bool = False


@dataclass(frozen=True)
class Notice:
    """A message that is shown at once, and again after a minute at the earliest while its ``key`` is the same."""

    key: str
    words: str


class NoAnswer(Exception):
    """The request was not answered; nothing is stored, and the next run asks again. The text says why."""


class Model(Protocol):
    """A model. ``name`` and ``endpoint`` are part of every key; :meth:`body` turns messages into a request body."""

    name: str
    endpoint: str

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The canonical body of a request for an answer under the schema of that name."""

    async def complete(self, request: Request) -> Completion:
        """Answers a request.

        Raises:
            NoAnswer: if no answer came in time.
            EmpathyEvalError: if going on makes no sense (a refused key, an exhausted quota).
        """

    async def close(self) -> None:
        """Closes connections at the end of a build or a round of it; the model may be asked again, in another event loop."""


def utf8_safe(text: str) -> str:
    """A text that UTF-8 can hold: half a surrogate pair, which JSON can contain, becomes its escape."""
    return text.encode("utf-8", "backslashreplace").decode()


def read_answer(completion: Completion, answer_schema: str) -> tuple[Any, list[Flaw]]:
    """The JSON value of an answer that is valid under a schema, or None; and its flaws. Without a schema the value is the text."""
    if not answer_schema:
        return text_of(completion)
    value, flaws = parse_json_answer(completion)
    wrong = () if flaws else violations(value, answer_schema)
    flaws = flaws or [Flaw("schema", f"{place or 'the answer'} {what}: {fix}") for place, what, fix in wrong]
    return None if flaws else value, flaws


def _unread(completion: Completion) -> list[Flaw]:
    """Flaws for which an answer is not read: unfinished, or too long."""
    if completion.finish.casefold() not in NORMAL_ENDS:
        # A stranger's ledger may say anything; endpoints are held to a word.
        end = completion.finish if END.fullmatch(completion.finish) else "unknown"
        return [Flaw(f"finish_{end}", f"the answer ended early ({end}); give the whole answer")]
    if len(completion.text) > LONGEST:
        return [Flaw("too_long", f"the answer has {len(completion.text):,} characters, at most {LONGEST:,} are read")]
    return []


def text_of(completion: Completion) -> tuple[str | None, list[Flaw]]:
    """The plain text of an answer, without thoughts before it, and its flaws: not finished, too long, empty, signs that no text has."""
    if flaws := _unread(completion):
        return None, flaws
    text = unthought(completion.text)
    flaws = list(character_flaws(text)) if text else [Flaw("empty", "the answer is empty; write a reply")]
    return None if flaws else text, flaws


def parse_json_answer(completion: Completion) -> tuple[Any, list[Flaw]]:
    """The JSON value that an answer holds, and its flaws: not finished, too long, not JSON, signs that no text has."""
    if flaws := _unread(completion):
        return None, flaws
    text = strip_wrapping(completion.text)
    try:
        value = json_value(text, characters=False)
    except ParseError as error:
        reason = "too_deep" if isinstance(error, TooDeep) else "duplicate_key" if isinstance(error, DuplicateKey) else "not_json"
        return None, [Flaw(reason, f"the answer {error}; answer with one JSON object and nothing else")]
    return value, list({flaw.reason: flaw for _, part in texts_in(value) for flaw in character_flaws(part)}.values())


def unthought(text: str) -> str:
    """A text without blanks at its ends, a byte-order mark, and thoughts before it."""
    text = text.strip().removeprefix("\ufeff").lstrip()
    thoughts = THOUGHTS.match(text)
    return text[thoughts.end() :].strip() if thoughts else text


def strip_wrapping(text: str) -> str:
    """A text without what endpoints put around JSON: a byte order mark, thoughts before it, a Markdown code fence."""
    text = unthought(text)
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return text[text.index("\n") : -3]
    return text


def character_flaws(text: str) -> Iterator[Flaw]:
    """Flaws of a text: control characters, half surrogate pairs, direction marks, invisible characters, long runs without words."""
    for pattern, reason, what in SIGNS:
        if pattern.search(text):
            yield Flaw(reason, f"a text holds {what}; leave it out")
    # Those that have a name of their own keep it: it is part of requests to mend.
    named = {match.start() for pattern in (CONTROL, BIDIRECTIONAL) for match in pattern.finditer(text)}
    hidden = (character for character in invisible_characters(text) if character[0] not in named)
    if first := next(hidden, None):
        yield Flaw("hidden_sign", f"a text holds {first[1]}, which nobody sees, at character {first[0] + 1}; leave it out")
    if RUN.search(text):
        yield Flaw("run_of_signs", "a text holds a long run of one sign or of signs without a word; write words")
