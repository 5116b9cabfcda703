"""What a study says, piece by piece: tests, gains, spreads and power, each figure with its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Test:
    """A chi-squared test of a table of counts; what is not defined is None.

    ``p`` is always that of chi-squared, which takes ratings for independent; ``permutation`` is that of exchanging raters. ``p_by`` says
    which of them the tool goes by: permutation where an expected count is below five. ``v`` is Cramér's V, ``n`` the number of ratings,
    ``why`` says why there is no figure or which p the tool goes by.
    """

    statistic: float | None
    df: int | None
    p: float | None
    v: float | None
    n: int
    least_expected: float | None
    permutation: float | None
    p_by: Literal["chi-square", "permutation"]
    why: str | None
    signature: str

    @property
    def gone_by(self) -> float | None:
        """The p that the tool goes by, and that is corrected."""
        return self.permutation if self.p_by == "permutation" else self.p


# The corrected p-values of a test that stands alone so far, and the number of its family.
NOT_YET = (None, None, None, None, 1)


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
