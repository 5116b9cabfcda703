"""What is told of a study's raters as records, one a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from empathy_eval.raters.study.long_form import record
from empathy_eval.raters.study.told_of_raters import Attention, Balance, Compared

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
            yield from _of_test("balance", one.test, one.holm, about)
    for note in balance.notes:
        yield record("note", part=PART, why=note, signature=balance.signature)


def of_attention(attention: Attention) -> Iterator[dict[str, Any]]:
    """How many raters of each group failed checks of attention, and the test without those who failed most."""
    about = {"part": PART, "of": "checks_failed", "signature": attention.signature}
    if attention.why is not None:
        yield record("checks failed", **about, why=attention.why)
    yield from _counts(attention.groups, attention.values, attention.cells, about)
    if attention.without is not None:
        yield from _of_test("omnibus without who failed most", attention.without, None, about)
    for note in attention.notes:
        yield record("note", part=PART, why=note, signature=attention.signature)


def _counts(
    groups: Sequence[tuple[str, int]], values: Sequence[str], cells: Sequence[Sequence[int]], about: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    for (group, raters), row in zip(groups, cells, strict=bool(cells)):
        for value, count in zip(values, row, strict=True):
            yield record("raters", **about, group=group, category=value, value=count, n=raters)


def _of_test(of: str, test: Compared, holm: float | None, about: dict[str, Any]) -> Iterator[dict[str, Any]]:
    told = {**about, "why": test.why, "signature": test.signature}
    p = {"df": test.df, "p": test.p, "permutation": test.permutation, "p_by": test.p_by, "holm": holm}
    yield record(f"{of}: {NAMED.get(test.p_by, 'chi-squared')}", **told, **p, value=test.statistic)
    if test.v is not None:
        yield record(f"{of}: Cramér's V", **told, value=test.v)
