"""Results of a between-subjects study: tests, gains, intraclass correlations and power, each with its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from empathy_eval.base.hashing import signature_line
from empathy_eval.base.json_text import INLINE, fields_json, to_json
from empathy_eval.design.provenance import KEYS, LongForm
from empathy_eval.statistics.chi_square import ChiSquaredTest
from empathy_eval.statistics.estimate import Estimate


@dataclass(frozen=True)
class Corrected:
    """The p-value of a test corrected by Holm, and by Benjamini and Hochberg, over a ``family`` of tests.

    The first two correct the reported p, those by rater the permutation p.
    """

    holm: float | None
    benjamini_hochberg: float | None
    holm_by_rater: float | None
    benjamini_hochberg_by_rater: float | None
    family: int


@dataclass(frozen=True, kw_only=True)
class Gain(Estimate):
    """A group's share of a category relative to the baseline's, as a gain in percent; the interval is by rater.

    ``test`` is Yates' chi-squared of the two groups; its p is corrected over all gains in the category.
    """

    group: str
    category: str
    of_baseline_share: float | None
    share: float | None
    test: ChiSquaredTest
    corrected: Corrected

    def to_json(self) -> dict[str, Any]:
        """The gain, its interval and its test."""
        about = {name: getattr(self, name) for name in ("group", "category", "of_baseline_share", "share")}
        figures = {"gain": self.value, "low": self.low, "high": self.high, "test": to_json(self.test)}
        return {**about, **figures, **to_json(self.corrected), "why": self.reason, "signature": self.signature}


@dataclass(frozen=True)
class Pairwise:
    """Test of two groups over all categories; p is corrected over all pairs of groups."""

    group: str
    other: str
    test: ChiSquaredTest
    corrected: Corrected = field(metadata=INLINE)


@dataclass(frozen=True)
class IntraclassCorrelation:
    """Similarity of a rater's ratings in giving a category, and the design effect that follows."""

    group: str
    category: str
    icc: float | None
    design_effect: float | None
    ratings_a_rater: float | None
    why: str | None
    signature: str


@dataclass(frozen=True)
class StudyPart:
    """All tests of all ratings (``name`` None), or of those of one stratum. ``counts`` and ``shares``: groups, categories.

    The omnibus p is corrected over the parts of one column.
    """

    name: str | None
    counts: tuple[tuple[int, ...], ...]
    shares: tuple[tuple[float | None, ...], ...]
    omnibus: ChiSquaredTest
    corrected: Corrected = field(metadata=INLINE)
    by_category: tuple[ChiSquaredTest, ...]
    pairwise: tuple[Pairwise, ...]
    gains: tuple[Gain, ...]

    def tests(self) -> Iterator[tuple[str, dict[str, str], ChiSquaredTest, StudyPart | Pairwise | Gain | None]]:
        """(kind, group or category, test, holder of its corrected p-values or None) of each test."""
        yield "omnibus", {}, self.omnibus, self
        labels = dict.fromkeys(gain.category for gain in self.gains)
        yield from (("category", {"category": label}, test, None) for label, test in zip(labels, self.by_category, strict=True))
        yield from (("pair", {"group": pair.group, "other": pair.other}, pair.test, pair) for pair in self.pairwise)
        yield from (("gain", {"group": gain.group, "category": gain.category}, gain.test, gain) for gain in self.gains)


