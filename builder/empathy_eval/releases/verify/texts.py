"""The texts of a release, checked again: each item is built with the released texts as the answers, and toxicity is scored again."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from empathy_eval.base.errors import EmpathyEvalError, Finding
from empathy_eval.base.json_text import json_text
from empathy_eval.base.stopping import run_beside_loops
from empathy_eval.completions.asker import Answer, Asker, Judge, Trail, evaluate_answer
from empathy_eval.completions.ledger import Ledger
from empathy_eval.completions.models.seed_bank import answer_of, bank_of
from empathy_eval.completions.models.toxicity_scorer import load_scorer, missing_scorer
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
from empathy_eval.releases.assemble.read_back import KIND_OF, RULES, SEEDS, numbered_rows
from empathy_eval.releases.verify.files import released_rows
from empathy_eval.releases.verify.manifest import configuration_of

T = TypeVar("T")
# The reason of a text that is too toxic: scores are checked elsewhere.
TOXIC = "toxic"


class _NoPrompts(Prompts):
    """Templates that are not rendered: nothing is sent."""

    def render(self, kind: str, **values: Any) -> list[Message]:
        return []


@dataclass(frozen=True)
class TextChecks:
    """The recipe that texts are checked with. Candidates may also have reasons of the publisher's ``own`` checks, which are not run.

    ``bank`` is the name of seed dialogues as a model; ``positions`` are those of drawn dialogues.
    """

    recipe: Recipe
    bank: str
    own: bool = False
    positions: dict[int, list[int]] = field(default_factory=dict)

    def plan(self, dialogue_id: str) -> Plan | None:
        """The plan of a dialogue, drawn again; None for seeds that are not here."""
        config, catalogue = self.recipe.config, self.recipe.catalogue
        if config.plan == "seeds" and not any(scenario.seed for scenario in catalogue.scenarios):
            return None
        return plan_of(config, catalogue, dialogue_id, self.positions)


def load_text_checks(folder: Path, manifest: dict[str, Any]) -> TextChecks | None:
    """The checks of the texts of a release; None if its rules cannot be used here.

    Raises:
        InputError: if its definitions or its configuration are not valid.
    """
    definitions, config = BuildDefinitions(manifest, folder, strict=True), configuration_of(folder, manifest)
    if definitions.language is None:
        return None
    catalogue = definitions.catalogue
    positions = sequence_positions(config, catalogue) if config.plan == "drawn" else {}
    if manifest.get("scenario_files", {}).get(CURATED) != catalogue.files.get(CURATED):
        catalogue = replace(catalogue, crossed={})  # the publisher's items are in the data alone
    recipe = Recipe(config, catalogue, _NoPrompts(**vars(load_prompts())), language=definitions.language)
    return TextChecks(recipe, bank_of(manifest["seeds"]), bool(manifest.get("checks")), positions)


def replay_outcome(outcome: Outcome, checks: TextChecks, excluded: Collection[str]) -> tuple[Outcome, list[str]]:
    """The outcome of a build whose answers are the texts of an outcome, and the texts that it judges otherwise than the release says.

    ``excluded`` pairs are left out. The texts of packaged seeds are taken from the package.
    """
    dialogue, catalogue = outcome.dialogue, checks.recipe.catalogue
    if dialogue is None:
        return outcome, []
    seed = next((scenario.seed for scenario in catalogue.scenarios if scenario.number == outcome.scenario_id), None)
    curated = [item for item in outcome.crossed if item.source == "seed" and not catalogue.crossed]
    if curated:
        own = tuple(CrossedItem(*(getattr(item, name) for name in CrossedItem.__dataclass_fields__)) for item in curated)
        # A corrected dialogue takes the items of the original one under its own id.
        original = original_id(outcome.dialogue_id)
        own = tuple(replace(item, crossed_id=item.crossed_id.replace(outcome.dialogue_id, original, 1)) for item in own)
        checks = replace(checks, recipe=replace(checks.recipe, catalogue=replace(catalogue, crossed={outcome.scenario_id: own})))
    try:
        plan = checks.plan(outcome.dialogue_id)
        asker = _StoredAnswers(outcome, dialogue, checks, seed)
        rebuilt = run_beside_loops(lambda: asyncio.run(_build_item(asker, plan or _stored_plan(outcome, dialogue))))
    except EmpathyEvalError as error:
        return outcome, [problem.what for problem in error.problems]
    whats = [*asker.whats, *(() if plan else _unplanned(outcome, dialogue, catalogue.taxonomy))]
    whats += [what for item in curated for what in _curated_faults(item, dialogue, checks.recipe.language.code)]

    def is_included(part: Pair | Candidate) -> bool:
        return pair_id(outcome.dialogue_id, part.turn) not in excluded

    pairs, candidates = filter(is_included, rebuilt.pairs), filter(is_included, rebuilt.candidates)
    return replace(rebuilt, pairs=tuple(pairs), candidates=tuple(candidates)), whats


async def _build_item(asker: _StoredAnswers, plan: Plan) -> Outcome:
    """The item of a build; the released one if its dialogue is refused."""
    trail, recipe = ItemTrail(), asker.checks.recipe
    own = (_ListedReasons(asker.outcome.candidates),) if asker.checks.own else ()
    dialogue = await generate(asker, recipe, own, plan, trail)
    if dialogue is None:
        return asker.outcome
    pairs = await Rewriter(asker, recipe, own, trail).pairs(dialogue, plan.turns)
    crossed = await CrossedItemWriter(asker, recipe, own, trail).items(dialogue, plan)
    return replace(asker.outcome, dialogue=dialogue, pairs=pairs, candidates=trail.candidates_beside(pairs), crossed=crossed)


@dataclass(frozen=True)
class _StoredAnswer:
    """An answer in a release, its model and request key, and the reasons for which it was refused."""

    value: dict[str, Any]
    model: str | None = ""
    key: str | None = ""
    reasons: tuple[str, ...] = ()


class _Scorer:
    """The toxicity scorer, whose scores are the released ones."""

    endpoint = name = ""

    def body(self, messages: list[Message], answer_schema: str) -> dict[str, Any]:
        return {"text": messages[0]["content"]}


class _StoredAnswers(Asker):
    """Answers each request with the texts of a dialogue; ``whats`` are the answers that are judged otherwise than the release says."""

    def __init__(self, outcome: Outcome, dialogue: Dialogue, checks: TextChecks, seed: Seed | None) -> None:
        config = checks.recipe.config
        scorers = {SCORE.role: cast(Model, _Scorer())} if config.checks.toxicity else {}
        super().__init__(cast(Ledger, None), scorers, checks.recipe.prompts, samples=config.samples, repairs=config.repairs)
        self.outcome, self.checks, self.whats = outcome, checks, list[str]()
        self._dialogue, self._seed, self._left = dialogue, seed, dict[About, Iterator[_StoredAnswer]]()
        self._scores = {candidate.text: 1.0 for candidate in outcome.candidates if TOXIC in candidate.reasons}
        for pair in outcome.pairs:
            variants = (variant for name in VARIANTS if (variant := getattr(pair, name)))
            self._scores |= {variant.text: variant.toxicity or 0.0 for variant in variants}
            self._scores[dialogue.turns[pair.turn].text] = pair.reference_toxicity or 0.0

    async def complete(self, model: Model, request: Request, *, repair: bool = False) -> Completion:
        """The score of a text; a text that is not released is within the limit."""
        score = self._scores.get(request.body["text"], 0.0)
        return Completion(json_text({"score": score if 0 <= score <= 1 else 1.0}), "stop", "")

    async def ask(
        self, about: About, messages: list[Message], judge: Judge[T], trail: Trail, first: int = 0, role: str = ""
    ) -> Answer[T] | None:
        """The next stored answer that the release says was accepted, or None after the last one; each is judged again."""
        kind, turn = KINDS[about.kind], about.turn
        name = kind.name if turn is None else f"{kind.variant or kind.name} of {pair_id(about.dialogue_id, turn)}"
        # Texts beyond the largest number of requests are not reached.
        for _, stored in zip(range(self.samples * (1 + self.repairs)), self._left.setdefault(about, self._answers(about)), strict=False):
            completion = Completion(json_text(stored.value, indent=None), "stop", "")
            verdict, reasons = await evaluate_answer(completion, kind.answer, judge), set(stored.reasons) - {NOT_CHOSEN}
            flaws = {flaw.reason: flaw for flaw in verdict} if isinstance(verdict, list) else {}
            if not reasons:
                self.whats += [f"{name}: {reason}: {flaw.detail}" for reason, flaw in flaws.items()]
            elif reasons != flaws.keys():
                listed, actual = (", ".join(sorted(some)) or "nothing" for some in (reasons, flaws))
                self.whats.append(f'{name} ("{stored.value["text"][:40]}") is listed as refused for {listed}, but the checks give {actual}')
            if not reasons and not isinstance(verdict, list):
                banked = self.checks.recipe.config.models[kind.role].kind == SEEDS
                return Answer(verdict, self.checks.bank if banked else stored.model or "", stored.key or "")
        return None

    def _answers(self, about: About) -> Iterator[_StoredAnswer]:
        """All answers to the requests about something, in their order."""
        dialogue, kind, turn = self._dialogue, KINDS[about.kind], about.turn
        items = [item for item in self.outcome.crossed if item.turn == turn]
        seed = self._seed if self.checks.recipe.config.models[kind.role].kind == SEEDS else None
        if kind is SELF_CHAT:
            turns = [{"role": turn.role, "text": turn.text, "strategy": turn.strategy} for turn in dialogue.turns]
            value = answer_of(seed) if seed else {"description": dialogue.description, "turns": turns}
            yield _StoredAnswer(value, dialogue.model, dialogue.request_key)
        elif kind.variant:
            seed_turn = seed.turns[turn] if seed and turn is not None and turn < len(seed.turns) else None
            text = getattr(seed_turn, kind.variant, None)
            yield from (replace(answer, value={"text": text}) if text else answer for answer in self._variants(kind, turn))
        for item in items if kind is CROSSED else ():
            value = {"twin": item.twin, "reply": item.reply_2, "reason": item.reason}
            yield _StoredAnswer(value, item.writer, next(iter(item.request_keys), ""))
        for item in items if kind is CROSSED_CHECK else ():
            # Each context with its own reply first, then with it last.
            for choice, key in zip("ABAB", item.request_keys[1:], strict=False):
                yield _StoredAnswer({"analysis": "", "choice": choice}, item.judge, key)

    def _variants(self, kind: Kind, turn: int | None) -> list[_StoredAnswer]:
        """The texts of a variant in the order in which they were judged; the released text has the number that no candidate has."""
        variant = next((getattr(pair, kind.variant or "") for pair in self.outcome.pairs if pair.turn == turn), None)
        candidates = [candidate for candidate in self.outcome.candidates if (candidate.turn, candidate.kind) == (turn, kind.name)]
        answers = dict[int, _StoredAnswer]()
        for number, candidate in enumerate(candidates, 1):
            answers[candidate.attempt or number] = _StoredAnswer({"text": candidate.text}, reasons=candidate.reasons)
        if variant and variant.method != RULES:
            number = min({*range(1, len(candidates) + 2)} - answers.keys())
            answers[number] = _StoredAnswer({"text": variant.text}, variant.model, variant.request_key)
        if kind is NEAR_APATHETIC and self.checks.recipe.config.near_apathetic != "model":
            answers.pop(1, None)  # a text by rules, which make it again
        return [answers[number] for number in sorted(answers)]


class _ListedReasons(Check):
    """In place of the publisher's own checks: the reasons that candidates have."""

    name = "noted"

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        named = {(KINDS[text.kind].variant, text.turn, text.text): text.reasons for text in candidates}
        self._reasons = {key: set(reasons) - {NOT_CHOSEN} for key, reasons in named.items()}

    def variant(self, variant: str, text: str, scene: Scene) -> Iterator[Flaw]:
        """The reasons of a candidate."""
        return (Flaw(reason, "as it is listed") for reason in self._reasons.get((variant, scene.place, text), ()))


