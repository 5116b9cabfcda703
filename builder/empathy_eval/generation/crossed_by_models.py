"""Crossed items written by models: one model writes a second context and its reply, another must match replies to contexts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from empathy_eval.base.hashing import derived_random
from empathy_eval.base.text import overlap, words
from empathy_eval.completions.asker import Answer, Asker, gather_all
from empathy_eval.completions.requests import About, Failure, Flaw
from empathy_eval.design.configuration import Limits
from empathy_eval.design.errata import original_id
from empathy_eval.design.kinds import CROSSED, CROSSED_CHECK
from empathy_eval.design.language import Language
from empathy_eval.design.planning import Plan
from empathy_eval.design.prompts import Message
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import CHANGED_WORDS, MAX_LENGTH_GAP, CrossedItem, changed_words
from empathy_eval.generation.checks import built_in
from empathy_eval.generation.checks.built_in import reply_flaws, too_toxic
from empathy_eval.generation.checks.custom import Check, flaws_by
from empathy_eval.generation.outcomes import CrossedOutcome, Dialogue, ItemTrail, Scene, Turn
from empathy_eval.generation.patterns import tokens
from empathy_eval.generation.rewriting import scenes

# Of a language without a list of function words, a word of so many letters is taken for one of content.
LONG = 4
# Curated items that a request shows.
EXAMPLES = 3


@dataclass(frozen=True)
class Bounds:
    """How many words of the seeker's last message a twin changes, and how long its reply is, where the given one has ``words``."""

    words: int
    least: int
    most: int
    changed_least: int = CHANGED_WORDS[0]
    changed_most: int = CHANGED_WORDS[1]

    @classmethod
    def of(cls, reference: str, limits: Limits, language: str) -> Bounds:
        """The bounds for a given reply: lengths differ by at most a fixed share of the longer one."""
        count, share = len(words(reference, language)), 1 - MAX_LENGTH_GAP
        return cls(count, max(math.ceil(count * share), limits.helper_words_at_least), math.floor(count / share))


@dataclass(frozen=True)
class Twins:
    """The two contexts and replies: the seeker's last message with the given reply, and the twin with its own reply."""

    message: str
    reference: str
    twin: str
    reply: str


def twin_flaws(twins: Twins, limits: Limits, language: Language) -> Iterator[Flaw]:
    """Flaws of an item that need no reader."""
    bounds = Bounds.of(twins.reference, limits, language.code)
    yield from _of_twin(twins, bounds, language)
    if not bounds.least <= (count := len(words(twins.reply, language.code))) <= bounds.most:
        what = f"the reply has {count} words and the given one {bounds.words}; write {bounds.least} to {bounds.most}"
        yield Flaw("length_apart", what)
    if (share := overlap(twins.reference, twins.reply, language.code)) > limits.overlap_at_most:
        what = f"reply and given reply have {share:.0%} of their words in common, in order; at most {limits.overlap_at_most:.0%} is taken"
        yield Flaw("replies_alike", what)
    yield from _echoes(twins, language.code)


def _of_twin(twins: Twins, bounds: Bounds, language: Language) -> Iterator[Flaw]:
    changed = changed_words(twins.message, twins.twin, language.code)
    if not words(twins.twin, language.code):
        yield Flaw("twin_empty", "the twin says nothing; write the seeker's whole last message, with a few words changed")
    elif changed < bounds.changed_least:
        yield Flaw("twin_unchanged", f"the twin changes {changed} words; change at least {bounds.changed_least}")
    elif changed > bounds.changed_most:
        yield Flaw("twin_apart", f"the twin changes {changed} words; change at most {bounds.changed_most}")
    if built_in.in_crisis(twins.twin, language):
        yield Flaw("twin_in_crisis", "the twin sounds hopeless or in danger; let the need turn in another way")


def _echoes(twins: Twins, code: str) -> Iterator[Flaw]:
    """Flaws of replies that repeat a word in which their context differs: counting shared words would match them."""
    original, twin = (content_words(text, code) for text in (twins.message, twins.twin))
    if repeated := sorted((twin - original) & content_words(twins.reply, code)):
        quoted = ", ".join(f'"{word}"' for word in repeated)
        what = f"the reply repeats {len(repeated)} of the words that are new in the twin: {quoted}; say it in other words"
        yield Flaw("echoes_twin", what)
    if dropped := sorted((original - twin) & content_words(twins.reference, code)):
        quoted = ", ".join(f'"{word}"' for word in dropped)
        what = f"the given reply takes up {len(dropped)} of the words that the twin drops: {quoted}; keep them in the twin"
        yield Flaw("echo_taken", what)


def content_words(text: str, code: str) -> set[str]:
    """The words of a text without function words: spaCy's stop words for the language, and contractions of them."""
    known = tokens(code).Defaults.stop_words
    return {word for word in words(text, code) if not (_function(word, known) if known else len(word) < LONG)}


