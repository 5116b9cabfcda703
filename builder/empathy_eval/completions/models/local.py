"""A model in the process (``kind: transformers``): chat template, batches, seeded sampling, and JSON by a grammar."""

from __future__ import annotations

import asyncio
import json
import math
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from empathy_eval.base.causal_lm import CausalLM, Weights, weights_of
from empathy_eval.base.errors import missing_package
from empathy_eval.base.schemas import check, schema_for_models, whole_numbers, with_pinned_defaults
from empathy_eval.completions.models.custom import run_in_thread
from empathy_eval.completions.requests import Completion, NoAnswer, Request, Usage
from empathy_eval.design.prompts import Message

# What a prompt says of the form of each rating; and the decimals of an expected one.
FORM, PLACES = re.compile(r'"criterion": ("[^"]+"), "value": a number'), 4
# The first requests come together, each in a thread: one of them loads the model.
LOADING = threading.Lock()


@dataclass(frozen=True)
class Settings:
    """The parameters of a model in the process, as ``schemas/input/local_model.schema.json`` describes them."""

    model: str
    dtype: str
    max_tokens: int
    structure: str
    temperature: float
    top_p: float
    revision: str | None = None
    batch: int = 1
    expected_over: tuple[float, ...] = ()

    @property
    def published(self) -> dict[str, Any]:
        """Those that an answer depends on, beside the weights."""
        values = {name: getattr(self, name) for name in ("dtype", "max_tokens", "structure", "temperature", "top_p")}
        return values | ({"expected_over": list(self.expected_over)} if self.expected_over else {})


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

    def __init__(self, model: str, **settings: Any) -> None:
        """Finds and hashes the weights; they are loaded when the first request is answered.

        Raises:
            InputError: if there are no weights, or settings are unknown or out of range; all of them at once.
        """
        given = {"model": model, **settings}
        check(given, "local_model", "transformers")
        given = whole_numbers(with_pinned_defaults(given, "local_model"), "local_model")
        # What is written as 1 and as 1.0 is the same request.
        given |= {name: float(given[name]) for name in ("temperature", "top_p")}
        self._settings = Settings(**{**given, "expected_over": tuple(map(float, given.get("expected_over", ())))})
        self._weights: Weights = weights_of(model, self._settings.revision, "transformers: model")
        self.name, self.in_flight, self.max_tokens = self._weights.name, 2 * self._settings.batch, self._settings.max_tokens
        self._waiting, self._working = list[_Asked](), False
        self._lm: CausalLM | None = None
        self._grammars: dict[str, Any] = {}

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """The request: messages, all settings that an answer depends on, and the schema if it is held to it."""
        structured = answer_schema and self._settings.structure == "schema"
        held = {"schema": schema_for_models(answer_schema)} if structured else {}
        return {"model": self.name, "messages": messages, **self._settings.published, **held}

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
            self._waiting.sort(key=lambda asked: (len(asked.prompt), asked.request.key))
            some, self._waiting = self._waiting[: self._settings.batch], self._waiting[self._settings.batch :]
            try:
                answers = await run_in_thread(partial(self._answered, lm, some))
            except BaseException as error:
                # Each request hears why there is no answer; a stop is none of their faults.
                for asked in (*some, *self._waiting):
                    if isinstance(error, Exception) and not asked.answer.done():
                        asked.answer.set_exception(error)
                        # The request that works the batch raises it by itself: nothing is left unheard.
                        asked.answer.exception()
                    else:
                        asked.answer.cancel()
                self._waiting = []
                raise
            for asked, answer in zip(some, answers, strict=True):
                if not asked.answer.done():
                    asked.answer.set_result(answer)

    def _loaded(self) -> CausalLM:
        with LOADING:
            if self._lm is None:
                self._lm = CausalLM(self._weights, self._settings.dtype, "transformers: model")
        return self._lm

    def _answered(self, lm: CausalLM, some: Sequence[_Asked]) -> list[Completion]:
        """The answers to a batch, token by token. Prompts are padded on the left."""
        if self._settings.expected_over:
            return [self._expected(lm, asked) for asked in some]
        import torch

        width = max(len(asked.prompt) for asked in some)
        answers = [_Answer(asked, lm, self._settings, self._held(lm, asked.request)) for asked in some]
        rows = [[answers[0].ends[0]] * (width - len(asked.prompt)) + asked.prompt for asked in some]
        mask = [[0] * (width - len(asked.prompt)) + [1] * len(asked.prompt) for asked in some]
        ids, seen, past = torch.tensor(rows, device=lm.device), torch.tensor(mask, device=lm.device), None
        with torch.inference_mode():
            for _ in range(self.max_tokens):
                places = (seen.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
                logits, past = lm.next_tokens(input_ids=ids, attention_mask=seen, position_ids=places, past_key_values=past)
                ids = torch.tensor([[answer.goes_on(row)] for answer, row in zip(answers, logits.cpu(), strict=True)], device=lm.device)
                if all(answer.done for answer in answers):
                    break
                seen = torch.cat([seen, torch.ones_like(ids)], dim=1)
        return [answer.completion(self.name) for answer in answers]

    def _expected(self, lm: CausalLM, asked: _Asked) -> Completion:
        """An answer in the form that the prompt says, each rating in it the mean of the numbers by their probability at its place.

        "G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment", Equation 1; of those numbers alone, so that they add up to 1.

        Raises:
            NoAnswer: if the prompt says no such form.
        """
        if not (names := FORM.findall(asked.request.body["messages"][0]["content"])):
            raise NoAnswer("expected_over is for ratings, and the prompt does not say their form")
        numbers, text = self._settings.expected_over, '{"analysis": "", "ratings": ['
        for place, name in enumerate(names):
            text += f'{", " if place else ""}{{"criterion": {name}, "value":'
            # With the sign that ends it, lest a number be the beginning of another one.
            likelihoods = lm.log_likelihoods([*asked.prompt, *lm.tokens(text)], [lm.tokens(f" {number:g}}}") for number in numbers])
            shares = [math.exp(value - max(likelihoods)) for value in likelihoods]
            mean = math.fsum(share * number for share, number in zip(shares, numbers, strict=True)) / math.fsum(shares)
            text += f" {round(mean, PLACES)}}}"
        return Completion(f"{text}]}}", "stop", self.name, Usage(len(asked.prompt), 0, len(lm.tokens(text))))

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
            vocabulary = xgrammar.TokenizerInfo.from_huggingface(
                lm.tokenizer, vocab_size=lm.model.config.vocab_size, stop_token_ids=_ends(lm)
            )
            self._grammars[asked] = xgrammar.GrammarCompiler(vocabulary).compile_json_schema(asked)
        return self._grammars[asked]

    async def close(self) -> None:
        """Nothing is open."""


class _Answer:
    """One answer of a batch, as far as it is written."""

    def __init__(self, asked: _Asked, lm: CausalLM, settings: Settings, held: _Held | None) -> None:
        import torch

        self._prompt, self._lm, self._settings, self._held = asked.prompt, lm, settings, held
        self._draws = torch.Generator().manual_seed(int(asked.request.key.rpartition("-")[2][:15], 16))
        self._tokens = list[int]()
        self.ends, self.done = _ends(lm), False

    def goes_on(self, logits: Any) -> int:
        """Takes the next token, and gives it; once the answer has ended, one that is read by nobody."""
        if self.done:
            return self.ends[0]
        token = self._chosen(logits)
        self.done = token in self.ends
        if not self.done:
            self._tokens.append(token)
            if self._held is not None:
                self._held.take(token)
        return token

    def completion(self, name: str) -> Completion:
        """What was answered."""
        usage = Usage(len(self._prompt), 0, len(self._tokens) + self.done)
        return Completion(self._lm.tokenizer.decode(self._tokens), "stop" if self.done else "length", name, usage)

    def _chosen(self, logits: Any) -> int:
        """The likeliest token, or one that is drawn."""
        import torch

        if self._held is not None:
            self._held.mask(logits)
        if self._settings.temperature == 0:
            return int(logits.argmax())
        chances, order = torch.softmax(logits / self._settings.temperature, -1).sort(descending=True)
        chances[chances.cumsum(-1) - chances >= self._settings.top_p] = 0
        return int(order[torch.multinomial(chances, 1, generator=self._draws)])


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
    configured = lm.model.generation_config.eos_token_id
    tokens = configured if isinstance(configured, list) else [configured]
    return sorted({token for token in (*tokens, lm.tokenizer.eos_token_id) if token is not None}) or [0]
