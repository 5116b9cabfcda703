"""Embeddings of texts by a frozen encoder, each the mean of its tokens' vectors, of length 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from empathy_eval.metrics.bertscore import PLACES, BertScore
from empathy_eval.metrics.protocol import Array


class Embedder(BertScore):
    """A model as BERTScore loads it, for the vectors alone."""

    def __init__(self, model: str, layer: int, beside: Iterable[object] = ()) -> None:
        """Loads the model, or takes that of a BERTScore ``beside`` it: that keeps the means of what it embeds from now on.

        Raises:
            InputError: as BERTScore.
        """
        same = next((one for one in beside if isinstance(one, BertScore) and one.encoder == (model, layer)), None)
        if same is None:
            super().__init__(model, layer)
            self._means = {}
        else:
            same._means = {}
            self.__dict__.update(same.__dict__)

    def cut(self, shape: Mapping[str, Any]) -> None:
        """Lets texts be cut to the places that an encoder of this ``config.json`` has, whatever its tokenizer says."""
        places = shape.get("max_position_embeddings", 512)
        # RoBERTa counts its places from behind that of the padding.
        offset = shape.get("pad_token_id", 1) + 1 if "roberta" in shape["model_type"] else 0
        self._tokenizer.model_max_length = min(self._tokenizer.model_max_length, places - offset)

    def embedded(self, texts: Sequence[str]) -> Array:
        """The embedding of each text, shape (texts, dimensions); one that comes again is embedded once."""
        import torch

        known = self._means or {}
        found = {text: known.get(text) for text in texts}
        with torch.inference_mode():
            for some, _, mask, vectors in self._encoded([text for text, mean in found.items() if mean is None]):
                found.update(self._with_means(some, mask, vectors))
        rows: Array = np.array([found[text] for text in texts], dtype=np.float64)
        return np.asarray(rows.reshape(len(texts), self._model.config.hidden_size) / 10**PLACES)
