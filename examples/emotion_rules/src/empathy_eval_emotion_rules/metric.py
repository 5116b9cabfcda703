"""The metric: a weight times what the 36 cases say, and the rest times the relevance of the reply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any, TypeVar

import numpy as np
from empathy_eval.base.errors import InputError, Problem, input_error
from empathy_eval.base.hashing import signature_line
from empathy_eval.metrics.bertscore import PACKAGED
from empathy_eval.metrics.lexical import Vader
from empathy_eval.metrics.protocol import Array, Context, MeanMetric, Segments

from empathy_eval_emotion_rules import emotions as of_emotions
from empathy_eval_emotion_rules import likelihood as of_likelihood
from empathy_eval_emotion_rules import relevance as of_relevance
from empathy_eval_emotion_rules.emotions import Classifier, Emotions
from empathy_eval_emotion_rules.folders import METRIC, weights_in
from empathy_eval_emotion_rules.likelihood import Likelihood, Seq2Seq
from empathy_eval_emotion_rules.relevance import Direct, Relevance
from empathy_eval_emotion_rules.rules import EDGE, LIKELIHOOD, Case, asks_for_emotions, cases, sentiment, table_hash

THRESHOLD = -3.1
WEIGHT = 0.5
Found = TypeVar("Found")


class EmotionRules(MeanMetric):
    """The mean of ``weight * emotion + (1 - weight) * relevance`` in [0, 1], relevance by embedding alone.

    The rules are those of "Performance Evaluation Metrics for Empathetic LLMs"; README.md says which readings of them are ours.
    """

    name = "emotion rules"
    places = 4
    reads = ("context",)
    keep = True

    def __init__(
        self, emotions: str = "", likelihood: str = "", embedding: str = PACKAGED, weight: float = WEIGHT, threshold: float = THRESHOLD
    ) -> None:
        """Loads three models, each a folder: ``emotions`` a classifier, ``likelihood`` a model such as BART, ``embedding`` an encoder.

        Raises:
            InputError: if a folder is not named, not there or of another kind, or a number is out of range; all at once.
        """
        problems = list[Problem]()
        classifier = _tried(problems, lambda: weights_in(of_emotions.SETTING, emotions, of_emotions.WHAT))
        writer = _tried(problems, lambda: weights_in(of_likelihood.SETTING, likelihood, of_likelihood.WHAT))
        encoder = _tried(problems, lambda: of_relevance.encoder_of(embedding))
        share = _tried(problems, lambda: _within("weight", weight, 0, 1))
        edge = _tried(problems, lambda: _within("threshold", threshold, -100, 0))
        if classifier is None or writer is None or encoder is None or share is None or edge is None:
            raise InputError(problems)
        self._take(Classifier(classifier), Seq2Seq(writer), Direct(encoder), share, edge)

    @classmethod
    def of(
        cls, emotions: Emotions, likelihood: Likelihood, relevance: Relevance, weight: float = WEIGHT, threshold: float = THRESHOLD
    ) -> EmotionRules:
        """The metric of parts of one's own."""
        metric = cls.__new__(cls)
        metric._take(emotions, likelihood, relevance, weight, threshold)
        return metric

    def _take(self, emotions: Emotions, likelihood: Likelihood, relevance: Relevance, weight: float, threshold: float) -> None:
        self._emotions, self._likelihood, self._relevance = emotions, likelihood, relevance
        self._weight, self._threshold, self._vader = weight, threshold, Vader()
        versions = {name: metadata.version(name) for name in ("vaderSentiment", "bert-score", "transformers", "torch")}
        self.signature = signature_line(
            weight=weight, rules=f"36@{table_hash()}", sentiment=f"compound,edge={EDGE}", emotions=emotions.signature,
            likelihood=likelihood.signature, threshold=threshold, relevance=relevance.signature,
            query="seeker-turns-since-the-last-helper-turn", version=1, **versions,
        )  # fmt: skip

    def score_all(self, segments: Segments) -> Array:
        """The scores of replies, one each, in their order.

        Raises:
            ValueError: if the turns before a reply end with the helper, so that nothing was said that it answers.
        """
        queries = [query_of(context) for context in segments.contexts]
        emotion = np.array(self.emotion(queries, segments.texts), dtype=np.float64)
        return self._weight * emotion + (1 - self._weight) * self._relevance.relevance(queries, segments.texts)

    def emotion(self, queries: Sequence[str], replies: Sequence[str]) -> list[float]:
        """What the 36 cases say of each reply: 0 or 1. Models are asked only where the answer depends on them."""
        felt = [tuple(sentiment(self._vader.score(text)) for text in pair) for pair in zip(queries, replies, strict=True)]
        asked = [row for row, (query, reply) in enumerate(felt) if asks_for_emotions(query, reply)]
        shown = self._emotions.emotional([side[row] for side in (queries, replies) for row in asked])
        flags = {row: (shown[place], shown[place + len(asked)]) for place, row in enumerate(asked)}
        decided = []
        for row, (query, reply) in enumerate(felt):
            by_query, by_reply = flags.get(row, (False, False))
            decided.append(cases()[Case(query, by_query, reply, by_reply)])
        rows = [row for row, one in enumerate(decided) if one == LIKELIHOOD]
        means = self._likelihood.mean_log([queries[row] for row in rows], [replies[row] for row in rows])
        improbable = {row: float(mean < self._threshold) for row, mean in zip(rows, means, strict=True)}
        return [improbable[row] if row in improbable else float(one) for row, one in enumerate(decided)]


def query_of(context: Context) -> str:
    """All that the seeker said since the helper's last turn.

    Raises:
        ValueError: if that is nothing.
    """
    turns = [turn["text"] for turn in context]
    last = max((place for place, turn in enumerate(context) if turn["role"] == "helper"), default=-1)
    if not turns[last + 1 :]:
        raise ValueError("the seeker says nothing between the helper's last turn and the reply, so there is no query")
    return " ".join(turns[last + 1 :])


def _within(setting: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise input_error(f"{METRIC}: {setting}", f"{value!r} is out of range", f"use a number from {low} to {high}")
    return float(value)


def _tried(problems: list[Problem], work: Callable[[], Found]) -> Found | None:
    """What work gives, or nothing where its problems are added to the others."""
    try:
        return work()
    except InputError as error:
        problems += error.problems
        return None
