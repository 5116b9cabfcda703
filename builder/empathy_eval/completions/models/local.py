"""A model in the process (``kind: transformers``): chat template, batches, seeded sampling, and JSON by a grammar."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from empathy_eval.base.causal_lm import CausalLM, Weights, weights_of
from empathy_eval.base.errors import input_error, missing_package
from empathy_eval.base.schemas import schema_for_models
from empathy_eval.completions.models.custom import run_in_thread
from empathy_eval.completions.requests import Completion, NoAnswer, Request, Usage
from empathy_eval.design.prompts import Message

STRUCTURES = ("schema", "instruction")


@dataclass
class _Asked:
    """A request that waits for its batch."""

    request: Request
    prompt: list[int]
    answer: asyncio.Future[Completion]


class LocalModel:
    """A causal language model that transformers loads. An answer depends on its request alone: each has a random generator of its own.

    With a ``batch`` above 1, sums of floats may differ in the last digits, and with them an answer, by what else is in the batch.
    """

    endpoint = "local"

    def __init__(
        self, model: str, revision: str | None = None, dtype: str = "float32", batch: int = 1, max_tokens: int = 512,
        structure: str = "schema", temperature: float = 0.0, top_p: float = 1.0,
    ) -> None:  # fmt: skip
        """Finds and hashes the weights; they are loaded when the first request is answered.

        Raises:
            InputError: if there are no weights, or a setting is out of its range.
        """
        wrong = [
            (name, value, what)
            for name, value, holds, what in (
                ("structure", structure, structure in STRUCTURES, "use schema or instruction"),
                ("temperature", temperature, temperature >= 0, "use a number from 0"),
                ("top_p", top_p, 0 < top_p <= 1, "use a number above 0 and at most 1"),
                ("batch", batch, batch >= 1, "use a whole number from 1"),
                ("max_tokens", max_tokens, max_tokens >= 1, "use a whole number from 1"),
            )
            if not holds
        ]
        for name, value, what in wrong:
            raise input_error(f"transformers: {name}", f'"{value}" is out of range', what)
        self._weights: Weights = weights_of(model, revision, "transformers: model")
        self.name, self.in_flight, self.max_tokens = self._weights.name, 4 * batch, max_tokens
        self._settings: dict[str, Any] = {
            "dtype": dtype,
            "max_tokens": max_tokens,
            "structure": structure,
            "temperature": temperature,
            "top_p": top_p,
        }
        self._batch, self._waiting, self._working = batch, list[_Asked](), False
        self._lm: CausalLM | None = None
        self._grammars: dict[str, Any] = {}

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The request: messages, all settings that an answer depends on, and the schema if it is held to it."""
        told = {"schema": schema_for_models(answer_schema)} if self._settings["structure"] == "schema" else {}
        return {"model": self.name, "messages": messages, **self._settings, **told}

    async def complete(self, request: Request) -> Completion:
        """The answer, with others that wait at the same time as one batch.

        Raises:
            NoAnswer: if the prompt and the answer do not fit into the model's context, or its chat template refuses the messages.
            InputError: if the model cannot be loaded.
        """
        lm = await run_in_thread(self._loaded)
        try:
            prompt = lm.tokens(lm.chat(request.body["messages"]))
        except ValueError as error:
            raise NoAnswer(str(error)) from error
        if len(prompt) + self.max_tokens > lm.longest:
            raise NoAnswer(f"the prompt has {len(prompt)} tokens and the answer up to {self.max_tokens}, but the model reads {lm.longest}")
        asked = _Asked(request, prompt, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if not self._working:
            self._working = True
            # All that is asked in this moment may join the batch.
            await asyncio.sleep(0)
            try:
                await self._work(lm)
            finally:
                self._working = False
        return await asked.answer

    async def _work(self, lm: CausalLM) -> None:
        while self._waiting:
            # Those of like length together: the least padding.
            self._waiting.sort(key=lambda one: (len(one.prompt), one.request.key))
            some, self._waiting = self._waiting[: self._batch], self._waiting[self._batch :]
            try:
                answers = await run_in_thread(partial(self._answered, lm, some))
            except BaseException as error:
                # Each request hears why there is no answer; a stop is none of their faults.
                for one in (*some, *self._waiting):
                    if isinstance(error, Exception) and not one.answer.done():
                        one.answer.set_exception(error)
                        # The one that works the batch raises it by itself: nothing is left unheard.
                        one.answer.exception()
                    else:
                        one.answer.cancel()
                self._waiting = []
                raise
            for one, answer in zip(some, answers, strict=True):
                if not one.answer.done():
                    one.answer.set_result(answer)

    def _loaded(self) -> CausalLM:
        if self._lm is None:
            self._lm = CausalLM(self._weights, self._settings["dtype"], "transformers: model")
        return self._lm

    def _answered(self, lm: CausalLM, some: Sequence[_Asked]) -> list[Completion]:
        """The answers to a batch, token by token. Prompts are padded on the left."""
        import torch

        ends = _ends(lm)
        width = max(len(one.prompt) for one in some)
        rows = [[ends[0]] * (width - len(one.prompt)) + one.prompt for one in some]
        mask = [[0] * (width - len(one.prompt)) + [1] * len(one.prompt) for one in some]
        ids, seen = torch.tensor(rows, device=lm.device), torch.tensor(mask, device=lm.device)
        draws = [torch.Generator().manual_seed(int(one.request.key.rpartition("-")[2][:15], 16)) for one in some]
        held = [self._held(lm, one.request) for one in some]
        texts, done, past = [list[int]() for _ in some], [False] * len(some), None
        with torch.inference_mode():
            for _ in range(self.max_tokens):
                places = (seen.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
                out = lm.model(input_ids=ids, attention_mask=seen, position_ids=places, past_key_values=past, use_cache=True)
                past, logits = out.past_key_values, out.logits[:, -1].float().cpu()
                chosen = [ends[0] if done[row] else self._token(logits[row], draws[row], held[row], ends) for row in range(len(some))]
                for row, token in enumerate(chosen):
                    done[row] = done[row] or token in ends
                    if not done[row]:
                        texts[row].append(token)
                if all(done):
                    break
                ids = torch.tensor(chosen, device=lm.device)[:, None]
                seen = torch.cat([seen, torch.ones_like(ids)], dim=1)
        return [
            Completion(lm.tokenizer.decode(text), "stop" if end else "length", self.name, Usage(len(one.prompt), 0, len(text) + end))
            for one, text, end in zip(some, texts, done, strict=True)
        ]

    def _token(self, logits: Any, draws: Any, held: Any, ends: Sequence[int]) -> int:
        """The next token of a row: the likeliest, or one that is drawn."""
        import torch

        if held is not None:
            held.mask(logits)
        temperature, top_p = self._settings["temperature"], self._settings["top_p"]
        if temperature == 0:
            token = int(logits.argmax())
        else:
            chances, order = torch.softmax(logits / temperature, -1).sort(descending=True)
            chances[chances.cumsum(-1) - chances >= top_p] = 0
            token = int(order[torch.multinomial(chances, 1, generator=draws)])
        if held is not None and token not in ends:
            held.take(token)
        return token

    def _held(self, lm: CausalLM, request: Request) -> _Held | None:
        """What holds an answer to its schema; None where it is asked for by instruction alone."""
        asked = request.body.get("schema")
        return None if asked is None else _Held(self._grammar(lm, json.dumps(asked, sort_keys=True)), lm)

    def _grammar(self, lm: CausalLM, asked: str) -> Any:
        try:
            import xgrammar
        except ImportError as error:
            raise missing_package("transformers: structure: schema", "local", "use structure: instruction") from error
        if asked not in self._grammars:
            told = xgrammar.TokenizerInfo.from_huggingface(lm.tokenizer, vocab_size=lm.model.config.vocab_size, stop_token_ids=_ends(lm))
            self._grammars[asked] = xgrammar.GrammarCompiler(told).compile_json_schema(asked)
        return self._grammars[asked]

    async def close(self) -> None:
        """Nothing is open."""


class _Held:
    """The state of one answer under its grammar."""

    def __init__(self, grammar: Any, lm: CausalLM) -> None:
        import xgrammar

        self._matcher = xgrammar.GrammarMatcher(grammar)
        self._allowed = xgrammar.allocate_token_bitmask(1, lm.model.config.vocab_size)

    def mask(self, logits: Any) -> None:
        """Makes every token impossible that the grammar does not allow here."""
        import xgrammar

        self._matcher.fill_next_token_bitmask(self._allowed)
        xgrammar.apply_token_bitmask_inplace(logits[None], self._allowed)

    def take(self, token: int) -> None:
        """Goes on behind a token."""
        self._matcher.accept_token(token)


def _ends(lm: CausalLM) -> list[int]:
    """The tokens that end an answer."""
    found = lm.model.generation_config.eos_token_id
    tokens = found if isinstance(found, list) else [found]
    return sorted({one for one in (*tokens, lm.tokenizer.eos_token_id) if one is not None}) or [0]
