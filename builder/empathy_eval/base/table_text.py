"""Tables for a terminal: cells under each other, two spaces between columns, whatever the cells hold."""

from __future__ import annotations

from collections.abc import Sequence

GAP = "  "


def lined(rows: Sequence[Sequence[str]], left: int = 1, *, right: Sequence[int] | None = None, head: bool = True) -> list[str]:
    """Rows of equally many cells as lines; a column is as wide as its widest cell. The ``head``, the first row, alone is no table: no line.

    The first ``left`` columns are flush left, the others flush right; or, with ``right``, these places are flush right and the others left.
    """
    if len(rows) <= head:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def put(place: int, cell: str) -> str:
        to_right = place >= left if right is None else place in right
        return cell.rjust(widths[place]) if to_right else cell.ljust(widths[place])

    return [GAP.join(put(place, cell) for place, cell in enumerate(row)).rstrip() for row in rows]
