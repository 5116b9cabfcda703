"""The tables of a report against their recomputation, and against the page that shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from builder.page import number, signed

# A number may differ by this much from its recomputation; BERTScore's embeddings vary with the machine, and a figure that counts
# ranks or exchanges jumps by a whole text where two scores are all but equal.
EXACT = 1e-6
TOLERANCE = {"BERTScore F1": 1e-4}
COUNTED, JUMP = ("p", "holm", "accuracy", "auc"), 5e-3


def disagreements(told: Any, found: Any, where: str = "", tolerance: float = EXACT) -> Iterator[tuple[str, str]]:
    """(where, what) of all that the tables say otherwise than their recomputation does, or not at all."""
    if isinstance(found, dict) and isinstance(told, dict):
        within = TOLERANCE.get(found.get("metric", ""), tolerance)
        for name in [*found, *(name for name in told if name not in found)]:
            if name not in told or name not in found:
                yield _at(where, name), "is missing" if name in found else "is not in the data"
            else:
                jumps = within > EXACT and name in COUNTED
                yield from disagreements(told[name], found[name], _at(where, name), JUMP if jumps else within)
    elif isinstance(found, list) and isinstance(told, list):
        if len(told) != len(found):
            yield where, f"has {len(told)} entries, the data gives {len(found)}"
        for place, (one, other) in enumerate(zip(told, found, strict=False)):
            yield from disagreements(one, other, _at(where, _name(other, place)), tolerance)
    elif not _same(told, found, tolerance):
        yield where, f"says {told}, the data gives {found}"


def _at(where: str, name: str) -> str:
    return f"{where}: {name}" if where else name


def _name(value: Any, place: int) -> str:
    """A row is called by its metric, another entry by its place."""
    return str(value["metric"]) if isinstance(value, dict) and "metric" in value else str(place)


def _same(told: Any, found: Any, tolerance: float) -> bool:
    if isinstance(found, int | float) and isinstance(told, int | float) and not isinstance(found, bool) and not isinstance(told, bool):
        # The rounding of a difference of decimals is no difference.
        return abs(told - found) <= tolerance + 1e-12
    return bool(told == found and type(told) is type(found))


def unseen(tables: dict[str, Any], page: str) -> Iterator[tuple[str, str]]:
    """(where, number) of scores and differences that the page does not show."""
    for where, row in rows(tables):
        for variant, value in row["scores"].items() if where in ("inversion", "controls", "candidates") else ():
            if number(value) not in page:
                yield f"{where}: {row['metric']}: {variant}", number(value)
        for contrast, one in row["differences"].items():
            for value in (one["value"], one["low"], one["high"]):
                if value is not None and signed(value) not in page:
                    yield f"{where}: {row['metric']}: {contrast}", signed(value)


def rows(tables: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(table, row) of all rows of all tables."""
    for name in ("inversion", "controls", "candidates", "balance"):
        yield from ((name, row) for row in tables[name])
    for name, found in tables["matched"].items():
        yield from ((f"matched: {name}", row) for row in found)
    for grouping, groups in tables["groups"].items():
        for name, found in groups.items():
            yield from ((f"{grouping}: {name}", row) for row in found)
