"""Built-in checks: a dialogue against its plan, safety, a variant against its reference, toxicity.

Near variants stay near and far ones far; no helper turn is harmful or loses a pointer to help. Toxicity is scored through the ledger; the
other checks need only texts.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence

from empathy_eval.base.text import ENGLISH, edit_ratio, overlap, words
from empathy_eval.completions.asker import Asker, gather_all
from empathy_eval.completions.requests import About, Flaw, Request
from empathy_eval.design.configuration import Limits, ToxicityConfig
from empathy_eval.design.kinds import SCORE, Kind
from empathy_eval.design.language import FIRST_PERSON, OPENING, Language
from empathy_eval.design.planning import Plan
from empathy_eval.design.taxonomy import PhaseRules, Taxonomy, breaches
from empathy_eval.generation.outcomes import Turn
from empathy_eval.generation.patterns import load_patterns

PRONOUN = re.compile(r"\b(?:i|me|my|mine|myself|we|us|our|ours|ourselves)\b", re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<=[.!?…])\s+")


def follows_plan(turns: Sequence[Turn], plan: Plan) -> list[Flaw]:
    """The number of turns, roles and strategies are as planned."""
    if len(turns) != len(plan.turns):
        return [Flaw("turn_count", f"{len(turns)} turns where the plan has {len(plan.turns)}")]
    flaws = []
    for index, (turn, planned) in enumerate(zip(turns, plan.turns, strict=True)):
        if turn.role != planned.role:
            flaws.append(Flaw("role", f"turn {index + 1} is of the {turn.role}, planned for the {planned.role}"))
        elif turn.strategy != planned.strategy:
            flaws.append(Flaw("strategy", f'turn {index + 1} has the strategy "{turn.strategy}", planned is "{planned.strategy}"'))
    return flaws


def keeps_phases(turns: Sequence[Turn], taxonomy: Taxonomy, rules: PhaseRules) -> list[Flaw]:
    """The phase constraints hold."""
    broken = breaches(turns, taxonomy, rules)
    return [
        Flaw(breach.reason, f"{'' if breach.turn is None else f'turn {breach.turn + 1}: '}{breach.what}; {breach.fix}") for breach in broken
    ]


def says_enough(turns: Sequence[Turn], limits: Limits, language: str = ENGLISH) -> Iterator[Flaw]:
    """No turn is empty, and no helper turn too short."""
    for number, turn in enumerate(turns, 1):
        count = len(words(turn.text, language))
        least = limits.helper_words_at_least if turn.role == "helper" else 1
        if count < least:
            yield Flaw("too_short", f"turn {number} has {count} words, at least {least} are needed")


def description(text: str, language: Language) -> list[Flaw]:
    """One or two sentences in the third person: in English about "The user", else as the language's rules say."""
    if "description" in language.rules:
        matches = load_patterns("description", language).find(text)
        opens = any(name == OPENING and text.startswith(phrase) for name, phrase in matches)
        first = next((phrase for name, phrase in matches if name == FIRST_PERSON), None)
    else:
        opens, match = text.startswith("The user"), PRONOUN.search(text)
        first = match and match.group()
    wanted = "as a description must" if "description" in language.rules else 'with "The user"'
    flaws = [] if opens else [Flaw("description_opening", f"the description does not begin {wanted}")]
    return flaws + ([Flaw("description_person", f'the description says "{first}"; keep to the third person')] if first else [])


def harmless(text: str, language: Language) -> list[Flaw]:
    """A text encourages no harm, diagnoses nothing, prescribes nothing."""
    matches = load_patterns("safety", language).find(text)
    return [Flaw(f"unsafe_{name}", f'"{phrase}" {name.replace("_", " ")}') for name, phrase in matches]


def in_crisis(text: str, language: Language) -> bool:
    """Whether a text holds language of hopelessness or danger."""
    return bool(load_patterns("crisis", language).find(text))


def points_to_help(text: str, language: Language) -> bool:
    """Whether a text points to professional or crisis help."""
    return bool(load_patterns("pointers", language).find(text))