def _function(word: str, known: set[str]) -> bool:
    # "didn't" is made of "did", and "won't" of what is no word.
    stem, *more = re.split("['’]", word)
    return word in known or stem in known or bool(more) and (stem.removesuffix("n") in known or len(stem) < LONG)


def twin_of(scene: Scene, twin: str, recipe: Recipe) -> Scene:
    """The scene of the same helper turn after the twin."""
    context = *scene.context[:-1], Turn("seeker", twin)
    flags = ("crisis",) if any(built_in.in_crisis(turn.text, recipe.language) for turn in (*context, scene.reference)) else ()
    return replace(scene, context=context, flags=flags)


@dataclass(frozen=True)
class CrossedExample:
    """A curated item as a request shows it: the seeker's last message in one context, its twin, replies and reason."""

    before: str
    twin: str
    reply_1: str
    reply_2: str
    reason: str


def examples(recipe: Recipe, scene: Scene) -> list[CrossedExample]:
    """A few curated items of other scenarios, drawn for this item."""
    catalogue = recipe.catalogue
    others = [scenario for scenario in catalogue.scenarios if scenario.number != scene.scenario_id]
    seeds = {scenario.number: scenario.seed.turns for scenario in others if scenario.seed}
    candidates = [(turns, item) for number, turns in seeds.items() for item in catalogue.crossed.get(number, ())]
    drawn = derived_random(recipe.config.seed, "crossed examples", scene.dialogue_id, scene.place).sample(
        candidates, min(EXAMPLES, len(candidates))
    )
    return [CrossedExample(turns[item.turn - 1].text, item.twin, item.reply_1, item.reply_2, item.reason) for turns, item in drawn]


def messages(recipe: Recipe, scene: Scene) -> list[Message]:
    """The request for a twin and its reply. Its writer alone sees both contexts and both replies, since it writes the second."""
    return recipe.prompts.render(
        CROSSED.name,
        taxonomy=recipe.catalogue.taxonomy,
        context=scene.context,
        reference=scene.reference.text,
        strategy=scene.reference.strategy,
        limits=recipe.config.checks,
        bounds=Bounds.of(scene.reference.text, recipe.config.checks, scene.language),
        examples=examples(recipe, scene),
    )


@dataclass(frozen=True)
class Trial:
    """One context with both replies as a judge sees them, and the letter of the right one."""

    context: tuple[Turn, ...]
    reply_a: str
    reply_b: str
    own: str

    def messages(self, recipe: Recipe) -> list[Message]:
        """The request to a judge, which reveals nothing about the other context."""
        return recipe.prompts.render(CROSSED_CHECK.name, context=self.context, reply_a=self.reply_a, reply_b=self.reply_b)


def parse_answer(value: Any) -> dict[str, str]:
    """The twin, the reply and the reason in a valid answer."""
    return {name: value[name].strip() for name in ("twin", "reply", "reason")}


def trials(scene: Scene, twin: str, reply: str) -> list[Trial]:
    """Each context with its own reply first, then last: the given context, then its twin."""
    reference = scene.reference.text
    asked = [(scene.context, reference, reply), ((*scene.context[:-1], Turn("seeker", twin)), reply, reference)]
    return [trial for context, own, other in asked for trial in (Trial(context, own, other, "A"), Trial(context, other, own, "B"))]


