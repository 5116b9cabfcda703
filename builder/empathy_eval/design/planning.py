"""Plans: everything decided about a dialogue before a model is asked, drawn from (seed, scenario, index) alone."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from empathy_eval.base.errors import input_error, refuse
from empathy_eval.base.hashing import derived_random
from empathy_eval.base.text import ENGLISH, words
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.contrasts import APATHETIC, CELLS, NEAR
from empathy_eval.design.errata import PlanIndex, errata_dialogues, original_id, unknown_errata
from empathy_eval.design.kinds import CROSSING, NEAR_APATHETIC, SELF_CHAT, Kind, rewritings
from empathy_eval.design.personas import Persona, Personas
from empathy_eval.design.quotas import controls_at, crossed_at, quotas, sequence_positions
from empathy_eval.design.scenarios import Catalogue, Seed, SeedTurn
from empathy_eval.design.taxonomy import VARIANT_WAYS, PhaseRules, Role, Taxonomy, Way, crossable

# How often a course is drawn that lets the seeker answer, before there is taken to be none.
REDRAWN = 200
# How often a role speaks twice running, and how often an early action turn changes places with a comforting one.
DOUBLE_TURN = 0.07
INTERLEAVED = 0.35
# Of the dialogues that would end with the helper so many do; all others end with the seeker.
ENDS_WITH_HELPER = 0.1
# A helper turn planned with fewer words gets no variants: an edit of fewer than 30 % of them hardly turns it round.
EDITED_FROM = 12
T = TypeVar("T")


def plans(config: Configuration, catalogue: Catalogue, only: Collection[str] | None = None) -> Iterator[Plan]:
    """All plans of a build, or ``only`` those of some dialogues, by scenario, then index.

    Raises:
        InputError: if ``plan: seeds`` finds no seed dialogue.
    """
    if config.plan == "drawn":
        for number, positions in sequence_positions(config, catalogue).items():
            for index, position in enumerate(positions):
                if only is None or config.corrected.get(name := f"{number:03d}-{index:05d}", name) in only:
                    yield _planned(config, catalogue, (number, index), position)
        return
    if not quotas(config, catalogue):
        raise input_error("scenarios", "no scenario has a seed dialogue", "add one, or write plan: drawn")
    for scenario in catalogue.scenarios:
        name = f"{scenario.number:03d}-seed"
        if scenario.seed and (only is None or config.corrected.get(name, name) in only):
            yield _seed_plan(config, catalogue, scenario.number, scenario.seed)


def _seed_plan(config: Configuration, catalogue: Catalogue, number: int, seed: Seed) -> Plan:
    """The plan of a seed dialogue, under the id of its correction if there is one."""
    plan = seed_plan(number, seed, catalogue, config.language)
    return replace(plan, dialogue_id=config.corrected.get(plan.dialogue_id, plan.dialogue_id))


def some_plans(config: Configuration, catalogue: Catalogue) -> Iterator[Plan]:
    """The first, middle and last plan of a build, without drawing the others. Raises InputError as :func:`plans` does."""
    yield from plans(config, catalogue, set(probes(_ids(config, catalogue))))


def _ids(config: Configuration, catalogue: Catalogue) -> list[str]:
    """The ids of all dialogues of a build, in plan order, without drawing plans."""
    if config.plan == "drawn":
        positions = sequence_positions(config, catalogue)
        ids = [f"{number:03d}-{index:05d}" for number, some in positions.items() for index in range(len(some))]
    else:
        ids = [f"{number:03d}-seed" for number in quotas(config, catalogue)]
    return [config.corrected.get(dialogue_id, dialogue_id) for dialogue_id in ids]


def probes(items: Sequence[T]) -> tuple[T, ...]:
    """The first, middle and last item of a sequence; empty for an empty one."""
    return (items[0], items[len(items) // 2], items[-1]) if items else ()


def plan_of(config: Configuration, catalogue: Catalogue, dialogue_id: str, drawn: Mapping[int, list[int]] | None = None) -> Plan | None:
    """The plan of one dialogue; None if the build does not plan it. ``drawn`` are known positions of all dialogues."""
    scenario_id, _, index = original_id(dialogue_id).partition("-")
    scenario = next((entry for entry in catalogue.scenarios if f"{entry.number:03d}" == scenario_id), None)
    if scenario is None or (config.plan == "seeds") != (index == "seed"):
        return None
    if config.plan == "seeds":
        plan = _seed_plan(config, catalogue, scenario.number, scenario.seed) if scenario.seed else None
        return plan if plan and plan.dialogue_id == dialogue_id else None
    positions = (sequence_positions(config, catalogue) if drawn is None else drawn).get(scenario.number, ())
    if not re.fullmatch("[0-9]{5,9}", index) or int(index) >= len(positions):
        return None
    plan = _planned(config, catalogue, (scenario.number, int(index)), positions[int(index)])
    return plan if plan.dialogue_id == dialogue_id else None


def refuse_unknown_errata(config: Configuration, catalogue: Catalogue) -> None:
    """Checks that all withdrawals and corrections of a configuration are planned.

    Raises:
        InputError: for dialogues and pairs that are not, all at once.
    """
    if not errata_dialogues(config.raw):
        return
    drawn = sequence_positions(config, catalogue) if config.plan == "drawn" else None

    def roles(name: str) -> Sequence[str] | None:
        plan = plan_of(config, catalogue, name, drawn)
        return None if plan is None else [turn.role for turn in plan.turns]

    refuse(unknown_errata(f"configuration {config.name}", config.raw, PlanIndex(lambda: _ids(config, catalogue), roles)))


def _planned(config: Configuration, catalogue: Catalogue, identity: tuple[int, int], position: int) -> Plan:
    """The plan of a scenario and index, with the controls and crossed items of its position in the sequence."""
    # What is made anew is drawn anew: of the same plan the same would be asked, and answered.
    named = config.corrected.get(f"{identity[0]:03d}-{identity[1]:05d}")
    seed = derived_random(config.seed, "corrected", named).getrandbits(32) if named else config.seed
    plan = drawn_plan(seed, *identity, catalogue, config.rules, controls_at(config, position))
    plan = replace(plan, dialogue_id=named or plan.dialogue_id)
    if not (wanted := crossed_at(config, position)):
        return plan
    possible = crossable([turn.role for turn in plan.turns])
    order = derived_random(config.seed, "crossed", *identity).sample(possible, len(possible))
    return replace(plan, crossed=tuple(order), crosses=min(wanted, len(order)))


def seed_plan(scenario_id: int, seed: Seed, catalogue: Catalogue, language: str = ENGLISH) -> Plan:
    """The plan that a seed dialogue follows."""
    turns = tuple(
        PlannedTurn(
            "helper" if turn.role == "helper" else "seeker", turn.strategy, turn.empathetic_strategy, turn.near_empathetic is not None,
            turn.ways, _lengths_of(turn, language),
        )
        for turn in seed.turns
    )  # fmt: skip
    register = catalogue.personas.register(seed.register) if catalogue.personas else None
    voices = (seed.helper_voice, seed.far_voice)
    return Plan(f"{scenario_id:03d}-seed", scenario_id, None, turns, Persona(register) if register else None, voices=voices)


def _lengths_of(turn: SeedTurn, language: str) -> dict[str, int]:
    """The lengths of a seed's turn and variants; near ones as differences."""
    own = len(words(turn.text, language))
    texts = {name: text for name in CELLS if (text := getattr(turn, name)) is not None}
    return {"reference": own} | {name: len(words(text, language)) - (own if name in NEAR else 0) for name, text in texts.items()}


