"""Plans: what is decided about a dialogue before any model is asked, drawn from (seed, scenario, index) alone."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import derived_random
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.phases import PhaseRules, Role
from empathy_eval.design.scenarios import Catalogue, Seed
from empathy_eval.design.taxonomy import VARIANT_WAYS, Taxonomy

# How often a role speaks twice running, and how often an early action turn changes places with a comforting one.
DOUBLE_TURN = 0.07
INTERLEAVED = 0.35
T = TypeVar("T")


def apportion(total: int, shares: Sequence[float]) -> list[int]:
    """Whole quotas that add up to ``total``, by the largest remainder (Hamilton's method) of the normalised shares.

    Equal remainders go to the earlier place. A larger total can lower a quota: it is for what is drawn once, such as the sample of a
    review. Plans grow, and go by :func:`sequence`.
    """
    exact = [total * share / math.fsum(shares) for share in shares]
    quotas = [math.floor(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda place: (quotas[place] - exact[place], place))
    for place in by_remainder[: total - sum(quotas)]:
        quotas[place] += 1
    return quotas


def sequence(shares: Mapping[int, float]) -> Iterator[int]:
    """The scenario numbers of all dialogues there could be, without end, in one fixed order that only appends when the size grows.

    By Sainte-Laguë, one each first: every scenario once, then always the one with the highest share / (2 k + 1), where k is how often it
    was named; equals by number. Exact: a share is the decimal number that is written.
    """
    by_number = {number: 1 / Fraction(str(share)) for number, share in shares.items()}
    # (2 k + 1) / share, lowest first, in whole numbers of one unit: as exact as fractions, and much faster.
    unit = math.lcm(*(one.denominator for one in by_number.values()))
    steps = {number: int(one * unit) for number, one in by_number.items()}
    heap = [(False, step, number) for number, step in steps.items()]
    heapq.heapify(heap)
    while heap:
        _, cost, number = heap[0]
        yield number
        heapq.heapreplace(heap, (True, cost + 2 * steps[number], number))


def quotas(config: Configuration, catalogue: Catalogue) -> dict[int, int]:
    """The number of dialogues each scenario is to have in a release. A larger size lowers none."""
    if config.plan == "seeds":
        return {scenario.number: 1 for scenario in catalogue.scenarios if scenario.seed}
    return {number: sum(place < config.dialogues for place in places) for number, places in _places(config, catalogue).items()}


def plans(config: Configuration, catalogue: Catalogue) -> Iterator[Plan]:
    """All plans of a build, in plan order: by scenario, then by index.

    Raises:
        InputError: if ``plan: seeds`` finds no seed dialogue.
    """
    if config.plan == "drawn":
        for number, places in _places(config, catalogue).items():
            for index, place in enumerate(places):
                yield drawn_plan(config.seed, number, index, catalogue.taxonomy, config.rules, _controls(config, place))
        return
    if not quotas(config, catalogue):
        raise input_error("scenarios", "no scenario has a seed dialogue", "add one, or write plan: drawn")
    for scenario in catalogue.scenarios:
        if scenario.seed:
            yield seed_plan(scenario.number, scenario.seed)


def planned(config: Configuration, catalogue: Catalogue) -> int:
    """How many plans a build has, without drawing them."""
    return len(quotas(config, catalogue)) if config.plan == "seeds" else config.dialogues + _spares(config)


def _places(config: Configuration, catalogue: Catalogue) -> dict[int, list[int]]:
    """By scenario the places of its dialogues in the sequence, in the order of their indices: the first ``dialogues`` are wanted.

    The next are spares. One of a scenario without a wanted dialogue would never be released, so there is none. What is a spare here is
    wanted by a larger build, and a larger build plans all that a smaller one did.
    """
    places: dict[int, list[int]] = {scenario.number: [] for scenario in catalogue.scenarios}
    order = enumerate(sequence({scenario.number: scenario.share for scenario in catalogue.scenarios}))
    for place, number in itertools.islice(order, config.dialogues):
        places[number].append(place)
    useful = ((place, number) for place, number in order if places[number])
    for place, number in itertools.islice(useful, _spares(config)):
        places[number].append(place)
    return places


def _spares(config: Configuration) -> int:
    """How many spares are planned over all scenarios: the share asked for, rounded up."""
    return math.ceil(config.dialogues * Fraction(str(config.surplus)))


def _controls(config: Configuration, place: int) -> int:
    """How many control pairs fall to the dialogue at a place of the sequence: one for each in its order, then a second; spares get none.

    So more ``controls`` only append. More ``dialogues`` only append as long as there is at most one control a dialogue, and as long as
    ``controls`` grows by as much in proportion. Else the first controls of new dialogues take the place of second ones, those of the
    latest dialogues before others: to keep all of them, dialogues would have to be filled up one after another, and few would have any.
    """
    return (config.controls + config.dialogues - 1 - place) // config.dialogues if place < config.dialogues else 0


def part_of(items: Iterable[T], number: int, parts: int) -> Iterator[T]:
    """Every ``parts``-th item from the ``number``-th on, counted from 1: the parts of a plan are disjoint and even."""
    return itertools.islice(items, number - 1, None, parts)


def seed_plan(scenario_id: int, seed: Seed) -> Plan:
    """The plan that a seed dialogue itself follows."""
    turns = tuple(
        PlannedTurn("seeker")
        if turn.role == "seeker"
        else PlannedTurn("helper", turn.strategy, turn.empathetic_strategy, turn.near_empathetic is not None, turn.ways)
        for turn in seed.turns
    )
    return Plan(f"{scenario_id:03d}-seed", scenario_id, None, turns)


def drawn_plan(seed: int, scenario_id: int, index: int, taxonomy: Taxonomy, rules: PhaseRules, controls: int = 0) -> Plan:
    """One plan, a function of its arguments: roles, strategies, strategies of the empathetic variants, places of controls."""
    rng = derived_random(seed, "plan", scenario_id, index)
    roles = _roles(rng, rules)
    helper_places = [place for place, role in enumerate(roles) if role == "helper"]
    strategies = dict(zip(helper_places, _strategies(rng, len(helper_places), taxonomy, rules), strict=True))
    far = {place: _other(rng, strategies[place], taxonomy) for place in helper_places}
    # Controls come from a generator of their own: asking for more of them changes nothing else.
    chosen = derived_random(seed, "controls", scenario_id, index).sample(helper_places, len(helper_places))[:controls]
    ways = {place: _ways(taxonomy, scenario_id + index + number) for number, place in enumerate(helper_places)}
    turns = tuple(
        PlannedTurn(role, strategies.get(place), far.get(place), place in chosen, ways.get(place, {})) for place, role in enumerate(roles)
    )
    return Plan(f"{scenario_id:03d}-{index:05d}", scenario_id, index, turns)


def _ways(taxonomy: Taxonomy, step: int) -> dict[str, str]:
    """By variant its manner or device, by rotation: each comes up equally often over turns, dialogues and scenarios."""
    known = {variant: taxonomy.ways(variant) for variant in VARIANT_WAYS}
    return {variant: ways[step % len(ways)].name for variant, ways in known.items() if ways}


def _roles(rng: random.Random, rules: PhaseRules) -> list[Role]:
    """Who speaks: the seeker first, now and then twice running, at least four helper turns (one, one and two by phase)."""
    other: dict[Role, Role] = {"seeker": "helper", "helper": "seeker"}
    while True:
        roles: list[Role] = ["seeker"]
        length = rng.randint(rules.min_turns, rules.max_turns)
        while len(roles) < length:
            doubled = len(roles) > 1 and roles[-1] == roles[-2]
            again = not doubled and rng.random() < DOUBLE_TURN
            roles.append(roles[-1] if again else other[roles[-1]])
        if roles.count("helper") >= 4:
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
    """A whole number beside ``value`` whose expectation is ``value``."""
    return math.floor(value) + (rng.random() < value % 1)


def _dealt(rng: random.Random, strategies: Sequence[str], count: int) -> list[str]:
    """``count`` strategies, shuffled, none used again before all were."""
    dealt: list[str] = []
    while len(dealt) < count:
        dealt += rng.sample(list(strategies), len(strategies))
    return dealt[:count]


def _other(rng: random.Random, strategy: str, taxonomy: Taxonomy) -> str:
    """Another strategy of the same phase."""
    return rng.choice([name for name in taxonomy.in_phase(taxonomy.phase_of(strategy)) if name != strategy])


@dataclass(frozen=True)
class PlannedTurn:
    """The role of one turn; for a helper its strategy, that of the empathetic variant, and whether controls are made.

    ``ways`` are by variant its manner or device.
    """

    role: Role
    strategy: str | None = None
    empathetic_strategy: str | None = None
    controls: bool = False
    ways: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """One planned dialogue: all that is decided before any model is asked."""

    dialogue_id: str
    scenario_id: int
    index: int | None
    turns: tuple[PlannedTurn, ...]