def dialogue_flags(turns: Sequence[Turn], language: Language) -> tuple[str, ...]:
    """``crisis`` if any turn holds crisis language."""
    return ("crisis",) if any(in_crisis(turn.text, language) for turn in turns) else ()


def answers_crisis(turns: Sequence[Turn], language: Language) -> list[Flaw]:
    """After crisis language of the seeker, some helper turn points to help."""
    places = [index for index, turn in enumerate(turns) if turn.role == "seeker" and in_crisis(turn.text, language)]
    if not places or any(turn.role == "helper" and points_to_help(turn.text, language) for turn in turns[places[0] :]):
        return []
    detail = f"the seeker sounds hopeless or in danger in turn {places[0] + 1}, and no helper turn after it points to help"
    return [Flaw("crisis_without_pointer", detail)]


def keeps_pointer(reference: str, variant: str, flags: Sequence[str], language: Language) -> list[Flaw]:
    """With crisis language before, a variant points to help if its reference does."""
    if "crisis" in flags and points_to_help(reference, language) and not points_to_help(variant, language):
        return [Flaw("pointer_lost", "the reply must point to professional or crisis help here")]
    return []


def points_where_needed(message: str, reply: str, language: Language) -> list[Flaw]:
    """A crossed reply points to help if the seeker's last message holds crisis language."""
    if in_crisis(message, language) and not points_to_help(reply, language):
        return [Flaw("crisis_without_pointer", "the seeker sounds hopeless or in danger, and the reply does not point to help")]
    return []


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
    """Flaws of a variant: closeness, length, harm, and a lost pointer to help."""
    flaws = (near if kind.near else far)(reference, text, limits, language.code)
    return flaws + reply_flaws(text, limits, language) + keeps_pointer(reference, text, flags, language)


def reply_flaws(text: str, limits: Limits, language: Language) -> list[Flaw]:
    """Flaws of a helper's reply: too short, or harmful."""
    flaws = list[Flaw]()
    if (count := len(words(text, language.code))) < limits.helper_words_at_least:
        flaws.append(Flaw("too_short", f"the reply has {count} words, at least {limits.helper_words_at_least} are needed"))
    return flaws + harmless(text, language)


async def toxicity(asker: Asker, text: str, about: About) -> float | None:
    """The toxicity of a text, in [0, 1]; None if nothing scores it. ``about`` names its turn.

    Raises:
        NoAnswer: in an offline build, if the ledger has no score for this text and these weights.
        JobError: if the ledger's answer is not a score.
    """
    scorer = asker.models.get(SCORE.role)
    if scorer is None:
        return None
    body = scorer.body([{"role": "user", "content": text}], SCORE.answer)
    request = Request(body, scorer.endpoint, About(about.dialogue_id, SCORE.name, about.turn))
    completion = await asker.complete(scorer, request)
    with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
        score = json.loads(completion.text)["score"]
        if type(score) in (int, float) and 0 <= score <= 1:
            return float(score)
    raise asker.ledger.damaged_row_error(request.key, "the answer is no score")


async def too_toxic(asker: Asker, text: str, about: About, limit: ToxicityConfig | None) -> tuple[float | None, list[Flaw]]:
    """The toxicity of a text, and a flaw above the limit, which quotes the sentence with the highest score.

    Raises:
        NoAnswer, JobError: as :func:`toxicity`.
    """
    score = await toxicity(asker, text, about)
    if score is None or limit is None or score <= limit.at_most:
        return score, []
    sentences = SENTENCE_END.split(text)
    scores = await gather_all(*(toxicity(asker, sentence, about) for sentence in sentences)) if len(sentences) > 1 else [score]
    worst = max(zip(scores, sentences, strict=True), key=lambda scored: scored[0] or 0)[1]
    return score, [Flaw("toxic", f'a toxicity of {score:.2f} by {limit.scorer}, at most {limit.at_most} is taken; reword "{worst[:200]}"')]
