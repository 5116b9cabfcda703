"""An encoder's vectors of a batch, kept for the tests after: a release made twice is encoded once, and another token is another batch."""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Any

# Batches of about one and a half megabytes each.
MOST = 200
_KEPT: OrderedDict[Any, Any] = OrderedDict()


def share() -> None:
    """Puts itself before bert-score's encoding, once that was imported."""
    utils = sys.modules.get("bert_score.utils")
    if utils is None or getattr(utils.bert_encode, "kept", False):
        return
    original = utils.bert_encode

    def bert_encode(model: Any, tokens: Any, attention_mask: Any, all_layers: bool = False) -> Any:
        weights = tuple(float(one.detach().double().sum()) for one in model.parameters())
        key = weights, tokens.shape, tokens.numpy().tobytes(), attention_mask.numpy().tobytes(), all_layers
        if key not in _KEPT:
            _KEPT[key] = original(model, tokens, attention_mask=attention_mask, all_layers=all_layers)
        _KEPT.move_to_end(key)
        while len(_KEPT) > MOST:
            _KEPT.popitem(last=False)
        return _KEPT[key].clone()

    bert_encode.kept = True  # type: ignore[attr-defined]
    utils.bert_encode = bert_encode  # type: ignore[attr-defined]
