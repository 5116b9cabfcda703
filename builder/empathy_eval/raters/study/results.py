"""What a study says, piece by piece: tests, gains, spreads and power, each figure with its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from empathy_eval.base.hashing import signature_line
from empathy_eval.base.printed import data_frame
from empathy_eval.design.provenance import KEYS, Result
from empathy_eval.raters.study.balance import Attention, Balance, Compared
from empathy_eval.statistics.chi_square import Test

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Gain:
    """How much larger (percent) a group's share of a category is than the baseline's; the interval is by rater.

    ``test`` is Yates' chi-squared of the two groups; ``holm`` and ``benjamini_hochberg`` correct the p that is gone by over ``family`` such
    tests, and those by rater the p of exchanged raters.
    """

    group: str
    category: str
    of_baseline_share: float | None
    share: float | None
    gain: float | None
    low: float | None
    high: float | None
    test: Test
    holm: float | None
    benjamini_hochberg: float | None
    holm_by_rater: float | None
    benjamini_hochberg_by_rater: float | None
    family: int
    why: str | None
    signature: str


@dataclass(frozen=True)
class Pairwise:
    """Two groups by all categories; p is corrected over ``family`` such pairs, as that of a gain."""

    group: str
    other: str
    test: Test
    holm: float | None
    benjamini_hochberg: float | None
    holm_by_rater: float | None
    benjamini_hochberg_by_rater: float | None
    family: int


@dataclass(frozen=True)
class Spread:
    """How alike a rater's ratings are: the intraclass correlation of giving a category, and what it does to the worth of a rating."""

    group: str
    category: str
    icc: float | None
    design_effect: float | None
    ratings_a_rater: float | None
    why: str | None
    signature: str


@dataclass(frozen=True)
class Part:
    """All tests of some of the ratings: of all (``name`` None), or of those of one stratum. ``counts`` and ``shares``: groups, categories.

    The omnibus p is corrected over ``family`` parts of one column, as that of a gain.
    """

    name: str | None
    counts: tuple[tuple[int, ...], ...]
    shares: tuple[tuple[float | None, ...], ...]
    omnibus: Test
    holm: float | None
    benjamini_hochberg: float | None
    holm_by_rater: float | None
    benjamini_hochberg_by_rater: float | None
    family: int
    by_category: tuple[Test, ...]
    pairwise: tuple[Pairwise, ...]
    gains: tuple[Gain, ...]


@dataclass(frozen=True)
class Powered:
    """What so many ratings could show: how many an effect ``w`` needs at ``power_wanted``, which power they have and the least effect.

    ``effective_ratings`` is the number over the design effect; ``reached`` and ``smallest_w`` are of those. ``why`` says why there is none.
    """

    w: float
    alpha: float
    power_wanted: float
    df: int
    needed: int
    ratings: int
    effective_ratings: float | None
    reached: float | None
    smallest_w: float | None
    design_effect: float | None
    signature: str
    why: str | None = None


@dataclass(frozen=True)
class Group:
    """A group of a study; ``added`` says that it came later."""

    name: str
    raters: int
    ratings: int
    items: int
    added: bool


CORRECTED = ("holm", "benjamini_hochberg", "holm_by_rater", "benjamini_hochberg_by_rater")
NUMBERS = ("value", "low", "high", "df", "p", "permutation", *CORRECTED, "family", "n")
COLUMNS = ("part", "of", "figure", "group", "other", "category", *NUMBERS, "p_by", "why", "signature")
# The part that is of all ratings.
WHOLE = "whole"


def of_group(group: Group, signature: str) -> Iterator[dict[str, Any]]:
    """How many raters, ratings and items a group has."""
    for name in ("raters", "ratings", "items"):
        yield record(name, group=group.name, value=getattr(group, name), signature=signature)


def of_part(column: str, part: Part, names: tuple[Sequence[Group], Sequence[str]], signature: str) -> Iterator[dict[str, Any]]:
    """The counts, shares, tests and gains of a part; ``names`` are the groups, the baseline first, and the labels."""
    where, (groups, labels) = {"part": column, "of": part.name}, names
    for group, counts, shares in zip(groups, part.counts, part.shares, strict=True):
        for label, count, share in zip(labels, counts, shares, strict=True):
            about = {**where, "group": group.name, "category": label, "n": sum(counts), "signature": signature}
            yield record("count", **about, value=count)
            yield record("share", **about, value=share)
    yield from _of_test("omnibus", part.omnibus, part, **where)
    for label, test in zip(labels, part.by_category, strict=True):
        yield from _of_test("category", test, None, **where, category=label)
    for pair in part.pairwise:
        yield from _of_test("pair", pair.test, pair, **where, group=pair.group, other=pair.other)
    for gain in part.gains:
        about = {**where, "group": gain.group, "other": groups[0].name, "category": gain.category}
        told = {"n": gain.test.n, "why": gain.why, "signature": gain.signature}
        yield record("gain", **about, **told, value=gain.gain, low=gain.low, high=gain.high)
        yield from _of_test("gain", gain.test, gain, **about)


