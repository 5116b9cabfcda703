"""The toxicity scorer as a model: its answer is a locally computed score, rounded to four places."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import InputError, Problem, input_error, missing_package
from empathy_eval.base.hashing import digest, digest_file
from empathy_eval.base.imports import without
from empathy_eval.completions.requests import Completion, Request
from empathy_eval.design.configuration import ToxicityConfig
from empathy_eval.design.prompts import Message

CHECKPOINT, CONFIG = "checks: toxicity: checkpoint", "checks: toxicity: config"
# The address that Detoxify publishes for its model "original", and the model that this was trained from.
URL = "https://github.com/unitaryai/detoxify/releases/download/v0.1-alpha/toxic_original-c1212f89.ckpt"
NAME = URL.rpartition("/")[2]
BASE, BASE_FILES = "google-bert/bert-base-uncased", "config.json tokenizer.json tokenizer_config.json vocab.txt"
# How a file of torch.save begins: as a zip archive, or in the older form as a pickle.
BEGINNINGS = (b"PK", b"\x80\x02")
# The end of a name in the convention of torch.hub: the first digits of the file's SHA-256.
DIGITS = re.compile(r"-([0-9a-f]{8})\.[^.]+$")
# Scores a list of texts at once: a single call costs hundreds of times what a text in a batch costs.
Scorer = Callable[[list[str]], Sequence[float]]
# Texts that come within this time are scored together, in seconds.
GATHERED = 0.005


def detoxify_weights(config: ToxicityConfig) -> str:
    """A hash of the checkpoint and its tokenizer files, since another vocabulary changes scores.

    Raises:
        InputError: with all that is missing or wrong: the package, the checkpoint, the folder of its configuration.
    """
    problems = list(missing_package("checks: toxicity: detoxify", "detoxify").problems) if find_spec("detoxify") is None else []
    try:
        problems += [*_checkpoint_problems(config.checkpoint), *_config_problems(config.config)]
        if not problems and config.checkpoint and config.config:
            files = sorted(path for path in Path(config.config).iterdir() if path.is_file())
            return digest([digest_file(Path(config.checkpoint)), *([path.name, digest_file(path)] for path in files)])
    except OSError as error:
        problems.append(Problem(str(error.filename), f"cannot be read: {error.strerror}", "make it readable, or correct the path"))
    raise InputError(problems)


def _checkpoint_problems(checkpoint: str | None) -> Iterator[Problem]:
    path = Path(checkpoint or NAME)
    target, ours = (
        (path, "") if checkpoint and path.name == NAME else (Path("weights", NAME), "correct the path, or " if checkpoint else "")
    )
    fix = f'{ours}run "curl -L --fail --create-dirs -o {target} {URL}", and write "checkpoint: {target}" under checks: toxicity'
    if checkpoint is None:
        yield Problem(CHECKPOINT, 'is not set, but "detoxify" needs local weights: nothing is downloaded', fix)
    elif not path.is_file():
        yield Problem(CHECKPOINT, f'"{path}" is not a file, and nothing is downloaded', fix)
    elif (beginning := _beginning(path)) not in BEGINNINGS:
        yield Problem(CHECKPOINT, f'"{path}" is not a checkpoint of PyTorch: it begins with {beginning!r}', fix)
    elif (named := DIGITS.search(path.name)) and (actual := digest_file(path)[:8]) != named[1]:
        what = f'"{path}" has {named[1]} in its name, but its SHA-256 begins with {actual}: it is damaged, or another file'
        yield Problem(CHECKPOINT, what, f"{fix}; or, if you trust the file, rename it without these digits")


def _config_problems(config: str | None) -> Iterator[Problem]:
    folder = f"weights/{BASE.rpartition('/')[2]}"
    fix = f'run "hf download {BASE} {BASE_FILES} --local-dir {folder}", and write "config: {folder}" under checks: toxicity'
    if config is None:
        yield Problem(CONFIG, "is not set, but the checkpoint needs the folder of its tokenizer and configuration", fix)
    elif not Path(config).is_dir():
        yield Problem(CONFIG, f'"{config}" is not a folder, and nothing is downloaded', fix)
    elif not Path(config, "config.json").is_file():
        yield Problem(CONFIG, f'"{config}" has no file "config.json"', fix)


def _beginning(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(2)


def load_detoxify(config: ToxicityConfig) -> Callable[[list[str]], Sequence[float]]:
    """The scoring function of Detoxify, whose own code loads the checkpoint.

    Raises:
        InputError: if Detoxify cannot load it.
    """
    import detoxify

    module, build = detoxify.detoxify, detoxify.detoxify.get_model_and_tokenizer
    # Detoxify asks the Hub for the model that a checkpoint names, and only then sets the number of classes: the folder takes its place.
    module.get_model_and_tokenizer = lambda **given: build(**given | {"model_type": config.config})
    try:
        model = detoxify.Detoxify(checkpoint=config.checkpoint)
        model.predict("a text")["toxicity"]
    except Exception as error:  # pickles and model files fail in many ways
        what = f'Detoxify cannot load "{config.checkpoint}" with "{config.config}": {type(error).__name__}: {error}'
        fix = "use a checkpoint that Detoxify published or wrote, and the files of the model that it was trained from"
        raise input_error("checks: toxicity", " ".join(what.split())[:500], fix) from error
    finally:
        module.get_model_and_tokenizer = build

    def scores(texts: list[str]) -> list[float]:
        predicted: float | list[float] = model.predict(texts)["toxicity"]
        # Detoxify returns a bare number for a list of one text.
        return [predicted] if isinstance(predicted, float) else predicted

    return scores


class ToxicityScorer:
    """Scores texts of all items at work in batches. A request holds the text and the hash of the weights."""

    endpoint = "local"

    def __init__(self, config: ToxicityConfig) -> None:
        """Loads nothing yet: a preview needs no weights."""
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
        """The body that a score is stored under: the text, which is the last message, and the weights."""
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
        """Nothing to close."""

    async def _score(self) -> None:
        """Scores the texts that gather for a moment."""
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
    """A hash of the scorer's weights; ``none`` if nothing is scored.

    Raises:
        InputError: if weights or the scorer's package are missing or wrong.
    """
    if config is None:
        return "none"
    if config.scorer == "detoxify":
        return detoxify_weights(config)
    spec = find_spec("profanity_check")
    if spec is None or spec.origin is None:
        raise missing_package("checks: toxicity: alt-profanity-check")
    folder = Path(spec.origin).parent / "data"
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in ("model.joblib", "vectorizer.joblib"))).hexdigest()


def missing_scorer(config: ToxicityConfig, weights: str) -> tuple[str, str] | None:
    """(what, fix) if a scorer with weights of that hash is not installed. Nothing is loaded by a path that a manifest names."""
    if config.scorer == "detoxify":
        fix = "ask the publisher for the weights, and build the release again"
        return "has its own weights, at a path on the publisher's machine", fix
    try:
        installed = weights_of(config)
    except InputError as error:
        return "is not installed", error.problems[0].fix
    if installed != weights:
        return f"has other weights here ({installed[:12]}, not {weights[:12]})", "install the version that the manifest names"
    return None
