"""The metric protocol: statistics of each segment, an aggregation of their sums, and the contexts that a metric may read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.text import ENGLISH, UNICODE_WORDS

Array = NDArray[np.float64]
# The turns before a text, oldest first, each {"role": "seeker" or "helper", "text": …}.
Context = Sequence[Mapping[str, str]]
# In ``trained_on`` the name of the curated seed dialogues, which are the same in every release that holds them.
SEEDS = "curated seeds"
# Messages of the role "system" are no part of what seeker and helper said to each other: the schema ``turns`` refuses them.
ROLES = {"seeker": "seeker", "helper": "helper", "user": "seeker", "assistant": "helper"}


@dataclass(frozen=True)
class Segments:
    """Texts to score, with what a metric may read beside them; ``contexts`` may be omitted if no metric reads them."""

    texts: Sequence[str]
    references: Sequence[str]
    contexts: Sequence[Context] = ()

    def columns(self, reads: Sequence[str]) -> list[Sequence[Any]]:
        """The columns named ``reference`` and ``context``, in the order asked for."""
        known: dict[str, Sequence[Any]] = {"reference": self.references, "context": self.contexts}
        return [known[name] for name in reads]

    def take(self, rows: Sequence[int]) -> Segments:
        """The segments at these rows."""
        contexts = [self.contexts[row] for row in rows] if self.contexts else ()
        return Segments([self.texts[row] for row in rows], [self.references[row] for row in rows], contexts)


class Metric(Protocol):
    """A metric of texts.

    ``aggregate(statistics.sum(axis=0, keepdims=True))`` is the corpus score, so that a bootstrap resamples sums and nothing is
    scored twice. Most metrics are a mean over texts: :class:`MeanMetric` leaves one method to write.
    """

    @property
    def name(self) -> str:
        """The name in tables."""

    @property
    def signature(self) -> str:
        """Every setting and version that can change a number."""

    @property
    def places(self) -> int:
        """Decimal places that are equal in every process; the others are not shown."""

    @property
    def reads(self) -> tuple[str, ...]:
        """What it reads beside the text: ``reference``, ``context`` or both."""

    @property
    def higher_is_better(self) -> bool | None:
        """Its direction; None if neither is better, as for a length."""

    def statistics(self, segments: Segments) -> Array:
        """One row of statistics for each text, shape (texts, k).

        It is called several times with some of the texts. A row depends on its text and on what ``reads`` names, never on other texts of
        the call: fit before. This is checked.
        """

    def aggregate(self, sums: Array) -> Array:
        """Corpus scores of sums of rows, from shape (m, k) to shape (m,)."""

    def scores(self, statistics: Array) -> Array:
        """The score of each single text, from shape (texts, k) to shape (texts,)."""


@runtime_checkable
class RangeAware(Protocol):
    """A metric that knows which texts are unlike those it was made for. Their scores stand, with a warning."""

    def outside(self, segments: Segments) -> Sequence[tuple[int, str]]:
        """(row, reason) of each text outside the intended range; reasons are general, such as ``not in English``.

        A text may be outside for several reasons, each once.
        """


@runtime_checkable
class TrainedMetric(Protocol):
    """A metric that was trained on texts of releases."""

    # By the ``name`` in a release's manifest, or SEEDS, the splits that it was trained on.
    trained_on: Mapping[str, Sequence[str]]


class MeanMetric:
    """Base of a metric with one score for each text, and their mean for a corpus: implement ``score``, or ``score_all`` for batches."""

    name: str
    signature: str
    places: int = 6
    reads: tuple[str, ...] = ("reference",)
    higher_is_better: bool | None = True
    # A costly metric sets this, and its scores are kept by content.
    keep: bool = False
    # A metric of plain Python that can be pickled sets this, and large sets are shared out among processes.
    share: bool = False

    def score(self, text: str, *read: Any) -> float:
        """The score of one text; ``read`` holds what ``reads`` names, in its order."""
        raise NotImplementedError(f"{type(self).__name__} defines neither score nor score_all")

    def score_all(self, segments: Segments) -> Any:
        """The scores of texts in order; none depends on other texts, see :meth:`Metric.statistics`."""
        return [self.score(*row) for row in zip(segments.texts, *segments.columns(self.reads), strict=True)]

    def statistics(self, segments: Segments) -> Array:
        """Rows (score, 1)."""
        return with_count(self.score_all(segments))

    def aggregate(self, sums: Array) -> Array:
        """The mean over segments; for single rows the score of each text."""
        result: Array = sums[:, 0] / sums[:, 1]
        return result

    scores = aggregate


class LanguageMetric:
    """Base of a metric with language-specific tokens, which its signature names."""

    # The signature with {} for the name of the tokens, and that name in English and in every other language.
    form: str
    tokens = ("empathy-eval", UNICODE_WORDS)

    def __init__(self, language: str = ENGLISH) -> None:
        """``language`` is the code of the texts' language."""
        self.language = language
        self.signature = self.form.format(self.tokens[language != ENGLISH])


