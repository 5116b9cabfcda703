"""Encoders that models are made with: found by name, folder or hash, and known by the hashes of their files; the kind ``encoder``.

A model of that kind is a weighted sum as in the plain model, of its features and of embeddings by a frozen encoder. Beside the plain
features stand the embedding of the reply, and its product, dimension by dimension, with that of what the seeker said last. Both texts of a
pair answer the same words, so those words alone could never tell them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import digest_file
from empathy_eval.base.parsing import json_value
from empathy_eval.metrics.bertscore import PLACES, Embedder
from empathy_eval.metrics.empathy_score.model_folder import ModelFolder
from empathy_eval.metrics.empathy_score.plain import UNIT, Shares, direction_of, said_last, shares_of
from empathy_eval.metrics.protocol import Array, Segments
from empathy_eval.metrics.weights import AT_HAND, FILE, PACKAGED, at_hand, codeless, folder_of, label_of

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
# No encoder has a tenth of them.
MOST_LAYERS = 1000
OTHERWISE = f"leave it out: {PACKAGED} comes as a package"


@dataclass(frozen=True)
class Encoder:
    """An encoder: its folder, a name that tells no path, the SHA-256 of its weights, those of what else changes a number, and its
    ``config.json``."""

    folder: Path
    name: str
    sha256: str
    files: Mapping[str, str]
    shape: Mapping[str, Any]


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
    if (shape := shape_of((folder / CONFIG).read_bytes())) is None:
        what = f"does not describe an encoder: model_type, hidden_size and num_hidden_layers, at most {MOST_LAYERS:,} of these"
        raise input_error(folder / CONFIG, what, "use an encoder such as RoBERTa or MiniLM")
    return Encoder(folder, name, digest_file(folder / FILE), {one: digest_file(folder / one) for one in (CONFIG, TOKENIZER)}, shape)


def shape_of(config: bytes) -> dict[str, Any] | None:
    """What a ``config.json`` says, if it says what an encoder has. What counts layers is bounded: each is built before a weight is looked
    at."""
    try:
        value = json_value(config.decode())
        layers = [one for name, one in value.items() if "layer" in name and isinstance(one, int)]
        whole = isinstance(value["model_type"], str) and all(isinstance(value[name], int) for name in ("hidden_size", "num_hidden_layers"))
        return dict(value) if whole and max(layers) <= MOST_LAYERS else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


class Columns:
    """What a frozen encoder makes of replies, in millionths as the plain features are."""

    def __init__(self, encoder: Encoder) -> None:
        """Loads the encoder.

        Raises:
            InputError: if its packages are not installed.
        """
        self._embedder = Embedder(str(encoder.folder), encoder.shape["num_hidden_layers"])
        self._embedder.cut(encoder.shape)

    def of(self, segments: Segments) -> Shares:
        """The plain features, the embedding, and its products: shape (texts, columns)."""
        many, said = len(segments.texts), [said_last(context) for context in segments.contexts or [()] * len(segments.texts)]
        # Embeddings are whole numbers of their last place, and so their products are cut alike everywhere.
        whole = np.rint(self._embedder.embedded([*segments.texts, *said]) * 10**PLACES).astype(np.int64)
        reply, last = whole[:many], whole[many:]
        unit = UNIT // 10**PLACES
        return np.concatenate([shares_of(segments), reply * unit, reply * last * unit // 10**PLACES], axis=1)


class Embedded:
    """A model of the kind ``encoder`` at work."""

    keep, share, places = True, False, PLACES

    def __init__(self, folder: ModelFolder) -> None:
        """Takes the weights of a folder, and finds its encoder.

        Raises:
            InputError: if it was made with another encoder or other word lists, its arrays do not fit, or packages are missing.
        """
        encoder = encoder_of(folder)
        self.direction = direction_of(folder, 2 * encoder.shape["hidden_size"])
        self._columns = Columns(encoder)

    def parts(self, segments: Segments) -> dict[str, Array]:
        """How empathetic each text is; such a model has no other part."""
        return {"content": self.direction.scores(self._columns.of(segments)) if segments.texts else np.zeros(0)}
