"""NLL: how unlikely a reply is under a local causal language model, given its context."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from empathy_eval.base.causal_lm import CausalLM, Weights, weights_of
from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import signature_line
from empathy_eval.metrics.protocol import Context, MeanMetric, Segments

MEAN, SUM, GAIN = FORMS = ("mean", "sum", "gain")
ROLES = {"seeker": "user", "helper": "assistant"}
# The turns of a context that are read, the last ones.
TURNS = 5


class Nll(MeanMetric):
    """The negative log-likelihood of a reply as the assistant's next turn, in the chat template of the model; natural logarithm.

    ``sum`` adds up over its tokens: NLL of "EMPATH: An Ensemble Method for Automatic Fine-Grained Turn-Level Dialogue Empathy Evaluation".
    ``mean`` is that by the number of tokens, its normalised NLL. ``gain`` is the mean without the context minus the mean with it: how much
    likelier the context makes a token. Lower is better, of ``gain`` higher. The paper leaves model and turns open.
    """

    places, keep, reads = 4, True, ("context",)

    def __init__(self, model: str, form: str = MEAN, revision: str | None = None, dtype: str = "float32") -> None:
        """Finds the weights; they are loaded when the first reply is scored.

        Raises:
            InputError: if there are none, or the form is not known.
        """
        if form not in FORMS:
            raise input_error("nll: form", f'"{form}" is not known', f"use {', '.join(FORMS[:-1])} or {FORMS[-1]}")
        self._weights: Weights = weights_of(model, revision, "nll: model")
        self._form, self._dtype = form, dtype
        self._lm: CausalLM | None = None
        self.name, self.higher_is_better = "NLL" if form == MEAN else f"NLL ({form})", form == GAIN
        versions = {name: metadata.version(name) for name in ("torch", "transformers")}
        self.signature = signature_line(model=self._weights.name, form=form, turns=TURNS, dtype=dtype, log="e", version=1, **versions)

    def __getstate__(self) -> dict[str, Any]:
        """Travels without the loaded model."""
        return {**self.__dict__, "_lm": None}

    def score_all(self, segments: Segments) -> list[float]:
        """The value of each text; those of one context are scored together, over what the model has read of it once.

        Raises:
            InputError: if the model cannot be loaded, or its template does not take a context.
            ValueError: for a reply that is longer than the model reads.
        """
        lm = self._lm = self._lm or CausalLM(self._weights, self._dtype, "nll: model")
        rows = defaultdict[tuple[tuple[str, str], ...], list[int]](list)
        for row, context in enumerate(segments.contexts):
            rows[_last(context)].append(row)
        losses = [0.0] * len(segments.texts)
        for turns, some in rows.items():
            texts = [lm.tokens(segments.texts[row]) or [0] for row in some]
            values = self._values(lm, turns, texts)
            bare = self._values(lm, (), texts) if self._form == GAIN else [0.0] * len(texts)
            for row, text, value, alone in zip(some, texts, values, bare, strict=True):
                losses[row] = value if self._form == SUM else value / len(text) if self._form == MEAN else (alone - value) / len(text)
        return losses

    def _values(self, lm: CausalLM, turns: Sequence[tuple[str, str]], texts: Sequence[Sequence[int]]) -> list[float]:
        """The sum over the tokens of each text."""
        most = max(map(len, texts))
        if most >= lm.longest:
            raise ValueError(f"the reply has {most} tokens, but the model reads {lm.longest}")
        # Of a long context the end counts.
        prompt = self._prompt(lm, turns)[-(lm.longest - most) :]
        return [-likelihood for likelihood in lm.log_likelihoods(prompt, texts)]

    def _prompt(self, lm: CausalLM, turns: Sequence[tuple[str, str]]) -> list[int]:
        if lm.tokenizer.chat_template and turns:
            try:
                return lm.tokens(lm.chat([{"role": ROLES[role], "content": text} for role, text in turns]))
            except ValueError as error:
                raise input_error("nll: model", str(error), "use another model") from error
        prompt = "".join(f"{role}: {text}\n" for role, text in turns)
        return lm.tokens(f"{prompt}helper: ")


def _last(context: Context) -> tuple[tuple[str, str], ...]:
    """The last turns; those of one role in a row are one, as chat templates want them to take turns."""
    turns = list[tuple[str, str]]()
    for turn in context[-TURNS:]:
        if turns and turns[-1][0] == turn["role"]:
            turns[-1] = turn["role"], f"{turns[-1][1]}\n{turn['text']}"
        else:
            turns.append((turn["role"], turn["text"]))
    return tuple(turns)
