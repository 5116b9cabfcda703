"""The toxicity scorer as a model: what it answers is a score, computed here, rounded to four places."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import missing_package
from empathy_eval.base.imports import without
from empathy_eval.completions.models.detoxify_scorer import detoxify_weights, load_detoxify
from empathy_eval.completions.requests import Completion, Request
from empathy_eval.design.configuration import ToxicityConfig
from empathy_eval.design.prompts import Message

# Scores a list of texts at once: a single call costs hundreds of times what a text in a batch costs.
Scorer = Callable[[list[str]], Sequence[float]]
# Texts that come within this time are scored together, in seconds.
GATHERED = 0.005


class ToxicityScorer:
    """Scores the texts of all items at work in batches. A request holds the text and the hash of the weights."""

    endpoint = "local"

    def __init__(self, config: ToxicityConfig) -> None:
        """Reads nothing yet: a preview needs no weights."""
        self.name, self._config = config.scorer, config
        self._waiting: list[tuple[str, asyncio.Future[float]]] = []
        self._scoring: set[asyncio.Task[None]] = set()

    @cached_property
    def weights(self) -> str:
        """The hash of the scorer's weights.

        Raises:
            InputError: as :func:`weights_of`.
        """
        return weights_of(self._config)

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        """What a score is kept under: the text, which is the last message, and the weights."""
        return {"model": self.name, "weights": self.weights, "text": messages[-1]["content"]}

    async def complete(self, request: Request) -> Completion:
        """The score of a text, in [0, 1], as JSON.

        Raises:
            InputError: if the scorer's package is not installed.
        """
        if not self._waiting:
            scoring = asyncio.create_task(self._score())
            self._scoring.add(scoring)  # a loop alone does not keep its tasks
            scoring.add_done_callback(self._scoring.discard)
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append((request.body["text"], future))
        return Completion(json.dumps({"score": await future}), "stop", self.name)

    async def close(self) -> None:
        """Nothing to give back."""

    async def _score(self) -> None:
        """Scores what gathers in a moment, and hands it out."""
        await asyncio.sleep(GATHERED)
        waiting, self._waiting = self._waiting, []
        try:
            scores = [round(float(score), 4) for score in load_scorer(self._config)([text for text, _ in waiting])]
        except Exception as error:  # whatever is raised belongs to those who wait
            for _, future in waiting:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), score in zip(waiting, scores, strict=True):
            if not future.done():
                future.set_result(score)


@cache
def load_scorer(config: ToxicityConfig) -> Scorer:
    """The scoring function of a configuration, with its weights loaded.

    Raises:
        InputError: if its package is not installed, or its weights cannot be loaded.
    """
    if config.scorer == "detoxify":
        return load_detoxify(config)
    # scikit-learn loads pandas, if only to know whether it is there, and pandas loads pyarrow: 65 MB and half a second.
    with without("pandas"):
        from profanity_check import predict_prob

    return lambda texts: [float(value) for value in predict_prob(texts)]


@cache
def weights_of(config: ToxicityConfig | None) -> str:
    """A hash of the scorer's weights; ``none`` where nothing is scored.

    Raises:
        InputError: if weights are missing or wrong, with all that is, or if the scorer's package is not installed.
    """
    if config is None:
        return "none"
    if config.scorer == "detoxify":
        return detoxify_weights(config)
    import importlib.util

    spec = importlib.util.find_spec("profanity_check")
    if spec is None or spec.origin is None:
        raise missing_package("checks: toxicity: alt-profanity-check")
    folder = Path(spec.origin).parent / "data"
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in ("model.joblib", "vectorizer.joblib"))).hexdigest()