def drawn_plan(seed: int, scenario_id: int, index: int, catalogue: Catalogue, rules: PhaseRules, controls: int = 0) -> Plan:
    """One plan, a function of its arguments: persona, roles, strategies, and how each variant is to be written."""
    rng, taxonomy = derived_random(seed, "plan", scenario_id, index), catalogue.taxonomy
    roles, chosen = _strategy_trajectory(rng, taxonomy, rules)
    helper_places = [position for position, role in enumerate(roles) if role == "helper"]
    strategies = dict(zip(helper_places, chosen, strict=True))
    far = {
        position: rng.choice([name for name in taxonomy.in_phase(taxonomy.phase_of(own)) if name != own])
        for position, own in strategies.items()
    }
    # What is drawn from a generator of its own changes nothing else: asking for more controls, other lists of lengths.
    ways = _ways(
        derived_random(seed, "ways", scenario_id, index), taxonomy, [(strategies[position], far[position]) for position in helper_places]
    )
    by_place, personas = dict(zip(helper_places, ways, strict=True)), catalogue.personas
    persona = personas.draw(seed, scenario_id, index) if personas else None
    lengths = _lengths(derived_random(seed, "lengths", scenario_id, index), personas, persona, roles)
    long = [position for position in helper_places if edited(lengths[position])]
    with_controls = derived_random(seed, "controls", scenario_id, index).sample(long, len(long))[:controls]
    turns = tuple(
        PlannedTurn(
            role, strategies.get(position), far.get(position), position in with_controls, by_place.get(position, {}), lengths[position],
            edited(lengths[position]),
        )
        for position, role in enumerate(roles)
    )  # fmt: skip
    voices = personas.draw_voices(seed, scenario_id, index) if personas else (None, None)
    return Plan(f"{scenario_id:03d}-{index:05d}", scenario_id, index, turns, persona, voices=voices)


