"""Quotas and plans."""

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.base.text import words
from empathy_eval.design import planning
from empathy_eval.design.configuration import Configuration
from empathy_eval.design.contrasts import FAR, NEAR
from empathy_eval.design.planning import Plan, PlannedTurn, drawn_plan, plans, seed_plan
from empathy_eval.design.prompts import Prompts
from empathy_eval.design.quotas import apportion, planned_count, quotas, sequence
from empathy_eval.design.recipe import Recipe
from empathy_eval.design.scenarios import Catalogue, Scenario, load_catalogue
from empathy_eval.design.taxonomy import VARIANT_WAYS, PhaseRules, breaches
from hypothesis import given, settings
from hypothesis import strategies as st

SHARES = st.lists(st.decimals("0.01", 100, places=2).map(float), min_size=1, max_size=70)


@pytest.fixture(scope="module")
def full() -> Catalogue:
    """All 60 scenarios of the project."""
    return load_catalogue()


def drawn(demo: Configuration, **changes: Any) -> Configuration:
    return dataclasses.replace(demo, **{"plan": "drawn", "dialogues": 100, **changes})


def with_shares(catalogue: Catalogue, shares: list[float]) -> Catalogue:
    """A catalogue of one's own: a scenario for each share, numbered from 1."""
    scenarios = (Scenario(number, "own", "Own", share, "", ()) for number, share in enumerate(shares, 1))
    return dataclasses.replace(catalogue, scenarios=tuple(scenarios))


def by_id(config: Configuration, catalogue: Catalogue) -> dict[str, Plan]:
    return {plan.dialogue_id: plan for plan in plans(config, catalogue)}


def controls_of(found: dict[str, Plan]) -> set[tuple[str, int]]:
    return {(name, place) for name, plan in found.items() for place, turn in enumerate(plan.turns) if turn.controls}


def bare(found: dict[str, Plan]) -> dict[str, object]:
    """Plans without their controls."""
    return {name: [dataclasses.replace(turn, controls=False) for turn in plan.turns] for name, plan in found.items()}


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
def test_every_drawn_plan_keeps_the_phase_rules(
    full: Catalogue, seed: int, scenario: int, index: int, least: int, spread: int, strict: bool
) -> None:
    taxonomy = full.taxonomy
    rules = PhaseRules(least, least + spread, "strict" if strict else "anchored")
    plan = drawn_plan(seed, scenario, index, full, rules)
    assert breaches(plan.turns, taxonomy, rules) == []
    for turn in plan.turns:
        if turn.role == "helper":
            assert turn.strategy and turn.empathetic_strategy != turn.strategy
            assert taxonomy.phase_of(turn.empathetic_strategy or "") == taxonomy.phase_of(turn.strategy)


def test_a_plan_is_a_function_of_seed_scenario_and_index(full: Catalogue) -> None:
    first = drawn_plan(1, 17, 4, full, PhaseRules())
    drawn_plan(1, 17, 5, full, PhaseRules())
    assert drawn_plan(1, 17, 4, full, PhaseRules()) == first
    assert first.dialogue_id == "017-00004"
    assert drawn_plan(2, 17, 4, full, PhaseRules()).turns != first.turns


def test_controls_change_nothing_else_in_a_plan(full: Catalogue) -> None:
    def bare(controls: int) -> list[object]:
        return [dataclasses.replace(turn, controls=False) for turn in drawn_plan(1, 17, 4, full, PhaseRules(), controls).turns]

    assert bare(0) == bare(3)
    assert sum(turn.controls for turn in drawn_plan(1, 17, 4, full, PhaseRules(), 3).turns) == 3


def test_all_strategies_are_used_evenly_over_a_build(full: Catalogue) -> None:
    counts: Counter[str | None] = Counter()
    for index in range(3000):
        counts.update(turn.strategy for turn in drawn_plan(7, 1, index, full, PhaseRules()).turns if turn.strategy)
    even = counts.total() / 15
    assert len(counts) == 15
    assert all(abs(count - even) < 0.12 * even for count in counts.values())


