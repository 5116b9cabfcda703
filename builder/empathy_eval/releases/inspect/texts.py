"""Texts of a dialogue or a pair with their origin and the figures of their checks; addresses of texts."""

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

NAME = re.compile(r"(\d{3}-(?:seed|\d{5,9})(?:-r[1-9]\d{0,3})?)(?:-t(\d{2,4}))?(?:-x([1-9]\d{0,3}))?(?:/([a-z_]+))?")
KEY = re.compile(rf"(?:{SCHEME}-)?([0-9a-f]{{8,64}})")
# Kind of request by the variant that it makes.
KIND_OF = {kind.variant: kind.name for kind in KINDS.values() if kind.variant}
FORMS = (
    "a dialogue (017-00042), a pair or a turn (017-00042-t05), a variant (017-00042-t05/empathetic), a crossed item (017-00042-x1), or "
    "at least 8 hex digits of a key"
)
SEED = "a seed: {} of the scenario's file; no model was asked in this build"
CURATED = SEED.format("a crossed item")
# Decimals of figures.
PLACES = 4


def variant_figures(
    kind: Kind, reference: str, text: str, score: float | None, recipe: Recipe, flags: Sequence[str]
) -> tuple[CheckFigure, ...]:
    """Returns the figures of a variant; none of a text over the length limit."""
    if max(len(reference), len(text)) > LONGEST:
        return ()
    return tuple(_variant(kind, reference, text, score, recipe, flags))


def crossed_figures(item: CrossedOutcome, seeker: str, recipe: Recipe) -> tuple[CheckFigure, ...]:
    """Returns the figures of a crossed item whose twin changes the text ``seeker``; none of texts over the length limit."""
    if max(map(len, (seeker, item.twin, item.reply_1, item.reply_2))) > LONGEST:
        return ()
    limits, code = recipe.config.checks, recipe.language.code
    bounds, changed, count = Bounds.of(item.reply_1, limits, code), changed_words(seeker, item.twin, code), len(words(item.reply_2, code))
    share = overlap(item.reply_1, item.reply_2, code)
    least, most = bounds.changed_least, bounds.changed_most
    return (
        CheckFigure("changed words", changed, f"{least} to {most}", least <= changed <= most),
        CheckFigure("words of reply_2", count, f"{bounds.least} to {bounds.most}", bounds.least <= count <= bounds.most),
        CheckFigure("overlap of the replies", round(share, PLACES), f"at most {limits.overlap_at_most:g}", share <= limits.overlap_at_most),
    )


def flags_at(dialogue: Dialogue, turn: int, language: Language) -> tuple[str, ...]:
    """Returns ``crisis`` if a turn or one before it holds crisis language."""
    texts = [earlier.text for earlier in dialogue.turns[: turn + 1]]
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
    """Returns the figures of a helper turn; none over the length limit."""
    return tuple(_helper(text, score, recipe)) if len(text) <= LONGEST else ()


def _helper(text: str, score: float | None, recipe: Recipe) -> Iterator[CheckFigure]:
    limits, language = recipe.config.checks, recipe.language
    count, least = len(words(text, language.code)), limits.helper_words_at_least
    yield CheckFigure("words", count, f"at least {least}", count >= least)
    if score is not None and limits.toxicity:
        most = limits.toxicity.at_most
        yield CheckFigure(f"toxicity ({limits.toxicity.scorer})", score, f"at most {most:g}", score <= most)
    unsafe = [flaw.detail for flaw in built_in.harmless(text, language)]
    yield CheckFigure("unsafe phrases", len(unsafe), "; ".join(unsafe) or "none", not unsafe)


def dialogue_figures(dialogue: Dialogue, plan: Plan | None, recipe: Recipe, scores: Mapping[str, float]) -> tuple[CheckFigure, ...]:
    """Returns the figures of a whole dialogue; none for an unknown strategy or a text over the length limit."""
    turns, limits, language = dialogue.turns, recipe.config.checks, recipe.language
    odd = {turn.strategy for turn in turns if turn.strategy and turn.strategy not in recipe.catalogue.taxonomy}
    if odd or any(len(turn.text) > LONGEST for turn in turns):
        return ()
    helpers = [turn.text for turn in turns if turn.role == "helper"]
    shortest = min((len(words(text, language.code)) for text in helpers), default=0)
    enough = not [*built_in.says_enough(turns, limits, language.code)]
    figures = [CheckFigure("words of the shortest helper turn", shortest, f"at least {limits.helper_words_at_least}", enough)]
    if limits.toxicity and (known := [scores[text] for text in helpers if text in scores]):
        most = limits.toxicity.at_most
        figures.append(CheckFigure(f"highest toxicity ({limits.toxicity.scorer})", max(known), f"at most {most:g}", max(known) <= most))
    if plan:
        wrong = [flaw.detail for flaw in built_in.follows_plan(turns, plan)]
        planned = f"as planned: {len(plan.turns)}, each with its role and strategy"
        figures.append(CheckFigure("turns", len(turns), "; ".join(wrong) or planned, not wrong))
    for name, flaws in (
        ("phases", built_in.keeps_phases(turns, recipe.catalogue.taxonomy, recipe.config.rules)),
        ("description", built_in.description(dialogue.description, language)),
        ("crisis language", built_in.answers_crisis(turns, language)),
        ("unsafe phrases", [flaw for text in helpers for flaw in built_in.harmless(text, language)]),
    ):
        figures.append(CheckFigure(name, len(flaws), "; ".join(flaw.detail for flaw in flaws) or "no fault found", not flaws))
    return tuple(figures)


