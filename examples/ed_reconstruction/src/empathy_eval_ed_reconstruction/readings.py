"""What ED reads off a turn: the name of an emotion, a polarity, and what can be inferred; by classifiers of yours, or by stand-ins."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from typing import Protocol

from empathy_eval.metrics.lexical import Vader
from empathy_eval.metrics.protocol import Context

EMOTIONS = ("anger", "disgust", "fear", "joy", "neutral", "sadness", "surprise")
POLARITIES = ("NEG", "NEU", "POS")
# The usual edges of VADER's compound score.
EDGE = 0.05


class Readings(Protocol):
    """The three classifiers. A class of yours with these methods takes the place of the stand-ins."""

    @property
    def signature(self) -> str:
        """Every model, setting and version that can change an answer, without ``|``."""
        ...

    def emotions(self, texts: Sequence[str]) -> Sequence[str]:
        """The emotion of each text, one of ``EMOTIONS``."""
        ...

    def polarities(self, texts: Sequence[str]) -> Sequence[str]:
        """The polarity of each text, one of ``POLARITIES``."""
        ...

    def knowledge(self, utterances: Sequence[str], replies: Sequence[str]) -> Sequence[str]:
        """A text for each reply: what its utterance needs and wants, or how somebody would feel at the reply."""
        ...


class StandIn:
    """No classifier: every emotion is neutral, VADER gives the polarity, and the utterance stands for what could be inferred from it."""

    def __init__(self) -> None:
        self._vader = Vader()
        self.signature = f"emotion=neutral,polarity=vader-{metadata.version('vaderSentiment')},edge={EDGE},knowledge=utterance"

    def emotions(self, texts: Sequence[str]) -> list[str]:
        """``neutral`` for every text."""
        return ["neutral"] * len(texts)

    def polarities(self, texts: Sequence[str]) -> list[str]:
        """The class of VADER's compound score."""
        scores = [self._vader.score(text) for text in texts]
        return ["NEG" if score <= -EDGE else "POS" if score >= EDGE else "NEU" for score in scores]

    def knowledge(self, utterances: Sequence[str], replies: Sequence[str]) -> list[str]:
        """The utterances."""
        return list(utterances)


def labels(readings: Readings, texts: Sequence[str]) -> list[str]:
    """The label of each text, one of 21: its emotion and its polarity, as ``sadness NEG``.

    Raises:
        ValueError: if the readings give anything else.
    """
    found = []
    for emotion, polarity in zip(readings.emotions(texts), readings.polarities(texts), strict=True):
        if emotion not in EMOTIONS or polarity not in POLARITIES:
            raise ValueError(f'"{emotion}" and "{polarity}" are not one of {", ".join(EMOTIONS)} and one of {", ".join(POLARITIES)}')
        found.append(f"{emotion} {polarity}")
    return found


def utterance_of(context: Context) -> str:
    """All that the seeker said since the helper's last turn.

    Raises:
        ValueError: if that is nothing.
    """
    last = max((place for place, turn in enumerate(context) if turn["role"] == "helper"), default=-1)
    if not context[last + 1 :]:
        raise ValueError("the seeker says nothing between the helper's last turn and the reply, so there is no utterance")
    return " ".join(turn["text"] for turn in context[last + 1 :])
