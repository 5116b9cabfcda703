"""The rows of the tables beside the inversion: attacks, fairness, crossed items and the shortcut audit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from empathy_eval.base.json_text import HIDDEN, INLINE, OPTIONAL, fields_json
from empathy_eval.design.provenance import KEYS, LongForm
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.statistics.estimate import TESTED, Estimate

Scored = TypeVar("Scored")


@dataclass(frozen=True)
class StanceEffect(Estimate):
    """The mean difference of a scorer between empathetic and apathetic replies, in its better direction: the unit of changes.

    ``over`` says of which texts; ``reason`` is what keeps it from being a unit, None where nothing does.
    """

    over: str = ""

    def to_json(self) -> dict[str, Any]:
        """Value, interval, of which texts, and what keeps it from being a unit."""
        return {**super().to_json(), "over": self.over, "why": self.reason}


@dataclass(frozen=True)
class ScoreChange:
    """Change of the scores of replies under an attack, in the scorer's better direction.

    ``replies`` have a score; of these ``eligible`` have one under attack too. ``rises`` and ``falls`` are the shares of the eligible whose
    score is higher, or lower, under attack; ``change`` is the mean of the score under attack minus the score before, ``in_effects`` that in
    units of the size of the stance effect. None where there is none.
    """

    replies: int
    eligible: int
    rises: Estimate | None = None
    falls: Estimate | None = None
    change: Estimate | None = None
    in_effects: Estimate | None = None


@dataclass(frozen=True)
class AttackRow:
    """One scorer under one attack: over all replies, and by variant."""

    metric: str
    attack: str
    whole: ScoreChange = field(metadata=INLINE)
    effect: StanceEffect
    by_variant: Mapping[str, ScoreChange]
    signature: str


@dataclass(frozen=True)
class AttackTable:
    """All rows with the number of replies, and notes on scorers and attacks that are left out.

    ``faults`` are of metrics that failed on attacked texts; in JSON they stand elsewhere.
    """

    replies: int
    pairs: int
    dialogues: int
    rows: Sequence[AttackRow]
    notes: Sequence[str] = field(default=(), metadata={"name": "told"})
    faults: Sequence[MetricFault] = field(default=(), metadata=HIDDEN)

    def to_json(self) -> dict[str, Any]:
        """The table as JSON values."""
        return fields_json(self)


@dataclass(frozen=True)
class Gap:
    """A figure of two sets of texts, and the first minus the second."""

    first: Estimate = field(metadata={"name": "here"})
    second: Estimate = field(metadata={"name": "there"})
    difference: Estimate = field(metadata=TESTED)


@dataclass(frozen=True)
class FairnessRow:
    """How often a scorer rates the kind reply of a contrast better (``accuracy``), and by how many standard deviations (``effect``).

    For a group of scenarios ``first`` is the group and ``second`` all other scenarios; ``pairs`` and ``dialogues`` are those of the group,
    ``of`` is the number of all pairs. For an exchange of names ``first`` is the texts with other names and ``second`` the released texts;
    ``of`` is the number of searched pairs. A figure is None where it is not defined; ``why`` says what keeps an interval from being there.
    """

    metric: str
    name: str
    contrast: str
    pairs: int
    of: int
    dialogues: int
    accuracy: Gap | None
    effect: Gap | None
    signature: str
    why: str | None = None


@dataclass(frozen=True)
class FairnessTable:
    """The rows by group of scenarios and by exchange of names, the definitions of groups, and notes on what is left out.

    ``faults`` are of metrics that failed on texts with other names; in JSON they stand elsewhere.
    """

    groups: Sequence[FairnessRow]
    names: Sequence[FairnessRow]
    notes: Sequence[str] = field(default=(), metadata={"name": "told"})
    definitions: Mapping[str, str] = field(default_factory=dict)
    faults: Sequence[MetricFault] = field(default=(), metadata=HIDDEN)


def best_of(rows: Iterable[Scored], figure: Callable[[Scored], Estimate | None]) -> Scored | None:
    """Returns the row with the largest figure, the first of equals; None without a figure."""
    known = [(row, estimate.number) for row in rows if (estimate := figure(row))]
    return max(known, key=lambda pair: pair[1])[0] if known else None


FIGURES = ("fitting", "both_right", "own_context")


@dataclass(frozen=True)
class CrossedRow:
    """Results of a scorer over ``items`` crossed items with scores; ``left_out`` have none.

    ``fitting`` is how often it scores the reply that fits a context above the one that passes it by, ties half; ``both_right`` in how many
    items it does so in both contexts, a tie being wrong; ``own_context`` how often it scores a reply higher in its own context than in the
    other, ties half. ``ties`` and ``own_ties`` are the shares of equal scores in the first and the last. All are None where the scorer
    cannot be asked, and ``why`` says why.
    """

    metric: str
    items: int
    left_out: int
    fitting: Estimate | None
    both_right: Estimate | None
    own_context: Estimate | None
    ties: float | None
    own_ties: float | None
    why: str | None
    signature: str

    @property
    def figures(self) -> dict[str, Estimate | None]:
        """The three figures, by name."""
        return {name: getattr(self, name) for name in FIGURES}


@dataclass(frozen=True)
class CrossedTable:
    """Crossed items of a release: their number by source, and the results of metrics and of shortcuts."""

    items: int
    dialogues: int
    sources: Mapping[str, int]
    metrics: tuple[CrossedRow, ...]
    shortcuts: tuple[CrossedRow, ...]

    @property
    def line(self) -> CrossedRow | None:
        """The shortcut that most often prefers the reply that fits, the first of equals; None without any."""
        return best_of(self.shortcuts, lambda row: row.fitting)


COLUMNS = ("contrast", "shortcut", "trained", "pairs", "accuracy", "low", "high", "why", "signature")
NUMBERS = ("accuracy", "low", "high")
# The feature whose direction is told in a sentence: VADER's positive words.
POSITIVE = "positive"


@dataclass(frozen=True)
class Shortcut:
    """The accuracy of a shortcut over these pairs, ties half; None where it is not defined, for the reason ``why``.

    One that is ``trained`` is scored out of fold; for another more is kind.
    """

    name: str
    trained: bool
    pairs: int
    accuracy: Estimate | None
    why: str | None
    signature: str


@dataclass(frozen=True)
class IndicativeWord:
    """A word that indicates a stance: its weight (above 0: empathetic), and its counts in texts of both stances."""

    word: str
    weight: float
    kind: int
    cold: int


@dataclass(frozen=True)
class WordMargin:
    """The margin by which *words alone* prefers the empathetic text of a pair, out of fold."""

    pair_id: str
    margin: float


@dataclass(frozen=True)
class FeatureDirection:
    """A feature's standardised difference, empathetic minus apathetic: Cohen's d with the mean of both variances; None without spread."""

    feature: str
    what: str
    difference: Estimate | None
    signature: str


@dataclass(frozen=True)
class ContrastAudit:
    """Shortcuts of a contrast of two variants, indicative words, and the pairs that words separate best and worst."""

    contrast: str
    config: str
    kind: str
    cold: str
    pairs: int
    dialogues: int
    folds: int
    shortcuts: tuple[Shortcut, ...]
    telltale_kind: tuple[IndicativeWord, ...] = ()
    telltale_cold: tuple[IndicativeWord, ...] = ()
    easiest: tuple[WordMargin, ...] = ()
    hardest: tuple[WordMargin, ...] = ()
    directions: tuple[FeatureDirection, ...] = ()

    @property
    def line(self) -> Shortcut | None:
        """The shortcut line: the shortcut that is most often right, the first of equals; None without pairs."""
        return best_of(self.shortcuts, lambda shortcut: shortcut.accuracy)

    @property
    def leans_to_apathy(self) -> FeatureDirection | None:
        """The direction of positive words where these stand more often in apathetic texts, beyond chance."""
        positive = next((direction for direction in self.directions if direction.feature == POSITIVE), None)
        high = positive.difference.high if positive and positive.difference else None
        return positive if high is not None and high < 0 else None

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON values."""
        best = self.line
        line = {"shortcut": best.name, **best.accuracy.to_json()} if best and best.accuracy else None
        return {**fields_json(self), "line": line}


