"""Reward models on loopback, in the forms that vLLM, Text Embeddings Inference and NIM serve: a text's number is a function of it alone."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.doubles.judge import drawn
from tests.doubles.server import Server

MODEL = "reward-1"
# What each server reads; it takes nothing else, and of these what is marked must be there.
READS = {
    "/v1/chat/completions": {"model": True, "messages": True},
    "/classify": {"model": True, "messages": True, "use_activation": False},
    "/score": {"model": True, "text_1": True, "text_2": True, "use_activation": False},
    "/predict": {"inputs": True, "raw_scores": False},
}
USAGE = {"prompt_tokens": 20, "total_tokens": 20, "completion_tokens": 0, "prompt_tokens_details": None}


def reward(text: str) -> float:
    """The number of a reply, far from 0 to 1 too."""
    return (drawn("reward", text) % 4001 - 2000) / 64


def reply_of(path: str, body: dict[str, Any]) -> str:
    """The reply that a request is about."""
    if path == "/score":
        return str(body["text_2"])
    return str(body["inputs"][1] if path == "/predict" else body["messages"][-1]["content"])


def said(path: str, value: Any, second: Any = None) -> Any:
    """The body that a server of that path gives for a number; with a second one it is that of a model of two classes."""
    values = [value] if second is None else [value, second]
    if path == "/predict":  # the higher one first
        found = [{"score": one, "label": f"LABEL_{place}"} for place, one in enumerate(values)]
        return sorted(found, key=lambda one: -one["score"]) if second is not None else found
    whole = {"id": "x", "object": "list", "created": 1745383213, "model": MODEL, "usage": USAGE}
    if path == "/classify":
        return {**whole, "data": [{"index": 0, "label": "LABEL_0", "probs": values, "num_classes": len(values)}]}
    if path == "/score":
        return {**whole, "data": [{"index": place, "object": "score", "score": one} for place, one in enumerate(values)]}
    names = ["reward"] if second is None else ["helpfulness", "verbosity"]
    told = ",".join(f"{name}:{one}" for name, one in zip(names, values, strict=True))
    choice = {"index": 0, "message": {"role": "assistant", "content": told}, "finish_reason": "stop"}
    return {"id": "x", "object": "chat.completion", "model": MODEL, "choices": [choice], "usage": {**USAGE, "completion_tokens": 1}}


@dataclass
class RewardServer(Server):
    """Beside the faults of a server it may ``cut`` its JSON. ``odd`` is what it says of the texts that begin with ``of`` instead."""

    odd: Any = None
    of: str = "\x00"
    second: float | None = None
    model: str = MODEL
    received: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def root(self) -> str:
        return self.url.removesuffix("/v1")

    def routes(self) -> list[web.RouteDef]:
        return [web.post(path, self.handle) for path in READS if not path.startswith("/v1")]

    async def _respond(self, request: web.Request, raw: bytes, name: str, fault: str | None) -> web.StreamResponse:
        path, body = request.path, json.loads(raw)
        self.received.append((path, body))
        if fault and fault != "cut":
            return await super()._respond(request, raw, name, fault)
        reads = READS[path]
        if not {key for key, must in reads.items() if must} <= body.keys() <= reads.keys():
            return self._error(422, f"{sorted(body)} is not what is read here")
        if body.get("model", self.model) != self.model:
            return self._error(404, "The model does not exist.")
        payload = json.dumps(self.given(path, body)).encode()
        self.answered[name] += fault != "cut"
        return web.Response(body=payload[: len(payload) // 2] if fault else payload, content_type="application/json")

    def given(self, path: str, body: dict[str, Any]) -> Any:
        """What is answered to a request."""
        text = reply_of(path, body)
        return self.odd if text.startswith(self.of) else said(path, reward(text), self.second)
