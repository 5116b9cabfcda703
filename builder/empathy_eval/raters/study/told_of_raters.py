"""What is told of a study's raters: how alike groups are in them, and how they did on checks of attention; of few people nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# A cell with fewer raters is not told, and cannot be worked out.
FEWEST = 5


@dataclass(frozen=True)
class Compared:
    """A test of what the raters' table says, over raters; what is not defined is None, and ``why`` says so.

    ``permutation`` is the p of tables with the same margins, and gone by where an expected count is below five.
    """

    statistic: float | None
    df: int | None
    p: float | None
    v: float | None
    least_expected: float | None
    permutation: float | None
    p_by: Literal["chi-square", "permutation", "kruskal-wallis"]
    why: str | None
    signature: str

    @property
    def gone_by(self) -> float | None:
        """The p that the tool goes by, and that is corrected."""
        return self.permutation if self.p_by == "permutation" else self.p


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
    values: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...]
    quartiles: tuple[tuple[float | None, float | None, float | None], ...]
    test: Compared | None
    holm: float | None
    family: int
    why: str | None


@dataclass(frozen=True)
class Balance:
    """How alike the groups are in what the raters' table says; ``groups`` are names and numbers of raters, as the study has them.

    ``untold`` raters of the study are not in the table, ``unknown`` ones of the table gave no rating.
    """

    groups: tuple[tuple[str, int], ...]
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

    groups: tuple[tuple[str, int], ...]
    values: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...]
    without: Compared | None
    holds: bool | None
    alpha: float
    why: str | None
    notes: tuple[str, ...]
    signature: str