def _stored_plan(outcome: Outcome, dialogue: Dialogue) -> Plan:
    """A plan that gives an outcome, where no plan can be drawn."""
    pairs, refused = {pair.turn: pair for pair in outcome.pairs}, {(text.turn, KINDS[text.kind].variant) for text in outcome.candidates}
    turns = list[PlannedTurn]()
    for index, turn in enumerate(dialogue.turns):
        pair = pairs.get(index)
        variants: Mapping[str, Any] = {name: variant for name in VARIANTS if pair and (variant := getattr(pair, name))}
        requested = {*variants, *(name for place, name in refused if place == index)}
        ways = {name: variant.way for name, variant in variants.items() if variant.way}
        far = pair.empathetic.strategy if pair else None
        turns.append(PlannedTurn(turn.role, turn.strategy, far, bool(requested & {*CONTROLS}), ways, edited=bool(requested)))
    crossed = tuple(item.turn for item in outcome.crossed)
    voices = dialogue.helper_voice, dialogue.far_voice
    return Plan(dialogue.dialogue_id, dialogue.scenario_id, None, tuple(turns), None, crossed, len(crossed), voices)


def _unplanned(outcome: Outcome, dialogue: Dialogue, taxonomy: Taxonomy) -> Iterator[str]:
    """Variants that no plan asks for: with a strategy of another phase, or a manner or device that the taxonomy lacks."""
    known = {strategy.abbreviation for strategy in taxonomy.strategies}
    for pair in outcome.pairs:
        name, own, far = pair_id(outcome.dialogue_id, pair.turn), dialogue.turns[pair.turn].strategy or "", pair.empathetic.strategy
        if own == far or not {own, far} <= known or taxonomy.phase_of(own) != taxonomy.phase_of(far):
            yield f'{name}: the strategy "{own}" became "{far}", but another strategy of the same phase is required'
        for kind in VARIANTS:
            if (variant := getattr(pair, kind)) and variant.way not in {way.name for way in taxonomy.ways(kind)} | {None}:
                yield f'{name}: {kind} is made as "{variant.way}", which the taxonomy does not have'


