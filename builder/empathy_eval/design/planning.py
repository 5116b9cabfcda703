"""Plans: what is decided about a dialogue before any model is asked, drawn from (seed, scenario, index) alone."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from empathy_eval.base.errors import input_error
from empathy_eval.base.hashing import derived_random
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.phases import PhaseRules, Role
from empathy_eval.design.scenarios import Catalogue, Seed
from empathy_eval.design.taxonomy import Taxonomy

# How often a role speaks twice running, and how often an early action turn changes places with a comforting one.
DOUBLE_TURN = 0.07
INTERLEAVED = 0.35
T = TypeVar("T")


def apportion(total: int, shares: Sequence[float]) -> list[int]:
    """Whole quotas that add up to ``total``, by the largest remainder (Hamilton's method) of the normalised shares.

    Equal remainders go to the earlier place.
    """
    exact = [total * share / math.fsum(shares) for share in shares]
    quotas = [math.floor(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda place: (quotas[place] - exact[place], place))
    for place in by_remainder[: total - sum(quotas)]:
        quotas[place] += 1
    return quotas


def quotas(config: Configuration, catalogue: Catalogue) -> dict[int, int]:
    """The number of dialogues each scenario is to have in a release."""
    if config.plan == "seeds":
        return {scenario.number: 1 for scenario in catalogue.scenarios if scenario.seed}
    shares = [scenario.share for scenario in catalogue.scenarios]
    return dict(zip((one.number for one in catalogue.scenarios), apportion(config.dialogues, shares), strict=True))


def plans(config: Configuration, catalogue: Catalogue) -> Iterator[Plan]:
    """All plans of a build, in plan order: by scenario, then by index.

    Raises:
        InputError: if ``plan: seeds`` finds no seed dialogue.
    """
    wanted = quotas(config, catalogue)
    if not wanted:
        raise input_error("scenarios", "no scenario has a seed dialogue", "add one, or write plan: drawn")
    if config.plan == "seeds":
        for scenario in catalogue.scenarios:
            if scenario.seed:
                yield seed_plan(scenario.number, scenario.seed)
        return
    controls = dict(zip(wanted, apportion(config.controls, list(wanted.values())), strict=True)) if config.controls else {}
    for number, quota in wanted.items():
        for index in range(_with_spares(quota, config)):
            share = _share_of(controls.get(number, 0), index, quota)
            yield drawn_plan(config.seed, number, index, catalogue.taxonomy, config.rules, share)


def planned(config: Configuration, catalogue: Catalogue) -> int:
    """How many plans a build has, without drawing them."""
    return sum(quota if config.plan == "seeds" else _with_spares(quota, config) for quota in quotas(config, catalogue).values())


def _with_spares(quota: int, config: Configuration) -> int:
    return quota + math.ceil(quota * config.surplus)


def part_of(items: Iterable[T], number: int, parts: int) -> Iterator[T]:
    """Every ``parts``-th item from the ``number``-th on, counted from 1: the parts of a plan are disjoint and even."""
    return itertools.islice(items, number - 1, None, parts)


def _share_of(total: int, index: int, quota: int) -> int:
    """How many of a scenario's control pairs fall to one dialogue: dealt out evenly, spares get none."""
    return (total + quota - 1 - index) // quota if index < quota else 0


def seed_plan(scenario_id: int, seed: Seed) -> Plan:
    """The plan that a seed dialogue itself follows."""
    turns = tuple(
        PlannedTurn("seeker")
        if turn.role == "seeker"
        else PlannedTurn("helper", turn.strategy, turn.empathetic_strategy, turn.near_empathetic is not None)
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
    turns = tuple(PlannedTurn(role, strategies.get(place), far.get(place), place in chosen) for place, role in enumerate(roles))
    return Plan(f"{scenario_id:03d}-{index:05d}", scenario_id, index, turns)


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
    """The role of one turn; for a helper its strategy, that of the empathetic variant, and whether controls are made."""

    role: Role
    strategy: str | None = None
    empathetic_strategy: str | None = None
    controls: bool = False


@dataclass(frozen=True)
class Plan:
    """One planned dialogue: all that is decided before any model is asked."""

    dialogue_id: str
    scenario_id: int
    index: int | None
    turns: tuple[PlannedTurn, ...]
