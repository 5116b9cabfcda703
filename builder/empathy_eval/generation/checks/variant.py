"""What a variant must pass that needs nothing but its text, the reference and their place."""

from __future__ import annotations

from collections.abc import Sequence

from empathy_eval.base.text import words
from empathy_eval.completions.requests import Flaw
from empathy_eval.design.configuration import Limits
from empathy_eval.design.kinds import Kind
from empathy_eval.design.language import Language
from empathy_eval.generation.checks import contrast, safety


def variant_flaws(kind: Kind, reference: str, text: str, flags: Sequence[str], limits: Limits, language: Language) -> list[Flaw]:
    """Near or far enough, long enough, harmless, and with the pointer to help of the reference where that has one."""
    found = (contrast.near if kind.near else contrast.far)(reference, text, limits, language.code)
    return found + reply_flaws(text, limits, language) + safety.keeps_pointer(reference, text, flags, language)


def reply_flaws(text: str, limits: Limits, language: Language) -> list[Flaw]:
    """What no reply of a helper is: too short, or harmful."""
    found = list[Flaw]()
    if (count := len(words(text, language.code))) < limits.helper_words_at_least:
        found.append(Flaw("too_short", f"the reply has {count} words, at least {limits.helper_words_at_least} are needed"))
    return found + safety.harmless(text, language)
