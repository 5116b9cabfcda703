"""What is printed of scorers under attack: metrics by ``score``, judges by ``annotate``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from empathy_eval.evaluation.attack_rows import AttackTable
    from empathy_eval.evaluation.resampling import Estimate


def attack_lines(table: AttackTable) -> Iterator[str]:
    """The table of attacks as lines of text, a block a scorer, and none without one; what was left out comes last."""
    if table.rows:
        yield f"under attack: {table.replies} replies of {table.pairs} pairs, {table.dialogues} dialogues; 0 rises is not fooled"
    wide = max([16, *(len(one.attack) + 2 for one in table.rows)])
    titles = f"{'eligible':>8}{'rises':>8}  {'95 % interval':<16}{'change':>9}  {'in stance effects':>17}  95 % interval"
    for metric in dict.fromkeys(one.metric for one in table.rows):
        rows = [one for one in table.rows if one.metric == metric]
        yield f"{metric}, attacked"
        yield f"  {'':<{wide}}{titles}"
        for row in rows:
            whole = row.whole
            rises = f"{_value(whole.rises, '.3f'):>8}  {_ends(whole.rises, '.3f'):<16}"
            units = f"{_value(whole.in_effects, '+.2f'):>17}  {_ends(whole.in_effects, '+.2f')}"
            yield f"  {row.attack:<{wide}}{whole.eligible:>8}{rises}{_value(whole.change, '+.4f'):>9}  {units}".rstrip()
        if rows[0].effect.why:
            ends = _ends(rows[0].effect, "+.4f")
            yield f"  change is told in no unit: {rows[0].effect.why}{ends and f': {rows[0].effect.value:+.4f} {ends}'}"
        else:
            yield f"  stance effect: {rows[0].effect.value:+.4f}, over {rows[0].effect.over}"
    yield from table.told


def _value(one: Estimate | None, form: str) -> str:
    return "-" if one is None else format(one.value, form)


def _ends(one: Estimate | None, form: str) -> str:
    return "" if one is None or one.low is None or one.high is None else f"[{one.low:{form}}, {one.high:{form}}]"