def edited(lengths: Mapping[str, int]) -> bool:
    """Whether a helper turn is long enough for near variants: fewer than 30 % of its words must suffice to change its stance."""
    return lengths.get("reference", EDITED_FROM) >= EDITED_FROM


def _lengths(rng: random.Random, personas: Personas | None, persona: Persona | None, roles: Sequence[Role]) -> list[dict[str, int]]:
    """The lengths of each turn, a helper's limited by the seeker's words since the last helper turn; empty without personas."""
    if personas is None or persona is None:
        return [{} for _ in roles]
    lengths, words_said = list[dict[str, int]](), 0
    for index, role in enumerate(roles):
        words_said = 0 if index and role == "seeker" != roles[index - 1] else words_said
        lengths.append(personas.draw_lengths(rng, persona.register, role, words_said))
        words_said += lengths[-1]["reference"] if role == "seeker" else 0
    return lengths


def _unanswered(roles: Sequence[Role], strategies: Sequence[str], taxonomy: Taxonomy) -> bool:
    """Whether, of two successive helper turns, the first asks (so the seeker cannot answer) or both have one strategy."""
    chosen = iter(strategies)
    tags = [next(chosen) if role == "helper" else None for role in roles]
    return any(tag and other and (tag == other or taxonomy[tag].asks) for tag, other in itertools.pairwise(tags))


