"""The phase constraints on a dialogue: who speaks when, and which strategies may stand where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from empathy_eval.design.taxonomy import Taxonomy


class Speaks(Protocol):
    """Anything with a role and a strategy: a turn, or a planned turn."""

    @property
    def role(self) -> str:
        """``seeker`` or ``helper``."""
        ...

    @property
    def strategy(self) -> str | None:
        """The abbreviation of a strategy, None for the seeker."""
        ...


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
