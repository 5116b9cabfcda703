"""Which numbers of the tables a page does not show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from empathy_eval.evaluation.inversion.rows import FIGURES
from empathy_eval.reports.page import number, signed


def rows(tables: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(table, row) of all rows of all tables."""
    for name in ("inversion", "controls", "candidates", "balance"):
        yield from ((name, row) for row in tables[name])
    for name, found in (*tables["matched"].items(), *(one for groups in tables["groups"].values() for one in groups.items())):
        yield from ((f"group: {name}", row) for row in found)


def unseen(tables: dict[str, Any], page: str) -> Iterator[tuple[str, str]]:
    """(where, number) of scores, differences, and shortcuts' and judges' accuracies that the page does not show."""
    for where, row in rows(tables):
        for variant, value in row["scores"].items() if where in ("inversion", "controls", "candidates") else ():
            if number(value) not in page:
                yield f"{where}: {row['metric']}: {variant}", number(value)
        for contrast, one in row["differences"].items():
            for value in (one["value"], one["low"], one["high"]):
                if value is not None and signed(value) not in page:
                    yield f"{where}: {row['metric']}: {contrast}", signed(value)
    for contrast in (tables.get("shortcuts") or {}).get("contrasts", ()):
        for one in contrast["shortcuts"]:
            for value in (one["accuracy"] or {}).values():
                # The unit stands behind the last number of an interval alone.
                if value is not None and number(100 * value, 1) not in page:
                    yield f"shortcuts: {contrast['contrast']}: {one['name']}", number(100 * value, 1)
    for one in (tables.get("shortcuts") or {}).get("first_samples", ()):
        if one["accuracy"] and number(100 * one["accuracy"]["value"], 1) not in page:
            yield f"shortcuts: {one['contrast']}: first samples", number(100 * one["accuracy"]["value"], 1)
    for where, row in crossed_rows(tables):
        for figure in FIGURES:
            for value in (row[figure] or {}).values():
                if value is not None and number(100 * value, 1) not in page:
                    yield f"{where}: {row['metric']}: {figure}", number(100 * value, 1)
    for row in tables.get("attacks", {}).get("rows", ()):
        shown = [number(100 * value, 1) for value in (row["rises"] or {}).values() if value is not None]
        shown += [signed(value, 2) for value in (row["in_effects"] or {}).values() if value is not None]
        yield from ((f"attacks: {row['metric']}: {row['attack']}", one) for one in shown if one not in page)
    for row in (row for part in ("groups", "names") for row in tables.get("fairness", {}).get(part, ())):
        gap = (row["accuracy"] or {"difference": {}})["difference"]
        shown = [signed(100 * gap[name], 1) for name in ("value", "low", "high") if gap.get(name) is not None]
        yield from ((f"fairness: {row['metric']}: {row['name']}", one) for one in shown if one not in page)
    for judge, worth in tables.get("judges", {}).get("worth", {}).items():
        for name, one in worth["criteria"].items():
            right = one["stance"].get("judge", {})
            for value in (right.get("value"), right.get("low"), right.get("high")):
                if value is not None and number(100 * value, 1) not in page:
                    yield f"judges: {judge}: {name}", number(100 * value, 1)


def crossed_rows(tables: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(table, row) of what is told of crossed items."""
    for name in ("metrics", "shortcuts"):
        yield from ((f"crossed: {name}", row) for row in tables.get("crossed", {}).get(name, ()))
