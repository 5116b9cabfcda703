"""What comes back: every form, every kind of mistake, and a record that says who judged what."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.raters.review.answers import read_rows
from empathy_eval.raters.review.export import export_review
from empathy_eval.raters.review.forms import COLUMNS, TIE
from empathy_eval.raters.review.import_reviews import Imported, import_reviews, import_summary
from empathy_eval.raters.review.record import training_results
from empathy_eval.raters.review.sample import ReviewDesign
from empathy_eval.releases.assemble.write import Released

from tests.doubles.raters import FORMS, fill, items_of, key_of, kind_and_cold, written

TABLES = ("reviews.json", "reviews.ratings.csv", "reviews.decisions.csv", "reviews.tags.csv")


@pytest.fixture(scope="module")
def sent(released: tuple[Path, Released], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A release, and the review of it that was sent out."""
    folder = tmp_path_factory.mktemp("sent") / "review"
    export_review(released[0], folder, ReviewDesign(pairs=12, raters=9))
    return released[0], folder


Take = Callable[..., Imported]


@pytest.fixture
def take(sent: tuple[Path, Path], tmp_path: Path) -> Take:
    """Imports files into the record of this test."""

    def done(*files: Path, **options: Any) -> Imported:
        return import_reviews(sent[0], files, sent[1] / "key.json", tmp_path / "reviews.json", **options)

    return done


