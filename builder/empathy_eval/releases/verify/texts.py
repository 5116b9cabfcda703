"""The texts of a release, judged again: a build goes through each item once more, with what is released as the answers to its requests. And
their toxicity, scored again where the scorer is at hand."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from empathy_eval.base.errors import EmpathyEvalError, Finding, InputError
from empathy_eval.base.json_text import json_text
from empathy_eval.base.schemas import texts_in
from empathy_eval.base.stopping import run_beside_loops
from empathy_eval.completions.asker import Answer, Asker, Judge, Trail
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models.seed_bank import answer_of, bank_of
from empathy_eval.completions.models.toxicity_scorer import load_scorer, weights_of
from empathy_eval.completions.requests import LONGEST, About, Completion, Flaw, Model, Request, character_flaws
from empathy_eval.design.configuration import ToxicityConfig
from empathy_eval.design.contrasts import CONTROLS
from empathy_eval.design.dataset import MANIFEST, pair_id
from empathy_eval.design.errata import original_id
from empathy_eval.design.kinds import CROSSED, CROSSED_CHECK, KINDS, NEAR_APATHETIC, SCORE, SELF_CHAT, Kind
from empathy_eval.design.planning import Plan, PlannedTurn, plan_of
from empathy_eval.design.prompts import Message, Prompts, load_prompts
from empathy_eval.design.quotas import sequence_positions
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import CHANGED_WORDS, CrossedItem, Seed, changed_words, problems_of_replies
from empathy_eval.design.scenarios import CROSSED as CURATED
from empathy_eval.design.taxonomy import Taxonomy
from empathy_eval.design.word_list import NOT_CHOSEN
from empathy_eval.generation.checks.custom import Check
from empathy_eval.generation.crossed_by_models import CrossedItemWriter
from empathy_eval.generation.outcomes import VARIANTS, Candidate, Dialogue, ItemTrail, Outcome, Pair, Scene
from empathy_eval.generation.rewriting import Rewriter
from empathy_eval.generation.self_chat import generate
from empathy_eval.releases.assemble.build_definitions import BuildDefinitions
from empathy_eval.releases.assemble.read_back import RULES, SEEDS, read_outcomes
from empathy_eval.releases.verify.manifest import configuration_of

T = TypeVar("T")
# The reason of a text that is too toxic: whether it is, is scored elsewhere.
TOXIC = "toxic"


class _Unsent(Prompts):
    """Templates that are not rendered: nobody is asked."""

    def render(self, kind: str, **values: Any) -> list[Message]:
        return []


@dataclass(frozen=True)
class TextChecks:
    """What texts are checked under. Of checks of ``own``, which are code and are not run, candidates may have reasons too.

    ``bank`` is what seed dialogues go by as a model, ``drawn`` are the places of drawn dialogues.
    """

    recipe: Recipe
    bank: str
    own: bool = False
    drawn: dict[int, list[int]] = field(default_factory=dict)

    def plan(self, dialogue_id: str) -> Plan | None:
        """The plan of a dialogue, drawn again; None where there is nothing to draw it from, as for seeds that are not here."""
        config, catalogue = self.recipe.config, self.recipe.catalogue
        if config.plan == "seeds" and not any(one.seed for one in catalogue.scenarios):
            return None
        return plan_of(config, catalogue, dialogue_id, self.drawn)


def checked_under(folder: Path, manifest: dict[str, Any]) -> TextChecks | None:
    """What the texts of a release are checked under; None where its rules are not to be had.

    Raises:
        InputError: if what it carries is not valid.
    """
    under, config = BuildDefinitions(manifest, folder, strict=True), configuration_of(folder, manifest)
    if under.language is None:
        return None
    catalogue = under.catalogue
    if manifest.get("scenario_files", {}).get(CURATED) != catalogue.files.get(CURATED):
        catalogue = replace(catalogue, crossed={})  # items of others are in the data alone
    recipe = Recipe(config, catalogue, _Unsent(**vars(load_prompts())), language=under.language)
    drawn = sequence_positions(config, under.catalogue) if config.plan == "drawn" else {}
    return TextChecks(recipe, bank_of(manifest["seeds"]), bool(manifest.get("checks")), drawn)


def replayed(outcome: Outcome, under: TextChecks, gone: Collection[str]) -> tuple[Outcome, list[str]]:
    """The outcome of a build in which the texts of an outcome are what was answered; and which of them it would not have taken, or not have
    refused as they were. Pairs that are ``gone`` are left out of it.

    Texts of packaged seeds are taken from these.
    """
    dialogue, catalogue = outcome.dialogue, under.recipe.catalogue
    if dialogue is None:
        return outcome, []
    seed = next((one.seed for one in catalogue.scenarios if one.number == outcome.scenario_id), None)
    curated = [one for one in outcome.crossed if one.source == "seed" and not catalogue.crossed]
    if curated:
        own = tuple(CrossedItem(*(getattr(one, name) for name in CrossedItem.__dataclass_fields__)) for one in curated)
        # A corrected dialogue takes the items of the original one under its own id.
        original = original_id(outcome.dialogue_id)
        own = tuple(replace(item, crossed_id=item.crossed_id.replace(outcome.dialogue_id, original, 1)) for item in own)
        under = replace(under, recipe=replace(under.recipe, catalogue=replace(catalogue, crossed={outcome.scenario_id: own})))
    try:
        plan = under.plan(outcome.dialogue_id)
        asker = _Answers(outcome, dialogue, under, seed)
        again = run_beside_loops(lambda: asyncio.run(_item(asker, plan or _plan_told(outcome, dialogue))))
    except EmpathyEvalError as error:
        return outcome, [one.what for one in error.problems]
    asker.whats += [] if plan else _unplanned(outcome, dialogue, catalogue.taxonomy)
    asker.whats += [what for one in curated for what in _of_curated(one, dialogue, under.recipe.language.code)]

    def stay(one: Pair | Candidate) -> bool:
        return pair_id(outcome.dialogue_id, one.turn) not in gone

    return replace(again, pairs=tuple(filter(stay, again.pairs)), candidates=tuple(filter(stay, again.candidates))), asker.whats


async def _item(asker: _Answers, plan: Plan) -> Outcome:
    """The item as a build makes it; as it is released where its dialogue is refused."""
    trail, recipe = ItemTrail(), asker.under.recipe
    checks = (_ListedReasons(asker.outcome.candidates),) if asker.under.own else ()
    dialogue = await generate(asker, recipe, checks, plan, trail)
    if dialogue is None:
        return asker.outcome
    pairs = await Rewriter(asker, recipe, checks, trail).pairs(dialogue, plan.turns)
    crossed = await CrossedItemWriter(asker, recipe, checks, trail).items(dialogue, plan)
    return replace(asker.outcome, dialogue=dialogue, pairs=pairs, candidates=trail.candidates_beside(pairs), crossed=crossed)


@dataclass(frozen=True)
class _Said:
    """An answer as a release holds it, where it is from, and why it was refused."""

    value: dict[str, Any]
    model: str | None = ""
    key: str | None = ""
    reasons: tuple[str, ...] = ()


class _Scorer:
    """The scorer of toxicity, whose scores are those that are released."""

    endpoint = name = ""

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        return {"text": messages[0]["content"]}


class _Answers(Asker):
    """Answers each request with what a release holds of a dialogue; ``whats`` are the answers that are not judged as it says."""

    def __init__(self, outcome: Outcome, dialogue: Dialogue, under: TextChecks, seed: Seed | None) -> None:
        config = under.recipe.config
        scorers = {SCORE.role: cast(Model, _Scorer())} if config.checks.toxicity else {}
        super().__init__(cast(Ledger, None), scorers, under.recipe.prompts, samples=config.samples, repairs=config.repairs)
        self.outcome, self.under, self.whats = outcome, under, list[str]()
        self._dialogue, self._seed, self._left = dialogue, seed, dict[About, Iterator[_Said]]()
        self._scores = {one.text: 1.0 for one in outcome.candidates if TOXIC in one.reasons}
        for pair in outcome.pairs:
            self._scores |= {one.text: one.toxicity or 0.0 for name in VARIANTS if (one := getattr(pair, name))}
            self._scores[dialogue.turns[pair.turn].text] = pair.reference_toxicity or 0.0

    async def complete(self, model: Model, request: Request, *, repair: bool = False) -> Completion:
        """The score of a text; one that is not released is within the limit."""
        score = self._scores.get(request.body["text"], 0.0)
        return Completion(json_text({"score": score if 0 <= score <= 1 else 1.0}), "stop", "")

    async def ask(
        self, about: About, messages: list[Message], judge: Judge[T], trail: Trail, first: int = 0, role: str = ""
    ) -> Answer[T] | None:
        """The next answer that is released as one that passed, or None after the last; each is judged again."""
        kind, turn = KINDS[about.kind], about.turn
        name = kind.name if turn is None else f"{kind.variant or kind.name} of {pair_id(about.dialogue_id, turn)}"
        # Of texts that are more than could be asked for those at the end are not come to.
        for _, said in zip(range(self.samples * (1 + self.repairs)), self._left.setdefault(about, self._said(about)), strict=False):
            verdict, told = await _verdict(said.value, judge), set(said.reasons) - {NOT_CHOSEN}
            found = {flaw.reason: flaw for flaw in verdict} if isinstance(verdict, list) else {}
            if not told:
                self.whats += [f"{name}: {reason}: {flaw.detail}" for reason, flaw in found.items()]
            elif told != found.keys():
                its, wanted = (", ".join(sorted(some)) or "nothing" for some in (told, found))
                self.whats.append(f'{name} ("{said.value["text"][:40]}") is listed as refused for {its}, but the checks give {wanted}')
            if not told and not isinstance(verdict, list):
                banked = self.under.recipe.config.models[kind.role].kind == SEEDS
                return Answer(verdict, self.under.bank if banked else said.model or "", said.key or "")
        return None

    def _said(self, about: About) -> Iterator[_Said]:
        """All answers to requests about something, in their order."""
        dialogue, kind = self._dialogue, KINDS[about.kind]
        items = [one for one in self.outcome.crossed if one.turn == about.turn]
        seed = self._seed if self.under.recipe.config.models[kind.role].kind == SEEDS else None
        if kind is SELF_CHAT:
            turns = [{"role": one.role, "text": one.text, "strategy": one.strategy} for one in dialogue.turns]
            value = answer_of(seed) if seed else {"description": dialogue.description, "turns": turns}
            yield _Said(value, dialogue.model, dialogue.request_key)
        elif kind.variant:
            turn = seed.turns[about.turn] if seed and about.turn is not None and about.turn < len(seed.turns) else None
            text = getattr(turn, kind.variant, None)
            yield from (replace(said, value={"text": text}) if text else said for said in self._texts(kind, about.turn))
        for one in items if kind is CROSSED else ():
            yield _Said({"twin": one.twin, "reply": one.reply_2, "reason": one.reason}, one.writer, next(iter(one.request_keys), ""))
        for one in items if kind is CROSSED_CHECK else ():
            # Each context with its own reply first, then with it last.
            yield from (_Said({"choice": own}, one.judge, key) for own, key in zip("ABAB", one.request_keys[1:], strict=False))

    def _texts(self, kind: Kind, turn: int | None) -> list[_Said]:
        """The texts of a variant as they were judged; what is released has the number that no other has."""
        made = next((getattr(pair, kind.variant or "") for pair in self.outcome.pairs if pair.turn == turn), None)
        others = [one for one in self.outcome.candidates if (one.turn, one.kind) == (turn, kind.name)]
        texts = {one.attempt or number: _Said({"text": one.text}, reasons=one.reasons) for number, one in enumerate(others, 1)}
        if made and made.method != RULES:
            texts[min({*range(1, len(others) + 2)} - texts.keys())] = _Said({"text": made.text}, made.model, made.request_key)
        if kind is NEAR_APATHETIC and self.under.recipe.config.near_apathetic != "model":
            texts.pop(1, None)  # rules made it, and make it again
        return [texts[number] for number in sorted(texts)]


async def _verdict(value: dict[str, Any], judge: Judge[T]) -> T | list[Flaw]:
    """The verdict of a build on an answer, as it comes to it."""
    texts = [text for _, text in texts_in(value)]
    if longest := max((len(text) for text in texts if len(text) > LONGEST), default=0):
        return [Flaw("too_long", f"a text has {longest:,} characters, at most {LONGEST:,} are read")]
    if unclean := [flaw for text in texts for flaw in character_flaws(text)]:
        return unclean
    try:
        return await judge(value)
    except (LookupError, TypeError, ValueError) as error:
        return [Flaw("not_judged", f"it could not be judged ({type(error).__name__})")]


class _ListedReasons(Check):
    """In the place of checks of one's own: what they are said to have found."""

    name = "noted"

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self._reasons = {(KINDS[one.kind].variant, one.turn, one.text): set(one.reasons) - {NOT_CHOSEN} for one in candidates}

    def variant(self, variant: str, text: str, scene: Scene) -> Iterator[Flaw]:
        """The reasons of a candidate."""
        return (Flaw(reason, "as it is listed") for reason in self._reasons.get((variant, scene.place, text), ()))


