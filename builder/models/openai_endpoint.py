"""Any OpenAI-compatible chat endpoint, through the ``openai`` package."""

from __future__ import annotations

import os
from typing import Any

import openai

from builder.config import ModelConfig
from builder.models.protocol import NoAnswer
from builder.prompts import Message
from builder.records import Completion, Request, Usage
from builder.schemas import schema


class OpenAIEndpoint:
    """A model behind a chat-completions endpoint. The key is read from the environment and kept nowhere else."""

    def __init__(self, config: ModelConfig) -> None:
        self.name = config.model
        self.endpoint = config.endpoint
        self._config = config
        self._client = openai.AsyncOpenAI(
            # A local server needs no key, and the client insists on one.
            api_key=os.environ.get(config.api_key_env) or "none",
            base_url=config.base_url,
            max_retries=0,
            timeout=config.timeout_seconds,
            http_client=openai.DefaultAioHttpClient(),
        )

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The body of a chat completion; structure is asked for as configured, never detected."""
        body = {"model": self.name, "messages": messages, "max_tokens": self._config.max_tokens, **self._config.parameters}
        if self._config.structure == "schema":
            shape = {name: value for name, value in schema(answer_schema).items() if name not in ("$schema", "title")}
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": answer_schema, "strict": True, "schema": shape}}
        return body

    async def complete(self, request: Request) -> Completion:
        """Sends a request once.

        Raises:
            NoAnswer: if the endpoint did not answer.
        """
        try:
            answer = await self._client.post("/chat/completions", cast_to=object, body=request.body)
        except openai.OpenAIError as error:
            raise NoAnswer(f"{type(error).__name__}: {error}") from error
        return completion_of(answer, self.name)

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()


def completion_of(answer: Any, model: str) -> Completion:
    """A completion from a chat-completions answer, whatever its finish; an answer without choices is ``empty``."""
    usage, choices = answer.get("usage") or {}, answer.get("choices") or []
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    tokens = Usage(usage.get("prompt_tokens") or 0, cached, usage.get("completion_tokens") or 0)
    if not choices:
        return Completion("", "empty", model, tokens)
    message = choices[0].get("message") or {}
    if message.get("refusal"):
        return Completion(message["refusal"], "refusal", model, tokens)
    return Completion(message.get("content") or "", choices[0].get("finish_reason") or "stop", model, tokens)