def thorough(code: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Judgements that use everything there is: comments that a spreadsheet would run, a wrong tag, a removal with its reason."""
    said = {**kind_and_cold(code, entry), "comment": f"- seen {code}"}
    if entry["kind"] == "dialogue":
        said |= {"decision": "remove", "reason": "=too much\nfor me"}
        turn, tag = int(next(iter(entry["turns"]))), next(iter(entry["turns"].values()))["strategy"]
        said["tags"] = [
            {"turn": turn, "right": False, "strategy": "Offer Hope" if tag != "Offer Hope" else "Clarification"},
            *said["tags"][1:],
        ]
        said["remarks"] = [{"turn": at, "comment": f"=turn {at}\nof {code}"} for at in (0, *map(int, entry["turns"]))]
    return said


def meaning(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [{name: value for name, value in one.items() if name not in ("form", "source")} for one in record["judgements"]]


def test_every_form_brings_the_same_judgements(sent: tuple[Path, Path], tmp_path: Path) -> None:
    found = []
    for form in FORMS:
        files = fill(sent[1], "rater-01", form, thorough, tmp_path / form)
        record = import_reviews(sent[0], files, sent[1] / "key.json", tmp_path / form / "reviews.json").record
        assert {one["form"] for one in record["judgements"]} == {form}
        found.append(meaning(record))
    assert found[0] == found[1] == found[2] == found[3]
    items = items_of(key_of(sent[1]), "rater-01")
    assert len(found[0]) == len(items)
    for one in found[0]:
        entry = items[one["item"]]
        assert {name: one[name] for name in entry if name != "turns"} == {name: value for name, value in entry.items() if name != "turns"}
        assert one["comment"] == f"- seen {one['item']}"
        if one["kind"] == "dialogue":
            assert (one["decision"], one["reason"]) == ("remove", "=too much\nfor me")
            said = [(at, f"=turn {at}\nof {one['item']}") for at in (0, *sorted(map(int, entry["turns"])))]
            assert [(remark["turn"], remark["comment"]) for remark in one["remarks"]] == said, "on every turn, the seeker's too"
            assert [tag["turn"] for tag in one["tags"]] == sorted(map(int, entry["turns"]))
            assert [tag["right"] for tag in one["tags"]] == [False] + [True] * (len(one["tags"]) - 1)
            assert all(tag["tag"] == entry["turns"][str(tag["turn"])]["strategy"] for tag in one["tags"])


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_a_comment_is_welcome_on_every_row_of_a_turn_judged_or_not(form: str, sent: tuple[Path, Path], take: Take, tmp_path: Path) -> None:
    def remarking(code: str, entry: dict[str, Any]) -> dict[str, Any]:
        said = {**kind_and_cold(code, entry), "comment": "all of it"}
        return (
            said if entry["kind"] == "variant" else said | {"tags": [], "remarks": [{"turn": at, "comment": f"{at}"} for at in range(99)]}
        )

    (path,) = fill(sent[1], "rater-01", form, remarking, tmp_path / "in")
    rows = [row for _, row in read_rows(path)]
    assert all(row["comment"] for row in rows)
    judged = take(path).record["judgements"]
    remarks = [(one["item"], remark["turn"], remark["comment"]) for one in judged for remark in one.get("remarks", [])]
    assert sorted(remarks) == sorted((row["item"], int(row["turn"]), row["turn"]) for row in rows if row["kind"] == "turn")
    assert all(one["tags"] == [] for one in judged if one["kind"] == "dialogue")


def test_a_sheet_of_a_time_without_the_warning_is_taken(sent: tuple[Path, Path], take: Take, tmp_path: Path) -> None:
    (path,) = fill(sent[1], "rater-01", "csv", kind_and_cold, tmp_path / "in")
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [name for name in COLUMNS if name != "warning"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    assert take(path).new == len(items_of(key_of(sent[1]), "rater-01"))


def test_importing_again_changes_nothing_byte_for_byte(sent: tuple[Path, Path], take: Take, tmp_path: Path) -> None:
    files = [
        path
        for form, rater in zip(FORMS, ("rater-01", "rater-02", "rater-03", "rater-04"), strict=True)
        for path in fill(sent[1], rater, form, kind_and_cold, tmp_path / "in")
    ]
    first = take(*files)
    before = {name: (tmp_path / name).read_bytes() for name in TABLES}
    second = take(*files)
    assert {name: (tmp_path / name).read_bytes() for name in TABLES} == before
    assert (second.new, second.known, second.replaced) == (0, first.new, 0)
    take(files[0], replace=True)
    assert {name: (tmp_path / name).read_bytes() for name in TABLES} == before


def test_who_has_returned_how_much_and_who_nothing_is_reported_over_all_imports(
    sent: tuple[Path, Path], take: Take, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = key_of(sent[1])
    of = {rater: len(items_of(key, rater)) for rater in sorted({one["rater"] for one in key["items"].values()})}
    assert len(of) == 9
    (whole,) = fill(sent[1], "rater-01", "page", kind_and_cold, tmp_path / "in")
    assert take(whole).returned == {rater: (count if rater == "rater-01" else 0, count) for rater, count in of.items()}
    (path,) = fill(sent[1], "rater-02", "page", kind_and_cold, tmp_path / "in")
    half = json.loads(path.read_text())
    half["judgements"] = half["judgements"][:2]
    written(path, json.dumps(half))
    arguments = [
        "review",
        "import",
        str(sent[0]),
        str(path),
        "--key",
        str(sent[1] / "key.json"),
        "--reviews",
        str(tmp_path / "reviews.json"),
    ]
    assert main(arguments) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[1:5] == [
        f"{of['rater-01'] + 2} of {sum(of.values())} items have come back so far:",
        f"  rater-01   {of['rater-01']:>4} of {of['rater-01']}",
        f"  rater-02      2 of {of['rater-02']}",
        "nothing yet from rater-03, rater-04, rater-05, rater-06, rater-07, rater-08, rater-09",
    ]
    assert main([*arguments, "--json"]) == 0
    returned = json.loads(capsys.readouterr().out)["returned"]
    assert returned["rater-02"] == {"items": 2, "of": of["rater-02"]} and returned["rater-09"] == {"items": 0, "of": of["rater-09"]}


def test_the_same_judgements_in_another_file_add_no_source(sent: tuple[Path, Path], take: Take, tmp_path: Path) -> None:
    take(*fill(sent[1], "rater-01", "page", kind_and_cold, tmp_path / "in"))
    before = (tmp_path / "reviews.json").read_bytes()
    take(*fill(sent[1], "rater-01", "csv", kind_and_cold, tmp_path / "in"))
    assert (tmp_path / "reviews.json").read_bytes() == before


def test_a_file_that_is_filled_in_by_half_is_taken_and_the_rest_later(sent: tuple[Path, Path], take: Take, tmp_path: Path) -> None:
    (whole,) = fill(sent[1], "rater-01", "page", kind_and_cold, tmp_path / "in")
    value = json.loads(whole.read_text())
    half = written(tmp_path / "half.json", json.dumps({**value, "judgements": value["judgements"][:1]}))
    assert take(half).new == 1
    done = take(whole)
    assert (done.new, done.known) == (len(value["judgements"]) - 1, 1)
    assert {one["file"]: one["judgements"] for one in done.record["sources"].values()} == {
        "half.json": 1,
        "rater-01.json": len(value["judgements"]),
    }


def colder(code: str, entry: dict[str, Any]) -> dict[str, Any]:
    return {"coherence": 1, "helpfulness": 1, "empathy": 1} if entry["kind"] == "variant" else kind_and_cold(code, entry)


def test_a_different_judgement_is_a_named_conflict_and_replaces_only_on_request(
    sent: tuple[Path, Path], take: Take, tmp_path: Path
) -> None:
    (first,) = fill(sent[1], "rater-01", "page", kind_and_cold, tmp_path / "a")
    (later,) = fill(sent[1], "rater-01", "csv", colder, tmp_path / "b")
    take(first)
    before = (tmp_path / "reviews.json").read_bytes()
    with pytest.raises(InputError, match=r"rater-01.csv: row \d+: judges \"\w{12}\" differently from rater-01.json") as raised:
        take(later)
    variants = [entry for entry in items_of(key_of(sent[1]), "rater-01").values() if entry["kind"] == "variant"]
    assert len(raised.value.problems) == len(variants), "each of them is named"
    assert (tmp_path / "reviews.json").read_bytes() == before
    done = take(later, replace=True)
    assert done.replaced == len(variants) == len(done.record["replaced"])
    assert all(one["empathy"] == 1 for one in done.record["judgements"] if one["kind"] == "variant")
    after = (tmp_path / "reviews.json").read_bytes()
    take(first, later, replace=True)
    assert (tmp_path / "reviews.json").read_bytes() == after


def test_two_files_given_together_never_replace_each_other(sent: tuple[Path, Path], take: Take, tmp_path: Path) -> None:
    # A browser saves the second file under a name that sorts first: "rater-01 (1).json".
    (first,) = fill(sent[1], "rater-01", "page", kind_and_cold, tmp_path / "in")
    (saved,) = fill(sent[1], "rater-01", "page", colder, tmp_path / "again")
    later = saved.rename(tmp_path / "in" / "rater-01 (1).json")
    for _ in range(2):  # with nothing in the record, and with the first file in it
        for options in ({}, {"replace": True}):
            with pytest.raises(InputError, match=r'judges "\w+" differently from .*json, which is also given\n.*one after the other'):
                take(later, first, **options)
        take(first)
    done = take(later, replace=True)
    assert done.replaced and all(one["empathy"] == 1 for one in done.record["judgements"] if one["kind"] == "variant")
    after = (tmp_path / "reviews.json").read_bytes()
    take(later, first)
    take(later, first, replace=True)
    assert (tmp_path / "reviews.json").read_bytes() == after


def test_a_judgement_that_was_replaced_can_take_its_place_back(sent: tuple[Path, Path], take: Take, tmp_path: Path) -> None:
    (first,) = fill(sent[1], "rater-01", "page", kind_and_cold, tmp_path / "a")
    (later,) = fill(sent[1], "rater-01", "csv", colder, tmp_path / "b")
    meant = meaning(take(first).record)
    changed = take(later, replace=True).replaced
    assert take(first).record["judgements"] != meant, "only when told to"
    back = take(first, replace=True)
    assert (back.replaced, meaning(back.record)) == (changed, meant)
    assert {one["form"] for one in back.record["replaced"]} == {"csv"}
    assert len(back.record["replaced"]) == changed
    assert take(first, later, replace=True).record == back.record


def page_with(change: Callable[[dict[str, Any]], object]) -> Callable[[Path, Path], Path]:
    """A page's file with a change of its content."""

    def made(review: Path, out: Path) -> Path:
        (path,) = fill(review, "rater-01", "page", kind_and_cold, out)
        value = json.loads(path.read_text())
        change(value)
        return written(path, json.dumps(value))

    return made


def csv_with(pattern: str, repl: str) -> Callable[[Path, Path], Path]:
    """A CSV file with its first match of a pattern replaced."""

    def made(review: Path, out: Path) -> Path:
        (path,) = fill(review, "rater-01", "csv", kind_and_cold, out)
        text, count = re.subn(pattern, repl, path.read_text(), count=1)
        assert count
        return written(path, text)

    return made


def of_kind(value: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(one for one in value["judgements"] if one["kind"] == kind)


def swapped_texts(review: Path, out: Path) -> Path:
    """A spreadsheet of which only some columns were sorted: codes stand beside the texts of others."""
    return swapped(review, out, ["text"])


def swapped(review: Path, out: Path, columns: Iterable[str]) -> Path:
    """A spreadsheet in which the first two rows exchanged some of their columns."""
    (path,) = fill(review, "rater-01", "csv", kind_and_cold, out)
    with path.open(newline="") as stream:
        rows = list(csv.reader(stream))
    for place in map(COLUMNS.index, columns):
        rows[1][place], rows[2][place] = rows[2][place], rows[1][place]
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return path


@pytest.mark.parametrize("half", [COLUMNS[:10], COLUMNS[10:], COLUMNS[10:-2]], ids=["left", "right", "right but hidden"])
def test_a_spreadsheet_of_which_only_one_half_was_sorted_is_refused(
    half: tuple[str, ...], sent: tuple[Path, Path], take: Take, tmp_path: Path
) -> None:
    assert {"item", "text"} <= set(COLUMNS[:10]) and {"coherence", "comment"} <= set(COLUMNS[10:-2])
    with pytest.raises(InputError, match=r'row 2: has judgements of "\w{12}" beside "\w{12}"\n.*put the rows back') as raised:
        take(swapped(sent[1], tmp_path / "in", half))
    assert len(raised.value.problems) == 2
    assert take(swapped(sent[1], tmp_path / "in", COLUMNS)).new, "rows that were moved whole are welcome"


MISTAKES: list[tuple[Callable[[Path, Path], Path], str]] = [
    (page_with(lambda value: of_kind(value, "variant").update(empathy=4)), r"judgement \d+: empathy: 4 is out of range .*\n.*write 1, 2"),
    (page_with(lambda value: of_kind(value, "variant").update(empathy=2.5)), r"empathy: 2.5 is not of type integer"),
    (page_with(lambda value: of_kind(value, "variant").pop("empathy")), r'misses "empathy"'),
    (page_with(lambda value: of_kind(value, "variant").update(item="abcdefabcdef")), r'"abcdefabcdef" is not in this review'),
    (page_with(lambda value: of_kind(value, "variant").update(item="=1+1")), r"item: \"=1\+1\" does not match"),
    (page_with(lambda value: of_kind(value, "dialogue").update(item=of_kind(value, "variant")["item"])), r"is a variant, not a dialogue"),
    (page_with(lambda value: of_kind(value, "dialogue").update(decision="remove")), r"reason: \"\" does not match .*\n.*say why"),
    (page_with(lambda value: of_kind(value, "dialogue").update(decision="delete")), r'decision: "delete" is not known'),
    (page_with(lambda value: of_kind(value, "dialogue")["tags"].append({"turn": 0, "right": True})), r"turn 0 is not a helper turn"),
    (page_with(lambda value: of_kind(value, "dialogue")["tags"].append({"turn": 1, "right": True})), r"strategy of turn 1 twice"),
    (page_with(lambda value: of_kind(value, "dialogue")["tags"][0].update(right=False)), r'misses "strategy"'),
    (page_with(lambda value: value["judgements"].append(value["judgements"][0])), r'judges "\w+" again, as judgement 1 does'),
    (page_with(lambda value: value.update(rater="rater-02")), r'was sent to rater-01, not to "rater-02"'),
    (page_with(lambda value: value.update(review=f"s1-{'0' * 64}")), r'belongs to the review "s1-000000000000…"'),
    (page_with(lambda value: of_kind(value, "variant").update(comment="so \ud83d")), r'comment: holds half .* \(\\ud83d\) after "so "'),
    (page_with(lambda value: of_kind(value, "dialogue").update(remarks=[{"turn": 1, "comment": "\udfff"}])), r"comment on turn 1: holds"),
    (page_with(lambda value: of_kind(value, "dialogue").update(remarks=[{"turn": 1, "comment": " "}])), r"comment: \" \" does not match"),
    (page_with(lambda value: of_kind(value, "dialogue").update(remarks=[{"turn": 1, "comment": "a"}] * 2)), r"comments on turn 1 twice"),
    (page_with(lambda value: of_kind(value, "dialogue").update(reason="\udfff")), r"reason: holds half a character \(\\udfff\)"),
    (page_with(lambda value: value.update(format=2)), r"format: 2 is not known"),
    (page_with(lambda value: value.update(rating=[])), r'has unknown "rating"'),
    (csv_with(r",3,3,3,", ",3,,3,"), r'row \d+: misses "helpfulness"'),
    (csv_with(r",3,3,3,", ",3,three,3,"), r'helpfulness: "three" is not of type integer'),
    (csv_with(r"(,3,3,3,\w+,)", r"\1keep"), r'row \d+: has "keep" under decision'),
    (csv_with(r",right,", ",wrong,"), r'row \d+: right_strategy: is empty beside the tag "wrong"'),
    (csv_with(r",right,", ",maybe,"), r'row \d+: tag: "maybe" is not known\n.*write right or wrong'),
    (csv_with(r",keep,", ",,"), r'misses "decision"'),
    (csv_with(r",rater-01,", ",rater-02,"), r"holds rows of 2 raters"),
    (swapped_texts, r'row 2: "[^"]+…" is not the text that was sent'),
    (lambda review, out: written(out.with_suffix(".json"), "{"), r"is not JSON"),
    (lambda review, out: written(out.with_suffix(".json"), "[1]"), r"1 is not of type object"),
    (lambda review, out: written(out.with_suffix(".json"), "7"), r"7 is not of type object"),
    (page_with(lambda value: value.update(judgements=7)), r"judgements: 7 is not of type array"),
    (page_with(lambda value: value.update(judgements=[7])), r"judgement 1: 7 is not of type object"),
    (lambda review, out: written(out.with_suffix(".docx"), ""), r'".docx" is not a format of review files'),
    (lambda review, out: out / "not-there.csv", r"not-there.csv: cannot be read"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "said"), MISTAKES, ids=[said for _, said in MISTAKES])
def test_every_mistake_is_named_and_nothing_is_taken_from_any_file(
    made: Callable[[Path, Path], Path], said: str, sent: tuple[Path, Path], take: Take, tmp_path: Path
) -> None:
    good = fill(sent[1], "rater-02", "page", kind_and_cold, tmp_path / "good")
    with pytest.raises(InputError, match=said):
        take(*good, made(sent[1], tmp_path / "in"))
    assert not (tmp_path / "reviews.json").exists()


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"tag": "maybe"}, r'tag: "maybe" is not known'),
        ({"tag": "wrong"}, r"right_strategy: is empty"),
        ({"tag": "Wrong", "right_strategy": "Hope"}, r'right_strategy: "Hope" is not known\n.*use one of .*Offer Hope'),
        ({"tag": "", "right_strategy": "Offer Hope"}, r'right_strategy: has "Offer Hope" beside the tag ""\n.*write wrong'),
        ({"right_strategy": "Offer Hope"}, r'right_strategy: has "Offer Hope" beside the tag "right"'),
        ({"turn": "x"}, r'turn: "x" is not of type integer'),
        ({"turn": "1"}, r"judges the strategy of turn 1 twice"),
        ({"turn": "0"}, r"turn 0 is not a helper turn"),
        ({"tag": "", "turn": "x", "comment": "so"}, r'turn: "x" is not of type integer'),
    ],
)
def test_what_is_wrong_with_a_strategy_is_reported_with_its_own_row(
    cells: dict[str, str], said: str, sent: tuple[Path, Path], take: Take, tmp_path: Path
) -> None:
    (path,) = fill(sent[1], "rater-01", "csv", kind_and_cold, tmp_path / "in")
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    number = [at for at, row in enumerate(rows) if row["tag"] and row["turn"] != "1"][1]
    rows[number] |= cells
    rows[number][TIE] = f"{rows[number]['item']} {rows[number]['turn']}"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(InputError, match=rf"rater-01.csv: row {number + 2}: {said}"):
        take(path)


