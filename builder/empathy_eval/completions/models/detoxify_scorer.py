"""Detoxify as the toxicity scorer: its local weights are checked and hashed, and loaded without a download."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from empathy_eval.base.errors import InputError, Problem, input_error, missing_package
from empathy_eval.base.hashing import digest, digest_file
from empathy_eval.design.configuration import ToxicityConfig

CHECKPOINT, CONFIG = "checks: toxicity: checkpoint", "checks: toxicity: config"
# The address that Detoxify publishes for its model "original", and the model that this was trained from.
URL = "https://github.com/unitaryai/detoxify/releases/download/v0.1-alpha/toxic_original-c1212f89.ckpt"
NAME = URL.rpartition("/")[2]
BASE, BASE_FILES = "google-bert/bert-base-uncased", "config.json tokenizer.json tokenizer_config.json vocab.txt"
# How a file of torch.save begins: as a zip archive, or in the older form as a pickle.
BEGINNINGS = (b"PK", b"\x80\x02")
# The end of a name in the convention of torch.hub: the first digits of the file's SHA-256.
DIGITS = re.compile(r"-([0-9a-f]{8})\.[^.]+$")


def detoxify_weights(config: ToxicityConfig) -> str:
    """A hash of the checkpoint and of the files beside it: another vocabulary makes other scores of the same weights.

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
    elif (named := DIGITS.search(path.name)) and (found := digest_file(path)[:8]) != named[1]:
        what = f'"{path}" has {named[1]} in its name, but its SHA-256 begins with {found}: it is damaged, or another file'
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
    """Scores of texts by Detoxify, whose own code loads the checkpoint.

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
        found: float | list[float] = model.predict(texts)["toxicity"]
        # Detoxify returns a bare number for a list of one text.
        return [found] if isinstance(found, float) else found

    return scores
