"""Whether a text shows an emotion, by a classifier of which one class is neutral."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from empathy_eval.base.errors import input_error
from empathy_eval.metrics.bertscore import batches

from empathy_eval_emotion_rules.folders import METRIC, Weights, loaded
from empathy_eval_emotion_rules.rules import NEUTRAL

SETTING = "emotions"
WHAT = "a classifier of emotions, one of whose classes is neutral,"
# Tokens, padding included, of a batch.
TOKENS = 3500


class Emotions(Protocol):
    """What tells texts with an emotion from those without."""

    @property
    def signature(self) -> str:
        """Every setting and version that can change an answer."""
        ...

    def emotional(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text shows an emotion."""
        ...


class Classifier:
    """A sequence classifier of a folder: the class with the highest score is not ``neutral``. Several labels a text are not told apart."""

    def __init__(self, weights: Weights) -> None:
        """Loads the model.

        Raises:
            InputError: as :func:`~empathy_eval_emotion_rules.folders.loaded`, or if it has no class, or two, of the name neutral.
        """
        self._loaded = loaded(SETTING, weights, "AutoModelForSequenceClassification")
        labels: dict[int, str] = self._loaded.model.config.id2label
        neutral = [number for number, label in labels.items() if label.lower() == NEUTRAL]
        if len(neutral) != 1:
            what = f'"{weights.path}" has {len(neutral)} classes named {NEUTRAL} among {", ".join(list(labels.values())[:30])}'
            raise input_error(f"{METRIC}: {SETTING}", what, "name the classes in id2label of its config.json")
        self._neutral = int(neutral[0])
        self.signature = f"{weights.signature},arg-max,cut={self._loaded.places}"

    def emotional(self, texts: Sequence[str]) -> list[bool]:
        """Whether the highest of the classes is another than neutral."""
        import torch

        found = [False] * len(texts)
        sizes = [len(ids) for ids in self._loaded.tokenizer(list(texts))["input_ids"]] if texts else []
        with torch.inference_mode():
            for rows in batches(sizes, TOKENS):
                highest = self._loaded.model(**self._loaded.tokens([texts[row] for row in rows])).logits.argmax(dim=-1).tolist()
                for row, number in zip(rows, highest, strict=True):
                    found[row] = number != self._neutral
        return found
