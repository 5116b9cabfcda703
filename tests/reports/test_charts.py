"""The figures: what they hold, and files with the same bytes whatever a metric is called."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.design.contrasts import RAW, STANCE, STANCE_FAR, STANCE_NEAR
from empathy_eval.evaluation.inversion.results import Difference, MetricRow, ReleaseTables
from empathy_eval.evaluation.inversion.rows import ContrastAudit, Shortcut, ShortcutAudit
from empathy_eval.reports.charts import (
    accuracies,
    charts_of,
    delta_charts,
    draw_chart,
    draw_depth,
    draw_named,
    effects,
    panels_of,
    phases_named,
    ranks,
    scenarios,
)
from empathy_eval.statistics.estimate import Estimate

RIGHT = Estimate(0.1, 0.0, 0.2)


def a_row(name: str, score: float = 0.5, better: bool | None = True, accuracy: Estimate = RIGHT, **differences: float) -> MetricRow:
    values = {RAW: -0.4} if not differences else {name.replace("_", ", "): value for name, value in differences.items()}
    found = {key: Difference(value, value - 0.05, value + 0.05, accuracy=accuracy) for key, value in values.items()}
    return MetricRow(name, "s", None, {"apathetic": score, "empathetic": score}, found, 3, better)


def measured(*names: str) -> ReleaseTables:
    return ReleaseTables(
        [a_row(name) for name in names],
        [a_row(name, stance=0.1, stance_near=0.15, stance_far=0.05) for name in names],
        groups={"scenario": {"Sleep": [a_row(name) for name in names], "Work": [a_row(name) for name in names]}},
    )


def test_a_metric_on_another_scale_or_without_a_direction_is_not_drawn_beside_the_others() -> None:
    found = effects(ReleaseTables([a_row("a"), a_row("points", 37.0), a_row("length", 0.3, None)]))
    assert found and [name for name, _ in found.rows] == ["a"]
    assert effects(ReleaseTables([a_row("points", 37.0)])) is None
    assert (all_ranks := ranks(ReleaseTables([a_row("a"), a_row("points", 37.0), a_row("length", 0.3, None)])))
    assert [name for name, _ in all_ranks.rows] == ["a", "points"]


def test_the_axis_holds_every_interval_and_the_middle() -> None:
    found = effects(measured("a"))
    assert found and found.span[0] <= -0.45 and found.span[1] >= 0.15 and 0 in found.ticks
    assert [mark.series for mark in found.rows[0][1]] == [RAW, STANCE] == list(found.legend)
    assert [found.shift(mark) for mark in found.rows[0][1]] == [-0.5, 0.5]


def test_without_controls_only_the_released_comparison_is_drawn() -> None:
    found = effects(ReleaseTables([a_row("a")]))
    assert found and list(found.legend) == [RAW]
    assert (both := ranks(measured("a"))) and list(both.legend) == [RAW, STANCE_NEAR, STANCE_FAR]


def test_accuracies_at_equal_closeness_appear_beside_the_shortcut_line() -> None:
    found = accuracies(measured("a"))
    assert found and found.line is None and found.span == (0.0, 1.0) and [name for name, _ in found.rows] == ["a"]
    high = replace(
        measured("a"), controls=[a_row("a", accuracy=Estimate(0.6, 0.5, 0.7), stance=0.1), a_row("length", 0.3, None, stance=0.1)]
    )
    row = Shortcut("characters", True, 3, Estimate(0.9, 0.8, 1.0), None, "s")
    audit = ShortcutAudit("dialogue", (ContrastAudit(STANCE, "controls", "empathetic", "apathetic", 3, 3, 3, (row,)),))
    found = accuracies(replace(high, audit=audit))
    assert found and found.line == (0.9, "characters") and found.span == (0.4, 1.0) and len(found.rows) == 1
    assert accuracies(ReleaseTables([a_row("a")], audit=audit)) is None
    assert [one.name for one in charts_of(measured("a"))] == ["accuracies", "effects", "ranks", "scenarios"]


def test_every_scenario_is_a_mark() -> None:
    found = scenarios(measured("a", "b"))
    assert found and [(name, len(marks)) for name, marks in found.rows] == [("a", 2), ("b", 2)]


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["$x_1$ and $y", r"\frac{1}{0}", "<b>&amp;</b>"])
def test_a_figure_has_the_same_bytes_again_whatever_a_metric_is_called(tmp_path: Path, name: str) -> None:
    found = accuracies(measured(name))
    assert found
    for chart in (effects(measured(name)), scenarios(measured(name)), replace(found, line=(0.9, name))):
        assert chart
        for folder in ("one", "two"):
            draw_chart(chart, tmp_path / folder)
        for suffix in ("svg", "png"):
            first, second = (tmp_path / folder / f"{chart.name}.{suffix}" for folder in ("one", "two"))
            assert first.read_bytes() == second.read_bytes() and first.stat().st_size > 2000


# What is told of two judges, of three parts of a dialogue.
RIGHT_OF = {"value": 0.5, "low": 0.25, "high": 0.75, "why": None}
NAMED = [
    {"name": "Clarification", "phase": "exploration", "named": [2, 0, 1]},
    {"name": "Offer Hope", "phase": "comforting", "named": [0, 1, 0]},
]
TOLD: dict[str, Any] = {
    "course": {"parts": 3},
    "depth": {
        "variants": [
            {"variant": "reference", "words": [10.0, 20.0, None], "questions": [0.0, 1.0, None]},
            {"variant": "apathetic", "words": [9.0, 41.0, None], "questions": [0.5, 0.0, None]},
        ],
        "planned": [
            {"name": "Clarification", "phase": "exploration", "near": [3, 0, 0], "far": [1, 0, 0]},
            {"name": "Offer Hope", "phase": "comforting", "near": [0, 1, 0], "far": [2, 1, 0]},
        ],
    },
    "judges": {
        "depth": {"m/teacher": {"variants": [{"variant": "apathetic", "means": [0.5, None, 0.25]}]}},
        "course": {"m/strategies": {"variants": {"apathetic": NAMED}, "deltas": {STANCE_NEAR: {"Clarification": RIGHT_OF}}}},
    },
}  # fmt: skip


def test_the_difference_of_planned_strategies_is_one_of_shares_with_the_largest_first() -> None:
    planned, named = delta_charts(TOLD)
    # Near: 3 of 4 and 1 of 4. Far: 1 of 4 and 3 of 4.
    assert [(name, [mark.of.value for mark in marks]) for name, marks in planned.rows] == [("Offer Hope", [0.5]), ("Clarification", [-0.5])]
    ((name, (mark,)),) = named.rows
    assert (name, mark.series, mark.of) == ("Clarification", STANCE_NEAR, Estimate(0.5, 0.25, 0.75))


def test_strategies_are_called_by_their_judges_where_there_are_several() -> None:
    judges = TOLD["judges"]["course"] | {"n/strategies": TOLD["judges"]["course"]["m/strategies"]}
    (*_, named) = delta_charts(TOLD | {"judges": {"course": judges}})
    assert [name for name, _ in named.rows] == ["m/strategies: Clarification", "n/strategies: Clarification"]


def test_panels_have_a_line_for_each_variant_and_an_axis_from_nothing_to_the_most(tmp_path: Path) -> None:
    words, questions, understanding = panels_of(TOLD)
    assert words.lines == {"reference": [10.0, 20.0, None], "apathetic": [9.0, 41.0, None]} and words.top >= 41
    assert questions.title == "questions per turn" and questions.top >= 1
    assert understanding.title == "understanding, rated by m/teacher" and understanding.lines == {"apathetic": [0.5, None, 0.25]}
    draw_depth([words, questions, understanding], tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"depth.svg", "depth.png"}


def test_phases_that_a_judge_named_are_those_of_the_strategies(tmp_path: Path) -> None:
    ((judge, variant, course),) = phases_named(TOLD)
    assert (judge, variant) == ("m/strategies", "apathetic")
    assert {one["name"]: one["counts"] for one in course["phases"]} == {
        "exploration": [2, 0, 1],
        "comforting": [0, 1, 0],
        "action": [0, 0, 0],
    }
    draw_named([(judge, variant, course)], tmp_path)
    assert (tmp_path / "course_named.svg").is_file()


def test_without_judges_and_texts_nothing_is_drawn_of_variants(tmp_path: Path) -> None:
    assert (delta_charts({}), panels_of({}), phases_named({})) == ([], [], [])
    draw_named([], tmp_path)
    draw_depth([], tmp_path)
    assert not list(tmp_path.iterdir())
