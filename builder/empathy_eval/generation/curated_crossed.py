"""The crossed items of a seed dialogue: they are curated, and checked as its variants are."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from empathy_eval.completions.asker import Asker, settled
from empathy_eval.completions.requests import About, Failure, Flaw
from empathy_eval.design.crossed import CROSSED, CrossedItem
from empathy_eval.design.errata import first_of
from empathy_eval.design.planning import Plan
from empathy_eval.design.recipe import Recipe
from empathy_eval.generation.checks import safety
from empathy_eval.generation.checks.own import Check, flaws_by
from empathy_eval.generation.checks.toxicity import too_toxic
from empathy_eval.generation.checks.variant import reply_flaws
from empathy_eval.generation.outcomes import Crossed, Dialogue, ItemTrail, Scene, Turn
from empathy_eval.generation.rewriting import scenes


@dataclass(frozen=True)
class Curator:
    """Takes the crossed items that were written for a seed dialogue; what is not taken is in the trail."""

    asker: Asker
    recipe: Recipe
    checks: tuple[Check, ...]
    trail: ItemTrail

    async def items(self, dialogue: Dialogue, plan: Plan) -> tuple[Crossed, ...]:
        """Those that pass the checks; none for a dialogue of a model.

        Raises:
            NoAnswer: in an offline build, if the ledger has no toxicity of a reply.
        """
        items = self.recipe.catalogue.crossed.get(dialogue.scenario_id, ()) if dialogue.source == "seed" else ()
        by_place = {scene.place: scene for scene in scenes(dialogue, plan.turns, self.recipe.language)} if items else {}
        made = await settled(*(self._curated(one, by_place[one.turn]) for one in items if one.turn in by_place))
        return tuple(one for one in made if one is not None)

    async def _curated(self, item: CrossedItem, scene: Scene) -> Crossed | None:
        contexts = scene, twin_of(scene, item.twin, self.recipe)
        flaws = await settled(*(self.reply_flaws(text, contexts) for text in (item.reply_1, item.reply_2)))
        if reasons := tuple(sorted({flaw.reason for one in flaws for flaw in one})):
            self.trail.failures.append((1, Failure(CROSSED, item.turn, reasons, final=True)))
            return None
        named = item.crossed_id.replace(first_of(scene.dialogue_id), scene.dialogue_id, 1)
        return Crossed(**{**asdict(item), "crossed_id": named}, source="seed")

    async def reply_flaws(self, text: str, contexts: tuple[Scene, Scene]) -> list[Flaw]:
        """What is wrong with a reply, whichever of the two contexts it is for: it may stand in both.

        Raises:
            NoAnswer: in an offline build, if the ledger has no toxicity of it.
        """
        limits, language, scene = self.recipe.config.checks, self.recipe.language, contexts[0]
        found = reply_flaws(text, limits, language)
        for one in contexts:
            found += safety.keeps_pointer(scene.reference.text, text, one.flags, language)
            found += safety.points_where_needed(one.context[-1].text, text, language)
        found += flaws_by(self.checks, lambda check: (flaw for one in contexts for flaw in check.variant(CROSSED, text, one)))
        _, toxic = await too_toxic(self.asker, text, About(scene.dialogue_id, CROSSED, scene.place), limits.toxicity)
        return found + toxic


def twin_of(scene: Scene, twin: str, recipe: Recipe) -> Scene:
    """The same helper turn after another last turn of the seeker."""
    context = after(scene.context, twin)
    flags = ("crisis",) if any(safety.in_crisis(turn.text, recipe.language) for turn in (*context, scene.reference)) else ()
    return replace(scene, context=context, flags=flags)


def after(context: tuple[Turn, ...], twin: str) -> tuple[Turn, ...]:
    """The turns before, with the twin as the seeker's last."""
    return *context[:-1], Turn("seeker", twin)
