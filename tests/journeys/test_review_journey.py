"""The whole way of a review: sent out, rated in a browser by keyboard alone, taken back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from empathy_eval.raters.review.export import export_review
from empathy_eval.raters.review.import_reviews import import_reviews
from empathy_eval.raters.review.record import CRITERIA
from empathy_eval.raters.review.sample import ReviewDesign
from empathy_eval.releases.assemble.write import Released

from tests.doubles.browser import browser, playwright, saved, tab  # noqa: F401
from tests.doubles.raters import items_of, key_of
from tests.raters.test_review_page import heading, press, rate, train

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_what_is_entered_in_the_browser_arrives_in_the_record_exactly(
    tab: Page,  # noqa: F811
    released: tuple[Path, Released],
    tmp_path: Path,
) -> None:
    review = tmp_path / "review"
    export_review(released[0], review, ReviewDesign(pairs=10, dialogues=3, raters=9))
    tab.goto((review / "raters" / "rater-01" / "review.html").as_uri())
    train(tab)
    press(tab, "Enter")
    key = items_of(key_of(review), "rater-01")
    shown = list(key)
    meant: dict[str, dict[str, object]] = {}
    for at, code in enumerate(shown):
        if key[code]["kind"] == "variant":
            assert heading(tab).startswith("Reply")
            meant[code] = {name: 1 + (at + place) % 3 for place, name in enumerate(CRITERIA)}
            rate(tab, {name: 1 + (at + place) % 3 for place, name in enumerate(CRITERIA)})
            press(tab, "Enter")
        else:
            assert heading(tab).startswith("Dialogue")
            press(tab, "1 " * len(key[code]["turns"]) + "1 Enter")
            meant[code] = {"decision": "keep", "turns": sorted(map(int, key[code]["turns"]))}
    press(tab, "s")
    answers = saved(tab, "Save my answers to a file", tmp_path)
    record = import_reviews(released[0], [answers], review / "key.json", tmp_path / "reviews.json").record
    found = {
        one["item"]: {name: one[name] for name in CRITERIA}
        if one["kind"] == "variant"
        else {"decision": one["decision"], "turns": [tag["turn"] for tag in one["tags"] if tag["right"]]}
        for one in record["judgements"]
    }
    assert found == meant
    assert len({entry["kind"] for entry in key.values()}) == 2
