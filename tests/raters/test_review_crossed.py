"""Crossed items in a review: one context each, replies by letters that tell nothing, every form back, and what is made of the choices."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.raters.review.export import Exported, export_review
from empathy_eval.raters.review.human_evaluation import crossed_reading
from empathy_eval.raters.review.import_reviews import import_reviews
from empathy_eval.raters.review.sample import ReviewDesign
from empathy_eval.releases.assemble.write import Released

from tests.doubles.browser import serious_findings
from tests.doubles.raters import FORMS, fill, items_of, key_of, kind_and_cold
from tests.raters.test_review_page import a_sheet, code, consent, exported, heading, press, written

if TYPE_CHECKING:
    from playwright.sync_api import Page

DESIGN = ReviewDesign(pairs=6, dialogues=1, crossed=9, raters=15)


@pytest.fixture(scope="module")
def sent(released: tuple[Path, Released], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Exported]:
    folder = tmp_path_factory.mktemp("sent") / "review"
    return folder, export_review(released[0], folder, DESIGN)


def sheet_of(folder: Path, rater: str) -> dict[str, Any]:
    text = (folder / "raters" / rater / "review.html").read_text(encoding="utf-8")
    value: dict[str, Any] = json.loads(text.split('id="data">')[1].split("</script>")[0])["sheet"]
    return value


def test_nobody_sees_two_contexts_of_an_item_and_nothing_tells_which_reply_fits(sent: tuple[Path, Exported]) -> None:
    folder, made = sent
    crossed = {code: one for code, one in made.key["items"].items() if one["kind"] == "crossed"}
    assert len({one["crossed_id"] for one in crossed.values()}) == 3
    seen = Counter((one["rater"], one["crossed_id"]) for one in crossed.values())
    assert set(seen.values()) == {1}
    votes = Counter((one["crossed_id"], one["context"]) for one in crossed.values())
    assert set(votes.values()) == {3} and len(votes) == 6
    letters = Counter(one["fits"] for one in crossed.values())
    assert min(letters["A"], letters["B"]) >= 4, letters
    others = {
        (one["rater"], one.get("dialogue_id") or one["pair_id"].rpartition("-")[0])
        for one in made.key["items"].values()
        if one["kind"] != "crossed"
    }
    assert not {(one["rater"], one["crossed_id"].rpartition("-")[0]) for one in crossed.values()} & others
    assert "is taken: another would reveal" in " ".join(made.sample.notes)
    shown = [item for rater in made.loads for item in sheet_of(folder, rater)["items"] if item["kind"] == "crossed"]
    assert all(
        item.keys() == {"item", "kind", "scenario", "flags", "context", "reply_a", "reply_b"} and item["context"][-1]["role"] == "seeker"
        for item in shown
    )


def test_the_letter_that_the_key_names_is_the_reply_that_fits(released: tuple[Path, Released], sent: tuple[Path, Exported]) -> None:
    import pyarrow.parquet as pq

    rows = {row["crossed_id"]: row for path in (released[0] / "data" / "crossed").iterdir() for row in pq.read_table(path).to_pylist()}
    folder, made = sent
    for rater in made.loads:
        for item in sheet_of(folder, rater)["items"]:
            entry = made.key["items"][item["item"]]
            if entry["kind"] == "crossed":
                row = rows[entry["crossed_id"]]
                assert item["context"] == row[f"context_{entry['context']}"]
                assert item[f"reply_{entry['fits'].lower()}"] == row[f"reply_{entry['context']}"]


def contrary(code: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Takes the fitting reply in the first context and the same one, which does not fit, in the second."""
    if entry["kind"] != "crossed":
        return kind_and_cold(code, entry)
    other = {"A": "B", "B": "A"}[entry["fits"]]
    return {"decision": entry["fits"] if entry["context"] == 1 else other, "comment": "=1"}


@pytest.mark.parametrize("form", FORMS)
def test_choices_come_back_in_every_form(form: str, released: tuple[Path, Released], sent: tuple[Path, Exported], tmp_path: Path) -> None:
    folder, made = sent
    files = [path for rater in list(made.loads)[:2] for path in fill(folder, rater, form, contrary, tmp_path / "back")]
    done = import_reviews(released[0], files, folder / "key.json", tmp_path / "reviews.json")
    key = key_of(folder)
    sent_out = {code: one for rater in list(made.loads)[:2] for code, one in items_of(key, rater).items() if one["kind"] == "crossed"}
    got = {one["item"]: one for one in done.record["judgements"] if one["kind"] == "crossed"}
    assert got.keys() == sent_out.keys() and all(one["comment"] == "=1" for one in got.values())
    with (tmp_path / "reviews.crossed.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["item"], row["rating"]) for row in rows} == {
        (f"{one['crossed_id']}:context-{one['context']}", str(2 - one["context"])) for one in sent_out.values()
    }
    assert main(["agree", str(tmp_path / "reviews.crossed.csv")]) == 0


