"""The page of a report: sentences that follow the data, texts that stay texts, and a page that everybody can read."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from empathy_eval.base.text import counted, listed
from empathy_eval.design.contrasts import PAIRS, TWO_BY_TWO
from empathy_eval.evaluation.corpus.descriptives import changes
from empathy_eval.evaluation.inversion.results import DetectableEffect, Difference, MetricComparison, MetricRow, ReleaseTables
from empathy_eval.evaluation.inversion.rows import ContrastAudit, IndicativeWord, Shortcut, ShortcutAudit, WordMargin
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.releases.assemble.write import Released
from empathy_eval.reports.charts import charts_of
from empathy_eval.reports.page import number, page, signed, times
from empathy_eval.statistics.estimate import Estimate
from empathy_eval.statistics.estimate import Estimate as WithP
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.browser import broken_words, serious_findings, watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser

RAW = PAIRS[0].name
HOSTILE = (
    "<script>document.title='ran'</script>",
    "</style></title><img src=x onerror=\"document.title='ran'\">",
    "quotes \" ' ` and & &amp; {{ 7 * 7 }} $x_1$",
    "\u202eright to left\u202c שלום مرحبا 👩‍👩‍👧",
)


class Text(HTMLParser):
    """The text of a page as a reader gets it, and the names of its tags."""

    def __init__(self) -> None:
        super().__init__()
        self.parts, self.tags, self.inside = list[str](), set[str](), ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.inside = tag

    def handle_data(self, data: str) -> None:
        if self.inside != "style":
            self.parts.append(data)

    @property
    def said(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.parts))


def read(html: str) -> Text:
    found = Text()
    found.feed(html)
    return found


RIGHT = Estimate(0.25, 0.2, 0.3)


def a_row(
    name: str, raw: float, stance: float | None = None, *, forced: bool = True, within: float = 0.01, better: bool | None = True,
    accuracy: Estimate = RIGHT,
) -> MetricRow:  # fmt: skip
    """A row with ``raw`` as released, or with ``stance`` and a closeness of 0.6 over the four cells."""
    values = {RAW: raw} if stance is None else {"stance": stance, "stance, near": stance, "stance, far": stance, "closeness": 0.6}
    sided = {one.name: one.sides for one in (*PAIRS, *TWO_BY_TWO)}
    differences = {
        contrast: Difference(
            value, value - within, value + within, p=0.001, p_corrected=0.002, forced=forced and contrast in (RAW, "closeness"),
            accuracy=accuracy if contrast not in ("closeness", "interaction") else None,
            auc=Estimate(0.3, 0.2, 0.4) if sided[contrast] else None,
            higher_is_better=better,
        )
        for contrast, value in {**values, **({} if stance is None else {"interaction": 0.0})}.items()
    }  # fmt: skip
    cells = dict.fromkeys(("apathetic", "empathetic", *(() if stance is None else ("near_empathetic", "far_apathetic"))), 0.5)
    return MetricRow(name, f"{name}|version:1", "interval:bootstrap|seed:1", cells, differences, 40, better)


def an_audit(**lines: float) -> ShortcutAudit:
    """An audit by contrast (``raw``: as released), with words alone this often right and characters a little more often."""

    def audited(contrast: str, value: float) -> ContrastAudit:
        rows = [
            Shortcut(name, True, 20, Estimate(right, right, right), None, f"counts:{name}")
            for name, right in (("words alone", value), ("characters", min(value + 0.01, 1.0)))
        ]
        told = (
            (IndicativeWord("glad", 3.5, 36, 1),),
            (IndicativeWord("just", -2.5, 0, 41),),
            (WordMargin("003-x-t03", 2.5),),
            (WordMargin("003-x-t05", -1.5),),
        )
        return ContrastAudit(contrast, "pairs", "empathetic", "apathetic", 20, 7, 5, tuple(rows), *(told if contrast == RAW else ()))

    return ShortcutAudit("dialogue", tuple(audited({"raw": RAW}.get(name, name), value) for name, value in lines.items()))


def a_measured(raw: list[float], stance: list[float], **more: Any) -> ReleaseTables:
    names = [f"M{place}" for place in range(len(raw))]
    return ReleaseTables(
        [a_row(name, one) for name, one in zip(names, raw, strict=True)],
        [a_row(name, 0, one) for name, one in zip(names, stance, strict=True)] if stance else [],
        **more,
    )


def about(**changes: Any) -> dict[str, Any]:
    common = {"pairs": 40, "dialogues": 7, "controls": 20, "sources": ["model"], "edit_ratio_below": 0.3, "overlap_at_most": 0.35}
    return {**common, "length_within": 0.1, "paper": {}, **changes}


def told(text: str = "Some words.", **changed: Any) -> dict[str, Any]:
    variants = [
        {"variant": name, "texts": 3, "mean": 12.0, "low": 8, "median": 12.0, "high": 16, "peak": 10, "counts": [0, 1, 2]}
        for name in ("reference", "apathetic", "empathetic")
    ]
    cell = {"text": text, "edit_ratio": 0.2, "overlap": 0.8, "changes": changes("Some kind words.", text)}
    example = {
        "pair_id": "003-00001-t03", "scenario": text, "phase": "action", "strategy": "Suggest Options", "empathetic_strategy": "x",
        "reference": text, "before": {"role": "seeker", "text": text},
        "variants": {"apathetic": cell, "empathetic": {**cell, "changes": []}},
    }  # fmt: skip
    making = {
        "name": "a", "version": "1.0.0", "date": None, "identity": "s1-0", "configuration": {"name": text}, "software": {"python": "3.11"},
        "withdrawn": [], "planned": 3, "accepted": 2, "rejected": 1, "missing": 0, "rejected_by_reason": {text: 1}, "failed_for_good": {},
        "samples_refused": {}, "duplicates": 0, "spares_left_out": 0, "models": [text], "removed_by_review": [text], "reviewed": True,
    }  # fmt: skip
    phases = [{"name": "exploration", "counts": [3] + [0] * 9}, {"name": "action", "counts": [1] + [4] * 9}]
    course = {"parts": 10, "phases": phases, "strategies": [{**phases[0], "name": "Clarification", "phase": "exploration"}]}
    return {"lengths": {"bin": 5, "signature": "unit:word", "variants": variants}, "course": course, "examples": [example],
            "making": {**making, **changed}}  # fmt: skip


def a_page(measured: ReleaseTables, told_of: dict[str, Any] | None = None, **changes: Any) -> str:
    return page(measured, about(**changes), told_of or told(), charts_of(measured))


def test_what_the_checks_force_is_marked_wherever_it_appears() -> None:
    html = a_page(a_measured([-0.5], [0.1]))
    # In the first table, in the table of effects (closeness), and in both tables of every contrast.
    assert html.count('<span class="forced">') == 4


def test_how_far_closeness_moves_scores_has_no_greatest_ratio_where_stance_may_move_none() -> None:
    # 0.6 over 0.2 and 0.6 over 0.05; then over 0.005, whose interval of 0.01 to either side holds 0.
    assert (
        "scores of reference-based metrics 3.0 to 12 times as much as stance does"
        in read(a_page(a_measured([-0.5, -0.5], [0.2, 0.05]))).said
    )
    assert (
        "scores of reference-based metrics 3.0 or more times as much as stance does"
        in read(a_page(a_measured([-0.5, -0.5], [0.2, 0.005]))).said
    )


def test_singular_and_plural_follow_the_counts() -> None:
    one = read(a_page(a_measured([-0.5], [0.1]), told(planned=1), pairs=1, dialogues=1, controls=1)).said
    assert "1 pair from 1 dialogue. 1 of them has a" in one and "1 dialogue was planned" in one
    many = read(a_page(a_measured([-0.5], [0.1]), pairs=2000)).said
    assert "2,000 pairs from 7 dialogues. 20 of them have a" in many and "3 dialogues were planned" in many


def test_residual_imbalance_is_reported_only_where_chance_does_not_explain_it() -> None:
    uneven = a_measured([-0.5], [0.1], balance=[a_row("edit ratio", 0, -0.05, better=None)])
    even = a_measured([-0.5], [0.1], balance=[a_row("edit ratio", 0, -0.001, better=None)])
    assert "the empathetic ones are closer to the reference" in read(a_page(uneven)).said
    assert "besides stance, edit size or length still differs" in read(a_page(uneven)).said
    assert "this difference may be chance" in read(a_page(even)).said and "where only stance differs" in read(a_page(even)).said


def bare(row: MetricRow) -> MetricRow:
    """The row of a single dialogue."""
    found = {
        name: replace(one, low=None, high=None, accuracy=one.accuracy and Estimate(one.accuracy.value))
        for name, one in row.differences.items()
    }
    return replace(row, differences=found)


def test_without_intervals_nothing_is_claimed() -> None:
    measured = a_measured([-0.5, -0.4], [0.1, 0.2], audit=an_audit(stance=0.9))
    single = replace(measured, inversion=[bare(one) for one in measured.inversion], controls=[bare(one) for one in measured.controls])
    said = read(a_page(single)).said
    assert "One dialogue has no intervals, so this report makes no claim." in said and "By construction" not in said
    balance = [bare(a_row("edit ratio", 0, -0.05, better=None)), bare(a_row("length", 0, 0.0, better=None))]
    said = read(a_page(replace(measured, balance=balance))).said
    assert "one dialogue is too few to tell whether this is chance" in said and "edit size or length may still differ" in said
    assert "replies are as long as near-apathetic ones" in said and "where only stance differs" not in said


def first_table(html: str) -> str:
    return read(html.partition("<table")[2].partition("</table>")[0]).said


def test_the_first_table_reports_the_accuracy_and_where_it_appears_beside_the_line() -> None:
    table = first_table(a_page(a_measured([-0.5], [0.1], audit=an_audit(stance=0.9))))
    assert "accuracy at equal closeness" in table and "25.0 % 20.0 to 30.0 %" in table and "below" in table
    assert "+0.1000[+0.0900, +0.1100]" in table and "forced by the checks −0.5000" in table
    without = first_table(a_page(a_measured([-0.5], [0.1])))
    assert "shortcut line" not in without and "below" not in without
    plain = first_table(a_page(a_measured([-0.5], [], audit=an_audit(raw=0.9))))
    assert "accuracy as released" in plain and "equal closeness" not in plain and "below" not in plain


def test_shortcuts_are_reported_with_their_line_their_words_and_their_settings() -> None:
    said = read(a_page(a_measured([-0.5], [0.1], audit=an_audit(raw=0.8, stance=1.0)))).said
    assert "At 100 % nothing can be above it" in said and "Mihalcea" in said and "covers only these shortcuts" in said
    assert "glad 36:1" in said and "just 0:41" in said and "003-x-t03 +2.50" in said and "counts:characters" in said
    assert "As released: characters, 81.0 % on 20 pairs" in said
    assert "nothing can be above it" not in read(a_page(a_measured([-0.5], [0.1], audit=an_audit(stance=0.9)))).said
    assert "This report has no shortcut audit" in read(a_page(a_measured([-0.5], [0.1]))).said


def test_a_shortcut_that_is_not_defined_says_why() -> None:
    nothing = Shortcut("words alone", True, 3, None, "all pairs are of one dialogue", "counts:words")
    one = ContrastAudit("stance", "controls", "empathetic", "apathetic", 3, 1, 1, (nothing,))
    said = read(a_page(a_measured([-0.5], [0.1], audit=ShortcutAudit("dialogue", (one,))))).said
    assert "is not defined: all pairs are of one dialogue" in said and "No shortcut could be measured" in said


def test_every_two_metrics_appear_beside_each_other() -> None:
    def compared(one: str, other: str, contrast: str, holm: float) -> MetricComparison:
        return MetricComparison(one, other, contrast, 33, WithP(0.125, 0.1, 0.15, 0.001, holm), WithP(-0.5, -0.6, -0.4, 0.001, 0.002), "s")

    some = [compared("M0", "M1", "stance", 0.04), compared("M0", "M2", "stance", 0.05), compared("M0", "M1", RAW, 0.5)]
    seen = {"stance": DetectableEffect(20, 0.58, 0.24, "s"), RAW: DetectableEffect(40, 1.0, 0.31, "s")}
    said = read(a_page(a_measured([-0.5, -0.4], [0.1, 0.2], comparisons=some, smallest=seen))).said
    assert "Pairwise comparisons at equal closeness: 2 comparisons, of which 1 differs in accuracy" in said
    assert "as released: 1 comparison, of which 0 differ in accuracy" in said
    assert "+0.125[+0.100, +0.150]" in said and "−0.50[−0.60, −0.40]" in said
    assert "at equal closeness, over 20 pairs, an accuracy that is truly 58.0 % or a standardised effect of 0.24" in said
    assert "as released, over 40 pairs, no accuracy, however high, but a standardised effect of 0.31" in said


def test_a_judge_of_the_family_that_wrote_the_texts_is_warned_of() -> None:
    shared = [{"family": "gpt", "writers": ["gpt-4o"], "judges": {"judge": "gpt-4.1"}}]
    measured = a_measured([-0.5], [0.1])
    assert "gpt wrote texts of this release (gpt-4o) and scores them in judge (gpt-4.1): a judge may favour its own family." in (
        read(a_page(measured, families=shared)).said
    )
    assert "own family" not in read(a_page(measured)).said + read(a_page(measured, families=[])).said


def test_scores_that_are_all_equal_are_drawn() -> None:
    flat = [a_row("M0", 0.0, within=0.0)], [a_row("M0", 0.0, 0.0, within=0.0)]
    assert "M0" in a_page(ReleaseTables(*flat, groups={"scenario, as released": {"one": flat[0]}}))


def test_manners_are_reported_with_the_accuracy_of_each_metric_and_how_many_there_are() -> None:
    right = [a_row("M0", 0, 0.1), a_row("M1", 0, -0.2, accuracy=Estimate(0.125))]
    groups = {"manner": {"hurrying": right[:1], "cheering": [], "made by rules": right}}
    counts = {"manners": [{"name": "hurrying", "near": 1234, "far": 5}], "devices": [{"name": "small step", "texts": 77}]}
    said = read(a_page(a_measured([-0.5], [0.1], groups=groups), {**told(), "ways": counts})).said
    assert "Accuracy by manner of apathy" in said and "By manner, at equal closeness, near and far" in said
    assert "hurrying4025.0 %[20.0 %, 30.0 %]+0.1000[+0.0900, +0.1100]–" in said
    assert "cheering0––" in said and "made by rules40" in said and "12.5 %−0.2000" in said
    assert "hurrying1,2345" in said and "small step77" in said
    without = read(a_page(a_measured([-0.5], [0.1]))).said
    assert "manner of apathy" not in without and "By manner" not in without and "manner and device" not in without


def test_candidates_and_faults_are_reported() -> None:
    plain = read(a_page(a_measured([-0.5], [0.1]))).said
    assert "No pair was refused by a contrast check alone" in plain and "Metrics that failed" not in plain
    fault = MetricFault("mine", "003-00001-t03, apathetic", 'raised ValueError: "no"')
    full = read(a_page(a_measured([-0.5], [0.1], candidates=[replace(a_row("M0", -0.123), pairs=77)], faults=[fault]))).said
    assert "77 pairs before the contrast checks, while 40 pairs are released" in full and "−0.1230" in full
    assert "1 metric could not be measured" in full and '003-00001-t03, apathetic: raised ValueError: "no"' in full


def test_a_metric_that_fails_in_a_part_of_the_texts_appears_in_the_tables_over_the_others() -> None:
    fault = MetricFault("M0", "003-00001-t03, apathetic", "gave nan")
    measured = a_measured([-0.5], [0.1], faults=[fault])
    partly = replace(measured, inversion=[replace(measured.inversion[0], pairs=38, left_out=2)])
    said = read(a_page(partly)).said
    assert "1 metric failed on some texts; the tables use the pairs that have scores" in said and "could not be measured" not in said
    assert "38 of 40 pairs" in said


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_a_text_holds_is_shown_as_text(text: str) -> None:
    measured = a_measured(
        [-0.5], [0.1], groups={"scenario, as released": {text: [a_row(text, -0.2)]}}, faults=[MetricFault(text, text, text)]
    )
    found = read(a_page(measured, told(text)))
    assert found.said.count(re.sub(r"\s+", " ", text)) >= 8
    assert not found.tags & {"script", "img", "iframe", "object"}


@given(st.text(), st.text())
def test_the_changes_between_two_texts_give_both_of_them_back(before: str, after: str) -> None:
    found = changes(before, after)
    for text, skipped in ((before, "added"), (after, "removed")):
        assert " ".join(words for kind, words in found if kind != skipped).split() == text.split()


def test_numbers_are_written_one_way() -> None:
    assert (number(-0.5), signed(0.25), signed(-0.00001), signed(0)) == ("−0.5000", "+0.2500", "0.0000", "0.0000")
    assert (times(9.94), times(9.96), times(1234.5)) == ("9.9", "10", "1,234")
    assert (counted(1, "pair"), counted(0, "pair"), counted(2, "strategy", "strategies")) == ("1 pair", "0 pairs", "2 strategies")
    assert [listed(some) for some in (["a"], ["a", "b"], ["a", "b", "c"], [])] == ["a", "a and b", "a, b and c", ""]


@pytest.fixture(scope="module")
def audited(released: tuple[Path, Released], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a release with the figures of an audit."""
    made = released[1].report
    measured = replace(made.measured, audit=an_audit(raw=0.95, **dict.fromkeys(("stance, near", "stance, far", "stance"), 0.9)))
    path = tmp_path_factory.mktemp("audited") / "audited.html"
    path.write_text(page(measured, made.about, made.sections, charts_of(measured)), encoding="utf-8")
    return path


