"""Contrast: near variants stay near the reference, far ones keep away from it."""

from __future__ import annotations

from empathy_eval.base.text import ENGLISH, edit_ratio, overlap
from empathy_eval.completions.requests import Flaw
from empathy_eval.design.configuration import Limits


def near(reference: str, variant: str, limits: Limits, language: str = ENGLISH) -> list[Flaw]:
    """0 < edit ratio < the limit."""
    ratio = edit_ratio(reference, variant, language)
    if ratio == 0:
        return [Flaw("edit_ratio_zero", "the reply has the words of the original; change its attitude")]
    if ratio >= limits.edit_ratio_below:
        detail = f"{ratio:.0%} of the words are changed; stay under {limits.edit_ratio_below:.0%}"
        return [Flaw("edit_ratio_high", detail)]
    return []


def far(reference: str, variant: str, limits: Limits, language: str = ENGLISH) -> list[Flaw]:
    """Overlap (ROUGE-L F1) at most the limit."""
    # The detail names no word of the reference: a repair request must stay as blind as the first.
    if overlap(reference, variant, language) > limits.overlap_at_most:
        return [Flaw("overlap_high", "the reply is worded too much as anyone would; find other words and another form")]
    return []


def strategy_changed(strategy: str | None, other: str) -> list[Flaw]:
    """A far variant has another strategy than the reference."""
    return [Flaw("strategy_kept", f'the strategy is still "{strategy}"')] if strategy == other else []
