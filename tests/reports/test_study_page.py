"""The page of a study: what it says follows the figures, names stay texts, and everybody can read it."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import empathy_eval as ee
import pytest
from empathy_eval.cli import main
from empathy_eval.commands import command as pages
from empathy_eval.commands.study_tables import p_cell
from empathy_eval.raters.study.ratings import ReadOptions, read_study
from empathy_eval.raters.study.results import AttentionChecks, Balance, ColumnBalance, StudyReport
from empathy_eval.reports import study_page as of_pages
from empathy_eval.reports.study_page import axis_of, clamped, page, signed_percent
from empathy_eval.statistics import chi_square
from empathy_eval.statistics.estimate import format_p

from tests.doubles.browser import broken_words, serious_findings, watched
from tests.doubles.studies import GROUPS, STRATA, study_rows, write_study

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LABELS = ("Bad", "Okay", "Good")
# Names without a comma, as a CSV without quotes has them.
HOSTILE = (
    "<script>document.title='ran'</script>",
    "</style></title><img src=x onerror=\"document.title='ran'\">",
    "right to left \u05e9\u05dc\u05d5\u05dd {{7*7}} javascript:alert(1) & &amp; '",
    "an overlong name " + "without-an-end" * 12,
)


class Page(HTMLParser):
    """What a page says, its tags, and the rows of its tables as texts of their cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags, self.parts, self.rows, self.inside = set[str](), list[str](), list[list[str]](), ""
        self.cell = False
        self.attributes = list[tuple[str, str | None]]()
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attributes
        self.inside = tag
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.cell = True

    def handle_endtag(self, tag: str) -> None:
        self.inside = "" if tag == "style" else self.inside
        self.cell = self.cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.inside != "style":
            self.parts.append(data)
            if self.cell:
                self.rows[-1][-1] += data

    @property
    def said(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.parts))


def told_of_raters(studied: StudyReport, name: str = "sex") -> StudyReport:
    """The same with what a raters' table says of raters."""
    groups = tuple((one.name, one.raters) for one in studied.groups)
    test = chi_square.ChiSquaredTest(1.5, 3, 0.68, 0.18, None, 6.0, 0.7, "chi-square", None, "test:chi-square")
    small = replace(test, p_by="permutation", least_expected=4.0)
    numbers = chi_square.ChiSquaredTest(2.5, 3, 0.5, None, None, None, None, "kruskal-wallis", None, "test:kruskal")
    cells = tuple((7, 5) for _ in groups)
    columns = (
        ColumnBalance(name, "values", (name, "other values"), cells, (), test, 0.9, 3, None),
        ColumnBalance("rare", "values", (name, "other"), cells, (), small, 0.9, 3, None),
        ColumnBalance("age", "numbers", (), (), tuple((None, 46.5, None) for _ in groups), numbers, 1.0, 3, None),
        ColumnBalance("job", "values", (), (), (), None, None, 0, "not told: too few have it"),
    )
    balance = Balance(groups, columns, 0, 0, ("a cell of fewer than 5 raters is not shown",), "balance:raters")
    without = replace(test, statistic=11.1, df=6, permutation=0.02)
    attention = AttentionChecks(groups, ("none", "some"), cells, without, True, 0.05, None, ("it holds",), "attention:checks")
    return replace(studied, balance=balance, attention=attention)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(tmp_path_factory.mktemp("studied") / "ratings.csv")


@pytest.fixture(scope="module")
def studied(table: Path) -> StudyReport:
    """Four groups, strata and blocks, one small stratum, and a group without a rating of a category."""
    return ee.study(table, "human", labels=LABELS, permutations=99)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> StudyReport:
    """A study in which every name is hostile; the labels of its categories too."""
    strata = [(f"{stratum} {odd}", f"{valence} {HOSTILE[0]}") for (stratum, valence), odd in zip(STRATA, HOSTILE, strict=True)]
    rows = study_rows(HOSTILE[:3], blocks=4, strata=strata)
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row.split(",")) for row in rows]
    path = write_study(tmp_path_factory.mktemp("hostile") / "odd.csv", quoted)
    return told_of_raters(ee.study(path, HOSTILE[0], labels=HOSTILE[1:], by=["stratum"], permutations=19), HOSTILE[1])


