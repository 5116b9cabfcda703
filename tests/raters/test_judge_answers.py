"""What judges answer: taken as it is, or refused with what to mend."""

from __future__ import annotations

import math
from typing import Any

import pytest
from empathy_eval.base.schemas import violations
from empathy_eval.completions.requests import Flaw
from empathy_eval.design.rubrics import Criterion, Scale
from empathy_eval.design.taxonomy import Taxonomy
from empathy_eval.raters.judges.judge import ideal_of, named_of, ratings_of
from hypothesis import given
from hypothesis import strategies as st

ASKED = (Criterion("warm", "How warm?", Scale(0, 1, whole=False)), Criterion("clear", "How clear?", Scale(1, 5, whole=True)))


def rated(*given: tuple[str, Any]) -> dict[str, Any]:
    return {"analysis": "", "ratings": [{"criterion": name, "value": value} for name, value in given]}


def told(found: Any) -> dict[str, str]:
    assert isinstance(found, list) and found and all(isinstance(one, Flaw) for one in found)
    return {one.reason: one.detail for one in found}


def test_numbers_are_taken_as_they_are_in_the_order_asked() -> None:
    found = ratings_of(rated(("clear", 4.0), ("warm", 0.73)), ASKED)
    assert found == {"warm": 0.73, "clear": 4.0} and list(found) == ["warm", "clear"]
    assert ratings_of(rated(("warm", 0), ("clear", 1)), ASKED) == {"warm": 0.0, "clear": 1.0}


@pytest.mark.parametrize(
    ("given", "reason", "detail"),
    [
        ([("warm", 0.5)], "criterion_missing", '"clear" is missing; answer for each criterion that was asked for'),
        ([("warm", 0.5), ("clear", 3), ("kind", 3)], "criterion_unknown", '"kind" is no criterion that was asked for; use warm, clear'),
        ([("warm", 0.5), ("clear", 3), ("warm", 0.5)], "criterion_repeated", '"warm" is there 2 times; answer for each criterion once'),
        ([("warm", 1.2), ("clear", 3)], "rating_out_of_bounds", 'the value 1.2 for "warm" is not between 0 and 1; give one that is'),
        ([("warm", 0.5), ("clear", 0)], "rating_out_of_bounds", 'the value 0 for "clear" is not between 1 and 5; give one that is'),
        ([("warm", 0.5), ("clear", 3.5)], "rating_not_whole", 'the value 3.5 for "clear" is not a whole number; give one that is'),
    ],
)
def test_what_is_not_as_asked_is_a_flaw_that_says_what_to_mend(given: list[tuple[str, Any]], reason: str, detail: str) -> None:
    assert told(ratings_of(rated(*given), ASKED)) == {reason: detail}


def test_a_negative_zero_is_a_zero() -> None:
    assert [math.copysign(1, value) for value in ratings_of(rated(("warm", -0.0), ("clear", 1)), ASKED).values()] == [1, 1]  # type: ignore[union-attr]


def test_all_flaws_come_at_once_and_an_empty_answer_misses_everything() -> None:
    assert set(told(ratings_of(rated(("warm", -1), ("clear", 2.5), ("kind", 1)), ASKED))) == {
        "rating_out_of_bounds", "rating_not_whole", "criterion_unknown",
    }  # fmt: skip
    assert len(list(ratings_of(rated(), ASKED))) == 2


@given(st.lists(st.tuples(st.sampled_from(["warm", "clear", "kind", ""]), st.one_of(st.integers(-2, 7), st.floats(-2, 7))), max_size=4))
def test_an_answer_is_taken_if_and_only_if_it_is_what_was_asked_for_and_never_changed(given: list[tuple[str, float]]) -> None:
    answer = rated(*given)
    assert not list(violations(answer, "rating_answer"))
    by_name = dict(given)
    good = (
        len(given) == 2
        and set(by_name) == {"warm", "clear"}
        and 0 <= by_name["warm"] <= 1
        and by_name["clear"] in (1, 2, 3, 4, 5)
    )  # fmt: skip
    found = ratings_of(answer, ASKED)
    assert isinstance(found, dict) == good
    assert found == by_name if good else all(one.reason and one.detail for one in told_list(found))


def told_list(found: Any) -> list[Flaw]:
    assert isinstance(found, list) and found
    return found


def shares(taxonomy: Taxonomy, **changes: float) -> dict[str, Any]:
    """All on RS but for the changes."""
    values = {one.abbreviation: 0.0 for one in taxonomy.strategies} | {"RS": 1.0} | changes
    return {"strategies": [{"strategy": name, "probability": value} for name, value in values.items()]}


def test_probabilities_come_in_the_order_of_the_taxonomy_and_add_up_to_one(taxonomy: Taxonomy) -> None:
    answer = shares(taxonomy, RS=0.5, SM=0.495)
    answer["strategies"].reverse()
    found = ideal_of(answer, taxonomy)
    assert isinstance(found, dict) and list(found) == [one.abbreviation for one in taxonomy.strategies]
    assert math.isclose(math.fsum(found.values()), 1) and found["RS"] == pytest.approx(0.5 / 0.995)
    for total in (0.99, 1.01):
        assert isinstance(ideal_of(shares(taxonomy, RS=total - 0.25, SM=0.25), taxonomy), dict)


def test_probabilities_that_add_up_to_something_else_are_refused(taxonomy: Taxonomy) -> None:
    for total in (0.0, 0.98, 1.02):
        found = told(ideal_of(shares(taxonomy, RS=total / 2, SM=total / 2), taxonomy))
        assert found == {"probabilities_sum": f"the probabilities add up to {total:g}; let them add up to 1"}


def test_each_strategy_is_there_once_with_a_probability_that_is_one(taxonomy: Taxonomy) -> None:
    assert "strategy_unknown" in told(ideal_of(shares(taxonomy, Hug=0.0), taxonomy))
    assert told(ideal_of(shares(taxonomy, RS=1.5, SM=-0.5), taxonomy)).keys() == {"probability_out_of_bounds"}
    answer = shares(taxonomy)
    answer["strategies"].append(answer["strategies"].pop(0) | {"probability": 0.5})
    answer["strategies"].append({"strategy": "RS", "probability": 0.5})
    assert "strategy_repeated" in told(ideal_of(answer, taxonomy))
    assert "strategy_missing" in told(ideal_of({"strategies": answer["strategies"][:3]}, taxonomy))


def test_the_strategy_of_a_reply_goes_by_its_abbreviation(taxonomy: Taxonomy) -> None:
    assert named_of({"strategy": "SM"}, taxonomy) == "SM"
    found = told(named_of({"strategy": "Stress Management"}, taxonomy))
    assert found["strategy_unknown"].startswith('"Stress Management" is no strategy that was asked for; use RS, Cla, ')


def test_a_long_name_is_not_repeated_whole() -> None:
    assert len(told(ratings_of(rated(("x" * 5000, 1)), ASKED))["criterion_unknown"]) < 200