@dataclass(frozen=True)
class CrossedItemWriter:
    """Writes the crossed items of a dialogue, or takes curated ones for a seed; refusals are in the trail."""

    asker: Asker
    recipe: Recipe
    checks: tuple[Check, ...]
    trail: ItemTrail

    async def items(self, dialogue: Dialogue, plan: Plan) -> tuple[CrossedOutcome, ...]:
        """The items that passed, at the first planned indices without earlier crisis language.

        Raises:
            NoAnswer: if a model did not answer, or the ledger of an offline build has no toxicity; all other requests have been
                answered by then.
        """
        if dialogue.source == "seed":
            curated = self.recipe.catalogue.crossed.get(dialogue.scenario_id, ())
            by_place = {scene.place: scene for scene in scenes(dialogue, plan.turns, self.recipe.language)} if curated else {}
            taken = await gather_all(*(self._curated(item, by_place[item.turn]) for item in curated if item.turn in by_place))
            return tuple(item for item in taken if item is not None)
        usable, refused = crossable_scenes(dialogue, plan, self.recipe.language)
        self.trail.failures += [(1, Failure(CROSSED.name, index, ("crisis",), final=True)) for index in refused]
        crossed, places_left = dict[int, CrossedOutcome | None](), iter(usable)
        # Where an item fails, its number is tried at one of the next places.
        while tried := list(
            zip([number for number in range(1, plan.crosses + 1) if crossed.get(number) is None], places_left, strict=False)
        ):
            crossed |= zip(dict(tried), await gather_all(*(self._item(scene, number) for number, scene in tried)), strict=True)
        return tuple(item for number in sorted(crossed) if (item := crossed[number]))

    async def _curated(self, item: CrossedItem, scene: Scene) -> CrossedOutcome | None:
        contexts = scene, twin_of(scene, item.twin, self.recipe)
        flaws = await gather_all(*(self.reply_flaws(text, contexts) for text in (item.reply_1, item.reply_2)))
        if reasons := tuple(sorted({flaw.reason for group in flaws for flaw in group})):
            self.trail.failures.append((1, Failure(CROSSED.name, item.turn, reasons, final=True)))
            return None
        named = item.crossed_id.replace(original_id(scene.dialogue_id), scene.dialogue_id, 1)
        return CrossedOutcome(**{**asdict(item), "crossed_id": named}, source="seed")

    async def reply_flaws(self, text: str, contexts: tuple[Scene, Scene]) -> list[Flaw]:
        """Flaws of a reply, which may occur in either of the two contexts.

        Raises:
            NoAnswer: in an offline build, if the ledger has no toxicity of it.
        """
        limits, language, scene = self.recipe.config.checks, self.recipe.language, contexts[0]
        flaws = reply_flaws(text, limits, language)
        for context in contexts:
            flaws += built_in.keeps_pointer(scene.reference.text, text, context.flags, language)
            flaws += built_in.points_where_needed(context.context[-1].text, text, language)
        flaws += flaws_by(self.checks, lambda check: (flaw for context in contexts for flaw in check.variant(CROSSED.name, text, context)))
        _, toxic = await too_toxic(self.asker, text, About(scene.dialogue_id, CROSSED.name, scene.place), limits.toxicity)
        return flaws + toxic

    async def _item(self, scene: Scene, number: int) -> CrossedOutcome | None:
        async def judge(value: Any) -> tuple[dict[str, str], list[Answer[str]]] | list[Flaw]:
            written = parse_answer(value)
            flaws = await self._flaws(scene, written)
            checked = [] if flaws else await self._read(scene, written["twin"], written["reply"])
            return flaws or _distinguished(scene, written, checked)

        answer = await self.asker.ask(scene.about(CROSSED), messages(self.recipe, scene), judge, self.trail)
        if answer is None:
            return None
        written, checked = answer.value
        keys = (answer.request_key, *(reading.request_key for reading in checked))
        texts = (written["twin"], scene.reference.text, written["reply"], written["reason"])
        return CrossedOutcome(f"{scene.dialogue_id}-x{number}", scene.place, *texts, "model", answer.model, checked[0].model, keys)

    async def _flaws(self, scene: Scene, written: dict[str, str]) -> list[Flaw]:
        """Flaws of an answer that need no reader."""
        twins = Twins(scene.context[-1].text, scene.reference.text, written["twin"], written["reply"])
        flaws = [*twin_flaws(twins, self.recipe.config.checks, self.recipe.language)]
        if not written["reason"]:
            flaws.append(Flaw("no_reason", "the reason is empty; say in one sentence what the seeker needs in each of the two moments"))
        return flaws + await self.reply_flaws(written["reply"], (scene, twin_of(scene, written["twin"], self.recipe)))

    async def _read(self, scene: Scene, twin: str, reply: str) -> list[Answer[str] | None]:
        """The judge's choice in each trial."""

        async def chosen(value: Any) -> str:
            return str(value["choice"])

        about = scene.about(CROSSED_CHECK)
        asked = (trial.messages(self.recipe) for trial in trials(scene, twin, reply))
        return await gather_all(*(self.asker.ask(about, prompt, chosen, self.trail) for prompt in asked))


def crossable_scenes(dialogue: Dialogue, plan: Plan, language: Language) -> tuple[list[Scene], list[int]]:
    """The scenes for crossed items, and planned indices without one because crisis language comes before.

    There are up to twice as many scenes as items: the second half replaces items that fail.
    """
    if not plan.crosses:
        return [], []
    known = {scene.place: scene for scene in scenes(dialogue, plan.turns, language)}
    calm = [known[index] for index in plan.crossed if not known[index].flags]
    refused = [index for index in plan.crossed if known[index].flags]
    return calm[: 2 * plan.crosses], refused[: max(0, plan.crosses - len(calm))]


def _distinguished(
    scene: Scene, written: dict[str, str], read: Sequence[Answer[str] | None]
) -> tuple[dict[str, str], list[Answer[str]]] | list[Flaw]:
    """The item with its readings, if each judge chose the right reply; else its flaws."""
    answers = [answer for answer in read if answer is not None]
    if len(answers) < len(read):
        return [Flaw("not_judged", f"{len(read) - len(answers)} of {len(read)} readings brought no choice; write it in another way")]
    wanted = [trial.own for trial in trials(scene, written["twin"], written["reply"])]
    right = [answer.value == own for answer, own in zip(answers, wanted, strict=True)]
    if all(right):
        return written, answers
    half = len(right) // 2
    first, second = (half - sum(part) for part in (right[:half], right[half:]))
    what = (
        f"who read one moment with both replies chose the wrong one {first + second} of {len(right)} times: {first} of {half} in the first "
        f"moment, {second} of {half} in the second; let the need turn further, and let each reply pass the other moment by more plainly"
    )
    return [Flaw("not_told_apart", what)]
