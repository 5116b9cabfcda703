"""The page of the explorer, driven in a browser: what it shows, what it finds, and what it says where something fails."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from empathy_eval.base.files import data_folder
from empathy_eval.reports.explorer import SCRIPTS

from tests.doubles.browser import broken_words, serious_findings, watched
from tests.doubles.explored import METRICS, a_pair, margin_of, number_of, rows_of, score, write_explored, write_explorer
from tests.doubles.ranges import Ranges, ranges

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SOURCES = data_folder("release") / "explore"
DIALOGUES = 60
HOSTILE = (
    "<script>document.title='ran'</script></script><!--<script>",
    "<img src=x onerror=\"document.title='ran'\">",
    "\u202eright to left\u202c שלום 👩‍👩‍👧 {{ 7 * 7 }} javascript:alert(1)",
    "W" * 400,
)
FLAGGED = '[data-part="flag"]'


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of 300 pairs with its page."""
    folder = tmp_path_factory.mktemp("explored") / "release"
    write_explorer(folder, write_explored(folder, DIALOGUES))
    return folder


@pytest.fixture(scope="module")
def served(explored: Path) -> Iterator[Ranges]:
    with ranges(explored) as server:
        yield server


@pytest.fixture
def online(browser: Browser, served: Ranges) -> Iterator[Page]:
    """The page as the server gives it, whose answers are good until they are told not to be."""
    served.told(None)
    with watched(browser.new_context(viewport={"width": 1400, "height": 900}), served.url) as context:
        tab = context.new_page()
        tab.goto(f"{served.url}explore/index.html")
        tab.wait_for_selector("#rows table")
        yield tab


def opened(tab: Page, folder: Path, fragment: str = "") -> Page:
    """The page of a release from disk, once it shows something."""
    tab.goto((folder / "explore" / "index.html").as_uri() + fragment)
    tab.wait_for_selector("#rows :is(table, .note), #screen h1")
    return tab


def until(tab: Page, condition: Callable[[], bool], what: str = "it did not come") -> None:
    """Waits: the page's policy lets no text be run, so that nothing can wait within it."""
    for _ in range(250):
        if condition():
            return
        tab.wait_for_timeout(20)
    raise AssertionError(what)


def go(tab: Page, fragment: str, heading: str | None = None) -> None:
    """To another place of the page, once it is there."""
    tab.evaluate("fragment => { location.hash = fragment }", fragment)
    if heading:
        until(tab, lambda: heading in tab.locator("#screen h1").all_inner_texts(), f"no {heading}")


def count(tab: Page) -> str:
    return tab.locator("#count").inner_text()


def ids(tab: Page) -> list[str]:
    return tab.locator("#rows [data-id]").all_inner_texts()


def alarm(tab: Page) -> str:
    tab.wait_for_selector("#alarm .note")
    return tab.locator("#alarm").inner_text()


def whole(tab: Page, pairs: int = 5 * DIALOGUES) -> None:
    """Waits until all of a release has been read."""
    until(tab, lambda: f"{pairs} of {pairs} pairs of the whole release" in count(tab) and tab.locator("#progress").is_hidden(), count(tab))


def fit(test: Callable[[dict[str, Any]], bool], split: str = "test") -> list[str]:
    """The ids of the pairs of a split that a test lets through, in the order of the data."""
    return [one["pair_id"] for one in rows_of(DIALOGUES, {})["pairs", split] if test(one)]


def rated(pair_id: str, variant: int, metric: str) -> float:
    found = score(number_of(pair_id), variant, list(METRICS).index(metric))
    assert found is not None
    return found


