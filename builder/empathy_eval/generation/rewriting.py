"""Rewriting of every helper turn into its variants: near ones as edits, far ones without seeing the turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from empathy_eval.base.hashing import derived_random
from empathy_eval.base.text import edit_ratio, overlap, words
from empathy_eval.completions.asker import Answer, Asker, gather_all
from empathy_eval.completions.requests import Failure, Flaw
from empathy_eval.design.configuration import SAMPLES_PER_CANDIDATE, Configuration
from empathy_eval.design.contrasts import PAIR_VARIANTS
from empathy_eval.design.kinds import NEAR_APATHETIC, Kind, rewritings
from empathy_eval.design.language import Language
from empathy_eval.design.planning import PlannedTurn
from empathy_eval.design.prompts import Message
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.word_list import NOT_CHOSEN
from empathy_eval.generation.checks import built_in
from empathy_eval.generation.checks.built_in import strategy_changed, too_toxic, toxicity, variant_flaws
from empathy_eval.generation.checks.custom import Check, flaws_by
from empathy_eval.generation.outcomes import Candidate, Dialogue, ItemTrail, Pair, Scene, Variant
from empathy_eval.generation.patterns import de_empathised

# A text and its toxicity.
Judged = tuple[str, float | None]
# Asks for a candidate, whose first sample has that number; what is left behind goes into a trail of its own.
Ask = Callable[[int, ItemTrail], Coroutine[Any, Any, Answer[Judged] | None]]
# The share of words that an edit changes at least: with less it is hardly another reply.
CHANGED_AT_LEAST = 0.12


async def choose_candidate(ask: Ask, config: Configuration, kind: Kind, trail: ItemTrail) -> Answer[Judged] | None:
    """The candidate whose words reveal its stance least, the first of equals; None if no candidate passed.

    Each has its own samples and repairs, and none sees another. Those that passed and were not chosen are in the trail.

    Raises:
        NoAnswer: if one of them was not answered; all others have been by then.
    """
    if config.words is None:
        return await ask(0, trail)
    # What is counted once is counted once over all of them.
    trails = [ItemTrail(usage=trail.usage, keys=trail.keys) for _ in range(config.candidates)]
    answers = await gather_all(*(ask(number * SAMPLES_PER_CANDIDATE, own) for number, own in enumerate(trails)))
    passed = {number: answer for number, answer in enumerate(answers) if answer is not None}
    chosen = None
    if passed:
        chosen = list(passed)[config.words.hardest(kind.variant or "", [answer.value[0] for answer in passed.values()])]
    for number, own in enumerate(trails):
        if number in passed and number != chosen:
            own.candidates[-1] = replace(own.candidates[-1], reasons=(NOT_CHOSEN,))
    _follow(trail, trails, config.samples * (1 + config.repairs), failed=not passed)
    return None if chosen is None else passed[chosen]


def _follow(trail: ItemTrail, trails: Sequence[ItemTrail], attempts: int, *, failed: bool) -> None:
    """Merges the trails of candidates in order, renumbering texts; a failure is final only if all candidates failed."""
    for number, own in enumerate(trails):
        last = failed and number == len(trails) - 1
        trail.failures += [(number * attempts + at, replace(failure, final=failure.final and last)) for at, failure in own.failures]
        for candidate in own.candidates:
            trail.candidates.append(replace(candidate, attempt=1 + sum(_place(before) == _place(candidate) for before in trail.candidates)))


def _place(candidate: Candidate) -> tuple[str, int]:
    return candidate.kind, candidate.turn


def scenes(dialogue: Dialogue, plan: tuple[PlannedTurn, ...], language: Language) -> list[Scene]:
    """The helper turns of a dialogue. A scene is flagged ``crisis`` if it or an earlier turn holds crisis language."""
    result, crisis, voices = [], False, (dialogue.helper_voice, dialogue.far_voice)
    for index, turn in enumerate(dialogue.turns):
        crisis = crisis or built_in.in_crisis(turn.text, language)
        if turn.role == "helper":
            flags = ("crisis",) if crisis else ()
            before = dialogue.turns[:index]
            result.append(Scene(dialogue.dialogue_id, dialogue.scenario_id, before, turn, plan[index], flags, language.code, voices))
    return result


def messages(recipe: Recipe, kind: Kind, scene: Scene) -> list[Message]:
    """The messages of a rewriting request; a far request gets nothing that it must not see."""
    taxonomy, variant, way = recipe.catalogue.taxonomy, kind.variant or "", scene.way(kind)
    seen: dict[str, Any] = {
        "taxonomy": taxonomy,
        "way": next((entry for entry in taxonomy.ways(variant) if entry.name == way), None),
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
        seen |= {"reference": text, "edit": EditBounds.of(len(words(text, scene.language)), recipe.config.checks.edit_ratio_below)}
    return recipe.prompts.render(kind.name, **seen)


def _without_warm_words(recipe: Recipe, kind: Kind, scene: Scene) -> bool:
    """Whether a friendly manner avoids warm words: half of them do, so that no such word reveals the stance."""
    friendly = {way.name for way in recipe.catalogue.taxonomy.ways(kind.variant or "") if way.friendly}
    drawn = derived_random(recipe.config.seed, "warm words", scene.dialogue_id, scene.place, kind.name).random()
    return scene.way(kind) in friendly and drawn < 0.5


def parse_answer(value: Any) -> str:
    """The text in a valid answer."""
    return str(value["text"]).strip()


@dataclass(frozen=True)
class EditBounds:
    """The words of a reply, and how many of them an edit changes: at least an eighth or so, and few enough to stay near."""

    words: int
    least: int
    most: int

    @classmethod
    def of(cls, count: int, below: float) -> EditBounds:
        """The bounds for a reply of ``count`` words and an edit ratio below ``below``."""
        most = max(math.ceil(count * below) - 1, 1)
        return cls(count, min(math.ceil(count * CHANGED_AT_LEAST), most), most)


@dataclass(frozen=True)
class Rewriter:
    """Writes the pairs of a dialogue; refusals are in the trail.

    A near request holds the turns before and the reference, a far one the turns before and the planned strategy. Neither holds a later
    turn, the description, or another variant.
    """

    asker: Asker
    recipe: Recipe
    checks: tuple[Check, ...]
    trail: ItemTrail

    async def pairs(self, dialogue: Dialogue, plan: tuple[PlannedTurn, ...]) -> tuple[Pair, ...]:
        """The pairs of all helper turns whose two variants passed; if one control failed, both are left out.

        Raises:
            NoAnswer: if a model did not answer; all other requests of the dialogue have been answered by then.
        """
        pairs = await gather_all(*(self._pair(scene) for scene in scenes(dialogue, plan, self.recipe.language) if scene.planned.edited))
        return tuple(pair for pair in pairs if pair is not None)

    async def _pair(self, scene: Scene) -> Pair | None:
        kinds = rewritings(scene.planned.controls)
        results = await gather_all(*(self._variant(kind, scene) for kind in kinds))
        variants = {kind.variant or "": variant for kind, variant in zip(kinds, results, strict=True)}
        apathetic, empathetic = (variants.pop(name) for name in PAIR_VARIANTS)
        if apathetic is None or empathetic is None:
            return None
        score = await toxicity(self.asker, scene.reference.text, scene.about(NEAR_APATHETIC))
        controls = variants if None not in variants.values() else {}
        return Pair(scene.place, scene.flags, score, apathetic, empathetic, **controls)

    async def _variant(self, kind: Kind, scene: Scene) -> Variant | None:
        """One variant; the near-apathetic one by rules, by the model, or by the model if rules do not suffice."""
        way = self.recipe.config.near_apathetic
        if kind != NEAR_APATHETIC or way == "model":
            return await self._asked(kind, scene)
        text = de_empathised(scene.reference.text, self.recipe.config.checks.edit_ratio_below, self.recipe.language)
        judged = await self._judged(kind, scene, text, self.trail)
        if not isinstance(judged, list):
            return _variant_of(kind, scene, (text, judged), ("rules", "rules", None))
        if way == "rules-then-model":
            return await self._asked(kind, scene)
        reasons = tuple(sorted({flaw.reason for flaw in judged}))
        self.trail.failures.append((1, Failure(kind.name, scene.place, reasons, final=True)))
        return None

    async def _asked(self, kind: Kind, scene: Scene) -> Variant | None:
        prompt = messages(self.recipe, kind, scene)

        async def ask(first: int, trail: ItemTrail) -> Answer[Judged] | None:
            async def judge(value: Any) -> Judged | list[Flaw]:
                text = parse_answer(value)
                judged = await self._judged(kind, scene, text, trail)
                return judged if isinstance(judged, list) else (text, judged)

            return await self.asker.ask(scene.about(kind), prompt, judge, trail, first)

        answer = await choose_candidate(ask, self.recipe.config, kind, self.trail)
        if answer is None:
            return None
        method = "seed" if self.recipe.config.models[kind.role].kind == "seed-bank" else "model"
        return _variant_of(kind, scene, answer.value, (method, answer.model, answer.request_key))

    async def _judged(self, kind: Kind, scene: Scene, text: str, trail: ItemTrail) -> float | None | list[Flaw]:
        """The toxicity of a text that passes all checks of a variant, or its flaws; the trail records it."""
        reference, limits, language = scene.reference, self.recipe.config.checks, self.recipe.language
        flaws = variant_flaws(kind, reference.text, text, scene.flags, limits, language)
        flaws += [] if kind.near else strategy_changed(reference.strategy, scene.strategy(kind))
        flaws += flaws_by(self.checks, lambda check: check.variant(kind.variant or "", text, scene))
        score, toxic = await too_toxic(self.asker, text, scene.about(kind), limits.toxicity)
        flaws += toxic
        trail.record_candidate(kind.name, scene.place, text, flaws)
        return flaws or score


def _variant_of(kind: Kind, scene: Scene, judged: tuple[str, float | None], how: tuple[str, str, str | None]) -> Variant:
    """The variant of a judged text; ``how`` is the method, the model and the request key."""
    (text, score), (method, model, key), reference = judged, how, scene.reference.text
    way, close = None if method == "rules" else scene.way(kind), (reference, text, scene.language)
    return Variant(text, scene.strategy(kind), method, model, edit_ratio(*close), overlap(*close), score, key, way)
