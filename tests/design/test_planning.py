"""Quotas and plans."""

import dataclasses
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.phases import PhaseRules, breaches
from empathy_eval.design.planning import apportion, drawn_plan, planned, plans, quotas
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.design.taxonomy import Taxonomy
from hypothesis import given, settings
from hypothesis import strategies as st


def drawn(demo: Configuration, **changes: Any) -> Configuration:
    return dataclasses.replace(demo, **{"plan": "drawn", "dialogues": 100, **changes})


def test_largest_remainder_by_hand() -> None:
    # 7 * (1/2, 1/3, 1/6) = 3 1/2, 2 1/3, 1 1/6: floors 3, 2, 1, and the one left goes to the remainder 1/2
    assert apportion(7, [3, 2, 1]) == [4, 2, 1]


@given(st.integers(0, 40_000), st.lists(st.floats(0.01, 100), min_size=1, max_size=60))
def test_quotas_add_up_and_are_within_one_of_the_exact_share(total: int, shares: list[float]) -> None:
    found = apportion(total, shares)
    assert sum(found) == total
    exact = [total * Fraction(share) / sum(map(Fraction, shares)) for share in shares]
    assert all(abs(count - value) < 1 + 1e-6 for count, value in zip(found, exact, strict=True))


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(0, 99_999), st.integers(8, 22), st.integers(0, 14), st.booleans())
def test_every_drawn_plan_keeps_the_phase_rules(seed: int, scenario: int, index: int, least: int, spread: int, strict: bool) -> None:
    from empathy_eval.design.taxonomy import load_taxonomy

    taxonomy = load_taxonomy()
    rules = PhaseRules(least, least + spread, "strict" if strict else "anchored")
    plan = drawn_plan(seed, scenario, index, taxonomy, rules)
    assert breaches(plan.turns, taxonomy, rules) == []
    for turn in plan.turns:
        if turn.role == "helper":
            assert turn.strategy and turn.empathetic_strategy != turn.strategy
            assert taxonomy.phase_of(turn.empathetic_strategy or "") == taxonomy.phase_of(turn.strategy)


def test_a_plan_is_a_function_of_seed_scenario_and_index(taxonomy: Taxonomy) -> None:
    first = drawn_plan(1, 17, 4, taxonomy, PhaseRules())
    drawn_plan(1, 17, 5, taxonomy, PhaseRules())
    assert drawn_plan(1, 17, 4, taxonomy, PhaseRules()) == first
    assert first.dialogue_id == "017-00004"
    assert drawn_plan(2, 17, 4, taxonomy, PhaseRules()).turns != first.turns


def test_controls_change_nothing_else_in_a_plan(taxonomy: Taxonomy) -> None:
    def bare(controls: int) -> list[object]:
        return [dataclasses.replace(turn, controls=False) for turn in drawn_plan(1, 17, 4, taxonomy, PhaseRules(), controls).turns]

    assert bare(0) == bare(3)
    assert sum(turn.controls for turn in drawn_plan(1, 17, 4, taxonomy, PhaseRules(), 3).turns) == 3


def test_all_strategies_are_used_evenly_over_a_build(taxonomy: Taxonomy) -> None:
    counts: Counter[str | None] = Counter()
    for index in range(3000):
        counts.update(turn.strategy for turn in drawn_plan(7, 1, index, taxonomy, PhaseRules()).turns if turn.strategy)
    even = counts.total() / 15
    assert len(counts) == 15
    assert all(abs(count - even) < 0.12 * even for count in counts.values())


def test_larger_quotas_only_append(demo: Configuration, catalogue: Catalogue) -> None:
    small = {plan.dialogue_id: plan for plan in plans(drawn(demo, dialogues=30), catalogue)}
    large = {plan.dialogue_id: plan for plan in plans(drawn(demo, dialogues=90), catalogue)}
    assert len(large) == 90
    assert all(large[name] == plan for name, plan in small.items())


def test_controls_are_dealt_out_to_the_configured_number(demo: Configuration, catalogue: Catalogue) -> None:
    found = list(plans(drawn(demo, dialogues=40, controls=25, surplus=0), catalogue))
    assert sum(turn.controls for plan in found for turn in plan.turns) == 25


def test_surplus_plans_spares_for_each_scenario(demo: Configuration, catalogue: Catalogue) -> None:
    config = dataclasses.replace(drawn(demo, dialogues=40), surplus=0.1)
    per_scenario = Counter(plan.scenario_id for plan in plans(config, catalogue))
    assert all(per_scenario[number] > quota for number, quota in quotas(config, catalogue).items())


@settings(max_examples=20)
@given(dialogues=st.integers(0, 12), surplus=st.floats(0, 1), plan=st.sampled_from(["drawn", "seeds"]))
def test_plans_are_counted_as_they_are_drawn(demo: Configuration, catalogue: Catalogue, dialogues: int, surplus: float, plan: str) -> None:
    config = drawn(demo, plan=plan, dialogues=dialogues, surplus=surplus)
    assert planned(config, catalogue) == len(list(plans(config, catalogue)))


def test_seed_plans_are_the_seeds_own(demo: Configuration, catalogue: Catalogue) -> None:
    found = {plan.dialogue_id: plan for plan in plans(demo, catalogue)}
    assert sorted(found) == ["003-seed", "007-seed", "017-seed"]
    seed = catalogue[17].seed
    assert seed is not None
    assert [turn.strategy for turn in found["017-seed"].turns] == [turn.strategy for turn in seed.turns]


@pytest.mark.parametrize("length", [8, 9])
def test_short_dialogues_still_have_all_phases(length: int, taxonomy: Taxonomy) -> None:
    rules = PhaseRules(length, length)
    assert all(not breaches(drawn_plan(3, 1, index, taxonomy, rules).turns, taxonomy, rules) for index in range(200))
