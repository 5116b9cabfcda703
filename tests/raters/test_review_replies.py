"""Replies of systems in a review: read with all that is wrong at once, sent out so that nothing tells whose they are, taken back."""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.design.dataset import column
from empathy_eval.raters.people.human_correlation import ratings_of_release
from empathy_eval.raters.review.answers import read_rows
from empathy_eval.raters.review.export import Exported, design_of, export_review
from empathy_eval.raters.review.human_evaluation import group_lines, mean_of, review_facts
from empathy_eval.raters.review.import_reviews import import_reviews
from empathy_eval.raters.review.record import CRITERIA
from empathy_eval.raters.review.replies import read_replies
from empathy_eval.raters.review.sample import ReviewDesign

from tests.doubles.raters import FORMS, fill, items_of, key_of
from tests.doubles.replies import HOSTILE, SYSTEMS, rows_for, written
from tests.raters.test_review_crossed import sheet_of
from tests.raters.test_review_sample import unpacked

PAIR = "003-seed-t01"
DESIGN = ReviewDesign(pairs=8, dialogues=0, raters=27)
# What each system deserves on all three criteria.
WORTH = dict(zip(SYSTEMS, (1, 2, 3), strict=True))


def by_worth(code: str, entry: dict[str, Any]) -> dict[str, Any]:
    return {**dict.fromkeys(CRITERIA, WORTH.get(entry.get("system", ""), 2)), "comment": "=1"}


@pytest.fixture(scope="module")
def sent(light: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Exported]:
    folder = tmp_path_factory.mktemp("sent")
    rows = rows_for(light)[:-1]  # the last context lacks a system
    return folder / "review", export_review(light, folder / "review", DESIGN, replies_file=written(folder / "replies.csv", rows))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_replies_are_read_from_each_form_and_contexts_that_not_all_answered_are_counted(suffix: str, light: Path, tmp_path: Path) -> None:
    names = column(light, "pairs", "pair_id")
    rows: list[dict[str, object]] = [{"note": 1, **row} for row in rows_for(light)[:-1]]
    found = read_replies(written(tmp_path / f"replies{suffix}", rows), names)
    assert found.systems == tuple(sorted(SYSTEMS))
    assert len(found.texts) == len(names) - 1 and found.notes[0].startswith("1 contexts that not all systems answered are left out")
    assert found.texts[names[0]] == {row["system"]: row["text"].strip() for row in rows_for(light)[:3]}
    assert list(found.notes) == [f"1 contexts that not all systems answered are left out; {len(names) - 1} remain"]


FAULTS: list[tuple[dict[str, str], str]] = [
    ({"pair_id": "003-seed-t99"}, 'line 2: "003-seed-t99" is not a pair of this release'),
    ({"pair_id": "=1"}, 'line 3: pair_id: "=1" does not match'),
    ({"text": " \n "}, 'line 5: text: "" does not match'),
    ({"text": "a" * 10_001}, "line 6: text: "),
    ({"system": "Near-Empathetic"}, 'line 7: "Near-Empathetic" is the name of a text of the release'),
    ({"system": "=cmd"}, 'line 8: system: "=cmd" does not match'),
    ({"system": "<b>x</b>"}, "line 9: system: "),
    ({"system": "a:b"}, "line 10: system: "),
    ({"system": "a" * 65}, "line 11: system: "),
    ({}, "12"),
    ({}, 'line 13: "anton" replies to "003-seed-t01" again, after line 12'),
]