@dataclass(frozen=True)
class OutcomeTexts:
    """Texts of an outcome, stored or replayed."""

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
        """Returns the description with the checks of the dialogue, then its turns."""
        dialogue = self.dialogue
        figures = dialogue_figures(dialogue, self.plan, self.recipe, self._scores) if self.recipe else ()
        return self._of_dialogue("description", dialogue.description, None, figures), *self.turns(len(dialogue.turns))

    def _of_dialogue(self, name: str, text: str, strategy: str | None, figures: tuple[CheckFigure, ...]) -> ShownText:
        """Returns a text of the request that wrote the dialogue."""
        dialogue = self.dialogue
        seed, model = SEED.format("the dialogue"), f"written by {dialogue.model}, the whole dialogue at once"
        origin = seed if dialogue.source == "seed" else model
        key = dialogue.request_key or None
        return ShownText(name, text, origin, self._strategy_name(strategy), model=dialogue.model, request_key=key, figures=figures)

    def turns(self, before: int) -> tuple[ShownText, ...]:
        """Returns the turns before a turn, without an origin, which is that of the dialogue."""
        turns = enumerate(self.dialogue.turns[:before])
        return tuple(ShownText(f"t{index:02d} {turn.role}", turn.text, "", self._strategy_name(turn.strategy)) for index, turn in turns)

    def _strategy_name(self, strategy: str | None) -> str | None:
        """Returns the name of a strategy, as in releases."""
        taxonomy = self.recipe.catalogue.taxonomy if self.recipe else None
        return taxonomy[strategy].name if taxonomy and strategy is not None and strategy in taxonomy else strategy

    def turn(self, index: int) -> ShownText:
        """Returns a turn of the dialogue, which is the reference of a pair if it is the helper's."""
        turn = self.dialogue.turns[index]
        if turn.role != "helper":
            return self._of_dialogue("turn of the seeker", turn.text, turn.strategy, ())
        figures = helper_figures(turn.text, self._scores.get(turn.text), self.recipe) if self.recipe else ()
        return self._of_dialogue("reference", turn.text, turn.strategy, figures)

    def variants(self, turn: int, kind: str | None) -> Iterator[ShownText]:
        """Yields the variants of a pair, or that of one kind."""
        for pair in (pair for pair in self.outcome.pairs if pair.turn == turn):
            for name in VARIANTS:
                if (variant := getattr(pair, name)) and kind in (None, KIND_OF[name]):
                    yield self._variant(pair, name, variant)

    def _variant(self, pair: Pair, name: str, variant: Variant) -> ShownText:
        figures = self._figures(pair.turn, KINDS[KIND_OF[name]], variant.text, variant.toxicity)
        if self.recipe:
            if not KINDS[KIND_OF[name]].near:
                own, other = (self._strategy_name(of) for of in (variant.strategy, self.dialogue.turns[pair.turn].strategy))
                figures += (CheckFigure("strategy", own or "", f"other than {other}", own != other),)
            figures += self._word_figures(name, variant.text) if variant.method != "rules" else ()
        origin, strategy = self._origin(name, variant, self.dialogue.turns[pair.turn].text), self._strategy_name(variant.strategy)
        return ShownText(name, variant.text, origin, strategy, variant.way, variant.model, variant.request_key, figures)

    def _figures(self, turn: int, kind: Kind, text: str, score: float | None) -> tuple[CheckFigure, ...]:
        """Returns the figures of a variant of a turn; none without a recipe."""
        if self.recipe is None:
            return ()
        flags = flags_at(self.dialogue, turn, self.recipe.language)
        return variant_figures(kind, self.dialogue.turns[turn].text, text, score, self.recipe, flags)

    def _word_figures(self, variant: str, text: str) -> tuple[CheckFigure, ...]:
        """Returns the score of a text by the word list that chose among candidates; none without a list."""
        words = self.recipe.config.words if self.recipe else None
        if words is None or len(text) > LONGEST:
            return ()
        side = f"{words.contrast_of(variant)}: of those that pass, the lowest is released"
        return (CheckFigure("words alone tell it", words.giveaway(variant, text) / UNIT, side, holds=True),)

    def _origin(self, name: str, variant: Variant, reference: str) -> str:
        if variant.method == "seed":
            return SEED.format(f"the variant {name}")
        if variant.method != "rules":
            return f"written by {variant.model} for a request of the kind {KIND_OF[name]}"
        # A release may say "rules" although its configuration has no such file, and the rules here may lack it too.
        if self.recipe is None or len(reference) > LONGEST or not {"apathetic", "pointers"} <= self.recipe.language.rules.keys():
            return "made by rules/apathetic.yaml: no model was asked"
        edits = rules_applied(reference, self.recipe.config.checks.edit_ratio_below, self.recipe.language)
        changes = "; ".join(f'{rule}: "{marker}" became "{new}"' for rule, marker, new in edits)
        return f"made by rules/apathetic.yaml, no model was asked: {changes or 'its rules differ from those here'}"

    def crossed(self, turn: int) -> Iterator[ShownText]:
        """Yields the texts of the crossed item of a turn: the twin of the seeker's turn before it, both replies, and the reason."""
        for item in (item for item in self.outcome.crossed if item.turn == turn):
            key, model, own = (item.request_keys or (None,))[0], item.writer, "the turn of the dialogue"
            origin = f"written by {item.writer}; {item.judge} chose the fitting reply, twice for each context"
            if item.source == "seed":
                origin = own = CURATED
            figures = crossed_figures(item, self.dialogue.turns[turn - 1].text, self.recipe) if self.recipe and key else ()
            instead = f"what the seeker says instead in context 2; {origin}"
            yield ShownText(f"{item.crossed_id} twin", item.twin, instead, model=model, request_key=key)
            yield ShownText(f"{item.crossed_id} reply_1", item.reply_1, own)
            yield ShownText(f"{item.crossed_id} reply_2", item.reply_2, origin, model=model, request_key=key, figures=figures)
            yield ShownText(f"{item.crossed_id} reason", item.reason, origin)

    def refused(self, turn: int | None, kind: str | None) -> Iterator[ShownText]:
        """Yields the texts that reached the checks and are not in the dialogue, of all turns or one."""
        for candidate in self.outcome.candidates:
            if turn in (None, candidate.turn) and kind in (None, candidate.kind):
                row, figures = KINDS[candidate.kind], tuple[CheckFigure, ...]()
                if self.recipe and 0 <= candidate.turn < len(self.dialogue.turns):
                    figures = self._figures(candidate.turn, row, candidate.text, self._scores.get(candidate.text))
                    figures += self._word_figures(row.variant or "", candidate.text)
                origin = "refused" if candidate.reasons else "passed its checks, but the pair of its turn is left out"
                if candidate.reasons == (NOT_CHOSEN,):
                    origin = f"candidate {candidate.attempt}, which passed its checks but was not chosen"
                name = f"{row.variant}" + (f" of t{candidate.turn:02d}" if turn is None else "")
                yield ShownText(name, candidate.text, origin, figures=figures, reasons=candidate.reasons)


