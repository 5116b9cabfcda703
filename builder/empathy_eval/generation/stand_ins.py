"""What stands in for a dialogue that there is not yet: requests are rendered with it before anything is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from empathy_eval.base.errors import InputError, JobError, Problem
from empathy_eval.completions.requests import Flaw
from empathy_eval.design.kinds import rewritings
from empathy_eval.design.planning import Plan, PlannedTurn, ends, seed_plan, some_plans
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.taxonomy import crossable
from empathy_eval.generation import crossed_by_models, rewriting, self_chat
from empathy_eval.generation.checks.own import Check, flaws_by, own_checks
from empathy_eval.generation.outcomes import Dialogue, Scene, Turn

# Words of a turn of which nothing is planned: the paper's turns have 28.7.
WORDS_A_TURN = 29


def stand_in(plan: Plan, recipe: Recipe) -> tuple[Dialogue, tuple[PlannedTurn, ...]]:
    """What rewriting requests are shown with before there is a dialogue: a seed, of the same scenario if it has one; else mere words."""
    seeds = [(one.number, one.seed) for one in recipe.catalogue.scenarios if one.seed]
    if not seeds:
        said = (" ".join(["word"] * (turn.lengths.get("reference") or WORDS_A_TURN)) for turn in plan.turns)
        turns = tuple(Turn(turn.role, text, turn.strategy) for turn, text in zip(plan.turns, said, strict=True))
        return Dialogue(plan.dialogue_id, plan.scenario_id, "", turns, (), "seed", "", "", *plan.voices), plan.turns
    number, seed = next((one for one in seeds if one[0] == plan.scenario_id), seeds[0])
    turns = tuple(Turn("helper" if turn.role == "helper" else "seeker", turn.text, turn.strategy) for turn in seed.turns)
    dialogue = Dialogue(plan.dialogue_id, plan.scenario_id, seed.description, turns, (), "seed", "", "", *plan.voices)
    return dialogue, seed_plan(number, seed, recipe.catalogue, recipe.config.language).turns


def try_templates(recipe: Recipe) -> None:
    """Renders requests of each kind, so that a template that cannot be rendered is known before anything is paid for.

    They are of the first, the middle and the last dialogue, and in each of the first, the middle and the last scene, with controls and
    without: what a template says only of others is not tried.

    Raises:
        InputError: for such a template, and for a plan that cannot be drawn.
    """
    for plan in some_plans(recipe.config, recipe.catalogue):
        self_chat.messages(recipe, plan)
        dialogue, turns = stand_in(plan, recipe)
        found = rewriting.scenes(dialogue, turns, recipe.language)
        controlled = [scene for scene in found if scene.planned.controls] or found
        for scene in {one.place: one for one in (*ends(found), *ends(controlled))}.values():
            for kind in rewritings(controls=scene in controlled):
                rewriting.messages(recipe, kind, scene)
        _try_crossed(recipe, [one for one in found if one.place in crossable([turn.role for turn in turns])])
    recipe.prompts.render("repair", violations=["what is wrong"])


def try_checks(recipe: Recipe) -> None:
    """Lets checks of one's own look at dialogues and variants, so that one that fails is known before anything is paid for.

    They see the first, the middle and the last dialogue, each variant of three of its helper turns, and as a text the reference. What
    they find wrong with these texts is not told.

    Raises:
        InputError: for checks that cannot be made or that fail, with the first fault of each; and for a plan that cannot be drawn.
    """
    checks, problems = own_checks(recipe), dict[str, Problem]()
    for look in _looks(recipe) if checks else ():
        for one in checks:
            try:
                flaws_by([one], look)
            except JobError as error:
                (fault,) = error.problems
                problems.setdefault(one.name, Problem(fault.where, fault.what, "fix it, or leave it out"))
    if problems:
        raise InputError(problems.values())


def _looks(recipe: Recipe) -> Iterator[Callable[[Check], Iterable[Flaw]]]:
    """What a check is asked about dialogues and variants that stand in."""
    for plan in some_plans(recipe.config, recipe.catalogue):
        dialogue, turns = stand_in(plan, recipe)
        yield partial(_of_dialogue, dialogue)
        for scene in ends(rewriting.scenes(dialogue, turns, recipe.language)):
            for kind in rewritings(controls=True):
                yield partial(_of_variant, kind.variant or "", scene)


def _of_dialogue(made: Dialogue, check: Check) -> Iterable[Flaw]:
    return check.dialogue(made.description, made.turns)


def _of_variant(variant: str, scene: Scene, check: Check) -> Iterable[Flaw]:
    return check.variant(variant, scene.reference.text, scene)


def _try_crossed(recipe: Recipe, found: Sequence[Scene]) -> None:
    """Renders the requests of crossed items, if a build asks for some."""
    for scene in ends(found) if recipe.config.crossed else ():
        crossed_by_models.messages(recipe, scene)
        for trial in crossed_by_models.trials(scene, "what the seeker says", "what the helper says"):
            trial.messages(recipe)
