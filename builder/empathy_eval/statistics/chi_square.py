"""Chi-squared tests of contingency tables with Cramér's V; not defined for tables with fewer than two rows or columns."""

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
    """A contingency table, shape (rows, columns); a name of a column completes 'nobody gave ...'."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: Codes

    @classmethod
    def of_category(cls, rows: tuple[str, ...], label: str, place: int, counts: Codes) -> CountTable:
        """The table of one category against all others."""
        return cls(rows, (f'"{label}"', f'anything but "{label}"'), split_category(counts, place))

    @property
    def gaps(self) -> str:
        """The rows and columns without counts, in words."""
        groups = [f'"{name}" has no rating here' for name, row in zip(self.rows, self.counts, strict=True) if not row.sum()]
        empty = [f"nobody gave {name} here" for name, column in zip(self.columns, self.counts.T, strict=True) if not column.sum()]
        return "; ".join(groups + empty)


def split_category(counts: NDArray[Count], category: int) -> NDArray[Count]:
    """Splits counts, shape (..., categories), into one category and the sum of the others, shape (..., 2)."""
    chosen = counts[..., category]
    return np.stack([chosen, counts.sum(axis=-1) - chosen], axis=-1)


def expected_counts(counts: Codes) -> Floats:
    """Expected counts under independence: row sum times column sum over the total."""
    return np.asarray(np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum())


def chi_square_statistic(counts: Codes, *, yates: bool = False) -> float:
    """Pearson's statistic of a table without empty rows or columns; Yates' correction subtracts up to one half from each difference."""
    means = expected_counts(counts)
    far = np.abs(counts - means)
    return float(((np.maximum(far - 0.5, 0) if yates else far) ** 2 / means).sum())


def chi_square_test(table: CountTable, permutation: float | None, settings: str, *, yates: bool = False) -> ChiSquaredTest:
    """Chi-squared test of a table; empty rows and columns are left out. ``permutation`` is the p-value of permuting raters.

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
    statistic, least = chi_square_statistic(counts, yates=yates), float(expected_counts(counts).min())
    v = math.sqrt(chi_square_statistic(counts) / (n * (min(counts.shape) - 1)))
    small = least < LEAST_EXPECTED
    notes = [table.gaps] if table.gaps else []
    if small:
        used = "no permutation test was run" if permutation is None else "the p-value of the permutation test is used"
        notes.append(f"an expected count is {least:.3g}, but chi-squared needs {LEAST_EXPECTED}: {used}")
    by_raters = small and permutation is not None
    return ChiSquaredTest(
        round_figure(statistic), df, round_figure(float(chdtrc(df, statistic))), round_figure(v), n, round_figure(least), permutation,
        "permutation" if by_raters else "chi-square", "; ".join(notes) or None, signature,
    )  # fmt: skip


def round_figure(value: float, digits: int = DIGITS) -> float:
    """Rounds a number to significant digits; by default to those that are equal on every machine."""
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