class Diversity(Protocol):
    """A measure of a whole set of texts that does not decompose into segments; its error is a jackknife over dialogues."""

    name: str
    signature: str

    def measure(self, variants: Mapping[str, Sequence[str]], dialogues: Sequence[str], seed: int) -> tuple[dict[str, Array], int]:
        """By variant the value with all dialogues, then without each: shape (1 + dialogues,); and the number of words."""


def with_count(scores: Any) -> Array:
    """Rows (score, 1) for :meth:`MeanMetric.aggregate`."""
    column = np.asarray(scores, dtype=np.float64)
    return np.column_stack([column, np.ones_like(column)])


def context_of(value: str | Sequence[Mapping[str, str]]) -> Context:
    """A context as turns ``{"role": "seeker" or "helper", "text": …}``.

    ``value`` is a text, which is one turn of the seeker, or turns that are valid under the schema ``turns``.
    """
    if isinstance(value, str):
        return [{"role": "seeker", "text": value}]
    return [{"role": ROLES[turn["role"]], "text": turn["text"] if "text" in turn else turn["content"]} for turn in value]


def last_turns(context: Context) -> list[str]:
    """The seeker's texts since the helper's last turn; empty if the helper spoke last."""
    return [turn["text"] for turn in takewhile(lambda turn: turn["role"] == "seeker", reversed(context))][::-1]


def reply_of(value: str | Sequence[Mapping[str, str]]) -> str:
    """A reply as a text; it may be a list of one message."""
    return value if isinstance(value, str) else context_of(value)[0]["text"]


# Pairs scored together: enough for a costly metric to sort by length, few enough to hold their embeddings.
CHUNK = 512


@dataclass(frozen=True)
class Pairs:
    """Pairs to score, by column; ``contexts`` may be omitted if no metric reads them."""

    ids: Sequence[str]
    references: Sequence[str]
    variants: Mapping[str, Sequence[str]]
    contexts: Sequence[Context] = ()

    def chunks(self, reads: set[str]) -> Iterator[Chunk]:
        """Chunks of pairs, the variants of one pair side by side, so that work on a reference serves all."""
        for start in range(0, len(self.ids), CHUNK):
            rows = range(start, min(start + CHUNK, len(self.ids)))
            of_cells = [row for row in rows for _ in self.variants]
            # Made once a pair, as they may be read from elsewhere.
            contexts = [self.contexts[row] for row in rows] if "context" in reads else []
            segments = Segments(
                [self.variants[name][row] for row in rows for name in self.variants],
                [self.references[row] for row in of_cells],
                [context for context in contexts for _ in self.variants],
            )
            yield Chunk(segments, self.ids[start : rows.stop], list(self.variants))


@dataclass(frozen=True)
class Chunk:
    """Some pairs: the segments of all their variants, and their names."""

    segments: Segments
    ids: Sequence[str]
    variants: Sequence[str]

    def name_of(self, row: int) -> str:
        """The pair and variant of a row of the segments."""
        return f"{self.ids[row // len(self.variants)]}, {self.variants[row % len(self.variants)]}"
