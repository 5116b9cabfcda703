"""The rows of a shortcut audit: how often each shortcut is right, what gives stances away, and the shortcut line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from empathy_eval.base.data_frames import data_frame
from empathy_eval.design.provenance import KEYS, Result
from empathy_eval.evaluation.resampling import Estimate

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("contrast", "shortcut", "trained", "pairs", "accuracy", "low", "high", "why", "signature")
NUMBERS = ("accuracy", "low", "high")
# The feature whose direction is told in a sentence: VADER's positive words.
POSITIVE = "positive"


@dataclass(frozen=True)
class Shortcut:
    """How often a shortcut is right over these pairs, ties half; None where that is not defined, and ``why`` says why.

    One that is ``trained`` is scored out of fold; for another more is kind.
    """

    name: str
    trained: bool
    pairs: int
    accuracy: Estimate | None
    why: str | None
    signature: str


@dataclass(frozen=True)
class Telltale:
    """A word that gives a stance away: its weight (above 0: kind), and how often the kind and the cold texts have it."""

    word: str
    weight: float
    kind: int
    cold: int


@dataclass(frozen=True)
class Margin:
    """By how much *words alone* prefers the kind text of a pair, out of fold."""

    pair_id: str
    margin: float


@dataclass(frozen=True)
class Direction:
    """A feature's standardised difference, empathetic minus apathetic: Cohen's d with the mean of both variances; None without spread."""

    feature: str
    what: str
    difference: Estimate | None
    signature: str


@dataclass(frozen=True)
class ContrastAudit:
    """The shortcuts of a contrast of two variants, the words that give stances away, and the pairs where that is easiest and hardest."""

    contrast: str
    config: str
    kind: str
    cold: str
    pairs: int
    dialogues: int
    folds: int
    shortcuts: tuple[Shortcut, ...]
    telltale_kind: tuple[Telltale, ...] = ()
    telltale_cold: tuple[Telltale, ...] = ()
    easiest: tuple[Margin, ...] = ()
    hardest: tuple[Margin, ...] = ()
    directions: tuple[Direction, ...] = ()

    @property
    def line(self) -> Shortcut | None:
        """The shortcut line: the shortcut that is most often right, the first of equals; None without pairs."""
        return max((one for one in self.shortcuts if one.accuracy), key=lambda one: one.accuracy.value if one.accuracy else 0, default=None)

    @property
    def leans_to_apathy(self) -> Direction | None:
        """The direction of positive words where these stand more often in apathetic texts, beyond chance."""
        found = next((one for one in self.directions if one.feature == POSITIVE), None)
        high = found.difference.high if found and found.difference else None
        return found if high is not None and high < 0 else None

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON values."""
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return plain | {"line": {"shortcut": self.line.name, **asdict(self.line)["accuracy"]} if self.line else None}


@dataclass(frozen=True)
class FirstSamples:
    """How often words alone is right where the first accepted candidate of each variant stands in the place of the chosen one.

    ``others`` says in how many pairs that is another text.
    """

    contrast: str
    others: int
    shortcut: Shortcut


@dataclass(frozen=True, repr=False)
class Audit(Result):
    """The audit of a release, contrast by contrast; ``by`` says what folds are made of.

    ``word_margins`` are by pair the margin of *words alone* between the two variants as released, out of fold: above 0 it is right. It is
    empty where that is not defined. ``first`` is by contrast what words alone reach over first samples; empty where nothing was chosen.
    """

    columns: ClassVar[tuple[str, ...]] = (*KEYS, *COLUMNS)
    by: str
    contrasts: tuple[ContrastAudit, ...]
    word_margins: Mapping[str, float] = field(default_factory=dict, repr=False)
    first: tuple[FirstSamples, ...] = ()

    @property
    def headline(self) -> dict[str, Estimate]:
        """The shortcut line of each contrast: how often the best shortcut is right, with its interval."""
        return {one.contrast: one.line.accuracy for one in self.contrasts if one.line and one.line.accuracy}

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON values, but for the margin of each pair."""
        first = [{"contrast": one.contrast, "others": one.others, **asdict(one.shortcut)} for one in self.first]
        plain = {"by": self.by, "contrasts": [one.to_json() for one in self.contrasts], **({"first_samples": first} if first else {})}
        return self._with_provenance(plain)

    def records(self) -> Iterator[dict[str, Any]]:
        """A record a shortcut and contrast with the columns ``columns``; what there is not is None."""
        return self._stamped(self._records())

    def _records(self) -> Iterator[dict[str, Any]]:
        rows = [(contrast.contrast, one) for contrast in self.contrasts for one in contrast.shortcuts]
        for contrast, one in [*rows, *((first.contrast, first.shortcut) for first in self.first)]:
            bounds = asdict(one.accuracy) if one.accuracy else {}
            values = [one.trained, one.pairs, *(bounds.get(name) for name in ("value", "low", "high")), one.why, one.signature]
            yield dict(zip(COLUMNS, [contrast, one.name, *values], strict=True))

    def to_pandas(self) -> pd.DataFrame:
        """A row a shortcut and contrast with the columns ``columns``; a number that there is not is NaN.

        Raises:
            InputError: if pandas is not installed.
        """
        return data_frame(self.records(), self.columns, NUMBERS)
