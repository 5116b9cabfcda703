"""How near a reply is to its query: the cosine of their embeddings, and nothing below 0 (``relevance-direct``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from empathy_eval.metrics.bertscore import PACKAGED, PLACES, Embedder
from empathy_eval.metrics.empathy_score.encoders import Encoder, encoder_named
from empathy_eval.metrics.protocol import Array

from empathy_eval_emotion_rules.folders import weights_in

SETTING = "embedding"
WHAT = f"an encoder of texts (or leave the setting out: {PACKAGED} comes as a package)"


class Relevance(Protocol):
    """What says how much a reply has to do with its query."""

    @property
    def signature(self) -> str:
        """Every setting and version that can change a number."""
        ...

    def relevance(self, queries: Sequence[str], replies: Sequence[str]) -> Array:
        """A number from 0 to 1 for each reply."""
        ...


def encoder_of(named: str) -> Encoder:
    """The packaged encoder by its name, or that of a folder.

    Raises:
        InputError: if there is none, or it asks for code of its own.
    """
    if named != PACKAGED:
        weights_in(SETTING, named, WHAT)
    return encoder_named(named if named == PACKAGED else str(Path(named)))


class Direct:
    """The cosine of query and reply. Questions that the reply might answer are not made up: that is another measure, ``relevance``."""

    def __init__(self, encoder: Encoder) -> None:
        """Loads the encoder.

        Raises:
            InputError: if its packages are not installed.
        """
        self._embedder = Embedder(str(encoder.folder), encoder.shape["num_hidden_layers"])
        self._embedder.truncate_to(encoder.shape)
        files = ",".join(f"{name}={sha256[:12]}" for name, sha256 in sorted(encoder.files.items()))
        self.signature = f"relevance-direct,{encoder.name}@{encoder.sha256[:12]},{files},pooled=mean,places={PLACES},floor=0"

    def relevance(self, queries: Sequence[str], replies: Sequence[str]) -> Array:
        """The cosines, those below 0 as 0."""
        return clipped_cosine(self._embedder.embedded(queries), self._embedder.embedded(replies))


def clipped_cosine(left: Array, right: Array) -> Array:
    """The cosine of each row with the row beside it, nothing below 0 and nothing above 1."""
    cosine: Array = (left * right).sum(axis=1) / ((left**2).sum(axis=1) * (right**2).sum(axis=1)) ** 0.5
    return cosine.clip(0.0, 1.0)
