"""The claims of a report: sentences that turn with the data, in one order, and say no more than the figures carry."""

from __future__ import annotations

from dataclasses import replace

import pytest
from empathy_eval.evaluation.inversion.results import MetricRow, ReleaseTables
from empathy_eval.evaluation.inversion.rows import ShortcutAudit
from empathy_eval.reports.claims import claims, how_many, shortcut_line, whom
from empathy_eval.statistics.estimate import Estimate

from tests.reports.test_page import a_measured, a_row, an_audit, bare

NOTHING = " A metric below this line has not shown that it measures empathy."
BAG = "a bag-of-words classifier without the context"
ORDER = ["By construction", "At equal closeness", "Shortcut line"]


def said(measured: ReleaseTables) -> list[str]:
    found = claims(measured)
    assert [one.name for one in found] == ORDER
    return [one.text.replace("\xa0", " ") for one in found]


def at(*accuracies: tuple[float, float, float], line: float, forced: bool = True) -> ReleaseTables:
    """Metrics with these accuracies and their intervals at equal closeness, and words alone a little below the shortcut line."""
    rows = [a_row(f"M{number}", 0, 0.1, forced=forced, accuracy=Estimate(*one)) for number, one in enumerate(accuracies)]
    raw = [a_row(row.metric, -0.5, forced=forced) for row in rows]
    return ReleaseTables(raw, rows, audit=an_audit(stance=line - 0.01))


def test_what_is_forced_turns_with_the_data() -> None:
    why = "The checks force this: that reply is a near-copy of the reference. This alone says nothing about empathy."
    assert said(a_measured([-0.5, -0.4], []))[0] == f"As released, all 2 reference-based metrics prefer the apathetic reply. {why}"
    assert said(a_measured([0.5, -0.4], []))[0] == f"As released, 1 of the 2 reference-based metrics prefers the apathetic reply. {why}"
    assert said(a_measured([0.5, 0.4], []))[0] == "As released, none of the 2 reference-based metrics prefers the apathetic reply."
    assert said(a_measured([0.4], []))[0] == "As released, the one reference-based metric does not prefer the apathetic reply."


def test_what_is_left_names_whom_they_prefer_and_how_often() -> None:
    both = said(at((0.552, 0.5, 0.6), (0.854, 0.8, 0.9), line=1.0))[1]
    many = "reference-based metrics"
    assert both == f"All 2 {many} prefer the empathetic reply. Their accuracies range from 55.2 % to 85.4 %; chance is 50 %."
    one = said(at((0.552, 0.5, 0.6), line=1.0))[1]
    assert one == "The one reference-based metric prefers the empathetic reply. Its accuracy is 55.2 %; chance is 50 %."
    same = said(at((0.552, 0.5, 0.6), (0.552, 0.5, 0.6), line=1.0))[1]
    assert same == f"All 2 {many} prefer the empathetic reply. Their accuracy is 55.2 %; chance is 50 %."
    mixed = said(a_measured([0.5, -0.4, -0.2], [0.001, -0.1, 0.1]))[1]
    sided = "1 prefers the empathetic reply, 1 prefers the apathetic reply and 1 shows no clear preference."
    assert mixed.startswith(f"Of the 3 {many}, {sided}")
    assert said(a_measured([-0.5, -0.4], [-0.1, -0.1]))[1].startswith(f"All 2 {many} prefer the apathetic reply.")


def test_without_controls_nothing_is_claimed_of_stance() -> None:
    forced, left, reached = said(a_measured([-0.5], [], audit=an_audit(raw=0.93)))
    assert left == "This release has no controls, so it cannot show whether a metric measures stance or closeness."
    # The one metric is forced as released, so it is not held against the line.
    assert reached == f"As released, {BAG} reaches 93.0 %, the best shortcut (characters) 94.0 %."
    free = ReleaseTables([a_row("free", 0.2, forced=False, accuracy=Estimate(0.99, 0.98, 1.0))], audit=an_audit(raw=0.93))
    assert said(free)[2].endswith("The one metric that the checks do not force is above this line.")


def test_without_a_metric_that_reads_the_reference_nothing_is_called_forced() -> None:
    forced, left, _ = said(at((0.6, 0.55, 0.65), (0.7, 0.65, 0.75), line=0.9, forced=False))
    assert forced == "No metric in this report compares a reply with a reference, so the checks force no preference."
    assert left.startswith("All 2 metrics prefer the empathetic reply. Their accuracies range from 60.0 % to 70.0 %")