def test_a_helper_turn_that_asks_is_answered_by_the_seeker(full: Catalogue) -> None:
    doubled = 0
    for index in range(500):
        turns = drawn_plan(7, 1, index, full, PhaseRules()).turns
        for turn, after in itertools.pairwise(turns):
            doubled += turn.role == after.role == "helper"
            assert not (turn.strategy == "Cla" and after.role == "helper")
    assert doubled > 100, "other helper turns still come twice running"


def asking(catalogue: Catalogue, *phases: str) -> Catalogue:
    """A catalogue in which all strategies of some phases ask."""
    taxonomy = catalogue.taxonomy
    strategies = tuple(dataclasses.replace(one, asks=one.asks or one.phase in phases) for one in taxonomy.strategies)
    return dataclasses.replace(catalogue, taxonomy=dataclasses.replace(taxonomy, strategies=strategies))


@pytest.mark.parametrize("phases", [(), ("exploration", "action"), ("exploration", "comforting", "action")])
@pytest.mark.parametrize("length", [8, 9, 12])
def test_a_course_that_cannot_be_answered_is_drawn_anew(phases: tuple[str, ...], length: int, full: Catalogue) -> None:
    own = asking(full, *phases)
    for index in (*range(60), 17922):  # the last has six helper turns in nine at first, of which each but the first follows another
        turns = drawn_plan(7, 1, index, own, PhaseRules(length, length)).turns
        assert not any(
            turn.strategy and own.taxonomy[turn.strategy].asks and after.role == "helper" for turn, after in itertools.pairwise(turns)
        )


def test_where_no_course_is_found_it_is_told(full: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "REDRAWN", 0)
    with pytest.raises(InputError, match="no order of 12 to 22 turns was found .* that asks\n.*allow more turns"):
        drawn_plan(7, 1, 0, full, PhaseRules())


