"""Crossed items of a model's dialogue: one model writes the twin of a context and the reply for it, another must tell the replies apart."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from empathy_eval.base.hashing import derived_random
from empathy_eval.base.text import overlap, words
from empathy_eval.completions.asker import Answer, Asker, settled
from empathy_eval.completions.requests import About, Failure, Flaw
from empathy_eval.design.configuration import Limits
from empathy_eval.design.errata import first_of
from empathy_eval.design.kinds import CROSSED, CROSSED_CHECK
from empathy_eval.design.language import Language
from empathy_eval.design.planning import Plan
from empathy_eval.design.prompts import Message
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import APART, CHANGED, CrossedItem, changed_words
from empathy_eval.generation.checks import built_in
from empathy_eval.generation.checks.built_in import reply_flaws, too_toxic
from empathy_eval.generation.checks.own import Check, flaws_by
from empathy_eval.generation.outcomes import Crossed, Dialogue, ItemTrail, Scene, Turn
from empathy_eval.generation.patterns import tokens
from empathy_eval.generation.rewriting import scenes

# Of a language without a list of function words, a word of so many letters is taken for one of content.
LONG = 4


@dataclass(frozen=True)
class Bounds:
    """How many words of the seeker's last message a twin changes, and how many its reply has, where the given one has ``words``."""

    words: int
    least: int
    most: int
    changed_least: int = CHANGED[0]
    changed_most: int = CHANGED[1]

    @classmethod
    def of(cls, reference: str, limits: Limits, language: str) -> Bounds:
        """For a given reply: the shorter of the two has no fewer words than the longer one without its share."""
        count = len(words(reference, language))
        return cls(count, max(math.ceil(count * (1 - APART)), limits.helper_words_at_least), math.floor(count / (1 - APART)))


@dataclass(frozen=True)
class Twins:
    """What is to be crossed: the seeker's last message and the given reply to it, the twin of the message and its own reply."""

    said: str
    reference: str
    twin: str
    reply: str


def wrong_with(twins: Twins, limits: Limits, language: Language) -> Iterator[Flaw]:
    """What keeps an item from being taken before anybody reads it."""
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
    changed = changed_words(twins.said, twins.twin, language.code)
    if not words(twins.twin, language.code):
        yield Flaw("twin_empty", "the twin says nothing; write the seeker's whole last message, with a few words changed")
    elif changed < bounds.changed_least:
        yield Flaw("twin_unchanged", f"the twin changes {changed} words; change at least {bounds.changed_least}")
    elif changed > bounds.changed_most:
        yield Flaw("twin_apart", f"the twin changes {changed} words; change at most {bounds.changed_most}")
    if built_in.in_crisis(twins.twin, language):
        yield Flaw("twin_in_crisis", "the twin sounds hopeless or in danger; let the need turn in another way")


def _echoes(twins: Twins, code: str) -> Iterator[Flaw]:
    """A reply that repeats a word by which its own context differs: who counts shared words would know whose it is."""
    said, twin = (content_words(text, code) for text in (twins.said, twins.twin))
    if repeated := sorted((twin - said) & content_words(twins.reply, code)):
        told = ", ".join(f'"{word}"' for word in repeated)
        yield Flaw("echoes_twin", f"the reply repeats {len(repeated)} of the words that are new in the twin: {told}; say it in other words")
    if gone := sorted((said - twin) & content_words(twins.reference, code)):
        told = ", ".join(f'"{word}"' for word in gone)
        yield Flaw("echo_taken", f"the given reply takes up {len(gone)} of the words that the twin drops: {told}; keep them in the twin")


def content_words(text: str, code: str) -> set[str]:
    """The words of a text without function words: those of spaCy's list for the language, and what an apostrophe makes of them."""
    known = tokens(code).Defaults.stop_words
    return {word for word in words(text, code) if not (_function(word, known) if known else len(word) < LONG)}


def _function(word: str, known: set[str]) -> bool:
    # "didn't" is made of "did", and "won't" of what is no word.
    stem, *more = re.split("['’]", word)
    return word in known or stem in known or bool(more) and (stem.removesuffix("n") in known or len(stem) < LONG)


