"""Contexts that users write: a text, turns of seeker and helper, or the messages of a chat (``user`` and ``assistant``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from empathy_eval.metrics.protocol import Context

# Messages of the role "system" are no part of what seeker and helper said to each other: the schema ``turns`` refuses them.
ROLES = {"seeker": "seeker", "helper": "helper", "user": "seeker", "assistant": "helper"}


def context_of(said: str | Sequence[Mapping[str, str]]) -> Context:
    """A context as turns ``{"role": "seeker" or "helper", "text": …}``.

    Args:
        said: a text, which is one turn of the seeker, or turns that are valid under the schema ``turns``.
    """
    if isinstance(said, str):
        return [{"role": "seeker", "text": said}]
    return [{"role": ROLES[turn["role"]], "text": turn["text"] if "text" in turn else turn["content"]} for turn in said]


def reply_of(said: str | Sequence[Mapping[str, str]]) -> str:
    """A reply as a text: it may be a list of one message."""
    return said if isinstance(said, str) else context_of(said)[0]["text"]
