"""The toxicity scorer as a model: what it answers is a score, computed here, rounded to four places."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error, missing_package
from empathy_eval.base.hashing import digest, digest_file
from empathy_eval.base.imports import without
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
        """Loads nothing yet but the hash of the scorer's weights.

        Raises:
            InputError: if the configured scorer is not installed.
        """
        self.name, self.weights, self._config = config.scorer, weights_of(config), config
        self._waiting: list[tuple[str, asyncio.Future[float]]] = []
        self._scoring: set[asyncio.Task[None]] = set()

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
        InputError: if its package is not installed.
    """
    if config.scorer == "detoxify":
        return _detoxify(config)
    # scikit-learn loads pandas, if only to know whether it is there, and pandas loads pyarrow: 65 MB and half a second.
    with without("pandas"):
        from profanity_check import predict_prob

    return lambda texts: [float(value) for value in predict_prob(texts)]


def _detoxify(config: ToxicityConfig) -> Scorer:
    try:
        from detoxify import Detoxify
    except ImportError as error:
        raise missing_package("checks: toxicity: detoxify", "detoxify") from error
    model = Detoxify("original", checkpoint=config.checkpoint, huggingface_config_path=config.config)

    def scores(texts: list[str]) -> list[float]:
        found: float | list[float] = model.predict(texts)["toxicity"]
        # Of a list with one text Detoxify makes a bare number.
        return [found] if isinstance(found, float) else found

    return scores


@cache
def weights_of(config: ToxicityConfig | None) -> str:
    """A name of the scorer's weights that changes when they do: a hash of the files, ``original`` if Detoxify downloads them.

    Where nothing is scored it is ``none``.

    Raises:
        InputError: if a configured file or folder, or the package whose files are hashed, is not there.
    """
    if config is None:
        return "none"
    if config.scorer == "detoxify":
        return _detoxify_weights(config)
    import importlib.util

    spec = importlib.util.find_spec("profanity_check")
    if spec is None or spec.origin is None:
        raise missing_package("checks: toxicity: alt-profanity-check")
    folder = Path(spec.origin).parent / "data"
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in ("model.joblib", "vectorizer.joblib"))).hexdigest()


def _detoxify_weights(config: ToxicityConfig) -> str:
    weights = "original"
    if config.checkpoint is not None:
        path = Path(config.checkpoint)
        if not path.is_file():
            raise input_error(path, "the configured Detoxify checkpoint is not there", "download it, or correct the path")
        weights = digest_file(path)
    if config.config is None:
        return weights
    folder = Path(config.config)
    if not folder.is_dir():
        raise input_error(folder, "the configured folder of Detoxify's tokenizer is not there", "download it, or correct the path")
    # Another vocabulary makes other scores of the same weights.
    return digest([weights, *([path.name, digest_file(path)] for path in sorted(folder.iterdir()) if path.is_file())])