def test_the_sample_is_there_at_once_and_every_filter_finds_what_fits(explored: Path, tab: Page) -> None:
    opened(tab, explored)
    test = fit(lambda one: True)
    assert count(tab) == f"{len(test)} of {len(test)} pairs of the sample" and ids(tab) == test[:20]
    assert "I can see that week" in tab.locator(".list .excerpt").first.inner_text()
    asked: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
        ("scenario=Loneliness&phase=action", lambda one: one["scenario"] == "Loneliness" and one["phase"] == "action"),
        ("words=WAS+week+17", lambda one: all(word in one["reference"] for word in ("was", "week", "17"))),
        ("strategy=Clarification", lambda one: one["strategy"] == "Clarification"),
        ("manner=hurrying", lambda one: one["apathetic_manner"] == "hurrying"),
        ("manner=(none)", lambda one: one["apathetic_manner"] is None),
        ("device=small+step", lambda one: one["empathetic_device"] == "small step"),
        ("flag=crisis", lambda one: one["flags"] == ["crisis"]),
        ("flag=(none)", lambda one: not one["flags"]),
        ("narrower=0.3&wider=0.7", lambda one: 0.3 <= (margin_of(number_of(one["pair_id"])) or 0) <= 0.7),
        ("metric=VADER&of=apathetic&least=1.5&most=2.2", lambda one: 1.5 <= rated(one["pair_id"], 1, "VADER") <= 2.2),
        (
            "up=VADER&down=distance",
            lambda one: (
                rated(one["pair_id"], 2, "VADER") > rated(one["pair_id"], 1, "VADER")
                # Of a distance the smaller one is better.
                and rated(one["pair_id"], 2, "distance") > rated(one["pair_id"], 1, "distance")
            ),
        ),
        ("split=train", lambda one: False),
    ]
    for fragment, test_of in asked:
        right = fit(test_of)
        go(tab, f"#{fragment}")
        until(tab, lambda: count(tab).startswith(f"{len(right)} of "), f"{fragment}: {len(right)}, {count(tab)}")  # noqa: B023
        assert ids(tab) == right[:20], fragment
    assert "No pair matches all of these filters" in tab.locator("#rows").inner_text()
    # What an object of JavaScript has by itself is no contrast and no variant.
    for fragment in ("up=VADER&down=distance&at=toString", "metric=VADER&of=constructor&least=0"):
        go(tab, f"#{fragment}")
        until(tab, lambda: len(ids(tab)) > 0, fragment)
        assert not tab.locator("#alarm").inner_text()


def test_what_fails_in_a_search_is_told_and_what_was_shown_stays(explored: Path, tab: Page) -> None:
    tab.add_init_script("Math.fround = () => { throw new Error('no such thing') }")
    opened(tab, explored)
    shown = ids(tab)
    go(tab, "#narrower=0.1")
    assert "Error in this page: no such thing" in alarm(tab) and ids(tab) == shown
    go(tab, "#")
    until(tab, lambda: not tab.locator("#alarm").inner_text())


def test_above_the_list_stands_which_score_is_whose(explored: Path, tab: Page) -> None:
    opened(tab, explored)
    tab.wait_for_selector("#rows .legend")
    assert tab.locator("#rows > *").first.inner_text().startswith("Scores: the empathetic reply is above, the apathetic one below")
    colour = "one => getComputedStyle(one).color"
    for name in ("kind", "cold"):
        assert tab.locator(f".legend .{name}").evaluate(colour) == tab.locator(f".list .{name}.better").first.evaluate(colour)
    assert "preferred: " in (tab.locator(".list .better").first.text_content() or "")


def test_what_is_chosen_in_the_form_is_the_address_and_the_way_back_takes_it_away(explored: Path, tab: Page) -> None:
    opened(tab, explored)
    loneliness = fit(lambda one: one["scenario"] == "Loneliness")
    tab.get_by_label("Scenario").select_option("Loneliness")
    until(tab, lambda: count(tab).startswith(f"{len(loneliness)} of"))
    assert tab.evaluate("location.hash") == "#scenario=Loneliness"
    # Beside each choice stands how many it would leave.
    flagged = fit(lambda one: one["scenario"] == "Loneliness" and bool(one["flags"]))
    assert f"crisis ({len(flagged)})" in tab.get_by_label("Flag").inner_text()
    # What another choice of the same would leave too.
    assert "Financial Worries (60)" in tab.get_by_label("Scenario").inner_text()
    tab.locator("[name=narrower]").fill("0.2")
    tab.locator("[name=narrower]").press("Tab")
    until(tab, lambda: "narrower=0.2" in tab.evaluate("location.hash"))
    tab.get_by_role("link", name="Page 2", exact=False).first.click()
    until(tab, lambda: "page=2" in tab.evaluate("location.hash"))
    first = ids(tab)[0]
    tab.get_by_role("link", name=first).click()
    until(tab, lambda: tab.locator("#screen h1").all_inner_texts() == [first])
    link = tab.evaluate("location.href")
    for _ in range(4):
        tab.go_back()
    until(tab, lambda: count(tab).startswith("180 of 180"))
    assert tab.get_by_label("Scenario").input_value() == ""
    # The link alone opens the pair, and the filters with it.
    other = tab.context.new_page()
    other.goto(link)
    until(other, lambda: other.locator("#screen h1").all_inner_texts() == [first])
    assert "21 of " in other.locator(".way").inner_text()
    tab.get_by_role("button", name="Clear filters").click()
    assert tab.evaluate("location.hash") == ""