# The narrowest and the widest in a colour each; all where there is time.
SCREENS = [(390, "light"), (1400, "dark"), (1200, "light"), (390, "dark"), (1200, "dark"), (1400, "light")]
# Whether all figures of a page have a name and a description: asked at once, for a question a figure takes seconds.
TOLD = """[...document.querySelectorAll('svg[role=img]')].every(
    one => [':scope > title', ':scope > desc'].every(part => one.querySelector(part)?.textContent))"""


@pytest.mark.sampled
@pytest.mark.parametrize("width, scheme", SCREENS if "LONG" in os.environ else SCREENS[:2])
def test_everybody_can_read_the_page_on_a_phone_and_on_a_screen(
    browser: Browser, audited: Path, tmp_path: Path, width: int, scheme: Any
) -> None:
    hostile = tmp_path / "hostile.html"
    rows = {name: [a_row("M0", -0.2)] for name in HOSTILE}
    odd = a_measured([-0.5], [0.1], groups={"scenario, as released": rows}, audit=an_audit(raw=0.7, stance=0.2))
    hostile.write_text(a_page(odd, told(" ".join(HOSTILE))), encoding="utf-8")
    for path in (audited, hostile):
        with watched(
            browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce")
        ) as context:
            tab = context.new_page()
            tab.goto(path.as_uri())
            first, *others = tab.locator("summary").all()
            first.click()
            tab.evaluate("[...document.querySelectorAll('details:not([open]) > summary')].forEach(one => one.click())")
            assert tab.locator("details:not([open])").count() == 0 and others
            assert serious_findings(tab) == []
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
            assert broken_words(tab) == []
            assert not tab.locator("table:not(:has(tbody tr))").count(), "a table without rows"
            assert tab.title() != "ran"
            # No table of the first screen is clipped.
            table = tab.locator(".first .scroll")
            assert table.count() == 1 and table.evaluate("one => one.scrollWidth <= one.clientWidth")
            # All figures have a name and a description, and their letters keep a size that can be read.
            assert tab.locator("svg[role=img]").count() and tab.evaluate(TOLD)
            assert (
                tab.evaluate(
                    "Math.min(...[...document.querySelectorAll('svg text')].map(one => parseFloat(getComputedStyle(one).fontSize)))"
                )
                >= 12
            )


