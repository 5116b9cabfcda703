"""What ``study --raters`` prints of a study's raters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from empathy_eval.base.table_text import lined

if TYPE_CHECKING:
    from empathy_eval.raters.study.studied import Studied
    from empathy_eval.raters.study.told_of_raters import Attention, Balance, Balanced, Compared

HEAD = ("test", "statistic", "df", "V", "p")
NAMES = {"kruskal-wallis": "Kruskal-Wallis"}


def raters_blocks(studied: Studied) -> list[list[str]]:
    """How alike the groups are in their raters, and how these did on checks of attention; nothing without a table of raters."""
    blocks = list[list[str]]()
    if studied.balance is not None:
        blocks += _balance(studied.balance, studied.settings["permutations"])
    if studied.attention is not None:
        blocks.append(_attention(studied.attention, studied.settings["permutations"]))
    return blocks


def _balance(balance: Balance, draws: int) -> Iterator[list[str]]:
    rows = [(one.column, *_test(one.test, one.holm, draws)) for one in balance.columns if one.test is not None]
    whys = [f"  {one.column}: {why}" for one in balance.columns if (why := one.why or (one.test and one.test.why))]
    tests = lined([("raters of the groups by", *HEAD, "p drawn", "Holm"), *rows], 2) if rows else []
    drawn = (
        ["  p drawn: chi-squared, from random tables with the same sums"]
        if any(one.test and one.test.permutation for one in balance.columns)
        else []
    )
    yield [*tests, *whys, *drawn, *(f"note: {note}" for note in balance.notes)]
    for one in balance.columns:
        if one.cells or any(median is not None for _, median, _ in one.quartiles):
            yield _column(one, balance.groups)


def _column(one: Balanced, groups: Sequence[tuple[str, int]]) -> list[str]:
    if one.cells:
        head = (f"raters by {one.column}", *one.values)
        rows = [(name, *(f"{count:,}" for count in cells)) for (name, _), cells in zip(groups, one.cells, strict=True)]
    else:
        head = (f"raters by {one.column}", "lower quartile", "median", "upper quartile")
        rows = [(name, *map(_figure, quartiles)) for (name, _), quartiles in zip(groups, one.quartiles, strict=True)]
    return lined([head, *rows], 1)


def _attention(attention: Attention, draws: int) -> list[str]:
    lines = [f"attention checks: {attention.why}"] if attention.why else []
    if attention.cells:
        rows = [(name, *(f"{count:,}" for count in cells)) for (name, _), cells in zip(attention.groups, attention.cells, strict=True)]
        lines += lined([("raters by failed attention checks", *attention.values), *rows], 1)
    if attention.without is not None:
        lines += lined(
            [
                ("groups by all categories", *HEAD, "p by rater"),
                ("without raters who failed more than half", *_test(attention.without, None, draws)[:-1]),
            ],
            2,
        )
    return [*lines, *(f"note: {note}" for note in attention.notes)]


def _test(test: Compared, holm: float | None, draws: int) -> tuple[str, ...]:
    star = "*" if test.p_by == "permutation" else ""
    name = NAMES.get(test.p_by, "chi-squared")
    df = "" if test.df is None else str(test.df)
    v = "" if test.v is None else f"{test.v:.3f}"
    statistic = "" if test.statistic is None else f"{test.statistic:.2f}"
    return name, statistic, df, v, p_of(test.p), p_of(test.permutation, draws) + star, p_of(holm, draws if star else 0, test.permutation)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def p_of(value: float | None, draws: int = 0, of: float | None = None) -> str:
    """A p-value to four places; "<=" before one than which no smaller could be of so many draws, and what corrects it."""
    from empathy_eval.raters.study.told_p import told_p

    return "" if value is None else "".join(told_p(value, draws, of)).removeprefix("=").replace("≤", "<=")