def test_a_choice_that_is_neither_letter_is_reported_with_its_row(
    released: tuple[Path, Released], sent: tuple[Path, Exported], tmp_path: Path
) -> None:
    def neither(code: str, entry: dict[str, Any]) -> dict[str, Any]:
        return {"decision": "keep"} if entry["kind"] == "crossed" else kind_and_cold(code, entry)

    files = fill(sent[0], "rater-01", "csv", neither, tmp_path)
    with pytest.raises(InputError, match=r'row \d+: decision: "keep" is not known\n  Fix: use one of A, B'):
        import_reviews(released[0], files, sent[0] / "key.json", tmp_path / "reviews.json")


def test_what_raters_chose_is_computed_as_by_hand() -> None:
    def vote(item: str, context: int, right: bool, rater: int) -> dict[str, Any]:
        about = {"kind": "crossed", "review": "x", "rater": f"rater-{rater:02d}", "crossed_id": item, "context": context, "fits": "A"}
        return {**about, "decision": "A" if right else "B"}

    one, other, third = "001-seed-x1", "002-seed-x1", "002-seed-x2"
    votes = [vote(one, context, True, rater) for context in (1, 2) for rater in range(3)]  # 6 of 6; both
    votes += [vote(other, 1, rater < 2, rater) for rater in range(3)] + [vote(other, 2, rater < 1, rater) for rater in range(2)]  # 2/3, 1/2
    votes += [vote(third, 1, True, 1)]  # one context alone says nothing of both
    found = crossed_reading({"judgements": votes}, 50, 0)
    assert found and (found["items"], found["raters"]) == (3, 3)
    assert found["fitting"]["mean"] == round((6 + 2 + 1 + 1) / 12, 4) and found["fitting"]["choices"] == 12
    assert found["both_right"]["mean"] == 0.5 and found["both_right"]["items"] == 2
    assert crossed_reading({"judgements": []}, 50, 0) is None


def test_another_review_of_another_text_is_another_item() -> None:
    about = {"kind": "crossed", "rater": "rater-01", "crossed_id": "001-seed-x1", "fits": "A", "decision": "A"}
    found = crossed_reading({"judgements": [{**about, "review": name, "context": at} for at, name in enumerate(("old", "new"), 1)]}, 5, 0)
    assert found and found["items"] == 2 and found["both_right"] is None


def test_too_few_raters_are_reported_with_what_would_do(released: tuple[Path, Released], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"9 are too few.*\n  Fix: give --raters 15 or more, .* a review of their own"):
        export_review(released[0], tmp_path / "out", replace(DESIGN, raters=9))


def test_a_release_without_crossed_items_says_so(released: tuple[Path, Released], tmp_path: Path) -> None:
    bare = shutil.copytree(released[0], tmp_path / "bare")
    shutil.rmtree(bare / "data" / "crossed")
    with pytest.raises(InputError, match="holds no crossed items"):
        export_review(bare, tmp_path / "out", DESIGN)


def test_a_reply_is_chosen_by_keyboard_without_any_practice_before(tab: Page, tmp_path: Path) -> None:
    told = {"scenario": "Sleep", "context": [{"role": "seeker", "text": "he never rang"}]}
    items = [{"item": code(at), "kind": "crossed", **told, "reply_a": f"<b>a</b> {at}", "reply_b": f"b {at}"} for at in range(2)]
    tab.goto(written(tmp_path, a_sheet(items)))
    consent(tab)
    assert heading(tab) == "Two replies 1 of 2"
    assert tab.locator("blockquote").all_inner_texts() == ["<b>a</b> 0", "b 0"]
    press(tab, "Enter")
    assert tab.locator("#said").inner_text() == "Still open: A or B."
    press(tab, "2 Enter 1 Enter")
    assert not serious_findings(tab)
    chosen = exported(tab, tmp_path)["judgements"]
    assert chosen == [{"item": code(at), "kind": "crossed", "decision": "BA"[at], "comment": ""} for at in range(2)]
