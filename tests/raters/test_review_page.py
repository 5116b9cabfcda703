"""The rater's page, in a real browser, used as a person would: mostly from the keyboard."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from empathy_eval.base.files import data_folder
from empathy_eval.base.json_text import embedded_json
from empathy_eval.base.schemas import read_yaml, schema
from empathy_eval.base.text import shingles
from empathy_eval.design.scenarios import Catalogue
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.raters.review.forms import CHOICES, FILLED, guidance_markdown, page
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.browser import LAUNCH, saved, serious_findings, watched

if TYPE_CHECKING:
    from playwright.sync_api import Page, Playwright

TRAINING = read_yaml(data_folder("review") / "training.yaml", "training")
SCALES = ("coherence", "helpfulness", "empathy")
HOSTILE = (
    "<script>document.title='ran'</script>",
    "</script><script>document.title='ran'</script>",
    "<img src=x onerror=\"document.title='ran'\"> <svg onload=alert(1)>",
    "{{ 7 * 7 }} {% raw %} ${7*7} &lt;b&gt; &amp;amp;",
    "<!-- <script> --> ]]> <!--",
    "\u202eright to left\u202c שלום مرحبا 👩‍👩‍👧 \u2028 line \u2029 end",
    "tab\there, bell\x07, escape\x1b[31m, delete\x7f, \ufeffmark, \r\n returns",
    "=1+1 'quoted' \"twice\" \\u003c \\n javascript:alert(1)",
)


def code(number: int) -> str:
    return f"c{number:011x}"


def variant(item: str, context: list[str], text: str, situation: str = "The user is tired.") -> dict[str, Any]:
    turns = [{"role": ("seeker", "helper")[at % 2], "text": one} for at, one in enumerate(context)]
    return {"item": item, "kind": "variant", "scenario": "Sleep", "situation": situation, "context": turns, "text": text}


def a_sheet(items: list[dict[str, Any]], review: str = f"s1-{'0123456789abcdef' * 4}") -> dict[str, Any]:
    strategies = [{"name": one.name, "phase": one.phase, "gloss": one.definition} for one in load_taxonomy().strategies]
    release = {"name": "empathy-eval", "version": "0.1.0"}
    return {"format": 1, "review": review, "release": release, "rater": "rater-03", "items": items, "strategies": strategies}


def seed_sheet(catalogue: Catalogue) -> dict[str, Any]:
    """Ten replies and two dialogues of the seeds."""
    items: list[dict[str, Any]] = []
    for scenario in catalogue.scenarios:
        assert scenario.seed
        turns = scenario.seed.turns
        for at in [at for at, turn in enumerate(turns) if turn.strategy][:4]:
            text = turns[at].apathetic if at % 4 == 1 else turns[at].text
            item = variant(code(len(items)), [], text or "", scenario.seed.description)
            items.append({**item, "scenario": scenario.name, "context": [{"role": one.role, "text": one.text} for one in turns[:at]]})
    taxonomy = catalogue.taxonomy
    for scenario in catalogue.scenarios[:2]:
        assert scenario.seed
        told = [
            {"role": one.role, "text": one.text, "strategy": taxonomy[one.strategy].name if one.strategy else None}
            for one in scenario.seed.turns
        ]
        flags = ["crisis"] if scenario.number == 3 else []
        facts = {"scenario": scenario.name, "situation": scenario.seed.description, "flags": flags, "turns": told}
        items.append({"item": code(len(items)), "kind": "dialogue", **facts})
    return a_sheet(items[:10] + items[-2:])


def written(folder: Path, sheet: dict[str, Any]) -> str:
    path = folder / "review.html"
    path.write_text(page(sheet), encoding="utf-8")
    return path.as_uri()


def press(tab: Page, keys: str) -> None:
    """Presses keys one after the other: ``"3 3 1 Enter"``."""
    for key in keys.split():
        tab.keyboard.press(key)


def heading(tab: Page) -> str:
    return tab.locator("h1").inner_text()


def rate(tab: Page, ratings: dict[str, int]) -> None:
    press(tab, " ".join(str(ratings[scale]) for scale in SCALES))


def consent(tab: Page) -> None:
    tab.get_by_role("button", name="I have read this").focus()
    press(tab, "Enter Enter")


def train(tab: Page, test: list[dict[str, int]] | None = None) -> None:
    """From the first page to the first item, by keyboard alone."""
    consent(tab)
    for one in TRAINING["training"]:
        rate(tab, one["ratings"])
        press(tab, "Enter Enter")
    assert heading(tab).startswith("Now")
    press(tab, "Enter")
    for ratings in test or [one["ratings"] for one in TRAINING["test"]]:
        rate(tab, ratings)
        press(tab, "Enter")


def skip_training(tab: Page, sheet: dict[str, Any]) -> None:
    """As after a passed test: for tests of what comes later."""
    kept = {"training": {"done": True, "test_right": 5, "test_of": 5, "through": True}, "place": {"screen": "item", "at": 0}}
    for name, value in kept.items():
        key = f"empathy-eval/{sheet['review']}/{sheet['rater']}/{name}"
        tab.evaluate("([key, value]) => localStorage.setItem(key, value)", [key, json.dumps(value)])
    tab.reload()
    # Until its first frame is drawn a browser takes no key.
    tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def exported(tab: Page, folder: Path) -> dict[str, Any]:
    press(tab, "s")
    path = saved(tab, "Save my answers to a file", folder)
    assert path.name == "s1-0123456789ab-rater-03.json"
    answers: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    press(tab, "Escape")
    if (data_folder("schemas") / "review" / "review_answers.schema.json").is_file():
        from empathy_eval.base.schemas import check

        check(answers, "review_answers", "the export")
    return answers


@pytest.fixture
def profile(playwright: Playwright, tmp_path: Path) -> Iterator[Any]:
    """Opens a browser again and again with the same profile."""

    def opened() -> Any:
        return watched(playwright.chromium.launch_persistent_context(tmp_path / "profile", **LAUNCH))

    yield opened


# The journey


def test_ten_items_rated_by_keyboard_alone_survive_a_reload_and_a_closed_browser(
    profile: Any, catalogue: Catalogue, tmp_path: Path
) -> None:
    sheet = seed_sheet(catalogue)
    address = written(tmp_path, sheet)
    ratings = [dict(zip(SCALES, (1 + at % 3, 1 + (at // 3) % 3, 1 + (at * 2) % 3), strict=True)) for at in range(10)]
    with profile() as context:
        tab = context.pages[0]
        tab.goto(address)
        train(tab)
        assert heading(tab) == "You passed the test"
        press(tab, "Enter")
        for at in range(4):
            assert heading(tab) == f"Reply {at + 1} of 12"
            rate(tab, ratings[at])
            press(tab, "Enter")
        press(tab, "2")
        tab.reload()
        assert heading(tab) == "Reply 5 of 12"
        assert tab.locator("[name=coherence]:checked").get_attribute("value") == "2"
    with profile() as context:
        tab = context.pages[0]
        tab.goto(address)
        assert heading(tab) == "Reply 5 of 12"
        assert tab.locator("#count").inner_text() == "4 of 12 done"
        for at in range(4, 10):
            tab.locator("[name=coherence]").first.focus()
            rate(tab, ratings[at])
            press(tab, "Enter")
        press(tab, "b")
        ratings[9]["empathy"] = 4 - ratings[9]["empathy"]
        tab.locator("[name=empathy]").first.focus()
        press(tab, str(ratings[9]["empathy"]))
        answers = exported(tab, tmp_path)
    assert answers == {
        "format": 1,
        "review": sheet["review"],
        "rater": "rater-03",
        "form": "page",
        "training": {"done": True, "test_right": 5, "test_of": 5},
        "judgements": [
            {"item": item["item"], "kind": "variant", **ratings[at], "comment": ""} for at, item in enumerate(sheet["items"][:10])
        ],
    }


def test_a_dialogue_is_judged_by_keyboard_with_tags_and_reason(tab: Page, catalogue: Catalogue, tmp_path: Path) -> None:
    items = seed_sheet(catalogue)["items"][-2:]
    tab.goto(written(tmp_path, a_sheet(items)))
    consent(tab)
    assert heading(tab) == "Dialogue 1 of 2", "whole dialogues need no training in the scales"
    assert "You may skip it" in tab.locator("main").inner_text()
    helpers = [at for at, turn in enumerate(items[0]["turns"]) if turn["strategy"]]
    press(tab, "1 2")
    tab.keyboard.type("Affirm")
    press(tab, "Tab " + "1 " * (len(helpers) - 2))
    assert tab.evaluate("document.activeElement.name") == "decision"
    press(tab, "Enter")
    assert tab.locator("#said").inner_text() == "Still open: keep or remove."
    press(tab, "2")
    tab.keyboard.type("The third reply <b>jumps</b>.")
    press(tab, "Enter")
    assert heading(tab) == "Dialogue 2 of 2"
    remark = tab.locator(f"[name=remark-{helpers[1]}]")
    tab.locator("summary", has_text="on this turn").nth(1).click()
    remark.fill("an odd\n<b>reply</b>")
    tab.locator(f"[name=tag-{helpers[0]}]").first.focus()
    press(tab, "1 " * sum(bool(turn["strategy"]) for turn in items[1]["turns"]) + "1")
    tab.reload()
    assert remark.is_visible() and remark.input_value() == "an odd\n<b>reply</b>", "kept, and shown at once"
    press(tab, "Enter")
    assert heading(tab).startswith("That was the last one")
    tags: list[dict[str, Any]] = [{"turn": at, "right": True} for at in helpers]
    tags[1] = {"turn": helpers[1], "right": False, "strategy": "Affirmation"}
    kept = [{"turn": at, "right": True} for at, turn in enumerate(items[1]["turns"]) if turn["strategy"]]
    told = exported(tab, tmp_path)
    assert "training" not in told
    assert told["judgements"] == [
        {
            "item": items[0]["item"], "kind": "dialogue", "decision": "remove", "reason": "The third reply <b>jumps</b>.",
            "tags": tags, "comment": "",
        },
        {
            "item": items[1]["item"], "kind": "dialogue", "decision": "keep", "reason": "", "tags": kept,
            "remarks": [{"turn": helpers[1], "comment": "an odd\n<b>reply</b>"}], "comment": "",
        },
    ]  # fmt: skip


def test_a_failed_test_leads_back_to_the_explanations_and_locks_nobody_out(tab: Page, catalogue: Catalogue, tmp_path: Path) -> None:
    tab.goto(written(tmp_path, seed_sheet(catalogue)))
    wrong = [{**one["ratings"], "empathy": 2} for one in TRAINING["test"]]
    train(tab, wrong)
    assert heading(tab) == "Not quite there yet"
    assert "2 of 5" in tab.locator("main").inner_text(), "two of the five have empathy 2"
    tab.get_by_role("button", name="Read the explanations again").click()
    assert tab.get_by_text(TRAINING["training"][0]["explanation"]).is_visible()
    press(tab, "Enter " * 10 + "Enter")
    for one in TRAINING["test"]:
        assert heading(tab).startswith("Test")
        tab.locator("[name=coherence]").first.focus()
        rate(tab, one["ratings"])
        press(tab, "Enter")
    assert heading(tab) == "You passed the test"
    assert exported(tab, tmp_path)["training"] == {"done": True, "test_right": 5, "test_of": 5}


def test_nothing_is_shown_before_consent_and_the_rater_can_decline_or_pause(tab: Page, catalogue: Catalogue, tmp_path: Path) -> None:
    sheet = seed_sheet(catalogue)
    tab.goto(written(tmp_path, sheet))
    press(tab, "Enter l 1 Escape")
    shown = tab.locator("body").inner_text()
    assert not [item for item in sheet["items"] if item["situation"] in shown or item["scenario"] in shown]
    tab.get_by_role("button", name="I would rather not").click()
    assert heading(tab) == "That is quite all right"
    tab.get_by_role("button", name="Back to the first page").click()
    consent(tab)
    press(tab, "3 Escape")
    assert heading(tab) == "Take your time"
    assert tab.get_by_text("crisis line").is_visible()
    press(tab, "Escape")
    assert heading(tab) == "Practice 1 of 10"
    assert tab.locator("input:checked").count() == 1


# What is kept


def test_two_tabs_never_overwrite_each_other_silently(tab: Page, catalogue: Catalogue, tmp_path: Path) -> None:
    sheet = seed_sheet(catalogue)
    address = written(tmp_path, sheet)
    tab.goto(address)
    skip_training(tab, sheet)
    other = tab.context.new_page()
    other.goto(address)
    press(tab, "1 1 1")
    other.get_by_text("changed in another tab").wait_for()
    # Each of the three is told by an event of its own, and these come when they come.
    other.locator("input:checked").nth(2).wait_for(state="attached")
    assert other.locator("input:checked").count() == 3
    # Both at once: the second tab writes before it has heard of the first's change.
    other.evaluate("""() => {
        const key = Object.keys(localStorage).find((one) => one.endsWith("c00000000000"));
        localStorage.setItem(key, localStorage.getItem(key).replace('"empathy":1', '"empathy":2'));
        const radio = document.querySelector('[name=empathy][value="3"]');
        radio.checked = true;
        radio.dispatchEvent(new Event("input", {bubbles: true}));
    }""")
    assert other.locator("[name=empathy]:checked").get_attribute("value") == "2"
    other.get_by_text("changed in another tab").wait_for()
    press(other, "Enter 2 2 2")
    tab.get_by_text("2 of 12 done").wait_for()
    assert [one["empathy"] for one in exported(tab, tmp_path)["judgements"]] == [2, 2]


@pytest.mark.parametrize("fault", ["throw new DOMException('full', 'QuotaExceededError')", ""])
def test_a_browser_that_keeps_nothing_says_so_at_once_and_the_answers_can_still_be_saved(tab: Page, fault: str, tmp_path: Path) -> None:
    tab.add_init_script(f"Storage.prototype.setItem = function () {{ {fault} }}")
    tab.goto(written(tmp_path, a_sheet([{**variant("a" * 12, [], "x"), "kind": "dialogue", "turns": []}])))
    assert "not keeping your answers" in tab.get_by_role("alert").inner_text()
    consent(tab)
    press(tab, "1")
    assert exported(tab, tmp_path)["judgements"][0]["decision"] == "keep"


def test_a_storage_that_is_full_for_a_while_loses_nothing(tab: Page, tmp_path: Path) -> None:
    sheet = a_sheet([variant(code(at), ["Hello?"], "Here.") for at in range(2)])
    tab.goto(written(tmp_path, sheet))
    skip_training(tab, sheet)
    tab.evaluate("""() => {
        window.real = Storage.prototype.setItem;
        Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); };
    }""")
    press(tab, "3 2")
    assert "Save them to a file before you close" in tab.get_by_role("alert").inner_text()
    press(tab, "1 Enter")
    tab.evaluate("() => { Storage.prototype.setItem = window.real; }")
    press(tab, "1 1 1")
    assert tab.get_by_role("alert").inner_text() == ""
    tab.reload()
    assert [one["helpfulness"] for one in exported(tab, tmp_path)["judgements"]] == [2, 1]


def test_what_was_damaged_in_the_storage_is_reported_and_asked_again(tab: Page, tmp_path: Path) -> None:
    sheet = a_sheet([variant("a" * 12, ["Hello?"], "Here."), variant("b" * 12, ["Hello?"], "Here.")])
    tab.goto(written(tmp_path, sheet))
    key = f"empathy-eval/{sheet['review']}/{sheet['rater']}/"
    bad = json.dumps({"coherence": 9, "helpfulness": "3", "empathy": 2, "extra": 1})
    tab.evaluate("([key, bad]) => { localStorage[key + 'aaaaaaaaaaaa'] = '{cut'; localStorage[key + 'bbbbbbbbbbbb'] = bad }", [key, bad])
    skip_training(tab, sheet)
    assert "1 could not be read" in tab.get_by_role("alert").inner_text()
    press(tab, "3 3 3 Enter")
    assert tab.locator("input:checked").count() == 1
    press(tab, "1 1 Enter")
    assert [one["empathy"] for one in exported(tab, tmp_path)["judgements"]] == [3, 2]


def test_an_export_can_be_brought_to_another_computer_and_a_foreign_file_cannot(tab: Page, tmp_path: Path) -> None:
    sheet = a_sheet([variant(code(at), ["Hello?"], "Here.") for at in range(3)])
    answers: dict[str, Any] = {
        "format": 1, "review": sheet["review"], "rater": "rater-03", "form": "page",
        "training": {"done": True, "test_right": 4, "test_of": 5},
        "judgements": [
            {"item": code(at), "kind": "variant", "coherence": 3, "helpfulness": 2, "empathy": 1, "comment": "é <i>\n"} for at in (0, 2)
        ],
    }  # fmt: skip
    tab.goto(written(tmp_path, sheet))
    consent(tab)
    press(tab, "g s")
    for name, changed in {"foreign": {**answers, "rater": "rater-04"}, "own": answers}.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(changed), encoding="utf-8")
        tab.set_input_files("input[type=file]", path)
        tab.locator("#main").get_by_text("Nothing was taken" if name == "foreign" else "Brought in: 2").wait_for()
    tab.get_by_role("button", name="Go to the first open item").click()
    assert heading(tab) == "Reply 2 of 3"
    assert exported(tab, tmp_path) == answers
    press(tab, "b 3")
    answers["judgements"][0]["coherence"] = 1
    path.write_text(json.dumps(answers), encoding="utf-8")
    press(tab, "s")
    tab.set_input_files("input[type=file]", path)
    tab.locator("#main").get_by_text("left as they are here: 1").wait_for()
    tab.get_by_role("button", name="Take the answers of the file").click()
    press(tab, "Escape")
    assert exported(tab, tmp_path) == answers


def test_answers_can_be_copied_as_text_and_deleted_from_a_shared_computer(tab: Page, tmp_path: Path) -> None:
    sheet = a_sheet([variant("a" * 12, ["Hello?"], "Here.")])
    tab.goto(written(tmp_path, sheet))
    skip_training(tab, sheet)
    press(tab, "3 2 1 Enter")
    assert heading(tab) == "That was the last one. Thank you."
    tab.get_by_role("button", name="Show my answers as text").click()
    assert tab.evaluate("getSelection().toString()") == tab.locator("textarea").input_value()
    assert json.loads(tab.locator("textarea").input_value()) == exported(tab, tmp_path)
    tab.get_by_text("On a shared computer").click()
    tab.get_by_role("button", name="Delete my answers").click()
    tab.get_by_role("button", name="Press once more").click()
    tab.get_by_role("button", name="I have read this").wait_for()
    assert "aaaaaaaaaaaa" not in tab.evaluate("JSON.stringify(localStorage)")


# Hostile texts


def test_hostile_texts_run_nothing_and_are_shown_and_kept_as_they_are(tab: Page, tmp_path: Path) -> None:
    items: list[dict[str, Any]] = [variant(code(at), [text, text, text], text, text) for at, text in enumerate(HOSTILE)]
    turns = [
        {"role": ("seeker", "helper")[at % 2], "text": text, "strategy": HOSTILE[0] if at % 2 else None} for at, text in enumerate(HOSTILE)
    ]
    items.append({"item": "d" * 12, "kind": "dialogue", "scenario": HOSTILE[1], "situation": HOSTILE[2], "turns": turns})
    sheet = a_sheet(items)
    sheet["strategies"].append({"name": HOSTILE[0], "phase": HOSTILE[1], "gloss": HOSTILE[2]})
    sheet["release"]["name"] = HOSTILE[1]
    tab.goto(written(tmp_path, sheet))
    skip_training(tab, sheet)
    for text in HOSTILE:
        assert tab.locator(".reply").evaluate("one => one.textContent") == text
        assert tab.locator(".text").evaluate_all("all => all.map((one) => one.textContent)") == [text] * 5
        tab.locator("summary").click()
        remark = re.sub(r"[\r\x00-\x08\x0b-\x1f\x7f]", "", text)
        tab.locator("textarea").fill(remark)
        tab.locator("[name=coherence]").first.focus()
        press(tab, "2 2 2 Enter")
    assert tab.locator(".transcript .text").evaluate_all("all => all.map((one) => one.textContent)") == list(HOSTILE)
    assert tab.title() == "8 of 9 done · Review"
    assert tab.locator("script").count() == 2
    remarks = [one["comment"] for one in exported(tab, tmp_path)["judgements"]]
    assert remarks == [re.sub(r"[\r\x00-\x08\x0b-\x1f\x7f]", "", text) for text in HOSTILE]


def test_a_script_that_is_not_the_pages_own_is_refused_by_its_policy(tab: Page, catalogue: Catalogue, tmp_path: Path) -> None:
    html = page(seed_sheet(catalogue)).replace("</main>", "</main><script>document.body.id = 'ran'</script>")
    (tmp_path / "page.html").write_text(html, encoding="utf-8")
    with pytest.raises(AssertionError, match="Content Security Policy"), watched(tab.context.browser.new_context()) as context:  # type: ignore[union-attr]
        one = context.new_page()
        one.goto((tmp_path / "page.html").as_uri())
        assert one.locator("body#ran").count() == 0


@given(st.text())
def test_embedded_json_holds_no_markup_and_reads_back_the_same(text: str) -> None:
    embedded = embedded_json({"text": text, text: 1})
    assert embedded.isascii()
    assert not set("<>&") & set(embedded)
    assert json.loads(embedded) == {"text": text, text: 1}


# For everybody


def test_axe_finds_nothing_serious_on_any_screen_in_light_or_dark(tab: Page, catalogue: Catalogue, tmp_path: Path) -> None:
    sheet = seed_sheet(catalogue)
    found: list[str] = []

    def look() -> None:
        tab.emulate_media(color_scheme="light", reduced_motion="reduce")
        found.extend(serious_findings(tab))
        tab.emulate_media(color_scheme="dark")
        found.extend(serious_findings(tab, "color-contrast"))

    tab.goto(written(tmp_path, sheet))
    look()
    consent(tab)
    press(tab, "1 1 1 Enter")
    look()
    skip_training(tab, sheet)
    press(tab, "3")
    for keys in ("", "l", "Escape g", "Escape s", "Escape Escape", "Escape ?"):
        press(tab, keys)
        look()
    press(tab, "Escape l")
    tab.get_by_role("button", name="11. Dialogue").click()
    press(tab, "2")
    look()
    assert not found


def test_nothing_is_wider_than_a_phone(tab: Page, catalogue: Catalogue, tmp_path: Path) -> None:
    tab.set_viewport_size({"width": 360, "height": 740})
    sheet = seed_sheet(catalogue)
    tab.goto(written(tmp_path, sheet))
    widths = [tab.evaluate("document.documentElement.scrollWidth")]
    skip_training(tab, sheet)
    for keys in ("", "l", "Escape g", "Escape s", "Escape Escape", "Escape ?"):
        press(tab, keys)
        widths.append(tab.evaluate("document.documentElement.scrollWidth"))
    assert widths == [360] * 7


def test_single_keys_can_be_switched_off(tab: Page, tmp_path: Path) -> None:
    sheet = a_sheet([variant("a" * 12, ["Hello?"], "Here.")])
    tab.goto(written(tmp_path, sheet))
    skip_training(tab, sheet)
    press(tab, "?")
    tab.get_by_label("Use single letters").uncheck()
    press(tab, "Escape 1 l")
    assert heading(tab) == "Reply 1 of 1"
    assert tab.locator("input:checked").count() == 0


# Without a browser


def test_equal_sheets_give_equal_pages_that_name_nothing_outside(catalogue: Catalogue) -> None:
    sheet = seed_sheet(catalogue)
    html = page(sheet)
    assert html == page(json.loads(json.dumps(sheet)))
    assert not re.search(r"https?:|//[a-z]|@import|url\(", html.split('id="data"')[0])


def test_training_texts_are_in_no_seed_and_use_every_rating_of_every_scale() -> None:
    replies = [*TRAINING["training"], *TRAINING["test"]]
    seeds = "\n".join(path.read_text(encoding="utf-8") for path in data_folder("scenarios").glob("*.yaml"))
    known = shingles(seeds, 7)
    for one in replies:
        for text in (one["situation"], one["text"], *(turn["text"] for turn in one["context"])):
            assert not shingles(text, 7) & known, text
        assert one["context"][-1]["role"] == "seeker"
    for scale in SCALES:
        assert {one["ratings"][scale] for one in TRAINING["training"]} == {1, 2, 3}


def test_the_guidance_for_spreadsheets_holds_every_anchor_and_every_explanation_but_not_the_test() -> None:
    told = guidance_markdown()
    anchors = [anchor for scale in read_yaml(data_folder("review") / "guidance.yaml", "guidance")["scales"] for anchor in scale["anchors"]]
    assert all(text in told for text in anchors + [one["explanation"] for one in TRAINING["training"]])
    assert not any(one["text"] in told for one in TRAINING["test"])


def test_the_guidance_for_spreadsheets_defines_every_strategy_and_names_every_column_with_what_may_stand_in_it() -> None:
    told = guidance_markdown()
    for one in load_taxonomy().strategies:
        assert f"| {one.name} | {one.phase} | {one.definition} |" in told
    columns = read_yaml(data_folder("review") / "guidance.yaml", "guidance")["columns"]
    assert tuple(one["name"] for one in columns) == FILLED
    assert {one["name"]: one["choices"] for one in columns if one["choices"]} == CHOICES
    assert all(f"| `{one['name']}` | {one['rows']} | " in told and one["about"] in told for one in columns)


def test_page_and_guidance_tell_the_same_rules_for_borderline_replies(catalogue: Catalogue) -> None:
    rules = read_yaml(data_folder("review") / "guidance.yaml", "guidance")["borderline"]
    shown = html.unescape(page(seed_sheet(catalogue)))
    assert len(rules) >= 4 and all(rule in guidance_markdown() and rule in shown for rule in rules)


def test_no_phone_number_and_no_address_stands_in_what_raters_read() -> None:
    texts = " ".join(path.read_text(encoding="utf-8") for path in data_folder("review").glob("*.yaml"))
    assert not re.search(r"(?<!\d)(?!1911)\d{3,}|\+\d|www\.|https?:", texts)


def test_the_schemas_name_the_scales_in_one_way() -> None:
    assert tuple(schema("guidance")["properties"]["scales"]["items"]["properties"]["name"]["enum"]) == SCALES
    assert tuple(schema("training")["$defs"]["reply"]["properties"]["ratings"]["required"]) == SCALES
