"""The model kind ``encoder``: a linear model over embeddings by a frozen encoder and the plain features.

Its columns are the plain features, the embedding of the reply, and its product, dimension by dimension, with that of the seeker's last
message. Both texts of a pair answer the same message, so that message alone cannot distinguish them. Encoders are found by name, folder or
hash, and identified by file hashes.
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
from empathy_eval.metrics.bertscore import AT_HAND, FILE, PACKAGED, PLACES, Embedder, at_hand, codeless, folder_of, label_of
from empathy_eval.metrics.empathy_score.model import ModelFolder, linear_model_of
from empathy_eval.metrics.lexical import UNIT, Shares, feature_shares, last_seeker_text
from empathy_eval.metrics.protocol import Array, Segments

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
# No encoder has a tenth of them.
MOST_LAYERS = 1000
OTHERWISE = f"leave it out: {PACKAGED} comes as a package"


@dataclass(frozen=True)
class Encoder:
    """An encoder: its folder, a name without path, the SHA-256 of its weights, those of other relevant files, and its ``config.json``."""

    folder: Path
    name: str
    sha256: str
    files: Mapping[str, str]
    shape: Mapping[str, Any]


def encoder_named(named: str) -> Encoder:
    """The encoder of that name: the packaged one, a folder, or a Hub name.

    Raises:
        InputError: if there is none, or it is incomplete, pickled, or needs custom code.
    """
    return _encoder(folder_of(named, "--encoder", OTHERWISE), PACKAGED if named == PACKAGED else label_of(named))


def encoder_of(model: ModelFolder) -> Encoder:
    """The encoder that a model was trained with.

    Raises:
        InputError: if it is not available, or differs.
    """
    named = model.config["encoder"] or {"name": "", "sha256": ""}
    folder = folder_of(PACKAGED, f"model {model.path}") if named["name"] == PACKAGED else at_hand(f"sha256:{named['sha256']}")
    which = f"the encoder {named['name']} (SHA-256 {named['sha256'][:12]}…)"
    if folder is None:
        fix = f"fetch it into the Hub's cache, or name its folder, or a folder of models, in {AT_HAND}"
        raise input_error(model.path, f"was made with {which}, which is not available", fix)
    encoder = _encoder(folder, named["name"])
    if encoder.sha256 != named["sha256"] or encoder.files != model.config["settings"].get("encoder_files"):
        what = f"was made with {which}, and {folder} holds another one (SHA-256 {encoder.sha256[:12]}…), or with another tokenizer"
        raise input_error(model.path, what, "put back the encoder that it was made with, or train the model again")
    return encoder


def _encoder(folder: Path, name: str) -> Encoder:
    for file in (CONFIG, TOKENIZER):
        if not (folder / file).is_file():
            raise input_error(folder, f"holds no {file}", "save the model and its tokenizer there with save_pretrained of transformers")
    if not codeless(folder):
        raise input_error(folder, "requires custom code, which is not run", f"name another encoder, or {OTHERWISE}")
    if (shape := shape_of((folder / CONFIG).read_bytes())) is None:
        what = f"does not describe an encoder: model_type, hidden_size and num_hidden_layers, at most {MOST_LAYERS:,} of these"
        raise input_error(folder / CONFIG, what, "use an encoder such as RoBERTa or MiniLM")
    return Encoder(folder, name, digest_file(folder / FILE), {file: digest_file(folder / file) for file in (CONFIG, TOKENIZER)}, shape)


def shape_of(config: bytes) -> dict[str, Any] | None:
    """The content of an encoder's ``config.json``; None if it is not one. Layers are bounded, because each is built before a weight is
    checked.
    """
    try:
        value = json_value(config.decode())
        layers = [number for name, number in value.items() if "layer" in name and isinstance(number, int)]
        whole = isinstance(value["model_type"], str) and all(isinstance(value[name], int) for name in ("hidden_size", "num_hidden_layers"))
        return dict(value) if whole and max(layers) <= MOST_LAYERS else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


class EncoderFeatures:
    """The features of replies by a frozen encoder, in millionths like the plain features."""

    def __init__(self, encoder: Encoder) -> None:
        """Loads the encoder.

        Raises:
            InputError: if its packages are not installed.
        """
        self._embedder = Embedder(str(encoder.folder), encoder.shape["num_hidden_layers"])
        self._embedder.truncate_to(encoder.shape)

    def of(self, segments: Segments) -> Shares:
        """The plain features, the embedding, and its products: shape (texts, columns)."""
        many, last_words = len(segments.texts), [last_seeker_text(context) for context in segments.contexts or [()] * len(segments.texts)]
        # Embeddings are whole numbers of their last place, and so their products are cut alike everywhere.
        whole = np.rint(self._embedder.embedded([*segments.texts, *last_words]) * 10**PLACES).astype(np.int64)
        reply, last = whole[:many], whole[many:]
        unit = UNIT // 10**PLACES
        return np.concatenate([feature_shares(segments), reply * unit, reply * last * unit // 10**PLACES], axis=1)


class EncoderScorer:
    """The scorer of a model of kind ``encoder``."""

    keep, share, places = True, False, PLACES

    def __init__(self, folder: ModelFolder) -> None:
        """Loads the weights of a folder, and its encoder.

        Raises:
            InputError: if it was trained with another encoder or other word lists, its arrays do not fit, or packages are missing.
        """
        encoder = encoder_of(folder)
        self.direction = linear_model_of(folder, 2 * encoder.shape["hidden_size"])
        self._columns = EncoderFeatures(encoder)

    def parts(self, segments: Segments) -> dict[str, Array]:
        """How empathetic each text is; such a model has no other part."""
        return {"content": self.direction.scores(self._columns.of(segments)) if segments.texts else np.zeros(0)}
