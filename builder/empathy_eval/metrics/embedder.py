"""Embeddings of texts by a frozen encoder, each the mean of its tokens' vectors, of length 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from empathy_eval.metrics.bertscore import TOKENS, BertScore, batches
from empathy_eval.metrics.protocol import Array

# Places of an embedding that most machines agree on.
PLACES = 4


class Embedder(BertScore):
    """A model as BERTScore loads it, for the vectors alone."""

    def cut(self, shape: Mapping[str, Any]) -> None:
        """Lets texts be cut to the places that an encoder of this ``config.json`` has, whatever its tokenizer says."""
        places = shape.get("max_position_embeddings", 512)
        # RoBERTa counts its places from behind that of the padding.
        offset = shape.get("pad_token_id", 1) + 1 if "roberta" in shape["model_type"] else 0
        self._tokenizer.model_max_length = min(self._tokenizer.model_max_length, places - offset)

    def embedded(self, texts: Sequence[str]) -> Array:
        """The embedding of each text, shape (texts, dimensions); one that comes again is embedded once."""
        import torch
        from bert_score.utils import bert_encode, padding, sent_encode

        place = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        # bert-score's own way with an empty text does not work with today's transformers.
        ids = [sent_encode(self._tokenizer, text) if text.strip() else self._tokenizer.encode("") for text in place]
        found: Any = np.zeros((len(ids), self._model.config.hidden_size))
        with torch.inference_mode():
            for rows in batches([len(one) for one in ids], TOKENS[self._device]):
                tokens, _, mask = padding([ids[row] for row in rows], self._tokenizer.pad_token_id or 0)
                mask = mask.to(self._device)
                vectors = bert_encode(self._model, tokens.to(self._device), attention_mask=mask)
                pooled = (vectors * mask.unsqueeze(-1)).sum(dim=1).double()
                found[rows] = (pooled / pooled.norm(dim=-1, keepdim=True)).cpu().numpy()
        return np.asarray(np.round(found, PLACES)[[place[text] for text in texts]])
