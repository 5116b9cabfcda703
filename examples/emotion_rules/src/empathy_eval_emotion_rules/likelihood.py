"""How likely a model finds a reply, given the query: the mean of log p over the reply's tokens ("BARTScore", all tokens weighing alike)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from empathy_eval.metrics.bertscore import batches

from empathy_eval_emotion_rules.folders import Weights, loaded

SETTING = "likelihood"
WHAT = "a model that writes one text from another, such as BART,"
# Tokens of a batch: each has a number for every word that the model knows.
TOKENS = 1000
# Of a mean log p: what most machines agree on. It is held against the threshold as it is rounded.
PLACES = 4


class Likelihood(Protocol):
    """What says how likely replies are."""

    @property
    def signature(self) -> str:
        """Every setting and version that can change a number."""
        ...

    def mean_log(self, queries: Sequence[str], replies: Sequence[str]) -> list[float]:
        """The mean natural logarithm of the probability of a token of each reply, given its query: at most 0."""
        ...


class Seq2Seq:
    """A model of a folder that reads the query and is asked for the reply. The marks of the reply's ends count as tokens, as they do in
    the code of BARTScore.
    """

    def __init__(self, weights: Weights) -> None:
        """Loads the model.

        Raises:
            InputError: as :func:`~empathy_eval_emotion_rules.folders.loaded`.
        """
        self._loaded = loaded(SETTING, weights, "AutoModelForSeq2SeqLM")
        self.signature = f"{weights.signature},mean-log-p,omega=1/m,places={PLACES},cut={self._loaded.places}"

    def mean_log(self, queries: Sequence[str], replies: Sequence[str]) -> list[float]:
        """The means, rounded."""
        import torch

        found = [0.0] * len(replies)
        sides = [self._loaded.tokenizer(list(texts))["input_ids"] for texts in (queries, replies)] if replies else [[], []]
        sizes = [len(query) + len(reply) for query, reply in zip(*sides, strict=True)]
        with torch.inference_mode():
            for rows in batches(sizes, TOKENS):
                for row, value in zip(rows, self._means([queries[row] for row in rows], [replies[row] for row in rows]), strict=True):
                    found[row] = round(value, PLACES)
        return found

    def _means(self, queries: list[str], replies: list[str]) -> list[float]:
        read, said = self._loaded.tokens(queries), self._loaded.tokens(replies)
        # With labels the model shifts them to the right itself, so that each token is foretold from those before it.
        logits = self._loaded.model(**read, labels=said["input_ids"]).logits
        own = logits.gather(2, said["input_ids"].unsqueeze(-1)).squeeze(-1) - logits.logsumexp(dim=-1)
        mask = said["attention_mask"]
        means: list[float] = ((own * mask).sum(dim=1).double() / mask.sum(dim=1)).tolist()
        return means
