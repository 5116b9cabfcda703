"""The kind ``encoder``: a weighted sum as in the plain model, of its features and of embeddings by a frozen encoder.

Beside the plain features stand the embedding of the reply, and its product, dimension by dimension, with that of what the seeker said last.
Both texts of a pair answer the same words, so those words alone could never tell them apart.
"""

from __future__ import annotations

import numpy as np

from empathy_eval.metrics.bertscore import PLACES
from empathy_eval.metrics.embedder import Embedder
from empathy_eval.metrics.empathy_score.encoders import Encoder, encoder_of
from empathy_eval.metrics.empathy_score.features import UNIT, Shares, said_last
from empathy_eval.metrics.empathy_score.model_folder import ModelFolder
from empathy_eval.metrics.empathy_score.plain import direction_of, shares_of
from empathy_eval.metrics.protocol import Array, Segments


class Columns:
    """What a frozen encoder makes of replies, in millionths as the plain features are."""

    def __init__(self, encoder: Encoder) -> None:
        """Loads the encoder.

        Raises:
            InputError: if its packages are not installed.
        """
        self._embedder = Embedder(str(encoder.folder), encoder.shape["num_hidden_layers"])
        self._embedder.cut(encoder.shape)
        self.size = 2 * encoder.shape["hidden_size"]

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

    def content(self, segments: Segments) -> Array:
        """How empathetic each text is."""
        if not segments.texts:
            return np.zeros(0)
        return self.direction.scores(self._columns.of(segments))

    def flow(self, segments: Segments) -> Array:
        """Such a model has no such part."""
        raise NotImplementedError("a model of the kind encoder has no flow")