def twin_of(scene: Scene, twin: str, recipe: Recipe) -> Scene:
    """The same helper turn after another last turn of the seeker."""
    context = *scene.context[:-1], Turn("seeker", twin)
    flags = ("crisis",) if any(built_in.in_crisis(turn.text, recipe.language) for turn in (*context, scene.reference)) else ()
    return replace(scene, context=context, flags=flags)


# Curated items that a request shows.
EXAMPLES = 3


@dataclass(frozen=True)
class Example:
    """A curated item as a request shows it: what the seeker says last in one context, and all that differs in the other."""

    before: str
    twin: str
    reply_1: str
    reply_2: str
    reason: str


def examples(recipe: Recipe, scene: Scene) -> list[Example]:
    """A few curated items of other scenarios, drawn for this item."""
    catalogue = recipe.catalogue
    seeds = {one.number: one.seed.turns for one in catalogue.scenarios if one.seed and one.number != scene.scenario_id}
    found = [(turns, item) for number, turns in seeds.items() for item in catalogue.crossed.get(number, ())]
    drawn = derived_random(recipe.config.seed, "crossed examples", scene.dialogue_id, scene.place).sample(found, min(EXAMPLES, len(found)))
    return [Example(turns[one.turn - 1].text, one.twin, one.reply_1, one.reply_2, one.reason) for turns, one in drawn]


def messages(recipe: Recipe, scene: Scene) -> list[Message]:
    """The request for a twin and its reply. Of all who write, this one alone sees both contexts and both replies: it makes the second."""
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
    """One context with both replies, as a judge is shown them, and the letter of its own."""

    context: tuple[Turn, ...]
    reply_a: str
    reply_b: str
    own: str

    def messages(self, recipe: Recipe) -> list[Message]:
        """The request of a judge, which tells nothing of the other context."""
        return recipe.prompts.render(CROSSED_CHECK.name, context=self.context, reply_a=self.reply_a, reply_b=self.reply_b)


def said_in(value: Any) -> dict[str, str]:
    """The twin, the reply and the reason of a valid answer."""
    return {name: value[name].strip() for name in ("twin", "reply", "reason")}


def trials(scene: Scene, twin: str, reply: str) -> list[Trial]:
    """Each context with its own reply first, then with it last: those of the given context, then those of its twin."""
    reference = scene.reference.text
    asked = [(scene.context, reference, reply), ((*scene.context[:-1], Turn("seeker", twin)), reply, reference)]
    return [one for context, own, other in asked for one in (Trial(context, own, other, "A"), Trial(context, other, own, "B"))]


