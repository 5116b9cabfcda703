"""The page of a report: sentences that follow the data, texts that stay texts, and a page that everybody can read."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from empathy_eval.design.contrasts import PAIRS, TWO_BY_TWO
from empathy_eval.evaluation.charts import effects, ranks, scenarios
from empathy_eval.evaluation.descriptives import changes
from empathy_eval.evaluation.page import counted, listed, number, page, signed, times
from empathy_eval.evaluation.resampling import Estimate
from empathy_eval.evaluation.results import Difference, Measured, MetricRow
from empathy_eval.metrics.faults import MetricFault
from empathy_eval.releases.write import Released
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.browser import serious_findings, watched

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


def a_row(
    name: str, raw: float, stance: float | None = None, *, forced: bool = True, within: float = 0.01, better: bool | None = True
) -> MetricRow:
    """A row with ``raw`` as released, or with ``stance`` and a closeness of 0.6 over the four cells."""
    values = {RAW: raw} if stance is None else {"stance": stance, "stance, near": stance, "stance, far": stance, "closeness": 0.6}
    sided = {one.name: one.sides for one in (*PAIRS, *TWO_BY_TWO)}
    differences = {
        contrast: Difference(
            value, value - within, value + within, p=0.001, holm=0.002, forced=forced and contrast in (RAW, "closeness"),
            accuracy=Estimate(0.25, 0.2, 0.3) if sided[contrast] else None, auc=Estimate(0.3, 0.2, 0.4) if sided[contrast] else None,
            higher_is_better=better,
        )
        for contrast, value in {**values, **({} if stance is None else {"interaction": 0.0})}.items()
    }  # fmt: skip
    cells = dict.fromkeys(("apathetic", "empathetic", *(() if stance is None else ("near_empathetic", "far_apathetic"))), 0.5)
    return MetricRow(name, f"{name}|version:1", "interval:bootstrap|seed:1", cells, differences, 40, better)


def a_measured(raw: list[float], stance: list[float], **more: Any) -> Measured:
    names = [f"M{place}" for place in range(len(raw))]
    return Measured(
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


def a_page(measured: Measured, told_of: dict[str, Any] | None = None, **changes: Any) -> str:
    charts = [chart for make in (effects, ranks, scenarios) if (chart := make(measured))]
    return page(measured, about(**changes), told_of or told(), charts)


def heading(measured: Measured) -> str:
    return re.sub(r"\s+", " ", read(a_page(measured).partition("<h1>")[2].partition("</h1>")[0]).said).strip()


def test_the_claim_turns_with_the_data() -> None:
    many = "that compare a reply with a reference"
    force = "The checks force that. At equal closeness, "
    assert heading(a_measured([-0.5, -0.4], [0.1, 0.2])) == (
        f"All 2 metrics {many} prefer the apathetic copy. {force}all 2 prefer the empathetic reply, "
        "and closeness moves their scores 3.0 to 6.0 times as far as stance does."
    )
    assert heading(a_measured([0.5, 0.4], [-0.1, -0.1])) == (
        f"None of the 2 metrics {many} prefers the apathetic copy. At equal closeness, all 2 prefer the apathetic reply, "
        "and closeness moves their scores 6.0 times as far as stance does."
    )
    assert heading(a_measured([0.5, -0.4, -0.2], [0.001, -0.1, 0.1])).startswith(
        f"2 of the 3 metrics {many} prefer the apathetic copy. {force}1 prefers the empathetic reply, 1 prefers the apathetic reply "
        "and 1 cannot tell the two apart, and closeness moves their scores 6.0 to 600 times"
    )
    assert heading(a_measured([-0.4], [0.0])) == (
        "The one metric that compares a reply with a reference prefers the apathetic copy. The checks force that. At equal closeness, "
        "it does not tell empathetic from apathetic."
    )
    assert heading(a_measured([0.4], [])) == (
        "The one metric that compares a reply with a reference does not prefer the apathetic copy. "
        "Whether that is stance or closeness, this release cannot say: it has no controls."
    )


def test_a_metric_that_reads_no_reference_is_no_part_of_the_claim() -> None:
    measured = Measured([a_row("alone", -0.3, forced=False)], [a_row("alone", 0, 0.2, forced=False)])
    assert heading(measured) == "No metric of this report compares a reply with a reference."
    assert "forced by the checks" not in a_page(measured).partition("<h1>")[2].partition('id="forced"')[0]


def test_what_the_checks_force_is_marked_wherever_it_stands() -> None:
    html = a_page(a_measured([-0.5], [0.1]))
    # In the first table, in the table of effects (closeness), and in both tables of every contrast.
    assert html.count('<span class="forced">') == 4


def test_singular_and_plural_follow_the_counts() -> None:
    one = read(a_page(a_measured([-0.5], [0.1]), told(planned=1), pairs=1, dialogues=1, controls=1)).said
    assert "1 pair from 1 dialogue. 1 of them has a" in one and "1 dialogue was planned" in one
    many = read(a_page(a_measured([-0.5], [0.1]), pairs=2000)).said
    assert "2,000 pairs from 7 dialogues. 20 of them have a" in many and "3 dialogues were planned" in many


def test_residual_imbalance_is_said_only_where_chance_does_not_explain_it() -> None:
    uneven = a_measured([-0.5], [0.1], balance=[a_row("edit ratio", 0, -0.05, better=None)])
    even = a_measured([-0.5], [0.1], balance=[a_row("edit ratio", 0, -0.001, better=None)])
    assert "the empathetic ones are closer to the reference" in read(a_page(uneven)).said
    assert "where stance differs and little else" in read(a_page(uneven)).said
    assert "a difference that chance explains" in read(a_page(even)).said and "where only stance differs" in read(a_page(even)).said


def test_without_intervals_nothing_is_claimed() -> None:
    def bare(row: MetricRow) -> MetricRow:
        return replace(row, differences={name: replace(one, low=None, high=None) for name, one in row.differences.items()})

    measured = a_measured([-0.5, -0.4], [0.1, 0.2])
    single = Measured([bare(one) for one in measured.inversion], [bare(one) for one in measured.controls])
    assert heading(single) == "One dialogue has no intervals, so this report makes no claim."
    only_controls = heading(Measured(measured.inversion, single.controls))
    assert "At equal closeness, one dialogue is too few to tell, and" in only_controls
    balance = [bare(a_row("edit ratio", 0, -0.05, better=None)), bare(a_row("length", 0, 0.0, better=None))]
    said = read(a_page(replace(measured, balance=balance))).said
    assert "whether by chance, one dialogue cannot tell" in said and "edit size or length may still do" in said
    assert "replies are as long as near-apathetic ones" in said and "where only stance differs" not in said


def test_scores_that_are_all_equal_are_drawn() -> None:
    flat = [a_row("M0", 0.0, within=0.0)], [a_row("M0", 0.0, 0.0, within=0.0)]
    assert "M0" in a_page(Measured(*flat, groups={"scenario": {"one": flat[0]}}))


def test_candidates_and_faults_are_told() -> None:
    plain = read(a_page(a_measured([-0.5], [0.1]))).said
    assert "No pair was refused by a contrast check alone" in plain and "Metrics that failed" not in plain
    fault = MetricFault("mine", "003-00001-t03, apathetic", 'raised ValueError: "no"')
    full = read(a_page(a_measured([-0.5], [0.1], candidates=[replace(a_row("M0", -0.123), pairs=77)], faults=[fault]))).said
    assert "77 pairs, where 40 pairs are released" in full and "−0.1230" in full
    assert "1 metric could not be measured" in full and '003-00001-t03, apathetic: raised ValueError: "no"' in full


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_a_text_holds_is_shown_as_text(text: str) -> None:
    measured = a_measured([-0.5], [0.1], groups={"scenario": {text: [a_row(text, -0.2)]}}, faults=[MetricFault(text, text, text)])
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1400])
def test_everybody_can_read_the_page_on_a_phone_and_on_a_screen(
    browser: Browser, released: tuple[Path, Released], tmp_path: Path, width: int, scheme: Any
) -> None:
    hostile = tmp_path / "hostile.html"
    rows = {name: [a_row("M0", -0.2)] for name in HOSTILE}
    hostile.write_text(a_page(a_measured([-0.5], [0.1], groups={"scenario": rows}), told(" ".join(HOSTILE))), encoding="utf-8")
    for path in (released[0] / "report" / "index.html", hostile):
        with watched(
            browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce")
        ) as context:
            tab = context.new_page()
            tab.goto(path.as_uri())
            for summary in tab.locator("summary").all():
                summary.click()
            assert serious_findings(tab) == []
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
            assert tab.title() != "ran"
            # All figures have a name and a description, and their letters keep a size that can be read.
            for figure in tab.locator("svg[role=img]").all():
                assert figure.locator(":scope > title").text_content() and figure.locator(":scope > desc").text_content()
            assert (
                tab.evaluate(
                    "Math.min(...[...document.querySelectorAll('svg text')].map(one => parseFloat(getComputedStyle(one).fontSize)))"
                )
                >= 12
            )


def test_the_first_screen_has_claim_table_and_picture(browser: Browser, released: tuple[Path, Released]) -> None:
    with watched(browser.new_context(viewport={"width": 1400, "height": 900})) as context:
        tab = context.new_page()
        tab.goto((released[0] / "report" / "index.html").as_uri())
        for place in ("h1", "table >> nth=0", "svg[role=img] >> nth=0"):
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