def _curated_faults(item: CrossedItem, dialogue: Dialogue, code: str) -> Iterator[str]:
    """What is wrong with a curated item of seeds that are not here."""
    last, texts = dialogue.turns[item.turn - 1], (item.twin, item.reply_1, item.reply_2, item.reason)
    least, most = CHANGED_WORDS
    if last.role != "seeker" or any(len(text) > LONGEST or text != text.strip() or any(character_flaws(text)) for text in texts):
        yield f"{item.crossed_id}: follows no turn of the seeker, or has a text that is too long or unclean"
    elif not least <= (changed := changed_words(last.text, item.twin, code)) <= most:
        yield f"{item.crossed_id}: its contexts differ in {changed} words of their last turn, not in {least} to {most}"
    else:
        yield from (f"{item.crossed_id}: curated: {problem.what}" for problem in problems_of_replies(item, "", code))


# The number of texts that are scored together.
BATCH = 2000
# A score is rounded to four places; another machine may round a score between two of them otherwise.
EXACT = 1.0001e-4


class _ScoredText(NamedTuple):
    """A text and its place, with its released ``score`` if it has one.

    ``refused`` is whether it is listed as too toxic, None if the reason may be that of the publisher's own check.
    """

    place: str
    name: str
    text: str
    score: float | None = None
    refused: bool | None = False

    def fault(self, score: float, at_most: float) -> str | None:
        """What the scorer gives otherwise."""
        if self.score is not None and not abs(self.score - score) <= EXACT:
            return f"has the toxicity {self.score}, but its text gives {score}"
        if self.refused is False and score > at_most + EXACT:
            return f"has a text whose toxicity is {score}, but at most {at_most} is allowed"
        return f'is refused as "{TOXIC}", but its toxicity is {score}' if self.refused and score <= at_most - EXACT else None


