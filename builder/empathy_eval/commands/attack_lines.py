"""What is printed of scorers under attack: metrics by ``score``, judges by ``annotate``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from empathy_eval.base.table_text import lined

if TYPE_CHECKING:
    from empathy_eval.evaluation.attack_rows import AttackTable, Change
    from empathy_eval.evaluation.resampling import Estimate


def attack_lines(table: AttackTable) -> Iterator[str]:
    """The table of attacks as lines of text, a block a scorer, and none without one; what was left out comes last."""
    if table.rows:
        over = f"{table.replies} replies of {table.pairs} pairs, {table.dialogues} dialogues"
        yield f"under attack: {over}; if rises is 0, the attack never fools the scorer"
    titles = ("", "eligible", "rises", "95 % interval", "change", "in stance effects", "95 % interval")
    for metric in dict.fromkeys(one.metric for one in table.rows):
        rows = [one for one in table.rows if one.metric == metric]
        yield f"{metric}, attacked"
        cells = [(f"  {row.attack}", *_figures(row.whole)) for row in rows]
        yield from lined([titles, *cells], right=(1, 2, 4, 5))
        if rows[0].effect.why:
            ends = _ends(rows[0].effect, "+.4f")
            yield f"  change has no unit: {rows[0].effect.why}{ends and f': {rows[0].effect.value:+.4f} {ends}'}"
        else:
            yield f"  stance effect: {rows[0].effect.value:+.4f}, over {rows[0].effect.over}"
    yield from table.told


def _figures(whole: Change) -> tuple[str, ...]:
    rises, units = whole.rises, whole.in_effects
    change = _value(whole.change, "+.4f")
    return str(whole.eligible), _value(rises, ".3f"), _ends(rises, ".3f"), change, _value(units, "+.2f"), _ends(units, "+.2f")


def _value(one: Estimate | None, form: str) -> str:
    return "-" if one is None else format(one.value, form)


def _ends(one: Estimate | None, form: str) -> str:
    return "" if one is None or one.low is None or one.high is None else f"[{one.low:{form}}, {one.high:{form}}]"