@dataclass(frozen=True)
class TextAddress:
    """Address of a dialogue, a turn, a kind of request of a turn, one request, or a crossed item by its number."""

    dialogue_id: str
    turn: int | None = None
    kind: str | None = None
    key: str | None = None
    item: int | None = None

    @property
    def name(self) -> str:
        """The id of the crossed item, of the pair or turn, or of the dialogue."""
        if self.item is not None:
            return f"{self.dialogue_id}-x{self.item}"
        return self.dialogue_id if self.turn is None else pair_id(self.dialogue_id, self.turn)


def parse_address(name: str) -> TextAddress | str:
    """Parses an id; returns its address, or the beginning of a key. Raises InputError if it is neither."""
    if key := KEY.fullmatch(name):
        return f"{SCHEME}-{key[1]}"
    match = NAME.fullmatch(name)
    if not match or (match[3] and (match[2] or match[4])):
        raise input_error("ID", f'"{name[:100]}" is not an id', f"name {FORMS}")
    dialogue_id, turn, item, variant = match.groups()
    kind = KIND_OF.get(variant, variant)
    if variant and (kind not in KIND_OF.values() or turn is None):
        raise input_error("ID", f'"{name[:100]}" does not name a variant of a pair', f"name one of these: {', '.join(KIND_OF)}")
    return TextAddress(dialogue_id, None if turn is None else int(turn), kind, item=int(item) if item else None)


def unknown_id(name: str, source: str, ids: Iterable[str]) -> InputError:
    """Returns the error for an id that does not exist, with the nearest ones."""
    near = nearest_ids(name, ids)
    return input_error("ID", f'"{name}" is not in {source}', f"name one that exists: {near}" if near else f"name {FORMS}")
