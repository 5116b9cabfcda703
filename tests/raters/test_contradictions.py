"""Who finds in a text what the experts find the opposite of: counted by hand, in both directions, for all kinds of raters."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

import pytest
from empathy_eval.design.rubrics import Scale
from empathy_eval.raters.agreement.panel import Framework, JudgeRater, Panel
from empathy_eval.raters.agreement.reliability import ANY, Contradiction, contradictions
from empathy_eval.raters.agreement.table import RatingTable
from empathy_eval.statistics.agreement import wilson_proportion
from statsmodels.stats.proportion import proportion_confint

FIVE = Scale(1, 5, whole=True)
LISTENING = Framework(
    "listening", "Listening", ("validating", "dismissing"), {"validating": FIVE, "dismissing": FIVE}, {}, (("validating", "dismissing"),)
)
PANEL = Panel(("e1", "e2", "e3"), (JudgeRater("j", "j"),), ("c1", "c2"))
# By item, what each rater gives on validating and on dismissing; experts dismiss in a, b and c.
GIVEN = {
    "a": {"e1": (1, 5), "e2": (1, 5), "e3": (2, 1), "j": (4, 1), "c1": (5, 1), "c2": (5, 1)},
    "b": {"e1": (1, 4), "e2": (5, 4), "e3": (2, 4), "j": (5, 1), "c1": (3, 1), "c2": (4, 1)},
    "c": {"e1": (3, 4), "e2": (3, 4), "e3": (3, 4), "j": (3, 1), "c1": (1, 4), "c2": (5, 4)},
    "d": {"e1": (5, 3), "e2": (5, 3), "e3": (5, 3), "j": (5, 3), "c1": (5, 3), "c2": (5, 3)},
}


def table(leave_out: Iterable[tuple[str, str]] = ()) -> RatingTable:
    return RatingTable.of(
        (item, rater, value, name)
        for item, raters in GIVEN.items()
        for rater, values in raters.items()
        for name, value in zip(LISTENING.criteria, values, strict=True)
        if (item, rater) not in leave_out
    )


def by_rater(found: Iterable[Contradiction], high: str) -> dict[str, Contradiction]:
    return {one.rater: one for one in found if one.high.criterion == high}


def test_of_what_experts_find_dismissing_it_is_counted_what_others_find_validating() -> None:
    found = by_rater(contradictions(table(), PANEL, LISTENING), "validating")
    # The middle is 3: the judge is above it in a and b; the crowd's mean in a (5) and b (3.5), and 3 in c, where one of it is at 5.
    counted = {name: (one.count, one.of, one.examples) for name, one in found.items()}
    assert counted["j"] == (2, 3, ("b", "a")), "the highest comes first"
    assert counted["crowd"] == (2, 3, ("a", "b")) and counted[ANY] == (3, 3, ("a", "c", "b"))
    # Without e2 the others' median of a is the mean of 5 and 1, which is not above 3.
    assert counted["e2"] == (1, 2, ("b",)) and counted["e1"] == (0, 2, ()) and counted["e3"] == (0, 3, ())
    assert {one.kind for one in found.values()} == {"expert", "judge", "crowd", ANY}
    assert "crowd:mean,not-rounded" in found["crowd"].share.signature and "crowd:any-of-them" in found[ANY].share.signature
    assert found["j"].high.above == 3 and found["j"].opposite.criterion == "dismissing"


def test_the_other_direction_is_counted_as_well() -> None:
    found = by_rater(contradictions(table(), PANEL, LISTENING), "dismissing")
    # Experts are high on validating in d alone, and there nobody is above the middle on dismissing; without e1 in b as well (5 and 2).
    assert {name: (one.count, one.of) for name, one in found.items() if name != "e1"} == dict.fromkeys(
        ["e2", "e3", "j", "crowd", ANY], (0, 1)
    )
    assert (found["e1"].count, found["e1"].of, found["e1"].examples) == (1, 2, ("b",))


def test_items_that_a_rater_left_out_are_not_counted() -> None:
    found = by_rater(contradictions(table([("a", "j")]), PANEL, LISTENING), "validating")
    assert (found["j"].count, found["j"].of) == (1, 2)


def test_where_nothing_is_high_the_share_is_not_defined_and_says_why() -> None:
    found = by_rater(contradictions(table([("d", "j")]), PANEL, LISTENING), "dismissing")["j"]
    assert found.share.value is None
    assert found.share.reason == 'no item that is rated on "dismissing" has a high median of the experts on "validating"'
    json.dumps(asdict(found), allow_nan=False)


def test_without_a_rubric_the_middle_is_that_of_the_values_that_occur() -> None:
    own = Framework("", "", LISTENING.criteria, {}, {}, LISTENING.opposites)
    rows = [("a", "e1", 2.0, "validating"), ("b", "e1", 4.0, "validating"), ("a", "e1", 1.0, "dismissing"), ("a", "j", 2.0, "dismissing")]
    found = contradictions(RatingTable.of(rows), Panel(("e1",), (JudgeRater("j", "j"),)), own)
    assert {(one.high.criterion, one.high.above, one.high.of) for one in found} == {
        ("validating", 3.0, "values-that-occur"), ("dismissing", 1.5, "values-that-occur"),
    }  # fmt: skip
    assert all(one.kind == "judge" for one in found), "one expert has no others to stand against"


def test_a_framework_without_opposites_or_without_their_ratings_has_none() -> None:
    assert contradictions(table(), PANEL, Framework("x", "X", LISTENING.criteria)) == ()
    alone = RatingTable.of(row for row in table().rows() if row[3] == "validating")
    assert contradictions(alone, PANEL, LISTENING) == ()


@pytest.mark.parametrize(("count", "of"), [(0, 12), (1, 3), (12, 12), (250, 1000), (1, 1)])
def test_a_share_has_the_interval_of_wilson(count: int, of: int) -> None:
    found = wilson_proportion(count, of, "none")
    low, high = proportion_confint(count, of, method="wilson")
    assert found.value == pytest.approx(count / of)
    assert found.low == pytest.approx(low, abs=1e-9) and found.high == pytest.approx(high, abs=1e-9)
