"""What a variant must pass that needs nothing but its text, the reference and their place: near ones stay near, far ones keep away."""

from __future__ import annotations

from collections.abc import Sequence

from empathy_eval.base.text import ENGLISH, edit_ratio, overlap, words
from empathy_eval.completions.requests import Flaw
from empathy_eval.design.configuration import Limits
from empathy_eval.design.kinds import Kind
from empathy_eval.design.language import Language
from empathy_eval.generation.checks import safety


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


def variant_flaws(kind: Kind, reference: str, text: str, flags: Sequence[str], limits: Limits, language: Language) -> list[Flaw]:
    """Near or far enough, long enough, harmless, and with the pointer to help of the reference where that has one."""
    found = (near if kind.near else far)(reference, text, limits, language.code)
    return found + reply_flaws(text, limits, language) + safety.keeps_pointer(reference, text, flags, language)


def reply_flaws(text: str, limits: Limits, language: Language) -> list[Flaw]:
    """What no reply of a helper is: too short, or harmful."""
    found = list[Flaw]()
    if (count := len(words(text, language.code))) < limits.helper_words_at_least:
        found.append(Flaw("too_short", f"the reply has {count} words, at least {limits.helper_words_at_least} are needed"))
    return found + safety.harmless(text, language)
