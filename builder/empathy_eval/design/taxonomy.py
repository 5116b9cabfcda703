"""The support strategies, their phases with constraints on a dialogue, and the manners and devices of variants.

They are read from ``scenarios/taxonomy.yaml``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

from empathy_eval.base.errors import Problem, nearest, refuse
from empathy_eval.base.files import data_folder
from empathy_eval.base.schemas import read_yaml, schema

# The variants that have a manner or a device.
VARIANT_WAYS = ("apathetic", "far_apathetic", "empathetic")
Role = Literal["seeker", "helper"]


@dataclass(frozen=True)
class Strategy:
    """A support strategy: files and requests use its abbreviation, releases its name.

    After one that ``asks``, no other helper turn follows directly in a drawn plan.
    """

    abbreviation: str
    name: str
    phase: str
    definition: str
    asks: bool = False


@dataclass(frozen=True)
class Way:
    """How a variant expresses its stance: the manner of an apathetic one, the device of an empathetic one.

    ``near`` means that an edit of few words can express it, ``weight`` is its frequency, ``not_with`` lists strategies that it contradicts.
    A ``friendly`` one often uses warm words.
    """

    name: str
    definition: str
    near: bool = False
    weight: int = 1
    not_with: tuple[str, ...] = ()
    friendly: bool = False


@dataclass(frozen=True)
class Taxonomy:
    """The phases in order, their strategies, and the manners and devices of variants, if any."""

    phases: tuple[str, ...]
    strategies: tuple[Strategy, ...]
    manners: tuple[Way, ...] = ()
    devices: tuple[Way, ...] = ()

    def ways(self, variant: str) -> tuple[Way, ...]:
        """The manners or devices that a variant can have."""
        near = tuple(manner for manner in self.manners if manner.near)
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


def strategy_flow(ideal: Sequence[float], used: Sequence[int] | int) -> Any:
    """S_flow of replies by their strategies: the validity of the strategy that a reply uses under the ideal distribution, in [0, 1].

    ``P_ideal(s) / max P_ideal``, s being the strategy used: 1 for the most likely one ("EmpathyScore", section 4.1 and Table 4, which name
    the strategy and the distribution; that the share is of the most likely one is ours, so that [0, 1] is used whatever the context).

    Args:
        ideal: how likely each strategy is the right one, shape (strategies,), or (replies, strategies).
        used: by reply the place of its strategy in the taxonomy.

    Raises:
        ValueError: if a distribution holds a number that is no probability, or none above 0.
    """
    import numpy as np

    given = np.atleast_2d(np.asarray(ideal, dtype=np.float64))
    if not (np.all((given >= 0) & (given <= 1)) and np.all(given.max(axis=1) > 0)):  # NaN is neither
        raise ValueError("a distribution that is none")
    return given[np.arange(len(given)), np.atleast_1d(used)] / given.max(axis=1)


def load_taxonomy(folder: Path | None = None) -> Taxonomy:
    """Reads ``taxonomy.yaml`` of a scenario folder (by default the packaged one).

    A custom taxonomy may reword phases and strategies; a release uses the packaged names.

    Raises:
        InputError: if the file is missing or invalid, names repeat, or a strategy is not one of releases in that phase.
    """
    if folder is None or folder == data_folder("scenarios"):
        return _packaged()
    path = folder / "taxonomy.yaml"
    taxonomy = _read(path)
    refuse([*_repeated(taxonomy, path), *_unknown(taxonomy, _packaged(), path)])
    return taxonomy


@cache
def _packaged() -> Taxonomy:
    # Rows by the thousand ask for it.
    path = data_folder("scenarios") / "taxonomy.yaml"
    taxonomy = _read(path)
    refuse([*_repeated(taxonomy, path), *_in_no_schema(taxonomy, path)])
    return taxonomy


def _read(path: Path) -> Taxonomy:
    content = read_yaml(path, "taxonomy")
    strategies = tuple(Strategy(phase=phase["name"], **entry) for phase in content["phases"] for entry in phase["strategies"])
    manners, devices = (
        tuple(Way(**{**entry, "not_with": tuple(entry.get("not_with", ()))}) for entry in content.get(name, ()))
        for name in ("manners", "devices")
    )
    return Taxonomy(tuple(phase["name"] for phase in content["phases"]), strategies, manners, devices)


def _repeated(taxonomy: Taxonomy, path: Path) -> Iterator[Problem]:
    """Problems for repeated names."""
    named = {"phases": taxonomy.phases, "strategies": [strategy.abbreviation for strategy in taxonomy.strategies]}
    named |= {kind: [entry.name for entry in getattr(taxonomy, kind)] for kind in ("manners", "devices")}
    for kind, names in named.items():
        for name in [name for name, count in Counter(names).items() if count > 1]:
            yield Problem(f"{path}: {kind}", f'has "{name}" twice', "give each a name of its own")


def _unknown(taxonomy: Taxonomy, released: Taxonomy, path: Path) -> Iterator[Problem]:
    """Problems for strategies that releases do not have in that phase: only their wording is free."""
    for phase, wanted in zip(taxonomy.phases, released.phases, strict=True):
        known = released.in_phase(wanted)
        for strategy in taxonomy.in_phase(phase):
            if strategy not in known:
                what = f'strategy "{strategy}" is not a strategy of this phase in a release ("{wanted}" there)'
                fix = f"use some of {', '.join(known)}, which you may name and define in your own words{nearest(strategy, known)}"
                yield Problem(f"{path}: phases: {phase}", what, fix)


def _in_no_schema(taxonomy: Taxonomy, path: Path) -> Iterator[Problem]:
    """Problems for phases and strategies that the schemas of releases and reviews do not list; a test checks that all schemas agree."""
    columns = schema("pairs_row")["properties"]
    named = {"phase": taxonomy.phases, "strategy": [strategy.name for strategy in taxonomy.strategies]}
    for kind, names in named.items():
        known = columns[kind]["enum"]
        for name in [name for name in names if name not in known]:
            what = f'{kind} "{name}" is not known to the schemas of releases and reviews, so no release could hold it'
            fix = f"use some of {', '.join(known)}{nearest(name, known)}; or add it to every list of them in schemas/"
            yield Problem(f"{path}: phases", what, fix)


class TurnLike(Protocol):
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
    """A broken constraint: a countable reason, the turn (None: the whole dialogue), what is wrong, how to fix it."""

    reason: str
    turn: int | None
    what: str
    fix: str


def breaches(turns: Sequence[TurnLike], taxonomy: Taxonomy, rules: PhaseRules) -> list[Breach]:
    """All broken constraints of a dialogue."""
    broken = [*_roles(turns, rules), *_unknown_strategies(turns, taxonomy)]
    if any(breach.reason == "strategy_unknown" for breach in broken):
        return broken
    helper = [(index, turn.strategy or "") for index, turn in enumerate(turns) if turn.role == "helper"]
    return [*broken, *_ends(helper, taxonomy), *_order(helper, taxonomy, rules)]


def _roles(turns: Sequence[TurnLike], rules: PhaseRules) -> Iterator[Breach]:
    if not rules.min_turns <= len(turns) <= rules.max_turns:
        yield Breach("turn_count", None, f"{len(turns)} turns", f"write {rules.min_turns} to {rules.max_turns} turns")
    if turns and turns[0].role != "seeker":
        yield Breach("first_speaker", 0, f'role "{turns[0].role}"', "let the seeker speak first")
    for index in range(2, len(turns)):
        if turns[index].role == turns[index - 1].role == turns[index - 2].role:
            yield Breach("three_in_a_row", index, f"a third turn of the {turns[index].role} in a row", "let the other role speak")


def _unknown_strategies(turns: Sequence[TurnLike], taxonomy: Taxonomy) -> Iterator[Breach]:
    known = ", ".join(strategy.abbreviation for strategy in taxonomy.strategies)
    for index, turn in enumerate(turns):
        if turn.role == "helper" and (turn.strategy is None or turn.strategy not in taxonomy):
            yield Breach("strategy_unknown", index, f'strategy "{turn.strategy}" is not known', f"use one of {known}")
        if turn.role == "seeker" and turn.strategy is not None:
            yield Breach("strategy_of_seeker", index, f'a seeker with the strategy "{turn.strategy}"', "only helper turns have one")


def _ends(helper: Sequence[tuple[int, str]], taxonomy: Taxonomy) -> Iterator[Breach]:
    phases = [taxonomy.phase_of(strategy) for _, strategy in helper]
    first, last = taxonomy.phases[0], taxonomy.phases[-1]
    if phases and phases[0] != first:
        index, strategy = helper[0]
        fix = f"explore first: {' or '.join(taxonomy.in_phase(first))}"
        yield Breach("first_helper_turn", index, f'strategy "{strategy}" ({phases[0]}) in the first helper turn', fix)
    for index, strategy in helper[-2:]:
        phase = taxonomy.phase_of(strategy)
        if phase != last:
            what = f'strategy "{strategy}" ({phase}) in one of the last two helper turns'
            fix = "use an action strategy there" if last == "action" else f"use a strategy of {last} there"
            yield Breach("last_helper_turns", index, what, fix)
    for phase in taxonomy.phases:
        if phase not in phases:
            fix = "give at least one helper turn a strategy of it"
            yield Breach("phase_missing", None, f'no helper turn of the phase "{phase}"', fix)


def _order(helper: Sequence[tuple[int, str]], taxonomy: Taxonomy, rules: PhaseRules) -> Iterator[Breach]:
    """No exploration after the first action turn; under ``strict`` no way back at all."""
    furthest: tuple[int, int] = (0, -1)
    for index, strategy in helper:
        phase = taxonomy.phase_of(strategy)
        rank, (reached, since) = taxonomy.phases.index(phase), furthest
        allowed = rank >= reached or (rules.order == "anchored" and (rank > 0 or reached < len(taxonomy.phases) - 1))
        if not allowed:
            later = taxonomy.phases[reached]
            what = f'strategy "{strategy}" ({phase}) after the first {later} strategy (turn {since})'
            ahead = " or ".join(taxonomy.phases[1:] if rules.order == "anchored" else taxonomy.phases[reached:])
            yield Breach("phase_order", index, what, f"use a strategy of {ahead}, or move the turn before turn {since}.")
        if rank > reached:
            furthest = (rank, index)


def crossable(roles: Sequence[Role]) -> list[int]:
    """Indices of helper turns after the first that directly follow a seeker turn."""
    first = roles.index("helper") if "helper" in roles else len(roles)
    return [index for index, role in enumerate(roles) if index > first and role == "helper" and roles[index - 1] == "seeker"]
