"""``score --ensemble``: of texts of one's own and of a release, what is printed, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import empathy_eval as ee
import numpy as np
import pyarrow.parquet as pq
import pytest
from empathy_eval.cli import main

REPLIES = ("I hear how much that hurts.", "Just move on.", "That sounds great and happy!", "Why?", "Oh no, how sad.", "You could try.")
CELLS = ("apathetic", "empathetic", "near_empathetic", "far_apathetic")


def own_of(folder: Path, *splits: str) -> Path:
    rows = [
        {"item": f"i{place}", "context": f"I lost job {place}.", "reply": REPLIES[place % 6] + " Really." * (place % 4)}
        for place in range(18)
    ]
    path = folder / "own.jsonl"
    path.write_text("\n".join(json.dumps(row | ({"split": splits[n // 6 % len(splits)]} if splits else {})) for n, row in enumerate(rows)))
    return path


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    path = tmp_path / "ratings.csv"
    lines = [f"i{place},r{rater},{(place * 5 + rater * place) % 4 + 1}" for place in range(18) for rater in range(3)]
    path.write_text("\n".join(["item,rater,rating", *lines]))
    return path


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(one) for one in ("score", *arguments, "--no-cache")]) == 0
    return capsys.readouterr().out


@pytest.mark.e2e
def test_text_json_csv_and_python_say_the_same_of_ensembles(tmp_path: Path, ratings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own, names = own_of(tmp_path, "validation", "test", "train"), ["huffman:sentlink,vader,length", "mean:VADER,length"]
    metrics = ["vader", "sentlink", "length"]
    asked = [part for option, some in (("--metric", metrics), ("--ensemble", names)) for one in some for part in (option, one)]
    arguments = (own, *asked, "--ratings", ratings, "--no-shortcuts")
    found = ee.score(own, metrics, ratings=ratings, ensembles=names, shortcuts=False, items=tmp_path / "items.csv", cache=False)
    plain = json.loads(said(capsys, *arguments, "--json"))
    assert plain == json.loads(json.dumps({**found.to_json(), "canary": []})) and [one["name"] for one in plain["ensembles"]] == names
    (criterion,) = plain["criteria"]
    assert (criterion["texts"], criterion["ratings"], plain["on_pairs"]) == (6, 18, [])
    assert list(dict.fromkeys(row["metric"] for row in criterion["rows"])) == ["VADER", "Sentlink", "length", *names]
    lines = [line for line in csv.DictReader(io.StringIO(said(capsys, *arguments, "--csv"))) if line["table"] == "ensembles"]
    members = [member for one in plain["ensembles"] for member in one["members"]]
    assert [float(one["value"]) for one in lines if one["figure"] == "weight"] == [one["weight"] for one in members]
    assert len(lines) == 5 * 5 and all(one["signature"].startswith("ensemble:") for one in lines)
    shown = said(capsys, *arguments)
    assert "fitted on 18 ratings of 6 texts of the validation split" in shown
    for part in ("lowest r first", "length, no direction, used as it is", "0.2500"):
        assert part in shown, part
    assert "measured over the texts of test" in shown and "ratings of train are left out: 18" in shown
    assert [row["item"] for row in csv.DictReader((tmp_path / "items.csv").open()) if row["metric"] == names[0]] == [
        f"i{n}" for n in range(18)
    ]


def test_texts_without_a_split_and_ensembles_without_ratings_are_refused(tmp_path: Path, ratings: Path) -> None:
    own = own_of(tmp_path)
    with pytest.raises(ee.InputError, match='18 of 18 rated texts have no split, first i0\n  Fix: write "split": "validation" or "test"'):
        ee.score(own, ["vader"], ratings=ratings, ensembles=["mean:vader,length"], cache=False)
    with pytest.raises(ee.InputError, match="there are no ratings to fit an ensemble to"):
        ee.score(own, ["vader", "length"], ensembles=["mean:vader,length"])
    with pytest.raises(ee.InputError, match='there is no row "dull"'):
        ee.score(own, ["vader"], ratings=ratings, ensembles=["mean:vader,dull"])
    with pytest.raises(ee.InputError, match='"dev" is not known'):
        ee.score(own_of(tmp_path, "dev"), ["vader"])
    with pytest.raises(ee.InputError, match='"test" cannot be used with ensembles'):
        ee.score(tmp_path, ["vader"], ratings=ratings, split="test", ensembles=["mean:vader,length"])


def reviewed(release: Path, folder: Path) -> tuple[Path, Path]:
    """A table of ratings of some pairs of every split, and a judge whose lower scores are better."""
    lines, judged = ["item,rater,criterion,rating"], ["pair_id,variant,score"]
    for split in ("train", "validation", "test"):
        for place, pair in enumerate(pq.read_table(release / "data" / "pairs" / f"{split}.parquet").to_pylist()):
            for number, variant in enumerate(CELLS[:2]):
                judged.append(f"{pair['pair_id']},{variant},{(place * 3 + 5 * (1 - number)) % 7}")
                for rater in range(3 if place < 6 else 0):
                    lines.append(f"{pair['pair_id']}:{variant},r{rater},empathy,{number + (place + rater) % 3}")
    (folder / "reviews.csv").write_text("\n".join(lines))
    (folder / "judge.csv").write_text("\n".join(judged))
    return folder / "reviews.csv", folder / "judge.csv"


@pytest.mark.e2e
def test_ensembles_of_a_release_are_measured_on_the_ratings_and_the_pairs_of_test(
    seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, judge = reviewed(seeds, tmp_path)
    name = "huffman:sentlink,length,judge"
    how: dict[str, Any] = {"cache": False, "shortcuts": False, "lower_is_better": True}
    found = ee.score(seeds, ["sentlink", "length"], [judge], ratings=table, ensembles=[name], **how)
    assert isinstance(found, ee.AgainstPeople)
    (criterion,), (one,) = found.criteria, found.ensembles
    assert (one.ratings, one.texts, criterion.ratings, criterion.texts, criterion.unit) == (36, 12, 36, 12, "dialogue")
    assert "ratings of texts that are not in these splits of the release are left out: 36" in found.notes
    assert {member.row: member.higher_is_better for member in one.members} == {"Sentlink": True, "length": None, "judge": False}
    # The pairs of test, once more by hand.
    ee.score(seeds, ["sentlink", "length"], [judge], split="test", items=tmp_path / "items.csv", **how)
    rows: dict[str, dict[str, dict[str, str]]] = {}
    for row in csv.DictReader((tmp_path / "items.csv").open()):
        rows.setdefault(row["pair_id"], {})[row["metric"]] = row
    won = []
    for pair in rows.values():
        kind, cold = (
            one.of({metric: np.array([float(row[f"score_{variant}"])]) for metric, row in pair.items()})[0]
            for variant in ("empathetic", "apathetic")
        )
        won.append((np.sign(kind - cold) + 1) / 2)
    reached = {(row.row, row.contrast): row for row in found.on_pairs}
    ours = reached[name, "as released"]
    assert ours.pairs == len(rows) and ours.accuracy.value == pytest.approx(np.mean(won), abs=1e-6) and ours.accuracy.low is not None
    alone = ee.score(seeds, ["sentlink"], split="test", **how)
    assert isinstance(alone, ee.ReleaseTables)
    plain = alone.equal_closeness["Sentlink"]
    assert reached["Sentlink", "at equal closeness"].accuracy == plain.accuracy and ("length", "as released") not in reached
    # The judge knows no controls.
    assert (name, "at equal closeness") not in reached
    arguments = ("--metric", "sentlink", "--metric", "length", "--ratings", table, "--ensemble", "mean:sentlink,length", "--no-shortcuts")
    shown = said(capsys, seeds, *arguments)
    assert "test pairs, at equal closeness" in shown and "test pairs, as released" in shown
    lines = list(csv.DictReader(io.StringIO(said(capsys, seeds, *arguments, "--csv"))))
    assert [one["metric"] for one in lines if one["table"] == "on pairs"] == ["Sentlink", "mean:sentlink,length"] * 2


def test_a_measure_of_whole_sets_in_the_call_is_what_is_refused_and_no_other_name(tmp_path: Path, ratings: Path) -> None:
    own = own_of(tmp_path, "validation", "test")
    with pytest.raises(ee.InputError, match="measures whole sets of texts") as told:
        ee.score(own, ["dist-1", "vader", "length"], ratings=ratings, ensembles=["mean:vader,length"], shortcuts=False, cache=False)
    assert "no row" not in str(told.value)
    with pytest.raises(ee.InputError, match='there is no row "dist-1"'):
        ee.score(own, ["dist-1", "vader"], ratings=ratings, ensembles=["mean:vader,dist-1"], shortcuts=False, cache=False)