def test_all_problems_of_all_files_are_reported_at_once(sent: tuple[Path, Path], take: Take, tmp_path: Path) -> None:
    def both(value: dict[str, Any]) -> None:
        for one, rating in zip((one for one in value["judgements"] if one["kind"] == "variant"), (0, 9), strict=False):
            one["coherence"] = rating

    with pytest.raises(InputError) as raised:
        take(page_with(both)(sent[1], tmp_path / "a"), csv_with(r",3,3,3,", ",3,7,3,")(sent[1], tmp_path / "b"))
    assert [re.search(r"(0|9|7) is out of range", str(problem)) is not None for problem in raised.value.problems] == [True] * 3


def test_the_key_of_another_release_is_refused(sent: tuple[Path, Path], tmp_path: Path) -> None:
    other = Path(shutil.copytree(sent[0], tmp_path / "other"))
    manifest = json.loads((other / "manifest.json").read_text())
    (other / "manifest.json").write_text(json.dumps({**manifest, "seal": f"s1-{'1' * 64}"}))
    files = fill(sent[1], "rater-01", "page", kind_and_cold, tmp_path / "in")
    with pytest.raises(InputError, match="is the key of another release"):
        import_reviews(other, files, sent[1] / "key.json", tmp_path / "reviews.json")


def test_a_release_whose_manifest_is_cut_is_named(sent: tuple[Path, Path], tmp_path: Path) -> None:
    written(tmp_path / "manifest.json", (sent[0] / "manifest.json").read_text()[:100])
    files = fill(sent[1], "rater-01", "page", kind_and_cold, tmp_path / "in")
    with pytest.raises(InputError, match="manifest.json: is not JSON"):
        import_reviews(tmp_path, files, sent[1] / "key.json", tmp_path / "reviews.json")