def _plan_told(outcome: Outcome, dialogue: Dialogue) -> Plan:
    """The plan that an outcome would come of, where none can be drawn."""
    pairs, tried = {one.turn: one for one in outcome.pairs}, {(one.turn, KINDS[one.kind].variant) for one in outcome.candidates}
    turns = list[PlannedTurn]()
    for place, turn in enumerate(dialogue.turns):
        pair = pairs.get(place)
        made: Mapping[str, Any] = {name: one for name in VARIANTS if pair and (one := getattr(pair, name))}
        known = {*made, *(variant for where, variant in tried if where == place)}
        ways = {name: one.way for name, one in made.items() if one.way}
        far = pair.empathetic.strategy if pair else None
        turns.append(PlannedTurn(turn.role, turn.strategy, far, bool(known & {*CONTROLS}), ways, edited=bool(known)))
    crossed = tuple(one.turn for one in outcome.crossed)
    voices = dialogue.helper_voice, dialogue.far_voice
    return Plan(dialogue.dialogue_id, dialogue.scenario_id, None, tuple(turns), None, crossed, len(crossed), voices)


def _unplanned(outcome: Outcome, dialogue: Dialogue, taxonomy: Taxonomy) -> Iterator[str]:
    """What no plan says of a variant: a strategy of another phase, or a manner or a device that the taxonomy does not have."""
    for pair in outcome.pairs:
        name, own, far = pair_id(outcome.dialogue_id, pair.turn), dialogue.turns[pair.turn].strategy or "", pair.empathetic.strategy
        if (
            own == far
            or not {own, far} <= {one.abbreviation for one in taxonomy.strategies}
            or taxonomy.phase_of(own) != taxonomy.phase_of(far)
        ):
            yield f'{name}: the strategy "{own}" became "{far}", but another strategy of the same phase is required'
        for variant in VARIANTS:
            if (made := getattr(pair, variant)) and made.way not in {one.name for one in taxonomy.ways(variant)} | {None}:
                yield f'{name}: {variant} is made as "{made.way}", which the taxonomy does not have'


