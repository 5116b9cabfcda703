"""Is a dialogue the one that was planned, and does it keep the phase constraints?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from empathy_eval.base.text import ENGLISH, words
from empathy_eval.completions.requests import Flaw
from empathy_eval.design.configuration import Limits
from empathy_eval.design.language import FIRST_PERSON, OPENING, Language
from empathy_eval.design.planning import Plan
from empathy_eval.design.taxonomy import PhaseRules, Taxonomy, breaches
from empathy_eval.generation.outcomes import Turn
from empathy_eval.generation.patterns import load_patterns

PRONOUN = re.compile(r"\b(?:i|me|my|mine|myself|we|us|our|ours|ourselves)\b", re.IGNORECASE)


def follows_plan(turns: Sequence[Turn], plan: Plan) -> list[Flaw]:
    """The planned number of turns, each with its planned role and strategy."""
    if len(turns) != len(plan.turns):
        return [Flaw("turn_count", f"{len(turns)} turns where the plan has {len(plan.turns)}")]
    found = []
    for place, (turn, planned) in enumerate(zip(turns, plan.turns, strict=True)):
        if turn.role != planned.role:
            found.append(Flaw("role", f"turn {place + 1} is of the {turn.role}, planned for the {planned.role}"))
        elif turn.strategy != planned.strategy:
            found.append(Flaw("strategy", f'turn {place + 1} has the strategy "{turn.strategy}", planned is "{planned.strategy}"'))
    return found


def keeps_phases(turns: Sequence[Turn], taxonomy: Taxonomy, rules: PhaseRules) -> list[Flaw]:
    """The phase constraints, whatever was planned."""
    return [Flaw(breach.reason, f"{_numbered(breach.turn)}{breach.what}; {breach.fix}") for breach in breaches(turns, taxonomy, rules)]


def says_enough(turns: Sequence[Turn], limits: Limits, language: str = ENGLISH) -> Iterator[Flaw]:
    """No empty turn, and no helper turn under the smallest number of words."""
    for place, turn in enumerate(turns, 1):
        count = len(words(turn.text, language))
        least = limits.helper_words_at_least if turn.role == "helper" else 1
        if count < least:
            yield Flaw("too_short", f"turn {place} has {count} words, at least {least} are needed")


def description(text: str, language: Language) -> list[Flaw]:
    """One or two sentences in the third person: in English about "The user", else as the rules of the language say."""
    if "description" in language.rules:
        found = load_patterns("description", language).find(text)
        opens = any(name == OPENING and text.startswith(phrase) for name, phrase in found)
        first = next((phrase for name, phrase in found if name == FIRST_PERSON), None)
    else:
        opens, match = text.startswith("The user"), PRONOUN.search(text)
        first = match and match.group()
    wanted = "as a description must" if "description" in language.rules else 'with "The user"'
    flaws = [] if opens else [Flaw("description_opening", f"the description does not begin {wanted}")]
    return flaws + ([Flaw("description_person", f'the description says "{first}"; keep to the third person')] if first else [])


def _numbered(turn: int | None) -> str:
    return "" if turn is None else f"turn {turn + 1}: "