def test_a_file_whose_name_is_not_utf_8_is_taken(sent: tuple[Path, Path], take: Take, tmp_path: Path) -> None:
    (path,) = fill(sent[1], "rater-01", "page", kind_and_cold, tmp_path / "in")
    record = take(path.rename(path.with_name(os.fsdecode(b"caf\xe9.json")))).record
    assert [one["file"] for one in record["sources"].values()] == ["caf?.json"]


def test_two_annotations_of_a_label_studio_task_are_refused_and_cancelled_ones_passed_over(
    sent: tuple[Path, Path], take: Take, tmp_path: Path
) -> None:
    path = next(one for one in fill(sent[1], "rater-01", "label-studio", kind_and_cold, tmp_path / "in") if "replies" in one.name)
    tasks = json.loads(path.read_text())
    tasks[0]["annotations"] *= 2
    with pytest.raises(InputError, match="task 1: has 2 annotations"):
        take(written(path, json.dumps(tasks)))
    tasks[0]["annotations"][0] = {**tasks[0]["annotations"][0], "was_cancelled": True}
    assert take(written(path, json.dumps(tasks))).new == len(tasks)


def test_the_record_names_the_source_of_every_judgement_and_the_training(sent: tuple[Path, Path], take: Take, tmp_path: Path) -> None:
    training = {"done": True, "test_right": 4, "test_of": 5}
    record = take(page_with(lambda value: value.update(training=training))(sent[1], tmp_path / "in")).record
    ((source, about),) = record["sources"].items()
    assert about == {
        "file": "rater-01.json", "form": "page", "review": key_of(sent[1])["review"], "rater": "rater-01",
        "judgements": len(record["judgements"]), "training": training,
    }  # fmt: skip
    assert {one["source"] for one in record["judgements"]} == {source}