def _of_curated(item: CrossedItem, dialogue: Dialogue, code: str) -> Iterator[str]:
    """What is wrong with an item of seeds that are not here."""
    last, texts = dialogue.turns[item.turn - 1], (item.twin, item.reply_1, item.reply_2, item.reason)
    least, most = CHANGED_WORDS
    if last.role != "seeker" or any(len(text) > LONGEST or text != text.strip() or any(character_flaws(text)) for text in texts):
        yield f"{item.crossed_id}: follows no turn of the seeker, or has a text that is too long or unclean"
    elif not least <= (changed := changed_words(last.text, item.twin, code)) <= most:
        yield f"{item.crossed_id}: its contexts differ in {changed} words of their last turn, not in {least} to {most}"
    else:
        yield from (f"{item.crossed_id}: curated: {one.what}" for one in problems_of_replies(item, "", code))


# Texts that are scored together.
BATCH = 2000
# A score is rounded to four places: one that lies between two may be rounded otherwise on another machine.
EXACT = 1.0001e-4


class _Text(NamedTuple):
    """A text and where it stands. ``score`` is what is released of it, None where nothing is; ``refused`` whether it is said to be too
    toxic, None where reasons of checks of one's own may say the same."""

    place: str
    name: str
    text: str
    score: float | None = None
    refused: bool | None = False