def _ways(rng: random.Random, taxonomy: Taxonomy, strategies: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """For each helper turn, the manner or device of each variant: by rotation from independent starts, so that none depends on another.

    Each occurs in the rotation as often as its weight. One that a strategy contradicts waits for the next turn.
    """
    waiting = dict[str, list[Way]]()
    for variant in VARIANT_WAYS:
        ways = taxonomy.ways(variant)
        order = sorted(((number + 0.5) / way.weight, index) for index, way in enumerate(ways) for number in range(way.weight))
        start = rng.randrange(len(order)) if order else 0
        waiting[variant] = [ways[index] for _, index in order[start:] + order[:start]]
    result = list[dict[str, str]]()
    for near, far in strategies:
        drawn = dict[str, str]()
        for variant, queue in waiting.items():
            strategy = near if variant == APATHETIC else far
            if way := next((way for way in queue if strategy not in way.not_with), None):
                queue.remove(way)
                queue.append(way)
                drawn[variant] = way.name
        result.append(drawn)
    return result


def _strategy_trajectory(rng: random.Random, taxonomy: Taxonomy, rules: PhaseRules) -> tuple[list[Role], list[str]]:
    """Roles of all turns and strategies of helper turns, such that the seeker can answer what asks."""
    for _ in range(REDRAWN):
        roles = _roles(rng, rules)
        chosen = _strategies(rng, roles.count("helper"), taxonomy, rules)
        # Redrawing only who speaks when leaves each strategy as likely as it was.
        for _ in range(REDRAWN):
            if roles.count("helper") == len(chosen) and not _unanswered(roles, chosen, taxonomy):
                return roles, chosen
            roles = _roles(rng, rules)
    what = f"no order of {rules.min_turns} to {rules.max_turns} turns was found in which the seeker answers every strategy that asks"
    raise input_error("turns", what, "allow more turns, or let fewer strategies ask in taxonomy.yaml")


def _roles(rng: random.Random, rules: PhaseRules) -> list[Role]:
    """Roles: the seeker first, sometimes twice in a row, at least four helper turns (one, one and two by phase)."""
    other: dict[Role, Role] = {"seeker": "helper", "helper": "seeker"}
    while True:
        roles: list[Role] = ["seeker"]
        length = rng.randint(rules.min_turns, rules.max_turns)
        while len(roles) < length:
            doubled = len(roles) > 1 and roles[-1] == roles[-2]
            again = not doubled and rng.random() < DOUBLE_TURN
            roles.append(roles[-1] if again else other[roles[-1]])
        if roles.count("helper") >= 4 and (roles[-1] == "seeker" or rng.random() < ENDS_WITH_HELPER):
            return roles


def _strategies(rng: random.Random, count: int, taxonomy: Taxonomy, rules: PhaseRules) -> list[str]:
    """A strategy for each helper turn; each of the 15 is equally likely over a build."""
    exploration, comforting, action = (taxonomy.in_phase(phase) for phase in taxonomy.phases)
    total = len(taxonomy.strategies)
    explored = min(2, max(1, _rounded(rng, count * len(exploration) / total)))
    acted = max(2, _rounded(rng, (count - explored) * len(action) / (len(action) + len(comforting))))
    acted = min(acted, count - explored - 1)
    comforted = count - explored - acted
    chosen = [*_dealt(rng, exploration, explored), *_dealt(rng, comforting, comforted), *_dealt(rng, action, acted)]
    border = explored + comforted
    if rules.order == "anchored" and acted > 2 and comforted > 1 and rng.random() < INTERLEAVED:
        chosen[border - 1], chosen[border] = chosen[border], chosen[border - 1]
    return chosen


def _rounded(rng: random.Random, value: float) -> int:
    """An integer next to ``value`` whose expectation is ``value``."""
    return math.floor(value) + (rng.random() < value % 1)


def _dealt(rng: random.Random, strategies: Sequence[str], count: int) -> list[str]:
    """``count`` strategies, shuffled; none is reused before all were used."""
    dealt: list[str] = []
    while len(dealt) < count:
        dealt += rng.sample(list(strategies), len(strategies))
    return dealt[:count]


@dataclass(frozen=True)
class PlannedTurn:
    """The role of a turn; for a helper its strategy, that of the empathetic variant, and whether it gets controls.

    ``ways`` maps a variant to its manner or device, ``lengths`` to its words, for near ones as a difference to the reference. A turn that
    is not ``edited`` is too short for near variants, and gets no variants.
    """

    role: Role
    strategy: str | None = None
    empathetic_strategy: str | None = None
    controls: bool = False
    ways: Mapping[str, str] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    edited: bool = True


@dataclass(frozen=True)
class Plan:
    """A planned dialogue: all that is decided before a model is asked.

    ``crosses`` crossed items are placed at the first indices in ``crossed`` that its texts allow. ``voices`` are those of helper with near
    variants, and of far variants.
    """

    dialogue_id: str
    scenario_id: int
    index: int | None
    turns: tuple[PlannedTurn, ...]
    persona: Persona | None = None
    crossed: tuple[int, ...] = ()
    crosses: int = 0
    voices: tuple[str | None, str | None] = (None, None)


def kinds_of(turn: PlannedTurn, config: Configuration) -> Iterator[Kind]:
    """The kinds of rewriting requests of a turn; at most these if rules go first."""
    kinds = rewritings(turn.controls) if turn.role == "helper" and turn.edited else ()
    yield from (kind for kind in kinds if kind != NEAR_APATHETIC or config.near_apathetic != "rules")


def kinds_of_plan(plan: Plan, config: Configuration) -> Iterator[Kind]:
    """The kinds of all requests of a dialogue, once for each thing requested."""
    yield SELF_CHAT
    for turn in plan.turns:
        yield from kinds_of(turn, config)
    for _ in range(plan.crosses):
        yield from CROSSING