def test_the_keyboard_is_enough(explored: Path, tab: Page) -> None:
    opened(tab, explored)
    shown = ids(tab)
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the results"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "main" and tab.evaluate("location.hash") == ""
    for key in "jjk":
        tab.keyboard.press(key)
    assert tab.evaluate("document.activeElement.dataset.id") == shown[0]
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    until(tab, lambda: tab.locator("#screen h1").all_inner_texts() == [shown[1]])
    for key, there in (("j", 2), ("ArrowRight", 3), ("k", 2), ("ArrowLeft", 1)):
        tab.keyboard.press(key)
        until(tab, lambda: tab.locator("#screen h1").all_inner_texts() == [shown[there]], key)  # noqa: B023
    tab.keyboard.press("u")
    until(tab, lambda: tab.locator("#list").is_visible())
    assert tab.evaluate("document.activeElement.dataset.id") == shown[1]
    tab.keyboard.press("/")
    until(tab, lambda: tab.evaluate("document.activeElement.name") == "scenario")
    tab.keyboard.press("j")
    assert tab.evaluate("document.activeElement.name") == "scenario"
    tab.locator("#main").focus()
    tab.keyboard.press("?")
    assert tab.get_by_role("dialog", name="Keyboard shortcuts").is_visible()
    tab.get_by_label("Use single letters").uncheck()
    tab.keyboard.press("Escape")
    tab.keyboard.press("?")
    assert not tab.get_by_role("dialog", name="Keyboard shortcuts").is_visible()
    tab.reload()
    tab.get_by_role("button", name="Keyboard shortcuts").click()
    assert not tab.get_by_label("Use single letters").is_checked()
    tab.get_by_label("Use single letters").check()


