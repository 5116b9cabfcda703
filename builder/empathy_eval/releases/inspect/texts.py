"""The texts of a dialogue or a pair, each with how it was made and what its checks looked at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from empathy_eval.base.errors import InputError, input_error
from empathy_eval.base.hashing import SCHEME
from empathy_eval.base.text import edit_ratio, overlap, words
from empathy_eval.completions.requests import LONGEST
from empathy_eval.design.dataset import pair_id
from empathy_eval.design.errata import nearest_ids
from empathy_eval.design.kinds import KINDS, Kind
from empathy_eval.design.language import Language
from empathy_eval.design.planning import Plan
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import changed_words
from empathy_eval.design.word_list import NOT_CHOSEN, UNIT
from empathy_eval.generation.checks import built_in
from empathy_eval.generation.crossed_by_models import Bounds
from empathy_eval.generation.outcomes import VARIANTS, CrossedOutcome, Dialogue, Outcome, Pair, Variant
from empathy_eval.generation.patterns import rules_applied
from empathy_eval.generation.replay_item import Trace
from empathy_eval.releases.inspect.shown import CheckFigure, ShownText

# Figures are told to so many places.
PLACES = 4


def variant_figures(
    kind: Kind, reference: str, text: str, score: float | None, recipe: Recipe, flags: Sequence[str]
) -> tuple[CheckFigure, ...]:
    """The figures of a variant; none of a text that is longer than any that is looked at."""
    if max(len(reference), len(text)) > LONGEST:
        return ()
    return tuple(_variant(kind, reference, text, score, recipe, flags))


def crossed_figures(item: CrossedOutcome, said: str, recipe: Recipe) -> tuple[CheckFigure, ...]:
    """The figures of a crossed item, where ``said`` is what its twin changes; none of texts that are longer than any that is looked at."""
    if max(len(one) for one in (said, item.twin, item.reply_1, item.reply_2)) > LONGEST:
        return ()
    limits, code = recipe.config.checks, recipe.language.code
    bounds, changed, count = Bounds.of(item.reply_1, limits, code), changed_words(said, item.twin, code), len(words(item.reply_2, code))
    share = overlap(item.reply_1, item.reply_2, code)
    least, most = bounds.changed_least, bounds.changed_most
    return (
        CheckFigure("changed words", changed, f"{least} to {most}", least <= changed <= most),
        CheckFigure("words of reply_2", count, f"{bounds.least} to {bounds.most}", bounds.least <= count <= bounds.most),
        CheckFigure("overlap of the replies", round(share, PLACES), f"at most {limits.overlap_at_most:g}", share <= limits.overlap_at_most),
    )


def flags_at(dialogue: Dialogue, turn: int, language: Language) -> tuple[str, ...]:
    """``crisis`` if a turn or one before it holds crisis language."""
    texts = [one.text for one in dialogue.turns[: turn + 1]]
    return ("crisis",) if any(len(text) <= LONGEST and built_in.in_crisis(text, language) for text in texts) else ()


def _variant(kind: Kind, reference: str, text: str, score: float | None, recipe: Recipe, flags: Sequence[str]) -> Iterator[CheckFigure]:
    limits, language = recipe.config.checks, recipe.language
    if kind.near:
        ratio, below = edit_ratio(reference, text, language.code), limits.edit_ratio_below
        yield CheckFigure("edit ratio", round(ratio, PLACES), f"above 0, below {below:g}", 0 < ratio < below)
    else:
        share, most = overlap(reference, text, language.code), limits.overlap_at_most
        yield CheckFigure("overlap", round(share, PLACES), f"at most {most:g}", share <= most)
    yield from _helper(text, score, recipe)
    if "crisis" in flags and built_in.points_to_help(reference, language):
        points = built_in.points_to_help(text, language)
        yield CheckFigure("points to help", "yes" if points else "no", "as the reference does", points)


def helper_figures(text: str, score: float | None, recipe: Recipe) -> tuple[CheckFigure, ...]:
    """The figures of a helper turn."""
    return tuple(_helper(text, score, recipe)) if len(text) <= LONGEST else ()


def _helper(text: str, score: float | None, recipe: Recipe) -> Iterator[CheckFigure]:
    limits, language = recipe.config.checks, recipe.language
    count, least = len(words(text, language.code)), limits.helper_words_at_least
    yield CheckFigure("words", count, f"at least {least}", count >= least)
    if score is not None and limits.toxicity:
        most = limits.toxicity.at_most
        yield CheckFigure(f"toxicity ({limits.toxicity.scorer})", score, f"at most {most:g}", score <= most)
    found = [flaw.detail for flaw in built_in.harmless(text, language)]
    yield CheckFigure("unsafe phrases", len(found), "; ".join(found) or "none", not found)


def dialogue_figures(dialogue: Dialogue, plan: Plan | None, recipe: Recipe, scores: Mapping[str, float]) -> tuple[CheckFigure, ...]:
    """The figures of a whole dialogue."""
    turns, limits, language = dialogue.turns, recipe.config.checks, recipe.language
    odd = {turn.strategy for turn in turns if turn.strategy and turn.strategy not in recipe.catalogue.taxonomy}
    if odd or any(len(turn.text) > LONGEST for turn in turns):
        return ()
    helpers = [turn.text for turn in turns if turn.role == "helper"]
    shortest = min((len(words(text, language.code)) for text in helpers), default=0)
    enough = not [*built_in.says_enough(turns, limits, language.code)]
    found = [CheckFigure("words of the shortest helper turn", shortest, f"at least {limits.helper_words_at_least}", enough)]
    if limits.toxicity and (known := [scores[text] for text in helpers if text in scores]):
        most = limits.toxicity.at_most
        found.append(CheckFigure(f"highest toxicity ({limits.toxicity.scorer})", max(known), f"at most {most:g}", max(known) <= most))
    if plan:
        wrong = [flaw.detail for flaw in built_in.follows_plan(turns, plan)]
        planned = f"as planned: {len(plan.turns)}, each with its role and strategy"
        found.append(CheckFigure("turns", len(turns), "; ".join(wrong) or planned, not wrong))
    for name, flaws in (
        ("phases", built_in.keeps_phases(turns, recipe.catalogue.taxonomy, recipe.config.rules)),
        ("description", built_in.description(dialogue.description, language)),
        ("crisis language", built_in.answers_crisis(turns, language)),
        ("unsafe phrases", [flaw for text in helpers for flaw in built_in.harmless(text, language)]),
    ):
        found.append(CheckFigure(name, len(flaws), "; ".join(flaw.detail for flaw in flaws) or "no fault found", not flaws))
    return tuple(found)


SEED = "a seed: {}{} of the scenario's file; no model was asked in this build"

CURATED = SEED.format("a crossed item", "")


@dataclass(frozen=True)
class OutcomeTexts:
    """The texts of an outcome, as a folder holds it or as its replay gives it."""

    outcome: Outcome
    dialogue: Dialogue
    recipe: Recipe | None
    plan: Plan | None
    trace: Trace | None

    @property
    def _scores(self) -> dict[str, float]:
        known = {self.dialogue.turns[pair.turn].text: pair.reference_toxicity for pair in self.outcome.pairs}
        return (self.trace.scores if self.trace else {}) | {text: score for text, score in known.items() if score is not None}

    def whole(self) -> tuple[ShownText, ...]:
        """The description with the checks of the dialogue, then its turns."""
        dialogue = self.dialogue
        figures = dialogue_figures(dialogue, self.plan, self.recipe, self._scores) if self.recipe else ()
        key = dialogue.request_key or None
        first = ShownText("description", dialogue.description, self._written(), model=dialogue.model, request_key=key, figures=figures)
        return first, *self.turns(len(dialogue.turns))

    def turns(self, before: int) -> tuple[ShownText, ...]:
        """The turns before a place, without how they were made: the dialogue says it."""
        turns = enumerate(self.dialogue.turns[:before])
        return tuple(ShownText(f"t{place:02d} {turn.role}", turn.text, "", self._named(turn.strategy)) for place, turn in turns)

    def _named(self, strategy: str | None) -> str | None:
        """The name of a strategy, as releases have it."""
        taxonomy = self.recipe.catalogue.taxonomy if self.recipe else None
        return taxonomy[strategy].name if taxonomy and strategy is not None and strategy in taxonomy else strategy

    def _written(self) -> str:
        if self.dialogue.source == "seed":
            return SEED.format("the dialogue", "")
        return f"written by {self.dialogue.model}, the whole dialogue at once"

    def turn(self, place: int) -> ShownText:
        """A turn of the dialogue: the reference of a pair, if a helper speaks."""
        turn = self.dialogue.turns[place]
        figures = tuple[CheckFigure, ...]()
        if turn.role == "helper" and self.recipe:
            figures = helper_figures(turn.text, self._scores.get(turn.text), self.recipe)
        name = "reference" if turn.role == "helper" else "turn of the seeker"
        key = self.dialogue.request_key or None
        return ShownText(
            name, turn.text, self._written(), self._named(turn.strategy), model=self.dialogue.model, request_key=key, figures=figures
        )

    def variants(self, place: int, kind: str | None) -> Iterator[ShownText]:
        """The variants of a pair, or that of one kind."""
        pair = next((one for one in self.outcome.pairs if one.turn == place), None)
        for name in VARIANTS if pair else ():
            made: Variant | None = getattr(pair, name)
            if pair and made and kind in (None, KIND_OF[name]):
                yield self._variant(pair, name, made)

    def _variant(self, pair: Pair, name: str, made: Variant) -> ShownText:
        reference, figures = self.dialogue.turns[pair.turn].text, tuple[CheckFigure, ...]()
        if self.recipe:
            kind, flags = KINDS[KIND_OF[name]], flags_at(self.dialogue, pair.turn, self.recipe.language)
            figures = variant_figures(kind, reference, made.text, made.toxicity, self.recipe, flags)
            if not kind.near:
                other, name_of = self.dialogue.turns[pair.turn].strategy, self._named
                figures += (CheckFigure("strategy", name_of(made.strategy) or "", f"other than {name_of(other)}", made.strategy != other),)
            figures += self._told(name, made.text) if made.method != "rules" else ()
        how = self._made(name, made, reference)
        return ShownText(name, made.text, how, self._named(made.strategy), made.way, made.model, made.request_key, figures)

    def _told(self, variant: str, text: str) -> tuple[CheckFigure, ...]:
        """How the word list tells a text, where candidates were asked for."""
        words = self.recipe.config.words if self.recipe else None
        if words is None or len(text) > LONGEST:
            return ()
        side = f"{words.contrast_of(variant)}: of those that pass, the lowest is released"
        return (CheckFigure("words alone tell it", words.giveaway(variant, text) / UNIT, side, holds=True),)

    def _made(self, name: str, made: Variant, reference: str) -> str:
        if made.method == "seed":
            return SEED.format("the variant ", name)
        if made.method != "rules":
            return f"written by {made.model} for a request of the kind {KIND_OF[name]}"
        # A release may say "rules" where its configuration goes without that file, and the rules here may be without it too.
        if self.recipe is None or len(reference) > LONGEST or not {"apathetic", "pointers"} <= self.recipe.language.rules.keys():
            return "made by rules/apathetic.yaml: no model was asked"
        edits = rules_applied(reference, self.recipe.config.checks.edit_ratio_below, self.recipe.language)
        told = "; ".join(f'{rule}: "{marker}" became "{new}"' for rule, marker, new in edits)
        return f"made by rules/apathetic.yaml, no model was asked: {told or 'its rules differ from those here'}"

    def crossed(self, place: int) -> Iterator[ShownText]:
        """The crossed item of a turn: the twin of what the seeker says before it, both replies, and what tells them apart."""
        for item in (one for one in self.outcome.crossed if one.turn == place):
            key, model = (item.request_keys or (None,))[0], item.writer
            how = (
                CURATED
                if item.source == "seed"
                else f"written by {item.writer}; {item.judge} chose the fitting reply, twice for each context"
            )
            figures = crossed_figures(item, self.dialogue.turns[place - 1].text, self.recipe) if self.recipe and key else ()
            instead = f"what the seeker says instead in context 2; {how}"
            yield ShownText(f"{item.crossed_id} twin", item.twin, instead, model=model, request_key=key)
            yield ShownText(f"{item.crossed_id} reply_1", item.reply_1, CURATED if item.source == "seed" else "the turn of the dialogue")
            yield ShownText(f"{item.crossed_id} reply_2", item.reply_2, how, model=model, request_key=key, figures=figures)
            yield ShownText(f"{item.crossed_id} reason", item.reason, how)

    def refused(self, place: int | None, kind: str | None) -> Iterator[ShownText]:
        """The texts that reached the checks and are not among those of the dialogue, or of a turn of it."""
        for candidate in self.outcome.candidates:
            if place in (None, candidate.turn) and kind in (None, candidate.kind):
                name = f"{KINDS[candidate.kind].variant}" + (f" of t{candidate.turn:02d}" if place is None else "")
                figures = tuple[CheckFigure, ...]()
                if self.recipe and 0 <= candidate.turn < len(self.dialogue.turns):
                    reference, score = self.dialogue.turns[candidate.turn].text, self._scores.get(candidate.text)
                    flags = flags_at(self.dialogue, candidate.turn, self.recipe.language)
                    figures = variant_figures(KINDS[candidate.kind], reference, candidate.text, score, self.recipe, flags)
                    figures += self._told(KINDS[candidate.kind].variant or "", candidate.text)
                why = "refused" if candidate.reasons else "passed its checks, but the pair of its turn is left out"
                why = (
                    f"candidate {candidate.attempt}, which passed its checks but was not chosen"
                    if candidate.reasons == (NOT_CHOSEN,)
                    else why
                )
                yield ShownText(name, candidate.text, why, figures=figures, reasons=candidate.reasons)


NAME = re.compile(r"(\d{3}-(?:seed|\d{5,9})(?:-r[1-9]\d{0,3})?)(?:-t(\d{2,4}))?(?:-x([1-9]\d{0,3}))?(?:/([a-z_]+))?")


KEY = re.compile(rf"(?:{SCHEME}-)?([0-9a-f]{{8,64}})")


KIND_OF = {one.variant: one.name for one in KINDS.values() if one.variant}


FORMS = (
    "a dialogue (017-00042), a pair or a turn (017-00042-t05), a variant (017-00042-t05/empathetic), a crossed item (017-00042-x1), or "
    "at least 8 hex digits of a key"
)


@dataclass(frozen=True)
class TextAddress:
    """What is asked for: a dialogue, a turn of it, one kind of request there, one request, or a crossed item by its number."""

    dialogue_id: str
    turn: int | None = None
    kind: str | None = None
    key: str | None = None
    item: int | None = None

    @property
    def name(self) -> str:
        """The id of the crossed item, of the pair or the turn, or that of the dialogue."""
        if self.item is not None:
            return f"{self.dialogue_id}-x{self.item}"
        return self.dialogue_id if self.turn is None else pair_id(self.dialogue_id, self.turn)


def parse_address(name: str) -> TextAddress | str:
    """The place that a name says, or the beginning of a key.

    Raises:
        InputError: if it is neither.
    """
    if key := KEY.fullmatch(name):
        return f"{SCHEME}-{key[1]}"
    found = NAME.fullmatch(name)
    if not found:
        raise input_error("ID", f'"{name[:100]}" is not an id', f"name {FORMS}")
    dialogue_id, turn, item, variant = found.groups()
    if item and (turn or variant):
        raise input_error("ID", f'"{name[:100]}" is not an id', f"name {FORMS}")
    kind = KIND_OF.get(variant, variant)
    if variant and (kind not in KIND_OF.values() or turn is None):
        raise input_error("ID", f'"{name[:100]}" does not name a variant of a pair', f"name one of these: {', '.join(KIND_OF)}")
    return TextAddress(dialogue_id, None if turn is None else int(turn), kind, item=int(item) if item else None)


def unknown_id(name: str, source: str, there: Iterable[str]) -> InputError:
    """The error for an id that is not there, with those that are nearest."""
    near = nearest_ids(name, there)
    return input_error("ID", f'"{name}" is not in {source}', f"name one that exists: {near}" if near else f"name {FORMS}")
