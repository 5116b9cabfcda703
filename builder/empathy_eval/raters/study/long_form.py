"""What a study says as records, one a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from empathy_eval.raters.study.results import Gain, Group, Pairwise, Part, Powered, Spread, Test

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
