"""Rewriting: every helper turn into its variants, near ones as edits, far ones blind."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from empathy_eval.base.hashing import derived_random
from empathy_eval.base.text import edit_ratio, overlap, words
from empathy_eval.completions.asker import Answer, Asker, settled
from empathy_eval.completions.requests import Failure, Flaw
from empathy_eval.design.configuration import APART, Configuration
from empathy_eval.design.contrasts import PAIR_VARIANTS
from empathy_eval.design.kinds import NEAR_APATHETIC, Kind, rewritings
from empathy_eval.design.language import Language
from empathy_eval.design.planning import PlannedTurn
from empathy_eval.design.prompts import Message
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.word_list import NOT_CHOSEN
from empathy_eval.generation.checks import built_in
from empathy_eval.generation.checks.built_in import strategy_changed, too_toxic, toxicity, variant_flaws
from empathy_eval.generation.checks.own import Check, flaws_by
from empathy_eval.generation.outcomes import Candidate, Dialogue, ItemTrail, Pair, Scene, Variant
from empathy_eval.generation.patterns import de_empathised

# A text and its toxicity.
Judged = tuple[str, float | None]
# Asks for a candidate, whose first sample has that number; what is left behind goes into a trail of its own.
Ask = Callable[[int, ItemTrail], Coroutine[Any, Any, Answer[Judged] | None]]


async def hardest(ask: Ask, config: Configuration, kind: Kind, trail: ItemTrail) -> Answer[Judged] | None:
    """The candidate that words alone tell worst, the first of equals; None where no candidate passed.

    Each uses up its own samples and repairs, and none sees another. Those that passed and were not chosen are in the trail.

    Raises:
        NoAnswer: if one of them was not answered; all others have been by then.
    """
    if config.words is None:
        return await ask(0, trail)
    # What is counted once is counted once over all of them.
    trails = [ItemTrail(usage=trail.usage, keys=trail.keys) for _ in range(config.candidates)]
    found = await settled(*(ask(number * APART, own) for number, own in enumerate(trails)))
    passed = {number: answer for number, answer in enumerate(found) if answer is not None}
    chosen = None
    if passed:
        chosen = list(passed)[config.words.hardest(kind.variant or "", [answer.value[0] for answer in passed.values()])]
    for number, own in enumerate(trails):
        if number in passed and number != chosen:
            own.candidates[-1] = replace(own.candidates[-1], reasons=(NOT_CHOSEN,))
    _follow(trail, trails, config.samples * (1 + config.repairs), failed=not passed)
    return None if chosen is None else passed[chosen]


def _follow(trail: ItemTrail, trails: Sequence[ItemTrail], attempts: int, *, failed: bool) -> None:
    """Takes over what candidates left behind, one after the other, their texts numbered on; only where all failed a failure is final."""
    for number, own in enumerate(trails):
        last = failed and number == len(trails) - 1
        trail.failures += [(number * attempts + at, replace(one, final=one.final and last)) for at, one in own.failures]
        for one in own.candidates:
            trail.candidates.append(replace(one, attempt=1 + sum(_place(before) == _place(one) for before in trail.candidates)))


def _place(one: Candidate) -> tuple[str, int]:
    return one.kind, one.turn


# The share of words that an edit changes at least: with less it is hardly another reply.
CHANGED_AT_LEAST = 0.12


def scenes(dialogue: Dialogue, plan: tuple[PlannedTurn, ...], language: Language) -> list[Scene]:
    """The helper turns of a dialogue. A scene is flagged ``crisis`` if it or a turn before it holds crisis language."""
    found, crisis, voices = [], False, (dialogue.helper_voice, dialogue.far_voice)
    for place, turn in enumerate(dialogue.turns):
        crisis = crisis or built_in.in_crisis(turn.text, language)
        if turn.role == "helper":
            flags = ("crisis",) if crisis else ()
            before = dialogue.turns[:place]
            found.append(Scene(dialogue.dialogue_id, dialogue.scenario_id, before, turn, plan[place], flags, language.code, voices))
    return found


def messages(recipe: Recipe, kind: Kind, scene: Scene) -> list[Message]:
    """The messages of a rewriting request; what a far one may not see is not given to its template."""
    taxonomy, variant, way = recipe.catalogue.taxonomy, kind.variant or "", scene.way(kind)
    seen: dict[str, Any] = {
        "taxonomy": taxonomy,
        "way": next((one for one in taxonomy.ways(variant) if one.name == way), None),
        # The first example of each way is the same for all turns, and stands before the conversation; the others of this way after it.
        "gallery": recipe.catalogue.gallery(recipe.config.seed, scene.scenario_id, variant),
        "examples": recipe.catalogue.examples(recipe.config.seed, scene.scenario_id, variant, way)[1:] if way else [],
        "exemplar": recipe.catalogue.exemplar(recipe.config.seed, scene.scenario_id),
        "context": scene.context,
        "limits": recipe.config.checks,
        "strategy": scene.strategy(kind),
        "length": (length := scene.length(kind)) and max(length, recipe.config.checks.helper_words_at_least),
        "telltale": recipe.catalogue.telltale,
        "voice": recipe.catalogue.voice(scene.voice(kind)),
        "without_warm_words": _without_warm_words(recipe, kind, scene),
    }
    if kind.near:
        text = scene.reference.text
        seen |= {"reference": text, "edit": Edit.of(len(words(text, scene.language)), recipe.config.checks.edit_ratio_below)}
    return recipe.prompts.render(kind.name, **seen)


def _without_warm_words(recipe: Recipe, kind: Kind, scene: Scene) -> bool:
    """Whether a text of a friendly manner is asked for without warm words: half of them are, so that no such word tells the stance."""
    friendly = {way.name for way in recipe.catalogue.taxonomy.ways(kind.variant or "") if way.friendly}
    drawn = derived_random(recipe.config.seed, "warm words", scene.dialogue_id, scene.place, kind.name).random()
    return scene.way(kind) in friendly and drawn < 0.5


def said_in(value: Any) -> str:
    """The text of a valid answer."""
    return str(value["text"]).strip()


@dataclass(frozen=True)
class Edit:
    """How many words a reply has, and how many of them are to be changed: at least an eighth or so, and so few that it stays near."""

    words: int
    least: int
    most: int

    @classmethod
    def of(cls, count: int, below: float) -> Edit:
        """For a reply of so many words and an edit ratio below that."""
        most = max(math.ceil(count * below) - 1, 1)
        return cls(count, min(math.ceil(count * CHANGED_AT_LEAST), most), most)


@dataclass(frozen=True)
class Rewriter:
    """Makes the pairs of a dialogue; what is not taken on the way is in the trail.

    A near request holds the turns before and the reference, a far one the turns before and the planned strategy. Neither
    holds a later turn, the description, or another variant.
    """

    asker: Asker
    recipe: Recipe
    checks: tuple[Check, ...]
    trail: ItemTrail

    async def pairs(self, dialogue: Dialogue, plan: tuple[PlannedTurn, ...]) -> tuple[Pair, ...]:
        """The pairs of all helper turns whose two variants passed; where one control failed both are left out.

        Raises:
            NoAnswer: if a model did not answer; all other requests of the dialogue have been answered by then.
        """
        made = await settled(*(self._pair(scene) for scene in scenes(dialogue, plan, self.recipe.language) if scene.planned.edited))
        return tuple(pair for pair in made if pair is not None)

    async def _pair(self, scene: Scene) -> Pair | None:
        kinds = rewritings(scene.planned.controls)
        made = await settled(*(self._variant(kind, scene) for kind in kinds))
        variants = {kind.variant or "": one for kind, one in zip(kinds, made, strict=True)}
        apathetic, empathetic = (variants.pop(name) for name in PAIR_VARIANTS)
        if apathetic is None or empathetic is None:
            return None
        score = await toxicity(self.asker, scene.reference.text, scene.about(NEAR_APATHETIC))
        controls = variants if None not in variants.values() else {}
        return Pair(scene.place, scene.flags, score, apathetic, empathetic, **controls)

    async def _variant(self, kind: Kind, scene: Scene) -> Variant | None:
        """One variant; the near-apathetic one by rules, by the model, or by the model where the rules do not reach."""
        way = self.recipe.config.near_apathetic
        if kind != NEAR_APATHETIC or way == "model":
            return await self._asked(kind, scene)
        text = de_empathised(scene.reference.text, self.recipe.config.checks.edit_ratio_below, self.recipe.language)
        judged = await self._judged(kind, scene, text, self.trail)
        if not isinstance(judged, list):
            return _made(kind, scene, (text, judged), ("rules", "rules", None))
        if way == "rules-then-model":
            return await self._asked(kind, scene)
        reasons = tuple(sorted({flaw.reason for flaw in judged}))
        self.trail.failures.append((1, Failure(kind.name, scene.place, reasons, final=True)))
        return None

    async def _asked(self, kind: Kind, scene: Scene) -> Variant | None:
        said = messages(self.recipe, kind, scene)

        async def ask(first: int, trail: ItemTrail) -> Answer[Judged] | None:
            async def judge(value: Any) -> Judged | list[Flaw]:
                text = said_in(value)
                judged = await self._judged(kind, scene, text, trail)
                return judged if isinstance(judged, list) else (text, judged)

            return await self.asker.ask(scene.about(kind), said, judge, trail, first)

        answer = await hardest(ask, self.recipe.config, kind, self.trail)
        if answer is None:
            return None
        method = "seed" if self.recipe.config.models[kind.role].kind == "seed-bank" else "model"
        return _made(kind, scene, answer.value, (method, answer.model, answer.request_key))

    async def _judged(self, kind: Kind, scene: Scene, text: str, trail: ItemTrail) -> float | None | list[Flaw]:
        """The toxicity of a text that passes all checks of a variant, or its flaws; either is in that trail."""
        reference, limits, language = scene.reference, self.recipe.config.checks, self.recipe.language
        found = variant_flaws(kind, reference.text, text, scene.flags, limits, language)
        found += [] if kind.near else strategy_changed(reference.strategy, scene.strategy(kind))
        found += flaws_by(self.checks, lambda check: check.variant(kind.variant or "", text, scene))
        score, toxic = await too_toxic(self.asker, text, scene.about(kind), limits.toxicity)
        found += toxic
        trail.judged(kind.name, scene.place, text, found)
        return found or score


def _made(kind: Kind, scene: Scene, judged: tuple[str, float | None], how: tuple[str, str, str | None]) -> Variant:
    """The variant of a judged text; ``how`` is the method, the model and the key of the request."""
    (text, score), (method, model, key), reference = judged, how, scene.reference.text
    way, close = None if method == "rules" else scene.way(kind), (reference, text, scene.language)
    return Variant(text, scene.strategy(kind), method, model, edit_ratio(*close), overlap(*close), score, key, way)
