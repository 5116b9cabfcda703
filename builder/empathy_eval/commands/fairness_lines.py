"""What ``score`` prints of fairness: by group of scenarios, and under an exchange of names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from empathy_eval.base.table_text import lined

if TYPE_CHECKING:
    from empathy_eval.evaluation.fairness_rows import FairnessRow, FairnessTable, Gap


def fairness_lines(table: FairnessTable) -> Iterator[str]:
    """Both tables as lines of text, a block a scorer; what was left out comes last."""
    for title, here, rows in (
        ("by group of scenarios: the value in the group, and its gap: the group minus all other scenarios", "group", table.groups),
        ("other names: the value with other names, and its gap: other names minus names as released", "names", table.names),
    ):
        if rows:
            yield from ("", title)
        for metric in dict.fromkeys(row.metric for row in rows):
            yield from _block(metric, here, [row for row in rows if row.metric == metric])
    yield from ("", *table.told)


def _block(metric: str, here: str, rows: Sequence[FairnessRow]) -> Iterator[str]:
    figures = [title for name in ("accuracy", "effect") for title in (name, "gap", "95 % interval", "p (Holm)")]
    cells = [
        (f"  {row.name}", str(row.pairs), *_gap(row.accuracy), *_gap(row.effect), f"{row.contrast}{f'; {row.why}' if row.why else ''}")
        for row in rows
    ]
    yield from lined([(metric, "pairs", *figures, "contrast"), *cells], right=(1, 2, 3, 5, 6, 7, 9))


def _gap(gap: Gap | None) -> tuple[str, ...]:
    if gap is None:
        return "-", "-", "", ""
    one = gap.difference
    ends = "" if one.low is None or one.high is None else f"[{one.low:+.3f}, {one.high:+.3f}]"
    return f"{gap.here.value:.3f}", f"{one.value:+.3f}", ends, "" if one.holm is None else f"{one.holm:.4f}"