def test_a_pair_shows_its_variants_their_differences_and_all_that_is_known_of_them(explored: Path, tab: Page) -> None:
    # Dialogue 14 is of the test split, has controls, and was judged; its first pair is number 70, which is flagged.
    opened(tab, explored, "#id=014-00014-t01")
    tab.wait_for_selector(".cells.four")
    assert tab.locator(".variant h2").all_inner_texts() == ["Reference", "Apathetic", "Near empathetic", "Far apathetic", "Empathetic"]
    near = tab.locator("[data-variant=apathetic]")
    assert (near.locator("del").all_inner_texts(), near.locator("ins").all_inner_texts()) == (["long"], ["nothing special"])
    assert "edit ratio" in near.inner_text() and "hurrying" in near.inner_text()
    # Lines of a text stay lines, also where its words are marked.
    assert "alone.\n\nWho" in tab.locator("[data-variant=empathetic] .words").inner_text()
    assert "language of hopelessness" in tab.locator(FLAGGED).inner_text()
    table = tab.get_by_role("region", name="Scores of each text by metric").inner_text()
    bleu = next(line for line in table.splitlines() if line.startswith("BLEU-4"))
    said = [rated("014-00014-t01", at, "BLEU-4") for at in (1, 3, 4, 2)]
    assert bleu.split("\t")[1:6] == ["–", *(f"{value:.3f}" for value in said)]
    ratings = tab.get_by_role("region", name="Ratings of a judge").inner_text()
    assert "warmth\t2.00\t2.00\t2.00" in ratings
    assert "no\ttie" in tab.get_by_role("region", name="Comparisons of a judge").inner_text()
    assert "70 %" in tab.locator("#screen").inner_text() and "Affirmation" in tab.get_by_role("region", name="Strategies of").inner_text()
    tab.get_by_label("Show removed words").uncheck()
    until(tab, lambda: not near.locator("del").count())
    assert tab.evaluate("document.activeElement.type") == "checkbox"
    # A pair without controls, flag or judge.
    go(tab, "#id=013-00013-t03", "013-00013-t03")
    assert tab.locator(".variant h2").all_inner_texts() == ["Reference", "Apathetic", "Empathetic"]
    assert not tab.locator(FLAGGED).count() and "Ratings by judges" not in tab.locator("#screen").inner_text()
    tab.get_by_role("link", name="Show the whole dialogue").click()
    until(tab, lambda: tab.locator("#screen h1").all_inner_texts() == ["Dialogue 013-00013"])
    assert tab.locator(".transcript > li").count() == 10
    tab.get_by_text("Show variants").nth(1).click()
    assert tab.locator("[data-variant=empathetic]").nth(1).is_visible()
    assert "whole dialogue" in tab.get_by_role("region", name="Ratings of a judge").inner_text()
    tab.get_by_role("link", name="Open 013-00013-t03").click()
    until(tab, lambda: tab.locator("#screen h1").all_inner_texts() == ["013-00013-t03"])


def test_what_was_left_out_is_told_with_its_reasons(explored: Path, tab: Page) -> None:
    opened(tab, explored, "#view=left")
    told = re.sub(r"\s+", " ", tab.locator("#screen").inner_text())
    for part in ("planned 69", "too_short 4", "003-00099 2026-01-02 It named somebody.", "001-00098 001-00001", "dialogue: not JSON 2"):
        assert part in told, part
    assert "Scenarios below their quota" not in told
    refused = tab.get_by_role("region", name="Refused candidates")
    tab.get_by_role("link", name=re.compile("overlap_high")).click()
    until(tab, lambda: "edit_ratio_high" not in refused.inner_text())
    first = refused.get_by_role("link").first.inner_text()
    refused.get_by_role("link").first.click()
    until(tab, lambda: tab.locator("#screen h1").all_inner_texts() == [first])
    assert "overlap_high" in refused.inner_text()


def test_a_withdrawn_dialogue_and_what_the_sample_lacks_are_told(explored: Path, tab: Page) -> None:
    opened(tab, explored, "#dialogue=003-00099")
    assert "withdrawn on 2026-01-02: It named somebody." in tab.locator("#screen").inner_text()
    go(tab, "#id=000-00000-t01", "000-00000-t01")
    assert "is not in the sample" in tab.locator("#screen").inner_text()
    tab.locator("#screen").get_by_role("button", name="Load the whole release").click()
    # A page from disk may not read the disk: it asks for the folder.
    tab.set_input_files("#folder", explored)
    until(tab, lambda: tab.locator(".variant").count() == 5)
    go(tab, "#id=999-00000-t01", "999-00000-t01")
    assert "The release has no pair" in tab.locator("#screen").inner_text()
    go(tab, "#split=train")
    until(tab, lambda: count(tab).startswith("60 of 300 pairs of the whole release"), count(tab))


