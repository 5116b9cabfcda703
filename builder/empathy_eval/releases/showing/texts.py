"""The texts of a dialogue or a pair, each with how it was made and what its checks looked at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from empathy_eval.completions.answer_text import LONGEST
from empathy_eval.design.kinds import KINDS
from empathy_eval.design.planning import Plan
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.word_list import NOT_CHOSEN, UNIT
from empathy_eval.generation.marker_edits import rules_applied
from empathy_eval.generation.outcomes import VARIANTS, Dialogue, Outcome, Pair, Variant
from empathy_eval.generation.retrace import Trace
from empathy_eval.releases.showing.figures import crossed_figures, dialogue_figures, flags_at, helper_figures, variant_figures
from empathy_eval.releases.showing.names import VARIANTS as KIND_OF
from empathy_eval.releases.showing.shown import Figure, Text

SEED = "a seed: {}{} of the scenario's file; no model was asked in this build"

CURATED = SEED.format("a crossed item", "")


@dataclass(frozen=True)
class Texts:
    """The texts of an outcome, as a folder holds it or as its replay gives it."""

    outcome: Outcome
    dialogue: Dialogue
    recipe: Recipe | None
    plan: Plan | None
    trace: Trace | None

    @property
    def _scores(self) -> dict[str, float]:
        known = {self.dialogue.turns[one.turn].text: one.reference_toxicity for one in self.outcome.pairs}
        return (self.trace.scores if self.trace else {}) | {text: score for text, score in known.items() if score is not None}

    def whole(self) -> tuple[Text, ...]:
        """The description with the checks of the dialogue, then its turns."""
        dialogue = self.dialogue
        figures = dialogue_figures(dialogue, self.plan, self.recipe, self._scores) if self.recipe else ()
        key = dialogue.request_key or None
        first = Text("description", dialogue.description, self._written(), model=dialogue.model, request_key=key, figures=figures)
        return first, *self.turns(len(dialogue.turns))

    def turns(self, before: int) -> tuple[Text, ...]:
        """The turns before a place, without how they were made: the dialogue says it."""
        turns = enumerate(self.dialogue.turns[:before])
        return tuple(Text(f"t{place:02d} {turn.role}", turn.text, "", self._named(turn.strategy)) for place, turn in turns)

    def _named(self, strategy: str | None) -> str | None:
        """The name of a strategy, as releases have it."""
        taxonomy = self.recipe.catalogue.taxonomy if self.recipe else None
        return taxonomy[strategy].name if taxonomy and strategy is not None and strategy in taxonomy else strategy

    def _written(self) -> str:
        if self.dialogue.source == "seed":
            return SEED.format("the dialogue", "")
        return f"written by {self.dialogue.model}, the whole dialogue at once"

    def turn(self, place: int) -> Text:
        """A turn of the dialogue: the reference of a pair, if a helper speaks."""
        turn = self.dialogue.turns[place]
        figures = tuple[Figure, ...]()
        if turn.role == "helper" and self.recipe:
            figures = helper_figures(turn.text, self._scores.get(turn.text), self.recipe)
        name = "reference" if turn.role == "helper" else "turn of the seeker"
        key = self.dialogue.request_key or None
        return Text(
            name, turn.text, self._written(), self._named(turn.strategy), model=self.dialogue.model, request_key=key, figures=figures
        )

    def variants(self, place: int, kind: str | None) -> Iterator[Text]:
        """The variants of a pair, or that of one kind."""
        pair = next((one for one in self.outcome.pairs if one.turn == place), None)
        for name in VARIANTS if pair else ():
            made: Variant | None = getattr(pair, name)
            if pair and made and kind in (None, KIND_OF[name]):
                yield self._variant(pair, name, made)

    def _variant(self, pair: Pair, name: str, made: Variant) -> Text:
        reference, figures = self.dialogue.turns[pair.turn].text, tuple[Figure, ...]()
        if self.recipe:
            kind, flags = KINDS[KIND_OF[name]], flags_at(self.dialogue, pair.turn, self.recipe.language)
            figures = variant_figures(kind, reference, made.text, made.toxicity, self.recipe, flags)
            if not kind.near:
                other, name_of = self.dialogue.turns[pair.turn].strategy, self._named
                figures += (Figure("strategy", name_of(made.strategy) or "", f"other than {name_of(other)}", made.strategy != other),)
            figures += self._told(name, made.text) if made.method != "rules" else ()
        how = self._made(name, made, reference)
        return Text(name, made.text, how, self._named(made.strategy), made.way, made.model, made.request_key, figures)

    def _told(self, variant: str, text: str) -> tuple[Figure, ...]:
        """How the word list tells a text, where candidates were asked for."""
        words = self.recipe.config.words if self.recipe else None
        if words is None or len(text) > LONGEST:
            return ()
        side = f"{words.contrast_of(variant)}: of those that pass, the lowest is released"
        return (Figure("words alone tell it", words.giveaway(variant, text) / UNIT, side, holds=True),)

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

    def crossed(self, place: int) -> Iterator[Text]:
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
            yield Text(f"{item.crossed_id} twin", item.twin, instead, model=model, request_key=key)
            yield Text(f"{item.crossed_id} reply_1", item.reply_1, CURATED if item.source == "seed" else "the turn of the dialogue")
            yield Text(f"{item.crossed_id} reply_2", item.reply_2, how, model=model, request_key=key, figures=figures)
            yield Text(f"{item.crossed_id} reason", item.reason, how)

    def refused(self, place: int | None, kind: str | None) -> Iterator[Text]:
        """The texts that reached the checks and are not among those of the dialogue, or of a turn of it."""
        for one in self.outcome.candidates:
            if place in (None, one.turn) and kind in (None, one.kind):
                name = f"{KINDS[one.kind].variant}" + (f" of t{one.turn:02d}" if place is None else "")
                figures = tuple[Figure, ...]()
                if self.recipe and 0 <= one.turn < len(self.dialogue.turns):
                    reference, score = self.dialogue.turns[one.turn].text, self._scores.get(one.text)
                    flags = flags_at(self.dialogue, one.turn, self.recipe.language)
                    figures = variant_figures(KINDS[one.kind], reference, one.text, score, self.recipe, flags)
                    figures += self._told(KINDS[one.kind].variant or "", one.text)
                why = "refused" if one.reasons else "passed its checks, but the pair of its turn is left out"
                why = f"candidate {one.attempt}, which passed its checks but was not chosen" if one.reasons == (NOT_CHOSEN,) else why
                yield Text(name, one.text, why, figures=figures, reasons=one.reasons)
