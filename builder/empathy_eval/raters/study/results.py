"""What a study says, piece by piece: tests, gains, spreads and power, each figure with its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from empathy_eval.base.hashing import signature_line
from empathy_eval.design.provenance import KEYS, LongForm
from empathy_eval.statistics.chi_square import ChiSquaredTest


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
    test: ChiSquaredTest
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
    test: ChiSquaredTest
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
    omnibus: ChiSquaredTest
    holm: float | None
    benjamini_hochberg: float | None
    holm_by_rater: float | None
    benjamini_hochberg_by_rater: float | None
    family: int
    by_category: tuple[ChiSquaredTest, ...]
    pairwise: tuple[Pairwise, ...]
    gains: tuple[Gain, ...]

    def tests(self) -> Iterator[tuple[str, dict[str, str], ChiSquaredTest, Part | Pairwise | Gain | None]]:
        """All tests: of what kind and of what they are, and what has their corrected p-values, if something has."""
        yield "omnibus", {}, self.omnibus, self
        labels = dict.fromkeys(one.category for one in self.gains)
        yield from (("category", {"category": label}, test, None) for label, test in zip(labels, self.by_category, strict=True))
        yield from (("pair", {"group": one.group, "other": one.other}, one.test, one) for one in self.pairwise)
        yield from (("gain", {"group": one.group, "category": one.category}, one.test, one) for one in self.gains)


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


# The groups of a study with their numbers of raters, in its order.
Groups = tuple[tuple[str, int], ...]
# Numbers by group and value, and the lower quartile, median and upper quartile by group.
Cells = tuple[tuple[int, ...], ...]
Quartiles = tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class Balanced:
    """One column of the raters' table by group, groups in the order of the study.

    Of a column of ``values`` there are counts of raters, ``cells`` (groups, values): rare values are pooled, and no cell is below five.
    Where that cannot be there are no values, no cells and no test, and ``why`` says so; as for numbers that say nearly the same as those of
    a column before. Of a column of ``numbers`` there are ``quartiles``
    (groups; lower quartile, median, upper quartile), each the mean of the five or six values around it, None where too few are.
    ``holm`` corrects the p that is gone by over the ``family`` of columns that have one.
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
    """How alike the groups are in what the raters' table says; ``groups`` are names and numbers of raters, as the study has them.

    ``untold`` raters of the study are not in the table, ``unknown`` ones of the table gave no rating.
    """

    groups: Groups
    columns: tuple[Balanced, ...]
    untold: int
    unknown: int
    notes: tuple[str, ...]
    signature: str


