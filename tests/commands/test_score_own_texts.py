"""``score`` over texts of one's own, and beside what people rated: what is printed, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import empathy_eval as ee
import pandas as pd
import pyarrow.parquet as pq
import pytest
from empathy_eval.cli import main

REPLIES = (
    "I hear how much that hurts.",
    "Just move on.",
    "That sounds great and happy!",
    "Why?",
    "You could try to sleep more.",
    "Oh no, how sad.",
)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    rows = [
        {"item": f"{system}{place}", "system": system, "context": f"I lost job number {place}.", "reply": reply}
        for system, replies in (("A", REPLIES), ("B", REPLIES[::-1]))
        for place, reply in enumerate(replies)
    ]
    path = tmp_path / "own.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    path = tmp_path / "ratings.csv"
    lines = [
        f"{system}{place},r{rater},{(place * rater + len(system)) % 5 + 1}" for system in "AB" for place in range(6) for rater in range(4)
    ]
    path.write_text("\n".join(["item,rater,rating", *lines]))
    return path


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(one) for one in ("score", *arguments, "--no-cache")]) == 0
    return capsys.readouterr().out


def test_text_json_csv_and_frame_of_ones_own_texts_say_the_same(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured = ee.score(own, ["vader", "length"], cache=False)
    plain = json.loads(said(capsys, own, "--metric", "vader", "--metric", "length", "--json"))
    assert plain == json.loads(json.dumps({**measured.to_json(), "canary": []}))
    lines = list(csv.DictReader(io.StringIO(said(capsys, own, "--metric", "vader", "--metric", "length", "--csv"))))
    assert [line["table"] for line in lines] == ["means"] * 4 + ["comparisons"] * 2 and list(lines[0]) == list(measured.columns)
    assert float(lines[0]["value"]) == plain["means"][0]["score"]["value"] and all(line["signature"] for line in lines)
    assert isinstance(frame := measured.to_pandas(), pd.DataFrame) and frame["value"].dtype == "float64"
    shown = said(capsys, own, "--metric", "vader", "--metric", "length")
    assert "VADER, A" in shown and "length, A - B" in shown and "p (Holm)" in shown


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_ratings_are_read_in_every_form_to_the_same_table(own: Path, ratings: Path, suffix: str, tmp_path: Path) -> None:
    rows = list(csv.DictReader(ratings.open()))
    other = tmp_path / f"other{suffix}"
    if suffix == ".jsonl":
        other.write_text("\n".join(json.dumps({**row, "rating": float(row["rating"])}) for row in rows))
    else:
        other.write_text(ratings.read_text().replace(",", "\t" if suffix == ".tsv" else ","))
    found, again = (ee.score(own, ["vader"], ratings=one, cache=False).to_json() for one in (ratings, other))
    # Of the same ratings in another form another file is named.
    assert [one.pop("provenance")["files"][1]["name"] for one in (found, again)] == ["ratings.csv", other.name]
    assert found == again and "NaN" not in json.dumps(found)


@pytest.mark.e2e
def test_people_are_put_beside_metrics_shortcuts_and_files(
    own: Path, ratings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = tmp_path / "judge.csv"
    judge.write_text("item,score\n" + "".join(f"{system}{place},{place}\n" for system in "AB" for place in range(6)))
    arguments = (own, "--metric", "vader", "--scores", judge, "--ratings", ratings)
    (criterion,) = json.loads(said(capsys, *arguments, "--json"))["criteria"]
    assert list(dict.fromkeys(row["metric"] for row in criterion["rows"])) == ["VADER", "length", "VADER positive share", "echo", "judge"]
    assert (criterion["ratings"], criterion["texts"], criterion["raters"], criterion["units"]) == (48, 12, 4, 6)
    assert len(criterion["gaps"]) <= 10 * 4 * 3 and criterion["systems"]["told"].startswith("2 systems are too few")
    lines = list(csv.DictReader(io.StringIO(said(capsys, *arguments, "--csv"))))
    assert {"figures", "differences", "systems"} <= {line["table"] for line in lines}
    assert all(line["signature"] for line in lines if line["value"])
    shown = said(capsys, *arguments)
    assert (
        "rating: 48 ratings of 12 texts (6 contexts) by 4 raters" in shown
        and "not defined: the scores or the ratings depend on length alone" in shown
    )
    assert "pigeonhole-bootstrap" in shown and "too few to decide anything" in shown and "nan" not in shown.lower()
    assert "echo" not in said(capsys, *arguments, "--no-shortcuts")


def test_items_hold_every_score(own: Path, tmp_path: Path) -> None:
    for name in ("items.csv", "items.parquet"):
        ee.score(own, ["length"], items=tmp_path / name, cache=False)
    table = pq.read_table(tmp_path / "items.parquet").to_pylist()
    assert table[0] == {"metric": "length", "item": "A0", "system": "A", "score": 6.0, "signature": "unit:word|tok:empathy-eval"}
    assert len(table) == 12 and [float(row["score"]) for row in csv.DictReader((tmp_path / "items.csv").open())] == [
        one["score"] for one in table
    ]


BAD = {
    "A9,r1,3": '"A9" is rated, but is not an item of the texts',
    "A0,r1,3\nA0,r1,4": '"r1" rates "A0" on "rating" again, after line 2',
    "A0,r1,good": 'rating "good" is not of type number',
    "A0,r1,nan": 'rating "nan" is not of type number',
    "": "holds no rating",
}


@pytest.mark.parametrize("rows", BAD)
def test_bad_ratings_are_refused_in_words(own: Path, tmp_path: Path, rows: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(f"item,rater,rating\n{rows}\n")
    assert main(["score", str(own), "--metric", "vader", "--ratings", str(path)]) == 2
    assert BAD[rows] in capsys.readouterr().err


def test_bad_rows_of_jsonl_are_refused_with_their_lines(own: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    rows: list[dict[str, Any]] = [
        {"item": "A0", "rater": "r", "rating": True}, {"item": "A0", "rater": "r", "rating": "3"},
        {"item": ["A0"], "rater": "r", "rating": 1},
        {"item": "A0", "rater": "r"}, {"item": "A1", "rater": "r", "rating": None},
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, rows)) + "\n[1]")
    with pytest.raises(ee.InputError) as caught:
        ee.score(own, ["vader"], ratings=path)
    for part in ('line 1: rating "true"', 'line 2: rating "3"', "line 4: misses", "line 6: is not an object"):
        assert part in str(caught.value), part


def test_what_belongs_to_the_evaluation_of_a_release_is_refused(own: Path, ratings: Path, light: Path) -> None:
    for more, part in (({"split": "test"}, "split"), ({"strict": True}, "strict"), ({"judges": ["a/b"]}, "judges")):
        with pytest.raises(ee.InputError, match=f"{part} cannot be used with texts of your own"):
            ee.score(own, ["vader"], **more)
    with pytest.raises(ee.InputError, match="strict cannot be used with ratings"):
        ee.score(light, ["vader"], strict=True, ratings=ratings)
    with pytest.raises(ee.InputError, match="names no text of a release"):
        ee.score(light, ["vader"], ratings=ratings)


def test_the_ratings_of_a_review_appear_beside_scores_of_the_release(
    light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = pq.read_table(light / "data" / "pairs" / "train.parquet").to_pylist()[:8]
    lines = ["item,rater,criterion,rating"]
    for place, pair in enumerate(pairs):
        for rater in range(3):
            for variant, more in (("apathetic", 1), ("empathetic", 2)):
                lines.append(f"{pair['pair_id']}:{variant},rater-0{rater},empathy,{more + (place + rater) % 2}")
    lines += [f"{pairs[0]['pair_id']}:empathetic:rejected-0,rater-01,empathy,1", "001-seed-t99:empathetic,rater-01,empathy,1"]
    lines += [f"{pairs[1]['pair_id']}:empathetic:0123456789ab,rater-01,empathy,3"]
    table = tmp_path / "reviews.ratings.csv"
    table.write_text("\n".join(lines))
    found = ee.score(light, ["rouge-l"], ratings=table, cache=False)
    assert isinstance(found, ee.AgainstPeople)
    (criterion,) = found.criteria
    assert (criterion.criterion, criterion.ratings, criterion.texts, criterion.unit) == ("empathy", 48, 16, "dialogue")
    assert [one.endswith("left out: 1") for one in found.notes] == [True] * 3
    assert criterion.systems and criterion.systems.names == ("apathetic", "empathetic")
    assert criterion.rows[0].metric == "ROUGE-L" and (criterion.rows[0].figures["r"].value or 0) < 0
    assert "ratings of rejected texts are left out: 1" in said(capsys, light, "--metric", "rouge-l", "--ratings", table)