def cells_of(html: str) -> list[list[str]]:
    return [[re.sub(r"\s+", " ", cell).strip() for cell in row] for row in Page(html).rows]


def test_the_numbers_of_the_page_are_those_of_the_json(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "made" / "out.html"
    found = ee.study(table, "human", labels=LABELS, permutations=99, page=out)
    figures: dict[str, Any] = json.loads(out.with_suffix(".json").read_text())
    assert figures == json.loads(json.dumps(found.to_json()))
    rows = cells_of(out.read_text())

    def number(value: float | None, places: int) -> str:
        return "–" if value is None else f"{value:.{places}f}".replace("-", "−")

    def p(value: float | None, of: float | None = None) -> str:
        # The least p of 99 exchanges is only known to be no larger, and so is what corrects it.
        bound = "≤" if of == pytest.approx(0.01) and value is not None and value < 1 else ""
        return "–" if value is None else "<0.0001" if value < 0.0001 else f"{bound}{value:.4f}"

    def reported_p(test: dict[str, Any]) -> str:
        return f" used: expected {test['least_expected']:.2g}" if test["p_by"] == "permutation" else ""

    def both(test: dict[str, Any], one: dict[str, Any]) -> list[str]:
        drawn = test["permutation"]
        by_rater = [p(drawn, drawn) + reported_p(test), p(one["holm_by_rater"], drawn), p(one["benjamini_hochberg_by_rater"], drawn)]
        mixed = drawn if test["p_by"] == "permutation" else None
        return [*by_rater, p(test["p"]), p(one["holm"], mixed), p(one["benjamini_hochberg"], mixed)]

    parts = [("", figures["whole"]), *((f"{one['name']}, ", one) for some in figures["parts"].values() for one in some)]
    gains = [(name, one) for name, part in parts for one in part["gains"]]
    pairs = [(name, one) for name, part in parts for one in part["pairwise"]]
    drawn = random.Random(3)
    for name, one in drawn.sample(gains, 25):
        test = one["test"]
        bounds = "no interval" if one["low"] is None else f"[{signed_percent(one['low'])}, {signed_percent(one['high'])}]"
        shares = [f"{100 * one[share]:.1f} %" for share in ("share", "of_baseline_share")]
        row = [name + one["group"], one["category"], f"{signed_percent(one['gain'])} %{bounds}", *both(test, one)]
        row += [number(test["statistic"], 2), *shares]
        assert row in rows, row
    for name, one in drawn.sample(pairs, 15):
        test = one["test"]
        row = [f"{name}{one['group']} and {one['other']}", *both(test, one), number(test["statistic"], 2), str(test["df"] or "–")]
        row += [number(test["v"], 3), f"{test['n']:,}"]
        assert row in rows, row
    for one in drawn.sample(figures["spreads"], 6):
        row = [one["group"], one["category"], number(one["icc"], 3), number(one["design_effect"], 2), number(one["ratings_a_rater"], 1)]
        assert row in rows, row
    (counts,) = (row for row in rows if row[0] == "humanbaseline")
    assert counts[1:4] == ["12", "72", "72"]
    whole = figures["whole"]
    shown = zip(whole["counts"][0], whole["shares"][0], strict=True)
    assert counts[4:] == [f"{count:,}{100 * share:.1f} %" for count, share in shown]


@pytest.mark.e2e
def test_the_headline_carries_its_interval_and_no_more_than_that(studied: StudyReport) -> None:
    said = Page(page(studied)).said
    gain = max((one for one in studied.whole.gains if one.category == "Good" and (one.low or 0) > 0), key=lambda one: one.value or 0)
    alone = f"(95 % interval, not corrected for 3 groups, {signed_percent(gain.low or 0)} to {signed_percent(gain.high or 0)} %"
    more = f"{gain.group} was rated “Good” {gain.value:.1f} % more often than human {alone}"
    not_shown = f"No group is shown to be rated “Good” more or less often than human: {gain.group}’s gain of +{gain.value:.1f} % {alone})"
    chosen = {
        0.05: f"{not_shown} may be chance (p = 0.0500, by rater, corrected for them)",
        0.04: f"{more}; p = 0.0400, by rater, corrected",
    }
    for p, told in chosen.items():
        drawn = [
            replace(one, corrected=replace(one.corrected, holm_by_rater=p), test=replace(one.test, permutation=0.02))
            for one in studied.whole.gains
        ]
        assert told in Page(page(replace(studied, whole=replace(studied.whole, gains=tuple(drawn))))).said
    chosen = {0.06: "may be chance (p = 0.0600, by chi-squared alone, corrected", 0.04: f"{more}; p = 0.0400, by chi-squared alone"}
    for p, told in chosen.items():
        plain = [
            replace(one, corrected=replace(one.corrected, holm=p, holm_by_rater=None), test=replace(one.test, permutation=None))
            for one in studied.whole.gains
        ]
        assert told in Page(page(replace(studied, whole=replace(studied.whole, gains=tuple(plain))))).said
    few = [
        replace(one, corrected=replace(one.corrected, holm_by_rater=0.06), test=replace(one.test, permutation=0.01))
        for one in studied.whole.gains
    ]
    said = Page(page(replace(studied, whole=replace(studied.whole, gains=tuple(few))))).said
    assert "(p ≤ 0.0600, by rater, corrected for them; 99 permutations are too few to say more)" in said
    unsure = replace(studied.whole, gains=tuple(replace(one, low=-50.0, high=90.0) for one in studied.whole.gains))
    said = Page(page(replace(studied, whole=unsure))).said
    assert "No group was rated “Good” more or less often than human by more than its interval" in said
    assert "0 of 3 groups lie above human with the whole interval, 0 below." in said
    none = replace(studied.whole, gains=tuple(replace(one, low=None, high=None, reason="no why") for one in studied.whole.gains))
    said = Page(page(replace(studied, whole=none))).said
    assert "It is not known whether a group was rated “Good” more often than human" in said and "3 have none" in said
    less = [
        replace(one, value=-40.0, low=-60.0, high=-10.0, corrected=replace(one.corrected, holm_by_rater=0.03))
        for one in studied.whole.gains
    ]
    said = Page(page(replace(studied, whole=replace(studied.whole, gains=tuple(less))))).said
    assert "was rated “Good” 40.0 % less often than human (95 % interval, not corrected for 3 groups, −60.0 to −10.0 %; p" in said


def test_the_largest_gain_is_shown_after_correction_before_what_is_larger(studied: StudyReport) -> None:
    first, second, _ = (one for one in studied.whole.gains if one.category == "Good")
    large = replace(first, value=90.0, low=10.0, high=200.0, corrected=replace(first.corrected, holm_by_rater=0.2))
    shown = replace(second, value=30.0, low=10.0, high=50.0, corrected=replace(second.corrected, holm_by_rater=0.01))
    found = of_pages.largest_gain(replace(studied.whole, gains=(large, shown)), "Good", 0.05)
    assert found["gain"] == shown and found["shown"]
    found = of_pages.largest_gain(replace(studied.whole, gains=(large,)), "Good", 0.05)
    assert found["gain"] == large and found["sure"] and not found["shown"]


def test_the_unit_of_an_interval_is_named_where_it_appears(table: Path, studied: StudyReport, tmp_path: Path) -> None:
    said = Page(page(studied)).said
    assert "interval by block" in said and "With 95 % intervals by block" in said and "with 95 % intervals by block" in said
    assert "intervals by rater" not in said and "95 % interval by rater" not in said
    rows = table.read_text().splitlines()
    place = rows[0].split(",").index("block")
    bare = [",".join(cell for at, cell in enumerate(row.split(",")) if at != place) for row in rows]
    alone = write_study(tmp_path / "bare.csv", bare)
    said = Page(page(ee.study(alone, "human", labels=LABELS, permutations=0))).said
    assert "interval by rater" in said and "by block" not in said


def test_it_says_where_exchanges_are_too_few_for_as_many_tests_and_how_many_are_enough(studied: StudyReport) -> None:
    pairs = sum(len(one.pairwise) for one in studied.parts["stratum"])
    assert pairs >= 24
    said = Page(page(studied)).said
    assert f"with 99 permutations, no p by rater can be below 0.05 after Holm's correction over {pairs} tests" in said
    assert f"--permutations {20 * pairs} are enough" in said
    enough = replace(studied, settings={**studied.settings, "permutations": 20 * pairs})
    assert "Too few permutations" not in Page(page(enough)).said


def test_a_p_that_could_not_be_smaller_is_a_bound_and_so_is_what_corrects_it() -> None:
    assert [format_p(1 / 2001, 2000), format_p(2 / 2001, 2000), format_p(1 / 2001)] == [("≤", "0.0005"), ("=", "0.0010"), ("=", "0.0005")]
    # Rounded up, for it is a bound.
    assert format_p(1 / 1401, 1400) == ("≤", "0.0008") and format_p(1 / 100, 99) == ("≤", "0.0100")
    assert format_p(0.02, 99, 0.01) == ("≤", "0.0200") and format_p(0.02, 99, 0.02) == ("=", "0.0200") and format_p(1.0, 99, 0.01)[0] == "="
    assert format_p(0.00002) == ("<", "0.0001") and format_p(1 / 100_001, 100_000) == ("≤", "0.0001")
    assert (p_cell(1 / 2001, 2000), p_cell(0.2), p_cell(None), p_cell(0.00001)) == ("<=0.0005", "0.2000", "", "<0.0001")


def test_it_says_why_the_plain_test_is_too_sure_with_both_p_where_they_part(studied: StudyReport) -> None:
    said = Page(html := page(studied)).said
    assert f"In this study the design effect is {studied.power.design_effect:.2f}" in said
    assert studied.null_point is not None and studied.null_point >= 10
    assert f"lie above about {studied.null_point:.0f} (of 99 permutations); if ratings were independent" in said
    assert (of_pages.point_text(9.44), of_pages.point_text(29.94)) == ("9.4", "30")
    assert f"and groups alike, they would lie above {studied.null_point_if_independent:.1f}" in said
    parting = [
        (one.group, one.category, one.test)
        for one in studied.whole.gains
        if one.test.p is not None and one.test.permutation is not None and (one.test.p < 0.05) != (one.test.permutation < 0.05)
    ]
    assert parting
    for group, category, test in parting:
        assert [f"gain of {group} in “{category}”", f"{of_pages.p_value(test.permutation, 99)}", f"{test.p:.4f}"] in cells_of(html)
    alike = replace(studied, power=replace(studied.power, design_effect=1.0))
    assert "ratings of one rater are no more alike" in Page(page(alike)).said
    unknown = replace(studied, power=replace(studied.power, design_effect=None, effective_ratings=None, reached=None, smallest_w=None))
    assert (
        "no group has enough raters" in Page(page(unknown)).said
        and "is not known, because there is no design effect" in Page(page(unknown)).said
    )


def test_what_is_not_defined_says_why_in_place(studied: StudyReport) -> None:
    rows = cells_of(page(studied))
    whys = [one.reason for one in studied.whole.gains if one.reason] + [one.why for one in studied.spreads if one.why]
    assert len(whys) >= 2
    for why in whys:
        assert [why] in rows
    small = [one for one in studied.parts["stratum"] if one.omnibus.p_by == "permutation"]
    assert small and any(row[0] == small[0].name and "used: expected" in row[1] for row in rows if len(row) == 11)


def test_a_study_without_strata_blocks_or_exchanges_says_so(tmp_path: Path) -> None:
    rows = [",".join(row.split(",")[:4]) for row in study_rows(GROUPS[:2], blocks=6)]
    later = [rows[0], *(row.replace(",alpha", ",late") for row in rows if ",alpha," in row)]
    paths = [write_study(tmp_path / f"{name}.csv", some) for name, some in (("a", rows), ("b", later))]
    found = ee.study(paths[0], "human", add=[paths[1]], permutations=0)
    said = Page(page(found)).said
    assert "the ratings have no blocks" in said and "by stratum" not in said.lower().split("settings")[0]
    assert "Added later: the raters of late were not drawn together" in said and "late (added)" in said
    assert "no raters were permuted" in said and "no table of raters was given" in said
    assert "used: expected" not in said


def test_of_tables_too_long_for_a_page_the_json_is_named(studied: StudyReport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_pages, "MOST_ROWS", 20)
    said = Page(page(studied)).said
    assert "36 rows are too many for this page; the JSON file beside it has them." in said and "12 rows are too many" not in said


def test_what_is_known_of_raters_is_on_the_page_and_no_rater_is(studied: StudyReport, table: Path) -> None:
    said = Page(html := page(told_of_raters(studied))).said
    rows = cells_of(html)
    assert ["sex", "χ²", "1.50", "3", "0.6800", "0.7000", "0.180", "0.9000"] in rows
    assert ["rare", "χ²", "1.50", "3", "0.6800", "0.7000 used: expected 4", "0.180", "0.9000"] in rows
    assert ["age", "Kruskal–Wallis", "2.5", "3", "0.5000", "–", "–", "1.0000"] in rows and ["human", "12", "–", "46.5", "–"] in rows
    assert ["not told: too few have it"] in rows and ["alpha", "12", "758.3 %", "541.7 %"] in rows
    assert "χ² of all groups by all categories is 11.1 with 6 degrees of freedom" in said and "it holds" in said
    raters = read_study([table], ReadOptions("human")).raters
    assert not [one for one in raters if one in said]


def test_equal_studies_give_equal_pages_and_the_page_says_how_to_make_it(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a page.html"
    options = ["--baseline", "human", "--labels", "Bad,Okay,Good", "--by", "valence", "--permutations", "19", "--seed", "4"]
    assert main(["study", str(table), *options, "--page", str(out)]) == 0
    assert f"page: {out}, and its figures: {out.with_suffix('.json')}" in capsys.readouterr().out
    first = out.read_bytes(), out.with_suffix(".json").read_bytes()
    (command,) = re.findall(r"<dt>this page again</dt><dd><code>(.*?)</code>", first[0].decode())
    again = shlex.split(command.replace("&#39;", "'"))
    assert again[:2] == ["empathy-eval", "study"]
    out.unlink()
    out.with_suffix(".json").unlink()
    assert main([*again[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(first[1])
    assert (out.read_bytes(), out.with_suffix(".json").read_bytes()) == first
    assert ee.study(table, "human", labels=LABELS, by=["valence"], permutations=19, seed=4, page=out) and out.read_bytes() == first[0]
    assert ee.study(table, "human", labels=("a,b", "c", "d"), permutations=0, page=out) and "this page again</dt>" not in out.read_text()


def test_a_page_that_cannot_be_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    table = tmp_path / "missing.csv"

    def refused(place: Path | str, tables: Sequence[Path] = ()) -> str:
        with pytest.raises(ee.InputError) as error:
            ee.study([table, *tables], "human", page=place)
        assert "name a file OUT.html" in str(error.value)
        return str(error.value)

    (tmp_path / "folder.html").mkdir()
    (tmp_path / "other.json").mkdir()
    assert 'page.txt" is not an .html file' in refused(tmp_path / "page.txt")
    assert f'"{tmp_path}" is a folder' in refused(tmp_path) and '"." is a folder' in refused(".")
    assert 'folder.html" is a folder' in refused(tmp_path / "folder.html") and 'other.json" is a folder' in refused(tmp_path / "other.html")
    with pytest.raises(ee.InputError, match="cannot be a file or folder: File name too long\n  Fix: name another place"):
        ee.study(table, "human", page=tmp_path / ("n" * 300 + ".html"))
    assert "is an input file" in refused(tmp_path / "in.html", [tmp_path / "in.json"])


def test_the_page_and_its_figures_are_written_both_or_neither(tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    out.write_text("before")
    with pytest.raises(TypeError):  # no value of JSON
        pages.write_page("anew", {"p": object()}, out)
    (tmp_path / "out.json").mkdir()
    with pytest.raises(ee.InputError):
        pages.write_page("anew", {}, out)
    assert out.read_text() == "before" and {one.name for one in tmp_path.iterdir()} == {"out.html", "out.json"}


def test_an_axis_holds_0_and_most_of_what_is_drawn_and_its_numbers_are_round(studied: StudyReport) -> None:
    some = studied.whole.gains[0]
    axis = axis_of([replace(some, value=31.3, low=23.0, high=39.8), replace(some, value=9.6, low=-1.0, high=18.7)])
    assert axis.span == (-10.0, 39.8) and axis.ticks == (-10.0, 0.0, 10.0, 20.0, 30.0)
    wide = axis_of([replace(some, value=100.0, low=-99.0, high=126945.0)])
    assert wide.span == (-99.0, 350.0) and clamped(126945.0, wide) == 350.0
    assert (
        axis_of([replace(one, value=gain, low=gain, high=gain) for one in [some] for gain in (-50.0, 80.0, 90.0)], 1.0, 3).ticks
        == (-50.0, 0.0, 50.0)
        and clamped(3.0, wide) == 3.0
    )
    assert axis_of([]).span == (-10.0, 10.0) and axis_of([replace(some, value=None, low=None, high=None)]).ticks[0] == -10.0
    assert [signed_percent(one) for one in (31.34, -0.04, 1234.5, -99.96)] == ["+31.3", "0.0", "+1,234", "−100.0"]


def test_hostile_names_stay_texts(hostile: StudyReport) -> None:
    found = Page(html := page(hostile, f"empathy-eval {HOSTILE[0]}"))
    for name in HOSTILE:
        assert found.said.count(re.sub(r"\s+", " ", name)) >= 4, name
    assert not found.tags & {"script", "img", "iframe", "object", "form", "link", "base"}
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert not [value for name, value in found.attributes if name in ("href", "src", "action") and not (value or "").startswith("#")]
    assert html.count("</style>") == 1 and "49" not in "".join(part for part in found.parts if "javascript" in part)
    assert "\\x07" in page(replace(hostile, labels=("a\x07", *hostile.labels[1:]))) and "\x07" not in page(hostile)


# Each page in one colour at each width; both of each where there is time.
SCREENS = [(390, "light"), (1400, "dark"), (390, "dark"), (1400, "light")]


@pytest.mark.sampled
def test_everybody_can_read_the_page_and_names_run_nowhere(browser: Browser, table: Path, hostile: StudyReport, tmp_path: Path) -> None:
    plain = told_of_raters(ee.study(table, "human", labels=LABELS, by=["valence"], permutations=19))
    for name, one, screens in (("plain", plain, SCREENS[:2]), ("hostile", hostile, SCREENS[2:])):
        path = tmp_path / f"{name}.html"
        path.write_text(page(one), encoding="utf-8")
        for width, scheme in SCREENS if "LONG" in os.environ else screens:
            look: Any = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "reduced_motion": "reduce"}
            with watched(browser.new_context(**look)) as context:
                tab = context.new_page()
                tab.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
                tab.goto(path.as_uri())
                if name == "plain" and width == 1400:
                    for place in (".claims", ".first figure >> nth=0", ".first figure >> nth=1"):
                        box = tab.locator(place).bounding_box()
                        assert box and box["y"] + box["height"] <= 900, place
                tab.evaluate("[...document.querySelectorAll('details:not([open]) > summary')].forEach(one => one.click())")
                assert tab.locator("details").count() and tab.locator("details:not([open])").count() == 0
                assert tab.evaluate("document.documentElement.scrollWidth") <= width
                assert broken_words(tab) == [] and not tab.locator("table:not(:has(tbody tr))").count()
                # Rows are alike, and looking at the colours of each cell takes axe seconds.
                tab.evaluate("document.querySelectorAll('tbody').forEach(one => [...one.rows].slice(3).forEach(row => row.remove()))")
                assert serious_findings(tab) == []
                assert tab.title() != "ran" and tab.locator("script, img").count() == 0


def test_the_keyboard_reaches_the_study_and_every_wide_table_and_print_opens_what_is_folded(
    browser: Browser, studied: StudyReport, tmp_path: Path
) -> None:
    path = tmp_path / "out.html"
    path.write_text(page(studied), encoding="utf-8")
    with watched(browser.new_context(viewport={"width": 390, "height": 800})) as context:
        tab = context.new_page()
        tab.goto(path.as_uri())
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.textContent") == "Skip to the study"
        wide = "[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth)"
        assert tab.evaluate(f"{wide}.length") and tab.evaluate(f"{wide}.every(one => one.tabIndex === 0 && one.getAttribute('aria-label'))")
        tab.emulate_media(media="print")
        # A4 with margins of 12 mm, at 96 dots an inch: no table is cut off.
        tab.set_viewport_size({"width": 703, "height": 1000})
        assert tab.evaluate("document.documentElement.scrollWidth") <= 703
        folded = "getComputedStyle(document.querySelector('#gains details'), '::details-content').contentVisibility"
        assert tab.evaluate(folded) == "visible"
