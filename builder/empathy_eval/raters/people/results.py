"""The table of scores against people: figures by row and form, differences of rows, and means of systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from empathy_eval.base.data_frames import data_frame
from empathy_eval.design.provenance import KEYS, Result
from empathy_eval.evaluation.own_scores import Outside
from empathy_eval.evaluation.resampling import Tested
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.raters.agreement.bootstrap import Measure
from empathy_eval.raters.people.ensembles import Ensemble
from empathy_eval.raters.people.on_pairs import OnPairs

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = ("value", "low", "high", "p", "holm", "items")
# What is told of a row in an ensemble, a record each.
MEMBER = ("r", "weight", "low", "high", "clipped")
RECORD = ("table", "criterion", "form", "metric", "other", "figure", *NUMBERS, "why", "signature", "told")


@dataclass(frozen=True)
class Row:
    """A metric against people in one form: its figures ``r``, ``rho`` and ``tau_b``, which say when they are not defined."""

    metric: str
    form: str
    figures: Mapping[str, Measure]
    higher_is_better: bool | None


@dataclass(frozen=True)
class Gap:
    """The figure of one row minus that of another, on the same ratings and resamples."""

    one: str
    other: str
    form: str
    figure: str
    difference: Tested
    signature: str


@dataclass(frozen=True)
class Systems:
    """The figures of the means of systems, by row; without intervals, for few systems decide nothing."""

    names: tuple[str, ...]
    figures: Mapping[str, Mapping[str, Measure]]

    @property
    def told(self) -> str:
        """What is to be said of them."""
        return f"{len(self.names)} systems are too few to decide anything, so the figures have no interval"


@dataclass(frozen=True)
class Criterion:
    """All figures on one criterion, over so many ratings of so many texts; texts are drawn by their ``unit``."""

    criterion: str
    ratings: int
    texts: int
    raters: int
    units: int
    unit: str
    rows: tuple[Row, ...]
    gaps: tuple[Gap, ...]
    systems: Systems | None


@dataclass(frozen=True, repr=False)
class AgainstPeople(Result):
    """Scores against people; ``left_out`` ratings are of texts that some row has no score of: how many, by row, says ``lacking``.

    With ``ensembles`` all else is of the test split, and ``on_pairs`` is what they and their rows reach on the pairs of a release.
    """

    columns: ClassVar[tuple[str, ...]] = (*KEYS, *RECORD)
    criteria: tuple[Criterion, ...]
    ratings: int
    left_out: int
    lacking: Mapping[str, int]
    outside: tuple[Outside, ...]
    faults: tuple[MetricFault, ...]
    told: tuple[str, ...] = ()
    ensembles: tuple[Ensemble, ...] = ()
    on_pairs: tuple[OnPairs, ...] = ()

    @property
    def headline(self) -> dict[tuple[str, str], Measure]:
        """By criterion and metric Pearson's r with people in the first form, over all ratings as they are, with its interval."""
        return {(one.criterion, row.metric): row.figures["r"] for one in self.criteria for row in one.rows if row.form == one.rows[0].form}

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values; what is not defined is null, with its reason in ``why``."""
        plain = asdict(self) | {"faults": [str(one) for one in self.faults]}
        for one, found in zip(self.criteria, plain["criteria"], strict=True):
            if one.systems:
                found["systems"]["told"] = one.systems.told
        return self._with_provenance(plain)

    def records(self) -> Iterator[dict[str, Any]]:
        """The long form: a record a figure, difference, warning or fault, with the columns ``columns``."""
        return self._stamped(self._records())

    def _records(self) -> Iterator[dict[str, Any]]:
        for one in self.criteria:
            for row in one.rows:
                for figure, measure in row.figures.items():
                    yield _record("figures", one, measure, form=row.form, metric=row.metric, figure=figure)
            for gap in one.gaps:
                about = {"form": gap.form, "metric": gap.one, "other": gap.other, "figure": gap.figure, "signature": gap.signature}
                yield _record("differences", one, gap.difference, **about)
            for name, figures in one.systems.figures.items() if one.systems else ():
                for figure, measure in figures.items():
                    told = one.systems.told if one.systems else ""
                    yield _record("systems", one, measure, metric=name, figure=figure, told=told)
        for ensemble in self.ensembles:
            for member in ensemble.members:
                about = {"criterion": ensemble.criterion, "metric": ensemble.name, "other": member.row, "signature": ensemble.signature}
                for figure in MEMBER:
                    yield _empty("ensembles") | about | {"figure": figure, "value": getattr(member, figure), "items": ensemble.texts}
        for reached in self.on_pairs:
            about = {"metric": reached.row, "form": reached.contrast, "figure": "accuracy", "signature": reached.signature}
            yield _empty("on pairs") | about | {"items": reached.pairs} | asdict(reached.accuracy)
        more = [("lacking", f"{name} has no score of the texts of {count} ratings") for name, count in self.lacking.items()]
        more += [("told", one) for one in self.told] + [("outside", str(one)) for one in self.outside]
        yield from (_empty(table) | {"told": what} for table, what in (*more, *(("faults", str(one)) for one in self.faults)))

    def to_pandas(self) -> pd.DataFrame:
        """The long form as a data frame; a number that there is not is NaN.

        Raises:
            InputError: if pandas is not installed.
        """
        return data_frame(self.records(), self.columns, NUMBERS)


def _empty(table: str) -> dict[str, Any]:
    return dict.fromkeys(RECORD, "") | dict.fromkeys(NUMBERS) | {"table": table}


def _record(table: str, criterion: Criterion, found: Measure | Tested, **about: Any) -> dict[str, Any]:
    values = {name: value for name, value in asdict(found).items() if name in RECORD}
    values |= {"why": values.get("why") or ""}
    return _empty(table) | {"criterion": criterion.criterion} | values | about