def toxicity_faults(folder: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Scores that the scorer does not give, released texts above the limit, and texts below it that are listed as too toxic.

    Scores are unchecked if the scorer is not here.
    """
    settings = manifest["configuration"]["checks"]["toxicity"]
    if settings == "none":
        return
    config = ToxicityConfig(**settings)
    if reason := missing_scorer(config, manifest["toxicity_weights"]):
        what = f'toxicity is not scored again: "{config.scorer}" {reason[0]}'
        yield Finding(str(folder / MANIFEST), what, reason[1], "unchecked", "toxicity")
        return
    scorer, texts = load_scorer(config), _scored_texts(folder, manifest)
    while batch := list(islice(texts, BATCH)):
        distinct = list(dict.fromkeys(text.text for text in batch))
        scores = dict(zip(distinct, (round(float(score), 4) for score in scorer(distinct)), strict=True))
        faults = ((text, text.fault(scores[text.text], config.at_most)) for text in batch)
        yield from (Finding(f"{folder}: {text.place}", f"{text.name} {what}") for text, what in faults if what)


def _scored_texts(folder: Path, manifest: dict[str, Any]) -> Iterator[_ScoredText]:
    """All texts that a build scores: helper turns, variants, replies of crossed items, and candidates."""
    for row in released_rows(folder, "dialogues"):
        turns = ((pair_id(row["dialogue_id"], index), turn) for index, turn in enumerate(row["turns"]) if turn["role"] == "helper")
        yield from (_ScoredText(name, "reference", turn["text"]) for name, turn in turns)
    for row in released_rows(folder, "pairs"):
        yield from (_ScoredText(row["pair_id"], name, row[name], score) for name, score in row["toxicity"].items())
    for row in released_rows(folder, "controls"):
        yield from (_ScoredText(row["pair_id"], name, row[name], row[f"{name}_toxicity"]) for name in CONTROLS)
    for row in released_rows(folder, "crossed"):
        yield from (_ScoredText(row["crossed_id"], name, row[name]) for name in ("reply_1", "reply_2"))
    own = bool(manifest["configuration"]["checks"].get("own"))
    for _, row in numbered_rows(folder / "candidates.parquet"):
        listed, name = TOXIC in row["reasons"], f"{KIND_OF[row['variant']].name} {row['attempt']} in candidates.parquet"
        yield _ScoredText(row["pair_id"], name, row["text"], refused=None if listed and own else listed)
