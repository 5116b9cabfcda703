"""Toxicity by a named scorer; its scores are completions in the ledger, rounded to four places."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from empathy_eval.base.errors import input_error, missing_package
from empathy_eval.base.hashing import digest, digest_file
from empathy_eval.base.imports import without
from empathy_eval.completions.ledger import Entry, Ledger
from empathy_eval.completions.models.protocol import NoAnswer
from empathy_eval.completions.requests import About, Completion, Flaw, Request
from empathy_eval.design.configuration import ToxicityConfig

# Scores a list of texts at once: a single call costs hundreds of times what a text in a batch costs.
Scorer = Callable[[list[str]], Sequence[float]]
# Texts that come within this time are scored together, in seconds.
GATHERED = 0.005


class Toxicity:
    """Scores texts through the ledger, in batches over all items at work."""

    def __init__(self, config: ToxicityConfig, ledger: Ledger, *, offline: bool = False) -> None:
        """Loads nothing yet but the hash of the scorer's weights.

        Raises:
            InputError: if the configured scorer is not installed.
        """
        self.config = config
        self.weights = weights_of(config)
        self._ledger = ledger
        self._offline = offline
        self._waiting: list[tuple[str, Request, asyncio.Future[float]]] = []
        self._settling: set[asyncio.Task[None]] = set()

    async def score(self, text: str, about: About) -> float:
        """The score of a text, in [0, 1]; ``about`` is the turn whose text it is.

        Raises:
            NoAnswer: in an offline build, if the ledger has no score for this text and these weights.
            JobError: if what the ledger has for it is no score.
        """
        request = self.request(text, about)
        found = self._ledger.get(request.key)
        if found is not None:
            return self._scored(request.key, found.text)
        if self._offline:
            raise NoAnswer(f"not in the ledger: toxicity of {about}, key {request.key}")
        if not self._waiting:
            settling = asyncio.create_task(self._settle())
            self._settling.add(settling)  # a loop alone does not keep its tasks
            settling.add_done_callback(self._settling.discard)
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append((text, request, future))
        return await future

    def _scored(self, key: str, text: str) -> float:
        with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
            score = json.loads(text)["score"]
            if type(score) in (int, float) and 0 <= score <= 1:
                return float(score)
        raise self._ledger.broken(key, "the answer is no score")

    def request(self, text: str, about: About) -> Request:
        """What a score is kept under: the text and the weights."""
        body = {"model": self.config.scorer, "weights": self.weights, "text": text}
        return Request(body, "local", About(about.dialogue_id, "score", about.turn))

    def flaws(self, score: float) -> list[Flaw]:
        """A flaw if the score is above the limit."""
        if score <= self.config.at_most:
            return []
        return [Flaw("toxic", f"a toxicity of {score:.2f} by {self.config.scorer}, at most {self.config.at_most} is taken")]

    async def _settle(self) -> None:
        """Scores what gathers in a moment, stores it, and hands it out."""
        await asyncio.sleep(GATHERED)
        waiting, self._waiting = self._waiting, []
        try:
            scores = [round(float(score), 4) for score in load_scorer(self.config)([text for text, _, _ in waiting])]
            completions = [Completion(json.dumps({"score": score}), "stop", self.config.scorer) for score in scores]
            made = zip(waiting, completions, strict=True)
            await self._ledger.store(*(Entry(request.key, request.about, one, "computed") for (_, request, _), one in made))
        except Exception as error:  # whatever is raised belongs to those who wait
            for _, _, future in waiting:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, _, future), score in zip(waiting, scores, strict=True):
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
def weights_of(config: ToxicityConfig) -> str:
    """A name of the scorer's weights that changes when they do: a hash of the files, ``original`` if Detoxify downloads them.

    Raises:
        InputError: if a configured file or folder, or the package whose files are hashed, is not there.
    """
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
            raise input_error(path, "the configured Detoxify checkpoint is not there", "download it, or mend the path")
        weights = digest_file(path)
    if config.config is None:
        return weights
    folder = Path(config.config)
    if not folder.is_dir():
        raise input_error(folder, "the configured folder of Detoxify's tokenizer is not there", "download it, or mend the path")
    # Another vocabulary makes other scores of the same weights.
    return digest([weights, *([path.name, digest_file(path)] for path in sorted(folder.iterdir()) if path.is_file())])
