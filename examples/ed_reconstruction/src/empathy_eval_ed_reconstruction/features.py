"""Three embeddings side by side: of the reply's label, of the utterance's, and of what was inferred."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from empathy_eval.metrics.bertscore import PACKAGED, PLACES, Embedder
from empathy_eval.metrics.empathy_score.encoders import encoder_named
from empathy_eval.metrics.protocol import Array, Segments

from empathy_eval_ed_reconstruction.readings import Readings, labels, utterance_of


class Features:
    """Makes them with the packaged encoder, a text the mean of its tokens' vectors."""

    def __init__(self, readings: Readings) -> None:
        """Loads the encoder.

        Raises:
            InputError: if its packages are not installed.
        """
        encoder = encoder_named(PACKAGED)
        self._readings, self._embedder = readings, Embedder(PACKAGED, encoder.shape["num_hidden_layers"])
        self._embedder.truncate_to(encoder.shape)
        self.size = int(encoder.shape["hidden_size"])
        self.embedding = f"{PACKAGED}@{encoder.sha256[:12]},pooled=mean,places={PLACES}"
        self.readings = readings.signature

    def of(self, segments: Segments) -> Array:
        """A row a reply, shape (replies, 3 * size): reply, utterance, knowledge.

        Raises:
            ValueError: if a reply answers nothing, or the readings give a class that there is not.
        """
        return self.of_texts([utterance_of(context) for context in segments.contexts], segments.texts)

    def of_texts(self, utterances: Sequence[str], replies: Sequence[str]) -> Array:
        """The same of utterances and their replies."""
        inferred = self._readings.knowledge(utterances, replies)
        parts = [labels(self._readings, replies), labels(self._readings, utterances), list(inferred)]
        if len(inferred) != len(replies):
            raise ValueError(f"{len(inferred)} texts were inferred for {len(replies)} replies")
        return np.hstack([self._embedder.embedded(texts) for texts in parts])