@dataclass(frozen=True)
class Attention:
    """How raters did on checks of attention, by group: how many failed ``values`` such as "none" or "more than half" of theirs.

    ``cells`` (groups, values) are none below five, as of :class:`Balanced`. ``without`` is the omnibus test once more without those who
    failed more than half, to three digits, where they are five or more; ``holds`` says whether its p is on the same side of ``alpha`` as
    that of all raters.
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
# The part that is of all ratings, and that of what is told of raters.
WHOLE, RATERS = "whole", "raters"
QUARTILES = ("lower quartile", "median", "upper quartile")
# The figures of a spread, by what they are called.
SPREAD = {"intraclass correlation": "icc", "design effect": "design_effect", "ratings a rater": "ratings_a_rater"}
Records = Iterator[dict[str, Any]]


def record(figure: str, **values: Any) -> dict[str, Any]:
    """A record of one figure; what is not said is None."""
    return dict.fromkeys(COLUMNS) | {"part": WHOLE, "figure": figure} | values


def _figures(of: object, names: Mapping[str, str], **about: Any) -> Records:
    """A record for each of some attributes, by what they are called."""
    yield from (record(figure, **about, value=getattr(of, name)) for figure, name in names.items())


def _of_part(column: str, part: Part, studied: Studied) -> Records:
    """The counts, shares, tests and gains of a part."""
    where = {"part": column, "of": part.name}
    for group, counts, shares in zip(studied.groups, part.counts, part.shares, strict=True):
        for label, count, share in zip(studied.labels, counts, shares, strict=True):
            about = {**where, "group": group.name, "category": label, "n": sum(counts), "signature": studied.signature}
            yield record("count", **about, value=count)
            yield record("share", **about, value=share)
    for kind, of, test, one in part.tests():
        about = {**where, **of}
        if isinstance(one, Gain):
            about |= {"other": studied.groups[0].name}
            yield record("gain", **about, n=test.n, why=one.why, signature=one.signature, value=one.gain, low=one.low, high=one.high)
        yield from _of_test(kind, test, vars(one) if one else {}, **about)


def _of_test(name: str, test: ChiSquaredTest, corrected: Mapping[str, Any], **about: Any) -> Records:
    """The figures of a test; ``corrected`` has the p-values that correct its own. A test over raters has fewer figures."""
    told = {**about, "n": test.n, "why": test.why, "signature": test.signature}
    p = {one: getattr(test, one) for one in ("df", "p", "permutation", "p_by")} | {one: corrected.get(one) for one in CORRECTED}
    statistic = "Kruskal-Wallis" if test.p_by == "kruskal-wallis" else "chi-squared"
    yield record(f"{name}: {statistic}", **told, **p, value=test.statistic)
    if test.n is not None or test.v is not None:
        yield record(f"{name}: Cramér's V", **told, value=test.v)
    if test.n is not None:
        yield record(f"{name}: least expected count", **told, value=test.least_expected)


def _of_raters(figure: str, of: str, table: Balanced | Attention, groups: Groups, signature: str) -> Records:
    """How many raters of each group have each value, or why that is not told."""
    about = {"part": RATERS, "of": of, "signature": signature}
    if table.why is not None:
        yield record(figure, **about, why=table.why)
    for (group, raters), row in zip(groups, table.cells, strict=bool(table.cells)):
        for value, count in zip(table.values, row, strict=True):
            yield record("raters", **about, group=group, category=value, value=count, n=raters)


def _of_balance(balance: Balance) -> Records:
    """The counts and medians of each column by group, and its test."""
    for one in balance.columns:
        yield from _of_raters("balance", one.column, one, balance.groups, balance.signature)
        for (group, _), quartiles in zip(balance.groups, one.quartiles, strict=bool(one.quartiles)):
            for name, value in zip(QUARTILES, quartiles, strict=True):
                yield record(name, part=RATERS, of=one.column, signature=balance.signature, group=group, value=value)
        if one.test is not None:
            yield from _of_test("balance", one.test, {"holm": one.holm}, part=RATERS, of=one.column)


def _notes(notes: Sequence[str], signature: str, part: str = WHOLE) -> Records:
    yield from (record("note", part=part, why=note, signature=signature) for note in notes)


@dataclass(frozen=True, repr=False)
class Studied(LongForm):
    """A study between subjects: the whole, its parts by column, how alike a rater's ratings are, and what could have been seen.

    ``null_point`` is the point above which ``alpha`` of the omnibus statistics lie when raters are exchanged. Where raters differ, in
    severity or because their groups do, it is above chi-squared's own (``null_point_if_independent``). ``notes`` is what to mind.
    """

    columns, numbers = (*KEYS, *COLUMNS), NUMBERS
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
        # What is told of raters does not say how many of them a test has.
        found = asdict(self, dict_factory=lambda pairs: {name: value for name, value in pairs if (name, value) != ("n", None)})
        return self._with_provenance(found | {"no_null_point": self.no_null_point})

    def _records(self) -> Records:
        for group in self.groups:
            yield from _figures(group, {one: one for one in ("raters", "ratings", "items")}, group=group.name, signature=self.signature)
        for column, parts in {WHOLE: (self.whole,), **self.parts}.items():
            for one in parts:
                yield from _of_part(column, one, self)
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
