"""Chi-squared tests of tables of counts, with Cramér's V; said to be not defined where a table has nothing to compare."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from empathy_eval.base.hashing import signature_line
from empathy_eval.statistics.estimate import Codes, Floats

# Below this the distribution of the statistic is not that of chi-squared (Cochran 1954).
LEAST_EXPECTED = 5
# Significant digits: beyond them figures may differ from machine to machine.
DIGITS = 12
Count = TypeVar("Count", np.int64, np.float64)


@dataclass(frozen=True)
class CountTable:
    """A table of counts, shape (rows, columns); ``columns`` are called as in 'nobody gave ...'."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: Codes

    @classmethod
    def of_category(cls, rows: tuple[str, ...], label: str, place: int, counts: Codes) -> CountTable:
        """One category against all others."""
        return cls(rows, (f'"{label}"', f'anything but "{label}"'), one_and_rest(counts, place))

    @property
    def gaps(self) -> str:
        """Rows and columns in which nothing is."""
        groups = [f'"{name}" has no rating here' for name, row in zip(self.rows, self.counts, strict=True) if not row.sum()]
        empty = [f"nobody gave {name} here" for name, column in zip(self.columns, self.counts.T, strict=True) if not column.sum()]
        return "; ".join(groups + empty)


def one_and_rest(counts: NDArray[Count], category: int) -> NDArray[Count]:
    """Counts by category, shape (..., categories), as those of one and of the rest."""
    chosen = counts[..., category]
    return np.stack([chosen, counts.sum(axis=-1) - chosen], axis=-1)


def expected(counts: Codes) -> Floats:
    """The counts of a table whose rows all have the shares of the whole."""
    return np.asarray(np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum())


def pearson(counts: Codes, *, yates: bool = False) -> float:
    """Pearson's statistic of a table without empty rows or columns; Yates' takes a half off each difference, as far as it goes."""
    means = expected(counts)
    far = np.abs(counts - means)
    return float(((np.maximum(far - 0.5, 0) if yates else far) ** 2 / means).sum())


def tested(table: CountTable, permutation: float | None, settings: str, *, yates: bool = False) -> ChiSquaredTest:
    """The test of a table, given the p of exchanging raters and its settings; empty rows and columns are left out.

    ``v`` is that of Pearson's statistic, with Yates' correction or without.
    """
    # Loads in a tenth of a second; scipy.stats takes a whole one.
    from scipy.special import chdtrc

    line = signature_line(test="chi-square", yates="yes" if yates else "no", v="cramer,uncorrected", small=LEAST_EXPECTED)
    signature = f"{line}|{settings}" if permutation is not None else line
    counts = table.counts[table.counts.sum(axis=1) > 0][:, table.counts.sum(axis=0) > 0]
    n = int(counts.sum())
    if min(counts.shape) < 2:
        return ChiSquaredTest(None, None, None, None, n, None, None, "chi-square", table.gaps, line)
    df = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    statistic, least = pearson(counts, yates=yates), float(expected(counts).min())
    v = math.sqrt(pearson(counts) / (n * (min(counts.shape) - 1)))
    small = least < LEAST_EXPECTED
    notes = [table.gaps] if table.gaps else []
    if small:
        used = "no permutation test was run" if permutation is None else "the p-value of the permutation test is used"
        notes.append(f"an expected count is {least:.3g}, but chi-squared needs {LEAST_EXPECTED}: {used}")
    by_raters = small and permutation is not None
    return ChiSquaredTest(
        figure(statistic), df, figure(float(chdtrc(df, statistic))), figure(v), n, figure(least), permutation,
        "permutation" if by_raters else "chi-square", "; ".join(notes) or None, signature,
    )  # fmt: skip


def figure(value: float, digits: int = DIGITS) -> float:
    """A number to so many digits; without it to those that are the same everywhere."""
    return float(f"{value:.{digits}g}")


@dataclass(frozen=True)
class ChiSquaredTest:
    """A chi-squared test of a table of counts; what is not defined is None.

    ``p`` is always that of chi-squared, which takes ratings for independent; ``permutation`` is that of exchanging raters. ``p_by`` says
    which of them the tool goes by: permutation where an expected count is below five. ``v`` is Cramér's V, ``n`` the number of ratings;
    None of a test over raters, where few people may not be told, and which may be Kruskal and Wallis' of numbers. ``why`` says why there
    is no figure or which p the tool goes by.
    """

    statistic: float | None
    df: int | None
    p: float | None
    v: float | None
    n: int | None
    least_expected: float | None
    permutation: float | None
    p_by: Literal["chi-square", "permutation", "kruskal-wallis"]
    why: str | None
    signature: str

    def to_json(self) -> dict[str, Any]:
        """All figures; a test over raters does not say how many they are."""
        return {name: value for name, value in vars(self).items() if (name, value) != ("n", None)}

    @property
    def reported_p(self) -> float | None:
        """The p that the tool goes by, and that is corrected."""
        return self.permutation if self.p_by == "permutation" else self.p