@dataclass(frozen=True)
class FirstSamples:
    """Accuracy of words alone over the first accepted candidate of each variant in place of the chosen one.

    ``others`` says in how many pairs that is another text.
    """

    contrast: str
    others: int
    shortcut: Shortcut = field(metadata=INLINE)


@dataclass(frozen=True, repr=False)
class ShortcutAudit(LongForm):
    """The shortcut audit of a release by contrast; ``by`` is the unit of folds.

    ``word_margins`` are by pair the margin of *words alone* between the two variants as released, out of fold: above 0 it is right. It is
    empty where that is not defined. ``first`` is by contrast what words alone reach over first samples; empty where nothing was chosen.
    """

    columns: ClassVar[tuple[str, ...]] = (*KEYS, *COLUMNS)
    numbers: ClassVar[tuple[str, ...]] = NUMBERS
    by: str
    contrasts: tuple[ContrastAudit, ...]
    word_margins: Mapping[str, float] = field(default_factory=dict, repr=False, metadata=HIDDEN)
    first: tuple[FirstSamples, ...] = field(default=(), metadata={**OPTIONAL, "name": "first_samples"})

    @property
    def headline(self) -> dict[str, Estimate]:
        """The shortcut line of each contrast: how often the best shortcut is right, with its interval."""
        return {contrast.contrast: contrast.line.accuracy for contrast in self.contrasts if contrast.line and contrast.line.accuracy}

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON values, but for the margin of each pair."""
        return self._with_provenance(fields_json(self))

    def _records(self) -> Iterator[dict[str, Any]]:
        rows = [(contrast.contrast, shortcut) for contrast in self.contrasts for shortcut in contrast.shortcuts]
        for contrast, shortcut in [*rows, *((first.contrast, first.shortcut) for first in self.first)]:
            values = [getattr(shortcut.accuracy, name, None) for name in ("value", "low", "high")]
            cells = [contrast, shortcut.name, shortcut.trained, shortcut.pairs, *values, shortcut.why, shortcut.signature]
            yield dict(zip(COLUMNS, cells, strict=True))


@dataclass(frozen=True)
class FailureCase:
    """A text on which scorers disagree: ``ranks`` (0 worst, 1 best) and ``values`` by scorer, and who ranks it ``high`` and ``low``.

    ``groups`` are what it is counted by, ``reasons`` what judges said, ``before`` the seeker's turns just before it, ``explore`` its link.
    """

    pair_id: str
    variant: str
    dialogue_id: str
    groups: dict[str, str]
    spread: float
    high: str
    low: str
    ranks: dict[str, float]
    values: dict[str, float]
    reasons: dict[str, str]
    before: str
    text: str
    explore: str


@dataclass(frozen=True)
class FailureGroup:
    """Texts with a ``label`` in common ``by`` some grouping: their number, the number of cases, and their mean spread."""

    by: str
    label: str
    texts: int
    cases: int
    mean_spread: float


@dataclass(frozen=True)
class Failures:
    """Failure cases, the largest spread first, and counts by group, over the ``texts`` that every scorer has a score of."""

    cases: tuple[FailureCase, ...]
    groups: tuple[FailureGroup, ...]
    texts: int
    left_out: int
    signature: str
