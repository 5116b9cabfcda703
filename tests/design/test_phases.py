"""The phase constraints, each broken once."""

from collections.abc import Sequence

import pytest
from empathy_eval.design.planning import PlannedTurn
from empathy_eval.design.taxonomy import PhaseRules, Taxonomy, breaches

GOOD = "S RS S EV S NE S SO S CP S SI"
RULES = PhaseRules(12, 22)


def turns(pattern: str) -> list[PlannedTurn]:
    return [PlannedTurn("seeker") if one == "S" else PlannedTurn("helper", one) for one in pattern.split()]


def reasons(pattern: str, taxonomy: Taxonomy, rules: PhaseRules = RULES) -> list[tuple[str, int | None]]:
    return [(one.reason, one.turn) for one in breaches(turns(pattern), taxonomy, rules)]


def test_a_good_dialogue_breaks_nothing(taxonomy: Taxonomy) -> None:
    assert reasons(GOOD, taxonomy) == []
    assert reasons(GOOD, taxonomy, PhaseRules(12, 22, "strict")) == []


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("RS S EV S NE S SO S CP S SI S", [("first_speaker", 0)]),
        ("S RS S S S EV S NE S SO S SI", [("three_in_a_row", 4)]),
        ("S RS EV ES S NE S SO S CP S SI", [("three_in_a_row", 3)]),
        ("S RS S EV S SO S SI", [("turn_count", None)]),
        ("S EV S RS S NE S SO S CP S SI", [("first_helper_turn", 1)]),
        ("S RS S SO S NE S CP S EV S SI", [("last_helper_turns", 9)]),
        ("S RS S Cla S PSP S SO S CP S SI", [("phase_missing", None)]),
        ("S RS S EV S NE S SO S Cla S CP S SI", [("phase_order", 9)]),
        ("S RS S EV S XX S SO S CP S SI", [("strategy_unknown", 5)]),
    ],
)
def test_each_constraint_is_seen_where_it_is_broken(pattern: str, expected: Sequence[tuple[str, int | None]], taxonomy: Taxonomy) -> None:
    assert reasons(pattern, taxonomy) == expected


def test_comforting_may_come_back_when_anchored_and_not_when_strict(taxonomy: Taxonomy) -> None:
    pattern = "S RS S EV S SO S NE S CP S SI"
    assert reasons(pattern, taxonomy) == []
    assert reasons(pattern, taxonomy, PhaseRules(12, 22, "strict")) == [("phase_order", 7)]


def test_exploration_may_come_back_before_the_first_action_only_when_anchored(taxonomy: Taxonomy) -> None:
    pattern = "S RS S EV S Cla S SO S CP S SI"
    assert reasons(pattern, taxonomy) == []
    assert reasons(pattern, taxonomy, PhaseRules(12, 22, "strict")) == [("phase_order", 5)]


def test_a_breach_says_what_and_how_to_mend_it(taxonomy: Taxonomy) -> None:
    (breach,) = breaches(turns("S RS S EV S NE S SO S Cla S CP S SI"), taxonomy, RULES)
    assert breach.what == 'strategy "Cla" (exploration) after the first action strategy (turn 7)'
    assert breach.fix == "use a strategy of comforting or action, or move the turn before turn 7."