def toxicity_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Scores that the scorer does not give, and texts that are above the limit and are released, or are below and are refused for it.

    What is not scored again is reported.
    """
    scored = manifest["configuration"]["checks"]["toxicity"]
    if scored == "none":
        return
    config = ToxicityConfig(**scored)
    if reason := _not_at_hand(config, manifest["toxicity_weights"]):
        what = f'toxicity is not scored again: "{config.scorer}" {reason[0]}'
        yield Finding(str(folder / MANIFEST), what, reason[1], "unchecked", "toxicity")
        return
    scorer, texts = load_scorer(config), _texts(folder, manifest)
    # By batch: all of a release's texts are more than memory should hold.
    while batch := list(itertools.islice(texts, BATCH)):
        distinct = list(dict.fromkeys(one.text for one in batch))
        scores = dict(zip(distinct, (round(float(score), 4) for score in scorer(distinct)), strict=True))
        for one in batch:
            if wrong := _wrong(one, scores[one.text], config.at_most):
                yield Finding(f"{folder}: {one.place}", f"{one.name} {wrong}")


def _not_at_hand(config: ToxicityConfig, weights: str) -> tuple[str, str] | None:
    """(what, fix) where the scorer with those weights is not to be had; nothing is loaded by a path that a manifest names."""
    if config.scorer == "detoxify":
        fix = "ask the publisher for the weights, and build the release again"
        return "has its own weights, at a path on the publisher's machine", fix
    try:
        here = weights_of(config)
    except InputError as error:
        return "is not installed", error.problems[0].fix
    if here != weights:
        return f"has other weights here ({here[:12]}, not {weights[:12]})", "install the version that the manifest names"
    return None


def _wrong(one: _Text, score: float, at_most: float) -> str | None:
    """What the scorer gives otherwise of a text."""
    if one.score is not None and not abs(one.score - score) <= EXACT:
        return f"has the toxicity {one.score}, but its text gives {score}"
    if one.refused is False and score > at_most + EXACT:
        return f"has a text whose toxicity is {score}, but at most {at_most} is allowed"
    return f'is refused as "{TOXIC}", but its toxicity is {score}' if one.refused and score <= at_most - EXACT else None


def _texts(folder: Path, manifest: dict[str, Any]) -> Iterator[_Text]:
    """Every text that a build scores: helper turns, variants with the scores that are released of them, replies and candidates."""
    own = bool(manifest["configuration"]["checks"].get("own"))
    for outcome in read_outcomes(folder, manifest):
        turns = outcome.dialogue.turns if outcome.dialogue else ()
        scored = {pair.turn: pair.reference_toxicity for pair in outcome.pairs}
        names = {place: pair_id(outcome.dialogue_id, place) for place in range(len(turns))}
        helpers = (place for place, turn in enumerate(turns) if turn.role == "helper")
        yield from (_Text(names[place], "reference", turns[place].text, scored.get(place)) for place in helpers)
        for pair in outcome.pairs:
            made = ((name, getattr(pair, name)) for name in VARIANTS)
            yield from (_Text(names[pair.turn], name, one.text, one.toxicity) for name, one in made if one)
        for item in outcome.crossed:
            yield from (_Text(item.crossed_id, name, getattr(item, name)) for name in ("reply_1", "reply_2"))
        for one in outcome.candidates:
            refused, name = TOXIC in one.reasons, f"{one.kind} {one.attempt} in candidates.parquet"
            yield _Text(names[one.turn], name, one.text, refused=None if refused and own else refused)