def test_the_first_screen_has_claims_table_and_picture(browser: Browser, audited: Path) -> None:
    with watched(browser.new_context(viewport={"width": 1400, "height": 900})) as context:
        tab = context.new_page()
        tab.goto(audited.as_uri())
        assert tab.locator(".claims li").count() == 3
        for place in (".claims", "table >> nth=0", "svg[role=img] >> nth=0"):
            box = tab.locator(place).bounding_box()
            assert box and box["y"] + box["height"] <= 900, place


def test_the_keyboard_reaches_every_wide_table_and_print_opens_what_is_folded(browser: Browser, released: tuple[Path, Released]) -> None:
    with watched(browser.new_context(viewport={"width": 500, "height": 800})) as context:
        tab = context.new_page()
        tab.goto((released[0] / "report" / "index.html").as_uri())
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.textContent") == "Skip to the report"
        tab.keyboard.press("Tab")
        tab.keyboard.press("ArrowRight")
        assert tab.evaluate("document.activeElement.getAttribute('role')") == "region"
        folded = tab.locator("#groups details table").first
        assert not folded.is_visible()
        tab.emulate_media(media="print")
        assert (
            tab.evaluate("getComputedStyle(document.querySelector('#groups details'), '::details-content').contentVisibility") == "visible"
        )
        # A4 with margins of 12 mm, at 96 dots an inch: no table is cut off.
        tab.set_viewport_size({"width": 703, "height": 1000})
        assert tab.evaluate("document.documentElement.scrollWidth") <= 703
