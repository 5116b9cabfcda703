"""A whole study as one result: as JSON values, and as a long form with a row a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from empathy_eval.base.data_frames import data_frame
from empathy_eval.base.hashing import signature_line
from empathy_eval.design.provenance import KEYS, Result
from empathy_eval.raters.study.long_form import COLUMNS, NUMBERS, WHOLE, of_group, of_part, of_power, of_spread, record
from empathy_eval.raters.study.raters_long_form import of_attention, of_balance
from empathy_eval.raters.study.results import Gain, Group, Part, Powered, Spread
from empathy_eval.raters.study.told_of_raters import Attention, Balance

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Studied(Result):
    """A study between subjects: the whole, its parts by column, how alike a rater's ratings are, and what could have been seen.

    ``null_point`` is the point above which ``alpha`` of the omnibus statistics lie when raters are exchanged. Where raters differ, in
    severity or because their groups do, it is above chi-squared's own (``null_point_if_independent``). ``notes`` is what to mind.
    """

    columns: ClassVar[tuple[str, ...]] = (*KEYS, *COLUMNS)
    settings: Mapping[str, Any]
    groups: tuple[Group, ...]
    labels: tuple[str, ...]
    whole: Part
    parts: Mapping[str, tuple[Part, ...]]
    spreads: tuple[Spread, ...]
    null_point: float | None
    null_point_if_independent: float | None
    power: Powered
    balance: Balance | None
    attention: Attention | None
    notes: tuple[str, ...]
    signature: str

    @property
    def headline(self) -> dict[str, Gain]:
        """By group its gain over the baseline in the highest category, with its interval and p-values."""
        return {one.group: one for one in self.whole.gains if one.category == self.labels[-1]}

    @property
    def no_null_point(self) -> str | None:
        """Why there is no point above which the statistics of exchanged raters lie."""
        if self.null_point is not None:
            return None
        if not self.settings["permutations"]:
            return "no permutation test was run"
        return self.whole.omnibus.why if self.whole.omnibus.statistic is None else "no two groups have raters that can be permuted"

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values; what is not defined is null, with its reason in ``why``, or beside the figure in ``no_null_point``."""
        return self._with_provenance(asdict(self) | {"no_null_point": self.no_null_point})

    def records(self) -> Iterator[dict[str, Any]]:
        """The long form, a record a figure or note with the columns ``columns``."""
        return self._stamped(self._records())

    def _records(self) -> Iterator[dict[str, Any]]:
        for group in self.groups:
            yield from of_group(group, self.signature)
        for column, parts in {WHOLE: (self.whole,), **self.parts}.items():
            for one in parts:
                yield from of_part(column, one, (self.groups, self.labels), self.signature)
        for spread in self.spreads:
            yield from of_spread(spread)
        point = f"{self.signature}|{signature_line(alpha=self.power.alpha)}"
        for name in ("null_point", "null_point_if_independent"):
            yield record(
                f"omnibus: {name.replace('_', ' ')}",
                value=(value := getattr(self, name)),
                why=None if value is not None else self.no_null_point,
                signature=point,
            )
        yield from of_power(self.power)
        if self.balance is not None:
            yield from of_balance(self.balance)
        if self.attention is not None:
            yield from of_attention(self.attention)
        yield from (record("note", why=note, signature=self.signature) for note in self.notes)

    def to_pandas(self) -> pd.DataFrame:
        """The long form as a data frame; what is not defined is NaN, with its reason in ``why``.

        Raises:
            InputError: if pandas is not installed.
        """
        return data_frame(self.records(), self.columns, NUMBERS)