@dataclass(frozen=True)
class PowerAnalysis:
    """Ratings that an effect ``w`` needs at ``power_wanted``, the power reached, and the smallest detectable effect.

    ``effective_ratings`` is the number over the design effect; ``reached`` and ``smallest_w`` are of those. ``why`` gives the reason if
    there are none.
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
class StudyGroup:
    """A group of a study; ``added`` says that it came later."""

    name: str
    raters: int
    ratings: int
    items: int
    added: bool


# Groups of a study with their numbers of raters, in order.
Groups = tuple[tuple[str, int], ...]
# Counts by group and value; lower quartile, median and upper quartile by group.
Cells = tuple[tuple[int, ...], ...]
Quartiles = tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class ColumnBalance:
    """One column of the raters' table by group, groups in the order of the study.

    A column of ``values`` has counts of raters, ``cells`` (groups, values): rare values are pooled, and no cell is below five. If that is
    impossible, values, cells and test are empty, and ``why`` gives the reason; likewise for numbers that nearly repeat an earlier column. A
    column of ``numbers`` has ``quartiles`` (groups; lower quartile, median, upper quartile), each the mean of the five or six values around
    it, None if there are too few. ``holm`` corrects the reported p over the ``family`` of columns that have one.
    """

    column: str
    kind: Literal["values", "numbers"]
    values: tuple[str, ...] = ()
    cells: Cells = ()
    quartiles: Quartiles = ()
    test: ChiSquaredTest | None = None
    holm: float | None = None
    family: int = 0
    why: str | None = None


@dataclass(frozen=True)
class Balance:
    """Balance of the groups in the raters' table; ``groups`` are names and numbers of raters.

    ``untold`` raters of the study are not in the table, ``unknown`` ones of the table gave no rating.
    """

    groups: Groups
    columns: tuple[ColumnBalance, ...]
    untold: int
    unknown: int
    notes: tuple[str, ...]
    signature: str


@dataclass(frozen=True)
class AttentionChecks:
    """Attention checks by group: how many raters failed ``values`` such as "none" or "more than half" of theirs.

    No entry of ``cells`` (groups, values) is below five. ``without`` is the omnibus test without raters who failed more than half, to three
    digits, if they are five or more; ``holds`` says whether its p is on the same side of ``alpha`` as that of all raters.
    """

    groups: Groups
    values: tuple[str, ...]
    cells: Cells
    without: ChiSquaredTest | None
    holds: bool | None
    alpha: float
    why: str | None
    notes: tuple[str, ...]
    signature: str


CORRECTED = ("holm", "benjamini_hochberg", "holm_by_rater", "benjamini_hochberg_by_rater", "family")
NUMBERS = ("value", "low", "high", "df", "p", "permutation", *CORRECTED, "n")
COLUMNS = ("part", "of", "figure", "group", "other", "category", *NUMBERS, "p_by", "why", "signature")
# Names of the part of all ratings, and of the part about raters.
WHOLE, RATERS = "whole", "raters"
QUARTILES = ("lower quartile", "median", "upper quartile")
# Figures of an intraclass correlation by name.
SPREAD = {"intraclass correlation": "icc", "design effect": "design_effect", "ratings a rater": "ratings_a_rater"}
Records = Iterator[dict[str, Any]]


def record(figure: str, **values: Any) -> dict[str, Any]:
    """A record of one figure; omitted columns are None."""
    return dict.fromkeys(COLUMNS) | {"part": WHOLE, "figure": figure} | values


def _figures(result: object, names: Mapping[str, str], **about: Any) -> Records:
    """A record for each of some attributes, by name."""
    yield from (record(figure, **about, value=getattr(result, name)) for figure, name in names.items())


def _of_part(column: str, part: StudyPart, studied: StudyReport) -> Records:
    """Counts, shares, tests and gains of a part."""
    where = {"part": column, "of": part.name}
    for group, counts, shares in zip(studied.groups, part.counts, part.shares, strict=True):
        for label, count, share in zip(studied.labels, counts, shares, strict=True):
            about = {**where, "group": group.name, "category": label, "n": sum(counts), "signature": studied.signature}
            yield record("count", **about, value=count)
            yield record("share", **about, value=share)
    for kind, names, test, tested in part.tests():
        about = {**where, **names}
        if isinstance(tested, Gain):
            about |= {"other": studied.groups[0].name}
            interval = {"value": tested.value, "low": tested.low, "high": tested.high}
            yield record("gain", **about, n=test.n, why=tested.reason, signature=tested.signature, **interval)
        yield from _of_test(kind, test, vars(tested.corrected) if tested else {}, **about)


def _of_test(name: str, test: ChiSquaredTest, corrected: Mapping[str, Any], **about: Any) -> Records:
    """Figures of a test; ``corrected`` has its corrected p-values. A test over raters has fewer figures."""
    shared = {**about, "n": test.n, "why": test.why, "signature": test.signature}
    p = {name: getattr(test, name) for name in ("df", "p", "permutation", "p_by")} | {name: corrected.get(name) for name in CORRECTED}
    statistic = "Kruskal-Wallis" if test.p_by == "kruskal-wallis" else "chi-squared"
    yield record(f"{name}: {statistic}", **shared, **p, value=test.statistic)
    if test.n is not None or test.v is not None:
        yield record(f"{name}: Cramér's V", **shared, value=test.v)
    if test.n is not None:
        yield record(f"{name}: least expected count", **shared, value=test.least_expected)


def _of_raters(figure: str, column: str, table: ColumnBalance | AttentionChecks, groups: Groups, signature: str) -> Records:
    """Number of raters of each group with each value, or why it is suppressed."""
    about = {"part": RATERS, "of": column, "signature": signature}
    if table.why is not None:
        yield record(figure, **about, why=table.why)
    for (group, raters), row in zip(groups, table.cells, strict=bool(table.cells)):
        for value, count in zip(table.values, row, strict=True):
            yield record("raters", **about, group=group, category=value, value=count, n=raters)


def _of_balance(balance: Balance) -> Records:
    """Counts and quartiles of each column by group, and its test."""
    for column in balance.columns:
        yield from _of_raters("balance", column.column, column, balance.groups, balance.signature)
        for (group, _), quartiles in zip(balance.groups, column.quartiles, strict=bool(column.quartiles)):
            for name, value in zip(QUARTILES, quartiles, strict=True):
                yield record(name, part=RATERS, of=column.column, signature=balance.signature, group=group, value=value)
        if column.test is not None:
            yield from _of_test("balance", column.test, {"holm": column.holm}, part=RATERS, of=column.column)


def _notes(notes: Sequence[str], signature: str, part: str = WHOLE) -> Records:
    yield from (record("note", part=part, why=note, signature=signature) for note in notes)


@dataclass(frozen=True, repr=False)
class StudyReport(LongForm):
    """Report of a between-subjects study: all ratings, parts by column, intraclass correlations and power.

    ``null_point`` is the 1 - ``alpha`` quantile of the omnibus statistic under permutation of raters; ``null_point_if_independent`` is
    chi-squared's own, which is smaller if raters differ.
    """

    columns, numbers = (*KEYS, *COLUMNS), NUMBERS
    settings: Mapping[str, Any]
    groups: tuple[StudyGroup, ...]
    labels: tuple[str, ...]
    whole: StudyPart
    parts: Mapping[str, tuple[StudyPart, ...]]
    spreads: tuple[IntraclassCorrelation, ...]
    null_point: float | None
    null_point_if_independent: float | None
    power: PowerAnalysis
    balance: Balance | None
    attention: AttentionChecks | None
    notes: tuple[str, ...]
    signature: str

    @property
    def headline(self) -> dict[str, Gain]:
        """By group its gain over the baseline in the highest category, with its interval and p-values."""
        return {gain.group: gain for gain in self.whole.gains if gain.category == self.labels[-1]}

    @property
    def no_null_point(self) -> str | None:
        """Reason why there is no ``null_point``, or None."""
        if self.null_point is not None:
            return None
        if not self.settings["permutations"]:
            return "no permutation test was run"
        return self.whole.omnibus.why if self.whole.omnibus.statistic is None else "no two groups have raters that can be permuted"

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values; undefined values are null, with a reason in ``why`` or ``no_null_point``."""
        return self._with_provenance(fields_json(self) | {"no_null_point": self.no_null_point})

    def _records(self) -> Records:
        for group in self.groups:
            yield from _figures(group, {name: name for name in ("raters", "ratings", "items")}, group=group.name, signature=self.signature)
        for column, parts in {WHOLE: (self.whole,), **self.parts}.items():
            for part in parts:
                yield from _of_part(column, part, self)
        for spread in self.spreads:
            about = {"group": spread.group, "category": spread.category, "why": spread.why, "signature": spread.signature}
            yield from _figures(spread, SPREAD, **about)
        point = f"{self.signature}|{signature_line(alpha=self.power.alpha)}"
        for name in ("null_point", "null_point_if_independent"):
            value = getattr(self, name)
            why = None if value is not None else self.no_null_point
            yield record(f"omnibus: {name.replace('_', ' ')}", value=value, why=why, signature=point)
        for name in ("needed", "design_effect", "effective_ratings", "reached", "smallest_w"):
            value, power = getattr(self.power, name), self.power
            why = power.why if value is None else None
            yield record(f"power: {name.replace('_', ' ')}", value=value, n=power.ratings, df=power.df, why=why, signature=power.signature)
        if self.balance is not None:
            yield from _of_balance(self.balance)
            yield from _notes(self.balance.notes, self.balance.signature, RATERS)
        if (checks := self.attention) is not None:
            yield from _of_raters("checks failed", "checks_failed", checks, checks.groups, checks.signature)
            if checks.without is not None:
                yield from _of_test("omnibus without who failed most", checks.without, {}, part=RATERS, of="checks_failed")
            yield from _notes(checks.notes, checks.signature, RATERS)
        yield from _notes(self.notes, self.signature)