def test_training_and_attention_checks_are_reported_by_rater_in_words_in_json_and_in_a_table(
    sent: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def returned(rater: str, **training: Any) -> str:
        (path,) = fill(sent[1], rater, "page", kind_and_cold, tmp_path / "in")
        value = json.loads(path.read_text())
        return str(written(path, json.dumps({**value, **({"training": training} if training else {})})))

    files = [
        returned("rater-01", done=True, test_right=5, test_of=5),
        returned("rater-02", done=False, test_right=0, test_of=5),
        returned("rater-03"),
    ]
    command = ["review", "import", str(sent[0]), *files, "--key", str(sent[1] / "key.json"), "--reviews", str(tmp_path / "reviews.json")]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "training, by rater:\n  rater-01   5 of 5 right\n  rater-02   0 of 5 right, not finished\ntables: " in said
    assert main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["training"] == {"rater-01": {"done": True, "right": 5, "of": 5}, "rater-02": {"done": False, "right": 0, "of": 5}}
    assert (tmp_path / "reviews.checks.csv").read_text().splitlines() == [
        "rater,training_done,training_right,training_of,attention_found,attention_of", "rater-01,1,5,5,,", "rater-02,0,0,5,,",
    ]  # fmt: skip


def test_the_result_of_a_training_that_is_done_stands_whatever_file_comes_later() -> None:
    def source(done: bool, right: int) -> dict[str, Any]:
        return {"rater": "rater-01", "review": "s1-1", "training": {"done": done, "test_right": right, "test_of": 5}}

    for files in ([source(True, 4), source(False, 0)], [source(False, 0), source(True, 4)], [source(True, 1), source(True, 4)]):
        record = {"reviews": {"s1-1": {}}, "sources": dict(enumerate(files)), "judgements": []}
        assert training_results(record) == {"rater-01": {"done": True, "right": 4, "of": 5}}


def test_without_a_result_of_training_or_checks_there_is_no_heading_and_no_table(
    take: Take, sent: tuple[Path, Path], tmp_path: Path
) -> None:
    done = take(*fill(sent[1], "rater-01", "csv", kind_and_cold, tmp_path / "in"))
    said = import_summary(done, tmp_path / "reviews.json")
    assert "training" not in said and "attention" not in said and not (tmp_path / "reviews.checks.csv").exists()