def _of_test(name: str, test: Test, corrected: Part | Pairwise | Gain | None, **about: Any) -> Iterator[dict[str, Any]]:
    told = {**about, "n": test.n, "why": test.why, "signature": test.signature}
    p = {"df": test.df, "p": test.p, "permutation": test.permutation, "p_by": test.p_by}
    p |= {one: getattr(corrected, one) for one in (*CORRECTED, "family")} if corrected else {}
    yield record(f"{name}: chi-squared", **told, **p, value=test.statistic)
    yield record(f"{name}: Cramér's V", **told, value=test.v)
    yield record(f"{name}: least expected count", **told, value=test.least_expected)


def of_spread(spread: Spread) -> Iterator[dict[str, Any]]:
    """How alike the ratings of a rater are."""
    about = {"group": spread.group, "category": spread.category, "why": spread.why, "signature": spread.signature}
    yield record("intraclass correlation", **about, value=spread.icc)
    yield record("design effect", **about, value=spread.design_effect)
    yield record("ratings a rater", **about, value=spread.ratings_a_rater)


def of_power(power: Powered) -> Iterator[dict[str, Any]]:
    """What could have been seen."""
    for name in ("needed", "design_effect", "effective_ratings", "reached", "smallest_w"):
        value = getattr(power, name)
        why = power.why if value is None else None
        yield record(f"power: {name.replace('_', ' ')}", value=value, n=power.ratings, df=power.df, why=why, signature=power.signature)


def record(figure: str, **values: Any) -> dict[str, Any]:
    """A record of one figure; what is not said is None."""
    return dict.fromkeys(COLUMNS) | {"part": WHOLE, "figure": figure} | values


PART = "raters"
NAMED = {"kruskal-wallis": "Kruskal-Wallis"}
QUARTILES = ("lower quartile", "median", "upper quartile")


def of_balance(balance: Balance) -> Iterator[dict[str, Any]]:
    """The counts and medians of each column by group, and its test."""
    for one in balance.columns:
        about = {"part": PART, "of": one.column, "signature": balance.signature}
        if one.why is not None:
            yield record("balance", **about, why=one.why)
        yield from _counts(balance.groups, one.values, one.cells, about)
        for (group, _), quartiles in zip(balance.groups, one.quartiles, strict=bool(one.quartiles)):
            for name, value in zip(QUARTILES, quartiles, strict=True):
                yield record(name, **about, group=group, value=value)
        if one.test is not None:
            yield from _of_rater_test("balance", one.test, one.holm, about)
    for note in balance.notes:
        yield record("note", part=PART, why=note, signature=balance.signature)


def of_attention(attention: Attention) -> Iterator[dict[str, Any]]:
    """How many raters of each group failed checks of attention, and the test without those who failed most."""
    about = {"part": PART, "of": "checks_failed", "signature": attention.signature}
    if attention.why is not None:
        yield record("checks failed", **about, why=attention.why)
    yield from _counts(attention.groups, attention.values, attention.cells, about)
    if attention.without is not None:
        yield from _of_rater_test("omnibus without who failed most", attention.without, None, about)
    for note in attention.notes:
        yield record("note", part=PART, why=note, signature=attention.signature)


def _counts(
    groups: Sequence[tuple[str, int]], values: Sequence[str], cells: Sequence[Sequence[int]], about: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    for (group, raters), row in zip(groups, cells, strict=bool(cells)):
        for value, count in zip(values, row, strict=True):
            yield record("raters", **about, group=group, category=value, value=count, n=raters)


def _of_rater_test(of: str, test: Compared, holm: float | None, about: dict[str, Any]) -> Iterator[dict[str, Any]]:
    told = {**about, "why": test.why, "signature": test.signature}
    p = {"df": test.df, "p": test.p, "permutation": test.permutation, "p_by": test.p_by, "holm": holm}
    yield record(f"{of}: {NAMED.get(test.p_by, 'chi-squared')}", **told, **p, value=test.statistic)
    if test.v is not None:
        yield record(f"{of}: Cramér's V", **told, value=test.v)


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