def test_all_that_is_wrong_with_replies_is_reported_at_once_with_its_line(tmp_path: Path) -> None:
    good = {"pair_id": PAIR, "system": "anton", "text": "Go on."}
    path = written(tmp_path / "replies.csv", [{**good, **change} for change, _ in FAULTS])
    with path.open("a") as stream:
        stream.write("one,two,three,four\r\n")
    with pytest.raises(InputError) as caught:
        read_replies(path, [PAIR])
    said = str(caught.value)
    assert all(f"{path}: {what}" in said for _, what in FAULTS if what != "12"), said
    assert f"{path}: line 14: has 4 cells, but the header has 3" in said
    assert len(caught.value.problems) == len(FAULTS), said


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("r.xlsx", "", 'ends in ".xlsx"'),
        ("r.csv", "", 'no "pair_id" and no "system" and no "text"'),
        ("r.csv", "pair_id,system,text,text\n", '2 "text"'),
        ("r.csv", "pair_id,system,text\n", "holds no reply"),
        ("r.tsv", f"pair_id\tsystem\ttext\n{PAIR}\ta\tx\n003-seed-t03\tb\tx\n", "has no context that all 2 systems replied to: a, b"),
        ("r.jsonl", '{"pair_id": "003-seed-t01"}\n[1]\n{"pair_id": "003-seed-t01", "system": "a", "text": "\\ud83d"}', "line 3"),
        ("r.jsonl", '{"pair_id": 1, "system": null, "text": ["x"]}', "system: null is not of type string"),
    ],
)
def test_a_file_that_is_none_of_replies_is_refused_in_words(name: str, text: str, what: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        read_replies(tmp_path / name, [PAIR, "003-seed-t03"])
    assert what in str(caught.value)


def test_a_reply_that_names_a_system_is_counted_for_who_sends_it_out(tmp_path: Path) -> None:
    rows = [{"pair_id": PAIR, "system": system, "text": text} for system, text in (("anton", "As BERTA says."), ("berta", "I am antony."))]
    assert list(read_replies(written(tmp_path / "r.csv", rows), [PAIR]).notes) == [
        "1 replies contain the name of a system, which raters can read"
    ]


def test_nobody_sees_two_replies_to_one_context_and_each_has_its_raters(sent: tuple[Path, Exported]) -> None:
    entries = list(sent[1].key["items"].values())
    assert {entry["kind"] for entry in entries} == {"reply"}
    assert set(Counter((one["rater"], one["pair_id"]) for one in entries).values()) == {1}
    votes = Counter((one["pair_id"], one["system"]) for one in entries)
    assert len(votes) == 8 * 3 and set(votes.values()) == {3}
    assert sent[1].key["settings"]["replies"] and "design" not in sent[1].key["settings"]


def test_nothing_that_raters_get_tells_a_system_or_that_it_is_no_variant(light: Path, sent: tuple[Path, Exported], tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    export_review(light, plain, DESIGN)
    settings = sent[1].key["settings"]
    for rater in sorted((sent[0] / "raters").iterdir()):
        files = {path.relative_to(rater).as_posix(): path.read_bytes() for path in rater.rglob("*") if path.is_file()}
        assert files.keys() == {
            path.relative_to(plain / "raters" / rater.name).as_posix() for path in (plain / "raters" / rater.name).rglob("*.*")
        }
        ids = {one["pair_id"] for one in items_of(sent[1].key, rater.name).values()}
        for name, data in {**files, **unpacked(rater / f"{rater.name}.xlsx")}.items():
            told = [word for word in (*SYSTEMS, settings["replies"], '"system"', "pair_id") if word.encode() in data]
            assert not told, (rater.name, name)
            # The replies of this test hold the id of their pair; nothing else does.
            assert not [one for one in ids if data.count(one.encode()) > data.count(f"{one}: ".encode())], (rater.name, name)
        items = [sheet_of(folder, rater.name)["items"][0] for folder in (sent[0], plain)]
        assert items[0].keys() == items[1].keys() and items[0]["kind"] == items[1]["kind"] == "variant"


def test_hostile_replies_are_texts_in_every_file(sent: tuple[Path, Exported]) -> None:
    found = Counter[str]()
    for folder in (sent[0] / "raters").iterdir():
        rows = {form: [row["text"] for _, row in read_rows(folder / f"{folder.name}.{form}")] for form in ("csv", "xlsx")}
        shown = [item["text"] for item in sheet_of(sent[0], folder.name)["items"]]
        assert rows["csv"] == rows["xlsx"] == shown
        found.update(end for text in shown for end in HOSTILE if text.endswith(end))
        page = (folder / "review.html").read_text(encoding="utf-8")
        assert "<script>document" not in page and "<img" not in page
    assert len(found) == len(HOSTILE)


def test_who_has_the_release_and_the_names_of_systems_cannot_compute_codes(
    light: Path, sent: tuple[Path, Exported], tmp_path: Path
) -> None:
    rows = rows_for(light)
    rows[0]["text"] += "."  # another file of the same systems
    other = export_review(light, tmp_path / "review", DESIGN, replies_file=written(tmp_path / "replies.csv", rows[:-1]))
    assert not other.key["items"].keys() & sent[1].key["items"].keys()


@pytest.mark.e2e
@pytest.mark.parametrize("form", FORMS)
def test_ratings_of_replies_come_back_in_every_form_and_are_reported_by_system(
    form: str, light: Path, sent: tuple[Path, Exported], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, made = sent
    files = [path for rater in made.loads for path in fill(folder, rater, form, by_worth, tmp_path / "back")]
    command = ["review", "import", str(light), *map(str, files), "--key", str(folder / "key.json"), "--reviews", str(tmp_path / "r.json")]
    assert main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["by_group"]
    assert [(one["group"], one["design"], one["ratings"], one["contexts"], one["raters"]) for one in told["groups"]] == [
        (name, "within", 24, 8, len({one["rater"] for one in made.key["items"].values() if one["system"] == name}))
        for name in sorted(SYSTEMS)
    ]
    for one in told["groups"]:
        assert all(one[name] == dict.fromkeys(("mean", "low", "high"), WORTH[one["group"]]) for name in CRITERIA)
    for one in told["differences"]:
        gap = WORTH[one["group"]] - WORTH[one["other"]]
        assert one["contexts"] == 8 and one["empathy"] == {"mean": gap, "low": gap, "high": gap}
    assert len(told["differences"]) == 3
    with (tmp_path / "r.ratings.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert {row["item"] for row in rows} == {f"{one['pair_id']}::{one['system']}" for one in made.key["items"].values()}
    assert not (tmp_path / "r.study.csv").exists()
    assert main(command) == 0
    assert "anton minus berta, by context (8):  coherence -1.00 [-1.00, -1.00]" in capsys.readouterr().out


def test_the_figures_by_system_are_as_by_hand(light: Path, sent: tuple[Path, Exported], tmp_path: Path) -> None:
    from empathy_eval.raters.review.human_evaluation import by_group

    first: defaultdict[tuple[str, str], int] = defaultdict(int)

    def uneven(code: str, entry: dict[str, Any]) -> dict[str, Any]:
        first[entry["pair_id"], entry["system"]] += 1
        # One of three raters gives anton 3, the others 1: 5/3; berta has 2 from all.
        three = entry["system"] == "anton" and first[entry["pair_id"], "anton"] == 1
        return {**by_worth(code, entry), **({"empathy": 3} if three else {})}

    files = [path for rater in sent[1].loads for path in fill(sent[0], rater, "csv", uneven, tmp_path)]
    record = import_reviews(light, files, sent[0] / "key.json", tmp_path / "reviews.json").record
    found = by_group(record)
    assert found
    groups = {one["group"]: one for one in found["groups"]}
    assert groups["anton"]["empathy"]["mean"] == round(5 / 3, 4)
    difference = next(one for one in found["differences"] if {one["group"], one["other"]} == {"anton", "berta"})
    assert difference["empathy"]["mean"] == round(5 / 3 - 2, 4)
    assert by_group({**record, "judgements": []}) is None


def test_a_release_says_nothing_of_replies_and_score_leaves_them_out(light: Path, sent: tuple[Path, Exported], tmp_path: Path) -> None:
    record = tmp_path / "reviews.json"
    files = [path for rater in list(sent[1].loads)[:3] for path in fill(sent[0], rater, "page", by_worth, tmp_path / "back")]
    import_reviews(light, files, sent[0] / "key.json", record)
    with pytest.raises(InputError, match="holds judgements of replies of systems, but none of texts of a release"):
        review_facts(record, {}, 10, 0)
    with pytest.raises(InputError, match="rates no variant of a text, only replies of systems"):
        ratings_of_release(light, record.with_name("reviews.ratings.csv"))

    plain = tmp_path / "plain"
    made = export_review(light, plain, ReviewDesign(pairs=4, dialogues=0, raters=12))
    files = [path for rater in made.loads for path in fill(plain, rater, "page", by_worth, tmp_path / "plainly")]
    alone = tmp_path / "alone.json"
    for path in (alone, record):
        import_reviews(light, files, plain / "key.json", path)
    facts = [{name: value for name, value in review_facts(path, {}, 10, 0).items() if name != "record"} for path in (alone, record)]
    assert facts[0] == facts[1] and facts[0]["judgements"] == 24
    _, table, notes = ratings_of_release(light, record.with_name("reviews.ratings.csv"))
    assert len(table.items) == 8
    replies = sum(len(items_of(key_of(sent[0]), rater)) for rater in list(sent[1].loads)[:3])
    assert notes == (f"ratings of replies of systems, which are no part of the release, are left out: {3 * replies}",)


def test_a_variant_with_a_slip_in_its_name_is_no_system(light: Path, tmp_path: Path) -> None:
    table = tmp_path / "ratings.csv"
    table.write_text(
        f"item,rater,criterion,rating\n{PAIR}:empathtic,a,empathy,3\n{PAIR}:empathetic,a,empathy,3\n{PAIR}::anton,a,empathy,1\n"
    )
    with pytest.raises(InputError, match=f'"{PAIR}:empathtic" names no text of a release') as caught:
        ratings_of_release(light, table)
    assert len(caught.value.problems) == 1


@pytest.mark.e2e
def test_nobody_sees_a_reply_to_a_turn_and_one_of_its_cells(light: Path, tmp_path: Path) -> None:
    replies = written(tmp_path / "replies.csv", rows_for(light))
    design = ReviewDesign(pairs=len(column(light, "pairs", "pair_id")), dialogues=0, per_item=2, raters=90, cells=5)
    made = export_review(light, tmp_path / "review", design, replies_file=replies)
    entries = list(made.key["items"].values())
    assert set(Counter((one["rater"], one["pair_id"]) for one in entries).values()) == {1}
    assert "5 contexts are left out for replies, because their own texts are rated" in made.sample.notes
    assert made.sample.count("reply") == design.pairs - 5


def test_too_few_raters_for_replies_and_cells_are_reported_why(light: Path, tmp_path: Path) -> None:
    replies = written(tmp_path / "replies.csv", rows_for(light))
    asked = design_of({"pairs": 3, "dialogues": 0, "cells": 3, "raters": 20}, replying=True)
    with pytest.raises(InputError) as caught:
        export_review(light, tmp_path / "review", asked, replies_file=replies)
    said = str(caught.value)
    assert '--pairs: "3" is too many: a rater sees one turn of a dialogue at most' in said and "can be given 0 of the" in said
    assert "give --raters 21 or more, a smaller --per-item, or --texts-per-turn 1" in said
    with pytest.raises(InputError, match=r"11 are too few: a dialogue has a turn of 3 replies, and is reviewed as a whole.*\n.*12 or"):
        export_review(light, tmp_path / "review", ReviewDesign(pairs=3, dialogues=3, raters=11), replies_file=replies)


def test_two_raters_rate_the_same_replies_one_of_each_context(light: Path, tmp_path: Path) -> None:
    replies = written(tmp_path / "replies.csv", rows_for(light))
    command = ["review", "export", str(light), "--out", str(tmp_path / "review"), "--replies", str(replies), "--raters", "2"]
    assert main([*command, "--per-item", "2"]) == 2, "three replies to each context take six raters"
    assert main([*command, "--per-item", "2", "--texts-per-turn", "1"]) == 0
    key = key_of(tmp_path / "review")
    rated = [{(one["pair_id"], one["system"]) for one in items_of(key, rater).values()} for rater in ("rater-01", "rater-02")]
    assert rated[0] == rated[1] and len(rated[0]) == 3 == len({pair.rpartition("-")[0] for pair, _ in rated[0]})
    assert Counter(system for _, system in rated[0]) == dict.fromkeys(SYSTEMS, 1) and key["settings"]["texts_per_turn"] == 1


def test_no_zero_is_reported_as_less_than_nothing() -> None:
    found = mean_of([("a", -0.00001), ("b", -0.00001)], 10, (0,))
    assert not [one for one in (found["mean"], found["low"], found["high"]) if str(one).startswith("-")]
    told = dict.fromkeys(CRITERIA, {"mean": -0.001, "low": -0.004, "high": 0.004})
    about = {"group": "a", "other": "b", "contexts": 2, **told}
    assert "-0.00" not in "\n".join(group_lines({"groups": [], "differences": [about], "signature": ""}))


@pytest.mark.e2e
def test_cells_can_be_rated_beside_replies_and_a_pack_of_replies_has_its_papers(light: Path, tmp_path: Path) -> None:
    replies = written(tmp_path / "replies.csv", rows_for(light))
    made = export_review(light, tmp_path / "both", ReviewDesign(pairs=6, dialogues=0, cells=2, raters=30), replies_file=replies)
    assert Counter(unit.kind for unit in made.sample.units) == {"reply": 6, "variant": 2}
    seen = defaultdict[tuple[str, str], set[str]](set)
    for one in made.key["items"].values():
        seen[one["rater"], one["pair_id"].rpartition("-")[0]].add(one["kind"])
    assert all(len(kinds) == 1 for kinds in seen.values()), "a reply and a variant of one dialogue"
    assert main(["review", "export", str(light), "--out", str(tmp_path / "pack"), "--pack", "--replies", str(replies)]) == 0
    key = json.loads((tmp_path / "pack" / "key.json").read_text())
    assert len({one["pair_id"] for one in key["items"].values()}) == 3, "one a dialogue"
    assert "one of several systems', and nobody saw two of one turn." in (tmp_path / "pack" / "CHECKLIST.md").read_text()
    assert "replies to conversations of the collection" in (tmp_path / "pack" / "papers" / "information.md").read_text()