def test_a_folder_that_is_not_this_release_whole_is_told_and_what_was_shown_stays(explored: Path, tab: Page, tmp_path: Path) -> None:
    opened(tab, explored)

    def chosen(folder: Path) -> str:
        tab.get_by_role("button", name="Load the whole release").click()
        tab.set_input_files("#folder", folder)
        return alarm(tab)

    def spoilt(name: str, path: str, change: Callable[[Path], object]) -> Path:
        folder = tmp_path / name
        shutil.copytree(explored, folder)
        change(folder / path)
        return folder

    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "letter.txt").write_text("Dear all")
    assert "There is no release in the folder “empty”. To fix it: choose the folder that holds manifest.json" in chosen(tmp_path / "empty")
    cut = spoilt("cut", "data/pairs/train.parquet", lambda path: path.write_bytes(path.read_bytes()[:-50]))
    assert "data/pairs/train.parquet has" in chosen(cut)
    zeros = spoilt("zeros", "data/pairs/test.parquet", lambda path: path.write_bytes(bytes(path.stat().st_size)))
    assert "data/pairs/test.parquet is damaged or is not a parquet file" in chosen(zeros)
    gone = spoilt("gone", "data/pairs/validation.parquet", lambda path: path.unlink())
    assert "data/pairs/validation.parquet is not in the folder" in chosen(gone)
    manifest = {**json.loads((explored / "manifest.json").read_text()), "version": "2.0.0"}
    newer = spoilt("newer", "manifest.json", lambda path: path.write_text(json.dumps(manifest)))
    assert "newer holds explored 2.0.0" in chosen(newer)
    (tmp_path / "two").mkdir()
    for name in ("one", "other"):
        shutil.copytree(explored, tmp_path / "two" / name)
    assert "more than one release" in chosen(tmp_path / "two")
    assert count(tab) == "180 of 180 pairs of the sample" and len(ids(tab)) == 20
    # A folder above the one is as good.
    (tmp_path / "above").mkdir()
    shutil.copytree(explored, tmp_path / "above" / "release")
    tab.get_by_role("button", name="Load the whole release").click()
    tab.set_input_files("#folder", tmp_path / "above")
    whole(tab)
    assert not tab.locator("#alarm").inner_text()


def test_from_a_server_the_release_is_read_by_ranges(online: Page, served: Ranges) -> None:
    assert not [path for path, _ in served.asked if path.endswith(".parquet")]
    online.get_by_role("button", name="Load the whole release").click()
    whole(online)
    spans = [span for path, span in served.asked if path.endswith(".parquet")]
    assert spans and all(span and span.startswith("bytes=") for span in spans)
    assert not any("preferences" in path or "provenance" in path for path, _ in served.asked)
    go(online, "#id=000-00000-t01", "000-00000-t01")
    assert online.locator(".variant").count() == 5
    assert "1 of 300 results" in online.locator(".way").inner_text()


@pytest.mark.parametrize(
    "fault, said",
    [
        ("missing", "was not found (404). To fix it: enter the address of the folder that holds manifest.json"),
        ("refused", "is not public (403)"),
        ("gone", "could not be reached"),
        ("short", "bytes instead of"),
        ("halved", "bytes, not "),
        ("cut", "was cut off before its end"),
    ],
)
def test_a_failed_read_is_told_and_what_was_shown_stays(online: Page, served: Ranges, fault: str, said: str) -> None:
    served.told(fault)
    online.get_by_role("button", name="Load the whole release").click()
    assert said in alarm(online)
    assert count(online) == "180 of 180 pairs of the sample" and len(ids(online)) == 20
    served.told(None)
    online.get_by_role("button", name="Try again").click()
    whole(online)
    assert not online.locator("#alarm").inner_text()


def test_scores_that_cannot_be_read_leave_the_other_filters(online: Page, served: Ranges) -> None:
    served.told("missing", "items")
    online.get_by_role("button", name="Load the whole release").click()
    assert "report/items.parquet was not found" in alarm(online)
    go(online, "#split=validation")
    until(online, lambda: count(online).startswith("60 of 300"))
    assert online.locator("[data-part=scores]").evaluate("one => one.disabled")
    served.told("missing", "controls")
    go(online, "#id=001-00001-t01")
    until(online, lambda: "data/controls/validation.parquet was not found" in alarm(online))
    served.told(None)
    online.locator("#alarm [data-kind=screen]").get_by_role("button", name="Try again").click()
    until(online, lambda: online.locator(".variant").count() == 3)


