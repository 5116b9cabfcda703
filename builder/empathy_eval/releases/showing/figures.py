"""The figures that checks look at, of a text as it is: what it has, and what it had to have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from empathy_eval.base.text import edit_ratio, overlap, words
from empathy_eval.completions.answer_text import LONGEST
from empathy_eval.design.crossed import changed_words
from empathy_eval.design.kinds import Kind
from empathy_eval.design.language import Language
from empathy_eval.design.planning import Plan
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.checks import dialogue as dialogue_checks
from empathy_eval.generation.checks import safety
from empathy_eval.generation.checks.crossed import Bounds
from empathy_eval.generation.outcomes import Crossed, Dialogue
from empathy_eval.releases.showing.shown import Figure

# Figures are told to so many places.
PLACES = 4


def variant_figures(kind: Kind, reference: str, text: str, score: float | None, recipe: Recipe, flags: Sequence[str]) -> tuple[Figure, ...]:
    """The figures of a variant; none of a text that is longer than any that is looked at."""
    if max(len(reference), len(text)) > LONGEST:
        return ()
    return tuple(_variant(kind, reference, text, score, recipe, flags))


def crossed_figures(item: Crossed, said: str, recipe: Recipe) -> tuple[Figure, ...]:
    """The figures of a crossed item, where ``said`` is what its twin changes; none of texts that are longer than any that is looked at."""
    if max(len(one) for one in (said, item.twin, item.reply_1, item.reply_2)) > LONGEST:
        return ()
    limits, code = recipe.config.checks, recipe.language.code
    bounds, changed, count = Bounds.of(item.reply_1, limits, code), changed_words(said, item.twin, code), len(words(item.reply_2, code))
    share = overlap(item.reply_1, item.reply_2, code)
    least, most = bounds.changed_least, bounds.changed_most
    return (
        Figure("changed words", changed, f"{least} to {most}", least <= changed <= most),
        Figure("words of reply_2", count, f"{bounds.least} to {bounds.most}", bounds.least <= count <= bounds.most),
        Figure("overlap of the replies", round(share, PLACES), f"at most {limits.overlap_at_most:g}", share <= limits.overlap_at_most),
    )


def flags_at(dialogue: Dialogue, turn: int, language: Language) -> tuple[str, ...]:
    """``crisis`` if a turn or one before it holds crisis language."""
    texts = [one.text for one in dialogue.turns[: turn + 1]]
    return ("crisis",) if any(len(text) <= LONGEST and safety.in_crisis(text, language) for text in texts) else ()


def _variant(kind: Kind, reference: str, text: str, score: float | None, recipe: Recipe, flags: Sequence[str]) -> Iterator[Figure]:
    limits, language = recipe.config.checks, recipe.language
    if kind.near:
        ratio, below = edit_ratio(reference, text, language.code), limits.edit_ratio_below
        yield Figure("edit ratio", round(ratio, PLACES), f"above 0, below {below:g}", 0 < ratio < below)
    else:
        share, most = overlap(reference, text, language.code), limits.overlap_at_most
        yield Figure("overlap", round(share, PLACES), f"at most {most:g}", share <= most)
    yield from _helper(text, score, recipe)
    if "crisis" in flags and safety.points_to_help(reference, language):
        points = safety.points_to_help(text, language)
        yield Figure("points to help", "yes" if points else "no", "as the reference does", points)


def helper_figures(text: str, score: float | None, recipe: Recipe) -> tuple[Figure, ...]:
    """The figures of a helper turn."""
    return tuple(_helper(text, score, recipe)) if len(text) <= LONGEST else ()


def _helper(text: str, score: float | None, recipe: Recipe) -> Iterator[Figure]:
    limits, language = recipe.config.checks, recipe.language
    count, least = len(words(text, language.code)), limits.helper_words_at_least
    yield Figure("words", count, f"at least {least}", count >= least)
    if score is not None and limits.toxicity:
        most = limits.toxicity.at_most
        yield Figure(f"toxicity ({limits.toxicity.scorer})", score, f"at most {most:g}", score <= most)
    found = [flaw.detail for flaw in safety.harmless(text, language)]
    yield Figure("unsafe phrases", len(found), "; ".join(found) or "none", not found)


def dialogue_figures(dialogue: Dialogue, plan: Plan | None, recipe: Recipe, scores: Mapping[str, float]) -> tuple[Figure, ...]:
    """The figures of a whole dialogue."""
    turns, limits, language = dialogue.turns, recipe.config.checks, recipe.language
    odd = {turn.strategy for turn in turns if turn.strategy and turn.strategy not in recipe.catalogue.taxonomy}
    if odd or any(len(turn.text) > LONGEST for turn in turns):
        return ()
    helpers = [turn.text for turn in turns if turn.role == "helper"]
    shortest = min((len(words(text, language.code)) for text in helpers), default=0)
    enough = not [*dialogue_checks.says_enough(turns, limits, language.code)]
    found = [Figure("words of the shortest helper turn", shortest, f"at least {limits.helper_words_at_least}", enough)]
    if limits.toxicity and (known := [scores[text] for text in helpers if text in scores]):
        most = limits.toxicity.at_most
        found.append(Figure(f"highest toxicity ({limits.toxicity.scorer})", max(known), f"at most {most:g}", max(known) <= most))
    if plan:
        wrong = [flaw.detail for flaw in dialogue_checks.follows_plan(turns, plan)]
        planned = f"as planned: {len(plan.turns)}, each with its role and strategy"
        found.append(Figure("turns", len(turns), "; ".join(wrong) or planned, not wrong))
    for name, flaws in (
        ("phases", dialogue_checks.keeps_phases(turns, recipe.catalogue.taxonomy, recipe.config.rules)),
        ("description", dialogue_checks.description(dialogue.description, language)),
        ("crisis language", safety.answers_crisis(turns, language)),
        ("unsafe phrases", [flaw for text in helpers for flaw in safety.harmless(text, language)]),
    ):
        found.append(Figure(name, len(flaws), "; ".join(flaw.detail for flaw in flaws) or "no fault found", not flaws))
    return tuple(found)
