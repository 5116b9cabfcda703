"""The 15 support strategies, their three phases and the constraints on these in a dialogue, and the ways of variants.

Strategies, phases and ways are read from ``scenarios/taxonomy.yaml``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, Protocol

from empathy_eval.base.errors import Problem, nearest, refuse
from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import read_yaml, schema

# The variants that have a manner or a device.
VARIANT_WAYS = ("apathetic", "far_apathetic", "empathetic")


@dataclass(frozen=True)
class Strategy:
    """One way to support: its abbreviation is used in files and requests, its name in releases.

    One that ``asks`` waits for an answer: no other helper turn follows it in a drawn plan.
    """

    abbreviation: str
    name: str
    phase: str
    definition: str
    asks: bool = False


@dataclass(frozen=True)
class Way:
    """How a variant is made what it is: the manner of an apathetic one, the device of an empathetic one.

    ``near`` says whether an edit of few words can carry it, ``weight`` how often it is drawn beside others, ``not_with`` the strategies
    that it contradicts. One that is ``friendly`` often uses warm words.
    """

    name: str
    definition: str
    near: bool = False
    weight: int = 1
    not_with: tuple[str, ...] = ()
    friendly: bool = False


@dataclass(frozen=True)
class Taxonomy:
    """The phases in their order, the strategies of each, and the manners and devices of variants, if it has any."""

    phases: tuple[str, ...]
    strategies: tuple[Strategy, ...]
    manners: tuple[Way, ...] = ()
    devices: tuple[Way, ...] = ()

    def ways(self, variant: str) -> tuple[Way, ...]:
        """The manners or devices that a variant can have."""
        near = tuple(one for one in self.manners if one.near)
        return dict(zip(VARIANT_WAYS, (near, self.manners, self.devices), strict=True)).get(variant, ())

    @cached_property
    def _by_abbreviation(self) -> dict[str, Strategy]:
        return {strategy.abbreviation: strategy for strategy in self.strategies}

    def __contains__(self, abbreviation: str) -> bool:
        return abbreviation in self._by_abbreviation

    def __getitem__(self, abbreviation: str) -> Strategy:
        return self._by_abbreviation[abbreviation]

    def phase_of(self, abbreviation: str) -> str:
        """The phase that a strategy belongs to."""
        return self[abbreviation].phase

    def in_phase(self, phase: str) -> tuple[str, ...]:
        """The abbreviations of a phase's strategies, in the order of the file."""
        return tuple(strategy.abbreviation for strategy in self.strategies if strategy.phase == phase)


def load_taxonomy(folder: Path | None = None) -> Taxonomy:
    """Reads ``taxonomy.yaml`` of a scenario folder (by default the project's own).

    One of one's own says in its own words what phases and strategies are; a release calls them what the project does.

    Raises:
        InputError: if the file is missing or not valid, if names repeat, or if a strategy is none that a release has in that phase.
    """
    if folder is None or folder == data_folder("scenarios"):
        return _own()
    path = folder / "taxonomy.yaml"
    taxonomy = _read(path)
    refuse([*_repeated(taxonomy, path), *_unknown(taxonomy, _own(), path)])
    return taxonomy


@cache
def _own() -> Taxonomy:
    # Rows by the thousand ask for it.
    path = data_folder("scenarios") / "taxonomy.yaml"
    taxonomy = _read(path)
    refuse([*_repeated(taxonomy, path), *_in_no_schema(taxonomy, path)])
    return taxonomy


def _read(path: Path) -> Taxonomy:
    content = read_yaml(path, "taxonomy")
    strategies = tuple(Strategy(phase=phase["name"], **one) for phase in content["phases"] for one in phase["strategies"])
    manners, devices = (
        tuple(Way(**{**one, "not_with": tuple(one.get("not_with", ()))}) for one in content.get(name, ()))
        for name in ("manners", "devices")
    )
    return Taxonomy(tuple(phase["name"] for phase in content["phases"]), strategies, manners, devices)


def _repeated(taxonomy: Taxonomy, path: Path) -> Iterator[Problem]:
    """What goes by the name of another one."""
    named = {
        "phases": taxonomy.phases,
        "strategies": [one.abbreviation for one in taxonomy.strategies],
        **{kind: [one.name for one in getattr(taxonomy, kind)] for kind in ("manners", "devices")},
    }
    for kind, names in named.items():
        for name in [name for name, count in Counter(names).items() if count > 1]:
            yield Problem(f"{path}: {kind}", f'has "{name}" twice', "give each a name of its own")


def _unknown(taxonomy: Taxonomy, released: Taxonomy, path: Path) -> Iterator[Problem]:
    """Strategies that no release has, or has in another phase: only their wording is free."""
    for phase, wanted in zip(taxonomy.phases, released.phases, strict=True):
        known = released.in_phase(wanted)
        for strategy in taxonomy.in_phase(phase):
            if strategy not in known:
                what = f'strategy "{strategy}" is not a strategy of this phase in a release ("{wanted}" there)'
                fix = f"use some of {', '.join(known)}, which you may name and define in your own words{nearest(strategy, known)}"
                yield Problem(f"{path}: phases: {phase}", what, fix)


def _in_no_schema(taxonomy: Taxonomy, path: Path) -> Iterator[Problem]:
    """Phases and strategies that the schemas of releases and reviews do not know, each of which lists them: a test holds that all do."""
    columns = schema("pairs_row")["properties"]
    named = {"phase": taxonomy.phases, "strategy": [one.name for one in taxonomy.strategies]}
    for kind, names in named.items():
        known = columns[kind]["enum"]
        for name in [one for one in names if one not in known]:
            what = f'{kind} "{name}" is not known to the schemas of releases and reviews, so no release could hold it'
            fix = f"use some of {', '.join(known)}{nearest(name, known)}; or add it to every list of them in schemas/"
            yield Problem(f"{path}: phases", what, fix)