def test_a_server_without_ranges_may_send_small_files_whole_and_no_large_ones(online: Page, served: Ranges) -> None:
    served.told("whole")
    online.get_by_role("button", name="Load the whole release").click()
    whole(online)
    page = (served.folder / "explore" / "index.html").read_text()
    large = re.sub(r'("path": "data/pairs/train.parquet"[^}]*"bytes": )\d+', r"\g<1>50000000", page)
    assert large != page
    (served.folder / "large.html").write_text(large.replace('"base": "../"', '"base": "./"'))
    online.goto(f"{served.url}large.html")
    online.get_by_role("button", name="Load the whole release").click()
    assert "The server does not support range requests" in alarm(online)
    (served.folder / "large.html").unlink()


def test_another_address_is_read_and_what_is_none_is_told(online: Page, served: Ranges) -> None:
    def asked(address: str) -> None:
        online.locator("#elsewhere").click()
        online.get_by_label("Or a web address").fill(address)
        online.get_by_role("button", name="Load", exact=True).click()

    asked("ftp://somewhere/")
    assert "is not a web address" in alarm(online)
    asked(f"{served.url}data/")
    until(online, lambda: "data/manifest.json was not found" in alarm(online))
    asked(served.url.rstrip("/"))
    whole(online)
    assert served.url in online.locator("#source").inner_text()


@pytest.mark.parametrize("text", HOSTILE, ids=["script", "image", "direction", "long"])
def test_whatever_a_release_holds_is_shown_as_text(tab: Page, tmp_path: Path, text: str) -> None:
    names = ("reference", "apathetic", "empathetic", "scenario", "description", "context")
    folder = tmp_path / "release"
    facts = write_explored(folder, 10, dict.fromkeys(names, text))
    facts["withdrawn"][0]["reason"], facts["summary"]["rejected_by_reason"] = text, {text: 1}
    facts["duplicates"] = {f"001-{place:05d}": "001-00001" for place in range(203)}
    write_explorer(folder, facts)
    tab.set_viewport_size({"width": 390, "height": 800})
    opened(tab, folder)
    pair = a_pair(4, 0, {})["pair_id"]
    for fragment, where in (("#", "#rows"), (f"#id={pair}", ".variant"), ("#dialogue=004-00004", ".dialogue"), ("#view=left", ".large")):
        go(tab, fragment)
        tab.locator(where).first.wait_for()
        assert text in (tab.locator("main").text_content() or ""), fragment
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390, fragment
        assert tab.title() != "ran" and not tab.locator("img, main script, iframe").count()
    assert "3 more are in manifest.json." in tab.locator("#screen").inner_text()


def test_as_few_words_as_can_be_are_marked_and_none_in_a_very_long_text(tab: Page, tmp_path: Path) -> None:
    folder = tmp_path / "short"
    short = {"reference": "The cat sat on the mat today", "apathetic": "A cat was sat upon the old mat now"}
    write_explorer(folder, write_explored(folder, 5, short))
    opened(tab, folder, "#id=004-00004-t01")
    near = tab.locator("[data-variant=apathetic]")
    assert near.locator("ins").all_inner_texts() == ["A", "was", "upon", "old", "now"]
    assert near.locator("del").all_inner_texts() == ["The", "on", "today"]
    folder = tmp_path / "release"
    long = {"reference": "one two " * 6000, "apathetic": "two three " * 6000}
    write_explorer(folder, write_explored(folder, 5, long))
    opened(tab, folder, "#id=004-00004-t01")
    tab.wait_for_selector(".variant")
    assert "This text is too long to mark the differences" in tab.locator("[data-variant=apathetic]").inner_text()


def test_what_differs_in_a_language_without_spaces_is_marked_by_its_words(tab: Page, tmp_path: Path) -> None:
    texts = {"reference": "我知道这个星期对你来说很漫长。", "apathetic": "我知道这个星期对你来说很普通。"}
    folder = tmp_path / "release"
    facts = write_explored(folder, 5, texts)
    facts["configuration"]["language"] = "zh"
    write_explorer(folder, facts)
    opened(tab, folder, "#id=004-00004-t01")
    near = tab.locator("[data-variant=apathetic]")
    assert (near.locator("del").all_inner_texts(), near.locator("ins").all_inner_texts()) == (["漫长"], ["普通"])
    assert {one.get_attribute("lang") for one in tab.locator(".variant .words, .transcript .words").all()} == {"zh"}
    assert tab.locator("dd .words").first.get_attribute("lang") is None, "what a judge wrote is of no known language"
    tab.get_by_label("Show removed words").uncheck()
    until(tab, lambda: near.locator(".words").inner_text() == texts["apathetic"])