@pytest.mark.parametrize(
    ("accuracies", "line", "told"),
    [
        ([(0.95, 0.92, 0.98)], 0.91, "The one metric with an accuracy is above this line."),
        ([(0.95, 0.92, 0.98)], 0.92, "The one metric with an accuracy is at this line."),
        ([(0.95, 0.92, 0.98)], 0.98, "The one metric with an accuracy is at this line."),
        ([(0.95, 0.92, 0.98)], 0.99, "The one metric with an accuracy is below this line." + NOTHING),
        ([(0.95, 0.92, 0.98)] * 2, 0.91, "All 2 metrics with an accuracy are above this line."),
        ([(0.95, 0.92, 0.98)] * 2, 0.95, "None of the 2 metrics with an accuracy is above this line; all are at it."),
        (
            [(0.6, 0.5, 0.7)] * 3,
            0.95,
            "None of the 3 metrics with an accuracy is above this line; all are below it. "
            "A metric below this line has not shown that it measures empathy.",
        ),
        (
            [(0.95, 0.92, 0.98), (0.9, 0.88, 0.92), (0.6, 0.5, 0.7), (0.6, 0.5, 0.7)],
            0.9,
            "1 of the 4 metrics with an accuracy is above this line; 1 is at it and 2 are below it. "
            "A metric below this line has not shown that it measures empathy.",
        ),
    ],
)  # fmt: skip
def test_a_metric_is_above_or_below_the_line_only_with_its_whole_interval(
    accuracies: list[tuple[float, float, float]], line: float, told: str
) -> None:
    measured = at(*accuracies, line=line)
    words, best = (f"{100 * one:.1f} %" for one in (line - 0.01, line))
    assert said(measured)[2] == f"At equal closeness, {BAG} reaches {words}, the best shortcut (characters) {best}. {told}"


def test_words_alone_may_be_the_best_shortcut_or_be_missing() -> None:
    measured = at((0.6, 0.5, 0.7), line=1.01)
    assert said(measured)[2].startswith(f"At equal closeness, {BAG} reaches 100.0 %; no other shortcut reaches more. The one")
    (one,) = an_audit(stance=0.7).contrasts
    untrained = replace(one, shortcuts=(replace(one.shortcuts[0], accuracy=None), replace(one.shortcuts[1], name="VADER")))
    only = replace(measured, audit=ShortcutAudit("dialogue", (untrained,)))
    assert said(only)[2].startswith("At equal closeness, the best shortcut (VADER) reaches 71.0 %.")


def test_without_an_audit_nothing_is_held_against_a_line() -> None:
    measured = replace(at((0.6, 0.5, 0.7), line=0.9), audit=None)
    assert said(measured)[2] == "No shortcut was measured, so it is not known whether a metric does better than words alone."
    assert shortcut_line(measured) is None
    # Nor against the line of another contrast.
    other = replace(measured, audit=an_audit(raw=0.9))
    assert shortcut_line(other) is None and said(other)[2].startswith("No shortcut could be measured")


def test_one_dialogue_makes_no_claim_at_all() -> None:
    def single(rows: list[MetricRow]) -> list[MetricRow]:
        return [bare(one) for one in rows]

    measured = at((0.6, 0.5, 0.7), (0.7, 0.6, 0.8), line=0.9)
    (only,) = claims(replace(measured, inversion=single(measured.inversion), controls=single(measured.controls)))
    assert only.text == "One dialogue has no intervals, so this report makes no claim."
    # One dialogue alone has controls.
    few = replace(measured, controls=single(measured.controls))
    assert said(few)[1:] == [
        "One dialogue is too few to tell.",
        f"At equal closeness, {BAG} reaches 89.0 %, the best shortcut (characters) 90.0 %. "
        "One dialogue is too few to compare metrics with this line.",
    ]


def test_how_many_prefer_whom_is_put_into_words() -> None:
    assert whom({"apathetic": 0, "empathetic": 0, "neither": 2, "untested": 0}) == "none of the 2 shows a clear preference"
    assert whom({"apathetic": 0, "empathetic": 0, "neither": 1, "untested": 0}) == "it shows no clear preference"
    assert whom({"apathetic": 0, "empathetic": 2, "neither": 0, "untested": 1}) == "2 prefer the empathetic reply and 1 has no interval"
    assert how_many(2, 3, "other", "prefer") == "2 of the 3 other metrics prefer"
