"""What ``score`` prints of fairness: by group of scenarios, and under an exchange of names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from empathy_eval.evaluation.fairness_rows import FairnessRow, FairnessTable, Gap


def fairness_lines(table: FairnessTable) -> Iterator[str]:
    """Both tables as lines of text, a block a scorer; what was left out comes last."""
    for title, here, rows in (
        ("by group of scenarios: the group, and the group minus all other scenarios", "group", table.groups),
        ("other names: with other names, and with other names minus as released", "names", table.names),
    ):
        if rows:
            yield from ("", title)
        for metric in dict.fromkeys(row.metric for row in rows):
            yield from _block(metric, here, [row for row in rows if row.metric == metric])
    yield from ("", *table.told)


def _block(metric: str, here: str, rows: Sequence[FairnessRow]) -> Iterator[str]:
    wide = max([len(metric), *(len(row.name) + 2 for row in rows)]) + 1
    figures = "".join(f"{name:>9}{'gap':>8}  {'95 % interval':<17}{'p (Holm)':>9}" for name in ("accuracy", "effect"))
    yield f"{metric:<{wide}}{'pairs':>6}{figures}  contrast"
    for row in rows:
        found = "".join(_gap(gap) for gap in (row.accuracy, row.effect))
        why = f"; {row.why}" if row.why else ""
        yield f"  {row.name:<{wide - 2}}{row.pairs:>6}{found}  {row.contrast}{why}".rstrip()


def _gap(gap: Gap | None) -> str:
    if gap is None:
        return f"{'-':>9}{'-':>8}  {'':<17}{'':>9}"
    one = gap.difference
    ends = "" if one.low is None or one.high is None else f"[{one.low:+.3f}, {one.high:+.3f}]"
    return f"{gap.here.value:>9.3f}{one.value:>+8.3f}  {ends:<17}{'' if one.holm is None else f'{one.holm:.4f}':>9}"