class Speaks(Protocol):
    """Anything with a role and a strategy: a turn, or a planned turn."""

    @property
    def role(self) -> str:
        """``seeker`` or ``helper``."""

    @property
    def strategy(self) -> str | None:
        """The abbreviation of a strategy, None for the seeker."""


@dataclass(frozen=True)
class PhaseRules:
    """Bounds on the number of turns, and how strictly the phases follow one another.

    ``anchored``: once an action strategy has been used no exploration strategy comes back, comforting may.
    ``strict``: exploration, then comforting, then action, with no way back.
    """

    min_turns: int = 12
    max_turns: int = 22
    order: str = "anchored"


@dataclass(frozen=True)
class Breach:
    """One broken constraint: a countable reason, the turn (None: the whole dialogue), what is wrong, how to mend it."""

    reason: str
    turn: int | None
    what: str
    fix: str


def breaches(turns: Sequence[Speaks], taxonomy: Taxonomy, rules: PhaseRules) -> list[Breach]:
    """All broken constraints of a dialogue; an empty list if it keeps them."""
    found = [*_roles(turns, rules), *_unknown_strategies(turns, taxonomy)]
    if any(breach.reason == "strategy_unknown" for breach in found):
        return found
    helper = [(place, turn.strategy or "") for place, turn in enumerate(turns) if turn.role == "helper"]
    return [*found, *_ends(helper, taxonomy), *_order(helper, taxonomy, rules)]


def _roles(turns: Sequence[Speaks], rules: PhaseRules) -> Iterator[Breach]:
    if not rules.min_turns <= len(turns) <= rules.max_turns:
        yield Breach("turn_count", None, f"{len(turns)} turns", f"write {rules.min_turns} to {rules.max_turns} turns")
    if turns and turns[0].role != "seeker":
        yield Breach("first_speaker", 0, f'role "{turns[0].role}"', "let the seeker speak first")
    for place in range(2, len(turns)):
        if turns[place].role == turns[place - 1].role == turns[place - 2].role:
            yield Breach("three_in_a_row", place, f"a third turn of the {turns[place].role} in a row", "let the other role speak")


def _unknown_strategies(turns: Sequence[Speaks], taxonomy: Taxonomy) -> Iterator[Breach]:
    known = ", ".join(strategy.abbreviation for strategy in taxonomy.strategies)
    for place, turn in enumerate(turns):
        if turn.role == "helper" and (turn.strategy is None or turn.strategy not in taxonomy):
            yield Breach("strategy_unknown", place, f'strategy "{turn.strategy}" is not known', f"use one of {known}")
        if turn.role == "seeker" and turn.strategy is not None:
            yield Breach("strategy_of_seeker", place, f'a seeker with the strategy "{turn.strategy}"', "only helper turns have one")


def _ends(helper: Sequence[tuple[int, str]], taxonomy: Taxonomy) -> Iterator[Breach]:
    phases = [taxonomy.phase_of(strategy) for _, strategy in helper]
    first, last = taxonomy.phases[0], taxonomy.phases[-1]
    if phases and phases[0] != first:
        place, strategy = helper[0]
        fix = f"explore first: {' or '.join(taxonomy.in_phase(first))}"
        yield Breach("first_helper_turn", place, f'strategy "{strategy}" ({phases[0]}) in the first helper turn', fix)
    for place, strategy in helper[-2:]:
        phase = taxonomy.phase_of(strategy)
        if phase != last:
            what = f'strategy "{strategy}" ({phase}) in one of the last two helper turns'
            fix = "use an action strategy there" if last == "action" else f"use a strategy of {last} there"
            yield Breach("last_helper_turns", place, what, fix)
    for phase in taxonomy.phases:
        if phase not in phases:
            fix = "give at least one helper turn a strategy of it"
            yield Breach("phase_missing", None, f'no helper turn of the phase "{phase}"', fix)


def _order(helper: Sequence[tuple[int, str]], taxonomy: Taxonomy, rules: PhaseRules) -> Iterator[Breach]:
    """No exploration after the first action turn; under ``strict`` no way back at all."""
    furthest: tuple[int, int] = (0, -1)
    for place, strategy in helper:
        phase = taxonomy.phase_of(strategy)
        rank, (reached, since) = taxonomy.phases.index(phase), furthest
        allowed = rank >= reached or (rules.order == "anchored" and (rank > 0 or reached < len(taxonomy.phases) - 1))
        if not allowed:
            later = taxonomy.phases[reached]
            what = f'strategy "{strategy}" ({phase}) after the first {later} strategy (turn {since})'
            ahead = " or ".join(taxonomy.phases[1:] if rules.order == "anchored" else taxonomy.phases[reached:])
            yield Breach("phase_order", place, what, f"use a strategy of {ahead}, or move the turn before turn {since}.")
        if rank > reached:
            furthest = (rank, place)


Role = Literal["seeker", "helper"]


def crossable(roles: Sequence[Role]) -> list[int]:
    """The places of helper turns that answer the seeker's last words, but for those of the first exchange."""
    first = roles.index("helper") if "helper" in roles else len(roles)
    return [place for place, role in enumerate(roles) if place > first and role == "helper" and roles[place - 1] == "seeker"]
