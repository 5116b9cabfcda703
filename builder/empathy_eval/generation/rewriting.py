"""Rewriting: every helper turn into its variants, near ones as edits, far ones blind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from empathy_eval.base.text import edit_ratio, overlap, words
from empathy_eval.completions.asker import Asker, settled
from empathy_eval.completions.requests import About, Failure, Flaw, Kind
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.planning import PlannedTurn
from empathy_eval.design.prompts import Message, Prompts
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.generation.checks import contrast, safety
from empathy_eval.generation.checks.toxicity import Toxicity
from empathy_eval.generation.marker_edits import de_empathised
from empathy_eval.generation.outcomes import Dialogue, ItemTrail, Pair, Turn, Variant

Closeness = Literal["near", "far"]


@dataclass(frozen=True)
class Scene:
    """One helper turn in its place: the dialogue's id, the turns before, the turn itself, what is planned, the flags."""

    dialogue_id: str
    scenario_id: int
    context: tuple[Turn, ...]
    reference: Turn
    planned: PlannedTurn
    flags: tuple[str, ...]

    @property
    def place(self) -> int:
        """The place of the turn in its dialogue, from 0."""
        return len(self.context)

    def strategy(self, closeness: Closeness) -> str:
        """The strategy of a variant: near ones keep the reference's, far ones have the planned other one."""
        return (self.reference.strategy if closeness == "near" else self.planned.empathetic_strategy) or ""


def scenes(dialogue: Dialogue, plan: tuple[PlannedTurn, ...]) -> list[Scene]:
    """The helper turns of a dialogue. A scene is flagged ``crisis`` if it or a turn before it holds crisis language."""
    found, crisis = [], False
    for place, turn in enumerate(dialogue.turns):
        crisis = crisis or safety.in_crisis(turn.text)
        if turn.role == "helper":
            flags = ("crisis",) if crisis else ()
            found.append(Scene(dialogue.dialogue_id, dialogue.scenario_id, dialogue.turns[:place], turn, plan[place], flags))
    return found


def messages(prompts: Prompts, catalogue: Catalogue, config: Configuration, kind: Kind, scene: Scene) -> list[Message]:
    """The messages of a rewriting request; what a far one may not see is not given to its template."""
    exemplar = catalogue.exemplar(config.seed, scene.scenario_id)
    seen: dict[str, Any] = {"taxonomy": catalogue.taxonomy, "exemplar": exemplar, "context": scene.context, "limits": config.checks}
    if kind.startswith("near"):
        return prompts.render(kind, **seen, reference=scene.reference.text, strategy=scene.strategy("near"))
    return prompts.render(kind, **seen, strategy=scene.strategy("far"))


class Rewriter:
    """Makes the pairs of a dialogue.

    A near request holds the turns before and the reference, a far one the turns before and the planned strategy. Neither
    holds a later turn, the description, or another variant.
    """

    def __init__(self, asker: Asker, catalogue: Catalogue, config: Configuration, toxicity: Toxicity) -> None:
        self.asker = asker
        self.catalogue = catalogue
        self.config = config
        self.toxicity = toxicity

    async def pairs(self, dialogue: Dialogue, plan: tuple[PlannedTurn, ...], trail: ItemTrail) -> tuple[Pair, ...]:
        """The pairs of all helper turns whose two variants passed; where one control failed both are left out.

        Raises:
            NoAnswer: if a model did not answer; all other requests of the dialogue have been answered by then.
        """
        made = await settled(*(self._pair(scene, trail) for scene in scenes(dialogue, plan)))
        return tuple(pair for pair in made if pair is not None)

    async def _pair(self, scene: Scene, trail: ItemTrail) -> Pair | None:
        asked = [self._near_apathetic(scene, trail), self._asked("far", "far_empathetic", scene, trail)]
        if scene.planned.controls:
            asked += [self._asked("near", "near_empathetic", scene, trail), self._asked("far", "far_apathetic", scene, trail)]
        apathetic, empathetic, *controls = await settled(*asked)
        if apathetic is None or empathetic is None:
            return None
        score = await self.toxicity.score(scene.reference.text, self._about(scene, "score"))
        near_empathetic, far_apathetic = controls if controls and None not in controls else (None, None)
        return Pair(scene.place, scene.flags, score, apathetic, empathetic, near_empathetic, far_apathetic)

    async def _near_apathetic(self, scene: Scene, trail: ItemTrail) -> Variant | None:
        """By rules, by the model, or by the model where the rules do not reach."""
        if self.config.near_apathetic == "model":
            return await self._asked("near", "near_apathetic", scene, trail)
        text = de_empathised(scene.reference.text, self.config.checks.edit_ratio_below)
        judged = await self._judged("near", scene, text)
        trail.judged("near_apathetic", scene.place, text, judged if isinstance(judged, list) else ())
        if not isinstance(judged, list):
            return _variant("near", scene, text, judged, "rules", "rules", None)
        if self.config.near_apathetic == "rules-then-model":
            return await self._asked("near", "near_apathetic", scene, trail)
        reasons = tuple(sorted({flaw.reason for flaw in judged}))
        trail.failures.append((1, Failure("near_apathetic", scene.place, reasons, final=True)))
        return None

    async def _asked(self, closeness: Closeness, kind: Kind, scene: Scene, trail: ItemTrail) -> Variant | None:
        async def judge(value: Any) -> tuple[str, float] | list[Flaw]:
            text = value["text"].strip()
            judged = await self._judged(closeness, scene, text)
            trail.judged(kind, scene.place, text, judged if isinstance(judged, list) else ())
            return judged if isinstance(judged, list) else (text, judged)

        answer = await self.asker.ask(
            closeness,
            self._about(scene, kind),
            messages(self.asker.prompts, self.catalogue, self.config, kind, scene),
            "variant_answer",
            judge,
            trail,
        )
        if answer is None:
            return None
        method = "seed" if self.config.models[closeness].kind == "seed-bank" else "model"
        return _variant(closeness, scene, *answer.value, method, answer.model, answer.request_key)

    async def _judged(self, closeness: Closeness, scene: Scene, text: str) -> float | list[Flaw]:
        """The toxicity of a text that passes all checks of a variant, or its flaws."""
        reference, limits = scene.reference, self.config.checks
        if closeness == "near":
            found = contrast.near(reference.text, text, limits)
        else:
            found = contrast.far(reference.text, text, limits) + contrast.strategy_changed(reference.strategy, scene.strategy("far"))
        if len(words(text)) < limits.helper_words_at_least:
            found.append(Flaw("too_short", f"the reply has {len(words(text))} words, at least {limits.helper_words_at_least} are needed"))
        found += safety.harmless(text) + safety.keeps_pointer(reference.text, text, scene.flags)
        toxicity = await self.toxicity.score(text, self._about(scene, "score"))
        return [*found, *self.toxicity.flaws(toxicity)] or toxicity

    @staticmethod
    def _about(scene: Scene, kind: Kind) -> About:
        return About(scene.dialogue_id, kind, scene.place)


def _variant(closeness: Closeness, scene: Scene, text: str, toxicity: float, method: str, model: str, key: str | None) -> Variant:
    reference = scene.reference.text
    return Variant(text, scene.strategy(closeness), method, model, edit_ratio(reference, text), overlap(reference, text), toxicity, key)