@pytest.fixture(scope="module")
def many(full: Catalogue) -> list[Plan]:
    """Plans of all scenarios."""
    return [drawn_plan(7, 1 + number % 60, number // 60, full, PhaseRules(), controls=3) for number in range(2000)]


def helper_turns(some: list[Plan]) -> list[PlannedTurn]:
    return [turn for plan in some for turn in plan.turns if turn.role == "helper"]


def test_manners_and_devices_are_drawn_apart(full: Catalogue) -> None:
    ways = [turn.ways for index in range(1500) for turn in drawn_plan(7, 1, index, full, PhaseRules()).turns if turn.ways]
    for one, other, kinds in (("apathetic", "empathetic", 72), ("far_apathetic", "empathetic", 120), ("apathetic", "far_apathetic", 60)):
        assert len({(way[one], way[other]) for way in ways}) == kinds, "each is met with each"


def test_manners_devices_registers_and_voices_come_up_as_often_as_they_weigh(many: list[Plan], full: Catalogue) -> None:
    registers = Counter(plan.persona.register.name for plan in many if plan.persona)
    assert registers.total() == 2000 and max(registers.values()) < 1.1 * min(registers.values())
    for place in (0, 1):
        voices = Counter(plan.voices[place] for plan in many)
        assert len(voices) == 8 and max(voices.values()) < 1.3 * min(voices.values())
    for variant, count in (("apathetic", 6), ("far_apathetic", 10), ("empathetic", 12)):
        ways = Counter(turn.ways[variant] for turn in helper_turns(many))
        shares = [ways[way.name] / way.weight for way in full.taxonomy.ways(variant)]
        assert len(ways) == count and max(shares) < 1.2 * min(shares)


def test_cheering_and_reciting_are_rare_near_and_far(many: list[Plan]) -> None:
    for variant in ("apathetic", "far_apathetic"):
        ways = Counter(turn.ways[variant] for turn in helper_turns(many))
        assert 0 < ways["cheering"] + ways["reciting"] <= 0.14 * ways.total()


def test_a_dialogue_has_two_voices(many: list[Plan]) -> None:
    assert all(helper and far and helper != far for helper, far in (plan.voices for plan in many))


def test_no_manner_or_device_contradicts_its_strategy(many: list[Plan], full: Catalogue) -> None:
    never = {(variant, way.name, tag) for variant in VARIANT_WAYS for way in full.taxonomy.ways(variant) for tag in way.not_with}
    assert ("empathetic", "plain company", "Cla") in never and ("far_apathetic", "interrogating", "Aff") in never
    for turn in helper_turns(many):
        tags = {"apathetic": turn.strategy, "far_apathetic": turn.empathetic_strategy, "empathetic": turn.empathetic_strategy}
        assert not never & {(variant, turn.ways[variant], tag) for variant, tag in tags.items()}


def said_before(plan: Plan) -> Iterator[tuple[PlannedTurn, int]]:
    """Each helper turn with how many words the seeker is to say since the helper's turn before."""
    said, last = 0, ""
    for turn in plan.turns:
        if turn.role == "seeker":
            said = turn.lengths["reference"] + (said if last == "seeker" else 0)
        else:
            yield turn, said
        last = turn.role


def test_a_helper_says_little_where_the_seeker_has_said_little(many: list[Plan]) -> None:
    for plan in many:
        assert plan.persona
        for turn, said in said_before(plan):
            lengths = [turn.lengths[name] for name in ("reference", *FAR)]
            assert max(lengths) <= 23 + 2 * said
            if plan.persona.register.name == "terse":
                assert max(lengths) <= 30


def test_a_short_helper_turn_has_no_variants_and_few_are_short(many: list[Plan]) -> None:
    turns = helper_turns(many)
    assert all(turn.edited == (turn.lengths["reference"] >= 12) for turn in turns) and not any(t.controls > t.edited for t in turns)
    assert 0 < sum(not turn.edited for turn in turns) <= 0.1 * len(turns)


def test_two_helper_turns_in_a_row_have_two_strategies(many: list[Plan]) -> None:
    rows = [(one.strategy, other.strategy) for plan in many for one, other in itertools.pairwise(plan.turns) if one.role == other.role]
    doubled = [pair for pair in rows if pair[0]]
    assert len(doubled) > 500 and all(one != other for one, other in doubled)


def test_most_dialogues_end_with_the_seeker(many: list[Plan]) -> None:
    assert 0.03 < sum(plan.turns[-1].role == "helper" for plan in many) / len(many) < 0.17


def test_of_two_cells_at_equal_closeness_either_is_planned_longer_as_often(full: Catalogue) -> None:
    turns = [turn for index in range(1000) for turn in drawn_plan(7, 1, index, full, PhaseRules()).turns if turn.role == "helper"]
    for kind, cold in (NEAR, FAR):
        longer, shorter = (sum(sign * (turn.lengths[kind] - turn.lengths[cold]) > 0 for turn in turns) for sign in (1, -1))
        assert abs(longer - shorter) < 4 * math.sqrt(longer + shorter), "four standard deviations of a fair coin"
    sooner = sum(turn.lengths["apathetic"] > 0 for turn in turns)
    assert abs(2 * sooner - len(turns)) < 4 * math.sqrt(len(turns)), "nor does the length tell an edit from the reference"


def test_planned_turns_are_short_and_long_as_those_of_people_are(full: Catalogue) -> None:
    plans_ = [drawn_plan(7, 1 + number % 60, number // 60, full, PhaseRules()) for number in range(1200)]
    for role, low, high in (("seeker", 6, 55), ("helper", 13, 60)):
        lengths = sorted(turn.lengths["reference"] for plan in plans_ for turn in plan.turns if turn.role == role)
        assert lengths[len(lengths) // 20] <= low and lengths[-len(lengths) // 20] >= high
    every = [turn.lengths["reference"] for plan in plans_ for turn in plan.turns]
    assert 26 <= sum(every) / len(every) <= 32, "words a turn, near the 28.7 of the reference corpus"


def test_the_plan_of_a_seed_has_the_lengths_of_its_texts(full: Catalogue) -> None:
    seed = full[17].seed
    assert seed
    plan = seed_plan(17, seed, full)
    assert plan.persona and plan.persona.register.name == seed.register
    for turn, planned_turn in zip(seed.turns, plan.turns, strict=True):
        own = len(words(turn.text))
        assert planned_turn.lengths["reference"] == own
        if turn.far_apathetic and turn.near_empathetic:
            assert planned_turn.lengths["far_apathetic"] == len(words(turn.far_apathetic))
            assert own + planned_turn.lengths["near_empathetic"] == len(words(turn.near_empathetic))


def test_without_personas_nothing_of_them_is_planned(full: Catalogue) -> None:
    plan = drawn_plan(1, 17, 4, dataclasses.replace(full, personas=None), PhaseRules())
    assert plan.persona is None and not any(turn.lengths for turn in plan.turns)
    with_them = drawn_plan(1, 17, 4, full, PhaseRules())
    assert [dataclasses.replace(turn, lengths={}, edited=True) for turn in with_them.turns] == list(plan.turns)


def test_the_sequence_by_hand() -> None:
    # Once each: 1, 2, 3. Then share / (2 k + 1), the highest first and equals by number:
    #   1: 5/3 = 1.67   2: 3/3 = 1      3: 2/3 = 0.67  -> 1
    #   1: 5/5 = 1      2: 3/3 = 1      3: 2/3 = 0.67  -> 1, the lower number of two equals
    #   1: 5/7 = 0.71   2: 3/3 = 1      3: 2/3 = 0.67  -> 2
    #   1: 5/7 = 0.71   2: 3/5 = 0.6    3: 2/3 = 0.67  -> 1
    #   1: 5/9 = 0.56   2: 3/5 = 0.6    3: 2/3 = 0.67  -> 3
    #   1: 5/9 = 0.56   2: 3/5 = 0.6    3: 2/5 = 0.4   -> 2
    #   1: 5/9 = 0.56   2: 3/7 = 0.43   3: 2/5 = 0.4   -> 1
    assert list(itertools.islice(sequence({1: 5, 2: 3, 3: 2}), 10)) == [1, 2, 3, 1, 1, 2, 1, 3, 2, 1]


def test_shares_are_the_decimals_that_are_written() -> None:
    # Once each, then 1 with 0.3/3, 0.3/5 and 0.3/7; then 0.3/9 and 0.1/3 are equal, and the lower number goes first.
    assert list(itertools.islice(sequence({1: 0.3, 2: 0.1}), 7)) == [1, 2, 1, 1, 1, 1, 2]
    assert Fraction(0.3) / 9 < Fraction(0.1) / 3, "as floats they are not equal"


def test_up_to_sixty_dialogues_are_of_as_many_scenarios_the_largest_first(demo: Configuration, full: Catalogue) -> None:
    largest = sorted(full.scenarios, key=lambda one: (-one.share, one.number))
    for size in range(1, 61):
        wanted = quotas(drawn(demo, dialogues=size), full)
        assert {number for number, quota in wanted.items() if quota} == {one.number for one in largest[:size]}
        assert max(wanted.values()) == 1


def test_a_larger_size_never_lowers_a_quota(demo: Configuration, full: Catalogue) -> None:
    order, before = sequence({one.number: one.share for one in full.scenarios}), Counter[int]()
    for size in range(1, 5001):
        before[next(order)] += 1
        if size % 50 == 1:  # counting all places again at every size takes long, and says the same
            assert +Counter(quotas(drawn(demo, dialogues=size), full)) == before
    assert before.total() == 5000


@settings(max_examples=50)
@given(shares=SHARES, small=st.integers(0, 300), more=st.integers(0, 300))
def test_quotas_of_any_catalogue_add_up_only_grow_and_give_one_each_first(
    demo: Configuration, catalogue: Catalogue, shares: list[float], small: int, more: int
) -> None:
    own = with_shares(catalogue, shares)
    first, second = (quotas(drawn(demo, dialogues=size), own) for size in (small, small + more))
    assert (sum(first.values()), sum(second.values())) == (small, small + more)
    assert all(second[number] >= quota for number, quota in first.items())
    assert sum(quota > 0 for quota in first.values()) == min(small, len(shares))


@settings(max_examples=50)
@given(shares=SHARES, size=st.integers(1, 500))
def test_beyond_one_each_no_scenario_has_a_better_claim_than_one_that_was_preferred(
    demo: Configuration, catalogue: Catalogue, shares: list[float], size: int
) -> None:
    """The definition of Sainte-Laguë: every last quotient that was taken is at least every next one that was not."""
    found = quotas(drawn(demo, dialogues=size), with_shares(catalogue, shares))
    exact = {number: Fraction(str(share)) for number, share in enumerate(shares, 1)}
    taken = [exact[number] / (2 * quota - 1) for number, quota in found.items() if quota > 1]
    assert not taken or min(taken) >= max(exact[number] / (2 * quota + 1) for number, quota in found.items())


@settings(max_examples=30)
@given(shares=SHARES, small=st.integers(1, 40), more=st.integers(0, 40), surplus=st.decimals(0, 1, places=2).map(float))
def test_a_larger_build_plans_all_that_a_smaller_one_did(
    demo: Configuration, catalogue: Catalogue, shares: list[float], small: int, more: int, surplus: float
) -> None:
    own = with_shares(catalogue, shares)
    first, second = (bare(by_id(drawn(demo, dialogues=size, surplus=surplus), own)) for size in (small, small + more))
    assert first.items() <= second.items()


def test_from_one_each_on_the_spares_are_the_wanted_ones_of_a_larger_build(demo: Configuration, full: Catalogue) -> None:
    spares = by_id(drawn(demo, dialogues=100, surplus=0.2), full)
    assert spares == by_id(drawn(demo, dialogues=120), full)


@settings(max_examples=30)
@given(shares=SHARES, size=st.integers(1, 40), surplus=st.decimals(0, 1, places=2))
def test_spares_are_no_more_than_the_share_asked_for_and_of_scenarios_that_can_use_them(
    demo: Configuration, catalogue: Catalogue, shares: list[float], size: int, surplus: Any
) -> None:
    own, config = with_shares(catalogue, shares), drawn(demo, dialogues=size, surplus=float(surplus))
    per_scenario, wanted = Counter(plan.scenario_id for plan in plans(config, own)), quotas(config, own)
    assert per_scenario.total() == size + math.ceil(size * surplus)
    assert all(wanted[number] for number in per_scenario)
    assert all(per_scenario[number] >= quota for number, quota in wanted.items())


def test_the_spares_of_a_few_dialogues_by_hand(demo: Configuration, catalogue: Catalogue) -> None:
    own = with_shares(catalogue, [5, 3, 2])
    # Two wanted, 1 and 2. Of the sequence 1, 2, 3, 1, 1, 2 the third place is of a scenario without a wanted dialogue.
    found = [plan.dialogue_id for plan in plans(drawn(demo, dialogues=2, surplus=1), own)]
    assert found == ["001-00000", "001-00001", "001-00002", "002-00000"]


def test_plans_are_by_scenario_and_then_by_index(demo: Configuration, full: Catalogue) -> None:
    found = list(plans(drawn(demo, dialogues=150, surplus=0.1), full))
    assert [(plan.scenario_id, plan.index) for plan in found] == sorted((plan.scenario_id, plan.index or 0) for plan in found)


def test_controls_are_dealt_out_to_the_configured_number(demo: Configuration, catalogue: Catalogue) -> None:
    found = list(plans(drawn(demo, dialogues=40, controls=25, surplus=0), catalogue))
    assert sum(turn.controls for plan in found for turn in plan.turns) == 25


def test_controls_go_once_to_each_dialogue_of_the_sequence_before_a_second(demo: Configuration, catalogue: Catalogue) -> None:
    own = with_shares(catalogue, [5, 3, 2])
    # Five dialogues in the order 1, 2, 3, 1, 1: of seven controls the first two dialogues have two.
    counts = Counter(name for name, _ in controls_of(by_id(drawn(demo, dialogues=5, surplus=1, controls=7), own)))
    assert counts == {"001-00000": 2, "002-00000": 2, "003-00000": 1, "001-00001": 1, "001-00002": 1}


@settings(max_examples=30)
@given(shares=SHARES, size=st.integers(1, 40), fewer=st.integers(0, 160), more=st.integers(0, 40))
def test_more_controls_keep_all_that_were_there(
    demo: Configuration, catalogue: Catalogue, shares: list[float], size: int, fewer: int, more: int
) -> None:
    own = with_shares(catalogue, shares)
    first, second = (by_id(drawn(demo, dialogues=size, controls=controls), own) for controls in (fewer, fewer + more))
    assert controls_of(first) <= controls_of(second) and bare(first) == bare(second)


@settings(max_examples=30)
@given(shares=SHARES, size=st.integers(1, 40), more=st.integers(0, 40), controls=st.integers(0, 160))
def test_more_dialogues_keep_the_controls_of_all_that_had_one(
    demo: Configuration, catalogue: Catalogue, shares: list[float], size: int, more: int, controls: int
) -> None:
    own = with_shares(catalogue, shares)
    first, second = (by_id(drawn(demo, dialogues=number, controls=controls), own) for number in (size, size + more))
    if controls <= size:
        assert controls_of(first) == controls_of(second)
    in_proportion = by_id(drawn(demo, dialogues=size + more, controls=math.ceil(controls * (size + more) / size)), own)
    assert controls_of(first) <= controls_of(in_proportion)


@settings(max_examples=20)
@given(dialogues=st.integers(0, 12), surplus=st.floats(0, 1), plan=st.sampled_from(["drawn", "seeds"]))
def test_plans_are_counted_as_they_are_drawn(demo: Configuration, catalogue: Catalogue, dialogues: int, surplus: float, plan: str) -> None:
    config = drawn(demo, plan=plan, dialogues=dialogues, surplus=surplus)
    assert planned_count(config, catalogue) == len(list(plans(config, catalogue)))


def test_seed_plans_are_the_seeds_own(demo: Configuration, catalogue: Catalogue) -> None:
    found = {plan.dialogue_id: plan for plan in plans(demo, catalogue)}
    assert sorted(found) == ["003-seed", "007-seed", "017-seed"]
    seed = catalogue[17].seed
    assert seed is not None
    assert [turn.strategy for turn in found["017-seed"].turns] == [turn.strategy for turn in seed.turns]


@pytest.mark.parametrize("length", [8, 9])
def test_short_dialogues_still_have_all_phases(length: int, full: Catalogue) -> None:
    rules = PhaseRules(length, length)
    assert all(not breaches(drawn_plan(3, 1, index, full, rules).turns, full.taxonomy, rules) for index in range(200))


def crossed_of(found: dict[str, Plan]) -> set[tuple[str, int]]:
    return {(name, place) for name, plan in found.items() for place in plan.crossed[: plan.crosses]}


def test_crossed_items_are_planned_where_a_helper_answers_the_seeker_behind_the_first_exchange(
    full: Catalogue, demo: Configuration
) -> None:
    for plan in plans(drawn(demo, dialogues=300, crossed=300, surplus=0), full):
        roles = [turn.role for turn in plan.turns]
        assert plan.crosses == 1 and len(set(plan.crossed)) == len(plan.crossed)
        for place, role in enumerate(roles):
            answers = role == "helper" and roles[place - 1] == "seeker" and "helper" in roles[:place]
            assert (place in plan.crossed) == answers


@settings(max_examples=30)
@given(shares=SHARES, size=st.integers(1, 40), fewer=st.integers(0, 100), more=st.integers(0, 40), surplus=st.sampled_from([0, 0.5]))
def test_more_crossed_items_keep_all_that_were_there_and_change_nothing_else(
    demo: Configuration, catalogue: Catalogue, shares: list[float], size: int, fewer: int, more: int, surplus: float
) -> None:
    own, sizes = with_shares(catalogue, shares), {"dialogues": size, "surplus": surplus, "controls": 3}
    first, second = (by_id(drawn(demo, **sizes, crossed=count), own) for count in (fewer, fewer + more))
    assert crossed_of(first) <= crossed_of(second)
    assert {name: plan.turns for name, plan in first.items()} == {name: plan.turns for name, plan in second.items()}
    counts = [plan.crosses for plan in by_id(drawn(demo, **{**sizes, "surplus": 0}, crossed=fewer), own).values()]
    assert sum(counts) == fewer or max(counts) > 2, "a dialogue has only so many turns"
    assert max(counts) <= 1 or min(counts) >= 1, "each has one before another has two"


@settings(max_examples=20)
@given(shares=SHARES, size=st.integers(1, 40), more=st.integers(0, 40), share=st.floats(0, 1))
def test_more_dialogues_keep_the_crossed_items_of_all_that_had_one(
    demo: Configuration, catalogue: Catalogue, shares: list[float], size: int, more: int, share: float
) -> None:
    own, wanted = with_shares(catalogue, shares), int(share * size)
    first, second = (by_id(drawn(demo, dialogues=number, crossed=wanted), own) for number in (size, size + more))
    assert crossed_of(first) == crossed_of(second)


def test_the_places_of_crossed_items_hang_on_seed_and_item_alone(full: Catalogue, demo: Configuration) -> None:
    config = drawn(demo, dialogues=120, crossed=120, surplus=0)
    found = by_id(config, full)
    for name in ("017-00000", "001-00002"):
        assert planning.plan_of(config, full, name) == found[name]
        assert planning.plan_of(drawn(demo, dialogues=200, crossed=200, surplus=0), full, name) == found[name]
    assert len({plan.crossed[:1] for plan in found.values()}) > 4, "and are spread"
    assert not any(plan.crossed or plan.crosses for plan in plans(drawn(demo, dialogues=60), full))


def test_dialogues_are_drawn_from_listed_scenarios_alone_and_more_of_them_only_append(demo: Configuration, full: Catalogue) -> None:
    few, more = (by_id(drawn(demo, dialogues=size, scenarios=(4, 17, 42)), full) for size in (7, 20))
    assert {plan.scenario_id for plan in few.values()} == {4, 17, 42} and few.items() <= more.items()
    assert quotas(drawn(demo, dialogues=7, scenarios=(4, 17, 42)), full).keys() == {4, 17, 42}
    config = drawn(demo, dialogues=7, scenarios=(4, 17, 42))
    assert planning.plan_of(config, full, "003-00000") is None and planning.plan_of(config, full, "004-00000") == few["004-00000"]


def test_dialogues_with_all_controls_are_the_first_of_the_sequence_and_others_go_on_as_before(demo: Configuration, full: Catalogue) -> None:
    plain, some, more = (by_id(drawn(demo, controls=30, control_dialogues=count), full) for count in (0, 6, 9))
    assert bare(plain) == bare(some) == bare(more)
    whole = {name for name, plan in some.items() if all(turn.controls == turn.edited for turn in plan.turns if turn.role == "helper")}
    assert len(whole) >= 6 and controls_of(plain) < controls_of(some) < controls_of(more)
    assert {name for name, _ in controls_of(some) - controls_of(plain)} <= whole
    spared = by_id(drawn(demo, dialogues=20, surplus=0.5, control_dialogues=99), full)
    assert len({name for name, _ in controls_of(spared)}) == 20 < len(spared)


def test_a_scenario_that_there_is_not_is_named(demo: Configuration, catalogue: Catalogue, prompts: Prompts) -> None:
    with pytest.raises(InputError, match=r"scenarios: there is no scenario 99\n  Fix: use numbers from 3 to 17"):
        Recipe(drawn(demo, scenarios=(3, 99)), catalogue, prompts)
