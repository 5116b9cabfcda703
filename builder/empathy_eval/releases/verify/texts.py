"""Every check of the configuration, run again on every text of a release; plans drawn again; seeds beside the packaged ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from empathy_eval.base.errors import EmpathyEvalError
from empathy_eval.completions.requests import LONGEST, Flaw, character_flaws
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.contrasts import CONTROLS
from empathy_eval.design.dataset import pair_id
from empathy_eval.design.kinds import KINDS
from empathy_eval.design.language import Language
from empathy_eval.design.personas import VOICES
from empathy_eval.design.planning import Plan, plan_of
from empathy_eval.design.quotas import sequence_positions
from empathy_eval.design.scenarios import CHANGED_WORDS, Catalogue, CrossedItem, changed_words, problems_of_replies
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.design.word_list import NOT_CHOSEN, UNIT, WordList
from empathy_eval.generation.checks import built_in
from empathy_eval.generation.checks.built_in import reply_flaws, variant_flaws
from empathy_eval.generation.crossed_by_models import Twins, twin_flaws
from empathy_eval.generation.crossed_by_models import crossable_scenes as crossed_places
from empathy_eval.generation.outcomes import VARIANTS, Candidate, CrossedOutcome, Dialogue, Outcome, Pair, Variant
from empathy_eval.generation.patterns import de_empathised
from empathy_eval.releases.assemble.read_back import KIND_OF, RULES, SEEDS
from empathy_eval.releases.verify.design import built_under
from empathy_eval.releases.verify.manifest import configuration_of

# The reason of a text that is too toxic: whether it is, is scored elsewhere.
TOXIC = "toxic"


@dataclass(frozen=True)
class TextChecks:
    """What texts are checked under. Of checks of ``own``, which are code and are not run, candidates may have reasons too."""

    config: Configuration
    language: Language
    # What a plan is drawn from.
    catalogue: Catalogue
    own: bool = False
    drawn: dict[int, list[int]] = field(default_factory=dict)

    def plan(self, dialogue_id: str) -> Plan | None:
        """The plan of a dialogue, drawn again; None where there is nothing to draw it from, as for seeds that are not here."""
        if self.config.plan == "seeds" and not any(one.seed for one in self.catalogue.scenarios):
            return None
        return plan_of(self.config, self.catalogue, dialogue_id, self.drawn)


def checked_under(folder: Path, manifest: dict[str, Any]) -> TextChecks | None:
    """What the texts of a release are checked under; None where its rules are not to be had.

    Raises:
        InputError: if what it carries is not valid.
    """
    under, config = built_under(folder, manifest), configuration_of(folder, manifest)
    if under.language is None:
        return None
    drawn = sequence_positions(config, under.catalogue) if config.plan == "drawn" else {}
    return TextChecks(config, under.language, under.catalogue, bool(manifest.get("checks")), drawn)


def text_faults(outcome: Outcome, under: TextChecks) -> Iterator[str]:
    """What a build would have refused of a dialogue and all that is of it, and what its plan, its seed and its texts do not give."""
    dialogue = outcome.dialogue
    if dialogue is None:
        return
    if (longest := max(len(one.text) for one in dialogue.turns)) > LONGEST:
        yield f"a turn has {longest:,} characters"
        return
    try:
        yield from [*_DialogueTexts(outcome, dialogue, under, under.plan(outcome.dialogue_id)).whats()]
    except EmpathyEvalError as error:
        yield from (one.what for one in error.problems)


@dataclass(frozen=True)
class _DialogueTexts:
    """A dialogue with what it is checked under, and its plan where that is known."""

    outcome: Outcome
    dialogue: Dialogue
    under: TextChecks
    plan: Plan | None

    def whats(self) -> Iterator[str]:
        """All that is wrong."""
        turns, config, language = self.dialogue.turns, self.under.config, self.under.language
        yield from _told(
            [
                *built_in.description(self.dialogue.description, language),
                *built_in.keeps_phases(turns, self.under.catalogue.taxonomy, config.rules),
                *built_in.says_enough(turns, config.checks, language.code),
                *built_in.answers_crisis(turns, language),
                *(flaw for one in turns if one.role == "helper" for flaw in built_in.harmless(one.text, language)),
                *(built_in.follows_plan(turns, self.plan) if self.plan else ()),
            ]
        )
        for text in (self.dialogue.description, *(one.text for one in turns)):
            yield from _told(_unclean(text))
        if (flags := tuple(built_in.dialogue_flags(turns, language))) != self.dialogue.flags:
            yield f"is flagged {[*self.dialogue.flags]}, but its texts give {[*flags]}"
        for name, wanted in zip(VOICES, self.plan.voices if self.plan else (), strict=False):
            if (voice := getattr(self.dialogue, name)) != wanted:
                yield f'{name} is "{voice}", but the plan says "{wanted}"'
        yield from self._like_seed()
        crisis = next((place for place, one in enumerate(turns) if built_in.in_crisis(one.text, language)), len(turns))
        for pair in self.outcome.pairs:
            name = pair_id(self.dialogue.dialogue_id, pair.turn)
            yield from (f"{name}: {what}" for what in self._of_pair(pair, ("crisis",) if crisis <= pair.turn else ()))
        for one in self.outcome.candidates:
            name = f"{KINDS[one.kind].variant} {one.attempt} of {pair_id(self.dialogue.dialogue_id, one.turn)} in candidates.parquet"
            yield from (f"{name} {what}" for what in self._of_candidate(one, ("crisis",) if crisis <= one.turn else ()))
        for item in self.outcome.crossed:
            yield from (f"{item.crossed_id}: {what}" for what in self._of_crossed(item))
        yield from self._misplaced()

    def _of_pair(self, pair: Pair, flags: tuple[str, ...]) -> Iterator[str]:
        """What is wrong with a pair and its controls."""
        reference, limits, language = self.dialogue.turns[pair.turn].text, self.under.config.checks, self.under.language
        variants = [(name, made) for name in VARIANTS if (made := getattr(pair, name))]
        for name, made in variants:
            if len(made.text) > LONGEST:
                yield f"{name} has {len(made.text):,} characters"
                continue
            flaws = [*variant_flaws(KIND_OF[name], reference, made.text, flags, limits, language), *_unclean(made.text)]
            yield from (f"{name}: {what}" for what in _told(flaws))
            yield from self._planned(pair, name, made)
        if pair.flags != flags:
            yield f"is flagged {[*pair.flags]}, but its texts give {[*flags]}"
        by_rules = pair.apathetic.method == RULES and max(len(reference), len(pair.apathetic.text)) <= LONGEST
        if by_rules and pair.apathetic.text != de_empathised(reference, limits.edit_ratio_below, language):
            yield "apathetic is not what the rules make of its reference"
        for name, score in [("reference", pair.reference_toxicity), *((name, made.toxicity) for name, made in variants)]:
            if (score is None) != (limits.toxicity is None):
                yield f"{name} must have a toxicity score if toxicity is scored, and only then"
            elif score is not None and limits.toxicity and not 0 <= score <= limits.toxicity.at_most:
                yield f"the toxicity of {name} is {score}, but at most {limits.toxicity.at_most} is allowed"
        yield from self._chosen(pair)

    def _planned(self, pair: Pair, name: str, made: Variant) -> Iterator[str]:
        """A strategy, a manner or a device, or a control, that is not as planned, or that no plan has."""
        taxonomy, own = load_taxonomy(), self.dialogue.turns[pair.turn].strategy or ""
        planned = self.plan.turns[pair.turn] if self.plan and pair.turn < len(self.plan.turns) else None
        if name == "empathetic":
            if own == made.strategy or own not in taxonomy or taxonomy.phase_of(own) != taxonomy.phase_of(made.strategy):
                became = f'the strategy "{own}" became "{made.strategy}"'
                yield f"{became}, but another strategy of the same phase is required"
            if planned and made.strategy != planned.empathetic_strategy:
                yield f'the strategy of the empathetic text is "{made.strategy}", but the plan says "{planned.empathetic_strategy}"'
        if made.way not in {one.name for one in self.under.catalogue.taxonomy.ways(name)} | {None}:
            yield f'{name} is made as "{made.way}", which the taxonomy does not have'
        elif planned and made.way != (wanted := None if made.method == RULES else planned.ways.get(name)):
            yield f'{name} is made as "{made.way}", but the plan says "{wanted}"'
        if planned and name in CONTROLS and not planned.controls:
            yield f"has {name}, but no controls were planned"

    def _beside(self, turn: int, variant: str) -> list[Candidate]:
        return [one for one in self.outcome.candidates if (one.turn, one.kind) == (turn, KIND_OF[variant].name)]

    def _chosen(self, pair: Pair) -> Iterator[str]:
        """Where candidates were asked for, each text that is not the worst told of those that passed."""
        words = self.under.config.words
        for name in VARIANTS if words else ():
            made, beside = getattr(pair, name), self._beside(pair.turn, name)
            passed = [one for one in beside if one.reasons == (NOT_CHOSEN,)]
            if not made or not passed or words is None or len(made.text) > LONGEST:
                continue
            if len(passed) >= self.under.config.candidates:
                yield f"{name} has {len(passed)} candidates that were not chosen of {self.under.config.candidates} in all"
            attempt = min(set(range(1, len(beside) + 2)) - {one.attempt for one in beside})
            yield from self._misplaced_choice(words, name, (made.text, attempt), passed)

    def _misplaced_choice(self, words: WordList, name: str, chosen: tuple[str, int], passed: Sequence[Candidate]) -> Iterator[str]:
        own = words.giveaway(name, chosen[0]), chosen[1]
        least, attempt = min((words.giveaway(name, one.text), one.attempt or 0) for one in passed)
        if own > (least, attempt):
            told = f"the word list gives it {own[0] / UNIT:+.6f}, and candidate {attempt} {least / UNIT:+.6f}"
            yield f"{name} is not the candidate that words alone identify least well: {told}"

    def _of_candidate(self, one: Candidate, flags: tuple[str, ...]) -> Iterator[str]:
        """What a text that is said to be refused does not have, or one that is said to have passed has.

        Reasons of checks of one's own are not looked at.
        """
        if len(one.text) > LONGEST or any(character_flaws(one.text)):
            yield "is not a text that a check could have judged"
            return
        if NOT_CHOSEN in one.reasons and (self.under.config.words is None or len(one.reasons) > 1):
            yield f"is {NOT_CHOSEN}, but only one candidate was asked for, or it was refused"
        reference = self.dialogue.turns[one.turn].text
        found = variant_flaws(KINDS[one.kind], reference, one.text, flags, self.under.config.checks, self.under.language)
        flaws, told = {flaw.reason for flaw in found}, set(one.reasons) - {NOT_CHOSEN, TOXIC}
        if flaws - told or (not self.under.own and told - flaws):
            said, wanted = (", ".join(sorted(some)) or "nothing" for some in (told, flaws))
            yield f'("{one.text[:40]}") is listed as refused for {said}, but the checks give {wanted}'

    def _of_crossed(self, item: CrossedOutcome) -> Iterator[str]:
        """What a check of crossed items refuses in one: of a curated one its replies, of a model's the twin and all else too."""
        turns, limits, language = self.dialogue.turns, self.under.config.checks, self.under.language
        texts = (item.twin, item.reply_1, item.reply_2, item.reason)
        if longest := max((len(text) for text in texts if len(text) > LONGEST), default=0):
            yield f"too_long: a text has {longest:,} characters, but at most {LONGEST:,} are read"
            return
        last = turns[item.turn - 1]
        if last.role != "seeker":
            yield "its contexts do not end with what the seeker says"
        least, most = CHANGED_WORDS
        if not least <= (changed := changed_words(last.text, item.twin, language.code)) <= most:
            yield f"its contexts differ in {changed} words of their last turn, not in {least} to {most}"
        yield from (f'"{text[:40]}" begins or ends with white space' for text in texts if text != text.strip())
        yield from _told(self._crossed_flaws(item, last.text, turns[item.turn].text))
        if item.reply_1 == item.reply_2:
            yield "its replies are equal"
        contexts = [[*(one.text for one in turns[: item.turn - 1]), said, turns[item.turn].text] for said in (last.text, item.twin)]
        flags = [("crisis",) if any(built_in.in_crisis(text, language) for text in texts) else () for texts in contexts]
        for reply in (item.reply_1, item.reply_2) if item.source == "seed" else (item.reply_2,):
            yield from _told(reply_flaws(reply, limits, language))
            for said, some in zip((last.text, item.twin), flags, strict=True):
                yield from _told(built_in.keeps_pointer(turns[item.turn].text, reply, some, language))
                yield from _told(built_in.points_where_needed(said, reply, language))

    def _crossed_flaws(self, item: CrossedOutcome, said: str, reference: str) -> Iterator[Flaw]:
        if item.source == "model":
            yield from (flaw for text in (item.twin, item.reply_1, item.reply_2, item.reason) for flaw in character_flaws(text))
            yield from twin_flaws(Twins(said, reference, item.twin, item.reply_2), self.under.config.checks, self.under.language)
        else:
            curated = CrossedItem(item.crossed_id, item.turn, item.twin, item.reply_1, item.reply_2, item.reason)
            yield from (Flaw("curated", one.what) for one in problems_of_replies(curated, "", self.under.language.code))

    def _misplaced(self) -> Iterator[str]:
        """The items of a model's dialogue that stand at a turn, or have a number, for which nothing was asked."""
        turns, plan = self.dialogue.turns, self.plan
        if not self.outcome.crossed or plan is None or self.dialogue.source != "model" or len(turns) != len(plan.turns):
            return
        if any(not 0 <= place < len(turns) or turns[place].role != "helper" for place in plan.crossed):
            return  # the dialogue is not the planned one, which is told
        found = [scene.place for scene in crossed_places(self.dialogue, plan, self.under.language)[0]]
        # A number is tried at its own place first, then at one of those that are nobody's first.
        asked = {f"{plan.dialogue_id}-x{number}": {place, *found[plan.crosses :]} for number, place in enumerate(found[: plan.crosses], 1)}
        for item in self.outcome.crossed:
            if item.turn not in asked.get(item.crossed_id, ()):
                yield f"{item.crossed_id} is at turn {item.turn}, where no such item was asked for"

    def _like_seed(self) -> Iterator[str]:
        """Texts that are said to be of a packaged seed dialogue, and are not its."""
        catalogue, number, turns = self.under.catalogue, self.dialogue.scenario_id, self.dialogue.turns
        seed = next((one.seed for one in catalogue.scenarios if one.number == number), None)
        if seed is None or self.dialogue.source != "seed":
            return
        if self.dialogue.description != seed.description or [one.text for one in turns] != [one.text for one in seed.turns]:
            yield "its texts are not those of the seed dialogue"
            return
        kinds = {role: one.kind for role, one in self.under.config.models.items()}
        for pair in self.outcome.pairs:
            for name in VARIANTS:
                made, by_bank = getattr(pair, name), kinds[KIND_OF[name].role] == SEEDS
                if made and by_bank and made.method != RULES and made.text != getattr(seed.turns[pair.turn], name):
                    yield f"{name} of {pair_id(self.dialogue.dialogue_id, pair.turn)} is not that of the seed dialogue"
        # That of a corrected dialogue has its id from the dialogue, and its number from the file.
        own = {_curated(one) for one in catalogue.crossed.get(number, ())}
        for item in self.outcome.crossed:
            if item.source == "seed" and _curated(item) not in own:
                yield f"{item.crossed_id} is not the crossed item of the seed dialogue"


def _curated(one: CrossedItem | CrossedOutcome) -> tuple[Any, ...]:
    return one.crossed_id.rpartition("-")[2], one.turn, one.twin, one.reply_1, one.reply_2, one.reason


def _told(flaws: Sequence[Flaw] | Iterator[Flaw]) -> Iterator[str]:
    return (f"{flaw.reason}: {flaw.detail}" for flaw in flaws)


def _unclean(text: str) -> Iterator[Flaw]:
    if text != text.strip():
        yield Flaw("not_stripped", f'"{text[:40]}" begins or ends with white space')
    yield from character_flaws(text)
