"""Attention checks: attentive raters are recognised, and planted tags get nowhere else."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from empathy_eval.base.errors import InputError
from empathy_eval.cli import main
from empathy_eval.commands.review import review_import
from empathy_eval.design.taxonomy import load_taxonomy
from empathy_eval.raters.review.answers import read_rows
from empathy_eval.raters.review.export import export_review
from empathy_eval.raters.review.record import attention_results, corrections, decisions, read_record
from empathy_eval.raters.review.sample import ReviewDesign
from empathy_eval.raters.review.sheets import plant_attention_checks
from empathy_eval.releases.assemble.write import Released
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.raters import FORMS, fill, items_of, key_of, kind_and_cold

PHASE = {one.name: one.phase for one in load_taxonomy().strategies}
DESIGN = ReviewDesign(pairs=0, raters=4, planted=5)


@pytest.fixture(scope="module")
def sent(released: tuple[Path, Released], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("planted") / "review"
    export_review(released[0], folder, DESIGN)
    return released[0], folder


def planted_of(entries: Any) -> dict[tuple[str, str], tuple[str, str]]:
    """What was shown and what it is, by dialogue and turn."""
    return {
        (entry["dialogue_id"], place): (turn["planted"], turn["strategy"])
        for entry in entries
        for place, turn in entry["turns"].items()
        if "planted" in turn
    }


def watchful(code: str, entry: dict[str, Any]) -> dict[str, Any]:
    """A rater who finds all that was planted."""
    tags = [
        {"turn": int(place), "right": False, "strategy": turn["strategy"]} if "planted" in turn else {"turn": int(place), "right": True}
        for place, turn in entry["turns"].items()
    ]
    return {"decision": "keep", "tags": tags}


def test_all_raters_of_a_dialogue_are_shown_the_same_wrong_tags_and_only_the_key_says_which(sent: tuple[Path, Path]) -> None:
    key = key_of(sent[1])
    planted = planted_of(key["items"].values())
    assert len(planted) == DESIGN.planted
    assert all(PHASE[shown] != PHASE[real] for shown, real in planted.values())
    assert max(Counter(name for name, _ in planted).values()) == 2, "three dialogues: none has a third before each has two"
    for rater in sorted(path.name for path in (sent[1] / "raters").iterdir()):
        items = items_of(key, rater)
        for form in ("csv", "xlsx"):
            rows = [row for _, row in read_rows(sent[1] / "raters" / rater / f"{rater}.{form}") if row["strategy"]]
            for row in rows:
                turn = items[row["item"]]["turns"][row["turn"]]
                assert row["strategy"] == planted.get((items[row["item"]]["dialogue_id"], row["turn"]), [turn["strategy"]])[0]
        for path in (sent[1] / "raters" / rater).rglob("*"):
            assert not path.is_file() or b"planted" not in path.read_bytes(), path


@pytest.mark.parametrize("form", FORMS)
def test_the_record_says_who_found_them_and_they_are_no_fault_of_a_dialogue(form: str, sent: tuple[Path, Path], tmp_path: Path) -> None:
    files = fill(sent[1], "rater-01", form, watchful, tmp_path / "in") + fill(sent[1], "rater-02", form, kind_and_cold, tmp_path / "in")
    record = review_import(sent[0], files, key=sent[1] / "key.json", reviews=tmp_path / "reviews.json").record
    key = key_of(sent[1])
    of = {rater: len(planted_of(items_of(key, rater).values())) for rater in ("rater-01", "rater-02")}
    assert min(of.values()) > 0
    assert attention_results(record) == {"rater-01": (of["rater-01"], of["rater-01"]), "rater-02": (0, of["rater-02"])}
    assert corrections(record) == [] and not any(one.removed for one in decisions(record))
    assert len((tmp_path / "reviews.tags.csv").read_text().splitlines()) == 1
    tags = {(one["dialogue_id"], str(tag["turn"])): tag for one in record["judgements"] for tag in one["tags"]}
    for place, (shown, real) in planted_of(key["items"].values()).items():
        assert place not in tags or (tags[place]["tag"], tags[place]["planted"]) == (real, shown)


def test_the_summary_says_how_many_each_rater_found(sent: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = fill(sent[1], "rater-01", "page", watchful, tmp_path / "in")
    arguments = [str(sent[0]), str(path), "--key", str(sent[1] / "key.json"), "--reviews", str(tmp_path / "reviews.json")]
    count = len(planted_of(items_of(key_of(sent[1]), "rater-01").values()))
    assert main(["review", "import", *arguments]) == 0
    told = capsys.readouterr().out
    assert f"0 strategy tags found wrong\nattention checks (planted tags found), by rater:\n  rater-01   {count} of {count}\n" in told
    assert main(["review", "import", *arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["planted"] == {"rater-01": {"found": count, "of": count}}


def test_a_attention_check_is_not_corrected_to_itself(sent: tuple[Path, Path], tmp_path: Path) -> None:
    def itself(code: str, entry: dict[str, Any]) -> dict[str, Any]:
        wrong = [
            {"turn": int(place), "right": False, "strategy": turn["planted"]} for place, turn in entry["turns"].items() if "planted" in turn
        ]
        return {"decision": "keep", "tags": wrong}

    files = fill(sent[1], "rater-01", "page", itself, tmp_path / "in")
    with pytest.raises(InputError, match=r'is marked wrong, but its correction "[^"]+" is the same strategy'):
        review_import(sent[0], files, key=sent[1] / "key.json", reviews=tmp_path / "reviews.json")


def test_the_same_review_without_attention_checks_shows_the_true_ones(sent: tuple[Path, Path], tmp_path: Path) -> None:
    made = export_review(sent[0], tmp_path / "review", ReviewDesign(pairs=0, raters=4))
    true = {code: {place: turn["strategy"] for place, turn in one["turns"].items()} for code, one in key_of(sent[1])["items"].items()}
    assert {code: {place: turn["strategy"] for place, turn in one["turns"].items()} for code, one in made.key["items"].items()} == true
    assert not planted_of(made.key["items"].values())


def test_keys_and_records_of_a_time_without_attention_checks_are_read(released: tuple[Path, Released], tmp_path: Path) -> None:
    export_review(released[0], tmp_path / "review", ReviewDesign(pairs=0, raters=4))
    path = tmp_path / "review" / "key.json"
    key = json.loads(path.read_text())
    del key["settings"]["planted"]
    path.write_text(json.dumps(key))
    files = fill(tmp_path / "review", "rater-01", "page", kind_and_cold, tmp_path / "in")
    taken = review_import(released[0], files, key=path, reviews=tmp_path / "reviews.json")
    assert "planted" not in json.dumps(taken.record) and attention_results(taken.record) == {}
    assert read_record(tmp_path / "reviews.json") == taken.record


def test_more_attention_checks_than_turns_are_refused(released: tuple[Path, Released], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'--planted: "1000" is too many: the dialogues that are drawn have \d+ turns'):
        export_review(released[0], tmp_path / "review", ReviewDesign(pairs=0, raters=4, planted=1000))
    assert not list(tmp_path.iterdir())


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(0, 9), st.data())
def test_as_many_as_asked_for_are_planted_evenly_and_the_same_each_time(sizes: list[int], seed: int, data: st.DataObject) -> None:
    def dialogues() -> dict[str, list[dict[str, Any]]]:
        return {f"d{n}": [{"strategy": None}, *({"strategy": "Clarification"} for _ in range(size))] for n, size in enumerate(sizes)}

    count = data.draw(st.integers(0, sum(sizes)))
    first, again = dialogues(), dialogues()
    plant_attention_checks(first, count, seed)
    plant_attention_checks(again, count, seed)
    assert first == again
    found = {name: sum("planted" in turn for turn in turns) for name, turns in first.items()}
    assert sum(found.values()) == count
    assert all(found[name] >= min(max(found.values()) - 1, len(first[name]) - 1) for name in found)