def test_a_release_without_scores_controls_or_judges_and_one_without_pairs_are_shown(tab: Page, tmp_path: Path) -> None:
    plain, empty = tmp_path / "plain", tmp_path / "empty"
    write_explorer(plain, write_explored(plain, 3, judged=False, scored=False))
    opened(tab, plain)
    assert tab.locator("[data-part=scores]").is_hidden() and len(ids(tab)) == 5
    tab.keyboard.press("j")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".variant")
    assert "Scores" not in tab.locator("#screen h2").all_inner_texts()
    write_explorer(empty, write_explored(empty, 0))
    opened(tab, empty, "#")
    tab.reload()
    until(tab, lambda: "This page holds no sample." in tab.locator("#rows").inner_text())
    tab.get_by_role("button", name="Load the whole release").click()
    tab.set_input_files("#folder", empty)
    until(tab, lambda: "This release has no pairs." in tab.locator("#rows").inner_text())


# A phone in one colour and a screen in the other; every width in both where there is time.
SCREENS = [(390, "light"), (1200, "dark"), (1400, "light"), (390, "dark"), (1200, "light"), (1400, "dark")]


@pytest.mark.sampled
@pytest.mark.parametrize("width, scheme", SCREENS if "LONG" in os.environ else SCREENS[:2])
def test_everybody_can_use_the_page_on_a_phone_and_on_a_screen(browser: Browser, explored: Path, width: int, scheme: Any) -> None:
    with watched(browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce")) as context:
        tab = opened(context.new_page(), explored)

        def fine(where: str) -> None:
            assert serious_findings(tab) == [], where
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, where
            assert broken_words(tab) == [], where
            assert not tab.locator("table:not(:has(tbody tr)), section > h2:only-child").count(), f"{where}: a heading above nothing"

        tab.locator("#fold").evaluate("one => { one.open = true }")
        fine("list")
        for fragment, there in (("#id=014-00014-t01", ".variant"), ("#dialogue=014-00014", ".dialogue"), ("#view=left", ".large")):
            go(tab, fragment)
            tab.locator(there).first.wait_for()
            for summary in tab.locator("#screen summary").all():
                summary.click()
            fine(fragment)
        tab.get_by_role("button", name="Keyboard shortcuts").click()
        fine("keys")
        tab.keyboard.press("Escape")
        tab.get_by_role("button", name="Load the whole release").click()
        tab.set_input_files("#folder", explored / "data")
        alarm(tab)
        fine("alarm")


def test_the_reader_is_the_one_whose_hash_is_known_and_the_page_carries_its_licences(explored: Path) -> None:
    told, _, name = (SOURCES / "reader.min.js.sha256").read_text().strip().partition("  ")
    data = (SOURCES / name).read_bytes()
    assert hashlib.sha256(data).hexdigest() == told
    page = (explored / "explore" / "index.html").read_text()
    assert (SOURCES / "LICENSES.txt").read_text().strip() in page and data.decode() in page
    pinned = json.loads((SOURCES / "bundle" / "package.json").read_text())["devDependencies"]
    locked = json.loads((SOURCES / "bundle" / "package-lock.json").read_text())["packages"]
    assert all(locked[f"node_modules/{package}"]["version"] == version for package, version in pinned.items())
    assert all("integrity" in one and "resolved" not in one for place, one in locked.items() if place)
    assert all(f"{package} {pinned[package]}" in page for package in ("hyparquet", "fzstd"))


def test_nothing_in_the_page_can_make_markup_or_code_of_a_text() -> None:
    ours = "\n".join((SOURCES / name).read_text() for name in SCRIPTS)
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "eval(", "new Function", "srcdoc", ".style"):
        assert way not in ours, way
    assert sorted(path.name for path in SOURCES.glob("*.js") if not path.name.endswith(".min.js")) == sorted(SCRIPTS)
