"""Encoders that models are made with: found by name, folder or hash, and known by the hashes of their files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import digest_file
from empathy_eval.metrics.empathy_score.model_folder import ModelFolder
from empathy_eval.metrics.weights import AT_HAND, FILE, PACKAGED, at_hand, codeless, folder_of, label_of

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
# No encoder has a tenth of them.
MOST_LAYERS = 1000
OTHERWISE = f"leave it out: {PACKAGED} comes as a package"


@dataclass(frozen=True)
class Encoder:
    """An encoder: its folder, a name that tells no path, the SHA-256 of its weights, and those of what else changes a number."""

    folder: Path
    name: str
    sha256: str
    files: Mapping[str, str]

    @property
    def shape(self) -> dict[str, Any]:
        """Its ``config.json``."""
        return _shape(self.folder)


def encoder_named(named: str) -> Encoder:
    """The encoder of that name: the packaged one, a folder, or a name of the Hub.

    Raises:
        InputError: if there is none, or it is not whole, pickled, or asks for code of its own.
    """
    return _encoder(folder_of(named, "--encoder", OTHERWISE), PACKAGED if named == PACKAGED else label_of(named))


def encoder_of(model: ModelFolder) -> Encoder:
    """The encoder that a model was made with.

    Raises:
        InputError: if it is not at hand, or what is there is another one.
    """
    told = model.config["encoder"] or {"name": "", "sha256": ""}
    folder = folder_of(PACKAGED, f"model {model.path}") if told["name"] == PACKAGED else at_hand(f"sha256:{told['sha256']}")
    which = f"the encoder {told['name']} (SHA-256 {told['sha256'][:12]}…)"
    if folder is None:
        fix = f"fetch it into the Hub's cache, or name its folder, or a folder of models, in {AT_HAND}"
        raise input_error(model.path, f"was made with {which}, which is not available", fix)
    found = _encoder(folder, told["name"])
    if found.sha256 != told["sha256"] or found.files != model.config["settings"].get("encoder_files"):
        what = f"was made with {which}, and {folder} holds another one (SHA-256 {found.sha256[:12]}…), or with another tokenizer"
        raise input_error(model.path, what, "put back the encoder that it was made with, or train the model again")
    return found


def _encoder(folder: Path, name: str) -> Encoder:
    for one in (CONFIG, TOKENIZER):
        if not (folder / one).is_file():
            raise input_error(folder, f"holds no {one}", "save the model and its tokenizer there with save_pretrained of transformers")
    if not codeless(folder):
        raise input_error(folder, "requires custom code, which is not run", f"name another encoder, or {OTHERWISE}")
    _shape(folder)
    return Encoder(folder, name, digest_file(folder / FILE), {one: digest_file(folder / one) for one in (CONFIG, TOKENIZER)})


def _shape(folder: Path) -> dict[str, Any]:
    try:
        shape: dict[str, Any] = json.loads((folder / CONFIG).read_bytes())
        if is_shape(shape):
            return shape
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    fix = "use an encoder such as RoBERTa or MiniLM"
    what = f"does not describe an encoder: model_type, hidden_size and num_hidden_layers, at most {MOST_LAYERS:,} of these"
    raise input_error(folder / CONFIG, what, fix)


def is_shape(value: Mapping[str, Any]) -> bool:
    """Whether a ``config.json`` says what an encoder has. What counts layers is bounded: each is built before a weight is looked at.

    Raises:
        KeyError, TypeError, AttributeError: for what is none.
    """
    layers = [one for name, one in value.items() if "layer" in name and isinstance(one, int)]
    said = isinstance(value["model_type"], str) and all(isinstance(value[name], int) for name in ("hidden_size", "num_hidden_layers"))
    return said and max(layers) <= MOST_LAYERS
