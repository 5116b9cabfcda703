"""A reward model behind an endpoint: asked in the form that its server has, for a number instead of a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from empathy_eval.base.errors import EmpathyEvalError
from empathy_eval.completions.budget import Budget
from empathy_eval.completions.models.openai_endpoint import Line, OpenAIEndpoint
from empathy_eval.completions.models.reward_forms import PATHS, body_of, rewards_of, sent_of
from empathy_eval.completions.requests import Completion, Request, Usage
from empathy_eval.design.endpoints import ModelConfig
from empathy_eval.design.prompts import Message


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