@dataclass(frozen=True)
class CrossedItemWriter:
    """Makes the crossed items of a dialogue, a seed's of curated ones; what is not taken on the way is in the trail."""

    asker: Asker
    recipe: Recipe
    checks: tuple[Check, ...]
    trail: ItemTrail

    async def items(self, dialogue: Dialogue, plan: Plan) -> tuple[Crossed, ...]:
        """Those that passed, at the first of the planned places that no crisis language comes before.

        Raises:
            NoAnswer: if a model did not answer, or the ledger of an offline build has no toxicity; all others have been answered by then.
        """
        if dialogue.source == "seed":
            curated = self.recipe.catalogue.crossed.get(dialogue.scenario_id, ())
            by_place = {scene.place: scene for scene in scenes(dialogue, plan.turns, self.recipe.language)} if curated else {}
            taken = await settled(*(self._curated(one, by_place[one.turn]) for one in curated if one.turn in by_place))
            return tuple(one for one in taken if one is not None)
        found, refused = places(dialogue, plan, self.recipe.language)
        self.trail.failures += [(1, Failure(CROSSED.name, place, ("crisis",), final=True)) for place in refused]
        made, places_left = dict[int, Crossed | None](), iter(found)
        # Where an item fails, its number is tried at one of the next places.
        while tried := list(zip([number for number in range(1, plan.crosses + 1) if made.get(number) is None], places_left, strict=False)):
            made |= zip(dict(tried), await settled(*(self._item(scene, number) for number, scene in tried)), strict=True)
        return tuple(item for number in sorted(made) if (item := made[number]))

    async def _curated(self, item: CrossedItem, scene: Scene) -> Crossed | None:
        contexts = scene, twin_of(scene, item.twin, self.recipe)
        flaws = await settled(*(self.reply_flaws(text, contexts) for text in (item.reply_1, item.reply_2)))
        if reasons := tuple(sorted({flaw.reason for one in flaws for flaw in one})):
            self.trail.failures.append((1, Failure(CROSSED.name, item.turn, reasons, final=True)))
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
            found += built_in.keeps_pointer(scene.reference.text, text, one.flags, language)
            found += built_in.points_where_needed(one.context[-1].text, text, language)
        found += flaws_by(self.checks, lambda check: (flaw for one in contexts for flaw in check.variant(CROSSED.name, text, one)))
        _, toxic = await too_toxic(self.asker, text, About(scene.dialogue_id, CROSSED.name, scene.place), limits.toxicity)
        return found + toxic

    async def _item(self, scene: Scene, number: int) -> Crossed | None:
        async def judge(value: Any) -> tuple[dict[str, str], list[Answer[str]]] | list[Flaw]:
            said = said_in(value)
            flaws = await self._flaws(scene, said)
            checked = [] if flaws else await self._read(scene, said["twin"], said["reply"])
            return flaws or _told_apart(scene, said, checked)

        answer = await self.asker.ask(scene.about(CROSSED), messages(self.recipe, scene), judge, self.trail)
        if answer is None:
            return None
        said, checked = answer.value
        keys = (answer.request_key, *(one.request_key for one in checked))
        texts = (said["twin"], scene.reference.text, said["reply"], said["reason"])
        return Crossed(f"{scene.dialogue_id}-x{number}", scene.place, *texts, "model", answer.model, checked[0].model, keys)

    async def _flaws(self, scene: Scene, said: dict[str, str]) -> list[Flaw]:
        """What is wrong with an answer before anybody reads it."""
        twins = Twins(scene.context[-1].text, scene.reference.text, said["twin"], said["reply"])
        found = [*wrong_with(twins, self.recipe.config.checks, self.recipe.language)]
        if not said["reason"]:
            found.append(Flaw("no_reason", "the reason is empty; say in one sentence what the seeker needs in each of the two moments"))
        return found + await self.reply_flaws(said["reply"], (scene, twin_of(scene, said["twin"], self.recipe)))

    async def _read(self, scene: Scene, twin: str, reply: str) -> list[Answer[str] | None]:
        """What a judge chooses in each trial."""

        async def chosen(value: Any) -> str:
            return str(value["choice"])

        about = scene.about(CROSSED_CHECK)
        asked = (one.messages(self.recipe) for one in trials(scene, twin, reply))
        return await settled(*(self.asker.ask(about, said, chosen, self.trail) for said in asked))


def places(dialogue: Dialogue, plan: Plan, language: Language) -> tuple[list[Scene], list[int]]:
    """The scenes that crossed items may be asked for, and the planned places in whose stead there is none: crisis language comes before.

    There are up to twice as many as there are to be items: the second half is tried where items of the first fail.
    """
    if not plan.crosses:
        return [], []
    known = {scene.place: scene for scene in scenes(dialogue, plan.turns, language)}
    calm = [known[place] for place in plan.crossed if not known[place].flags]
    refused = [place for place in plan.crossed if known[place].flags]
    return calm[: 2 * plan.crosses], refused[: max(0, plan.crosses - len(calm))]


def _told_apart(
    scene: Scene, said: dict[str, str], read: Sequence[Answer[str] | None]
) -> tuple[dict[str, str], list[Answer[str]]] | list[Flaw]:
    """The item with what was answered of it, if each choice fell on the own reply."""
    answers = [one for one in read if one is not None]
    if len(answers) < len(read):
        return [Flaw("not_judged", f"{len(read) - len(answers)} of {len(read)} readings brought no choice; write it in another way")]
    wanted = [one.own for one in trials(scene, said["twin"], said["reply"])]
    right = [answer.value == own for answer, own in zip(answers, wanted, strict=True)]
    if all(right):
        return said, answers
    half = len(right) // 2
    first, second = (half - sum(part) for part in (right[:half], right[half:]))
    what = (
        f"who read one moment with both replies chose the wrong one {first + second} of {len(right)} times: {first} of {half} in the first "
        f"moment, {second} of {half} in the second; let the need turn further, and let each reply pass the other moment by more plainly"
    )
    return [Flaw("not_told_apart", what)]
