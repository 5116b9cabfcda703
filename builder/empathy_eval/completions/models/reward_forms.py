"""The forms in which servers are asked for the number of a reply, and how they answer.

``chat`` is ``/chat/completions`` of NVIDIA's NIM and its like, ``classify`` and ``score`` are vLLM's, ``predict`` is that of Hugging Face's
Text Embeddings Inference. What is answered is kept as ``{"rewards": [{"label": …, "value": …}]}``, a class each.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from empathy_eval.base.errors import EmpathyEvalError
from empathy_eval.base.hashing import canonical_json
from empathy_eval.base.schemas import sound
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.models.chat_completion import NoCompletion, completion_of, counted, said
from empathy_eval.completions.models.openai_endpoint import Line, OpenAIEndpoint
from empathy_eval.completions.requests import Completion, Request, Usage
from empathy_eval.design.endpoints import ModelConfig
from empathy_eval.design.prompts import Message

PATHS = {"chat": "/chat/completions", "classify": "/classify", "score": "/score", "predict": "/predict"}
# What is in a canonical body and is not sent; the server of ``predict`` has one model, and takes no name.
UNSENT = {"chat": {"form"}, "classify": {"form"}, "score": {"form"}, "predict": {"form", "model"}}
# How a chat endpoint says numbers: ``reward:-3.5``, ``helpfulness:1.6,coherence:3.3``, or a bare one.
SAID = re.compile(
    r"(?:(?P<label>[^:,\n]{1,100}):)?\s*(?P<value>[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|[-+]?(?:nan|inf(?:inity)?))", re.IGNORECASE
)
# A number and the class that it is of: its name, or its place.
Found = tuple[str | int | None, Any]


def body_of(form: str, model: str, messages: list[Message], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The canonical body for a conversation whose last message is the reply.

    Numbers are asked for as the model makes them, before a sigmoid brings good replies together; ``parameters`` may say otherwise.
    """
    *before, reply = messages
    conversation = "\n".join(f"{one['role']}: {one['content']}" for one in before)
    asked: dict[str, Callable[[], dict[str, Any]]] = {
        "chat": lambda: {"messages": messages},
        "classify": lambda: {"messages": messages, "use_activation": False},
        "score": lambda: {"text_1": conversation, "text_2": reply["content"], "use_activation": False},
        "predict": lambda: {"inputs": [conversation, reply["content"]], "raw_scores": True},
    }
    return {"form": form, "model": model, **asked[form](), **parameters}


def sent_of(body: Mapping[str, Any]) -> bytes:
    """What is sent of a canonical body."""
    return canonical_json({name: value for name, value in body.items() if name not in UNSENT[body["form"]]})


def rewards_of(body: Any, model: str, worst: Usage) -> Completion:
    """The numbers in the body of an answer, whatever its form; where there are none, or an error stands in their place, it says so.

    Where tokens are not counted, the worst case stands in.
    """
    told: dict[str, Any] = body if isinstance(body, dict) else {}
    usage = counted(sound({"usage": told.get("usage")}, "chat_completion")[0]["usage"] or {}, worst, empty=True)
    if told.get("error") or told.get("object") == "error":
        return Completion(said(told), "error", model, usage)
    if "choices" not in told:
        return Completion(_text(_classes(told.get("data") if told else body)), "stop", model, usage)
    try:
        completion = completion_of(told, model, worst)
    except NoCompletion:
        return Completion(_text([]), "stop", model, usage)
    return replace(completion, text=_text(_said(completion.text)))


def _classes(entries: Any) -> Iterator[Found]:
    """Of ``classify`` all classes by their place, of ``predict`` by their names, of ``score`` the one there is."""
    for one in entries if isinstance(entries, list) else ():
        if isinstance(one, list):
            yield from _classes(one)
        elif isinstance(one, dict) and isinstance(one.get("probs"), list):
            yield from enumerate(one["probs"])
        elif isinstance(one, dict) and "score" in one:
            yield one["label"] if isinstance(one.get("label"), str) else None, one["score"]


def _said(text: str) -> Iterable[Found]:
    """The numbers that a chat endpoint writes down; none where it writes anything else."""
    found = [SAID.fullmatch(part.strip()) for part in re.split("[,\n]", text.strip())]
    return [] if None in found else [(one["label"] and one["label"].strip(), float(one["value"])) for one in found if one]


def _text(found: Iterable[Found]) -> str:
    return json.dumps({"rewards": [{"label": label, "value": _number(value)} for label, value in found]})


def _number(value: Any) -> float | str | None:
    """A finite number as it is; what is none by its name, for JSON has none for it; None for what is no number at all."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    return number if math.isfinite(number) else str(number)


class RewardEndpoint(OpenAIEndpoint):
    """A reward model: sent, paced and paid for as a chat model is, read as its form is."""

    def __init__(self, config: ModelConfig, budget: Budget, line: Line, stopped: Callable[[], EmpathyEvalError | None]) -> None:
        super().__init__(config, budget, line, stopped)
        self._form = config.form or ""
        self.path = PATHS[self._form]

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The canonical body, with the form in it: another form is another request, another address is not."""
        return body_of(self._form, self.name, messages, self._config.parameters)

    def sent(self, request: Request) -> bytes:
        """The bytes that are sent: what the server of that form reads."""
        return sent_of(request.body)

    def answer(self, body: Any, worst: Usage) -> Completion:
        """What was answered, with the numbers in it; without any it is an answer too, which is not taken later."""
        return rewards_of(body, self.name, worst)
