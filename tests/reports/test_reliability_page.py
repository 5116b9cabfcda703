"""The page of reliability: the figures of its JSON, reasons where there is none, texts that stay texts, and a page for everybody."""

from __future__ import annotations

import os
import random
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from empathy_eval.raters.agreement.panel import JudgeRater, Panel
from empathy_eval.raters.agreement.reliability import AgainstBenchmark, Reliability, ReliabilityRow
from empathy_eval.reports.agreement_page import BESIDE, DotSeries, agreement_planes, breakable, format_number, page, ticks
from empathy_eval.statistics.estimate import Estimate
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles import panel as small
from tests.doubles.browser import broken_words, serious_findings, watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog

HOSTILE = (
    "<script>document.title='ran'</script>",
    "</style></title><img src=x onerror=\"alert('ran')\">",
    "javascript:alert('ran') \" ' ` {{ 7 * 7 }} {% raw %} &amp;",
    "right_to_left שלום " + "overlong" * 30,
)


class Tables(HTMLParser):
    """The tables of a page by their label, as rows of the texts of cells; all its text and the names of its tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.rows: list[list[str]] = []
        self.tags, self.attributes, self.parts = set[str](), set[str](), list[str]()
        self.inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.tags.add(tag)
        self.attributes |= set(given)
        self.inside = tag
        if given.get("role") == "region":
            self.rows = self.tables.setdefault(str(given["aria-label"]), [])
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "span" and str(given.get("class")).startswith("interval") and self.rows and self.rows[-1]:
            self.rows[-1][-1] += " "

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self.rows = []

    def handle_data(self, data: str) -> None:
        if self.inside != "style":
            self.parts.append(data)
            if self.rows and self.rows[-1]:
                self.rows[-1][-1] += data.strip("\n")

    @property
    def said(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.parts))


@pytest.fixture(scope="module")
def whole() -> Reliability:
    return small.figures()


@pytest.fixture(scope="module")
def read(whole: Reliability) -> Tables:
    return Tables(page(whole, "empathy-eval agree 'my ratings.csv' --page out.html"))


def shown(one: Any, sign: bool = False) -> str:
    """A figure of the JSON as a cell has it."""

    def number(value: float) -> str:
        text = f"{value:+.2f}" if sign else f"{value:.2f}"
        return ("0.00" if not float(text) else text).replace("-", "−")

    if one["value"] is None:
        return f"not defined: {one['why']}"
    return f"{number(one['value'])} [{number(one['low'])}, {number(one['high'])}]"


def test_the_numbers_of_the_page_are_those_of_its_json(whole: Reliability, read: Tables) -> None:
    expected, found = list[str](), list[str]()
    for framework in whole.to_json()["frameworks"]:
        for row in framework["rows"]:
            if row["experts"]["value"] is None:
                continue
            (cells,) = [one for one in read.tables[f"Kappas of {framework['framework']['title']}"] if one[0].startswith(row["criterion"])]
            figures = [shown(pair["kappa"]) for pair in row["pairs"]] + [shown(row["experts"])]
            for name, judge in row["judges"].items():
                sign = "▲at the benchmark or above: " if judge["at_overall"] else ""
                figures += [sign + shown(judge["kappa"]), shown(judge["minus_benchmark"], True), shown(row["crowd_with_judge"][name])]
            sign = "▲at the benchmark or above: " if row["crowd"]["at_overall"] else ""
            figures += [sign + shown(row["crowd"]["kappa"]), shown(row["crowd"]["minus_benchmark"], True)]
            expected += figures
            found += cells[1:]
            (cells,) = [one for one in read.tables["Alpha by criterion"] if one[0].startswith(row["criterion"])]
            expected += [shown(row["alpha"]["experts"]), shown(row["alpha"]["judges"]), shown(row["crowd_alpha"])]
            found += cells[1:]
            (cells,) = [one for one in read.tables["Mean differences from the median expert"] if one[0].startswith(row["criterion"])]
            expected += [shown(one, True) for one in row["inflation"].values()]
            found += cells[1:]
            (cells,) = [one for one in read.tables["Variance inflation by criterion"] if one[0].startswith(row["criterion"])]
            expected += [shown(row["vif"]), row["band"]]
            found += cells[1:]
    assert len(found) == len(expected) == 4 * (12 + 3 + 3 + 2)
    assert any(one.startswith("▲") for one in expected) and not all(one.startswith("▲") for one in expected)
    for place in random.Random(0).sample(range(len(found)), 40):
        assert found[place] == expected[place]


def test_f1_appears_beside_guessing_and_with_its_thresholds(whole: Reliability, read: Tables) -> None:
    row = whole.to_json()["frameworks"][0]["rows"][0]
    table = read.tables["F1 on Listening"]
    at = table.index([row["criterion"]])
    for cells, rater in zip(table[at + 1 : at + 4], ("m1-plain", "m1-examples", "crowd"), strict=True):
        one = row["f1"][rater]
        ends = [f"{one[end]['f1']['value']:.2f} at ≥ {one[end]['threshold']:g}" for end in ("least", "most")]
        assert cells == [
            rater, shown(one["macro"]), shown(one["guess_macro"]), ends[0], shown(one["mean"]), ends[1], shown(one["guess_binary"]),
        ]  # fmt: skip


def test_the_headline_counts_the_criteria_at_the_benchmark(whole: Reliability, read: Tables) -> None:
    counts = [len(one.at_benchmark.so) for one in whole.overall.judges.values()]
    assert whole.overall.crowd and min(counts) < max(counts)
    crowd = len(whole.overall.crowd.at_benchmark.so)
    head = f"2 judges reach the agreement of experts on {min(counts)} to {max(counts)} of 4 criteria, the crowd on {crowd}"
    assert head in read.said and f"{whole.overall.benchmark:.2f}" in read.said
    one = Tables(page(small.figures(replace(small.PANEL, judges=small.JUDGES[:2], crowd=())))).said
    assert f"m1-plain reaches the agreement of experts on {max(counts)} of 4 criteria" in one
    assert "There is no crowd" in one and "crowd on" not in one
    assert "Experts agree with each other by a median kappa of" in Tables(page(small.figures(Panel(small.EXPERTS)))).said


def test_cells_are_marked_by_the_benchmark_over_all_criteria_and_not_by_their_own(whole: Reliability) -> None:
    first, *others = whole.frameworks
    row, *rest = first.rows
    turned = {name: replace(one, at_overall=name == "m1-examples", at_benchmark=name != "m1-examples") for name, one in row.judges.items()}
    rows = (replace(row, judges=turned), *rest)
    (cells,) = [
        one
        for one in Tables(page(replace(whole, frameworks=(replace(first, rows=rows), *others)))).tables["Kappas of Listening"]
        if one[0].startswith(row.criterion)
    ]
    assert [one.startswith("▲at the benchmark or above: ") for one in (cells[5], cells[8])] == [False, True]


def test_whole_intervals_beside_the_own_experts_are_counted(whole: Reliability, read: Tables) -> None:
    found = {}
    for name in ("m1-plain", "m1-examples"):
        apart = [row.judges[name].minus_benchmark for one in whole.frameworks for row in one.rows]
        above, below = (
            sum(one.low is not None and one.low > 0 for one in apart),
            sum(one.high is not None and one.high < 0 for one in apart),
        )
        found[name] = f"{name} {above} above and {below} below"
    assert f"own experts: {found['m1-plain']}; {found['m1-examples']}." in read.said
    assert found["m1-examples"] not in ("m1-examples 0 above and 0 below", "m1-examples 0 above and 4 below")


def test_dots_appear_where_their_values_are(whole: Reliability) -> None:
    chart = page(whole).partition('<div class="dots">')[2].partition("</div>")[0]
    rows = [row for one in whole.frameworks for row in one.rows if row.experts.value is not None]
    ends = [float(one.replace("−", "-")) for one in re.findall(r'text-anchor="middle">([^<]+)<', chart)]
    for row, drawn in zip(rows, re.findall(r"<li>.*?</li>", chart, re.DOTALL), strict=False):
        assert row.crowd
        values = [row.experts.value, *(one.kappa.value for one in row.judges.values()), row.crowd.kappa.value]
        found = [float(one) for one in re.findall(r'<svg class="mark [^"]*" x="([0-9.]+)%"', drawn)]
        assert found == pytest.approx(
            [6.5 + 87 * (value - min(ends)) / (max(ends) - min(ends)) for value in values if value is not None], abs=0.006
        )
        assert row.criterion in drawn and drawn.count('class="whisker') == 4


def test_what_is_not_defined_says_why_where_it_appears(read: Tables) -> None:
    (cells,) = [one for one in read.tables["Kappas of Manner"] if one[0].startswith("safety")]
    assert cells[1:] == ["not defined: both give one and the same rating to all items in common; no pair has a kappa"]
    assert read.tables["Variance inflation by criterion"][-1][1].startswith("not defined: all its ratings are the same")
    assert "1 criterion has no kappa" in read.said and "Not drawn, because one of the two is missing: safety." in read.said
    assert "Not defined for m1-examples: there is only one sample." in read.said
    assert "None" not in read.said


@pytest.mark.parametrize(
    "panel, reasons",
    [
        (
            Panel(("expert-1",), small.JUDGES[:1]),
            ["There is only one expert, so there is no benchmark", "experts (there are fewer than two experts)",
             "there is only one judge", "there is only one sample", "no crowd here"],
        ),
        (
            Panel(small.EXPERTS),
            ["There is no judge", "there is neither a judge nor a crowd", "Not defined: there is no judge"],
        ),
        (Panel(small.EXPERTS[:2], (), small.CROWD, "median"), ["its median", "Two experts have one pair", "The crowd reaches the"]),
    ],
)  # fmt: skip
def test_a_panel_that_lacks_somebody_has_a_page_that_says_so(panel: Panel, reasons: list[str]) -> None:
    said = Tables(page(small.figures(panel, resamples=0))).said
    assert [one for one in reasons if one not in said] == [] and "None" not in said


def test_a_crowd_that_rated_other_items_is_reported_to_be_apart(whole: Reliability) -> None:
    apart = Estimate.undefined("the crowd rated no item of these", "s")

    def without(row: ReliabilityRow) -> ReliabilityRow:
        f1 = {name: one for name, one in row.f1.items() if name != "crowd"}
        shapes = {name: one for name, one in row.histogram.items() if name != "crowd"}
        with_judge = dict.fromkeys(row.crowd_with_judge, apart)
        return replace(
            row, crowd=AgainstBenchmark(apart, apart, None), crowd_alpha=apart, crowd_with_judge=with_judge, f1=f1, histogram=shapes,
            inflation={**row.inflation, "crowd": apart},
        )  # fmt: skip

    frameworks = tuple(replace(one, rows=tuple(map(without, one.rows))) for one in whole.frameworks)
    parts = tuple(replace(one, crowd=None) for one in whole.overall.frameworks)
    found = Tables(page(replace(whole, frameworks=frameworks, overall=replace(whole.overall, crowd=None, frameworks=parts))))
    assert "Crowd against the benchmark Not defined: the crowd rated no item of these." in found.said
    assert "Not drawn, for it is not defined anywhere: crowd (the crowd rated no item of these)." in found.said
    assert "crowd Not defined: the crowd rated no item of these." in found.said and "None" not in found.said
    assert found.tables["F1 on Listening"][5] == ["crowd", "not defined: the crowd rated no item of these"]


def test_the_best_judges_are_named_first_and_none_is_left_out(whole: Reliability) -> None:
    found = whole.overall.judges["m1-plain"]
    names = [f"judge-{place}" for place in range(8)]
    reached = [replace(found.at_benchmark, so=("warmth",) * (place // 4)) for place in range(8)]
    lacking = replace(found.where_experts_are, not_so=("warmth",))
    judges = {name: replace(found, at_benchmark=one, where_experts_are=lacking) for name, one in zip(names, reached, strict=True)}
    row = whole.frameworks[0].rows[0]
    placed = dict.fromkeys(names, row.judges["m1-plain"])
    rows = tuple(
        replace(
            one, judges=placed, crowd_with_judge=dict.fromkeys(names, row.crowd_with_judge["m1-plain"]),
            f1=one.f1 | dict.fromkeys(names, one.f1["m1-plain"]), inflation=one.inflation | dict.fromkeys(names, one.inflation["m1-plain"]),
            histogram=one.histogram | dict.fromkeys(names, one.histogram["m1-plain"]),
        )
        for one in whole.frameworks[0].rows
    )  # fmt: skip
    overall = replace(whole.overall, judges=judges, frameworks=())
    said = Tables(page(replace(whole, frameworks=(replace(whole.frameworks[0], rows=rows),), overall=overall))).said
    assert "at the benchmark or above: judge-4 on 1 of" in said
    assert all(f"Where experts reach the benchmark and {name} does not: warmth." in said for name in names)


def test_nothing_is_claimed_of_a_benchmark_or_of_judges_that_are_not_there() -> None:
    alone = Tables(page(small.figures(Panel(small.EXPERTS[:1]), resamples=0))).said
    assert "–: the benchmark is the median" not in alone
    experts = Tables(page(small.figures(Panel(small.EXPERTS), resamples=0))).said
    assert "–: the benchmark is the median" in experts and "compared with the median expert." not in experts


def test_many_judges_and_experts_are_summed_up_and_folded() -> None:
    judges = tuple(JudgeRater(name, name) for name in small.CROWD)
    figures = small.figures(Panel((*small.EXPERTS, "m1-plain", "m1-examples"), judges), resamples=20)
    html = page(figures)
    found = Tables(html)
    assert "judges, a dot each" in found.said and "and 4 more" in found.said and "The other 3 judges" in found.said
    assert len(found.tables["Kappas of Listening"][1]) == 3 * 2 and "10 pairs of experts" in found.said
    assert len(found.tables["Every pair of experts on Listening"]) == 1 + 10
    assert all(name in found.said for name in small.CROWD)
    # A whisker for the experts alone on four criteria, and two a criterion for the differences of nobody: judges are dots.
    assert html.partition("<nav")[0].count('class="whisker judge-0"') == 0


def test_contradictions_are_reported_in_both_directions_with_their_items(whole: Reliability, read: Tables) -> None:
    table = read.tables["validating where experts see dismissing"]
    assert [one[0] for one in table[1:]] == [
        *(f"{name} expert" for name in small.EXPERTS), "m1-plain judge", "m1-examples judge", "crowd, its mean", "any of the crowd",
    ]  # fmt: skip
    found = [one for one in whole.contradictions if one.high.criterion == "validating"]
    assert [one[1] for one in table[1:]] == [f"{one.count} of {one.of}" for one in found] and any(one.count for one in found)
    assert [one[3] for one in table[1:]] == [", ".join(one.examples) or "–" for one in found]
    assert "dismissing where experts see validating" in read.tables


def test_equal_figures_give_equal_pages_and_the_command_appears_at_the_end(whole: Reliability, read: Tables) -> None:
    assert page(whole) == page(small.figures())
    assert "empathy-eval agree 'my ratings.csv' --page out.html" in read.said and "make this page again" not in page(whole)
    assert whole.signature in read.said and all(row.experts.signature in read.said for one in whole.frameworks for row in one.rows)


SMALLEST = "Math.min(...[...document.querySelectorAll('svg text')].map(one => parseFloat(getComputedStyle(one).fontSize)))"


def hostile() -> Reliability:
    """The panel with odd names for an item, raters, criteria, a framework, a model and a style."""
    names = ("validating", "dismissing", "expert-1", "m1-plain", "m1-examples", "Listening", "m1", "plain", "item-10", "crowd-1")
    return small.figures(called={name: f"{HOSTILE[place % 4]} {name}" for place, name in enumerate(names)}, resamples=20)


def test_whatever_a_name_holds_is_shown_as_text() -> None:
    html = page(hostile(), "".join(HOSTILE))
    found = Tables(html)
    assert not found.tags & {"script", "img", "iframe", "object", "link"} and not [one for one in found.attributes if one.startswith("on")]
    assert all(re.sub(r"\s+", " ", text) in found.said for text in HOSTILE[:3])
    # Letters that are written from right to left turn nothing beside their name.
    assert "<bdi>right_<wbr>to_<wbr>left שלום" in html


# What axe finds is looked for once in each colour, with what is folded or without, for that takes seconds; where there is time, everywhere.
SCREENS = [(390, "dark", "unfolded"), (1400, "light", "folded"), (390, "light", "not"), (1400, "dark", "not")]


@pytest.mark.sampled
def test_everybody_can_read_the_page_and_no_name_runs_in_it(browser: Browser, whole: Reliability, tmp_path: Path) -> None:
    for name, html in (("whole", page(whole)), ("hostile", page(hostile(), "".join(HOSTILE)))):
        (tmp_path / f"{name}.html").write_text(html, encoding="utf-8")
    dialogs = list[str]()

    def ran(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    for width, scheme, looked in SCREENS:
        with watched(browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)) as context:  # type: ignore[arg-type]
            for name in ("whole", "hostile"):
                tab = context.new_page()
                tab.on("dialog", ran)
                tab.goto((tmp_path / f"{name}.html").as_uri())
                tab.keyboard.press("Tab")
                assert tab.evaluate("document.activeElement.textContent") == "Skip to the report"
                if name == "whole" and (looked == "folded" or "LONG" in os.environ):
                    assert serious_findings(tab) == []
                tab.evaluate("[...document.querySelectorAll('details:not([open]) > summary')].forEach(one => one.click())")
                assert tab.locator("details:not([open])").count() == 0
                if name == "whole" and (looked == "unfolded" or "LONG" in os.environ):
                    assert serious_findings(tab) == []
                assert tab.evaluate("document.documentElement.scrollWidth") <= width
                assert broken_words(tab) == [] and not tab.locator("table:not(:has(tbody tr))").count()
                assert tab.title() == "Agreement of raters" and not dialogs
                assert tab.evaluate(SMALLEST) >= 12


@given(st.lists(st.floats(-50, 50), min_size=1))
def test_an_axis_holds_all_values_with_few_round_steps(values: list[float]) -> None:
    found = ticks(values)
    assert found[0] <= min(values) + 1e-6 and max(values) - 1e-6 <= found[-1] and 2 <= len(found) <= 9


def test_labels_of_points_that_are_close_go_to_different_sides(whole: Reliability) -> None:
    (one,), _ = agreement_planes(whole.frameworks, [DotSeries("crowd", "crowd")], lambda row, _: row.experts.value)
    assert [point.number for point in one.points] == [1, 2, 3, 4] and one.left_out == ("safety",)
    at_once = [replace(row, experts=replace(row.experts, value=0.6)) for part in whole.frameworks for row in part.rows]
    places = iter([0.6] * 4 + [0.1])
    (same,), _ = agreement_planes(
        [replace(whole.frameworks[0], rows=tuple(at_once))], [DotSeries("crowd", "crowd")], lambda row, _: next(places)
    )
    assert [point.label for point in same.points[:4]] == list(BESIDE[:4])


def test_numbers_and_names_are_written_one_way() -> None:
    assert [format_number(one, 2) for one in (-0.004, -0.006, 0.0, 1.005)] == ["0.00", "−0.01", "0.00", "1.00"]
    assert breakable("a_b<c>\x00") == "a_<wbr>b&lt;c&gt;\\x00"
